"""Differences from a reference model, and when one of them is called a change."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.instruments.statistics.paired import Draws

FEWEST = 10
"""With fewer questions, or fewer passages that they are about, nothing is called a change: a
bootstrap interval of so few is too narrow."""

COLUMNS = (
    "difference", "difference_low", "difference_high", "clusters", "seeds_agree", "clear",
)  # fmt: skip
"""The paired difference with its interval; over how many independent clusters; whether all single
trainings differ from the reference in the same direction; whether it is called a change."""


def difference(
    gap: Draws,
    singles: Sequence[float],
    form: Callable[[float], float] = float,
    least: int = FEWEST,
) -> dict[str, Any]:
    """COLUMNS of a paired difference.

    It is ``clear``, and may be called a change, if its interval excludes none, it rests on at least
    ``least`` questions in as many clusters, and no single training contradicts it.

    Args:
        gap: the difference, averaged over training seeds.
        singles: the difference of each training.
        form: applied to the numbers that are stored, such as ``exp`` for differences of logarithms.
        least: fewest questions and clusters.
    """
    found = gap.estimate()
    clusters = int(gap.codes.max()) + 1 if gap.codes.size else 0
    sides = np.sign(np.asarray(singles, dtype=float))
    agree = len(singles) == 1 or bool(abs(sides.sum()) == len(singles))
    return {
        "difference": form(found.value),
        "difference_low": form(found.low),
        "difference_high": form(found.high),
        "clusters": clusters,
        "seeds_agree": agree,
        "clear": found.excludes(0) and min(found.n, clusters) >= least and agree,
    }


def reference(draws: Draws) -> dict[str, Any]:
    """COLUMNS of the reference itself, which differs from nothing."""
    clusters = int(draws.codes.max()) + 1 if draws.codes.size else 0
    numbers = dict.fromkeys(COLUMNS[:3], math.nan)
    return {**numbers, "clusters": clusters, "seeds_agree": True, "clear": False}
