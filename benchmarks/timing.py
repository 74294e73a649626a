"""Timing several actions in turn, and what a row of the benchmark reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tqdm import tqdm


@dataclass(frozen=True, slots=True)
class Times:
    """Wall-clock times of one action.

    Attributes:
        name: what was timed.
        seconds: every time taken, in order. Where ``scaled`` says so, after scaling.
        scaled: how the times were scaled from what really ran; empty if they were not.
    """

    name: str
    seconds: tuple[float, ...]
    scaled: str = ""

    @property
    def median(self) -> float:
        return median(self.seconds)

    def record(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "median_s": self.median,
            "repeats": len(self.seconds),
            "seconds": list(self.seconds),
            "scaled": self.scaled,
        }


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of the table.

    Attributes:
        name: what it says.
        value: the number; ``low`` and ``high`` its range over repeats or pairs, if it has one.
        unit: printed behind it.
        target: what the project asks of it, as ``(">=" or "<=", limit)``; None for nothing.
        note: anything a reader must know to read it rightly.
    """

    name: str
    value: float | None
    unit: str = ""
    target: tuple[str, float] | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without a target or a value."""
        if self.target is None or self.value is None:
            return None
        sign, limit = self.target
        return self.value >= limit if sign == ">=" else self.value <= limit

    def record(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "target": None if self.target is None else "{} {:g}".format(*self.target),
            "met": self.met,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """The outcome of one row: figures for the table, all times behind them, and the set-up."""

    title: str
    figures: tuple[Figure, ...]
    times: tuple[Times, ...]
    setup: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "figures": [f.record() for f in self.figures],
            "times": [t.record() for t in self.times],
            "setup": dict(self.setup),
        }


def timed(action: Callable[[], Any]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def alternate(
    actions: Mapping[str, Callable[[], Any]],
    repeats: int,
    *,
    label: str,
    warm_up: Iterable[str] | None = None,
) -> dict[str, tuple[float, ...]]:
    """Seconds of each action, called in turn (A B A B ...) so that drifts of the machine hit all.

    Args:
        actions: what to call, by name.
        repeats: calls of each that count.
        label: what the progress bar says.
        warm_up: names called once before, uncounted; by default all.
    """
    for name in actions if warm_up is None else warm_up:
        actions[name]()
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for _ in tqdm(range(repeats), desc=label, leave=False):
        for name, action in actions.items():
            taken[name].append(timed(action))
    return {name: tuple(seconds) for name, seconds in taken.items()}


def ratio(
    name: str,
    over: Times,
    under: Times,
    unit: str,
    target: tuple[str, float] | None = None,
    **more: Any,
) -> Figure:
    """The ratio of two medians, with the range of the ratios of neighbouring repeats."""
    pairs = [a / b for a, b in zip(over.seconds, under.seconds, strict=True)]
    return Figure(name, over.median / under.median, unit, target, min(pairs), max(pairs), **more)
