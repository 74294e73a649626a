"""The bootstrap, over examples or over clusters of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lab.errors import LabError
from lab.instruments.statistics.estimate import Estimate

Floats = NDArray[np.float64]

RESAMPLES = 10_000
CONFIDENCE = 0.95
RARE = 0.01
"""A number that is undefined in a larger share of the resamples gets no interval.

A rate among the right answers is undefined where a resample holds none. With k of them in as many
clusters that happens in a share of about exp(-k), so fewer than five are too few: their own luck is
not in the resamples that are left.
"""
CHUNK = 2_000_000
"""Most numbers that a resampling step holds at once (16 MB)."""


def cluster_codes(n: int, clusters: ArrayLike | None) -> NDArray[np.intp]:
    """For each of ``n`` units the number of its cluster; units without a name stand alone."""
    if clusters is None:
        return np.arange(n)
    names = np.asarray(clusters, dtype=object).reshape(-1)
    if names.size != n:
        raise LabError(f"There are {n} units but {names.size} cluster names: give one for each.")
    keys: dict[Hashable, int] = {}
    codes = [
        keys.setdefault(str(name) if name not in ("", None) else ("alone", i), len(keys))
        for i, name in enumerate(names.tolist())
    ]
    return np.array(codes, dtype=np.intp)


def bootstrap(
    statistic: Callable[..., Any],
    *arrays: ArrayLike,
    clusters: ArrayLike | None = None,
    n_resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Estimate:
    """The statistic with a percentile bootstrap interval over units, or over clusters of them.

    Args:
        statistic: called with the arrays, whose last axis runs over units and whose first axis runs
            over resamples; it reduces the last axis. Where clusters differ in size, short
            resamples are filled up with NaN, so use ``np.nanmean`` and the like.
        arrays: one or more 1-D arrays of equal length; units are drawn for all of them together.
            Units with a NaN in any of them are left out.

    Resamples in which the statistic is not defined (NaN) are left out of the interval.
    For statistics that are functions of sums, :func:`bootstrap_sums` is much faster.
    """
    columns = columns_of(arrays)
    kept = np.asarray(~np.isnan(columns).any(axis=0))
    columns, codes = columns[:, kept], kept_codes(kept, clusters)
    n = columns.shape[1]
    if n == 0:
        return no_data()
    with np.errstate(all="ignore"):
        value = float(np.asarray(statistic(*columns[:, None, :])).reshape(-1)[0])
    if codes.max() == 0:
        return Estimate(value, n=n, method=too_few(n))
    clusters_there, members = int(codes.max()) + 1, _members(codes)
    padded = np.concatenate([columns, np.full((len(columns), 1), np.nan)], axis=1)
    width = clusters_there * members.shape[1]
    step = max(1, CHUNK // width)
    results = []
    for block, size in _blocks(clusters_there, n_resamples):
        draws = _draws(clusters_there, size, block, seed)
        for start in range(0, size, step):
            index = members[draws[start : start + step]].reshape(-1, width)
            with np.errstate(all="ignore"):
                results.append(np.asarray(statistic(*padded[:, index]), dtype=float))
    return percentile_interval(value, np.concatenate(results), n, codes, confidence)


def bootstrap_sums(
    statistics: Callable[[Floats], dict[str, Floats]],
    columns: ArrayLike,
    clusters: ArrayLike | None = None,
    n_resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> dict[str, Estimate]:
    """Named statistics that are functions of column sums, each with a bootstrap interval.

    ``columns`` is units x columns, without NaN. ``statistics`` maps sums (... x columns) to named
    arrays (...). Rates, ratios, kappa and calibration errors are all of this kind, and one matrix
    product then does every resample. Same draws, and so same numbers, as :func:`bootstrap`.
    """
    table = np.asarray(columns, dtype=float)
    codes = cluster_codes(len(table), clusters)
    with np.errstate(all="ignore"):
        values = {name: float(v) for name, v in statistics(table.sum(axis=0)).items()}
        if len(table) == 0 or codes.max() == 0:
            method = too_few(len(table)) if len(table) else "no data"
            return {
                name: Estimate(value if len(table) else math.nan, n=len(table), method=method)
                for name, value in values.items()
            }
        resampled = statistics(resampled_sums(cluster_sums(table, codes), n_resamples, seed))
    return {
        name: percentile_interval(value, resampled[name], len(table), codes, confidence)
        for name, value in values.items()
    }


@dataclass(frozen=True, slots=True)
class Means:
    """Means over units of many things at once, with intervals; arrays of the trailing shape."""

    value: Floats
    low: Floats
    high: Floats
    n: NDArray[np.int64]


def bootstrap_means(
    values: ArrayLike,
    clusters: ArrayLike | None = None,
    n_resamples: int = 2_000,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Means:
    """Mean over the first axis for every cell of the other axes, with percentile intervals.

    Meant for tables over heads or spans: 2,000 resamples settle the ends of an interval to about
    a twentieth of its width. NaN entries are left out cell by cell.
    """
    cells = np.asarray(values, dtype=float)
    shape, flat = cells.shape[1:], cells.reshape(len(cells), math.prod(cells.shape[1:]))
    there = ~np.isnan(flat)
    filled = np.where(there, flat, 0.0)
    n = there.sum(axis=0)
    codes = cluster_codes(len(flat), clusters)
    with np.errstate(all="ignore"):
        mean = filled.sum(axis=0) / n
    low, high = np.full(flat.shape[1], np.nan), np.full(flat.shape[1], np.nan)
    if len(flat) and codes.max() > 0:
        sums, weights = cluster_sums(filled, codes), cluster_sums(there.astype(float), codes)
        ends = [50 * (1 - confidence), 50 * (1 + confidence)]
        step = max(1, CHUNK // n_resamples)
        for start in range(0, flat.shape[1], step):
            part = slice(start, start + step)
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # a cell without data
                drawn = resampled_sums(sums[:, part], n_resamples, seed)
                drawn /= resampled_sums(weights[:, part], n_resamples, seed)
                percentile = np.nanpercentile if np.isnan(drawn).any() else np.percentile
                low[part], high[part] = percentile(drawn, ends, axis=0)
        alone = (weights > 0).sum(axis=0) < 2
        low[alone] = high[alone] = np.nan
    return Means(mean.reshape(shape), low.reshape(shape), high.reshape(shape), n.reshape(shape))


def columns_of(arrays: tuple[ArrayLike, ...]) -> Floats:
    columns = [np.asarray(array, dtype=float).reshape(-1) for array in arrays]
    if len({column.size for column in columns}) != 1:
        sizes = ", ".join(str(column.size) for column in columns)
        raise LabError(f"Paired arrays must have one value per unit each; their lengths: {sizes}.")
    return np.stack(columns)


def kept_codes(kept: NDArray[np.bool_], clusters: ArrayLike | None) -> NDArray[np.intp]:
    """Cluster numbers of the kept units, renumbered without holes."""
    codes = cluster_codes(kept.size, clusters)[kept]
    return np.asarray(np.unique(codes, return_inverse=True)[1], dtype=np.intp).reshape(-1)


def _blocks(n_clusters: int, n_resamples: int) -> list[tuple[int, int]]:
    """Number and size of blocks of resamples that each hold at most CHUNK draws."""
    size = max(1, CHUNK // n_clusters)
    return [(i, min(size, n_resamples - at)) for i, at in enumerate(range(0, n_resamples, size))]


def _draws(n_clusters: int, size: int, block: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, block]).integers(0, n_clusters, (size, n_clusters))


@lru_cache(maxsize=8)
def _counts(n_clusters: int, size: int, block: int, seed: int) -> Floats:
    """How often each resample holds each cluster: resamples x clusters; read only.

    Kept, since a summary asks for the same ones for each of its many numbers.
    """
    draws = _draws(n_clusters, size, block, seed)
    draws += np.arange(size)[:, None] * n_clusters
    flat = np.bincount(draws.reshape(-1), minlength=size * n_clusters)
    counts = flat.reshape(size, n_clusters).astype(np.float64)
    counts.flags.writeable = False
    return counts


def count_blocks(n_clusters: int, n_resamples: int, seed: int) -> Iterator[Floats]:
    """How often each resample holds each cluster, in blocks of resamples that fit into memory."""
    for block, size in _blocks(n_clusters, n_resamples):
        yield _counts(n_clusters, size, block, seed)


def resampled_sums(cluster_table: Floats, n_resamples: int, seed: int) -> Floats:
    """Column sums of every resample of the rows (one a cluster): resamples x columns."""
    blocks = count_blocks(len(cluster_table), n_resamples, seed)
    return np.concatenate([counts @ cluster_table for counts in blocks])


def _members(codes: NDArray[np.intp]) -> NDArray[np.int64]:
    """Unit indices of each cluster, one row a cluster, filled up with -1."""
    sizes = np.bincount(codes)
    members = np.full((sizes.size, sizes.max()), -1)
    order = np.argsort(codes, kind="stable")
    place = np.arange(codes.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    members[codes[order], place] = order
    return members


def cluster_sums(table: Floats, codes: NDArray[np.intp]) -> Floats:
    sums = np.zeros((int(codes.max()) + 1, *table.shape[1:]))
    np.add.at(sums, codes, table)
    return sums


def percentile_interval(
    value: float, resampled: Floats, n: int, codes: NDArray[np.intp], confidence: float
) -> Estimate:
    known = resampled[~np.isnan(resampled)]
    units = int(codes.max()) + 1
    what = f"{n} examples" if units == codes.size else f"{units} clusters of examples"
    method = f"percentile bootstrap over {what}, {resampled.size:,} resamples"
    if known.size < resampled.size:
        method += f" ({resampled.size - known.size:,} undefined ones left out)"
    if units < 10:
        method += "; with so few the interval is too narrow"
    lost = resampled.size - known.size
    if math.isnan(value) or lost > RARE * resampled.size:
        why = f"not defined in {lost:,} of {resampled.size:,} resamples: no interval"
        return Estimate(value, n=n, method=why)
    low, high = np.percentile(known, [50 * (1 - confidence), 50 * (1 + confidence)])
    return Estimate(value, float(low), float(high), n, method)


def no_data() -> Estimate:
    return Estimate(math.nan, n=0, method="no data")


def too_few(n: int) -> str:
    return f"no interval: n = {n}" + (", all from one cluster" if n > 1 else "")
