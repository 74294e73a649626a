"""Figures of dots with intervals, placed here so that the page draws them without any script."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.instruments.statistics import Estimate
from lab.views.format import MISSING, decimal, interval


@dataclass(frozen=True, slots=True)
class Column:
    """One scale: its label, the colour of its dots, guide lines in per cent, words below it."""

    label: str
    colour: str
    ends: tuple[str, ...]
    guides: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dot:
    """One estimate: its place and interval in per cent of the scale, and both as text.

    ``at`` is empty where there is no value, ``low`` where there is no interval.
    """

    text: str
    small: str = ""
    at: str = ""
    low: str = ""
    width: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One row: label, small print, a dot for each column."""

    label: str
    note: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True)
class Dots:
    """A figure of rows and columns, with a summary for screen readers."""

    summary: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """One column before it is placed: from and to which value, and where guide lines are."""

    label: str
    colour: str
    low: float
    high: float
    ends: tuple[str, ...]
    guides: tuple[float, ...] = ()


Cells = Sequence[Mapping[str, Any] | None]


def dot_figure(
    title: str, scales: Sequence[Scale], rows: Sequence[tuple[str, str, int, Cells]]
) -> Dots:
    """A figure from scales and rows of (label, explanation, n, an estimate for each scale).

    Estimates are as `behaviour.estimate_data` gives them; None where there is none. What lies
    outside of a scale is drawn at its end.
    """
    lines, said = [], []
    for label, note, n, cells in rows:
        dots = tuple(_dot(cell, scale) for cell, scale in zip(cells, scales, strict=True))
        lines.append(Line(label, f"{note} n\u00a0=\u00a0{n}", dots))
        told = (f"{s.label} {dot.text}" for s, dot in zip(scales, dots, strict=True))
        said.append(f"{label}: {', '.join(told)}")
    columns = tuple(
        Column(s.label, s.colour, s.ends, tuple(_place(x, s) for x in s.guides)) for s in scales
    )
    return Dots(f"{title}. {'; '.join(said)}.", columns, tuple(lines))


def ladder(rows: Sequence[Mapping[str, Any]]) -> Dots:
    """The candidate ladder: AUROC against the gold answer, and acceptance."""
    scales = (
        Scale("told apart from the gold answer (AUROC)", "eva", 0, 1, ("0", "chance", "1"), (0.5,)),
        Scale("share accepted", "dim", 0, 1, ("0", "", "1")),
    )
    lines = [(r["label"], r["note"], r["n"], (r["auroc"], r["accept"])) for r in rows]
    return dot_figure("Candidate ladder", scales, lines)


def controls(rows: Sequence[Mapping[str, Any]]) -> Dots:
    """The controls: verdicts that flip, and the shift of the log-odds on a scale that fits all."""
    ends = [abs(r["shift"][k]) for r in rows if r["shift"] for k in ("value", "low", "high")]
    most = max(1.0, math.ceil(2 * max((x for x in ends if math.isfinite(x)), default=0)) / 2)
    words = (f"−{most:g}", "0", f"+{most:g}")
    shift = "shift of the verdict’s log-odds (left: reject, right: accept)"
    scales = (
        Scale("share of verdicts that flip", "eva", 0, 1, ("0", "", "1")),
        Scale(shift, "dim", -most, most, words, (0,)),
    )
    lines = [(r["label"], r["note"], r["n"], (r["flip"], r["shift"])) for r in rows]
    return dot_figure("Controls", scales, lines)


def transfer(data: Mapping[str, Any]) -> Dots:
    """What training changes: a column for each model, all on one scale."""
    scales = [
        Scale(
            column["label"],
            column["colour"],
            column["domain"][0],
            column["domain"][1],
            tuple(column["ends"]),
            tuple(column["guides"]),
        )
        for column in data["columns"]
    ]
    lines = [(r["label"], r["note"], r["n"], r["cells"]) for r in data["rows"]]
    return dot_figure(f"Differences from {data['of']}", scales, lines)


def _dot(cell: Mapping[str, Any] | None, scale: Scale) -> Dot:
    if cell is None or not math.isfinite(cell["value"]):
        return Dot(MISSING)
    text, at = decimal(cell["value"]), _place(cell["value"], scale)
    ends = interval(Estimate(cell["value"], cell["low"], cell["high"]), decimal)
    if not ends:
        return Dot(text, at=at)
    low, high = _share(cell["low"], scale), _share(cell["high"], scale)
    return Dot(text, ends, at, f"{100 * low:.2f}", f"{100 * (high - low):.2f}")


def _place(value: float, scale: Scale) -> str:
    return f"{100 * _share(value, scale):.2f}"


def _share(value: float, scale: Scale) -> float:
    inside = min(scale.high, max(scale.low, value))
    return (inside - scale.low) / (scale.high - scale.low)
