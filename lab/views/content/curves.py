"""Learning curves: how answering and judging went while the model was trained."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.views.format import decimal
from lab.views.table import Cell, Row, Table, table
from lab.views.wording import CURVES

WIDTH, HEIGHT = 100, 100
"""Of a panel's drawing space; the page stretches it."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One measure against training steps.

    Attributes:
        label: what it measures.
        colour: a CSS colour name of the page.
        path: SVG path in a space of 100 by 100, one at the top and zero at the bottom.
        first, last: the values at both ends, as text.
        start, end: the steps at both ends, as text.
    """

    label: str
    colour: str
    path: str
    first: str
    last: str
    start: str
    end: str


Points = list[tuple[int, dict[str, float]]]


def curve_points(curve: Sequence[Any]) -> Points:
    """Steps in order, with the measures of CURVES that are known there.

    What is no point is left out: the curve comes from the adapter's own file.
    """
    found = []
    for point in curve:
        step = _number(point.get("step")) if isinstance(point, Mapping) else math.nan
        if math.isfinite(step):
            known = {name: _number(point.get(name)) for name in CURVES}
            found.append((int(step), {k: v for k, v in known.items() if math.isfinite(v)}))
    return sorted(found, key=lambda pair: pair[0])


def curve_size(curve: Sequence[Any]) -> str:
    """How many questions a curve rests on, as a sentence."""
    asked = [point.get("questions") for point in curve if isinstance(point, Mapping)]
    known = [int(n) for n in map(_number, asked) if math.isfinite(n)]
    n = f"n = {max(known):,} questions" if known else "How many questions there were is not known"
    return f"{n}; no interval was kept."


def curves(provenance: Mapping[str, Any]) -> tuple[list[Curve], Table]:
    """Panels, and the table of their numbers; both empty where no curve was kept."""
    kept = curve_points(stored_curve(provenance))
    panels = [_panel(name, kept) for name in CURVES]
    rows = [
        Row(f"{step:,}", tuple(Cell(decimal(values.get(name, math.nan))) for name in CURVES))
        for step, values in kept
    ]
    numbers = table("Learning curves", ("step", *CURVES.values()), rows)
    return [panel for panel in panels if panel], numbers


def stored_curve(provenance: Mapping[str, Any]) -> list[Any]:
    """The curve that a study keeps of its adapter's training; empty where there is none."""
    adapter = provenance.get("adapter")
    curve = adapter.get("curve") if isinstance(adapter, Mapping) else None
    return curve if isinstance(curve, list) else []


def _panel(name: str, kept: Points) -> Curve | None:
    known = [(step, values[name]) for step, values in kept if name in values]
    if len(known) < 2 or known[0][0] == known[-1][0]:
        return None
    (start, first), (end, last) = known[0], known[-1]
    places = [
        f"{WIDTH * (step - start) / (end - start):.1f} {HEIGHT * (1 - min(1, max(0, value))):.1f}"
        for step, value in known
    ]
    return Curve(
        CURVES[name],
        "gen" if name == "answers_exact" else "eva",
        "M" + "L".join(places),
        decimal(first),
        decimal(last),
        f"{start:,}",
        f"{end:,}",
    )


def _number(value: Any) -> float:
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if known else math.nan
