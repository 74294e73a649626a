"""The whole search: sweep, test, smallest sets. Chosen on some pairs, to be scored on others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Float

from lab.engine.lens import Lens
from lab.instruments import statistics as S
from lab.instruments.override.ablation import Ablations, How, Values
from lab.instruments.override.decisions import Captured, capture
from lab.instruments.override.pairs import Head, Pair, clusters_of, split_by_cluster
from lab.instruments.override.select import SHARES, Chosen, smallest_sets
from lab.instruments.override.sweep import Sweep, patch_sweep
from lab.instruments.override.testing import Published, Tested, published_rule, significant_heads

LEAST = 0.02
"""Heads whose patch moves the answer by less than this share of the whole way are let go."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a search found.

    Attributes:
        heads: heads in the 90 % set of either run: those that decide.
        sweep: every patch, over all pairs.
        discovery: mask of the pairs that heads were chosen on; the others are held out.
        tested: the test of every head, on the discovery pairs.
        published: the published rule on the same pairs, for comparison.
        chosen: the smallest sets for run a and for run b.
    """

    heads: tuple[Head, ...]
    sweep: Sweep
    discovery: np.ndarray
    tested: Tested
    published: Published
    chosen: tuple[Chosen, Chosen]

    @property
    def chosen_on(self) -> list[int]:
        """Indices of the discovery pairs."""
        return np.flatnonzero(self.discovery).tolist()

    @property
    def held_out(self) -> list[int]:
        """Indices of the pairs that nothing was chosen on: score heads on these."""
        return np.flatnonzero(~self.discovery).tolist()

    def set_of(self, run: int, share: float = 0.9) -> tuple[Head, ...]:
        """The smallest set that has ``share`` of the largest effect in run a (0) or b (1)."""
        return self.chosen[run].sets[share]

    def to_dataframe(self) -> pd.DataFrame:
        """One row a head that either rule or the test labels.

        Columns: layer, head, tested (significant on discovery), published ("promoting",
        "suppressing" or ""), in_a, in_b (whether in that run's 90 % set), and on the held-out
        pairs the mean shift of its patch in each direction with p (a_into_b, p_a_into_b, ...),
        uncorrected, since the head was chosen on other pairs.
        """
        held = self.sweep.of(self.held_out)
        again = significant_heads(held.shift, held.clusters)
        label = self.published.to_dataframe().set_index(["layer", "head"])["label"]
        named = {*self.published.promoting, *self.published.suppressing}
        rows = [
            {
                "layer": layer,
                "head": head,
                "tested": (layer, head) in self.tested.heads,
                "published": label[layer, head],
                "in_a": (layer, head) in self.set_of(0),
                "in_b": (layer, head) in self.set_of(1),
                "a_into_b": again.mean[0, layer, head],
                "p_a_into_b": again.p[0, layer, head],
                "b_into_a": again.mean[1, layer, head],
                "p_b_into_a": again.p[1, layer, head],
            }
            for layer, head in sorted({*self.tested.heads, *named, *self.heads})
        ]
        columns = ["layer", "head", "tested", "published", "in_a", "in_b"]
        columns += ["a_into_b", "p_a_into_b", "b_into_a", "p_b_into_a"]
        return pd.DataFrame(rows, columns=columns)


@dataclass(eq=False)
class Search:
    """A model's runs on some pairs, from which heads are chosen on as many splits as wanted.

    Patches are run for all pairs once, and so are ablations with zeros; a split only says which of
    them count. Mean and resampled values come from the discovery pairs, anew for each split.

    Attributes:
        lens: the model.
        pairs: conflicts.
        sweep: every patch of them.
        how: what ablated heads put out while sets are chosen.
        captured: the pairs' runs, from which values are taken; None for zeros.
        seed: of resampled values.
    """

    lens: Lens
    pairs: Sequence[Pair]
    sweep: Sweep
    how: How = "zero"
    captured: Captured | None = None
    seed: int = 0
    _known: tuple[Ablations, Ablations] | None = field(default=None, repr=False)

    def choose(
        self,
        seed: int = 0,
        *,
        level: float = 0.05,
        least: float = LEAST,
        shares: Sequence[float] = SHARES,
        discovery: np.ndarray | None = None,
        most: int | None = None,
    ) -> Found:
        """Choose heads on one half of the clusters, drawn with ``seed``, or on given pairs.

        Args:
            seed: of the split.
            level: of the tests, after correction.
            least: the smallest mean shift, as a share of the mean gap between both runs, for which
                a head is looked at further. With exact runs any trace of an effect is significant.
            shares: of the largest effect, for which smallest sets are sought.
            discovery: mask of the pairs to choose on, instead of a random half.
            most: of the heads that pass the test, ablate only so many, those whose patches move
                the answer most; all if None. What is ablated grows with its square.
        """
        clusters = clusters_of(self.pairs)
        if discovery is None:
            discovery = split_by_cluster(clusters, seed)
        part = self.sweep.of(discovery)
        tested, candidates = candidate_heads(part, level, least)
        published = published_rule(mean_restoration(part))
        chosen = [
            smallest_sets(ablations, candidates[:most], discovery, clusters, shares)
            for ablations in self._ablations(discovery)
        ]
        heads = sorted({head for c in chosen for head in c.sets[max(shares)]})
        return Found(tuple(heads), self.sweep, discovery, tested, published, (chosen[0], chosen[1]))

    def _ablations(self, discovery: np.ndarray) -> tuple[Ablations, Ablations]:
        """Ablations in run a and in run b, with values of the discovery pairs."""
        if self.captured is None or self.how == "other":
            self._known = self._known or self._both(Values(self.how, self.captured))
            return self._known
        donors = np.flatnonzero(discovery).tolist()
        clusters = tuple(self.pairs[i].cluster for i in donors)
        captured = self.captured.of(donors)
        return self._both(Values(self.how, captured, clusters, self.seed, tuple(donors)))

    def _both(self, values: Values) -> tuple[Ablations, Ablations]:
        lens, pairs = self.lens, self.pairs
        return Ablations(lens, pairs, 0, values), Ablations(lens, pairs, 1, values)


def candidate_heads(
    sweep: Sweep, level: float = 0.05, least: float = LEAST
) -> tuple[Tested, tuple[Head, ...]]:
    """The test of every head on a sweep's pairs, and the heads to look at further.

    The latter are significant and move the answer by at least ``least`` of the mean gap between
    both runs, those that move it most first.
    """
    tested = significant_heads(sweep.shift, sweep.clusters, level)
    gap = np.abs(sweep.clean[:, 0] - sweep.clean[:, 1]).mean()
    size = np.abs(tested.mean).max(0)
    strong = [head for head in tested.heads if size[head] >= least * gap]
    return tested, tuple(sorted(strong, key=lambda head: (-size[head], head)))


def open_search(
    lens: Lens,
    pairs: Sequence[Pair],
    *,
    how: How = "zero",
    layers: bool = True,
    seed: int = 0,
    sweep: Sweep | None = None,
) -> Search:
    """Run all patches of some pairs, ready to choose heads.

    Args:
        lens: the model.
        pairs: conflicts; choose those that the model decides as asked in both runs beforehand.
        how: what ablated heads put out while sets are chosen; mean and resampled values are those
            of the discovery pairs. Zero is what the published work uses; `prove` scores the chosen
            sets with all three.
        layers: whether MLPs and residuals are patched too.
        seed: of resampled values.
        sweep: of these pairs, in this order, if it was run before.
    """
    captured = capture(lens, pairs, layers=layers) if sweep is None or how != "zero" else None
    sweep = sweep or patch_sweep(lens, pairs, layers=layers, captured=captured)
    return Search(lens, pairs, sweep, how, None if how == "zero" else captured, seed)


def find_heads(
    lens: Lens,
    pairs: Sequence[Pair],
    *,
    how: How = "zero",
    level: float = 0.05,
    layers: bool = True,
    seed: int = 0,
) -> Found:
    """The heads that decide between the answers of the pairs, chosen on half of the clusters.

    1. Every head is patched at the decision, both ways, in every pair (`patch_sweep`).
    2. Heads whose patches move the answer are told from the rest by a sign-flip test over
       examples with Benjamini-Hochberg (`significant_heads`).
    3. Among these, for each run, the smallest sets whose ablation has 50 % and 90 % of the largest
       effect (`smallest_sets`).

    Nothing in it is scored on the pairs that it was chosen on: use `Found.held_out` for that.
    """
    search = open_search(lens, pairs, how=how, layers=layers, seed=seed)
    return search.choose(seed, level=level)


def mean_restoration(sweep: Sweep) -> Float[np.ndarray, "direction layer head"]:
    """Mean R of each head over pairs; NaN where every pair is too close."""
    values = sweep.restoration
    known = (~np.isnan(values)).sum(0)
    with np.errstate(all="ignore"):
        return np.asarray(np.nansum(values, 0) / known)


@dataclass(frozen=True, slots=True, eq=False)
class Stability:
    """How much what is found depends on the split.

    Attributes:
        found: the heads of each split.
        jaccard: of each two splits; 1 where both found nothing.
    """

    found: tuple[tuple[Head, ...], ...]
    jaccard: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean Jaccard index. Splits share pairs, so it has no interval of its own."""
        return float(np.mean(self.jaccard))

    def to_dataframe(self) -> pd.DataFrame:
        """One row a head that any split found: layer, head, splits, share of the splits."""
        counts: dict[Head, int] = {}
        for heads in self.found:
            for head in heads:
                counts[head] = counts.get(head, 0) + 1
        rows = [(*head, n, n / len(self.found)) for head, n in sorted(counts.items())]
        return pd.DataFrame(rows, columns=["layer", "head", "splits", "share"])


def stability(search: Search, seeds: Iterable[int] = range(5), level: float = 0.05) -> Stability:
    """The search on several random splits, from the same runs."""
    found = tuple(search.choose(seed, level=level).heads for seed in seeds)
    return Stability(
        found,
        tuple(S.jaccard(x, y) if x or y else 1.0 for x, y in combinations(found, 2)),
    )
