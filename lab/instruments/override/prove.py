"""Does a set of heads decide? Ablated in three ways, against random sets, here and elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product

import numpy as np
import pandas as pd
from jaxtyping import Float

from lab.engine.edits import Change
from lab.engine.forward import Keep, Trace
from lab.engine.lens import Lens
from lab.engine.packing import Branch
from lab.errors import LabError
from lab.instruments import statistics as S
from lab.instruments.override.ablation import (
    ABLATIONS,
    How,
    Outcomes,
    Values,
    ablate_sets,
    replace_heads,
)
from lab.instruments.override.decisions import Captured, last_row, run_reduced
from lab.instruments.override.pairs import RUNS, Head, Pair, clusters_of

RANDOM_SETS = 100

MEASURES = ("shift", "to_other", "damage", "two_token")


def random_sets(
    heads: Sequence[Head], n_layers: int, n_heads: int, n: int = RANDOM_SETS, seed: int = 0
) -> list[tuple[Head, ...]]:
    """``n`` random sets with as many heads in each layer as the given set, none of them its own.

    Where a layer has too few other heads, all of its heads may be drawn, but never the whole given
    set. No set comes twice: where ``n`` or fewer exist, all are returned, which may be none.

    Raises:
        LabError: a head is outside of the model.
    """
    if any(not (0 <= la < n_layers and 0 <= h < n_heads) for la, h in heads):
        raise LabError(f"Of {sorted(heads)} some are outside of {n_layers} x {n_heads} heads.")
    rng = np.random.default_rng([seed, len(heads)])
    pools = {}
    for layer in sorted({la for la, _ in heads}):
        own = {h for la, h in heads if la == layer}
        others = [h for h in range(n_heads) if h not in own]
        pools[layer] = (others if len(others) >= len(own) else list(range(n_heads)), len(own))

    def draw() -> tuple[Head, ...]:
        return tuple(
            (layer, int(h))
            for layer, (pool, count) in pools.items()
            for h in sorted(rng.choice(pool, count, replace=False))
        )

    # Of a layer with very many combinations so many are enough to see that there are more than n.
    layers = (
        islice(combinations([(layer, h) for h in pool], count), n + 2)
        for layer, (pool, count) in pools.items()
    )
    return distinct_sets(draw, (sum(parts, ()) for parts in product(*layers)), heads, n)


def distinct_sets(
    draw: Callable[[], tuple[Head, ...]],
    every: Iterable[tuple[Head, ...]],
    own: Sequence[Head],
    n: int,
) -> list[tuple[Head, ...]]:
    """``n`` drawn sets that all differ from each other and from ``own``.

    ``every`` gives each set that can be drawn once, heads in ascending order; where there are no
    more than ``n``, these are returned. Were a set counted twice, p could become smaller than one
    divided by the number of sets that there are.
    """
    itself = tuple(sorted(set(own)))
    there = list(islice((heads for heads in every if heads != itself), n + 1))
    if len(there) <= n:
        return there
    found: dict[tuple[Head, ...], None] = {}
    while len(found) < n:
        heads = draw()
        if heads != itself:
            found[heads] = None
    return list(found)


@dataclass(frozen=True, slots=True, eq=False)
class Against:
    """A number of one set, beside the same number of random sets.

    Attributes:
        estimate: of the set, with its interval over examples.
        random: of each random set.
    """

    estimate: S.Estimate
    random: Float[np.ndarray, " set"]

    @property
    def percentile(self) -> float:
        """Share of random sets below the set, ties counted half; NaN without a value or sets."""
        if np.isnan(self.estimate.value) or not self.random.size:
            return float("nan")
        below = (self.random < self.estimate.value).mean()
        return float(below + 0.5 * (self.random == self.estimate.value).mean())

    @property
    def p(self) -> float:
        """(1 + random sets that do at least as much) / (1 + random sets); NaN without either.

        Random sets must differ from each other (`random_sets`).
        """
        if np.isnan(self.estimate.value) or not self.random.size:
            return float("nan")
        return float((1 + (self.random >= self.estimate.value).sum()) / (1 + len(self.random)))

    def row(self) -> dict[str, float | str]:
        """The number, its interval, the middle 95 % of the random sets, percentile and p."""
        known = self.random[~np.isnan(self.random)]
        low, high = np.percentile(known, [2.5, 97.5]) if known.size else (np.nan, np.nan)
        e = self.estimate
        return {
            "value": e.value, "low": e.low, "high": e.high, "n": e.n, "method": e.method,
            "random_mean": float(known.mean()) if known.size else np.nan,
            "random_low": float(low), "random_high": float(high),
            "random_sets": len(self.random), "percentile": self.percentile, "p": self.p,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """One set of heads, ablated in one run of every pair.

    Attributes:
        heads, run: which heads, in which run (0 for a).
        found: for each ablation and each measure of MEASURES, the set beside random sets.
        outcomes: for each ablation what every pair gave: unchanged, with the set ablated, and with
            each random set ablated.
        random: the random sets.
    """

    heads: tuple[Head, ...]
    run: int
    found: dict[tuple[How, str], Against]
    outcomes: dict[How, Outcomes]
    random: tuple[tuple[Head, ...], ...]

    def to_dataframe(self) -> pd.DataFrame:
        """One row an ablation and measure.

        Columns: run, how, measure, value, low, high, n, method, random_mean, random_low and
        random_high (the middle 95 % of random sets), random_sets, percentile, p. Measures: shift
        (mean log-odds towards the competing answer, all pairs), to_other and damage (share of the
        pairs first answered as asked whose most likely token becomes the competing answer, or
        anything else), two_token (share of the pairs with log-odds for the own answer that turn).
        """
        rows = [
            {"run": RUNS[self.run], "how": how, "measure": measure, **against.row()}
            for (how, measure), against in self.found.items()
        ]
        return pd.DataFrame(rows)


def prove(
    lens: Lens,
    pairs: Sequence[Pair],
    run: int,
    heads: Sequence[Head],
    donors: Captured | None,
    *,
    donor_clusters: Sequence[str] = (),
    ablations: Sequence[How] = ABLATIONS,
    n_random: int = RANDOM_SETS,
    seed: int = 0,
    random: Sequence[Sequence[Head]] | None = None,
) -> Proof:
    """Ablate a set of heads at the decision, beside random sets of the same layers.

    Args:
        lens: the model.
        pairs: held-out pairs, on which the heads were not chosen.
        run: which prompt of each pair, a (0) or b (1).
        heads: the set.
        donors: captured runs for mean and resampled values, best of the discovery pairs; None
            where only zeros are put in.
        donor_clusters: clusters of the donors, so that no pair takes its own values.
        ablations: which values to put in place of the heads' outputs.
        n_random: how many random sets at most (see `random_sets`); with n the smallest p is
            1 / (n + 1).
        seed: of random sets and donors.
        random: these sets instead of drawn ones, each counted once.

    Raises:
        LabError: there are no heads, or one is outside of the model.
    """
    if not heads:
        raise LabError("There are no heads to ablate: the search chose none on these pairs.")
    drawn = (
        list(dict.fromkeys(tuple(sorted(given)) for given in random))
        if random is not None
        else (random_sets(heads, lens.n_layers, lens.n_heads, n_random, seed))
    )
    clusters = clusters_of(pairs)
    outcomes, found = {}, {}
    for how in ablations:
        values = Values(how, None if how == "zero" else donors, tuple(donor_clusters), seed)
        outcomes[how] = ablate_sets(lens, pairs, run, [(), tuple(heads), *drawn], values)
        for measure, table in _measures(outcomes[how]).items():
            estimate = (S.mean_estimate if measure == "shift" else S.proportion)(table[0], clusters)
            found[how, measure] = Against(estimate, _means(table[1:]))
    return Proof(tuple(heads), run, found, outcomes, tuple(drawn))


def _measures(outcomes: Outcomes) -> dict[str, np.ndarray]:
    """Each measure for every ablated set and pair, NaN where a pair cannot show it."""
    own, said = outcomes.own, outcomes.said
    asked = np.where(said[0] == 0, 1.0, np.nan)
    favours = np.where(own[0] > 0, 1.0, np.nan)
    return {
        "shift": own[0] - own[1:],
        "to_other": (said[1:] == 1) * asked,
        "damage": (said[1:] == 2) * asked,
        "two_token": (own[1:] < 0) * favours,
    }


def _means(table: np.ndarray) -> np.ndarray:
    known = (~np.isnan(table)).sum(-1)
    with np.errstate(all="ignore"):
        return np.asarray(np.nansum(table, -1) / known)


@dataclass(frozen=True, slots=True, eq=False)
class Elsewhere:
    """What ablating a set does to prompts that have nothing to do with the conflict.

    Attributes:
        changed: share of prompts whose most likely next token changes.
        divergence: mean Kullback-Leibler divergence of the next token, in nats, from the unchanged
            to the ablated run.
    """

    changed: Against
    divergence: Against

    def to_dataframe(self) -> pd.DataFrame:
        """Two rows, measure "changed" and "divergence", with the columns of `Proof`'s table."""
        pairs = (("changed", self.changed), ("divergence", self.divergence))
        return pd.DataFrame([{"measure": name, **against.row()} for name, against in pairs])


def prove_elsewhere(
    lens: Lens,
    prompts: Sequence[Sequence[int]],
    heads: Sequence[Head],
    *,
    n_random: int = RANDOM_SETS,
    clusters: Sequence[str] | None = None,
    seed: int = 0,
) -> Elsewhere:
    """Zero-ablate a set at the last token of other prompts, beside random sets.

    A set that decides between two sources should do no more here than any other heads.
    """
    sets = [(), tuple(heads), *random_sets(heads, lens.n_layers, lens.n_heads, n_random, seed)]
    branches = []
    for tokens in prompts:
        at = [len(tokens) - 1]
        branches += [Branch(tuple(tokens), _zero(chosen, at)) for chosen in sets]
    clean: list[np.ndarray] = [np.zeros(0)]

    def reduce(number: int, trace: Trace) -> tuple[float, float]:
        row = _log_softmax(last_row(trace))
        if number % len(sets) == 0:
            clean[0] = row
        return float(row.argmax() != clean[0].argmax()), _divergence(clean[0], row)

    table = np.array(run_reduced(lens, branches, Keep(), reduce))
    table = table.reshape(len(prompts), len(sets), 2).transpose(2, 1, 0)[:, 1:]
    names = None if clusters is None else list(clusters)
    return Elsewhere(
        Against(S.proportion(table[0, 0], names), _means(table[0, 1:])),
        Against(S.mean_estimate(table[1, 0], names), _means(table[1, 1:])),
    )


def text_loss(
    lens: Lens, texts: Sequence[Sequence[int]], sets: Sequence[Sequence[Head]]
) -> Float[np.ndarray, "set text"]:
    """Mean negative log-probability (nats a token) of plain texts, with sets zero-ablated.

    Here the heads are ablated at every position, the harshest form; an empty set is the unchanged
    model. exp of a mean over texts is a perplexity.
    """
    losses = np.zeros((len(sets), len(texts)))
    for column, tokens in enumerate(texts):
        places = tuple(range(len(tokens) - 1))
        for row, heads in enumerate(sets):
            branch = Branch(tuple(tokens), _zero(heads, places), keep=places)
            logits = lens.run([branch])[0].logits
            assert logits is not None
            told = [_log_softmax(logits[i])[tokens[i + 1]] for i in places]
            losses[row, column] = -np.mean(told)
    return losses


def _zero(heads: Sequence[Head], positions: Sequence[int]) -> tuple[Change, ...]:
    return replace_heads(heads, positions)


def _log_softmax(row: np.ndarray) -> np.ndarray:
    wide = row.astype(float)
    return np.asarray(wide - np.logaddexp.reduce(wide))


def _divergence(p: np.ndarray, q: np.ndarray) -> float:
    return float((np.exp(p) * (p - q)).sum())
