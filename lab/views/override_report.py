"""The page of an override study that stands alone, without an ordinary study around it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.views.content import made
from lab.views.content.override import headline
from lab.views.content.override import section as override
from lab.views.content.override.words import INTERVALS, LIMITS
from lab.views.page import render, write_page

if TYPE_CHECKING:
    from lab.studies.override.results import OverrideResults

NO_READER = {"error": 0.0, "held": 0, "of": 0}
OF_EXAMPLES = ("In this page", "Left out")
"""Rows of the provenance that speak of an ordinary study's examples."""


@dataclass(frozen=True, slots=True)
class OverridePage:
    """What the template shows as text: see ``static/override_page.html.j2``."""

    title: str
    kicker: str
    section: override.Section
    sections: tuple[tuple[str, str], ...]
    limits: tuple[str, ...]
    provenance: list[tuple[str, list[str]]]
    templates: list[tuple[str, str]]


def render_override(found: OverrideResults) -> str:
    """The report on an override study as the text of one HTML page; its figures need no script."""
    name = str((found.provenance.get("model") or {}).get("name") or "")
    section = override.section(found)
    page = OverridePage(
        headline.title(found),
        f"Role Lens · {name} · {headline.size(found)}" if name else "Role Lens",
        section,
        tuple(override.menu(section)),
        LIMITS,
        _provenance(found),
        made.templates(found.provenance),
    )
    return render("override_page.html.j2", {}, page=page)


def _provenance(found: OverrideResults) -> list[tuple[str, list[str]]]:
    rows = made.provenance_rows(found.provenance, NO_READER)
    return [row for row in rows if row[0] not in OF_EXAMPLES] + [("Intervals", [INTERVALS])]


def write_override(found: OverrideResults, path: str | os.PathLike[str]) -> Path:
    """The path of that page, written as one file that needs nothing else.

    Raises:
        LabError: when the folder does not exist or cannot be written to.
    """
    return write_page(path, render_override(found))
