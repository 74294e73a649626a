"""Paired tests without assumptions on distributions, and corrections for many of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from lab.errors import LabError
from lab.instruments.statistics.resampling import (
    CHUNK,
    Floats,
    cluster_sums,
    kept_codes,
)

LEAST_DRAWS, DRAWS_A_CELL = 20_000, 40


@dataclass(frozen=True, slots=True)
class SignFlip:
    """Result of a sign-flip test: arrays of the trailing shape (0-d for a single test).

    Attributes:
        mean: mean difference over units.
        p: two-sided p-value; NaN where there is no data.
        units: clusters (or examples) whose signs were flipped.
        exact: whether all sign patterns were tried, rather than a random sample.
    """

    mean: Floats
    p: Floats
    units: int
    exact: bool


def sign_flip_test(
    differences: ArrayLike,
    clusters: ArrayLike | None = None,
    n_draws: int | None = None,
    exact_up_to: int = 15,
    max_statistic: bool = False,
    seed: int = 0,
) -> SignFlip:
    """Two-sided sign-flip permutation test of "the mean paired difference is zero".

    Args:
        differences: units on the first axis, anything (layers, heads) on the others; each cell of
            the others is a test of its own, with the same sign patterns. NaN counts for nothing.
        clusters: units of one cluster are flipped together.
        n_draws: random sign patterns, where there are more than ``exact_up_to`` units; then
            p = (b + 1) / (draws + 1), so that 1 / (draws + 1) is the smallest p there can be. By
            default 20,000, and 40 for each cell where that is more, so that one cell alone can
            survive a correction for all of them at the 5 % level.
        max_statistic: compare every cell with the largest standardised |mean| over all cells of
            each pattern, which controls the chance of any false finding (Westfall and Young).

    Sums for all cells and many patterns are one matrix product of signs and differences, in
    chunks, so that a thousand heads take seconds and bounded memory.
    """
    cells = np.asarray(differences, dtype=float)
    if cells.ndim == 0:
        raise LabError("A sign-flip test needs differences of several units, not one number.")
    shape, flat = cells.shape[1:], cells.reshape(len(cells), math.prod(cells.shape[1:]))
    there = ~np.isnan(flat)
    used = there.any(axis=1)
    codes = kept_codes(used, clusters)
    filled = np.where(there, flat, 0.0)[used]
    n = there.sum(axis=0)
    with np.errstate(all="ignore"):
        mean = filled.sum(axis=0) / n
    if not used.any():
        return SignFlip(mean.reshape(shape), np.full(shape, np.nan), 0, True)
    sums = cluster_sums(filled, codes)
    if max_statistic:  # a flip leaves the sum of squares as it is, so this standardises
        with np.errstate(all="ignore"):
            sums = np.nan_to_num(sums / np.sqrt((sums**2).sum(axis=0)))
    units = len(sums)
    exact = units <= exact_up_to
    wanted = max(LEAST_DRAWS, DRAWS_A_CELL * flat.shape[1]) if n_draws is None else n_draws
    total = 2 ** (units - 1) if exact else wanted
    observed = np.abs(sums.sum(axis=0))
    observed -= 1e-9 * np.abs(sums).sum(axis=0)  # equal sums may differ in the last bits
    extreme = np.zeros(sums.shape[1], dtype=np.int64)
    rng = np.random.default_rng(seed)
    step = max(1, CHUNK // max(sums.shape))
    for start in range(0, total, step):
        size = min(step, total - start)
        signs = _all_signs(start, size, units) if exact else _random_signs(rng, size, units)
        drawn = np.abs(signs @ sums)
        if max_statistic:
            drawn = drawn.max(axis=1, keepdims=True)
        extreme += (drawn >= observed).sum(axis=0)
    p = extreme / total if exact else (extreme + 1) / (total + 1)
    p = np.where(n > 0, p, np.nan)
    return SignFlip(mean.reshape(shape), p.reshape(shape), units, exact)


def _all_signs(start: int, size: int, units: int) -> Floats:
    """Sign patterns number start, start + 1, ...; the last sign is +1, as |sum| is symmetric."""
    numbers = np.arange(start, start + size)[:, None]
    return np.asarray(1.0 - 2.0 * ((numbers >> np.arange(units)) & 1))


def _random_signs(rng: np.random.Generator, size: int, units: int) -> Floats:
    return np.asarray(rng.integers(0, 2, (size, units), dtype=np.int8) * 2.0 - 1.0)


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Adjusted p-values (false discovery rate) of all cells together; NaN cells stay NaN."""
    values = np.asarray(p, dtype=float)
    adjusted = np.full(values.shape, np.nan)
    known = ~np.isnan(values)
    if known.any():
        adjusted[known] = stats.false_discovery_control(values[known], method="bh")
    return adjusted
