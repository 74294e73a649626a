"""The exported report: one HTML file that opens without network, kernel or Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from lab.errors import LabError
from lab.instruments.summaries import behaviour as B
from lab.instruments.summaries import headline, tabulate
from lab.instruments.summaries import tables as T
from lab.instruments.summaries.runs import Run
from lab.views.content import (
    behaviour,
    dots,
    front,
    made,
    patching,
    reading,
    trained,
    transfer,
)
from lab.views.content.override import section as override
from lab.views.explorer_payload import explorer_payload
from lab.views.page import render, write_page
from lab.views.reading_payload import MAX_BYTES, MAX_EXAMPLES, without_absent_spans
from lab.views.table import Table
from lab.views.wording import CAPTIONS, HELP, NORMS, SECTIONS, TEXTS

if TYPE_CHECKING:
    from lab.studies.override.results import OverrideResults


@dataclass(frozen=True, slots=True)
class Page:
    """Everything that the template shows as text: see ``static/report.html.j2``."""

    title: str
    kicker: str
    questions: str
    n_heads: int
    cards: list[front.Card]
    sentences: tuple[str, ...]
    tables: dict[str, Table]
    figures: dict[str, dots.Dots]
    texts: Mapping[str, str]
    captions: Mapping[str, str]
    leads: dict[str, str]
    notes: list[str]
    limits: list[str]
    provenance: list[tuple[str, list[str]]]
    templates: list[tuple[str, str]]
    excluded: list[tuple[str, str]]
    help: Mapping[str, tuple[str, ...]]
    sections: tuple[tuple[str, str], ...]
    training: transfer.Section | None
    deciding: override.Section | None
    has: Mapping[str, bool]


def write_report(
    dataset: xr.Dataset,
    provenance: Mapping[str, Any],
    path: str | os.PathLike[str],
    runs: Sequence[Run] = (),
    max_examples: int = MAX_EXAMPLES,
    max_bytes: int = MAX_BYTES,
    deciding: OverrideResults | None = None,
) -> Path:
    """The path of the report, written as one HTML file that needs nothing else.

    The file appears complete or not at all. For the other arguments see :func:`render_report`.

    Raises:
        LabError: when the folder does not exist or cannot be written to.
    """
    return write_page(
        path, render_report(dataset, provenance, runs, max_examples, max_bytes, deciding)
    )


def render_report(
    dataset: xr.Dataset,
    provenance: Mapping[str, Any],
    runs: Sequence[Run] = (),
    max_examples: int = MAX_EXAMPLES,
    max_bytes: int = MAX_BYTES,
    deciding: OverrideResults | None = None,
) -> str:
    """The report as the text of one HTML page, from a study's arrays and its provenance alone.

    ``runs`` are the study and other versions of its model on the same questions, the base first,
    as `lab.studies.beside.read_runs` gives them: with two or more the page says what training
    changes.

    The reader section holds at most ``max_examples`` examples and about ``max_bytes`` bytes,
    chosen in turn from every kind of question and outcome; the page says how many.

    ``deciding`` is an override study of the same folder, which gets a section of its own.

    Raises:
        LabError: when the study holds no example, or the runs have none in common.
    """
    if not dataset.sizes.get("example"):
        raise LabError("This study holds no example, so there is nothing to report: run it first.")
    shown = without_absent_spans(dataset)
    page, data = _content(shown, provenance, runs, max_examples, max_bytes, deciding)
    return render("report.html.j2", data, page=page)


def _content(
    dataset: xr.Dataset,
    provenance: Mapping[str, Any],
    runs: Sequence[Run],
    max_examples: int,
    max_bytes: int,
    deciding: OverrideResults | None,
) -> tuple[Page, dict[str, Any]]:
    tables = tabulate(dataset)
    opening = headline(dataset, provenance, tables)
    balanced = B.balanced(dataset, families=True)
    found = reading.Reading.of(tables)
    versions = trained.Training.of(runs)
    before = trained.untrained(versions, tables, balanced, provenance)
    data = explorer_payload(dataset, max_examples, max_bytes, tables)
    reader = data["reader"]
    gaps = transfer.transfer_data(versions)
    has = front.measured(dataset)
    optional = {
        "training": versions, "override": deciding, "layers": has["reading"],
        "heads": has["reading"], "patching": has["patching"],
    }  # fmt: skip
    n, clusters = dataset.sizes["example"], len(set(T.labels(dataset, "cluster")))
    page = Page(
        title=opening.title,
        kicker=f"Role Lens · {opening.subtitle}",
        questions=front.questions(n),
        n_heads=dataset.sizes.get("layer", 0) * dataset.sizes.get("head", 0),
        cards=front.cards(opening),
        sentences=opening.meaning,
        tables={
            "behaviour": behaviour.behaviour_table(tables.agreement, balanced, before),
            "families": behaviour.family_table(tables.agreement, balanced),
            "ladder": behaviour.ladder_table(balanced, tables.label_mass),
            "controls": behaviour.controls_table(tables.controls),
            "spans": reading.span_table(found, ["raw"]),
            "measures": reading.span_table(found, [norm for norm in NORMS if norm != "raw"]),
            "comparisons": reading.comparison_table(found),
            "changed": reading.changed_table(found),
            "readers": reading.readers_table(found),
            "windows": patching.window_table(tables.windows, tables.layer_effects),
            "patched": patching.patched_table(tables.top_heads),
        },
        figures={
            "ladder": dots.ladder(behaviour.ladder_data(balanced)),
            "controls": dots.controls(behaviour.controls_data(tables.controls)),
            **({"transfer": dots.transfer(gaps)} if gaps else {}),
        },
        texts=TEXTS,
        captions=CAPTIONS,
        leads={
            "candidate": front.candidate_lead(tables.candidate_to_context),
            "changed": front.changed_lead(found),
            "readers": front.readers_lead(found),
            "reader": made.reader_lead(reader),
        },
        notes=behaviour.label_notes(tables.label_mass),
        limits=made.limits(provenance, n, clusters, made.kinds(dataset)),
        provenance=made.provenance_rows(provenance, reader),
        templates=made.templates(provenance),
        excluded=made.excluded(provenance),
        help=HELP,
        sections=tuple(part for part in SECTIONS if optional.get(part[0], True)),
        training=transfer.section(versions, provenance) if versions else None,
        deciding=override.section(deciding) if deciding else None,
        has=has,
    )
    return page, data
