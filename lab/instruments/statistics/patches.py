"""What a patch restores, in which layers it happens, and how sets of heads overlap."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from lab.instruments.statistics.estimate import Estimate
from lab.instruments.statistics.means import ratio_of_means
from lab.instruments.statistics.resampling import Floats


@dataclass(frozen=True, slots=True)
class Restoration:
    """How far each patch moved its run towards the source: 0 not at all, 1 all the way.

    Attributes:
        value: as the patched array, NaN for units left out.
        kept: units used.
        too_close: units left out since source and target differ by less than the least gap.
        missing: units without clean runs.
    """

    value: Floats
    kept: int
    too_close: int
    missing: int


def restoration(
    patched: ArrayLike, source: ArrayLike, target: ArrayLike, min_gap: float = 0.5
) -> Restoration:
    """R = (patched - target) / (source - target) for every unit and every patch.

    ``patched`` has units on the first axis and anything (layers, heads) on the others; ``source``
    and ``target`` have one value a unit. Units whose clean runs differ by less than ``min_gap``
    logits are left out and counted, as the ratio explodes there; nothing is clipped, and R may lie
    outside 0 and 1 (normalised logit difference of Zhang and Nanda 2023).
    """
    values = np.asarray(patched, dtype=float)
    start, goal = np.asarray(target, dtype=float), np.asarray(source, dtype=float)
    gap = goal - start
    known = ~np.isnan(gap)
    close = known & (np.abs(gap) < min_gap)
    usable = np.where(known & ~close, gap, np.nan)
    trailing = (...,) + (None,) * (values.ndim - gap.ndim)
    with np.errstate(all="ignore"):
        ratio = (values - start[trailing]) / usable[trailing]
    kept = int((known & ~close).sum())
    return Restoration(ratio, kept, int(close.sum()), int((~known).sum()))


def restoration_of_means(
    patched: ArrayLike,
    source: ArrayLike,
    target: ArrayLike,
    clusters: ArrayLike | None = None,
    seed: int = 0,
) -> Estimate:
    """Restoration as a ratio of means, with a bootstrap interval; needs no least gap.

    Each unit's shift and gap are signed so that its gap is positive: units with large gaps weigh
    more, and none is left out for a small one.
    """
    start, goal = np.asarray(target, dtype=float), np.asarray(source, dtype=float)
    towards = np.sign(goal - start)
    shift = (np.asarray(patched, dtype=float) - start) * towards
    return ratio_of_means(shift, np.abs(goal - start), clusters, seed)


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive layers, both ends included, and the share of all rises that falls into them."""

    first: int
    last: int
    share: float


def critical_window(curve: ArrayLike, share: float = 0.8) -> Window | None:
    """The shortest run of layers in which a restoration curve rises by ``share`` of its last value.

    Increments are R(l) - R(l - 1), with 0 before the first layer; they add up to the last value. Of
    equally short runs the one with the greatest sum wins, then the earliest. None where the curve
    is missing or does not rise.

    The window's share is the sum of its positive increments over the sum of all positive ones. For
    a curve that never falls this is what the window holds of the last value, ``share`` or more. A
    curve that rises and falls may rise in other layers too, so that its window has less; never
    does one have more than 1, however far the curve overshoots in it.
    """
    values = np.asarray(curve, dtype=float).reshape(-1)
    if values.size == 0 or np.isnan(values).any() or values[-1] <= 0:
        return None
    padded = np.concatenate([[0.0], values])
    rises = np.diff(padded).clip(min=0)
    for length in range(1, values.size + 1):
        held = (padded[length:] - padded[:-length]) / values[-1]
        best = int(np.argmax(held))
        if held[best] >= share - 1e-9:
            inside = slice(best, best + length)
            return Window(best, inside.stop - 1, min(1.0, rises[inside].sum() / rises.sum()))
    return None


def jaccard(first: Collection[Any], second: Collection[Any]) -> float:
    """Size of the intersection over size of the union; NaN where both are empty."""
    union = set(first) | set(second)
    return len(set(first) & set(second)) / len(union) if union else math.nan


def expected_jaccard(total: int, first: int, second: int) -> float:
    """Mean Jaccard index of two random sets of the given sizes out of ``total`` things."""
    if first + second == 0 or total < max(first, second):
        return math.nan
    shared = np.arange(max(0, first + second - total), min(first, second) + 1)
    chance = stats.hypergeom(total, first, second).pmf(shared)
    return float((chance * shared / (first + second - shared)).sum())
