"""Two findings compared: are the heads that decide in one role those that decide in the other?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from lab.errors import LabError
from lab.instruments import statistics as S
from lab.instruments.override.pairs import Head
from lab.instruments.statistics.resampling import cluster_codes, cluster_sums, resampled_sums

RESAMPLES = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """How far two sets of heads, and two rankings of all heads, agree.

    Attributes:
        jaccard: shared heads over all heads of both sets; NaN if both are empty.
        expected: its mean for random sets of these sizes.
        p: chance that random sets of these sizes share at least as many heads (hypergeometric).
        shared: heads in both sets.
        correlation: Spearman's rank correlation of all heads' mean effects.
    """

    jaccard: float
    expected: float
    p: float
    shared: tuple[Head, ...]
    correlation: S.Estimate

    def to_dataframe(self) -> pd.DataFrame:
        """One row: jaccard, expected, p, shared, correlation, low, high, n, method."""
        c = self.correlation
        return pd.DataFrame(
            [
                {
                    "jaccard": self.jaccard, "expected": self.expected, "p": self.p,
                    "shared": len(self.shared), "correlation": c.value, "low": c.low,
                    "high": c.high, "n": c.n, "method": c.method,
                }
            ]
        )  # fmt: skip


def overlap(
    first: Sequence[Head],
    second: Sequence[Head],
    first_effects: Float[np.ndarray, "pair layer head"],
    second_effects: Float[np.ndarray, "pair layer head"],
    first_clusters: Sequence[str],
    second_clusters: Sequence[str],
    seed: int = 0,
) -> Overlap:
    """Compare two sets of heads and the effects behind them, such as the generator's and judge's.

    Effects are those of each head on each pair (a direction of `Sweep.shift`, or its mean). The
    interval of the rank correlation is a bootstrap over clusters. Where both findings are about
    the same clusters, these are resampled together. Noise in the effects pulls the correlation
    towards zero, so that its value is a lower bound on the agreement of the true effects.

    Raises:
        LabError: the effects are of models with different heads.
    """
    if first_effects.shape[1:] != second_effects.shape[1:]:
        raise LabError(
            f"Effects of {first_effects.shape[1:]} and of {second_effects.shape[1:]} heads cannot "
            "be compared head by head: use the same model in both."
        )
    total = int(np.prod(first_effects.shape[1:]))
    shared = sorted({*first} & {*second})
    sizes = len({*first}), len({*second})
    chance = float(stats.hypergeom(total, *sizes).sf(len(shared) - 1)) if all(sizes) else np.nan
    return Overlap(
        S.jaccard(first, second),
        S.expected_jaccard(total, *sizes),
        chance,
        tuple(shared),
        _correlation(
            first_effects, second_effects, list(first_clusters), list(second_clusters), seed
        ),
    )


def _correlation(
    first: np.ndarray, second: np.ndarray, names: list[str], others: list[str], seed: int
) -> S.Estimate:
    value = _spearman(first.mean(0).reshape(1, -1), second.mean(0).reshape(1, -1))[0]
    paired = names == others
    n = min(len(first), len(second))
    x = _resampled(first, names, seed)
    y = _resampled(second, others, seed if paired else seed + 1)
    if x is None or y is None:
        return S.Estimate(float(value), n=n, method="no interval: all from one cluster")
    low, high = np.nanpercentile(_spearman(x, y), [2.5, 97.5])
    how = "the same clusters drawn in both" if paired else "each finding's clusters"
    method = f"bootstrap over {how}, {RESAMPLES:,} draws"
    return S.Estimate(float(value), float(low), float(high), n, method)


def _resampled(values: np.ndarray, names: list[str], seed: int) -> np.ndarray | None:
    """Mean effects of all heads in resamples of the clusters: [draw, head]."""
    codes = cluster_codes(len(values), np.asarray(names, dtype=object))
    if codes.max() == 0:
        return None
    flat = np.concatenate([values.reshape(len(values), -1), np.ones((len(values), 1))], axis=1)
    sums = resampled_sums(cluster_sums(flat, codes), RESAMPLES, seed)
    return np.asarray(sums[:, :-1] / sums[:, -1:])


def _spearman(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spearman's correlation of each row of x with the same row of y."""
    ranks = [stats.rankdata(values, axis=1) for values in (x, y)]
    a, b = (r - r.mean(1, keepdims=True) for r in ranks)
    with np.errstate(all="ignore"):
        return np.asarray((a * b).sum(1) / np.sqrt((a**2).sum(1) * (b**2).sum(1)))
