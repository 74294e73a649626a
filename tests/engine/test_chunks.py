"""How branches are laid out and split: each row that is needed once, and no pass too large."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest
from hook_runs import as_hook, plain, tokens
from tiny import tiny_lens

from lab.engine.edits import ablated, scaled
from lab.engine.packing import Branch, chunks, pack, trunk_length

lens_of = cache(tiny_lens)


def test_unchanged_branches_of_the_same_tokens_run_once() -> None:
    ids = tokens(100)
    branches = [Branch(ids, keep=(i,)) for i in range(50)]
    assert len(pack(branches, 0).position) == 100
    assert chunks(branches, 0, most_rows=300) == [list(range(50))]
    assert len(pack(branches, 0, grow=False).position) == 5000
    assert max(map(len, chunks(branches, 0, most_rows=300, grow=False))) == 3


@pytest.mark.parametrize("grow", [True, False])
def test_no_pass_has_more_rows_than_allowed(grow: bool) -> None:
    rng = random.Random(0)
    stem = tokens(10)
    for _ in range(40):
        texts = [stem + tokens(rng.randint(1, 20), seed=n) for n in range(3)]
        branches = []
        for _ in range(30):
            text = rng.choice(texts)
            places = sorted(rng.sample(range(len(text)), 2))
            change = ablated("mlp", rng.randrange(4), places)
            branches.append(Branch(text, (change,) if rng.random() < 0.6 else ()))
        trunk = trunk_length(branches)
        groups = chunks(branches, trunk, 80, grow=grow)
        assert sorted(i for group in groups for i in group) == list(range(30))
        for group in groups:
            rows = pack([branches[i] for i in group], trunk, grow=grow).position
            assert len(rows) <= 80 or len(group) == 1


def test_the_same_branch_asked_again_and_again_gives_the_same() -> None:
    lens, ids = lens_of("gemma3"), tokens()
    twice = Branch(ids, keep=(20, 29))
    branches = [
        twice, Branch(ids, (scaled("head", 2, [29], 3.0, 1),)), twice, Branch(ids), twice,
        Branch(ids, (ablated("head", 0, [25], 0),), keep=(29, 22)),
    ]  # fmt: skip
    for branch, run in zip(branches, lens.run(branches), strict=True):
        wanted = plain(lens, ids, [as_hook(c) for c in branch.changes])[list(branch.kept)]
        assert np.abs(run.logits - wanted).max() < 1e-4
