"""On planted models, the search finds the heads that decide, all of them and no other."""

from __future__ import annotations

import pytest

from lab.engine.planted import planted_model
from lab.instruments.override.classify import classify
from lab.instruments.override.find import open_search
from lab.instruments.override.pairs import planted_pairs

SIZES = ((3, 4), (4, 5), (4, 8))
SEEDS = range(20)


@pytest.mark.parametrize("size", SIZES)
def test_the_planted_heads_are_found_and_told_apart(size: tuple[int, int]) -> None:
    """Precision and recall are 1 in every one of twenty random layouts, and kinds are right.

    Each run needs its own heads: the router alone has most of the effect in a, but not 90 % of it.
    The published rule, on the same data, labels the router and the copier, and never the rest.
    """
    for seed in SEEDS:
        planted = planted_model(*size, seed)
        pairs = planted_pairs(planted, 20, seed)
        found = open_search(planted.lens, pairs, layers=False).choose(seed)
        assert found.heads == planted.heads, seed
        assert found.set_of(0, 0.5) == (planted.router,), seed
        assert found.set_of(0) == tuple(sorted((planted.router, planted.memory))), seed
        assert found.set_of(1) == (planted.copier,), seed
        both = tuple(sorted((planted.router, planted.copier)))
        assert (found.published.promoting, found.published.suppressing) == (both, ()), seed

        held = [pairs[i] for i in found.held_out]
        sweep = found.sweep.of(found.held_out)
        kinds = classify(planted.lens, held, found.heads, sweep, top=1)
        told = [kinds.kind_of(h) for h in (planted.router, planted.memory, planted.copier)]
        assert told == ["routing", "writing", "writing"], seed
