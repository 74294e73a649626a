"""Requests that cannot be answered are refused in words, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hook_runs import plain, tokens
from tiny import VOCAB, tiny_lens

from lab.engine.edits import Block, Edit, ablated, set_to
from lab.engine.forward import Keep
from lab.engine.gradients import head_gradients
from lab.engine.lens import Lens
from lab.engine.packing import Branch
from lab.errors import LabError

lens_of = cache(tiny_lens)

IDS = tokens()
LAST = len(IDS) - 1
WRONG_TOKEN = f"tokens 0 to {VOCAB - 1}, not"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ablated("head", 9, [LAST], 0), "layers 0 to 3"),
        (lambda: ablated("head", 0, [LAST], 4), "heads 0 to 3"),
        (lambda: ablated("head", 0, [30], 0), "Position 30 is outside .* from 0 to 29"),
        (lambda: ablated("head", 0, [LAST]), "name a head"),
        (lambda: ablated("mlp", 0, [LAST], how="mean"), "reference"),
        (
            lambda: ablated("mlp", 0, [LAST], how="maen", reference=torch.zeros(2, 32)),
            "Unknown ablation 'maen'",
        ),
        (lambda: Edit("nose", 0, (LAST,)), "Unknown site"),
        (lambda: set_to("head", 1, [5, 6], torch.zeros(3, 8), 0), r"shape \[3, 8\] at 2 position"),
        (lambda: set_to("head", 1, [5], torch.tensor(0.0), 0), r"shape \[\] .* one vector, \[d\]"),
        (lambda: set_to("head", 1, [5], 0.0, 0), r"one vector, \[d\]"),
        (lambda: Block(9, (LAST,), (3,)), "layers 0 to 3"),
        (lambda: Block(1, (LAST,), (3,), (0, 9)), "heads 0 to 3, not 9"),
        (lambda: Block(1, (LAST,), (3,), ()), "names no head"),
        (lambda: Block(1, (), (3,)), "names no query"),
        (lambda: Block(1, (LAST,), (3, 30)), "Key position 30 is outside"),
        (lambda: Block(1, (LAST,), (3, -2)), "Key position -2 is outside"),
        (lambda: Block(1, (-1,), (3,)), "Position -1 is outside"),
    ],
)
def test_impossible_changes_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(LabError, match=message):
        lens_of("llama").run([Branch(IDS, (make(),))])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda lens: lens.run([Branch(())]), "without tokens"),
        (lambda lens: lens.run([Branch(IDS, keep=())]), "keeps no position"),
        (lambda lens: lens.run([Branch(IDS * 30)]), "does not fit"),
        (lambda lens: lens.run([Branch((5, 99_999))]), f"{WRONG_TOKEN} 99999 .in the prompt"),
        (lambda lens: lens.run([Branch((-1, 5))]), f"{WRONG_TOKEN} -1"),
        (lambda lens: lens.run([Branch(IDS)], Keep((5, 99_999))), f"{WRONG_TOKEN} 99999 .in asked"),
        (lambda lens: lens.run([Branch(IDS)], Keep((-1,))), f"{WRONG_TOKEN} -1"),
        (lambda lens: lens.generate(()), "without tokens"),
        (lambda lens: lens.generate((5, VOCAB)), f"{WRONG_TOKEN} {VOCAB}"),
        (lambda lens: lens.generate(IDS, max_new_tokens=500), "do not fit"),
        (lambda lens: lens.cache((5, VOCAB)), f"{WRONG_TOKEN} {VOCAB}"),
        (lambda lens: head_gradients(lens, (), ((5,), (6,))), "without tokens"),
        (lambda lens: head_gradients(lens, IDS, ((5,), ())), "answer without tokens"),
        (lambda lens: head_gradients(lens, IDS, ((5,), (VOCAB,))), f"{WRONG_TOKEN} {VOCAB}"),
    ],
)
def test_impossible_prompts_and_answers_are_refused(
    ask: Callable[[Lens], Any], message: str
) -> None:
    with pytest.raises(LabError, match=message):
        ask(lens_of("llama"))


def test_a_block_without_keys_cuts_nothing() -> None:
    run = lens_of("llama").run([Branch(IDS, (Block(1, (LAST,), ()),))])[0]
    assert np.abs(run.logits[0] - plain(lens_of("llama"), IDS)[-1]).max() < 1e-4
