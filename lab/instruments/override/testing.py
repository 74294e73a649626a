"""Which heads are told apart from nothing: a published rule, and a test for each head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy import stats

from lab.instruments import statistics as S
from lab.instruments.names import DIRECTIONS
from lab.instruments.override.pairs import Head

LABELLED_BY_CHANCE = float(2 * stats.norm.sf(2))
"""Share of any Gaussian cloud that lies two standard deviations out: 4.6 %."""


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """Heads by the published rule.

    Attributes:
        score: [layer, head], projection on the first principal component.
        promoting, suppressing: heads above and below the mean by more than two deviations.
    """

    score: Float[np.ndarray, "layer head"]
    promoting: tuple[Head, ...]
    suppressing: tuple[Head, ...]

    @property
    def share(self) -> float:
        """Share of all heads that got a label; LABELLED_BY_CHANCE of a Gaussian cloud."""
        return float((len(self.promoting) + len(self.suppressing)) / self.score.size)

    def to_dataframe(self) -> pd.DataFrame:
        """One row a head: layer, head, score, label ("promoting", "suppressing" or "")."""
        frame = _cells(self.score.shape).assign(score=self.score.reshape(-1))
        places = list(zip(frame["layer"], frame["head"], strict=True))
        label = {**dict.fromkeys(self.promoting, "promoting")}
        label |= dict.fromkeys(self.suppressing, "suppressing")
        return frame.assign(label=[label.get(place, "") for place in places])


def published_rule(restoration: Float[np.ndarray, "direction layer head"]) -> Published:
    """The rule of "Vision-Default, Prior-Override" (arXiv 2606.28273): PC1, two deviations.

    Each head's mean R in both directions is a point; points are centred and projected on the first
    principal component, signed so that its parts sum to more than zero. Heads more than two
    (population) standard deviations above the mean are promoting, below it suppressing. It tests
    nothing: about 4.6 % of any cloud lie that far out, also where no head does anything. Missing
    R (every pair too close) counts as none.
    """
    points = np.nan_to_num(np.asarray(restoration, dtype=float)).reshape(2, -1)
    centred = points - points.mean(1, keepdims=True)
    axis = np.linalg.eigh(centred @ centred.T)[1][:, -1]
    score = (axis if axis.sum() > 0 else -axis) @ centred
    limit = 2 * score.std()
    shape = restoration.shape[1:]
    return Published(
        score.reshape(shape),
        _heads((score > limit).reshape(shape)),
        _heads((score < -limit).reshape(shape)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Tested:
    """A sign-flip test of every head in every direction, corrected over all of them.

    Attributes:
        mean: [direction, layer, head], mean shift towards the giving prompt's answer, log-odds.
        p, adjusted: two-sided p and its Benjamini-Hochberg adjustment over all cells.
        significant: adjusted p at most the level.
        units: clusters tested.
        least_p: the smallest p that so few clusters (or so many draws) can give.
        level: what adjusted p is compared with.
    """

    mean: Float[np.ndarray, "direction layer head"]
    p: Float[np.ndarray, "direction layer head"]
    adjusted: Float[np.ndarray, "direction layer head"]
    significant: Bool[np.ndarray, "direction layer head"]
    units: int
    least_p: float
    level: float

    @property
    def heads(self) -> tuple[Head, ...]:
        """Heads that are significant in either direction."""
        return _heads(self.significant.any(0))

    @property
    def enough(self) -> bool:
        """Whether a lone head could reach the level at all, given the number of clusters."""
        return bool(self.least_p * self.p.size <= self.level)

    def to_dataframe(self) -> pd.DataFrame:
        """One row a head and direction.

        Columns: direction, layer, head, mean, p, p_adjusted, significant.
        """
        frame = _cells(self.p.shape, ("direction", "layer", "head"))
        return frame.assign(
            direction=[DIRECTIONS[way] for way in frame["direction"]],
            mean=self.mean.reshape(-1),
            p=self.p.reshape(-1),
            p_adjusted=self.adjusted.reshape(-1),
            significant=self.significant.reshape(-1),
        )


def significant_heads(
    shift: Float[np.ndarray, "pair direction layer head"],
    clusters: Sequence[str],
    level: float = 0.05,
    seed: int = 0,
) -> Tested:
    """Test every head's shift over examples, and correct for the number of heads and directions.

    The null is that a pair's shift is as likely to have either sign: a patch does not know which
    answer the giving prompt calls for. Signs of whole clusters are flipped (`sign_flip_test`:
    exact up to 15 clusters), then Benjamini and Hochberg 1995. Unlike a t-test, it needs no shape
    of the distribution, and its level holds for small n and discrete shifts. More draws are
    taken for more heads, so that a lone head can reach the level.
    """
    cells = shift[0].size
    draws = max(20_000, math.ceil(2 * cells / level))
    codes = np.asarray(clusters, dtype=object)
    test = S.sign_flip_test(shift, codes, n_draws=draws, seed=seed)
    adjusted = S.benjamini_hochberg(test.p)
    least = least_p(test, draws)
    return Tested(test.mean, test.p, adjusted, adjusted <= level, test.units, least, level)


def least_p(test: S.SignFlip, draws: int) -> float:
    """The smallest p that a sign-flip test of so many units, or with so many draws, can give."""
    return 2.0 ** (1 - test.units) if test.exact else 1 / (draws + 1)


def _heads(chosen: np.ndarray) -> tuple[Head, ...]:
    return tuple((int(layer), int(head)) for layer, head in np.argwhere(chosen))


def _cells(shape: Sequence[int], names: Sequence[str] = ("layer", "head")) -> pd.DataFrame:
    return pd.DataFrame(list(np.ndindex(*shape)), columns=list(names))
