"""Resampled values that can be subtracted: several models on the same examples.

All draws below come from the same resamples of the same clusters. So the draws of two models may be
subtracted, and those of several training seeds averaged, one by one, and the percentiles of the
result are a paired interval. This works for any statistic, also those that are no mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lab.instruments.statistics.estimate import Estimate
from lab.instruments.statistics.resampling import (
    CONFIDENCE,
    RESAMPLES,
    Floats,
    cluster_codes,
    cluster_sums,
    kept_codes,
    percentile_interval,
    resampled_sums,
    too_few,
)
from lab.instruments.statistics.verdicts import _auroc_draws, calibration_bin


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """A statistic and its values in resamples of the clusters.

    Attributes:
        value: on the data itself.
        drawn: in each resample; empty where there are fewer than two clusters.
        codes: the cluster of each unit used.
    """

    value: float
    drawn: Floats
    codes: np.ndarray

    def __sub__(self, other: Draws) -> Draws:
        """The paired difference; both must rest on the same units."""
        return Draws(self.value - other.value, self.drawn - other.drawn, self.codes)

    def estimate(self) -> Estimate:
        """The value with its percentile interval."""
        n = int(self.codes.size)
        if not self.drawn.size:
            return Estimate(self.value, n=n, method=too_few(n) if n else "no data")
        return percentile_interval(self.value, self.drawn, n, self.codes, CONFIDENCE)


def average(draws: list[Draws]) -> Draws:
    """The mean of a statistic over several models, such as training seeds."""
    value = float(np.mean([d.value for d in draws]))
    return Draws(value, np.mean([d.drawn for d in draws], axis=0), draws[0].codes)


def mean_draws(values: ArrayLike, clusters: ArrayLike, seed: int = 0) -> Draws:
    """The mean of one value a unit; NaN units are left out."""
    flat = np.asarray(values, dtype=float)
    return _sum_draws(flat[:, None], clusters, lambda s, n: s[..., 0] / n, seed)


def calibration_draws(
    confidence: ArrayLike, correct: ArrayLike, clusters: ArrayLike, bins: int = 10, seed: int = 0
) -> Draws:
    """The expected calibration error over equal-width bins.

    ``confidence`` holds one row a unit with a column for each of its candidates; ``correct`` says
    (1 or 0) which are right, and may be one row for all. Units with a NaN are left out.
    """
    c, y = np.broadcast_arrays(np.asarray(confidence, dtype=float), np.asarray(correct, float))
    member = calibration_bin(c, bins)[..., None] == np.arange(bins)
    gaps = np.where(np.isnan(c - y)[..., None], np.nan, member * (c - y)[..., None])
    return _sum_draws(gaps.mean(axis=1), clusters, lambda s, n: np.abs(s).sum(axis=-1) / n, seed)


def auroc_draws(high: ArrayLike, low: ArrayLike, clusters: ArrayLike, seed: int = 0) -> Draws:
    """The area under the ROC curve of right against wrong candidates, one of each a unit."""
    pairs = np.stack([np.asarray(high, dtype=float), np.asarray(low, dtype=float)])
    kept = ~np.isnan(pairs).any(axis=0)
    codes, (right, wrong) = kept_codes(kept, clusters), pairs[:, kept]
    if not codes.size:
        return Draws(float("nan"), np.array([]), codes)
    score, label = np.concatenate([right, wrong]), np.repeat([1.0, 0.0], right.size)
    wins = (right[:, None] > wrong).mean() + 0.5 * (right[:, None] == wrong).mean()
    if codes.max() == 0:
        return Draws(float(wins), np.array([]), codes)
    drawn = _auroc_draws(score, label, np.concatenate([codes, codes]), RESAMPLES, seed)
    return Draws(float(wins), drawn, codes)


def _sum_draws(columns: Floats, clusters: ArrayLike, statistic: object, seed: int) -> Draws:
    assert callable(statistic)
    kept = np.asarray(~np.isnan(columns).any(axis=1))
    codes, table = kept_codes(kept, clusters), columns[kept]
    if not codes.size:
        return Draws(float("nan"), np.array([]), codes)
    counted = np.concatenate([table, np.ones((len(table), 1))], axis=1)
    total = counted.sum(axis=0)
    value = float(statistic(total[:-1], total[-1]))
    if codes.max() == 0:
        return Draws(value, np.array([]), codes)
    sums = resampled_sums(cluster_sums(counted, codes), RESAMPLES, seed)
    with np.errstate(all="ignore"):
        return Draws(value, np.asarray(statistic(sums[:, :-1], sums[:, -1])), codes)


__all__ = [
    "Draws",
    "auroc_draws",
    "average",
    "calibration_draws",
    "cluster_codes",
    "mean_draws",
]
