"""The linked views of a study: their data, and a page that holds them and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from lab.instruments.summaries import Tables
from lab.instruments.summaries import patching as effects
from lab.instruments.summaries import tables as T
from lab.instruments.summaries.summary import FOR_READERS
from lab.views import palette
from lab.views.content import made, patching, reading
from lab.views.page import render
from lab.views.reading_payload import (
    MAX_BYTES,
    MAX_EXAMPLES,
    reader_payload,
    without_absent_spans,
)
from lab.views.view_words import VIEWS
from lab.views.wording import NORMS

QUANTITIES = {
    "generator": "generator",
    "evaluator": "evaluator",
    "difference": "generator minus evaluator",
}
"""What a head map can show of attention: name and label."""


def explorer_payload(
    dataset: xr.Dataset,
    max_examples: int = MAX_EXAMPLES,
    max_bytes: int = MAX_BYTES,
    tables: Tables | None = None,
) -> dict[str, Any]:
    """What the linked views (picker, head maps, layers, reader) show, as plain JSON data.

    Parts that were not measured are empty. ``max_examples`` and ``max_bytes`` bound the examples
    whose tokens are held, see `reader_payload`. ``tables`` saves computing them again.
    """
    dataset = without_absent_spans(dataset)
    light = dataset.drop_vars([name for name in FOR_READERS if name in dataset]).compute()
    spans, marks = T.coordinate(dataset, "span"), T.coordinate(dataset, "mark")
    heads, layers = reading.by_norm(light, tables)
    patched = patching.patching_data(
        tables.head_effects if tables else effects.heads(light),
        tables.layer_effects if tables else effects.layers(light),
    )
    return {
        "layers": dataset.sizes.get("layer", 0),
        "heads": dataset.sizes.get("head", 0),
        "n": int(heads["raw"]["n"].max()) if len(heads["raw"]) else 0,
        "start": reading.start_head(heads["raw"]),
        "spans": [{"name": name, "label": palette.SPAN_LABELS.get(name, name)} for name in spans],
        "marks": [{"name": name, "label": palette.MARK_LABELS.get(name, name)} for name in marks],
        "words": VIEWS,
        "norms": [{"name": name, **words} for name, words in NORMS.items()],
        "quantities": _quantities(bool(len(heads["raw"])), patched),
        "look": reading.look_data(layers, spans),
        "maps": reading.map_data(light, heads),
        "where": reading.where_data(light, spans),
        "patching": patched,
        "reader": reader_payload(dataset, max_examples, max_bytes),
    }


def explorer_page(
    payload: Mapping[str, Any], title: str, note: str = "", state: Mapping[str, Any] | None = None
) -> str:
    """The linked views as the text of one HTML page that needs no network, kernel or Python.

    ``payload`` is what `explorer_payload` gives; ``note`` says below the title what it is about;
    ``state`` is the selection with which the page opens.
    """
    return render(
        "explorer.html.j2",
        {**payload, "state": dict(state or {})},
        title=title,
        note=note,
        n_heads=payload["layers"] * payload["heads"],
        attention=bool(payload["quantities"]),
        lead=made.reader_lead(payload["reader"]),
        exactness=made.quantisation(payload["reader"]),
    )


def _quantities(attention: bool, patched: list[dict[str, Any]]) -> list[dict[str, str]]:
    shown = QUANTITIES if attention else {}
    return [
        *({"name": name, "label": label} for name, label in shown.items()),
        *(
            {"name": p["key"], "label": f"{p['contrast_label']}: {p['direction_label']}"}
            for p in patched
        ),
    ]
