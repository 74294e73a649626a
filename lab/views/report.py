"""The exported report: one HTML file that opens without network, kernel or Python."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import xarray as xr
from markupsafe import Markup

from lab.errors import LabError
from lab.instruments.summaries import behaviour as B
from lab.instruments.summaries import headline, tabulate
from lab.instruments.summaries import tables as T
from lab.instruments.summaries.transfer import Run
from lab.views import palette
from lab.views.content import behaviour, front, made, patching, reading, transfer
from lab.views.packing import script_json
from lab.views.reading_payload import (
    MAX_BYTES,
    MAX_EXAMPLES,
    reader_payload,
    without_absent_spans,
)
from lab.views.table import Table
from lab.views.wording import CAPTIONS, HELP, NORMS, SECTIONS, TEXTS

STATIC = Path(__file__).parent / "static"
SCRIPTS = ("base.js", "charts.js", "figures.js", "reader.js", "mount.js")
STYLES = ("lens.css", "page.css")


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


def write_report(
    dataset: xr.Dataset,
    provenance: Mapping[str, Any],
    path: str | os.PathLike[str],
    runs: Sequence[Run] = (),
    max_examples: int = MAX_EXAMPLES,
    max_bytes: int = MAX_BYTES,
) -> Path:
    """The path of the report, written as one HTML file that needs nothing else.

    The file appears complete or not at all. For the other arguments see :func:`render_report`.

    Raises:
        LabError: when the folder does not exist or cannot be written to.
    """
    target = Path(path)
    html = render_report(dataset, provenance, runs, max_examples, max_bytes)
    try:
        _replace(target, html)
    except OSError as error:
        raise LabError(
            f"The report cannot be written to {target}: {error.strerror or error}. "
            "Choose a file in a folder that exists and that you may write to."
        ) from error
    return target


def render_report(
    dataset: xr.Dataset,
    provenance: Mapping[str, Any],
    runs: Sequence[Run] = (),
    max_examples: int = MAX_EXAMPLES,
    max_bytes: int = MAX_BYTES,
) -> str:
    """The report as the text of one HTML page, from a study's arrays and its provenance alone.

    ``runs`` are the study and other versions of its model on the same questions, the base first,
    as `lab.studies.beside.read_runs` gives them: with two or more the page says what training
    changes.

    The reader section holds at most ``max_examples`` examples and about ``max_bytes`` bytes,
    chosen in turn from every kind of question and outcome; the page says how many.

    Raises:
        LabError: when the study holds no example, or the runs have none in common.
    """
    if not dataset.sizes.get("example"):
        raise LabError("This study holds no example, so there is nothing to report: run it first.")
    shown = without_absent_spans(dataset)
    page, data = _content(shown, provenance, runs, max_examples, max_bytes)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(STATIC), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("report.html.j2").render(
        page=page,
        css=Markup(stylesheet()),
        script=Markup(module() + _static("page.js")),
        data=Markup(script_json(data)),
    )


def module() -> str:
    """The front-end as the text of one JavaScript module (it exports mount and render)."""
    return "\n".join(_static(name) for name in SCRIPTS)


def stylesheet() -> str:
    """The colours and rules of the page."""
    return palette.stylesheet() + "".join(_static(name) for name in STYLES)


def _content(
    dataset: xr.Dataset,
    provenance: Mapping[str, Any],
    runs: Sequence[Run],
    max_examples: int,
    max_bytes: int,
) -> tuple[Page, dict[str, Any]]:
    tables = tabulate(dataset)
    opening = headline(dataset, provenance, tables)
    balanced = B.balanced(dataset, families=True)
    found = reading.Reading.of(dataset, tables)
    trained = transfer.Training.of(runs)
    before = transfer.untrained(trained, tables, balanced, provenance)
    reader = reader_payload(dataset, max_examples, max_bytes)
    n, clusters = dataset.sizes["example"], len(set(T.labels(dataset, "cluster")))
    data = _figure_data(dataset, found)
    data |= {
        "ladder": behaviour.ladder_data(balanced),
        "controls": behaviour.controls_data(tables.controls),
        "patching": patching.patching_data(tables.head_effects, tables.layer_effects),
        "transfer": transfer.transfer_data(trained),
        "reader": reader,
    }
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
            "windows": patching.window_table(tables.windows),
            "patched": patching.patched_table(tables.top_heads),
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
        limits=made.limits(provenance, n, clusters),
        provenance=made.provenance_rows(provenance, reader, float(reader["error"])),
        templates=made.templates(provenance),
        excluded=made.excluded(provenance),
        help=HELP,
        sections=tuple(part for part in SECTIONS if trained or part[0] != "training"),
        training=transfer.section(trained, provenance) if trained else None,
    )
    return page, data


def _figure_data(dataset: xr.Dataset, found: reading.Reading) -> dict[str, Any]:
    spans, marks = T.coordinate(dataset, "span"), T.coordinate(dataset, "mark")
    return {
        "layers": dataset.sizes.get("layer", 0),
        "heads": dataset.sizes.get("head", 0),
        "start": reading.start_head(found),
        "spans": [{"name": name, "label": palette.SPAN_LABELS.get(name, name)} for name in spans],
        "marks": [{"name": name, "label": palette.MARK_LABELS.get(name, name)} for name in marks],
        "norms": [{"name": name, **words} for name, words in NORMS.items()],
        "look": reading.look_data(found, spans),
        "maps": reading.map_data(found),
        "where": reading.where_data(dataset, spans),
    }


@cache
def _static(name: str) -> str:
    """A file of ours without its indentation and comments, on which nothing in it depends."""
    lines = (STATIC / name).read_text(encoding="utf-8").splitlines()
    text = "\n".join(line.strip() for line in lines if line.strip()) + "\n"
    return re.sub(r"^/\*.*?\*/\n", "", text, flags=re.MULTILINE | re.DOTALL)


def _replace(target: Path, text: str) -> None:
    """Writes beside the target and renames, so that no half-written file is ever seen there."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(text)
        # mkstemp makes files that only the owner can read; a report is made to be handed on.
        temporary.chmod(0o644)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
