"""Sets of heads ablated at the decision, and what is said instead: the other answer, or neither."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float

from lab.engine.edits import Edit
from lab.engine.lens import Lens
from lab.errors import LabError
from lab.instruments.override.decisions import Captured, Job, decide
from lab.instruments.override.pairs import Head, Pair

if TYPE_CHECKING:
    import torch

How = Literal["zero", "mean", "resample", "other"]

ABLATIONS: tuple[How, ...] = ("zero", "mean", "resample")


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """What an ablated head's output is replaced by.

    Attributes:
        how: ``zero``; ``mean`` over the donors; ``resample``, the outputs of one donor, the same
            for all heads of a set; ``other``, those of the same pair's other run, in order of the
            pairs (patching of a whole set).
        donors: captured runs. For mean and resample both runs of every donor pair count, so that a
            head which only tells the instructions apart is ablated too.
        clusters: of the donors. A pair takes nothing from its own cluster.
        seed: of the choice of donors.
        numbers: where the donors are among the ablated pairs, the number of each among these. A
            pair takes nothing from itself, whether it has a cluster or not.

    Zero is furthest from what a model ever sees: an effect found only there may be one of that.
    """

    how: How = "zero"
    donors: Captured | None = None
    clusters: tuple[str, ...] = ()
    seed: int = 0
    numbers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.how not in (*ABLATIONS, "other"):
            raise LabError(f"Unknown ablation {self.how!r}: use zero, mean, resample or other.")
        if self.how != "zero" and self.donors is None:
            raise LabError(f"Ablation with {self.how!r} needs captured runs as donors.")

    def of(
        self, number: int, run: int, cluster: str
    ) -> Float[torch.Tensor, "layer head d_head"] | None:
        """Replacements of all heads for pair ``number``; None stands for zeros."""
        if self.donors is None or self.how == "zero":
            return None
        heads = self.donors.heads
        if self.how == "other":
            return heads[number, 1 - run]
        names = self.clusters or ("",) * len(heads)
        usable = [
            i
            for i, name in enumerate(names)
            if not (cluster and name == cluster) and self.numbers[i : i + 1] != (number,)
        ]
        if not usable:
            raise LabError(
                f"All donors belong to the cluster {cluster!r} of the ablated pair, or are this "
                "pair itself: give others."
            )
        pool = heads[usable].flatten(0, 1)
        if self.how == "mean":
            return pool.mean(0)
        return pool[int(np.random.default_rng([self.seed, number, run]).integers(len(pool)))]


def replace_heads(
    heads: Iterable[Head],
    positions: Sequence[int],
    values: Float[torch.Tensor, "layer head d_head"] | None = None,
) -> tuple[Edit, ...]:
    """Edits that put ``values`` (None for zeros) in place of each head's output."""
    return tuple(
        Edit("head", la, tuple(positions), h, 0.0, None if values is None else values[la, h])
        for la, h in heads
    )


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """What one run of every pair gives, with each of several sets of heads ablated.

    Attributes:
        own: [set, pair], log-odds of the run's own answer against the competing one.
        said: [set, pair], 0 where the most likely token is of the own answer, 1 of the competing
            one, 2 of neither.
    """

    own: Float[np.ndarray, "set pair"]
    said: Float[np.ndarray, "set pair"]


def ablate_sets(
    lens: Lens,
    pairs: Sequence[Pair],
    run: int,
    sets: Sequence[Sequence[Head]],
    values: Values | None = None,
    only: Sequence[int] | None = None,
) -> Outcomes:
    """Ablate every set at the decision of run a (0) or b (1) of every pair.

    All sets of one prompt are branches behind one trunk: a hundred random sets cost about one
    forward pass of the prompt. An empty set is the unchanged run. With ``only``, the pairs with
    these indices are run.
    """
    values = values or Values()
    chosen = range(len(pairs)) if only is None else only
    jobs = []
    for number in chosen:
        pair = pairs[number]
        at = [pair.asked(run).decision]
        put = values.of(number, run, pair.cluster)
        jobs += [Job(number, run, replace_heads(heads, at, put)) for heads in sets]
    found = decide(lens, pairs, jobs)
    said = [pairs[j.pair].said(run, int(t)) for j, t in zip(jobs, found.top, strict=True)]
    shape = (len(chosen), len(sets))
    own = (1, -1)[run] * found.difference.reshape(shape).T
    return Outcomes(own, np.array(said).reshape(shape).T)


@dataclass(eq=False)
class Ablations:
    """Effects of sets of heads in one run of every pair, each set run once and remembered."""

    lens: Lens
    pairs: Sequence[Pair]
    run: int
    values: Values
    _known: dict[frozenset[Head], np.ndarray] = field(default_factory=dict, repr=False)

    def effect(
        self, sets: Sequence[Sequence[Head]], only: np.ndarray | None = None
    ) -> Float[np.ndarray, "set pair"]:
        """How far each set's ablation moves the log-odds towards the competing answer.

        ``only`` is a mask of the pairs that are asked about; others are not run.
        """
        asked = [frozenset(heads) for heads in sets]
        at = np.arange(len(self.pairs)) if only is None else np.flatnonzero(only)
        unknown = np.full(len(self.pairs), np.nan)
        new = [
            key
            for key in dict.fromkeys([frozenset(), *asked])
            if np.isnan(self._known.get(key, unknown)[at]).any()
        ]
        if new:
            listed = [sorted(key) for key in new]
            own = ablate_sets(self.lens, self.pairs, self.run, listed, self.values, at.tolist()).own
            for key, row in zip(new, own, strict=True):
                self._known.setdefault(key, unknown.copy())[at] = row
        clean = self._known[frozenset()][at]
        return np.array([clean - self._known[key][at] for key in asked])
