"""Random sets that look where the chosen heads look: a control harder than the layer alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product

import numpy as np
from jaxtyping import Float

from lab.engine.forward import Keep, Trace
from lab.engine.lens import Lens
from lab.engine.packing import Branch
from lab.instruments.override.decisions import run_reduced
from lab.instruments.override.pairs import Head, Pair
from lab.instruments.override.prove import distinct_sets

NEAR = 3
"""From so many of the nearest heads one is drawn for each head of the set."""


def attention_mass(
    lens: Lens, pairs: Sequence[Pair], span: str = "context"
) -> Float[np.ndarray, "run layer head"]:
    """How much of each head's attention goes from the decision to a span, mean over pairs.

    Raises:
        LabError: a prompt has no such span.
    """

    def reduce(number: int, trace: Trace) -> np.ndarray:
        assert trace.attention is not None
        where = list(pairs[number // 2].asked(number % 2).where(span))
        return np.asarray(trace.attention[:, :, -1][..., where].sum(-1))

    branches = [Branch(pair.asked(run).tokens) for pair in pairs for run in (0, 1)]
    mass = np.array(run_reduced(lens, branches, Keep(False, attention=True), reduce))
    return np.asarray(mass.reshape(len(pairs), 2, *mass.shape[1:]).mean(0))


def matched_sets(
    heads: Sequence[Head],
    mass: Float[np.ndarray, "layer head"],
    n: int,
    seed: int = 0,
    near: int = NEAR,
) -> list[tuple[Head, ...]]:
    """``n`` random sets of the same layers whose heads attend nearly as much to the same span.

    In place of each head comes one of the ``near`` heads of its layer with the closest mass, none
    of them in the set and none twice. Where a layer has too few other heads, its own may come, but
    never the whole given set. No set comes twice: where ``n`` or fewer are possible, all of them
    are returned, which may be none.
    """
    rng = np.random.default_rng([seed, len(heads), 53])
    own = set(heads)

    def draw() -> tuple[Head, ...]:
        taken: set[Head] = set()
        for head in heads:
            free = _nearest(head, own, taken, mass, near)
            taken.add(free[int(rng.integers(len(free)))])
        return tuple(sorted(taken))

    layers = [
        _layer_sets([head for head in heads if head[0] == layer], own, mass, near)
        for layer in sorted({layer for layer, _ in heads})
    ]
    return distinct_sets(draw, (sum(parts, ()) for parts in product(*layers)), heads, n)


def _layer_sets(
    heads: Sequence[Head], own: set[Head], mass: np.ndarray, near: int
) -> list[tuple[Head, ...]]:
    """Every set that can come in place of the heads of one layer."""
    sets: set[frozenset[Head]] = {frozenset()}
    for head in heads:
        sets = {taken | {cell} for taken in sets for cell in _nearest(head, own, taken, mass, near)}
    return sorted(tuple(sorted(cells)) for cells in sets)


def _nearest(
    of: Head, own: set[Head], taken: Collection[Head], mass: np.ndarray, near: int
) -> list[Head]:
    """The heads of which one comes in place of a head of the set, the nearest first."""
    others = [(of[0], h) for h in range(mass.shape[1])]
    free = [cell for cell in others if cell not in own and cell not in taken]
    free = free or [cell for cell in others if cell not in taken]
    return sorted(free, key=lambda cell: (abs(float(mass[cell] - mass[of])), cell))[:near]
