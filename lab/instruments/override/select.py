"""From heads that have an effect to the smallest sets that have nearly all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

from lab.instruments import statistics as S
from lab.instruments.override.ablation import Ablations
from lab.instruments.override.pairs import RUNS, Head

Means = Callable[[Sequence[Sequence[Head]]], np.ndarray]
"""Mean effects of some sets."""

SHARES = (0.5, 0.9)
MOST_CANDIDATES = 50
STALLED = 0.01
"""The greedy search ends when no head adds this share of what the set already does."""


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """Sets of heads for one run, chosen on the discovery pairs.

    Attributes:
        run: which run is ablated, 0 for a.
        ranking: candidates by the effect of ablating each alone, largest first.
        curve: [k, pair], effect of ablating the first k of the ranking, k = 0, 1, ...
        greedy: heads in the order in which the greedy search added them.
        largest: the largest mean effect seen on the discovery pairs, log-odds.
        sets: for each share of it, the smallest set found that reaches it.
        discovery: mask of the pairs they were chosen on; curves hold all pairs.
    """

    run: int
    ranking: tuple[Head, ...]
    curve: Float[np.ndarray, "k pair"]
    greedy: tuple[Head, ...]
    largest: float
    sets: Mapping[float, tuple[Head, ...]]
    discovery: np.ndarray
    clusters: tuple[str, ...]

    def to_dataframe(self) -> pd.DataFrame:
        """The cumulative ablation curve on the held-out pairs, one row for each k.

        Columns: run, k, layer and head (what was added last; -1 for k = 0), value (mean effect in
        log-odds towards the competing answer) with low, high and n, discovery (the same on the
        pairs of the selection, for comparison only).
        """
        held = ~self.discovery
        means = S.bootstrap_means(
            self.curve[:, held].T, np.asarray(self.clusters, dtype=object)[held]
        )
        added = [(-1, -1), *self.ranking]
        return pd.DataFrame(
            {
                "run": RUNS[self.run],
                "k": range(len(self.curve)),
                "layer": [layer for layer, _ in added],
                "head": [head for _, head in added],
                "value": means.value,
                "low": means.low,
                "high": means.high,
                "n": means.n,
                "discovery": self.curve[:, self.discovery].mean(1),
            }
        )


def smallest_sets(
    ablations: Ablations,
    candidates: Sequence[Head],
    discovery: np.ndarray,
    clusters: Sequence[str],
    shares: Sequence[float] = SHARES,
) -> Chosen:
    """The smallest sets of candidates that reach each share of the largest effect.

    Candidates are ranked by their own effect (at most MOST_CANDIDATES are kept) and ablated
    cumulatively; then heads are added greedily, each time the one that makes the largest joint
    effect, and dropped again, the most useless first, as long as the share is kept. A set is
    minimal in that no head can be dropped; a smaller one of other heads may exist.
    """

    def means(sets: Sequence[Sequence[Head]]) -> np.ndarray:
        return np.asarray(ablations.effect(sets, discovery).mean(1))

    alone = means([[head] for head in candidates]) if candidates else np.zeros(0)
    order = np.argsort(-alone, kind="stable")[:MOST_CANDIDATES]
    ranking = tuple(candidates[i] for i in order)
    curve = ablations.effect([ranking[:k] for k in range(len(ranking) + 1)])
    path, gains = _greedy(means, ranking)
    largest = max(float(curve[:, discovery].mean(1).max()), *gains, 0.0)
    sets = {share: _shortest(means, path, gains, share * largest) for share in shares}
    if len(path) and max(gains) < max(shares) * largest:  # the ranking did better than the search
        best = ranking[: int(curve[:, discovery].mean(1).argmax())]
        sets = {
            share: chosen if chosen else _pruned(means, best, share * largest)
            for share, chosen in sets.items()
        }
    return Chosen(
        ablations.run, ranking, curve, tuple(path), largest, sets, discovery, tuple(clusters)
    )


def _greedy(means: Means, ranking: Sequence[Head]) -> tuple[list[Head], list[float]]:
    """Heads in the order of the largest joint effect, and the effect after each."""
    path: list[Head] = []
    gains: list[float] = [0.0]
    rest = list(ranking)
    while rest:
        effects = means([[*path, head] for head in rest])
        best = int(effects.argmax())
        if effects[best] <= gains[-1] + STALLED * abs(gains[-1]):
            break
        path.append(rest.pop(best))
        gains.append(float(effects[best]))
    return path, gains


def _shortest(
    means: Means, path: Sequence[Head], gains: Sequence[float], wanted: float
) -> tuple[Head, ...]:
    """The shortest start of the path that reaches ``wanted``, pruned; empty if none does."""
    reached = [k for k, gain in enumerate(gains) if k and gain >= wanted > 0]
    return _pruned(means, path[: reached[0]], wanted) if reached else ()


def _pruned(means: Means, heads: Sequence[Head], wanted: float) -> tuple[Head, ...]:
    """Drop heads one by one, the most useless first, while the effect stays at ``wanted``."""
    kept = list(heads)
    while len(kept) > 1:
        effects = means([[h for h in kept if h != dropped] for dropped in kept])
        best = int(effects.argmax())
        if effects[best] < wanted:
            break
        del kept[best]
    return tuple(sorted(kept))
