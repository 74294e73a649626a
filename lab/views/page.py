"""Exported pages: the front end as text, templates, and files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import rcssmin
import rjsmin
from markupsafe import Markup

from lab.errors import LabError
from lab.views import palette
from lab.views.packing import script_json

STATIC = Path(__file__).parent / "static"
SCRIPTS = (
    "base.js",
    "headmap.js",
    "quantities.js",
    "layers.js",
    "patching.js",
    "picker.js",
    "sides.js",
    "reader.js",
    "bench.js",
    "mount.js",
)
"""The views, in the order in which they are joined into one module."""


def module() -> str:
    """The views as the text of one JavaScript module.

    It exports ``mount`` and ``renderViews`` for pages, and as its default what anywidget calls
    (which would take an export named ``render`` for that, too).
    """
    return _script(SCRIPTS)


def widget_stylesheet() -> str:
    """Colours and rules of the views, for elements of the class ``rl`` inside any other page."""
    return palette.widget_stylesheet() + _style("lens.css")


def stylesheet() -> str:
    """Colours and rules of an exported page: those of the views, and of the page around them."""
    return palette.stylesheet() + _style("lens.css") + _style("page.css")


def render(template: str, data: Mapping[str, Any], **values: Any) -> str:
    """An exported page from one of our templates, with the views' data inside.

    Everything that the template prints is escaped; only our own files are not, and the data is
    JSON without any markup character.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(STATIC), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template(template).render(
        css=Markup(stylesheet()),
        script=Markup(_script((*SCRIPTS, "theme.js", "page.js"))),
        theme=Markup(_script(("theme.js",))),
        data=Markup(script_json(data)),
        **values,
    )


def write_page(path: str | os.PathLike[str], html: str) -> Path:
    """The path of the page, written as one file that appears complete or not at all.

    Raises:
        LabError: when the folder does not exist or cannot be written to.
    """
    target = Path(path)
    try:
        _replace(target, html)
    except OSError as error:
        raise LabError(
            f"The page cannot be written to {target}: {error.strerror or error}. "
            "Choose a file in a folder that exists and that you may write to."
        ) from error
    return target


@cache
def _script(names: tuple[str, ...]) -> str:
    text = "\n".join((STATIC / name).read_text(encoding="utf-8") for name in names)
    return str(rjsmin.jsmin(text)) + "\n"


@cache
def _style(name: str) -> str:
    return str(rcssmin.cssmin((STATIC / name).read_text(encoding="utf-8")))


def _replace(target: Path, text: str) -> None:
    """Writes beside the target and renames, so that no half-written file is ever seen there."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
        # mkstemp makes files that only the owner can read; a page is made to be handed on.
        temporary.chmod(0o644)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
