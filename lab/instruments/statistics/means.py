"""Means, shares and paired ratios, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from lab.instruments.statistics.estimate import Estimate
from lab.instruments.statistics.resampling import (
    Floats,
    bootstrap_sums,
    columns_of,
    kept_codes,
    no_data,
    too_few,
)


def mean_estimate(values: ArrayLike, clusters: ArrayLike | None = None, seed: int = 0) -> Estimate:
    """The mean with a bootstrap interval over units, or over clusters."""
    return _bootstrap_columns(lambda s: s[..., 0] / s[..., 1], [values], clusters, seed)


def ratio_of_means(
    numerator: ArrayLike, denominator: ArrayLike, clusters: ArrayLike | None = None, seed: int = 0
) -> Estimate:
    """Mean of the numerators over mean of the denominators, paired, with a bootstrap interval.

    Unlike a mean of ratios it does not explode where single denominators are small.
    """
    return _bootstrap_columns(
        lambda s: s[..., 0] / s[..., 1], [numerator, denominator], clusters, seed
    )


def geometric_mean_ratio(
    numerator: ArrayLike, denominator: ArrayLike, clusters: ArrayLike | None = None, seed: int = 0
) -> Estimate:
    """Geometric mean of paired ratios, with a bootstrap interval of the mean log ratio.

    A pair in which either side is zero, negative or missing has no logarithm: it is left out, ``n``
    counts the rest, and ``method`` says how many were left out.
    """
    pairs = columns_of((numerator, denominator))
    with np.errstate(all="ignore"):
        logs = np.where((pairs > 0).all(axis=0), np.log(pairs[0]) - np.log(pairs[1]), np.nan)
    logs[~np.isfinite(logs)] = np.nan
    mean = mean_estimate(logs, clusters, seed)
    unusable = int(np.isnan(logs).sum() - np.isnan(pairs).any(axis=0).sum())
    method = mean.method + (f"; {unusable} pairs with a zero left out" if unusable else "")
    value, low, high = (math.exp(number) for number in (mean.value, mean.low, mean.high))
    return Estimate(value, low, high, mean.n, method)


def _bootstrap_columns(
    ratio: Callable[[Floats], Floats],
    arrays: list[ArrayLike],
    clusters: ArrayLike | None,
    seed: int,
) -> Estimate:
    columns = columns_of(tuple(arrays))
    kept = ~np.isnan(columns).any(axis=0)
    table = columns[:, kept].T
    if len(arrays) == 1:
        table = np.concatenate([table, np.ones_like(table)], axis=1)
    names = None if clusters is None else np.asarray(clusters, dtype=object).reshape(-1)
    if names is not None and names.size == kept.size:
        names = names[kept]
    return bootstrap_sums(lambda s: {"it": ratio(s)}, table, names, seed=seed)["it"]


def proportion(values: ArrayLike, clusters: ArrayLike | None = None, seed: int = 0) -> Estimate:
    """The share of ones among zeros and ones (NaN left out), with its interval.

    Wilson's interval where every unit stands alone. Where units share clusters: a bootstrap over
    clusters, except that a share of exactly 0 or 1, which no resample can change, gets Wilson's
    interval with clusters counted instead of units.
    """
    flags = np.asarray(values, dtype=float).reshape(-1)
    kept = ~np.isnan(flags)
    codes, flags = kept_codes(kept, clusters), flags[kept]
    n = flags.size
    if n == 0:
        return no_data()
    units = int(codes.max()) + 1
    share = float(flags.mean())
    if units < 2:
        return Estimate(share, n=n, method=too_few(n))
    if units == n or share in (0.0, 1.0):
        ends = stats.binomtest(round(share * units), units).proportion_ci(method="wilson")
        what = "" if units == n else f" over {units} clusters"
        return Estimate(share, float(ends.low), float(ends.high), n, f"Wilson interval{what}")
    return mean_estimate(flags, codes, seed)
