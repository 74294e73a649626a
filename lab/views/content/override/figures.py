"""Figures of override heads, placed here so that the page draws them without any script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lab.views.content.override.rows import head, marked, records
from lab.views.format import count, decimal, signed

CELL = 10
"""Side of a cell of a head map, in its own units."""


@dataclass(frozen=True, slots=True)
class Square:
    """One head: its place, colour and strength, and what it says when pointed at."""

    x: int
    y: int
    colour: str
    opacity: str
    title: str


@dataclass(frozen=True, slots=True)
class HeadMap:
    """Layers by heads, layers upwards.

    Attributes:
        label: what is carried from where to where.
        summary: the same for screen readers, with the strongest heads.
        width, height: of the drawing.
        squares: the heads with an effect.
        framed, dotted: places of the chosen heads, and of those with a published label.
        scale: both ends of the colour scale.
        rows: (y, layer) of some layers; ``columns`` (x, head) of some heads.
    """

    label: str
    summary: str
    width: int
    height: int
    squares: tuple[Square, ...]
    framed: tuple[tuple[int, int], ...]
    dotted: tuple[tuple[int, int], ...]
    scale: tuple[str, str]
    rows: tuple[tuple[float, str], ...]
    columns: tuple[tuple[float, str], ...]


def head_maps(frame: pd.DataFrame, labels: Sequence[str]) -> list[HeadMap]:
    """One map for each direction, on held-out pairs and one scale; ``frame`` is heads.csv."""
    ways = ("held_a_into_b", "held_b_into_a")
    values = frame[list(ways)].to_numpy(float)
    most = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 0.0
    return [_map(frame, way, label, most) for way, label in zip(ways, labels, strict=True)]


def _map(frame: pd.DataFrame, way: str, label: str, most: float) -> HeadMap:
    layers, heads = int(frame["layer"].max()) + 1, int(frame["head"].max()) + 1

    def place(layer: float, column: float) -> tuple[int, int]:
        return CELL * int(column), CELL * (layers - 1 - int(layer))

    squares = []
    for record in records(frame):
        value = float(record[way])
        share = abs(value) / most if most and math.isfinite(value) else 0.0
        x, y = place(record["layer"], record["head"])
        title = f"head {head(record)}: {signed(value)} logits"
        squares.append(Square(x, y, "more" if value > 0 else "less", f"{share:.2f}", title))
    marks = (marked(frame["chosen"]), (frame["published"].fillna("") != "").to_numpy(bool))
    framed, dotted = (
        tuple(place(la, h) for la, h in frame[["layer", "head"]].to_numpy(int)[mask])
        for mask in marks
    )
    top = records(frame.loc[frame[way].abs().sort_values(ascending=False).index[:3]])
    told = ", ".join(f"{head(record)} {signed(record[way])}" for record in top)
    step = max(1, round(layers / 8))
    return HeadMap(
        label,
        f"{label}: {layers} layers of {heads} heads. Largest shifts in logits: {told}.",
        CELL * heads, CELL * layers, tuple(squares), framed, dotted,
        (decimal(-most), signed(most)),
        tuple((100 * (layers - 0.5 - i) / layers, str(i)) for i in range(0, layers, step)),
        tuple((100 * (i + 0.5) / heads, str(i)) for i in range(0, heads, max(1, heads // 8))),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RandomSets:
    """Random sets of one size: their place, their mean, and the middle 95 % of them."""

    x: str
    mean: str
    low: str
    high: str


@dataclass(frozen=True, slots=True)
class AblationCurve:
    """The cumulative ablation of one run, in a space of 100 by 100.

    Attributes:
        label: which run.
        zero: where zero lies.
        line, band: SVG paths of the effect and its interval.
        random: random sets, where they were measured.
        note: its last point in words.
        end: the largest k.
        rows: (y, value) of the labels on the left; ``columns`` (x, k) of those below.
    """

    label: str
    zero: str
    line: str
    band: str
    random: tuple[RandomSets, ...]
    note: str
    end: str
    rows: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...]


NEAR = 12
"""Two labels of an axis that lie closer, in per cent of its length, would touch."""


def ablation_curve(frame: pd.DataFrame, label: str) -> AblationCurve | None:
    """The curve of one run, from its rows of curve.csv; None where no head was ranked."""
    part = frame.sort_values("k")
    if len(part) < 2:
        return None
    columns = ["value", "low", "high", "random_low", "random_high"]
    known = part[columns].to_numpy(float)
    high, low = max(0.0, float(np.nanmax(known))), min(0.0, float(np.nanmin(known)))
    room = (high - low) or 1.0
    end = int(part["k"].max())

    def across(k: float) -> str:
        return f"{100 * k / end:.1f}"

    def up(value: float) -> str:
        return f"{100 * (high - value) / room:.1f}"

    def points(column: str, rows: pd.DataFrame) -> list[str]:
        pairs = zip(rows["k"], rows[column], strict=True)
        return [f"{across(k)} {up(value)}" for k, value in pairs if math.isfinite(value)]

    whole = part[np.isfinite(part[["low", "high"]].to_numpy(float)).all(1)]
    edge = points("low", whole) + points("high", whole)[::-1]
    zero = 100 * high / room
    ends = [(y, decimal(v)) for y, v in ((0, high), (100, low)) if abs(y - zero) >= NEAR]
    return AblationCurve(
        label,
        up(0),
        f"M{'L'.join(points('value', part))}",
        f"M{'L'.join(edge)}Z" if edge else "",
        tuple(
            RandomSets(across(r["k"]), up(r["random_mean"]), up(r["random_low"]),
                       up(r["random_high"]))
            for r in records(part[np.isfinite(part["random_mean"].to_numpy(float))])
        ),
        _best(part),
        count(end, "head"),
        tuple((f"{y:.1f}", text) for y, text in sorted([*ends, (zero, "0")])),
        tuple((across(k), str(k)) for k in range(0, end + 1, _step(end))),
    )  # fmt: skip


def _step(end: int) -> int:
    """A round step that gives an axis from 0 to ``end`` at most eight intervals."""
    return next(step for step in (1, 2, 5, 10, 20, 50, max(end, 1)) if end <= 8 * step)


def _best(part: pd.DataFrame) -> str:
    """The effect where it is largest, beside random sets if there are any."""
    row = records(part.loc[[part["value"].idxmax()]])[0]
    said = (
        f"Largest with the first {int(row['k'])}: {decimal(row['value'])} "
        f"[{decimal(row['low'])}, {decimal(row['high'])}] logits"
    )
    if math.isfinite(row["random_low"]):
        ends = f"{decimal(row['random_low'])} and {decimal(row['random_high'])}"
        said += f"; random sets between {ends}"
    return f"{said}. n\u00a0=\u00a0{int(row['n'])}." if "n" in part else f"{said}."
