"""Random sets that look where the chosen heads look: a control harder than the layer alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from lab.engine.forward import Keep, Trace
from lab.engine.lens import Lens
from lab.engine.packing import Branch
from lab.instruments.override.decisions import run_reduced
from lab.instruments.override.pairs import Head, Pair

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
    of them in the set and none twice. Where a layer has too few other heads, its own may come.
    Few sets are possible where there are few heads, so sets repeat.
    """
    rng = np.random.default_rng([seed, len(heads), 53])
    own = set(heads)
    return [_one(heads, own, mass, rng, near) for _ in range(n)]


def _one(
    heads: Sequence[Head], own: set[Head], mass: np.ndarray, rng: np.random.Generator, near: int
) -> tuple[Head, ...]:
    taken: list[Head] = []
    for layer, head in heads:
        others = [(layer, h) for h in range(mass.shape[1])]
        free = [cell for cell in others if cell not in own and cell not in taken]
        free = free or [cell for cell in others if cell not in taken]
        free.sort(key=lambda cell: (abs(float(mass[cell] - mass[layer, head])), cell))
        taken.append(free[int(rng.integers(min(near, len(free))))])
    return tuple(sorted(taken))
