"""Planted models do what they were built to do, and the engine runs many prompts in one pass."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from test_exact import as_hook, plain
from tiny import VOCAB, tiny_lens

from lab.engine.edits import ablated, knockout, set_to
from lab.engine.forward import Keep
from lab.engine.packing import Branch, chunks, pack
from lab.engine.planted import WORDS, Planted, planted_model
from lab.errors import LabError

SIZES = ((3, 4), (4, 5), (5, 8))

model_of = cache(planted_model)
lens_of = cache(tiny_lens)


def said(
    planted: Planted, prompts: list[tuple[int, ...]], *heads: tuple[int, int]
) -> tuple[list[int], list[float]]:
    """The most likely tokens, and their logits, with some heads zero-ablated at the decision."""
    edits = tuple(ablated("head", layer, [5], head) for layer, head in heads)
    rows = [run.logits[0] for run in planted.lens.run([Branch(p, edits) for p in prompts])]
    return [int(row.argmax()) for row in rows], [float(row.max()) for row in rows]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", [0, 1])
class TestPlantedModel:
    def test_each_planted_head_changes_the_answer(self, size: tuple[int, int], seed: int) -> None:
        planted = model_of(*size, seed)
        conflicts = planted.conflicts(8)
        memory, passage = zip(*((c.from_memory, c.from_passage) for c in conflicts), strict=True)
        remembered, read = [c.remembered for c in conflicts], [c.read for c in conflicts]
        assert said(planted, memory)[0] == remembered
        assert said(planted, passage)[0] == read
        assert said(planted, memory, planted.router)[0] == read
        assert said(planted, passage, planted.copier)[0] == remembered
        neither = said(planted, memory, planted.memory, planted.backup)[0]
        assert all(
            top not in (c.remembered, c.read) for top, c in zip(neither, conflicts, strict=True)
        )

    def test_no_decoy_does(self, size: tuple[int, int], seed: int) -> None:
        planted = model_of(*size, seed)
        prompts = [p for c in planted.conflicts(8) for p in (c.from_memory, c.from_passage)]
        tops, logits = said(planted, prompts)
        for decoy in (planted.attends, planted.cancelled, planted.backup):
            without = said(planted, prompts, decoy)
            assert without[0] == tops
            assert without[1] == pytest.approx(logits, abs=0.2)

    def test_decoys_look_as_if_they_did_something(self, size: tuple[int, int], seed: int) -> None:
        planted = model_of(*size, seed)
        c = planted.conflicts(1)[0]
        trace = planted.lens.run([Branch(c.from_passage)], Keep(attention=True, heads=True))[0]
        assert trace.attention[planted.attends][0, 3] > 0.99  # on the object
        layer, head = planted.cancelled
        write = trace.heads[layer, head, 0] @ planted.lens.bridge.blocks[layer].attn.W_O[head]
        assert write.norm() > 1
        assert trace.attention[planted.backup][0, 0] > 0.9  # at rest on the first token

    def test_the_backup_stands_in_for_the_memory_head(
        self, size: tuple[int, int], seed: int
    ) -> None:
        planted = model_of(*size, seed)
        edits = [ablated("head", la, [5], h) for la, h in (planted.memory, planted.backup)]
        conflicts = planted.conflicts(8)
        logits = [
            [
                run.logits[0][c.remembered]
                for c, run in zip(
                    conflicts,
                    planted.lens.run([Branch(c.from_memory, tuple(edits[:n])) for c in conflicts]),
                    strict=True,
                )
            ]
            for n in (0, 1, 2)
        ]
        whole, without, neither = np.mean(logits, axis=1)
        assert 5 < whole - without < 8  # ten units of logit are lost, and three and a half return
        assert without - neither == pytest.approx(3.5, abs=0.5)


def test_places_differ_between_seeds_and_keep_their_order() -> None:
    models = [planted_model(3, 4, seed) for seed in range(3)]
    assert len({m.heads for m in models}) > 1
    for m in models:
        assert m.router[0] < m.memory[0] < m.backup[0] and m.router[0] < m.copier[0]


def test_an_empty_model_has_no_circuit() -> None:
    planted = planted_model(3, 4, 0, circuit=False)
    conflicts = planted.conflicts(12)
    tops = said(planted, [c.from_passage for c in conflicts])[0]
    assert sum(top == c.read for top, c in zip(tops, conflicts, strict=True)) <= 3


def test_the_lens_passes_its_self_check() -> None:
    lens = planted_model(3, 4, 0, check=True).lens
    assert lens.packed and lens.grow and not lens.notes
    assert lens.tokenizer(" ".join(WORDS[:3])).input_ids == [0, 1, 2]


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(LabError, match="at least 3 layers"):
        planted_model(2, 4)
    with pytest.raises(LabError, match="divide 80"):
        planted_model(3, 7)


def prompts() -> list[tuple[int, ...]]:
    generator = torch.Generator().manual_seed(3)
    first = torch.randint(5, VOCAB, (4,), generator=generator).tolist()
    return [
        (*first, *torch.randint(5, VOCAB, (n,), generator=generator).tolist()) for n in (9, 12, 20)
    ]


@pytest.mark.parametrize("architecture", ["llama", "gemma3", "gpt2", "mistral"])
class TestManyPromptsInOnePass:
    """Patches of several prompts share the unchanged rows of their own prompt, exactly."""

    def test_equal_single_hook_runs(self, architecture: str) -> None:
        lens = lens_of(architecture)
        donor = lens.run([Branch(prompts()[0])], Keep(heads=True))[0].heads
        branches = []
        for tokens in prompts():
            last = len(tokens) - 1
            branches += [
                Branch(tokens, (set_to("head", layer, [last], donor[layer, head], head),))
                for layer in range(lens.n_layers)
                for head in (0, 3)
            ]
            branches.append(Branch(tokens, knockout([last], [5, 6], [0, 1])))
            branches.append(Branch(tokens, (ablated("mlp", 0, [last - 2, last]),)))
            branches.append(Branch(tokens))
        for branch, run in zip(branches, lens.run(branches), strict=True):
            wanted = plain(lens, branch.tokens, [as_hook(c) for c in branch.changes])[-1]
            assert np.abs(run.logits[0] - wanted).max() < 1e-4

    def test_attention_rows_are_those_of_a_run_alone(self, architecture: str) -> None:
        lens = lens_of(architecture)
        branches = [
            Branch(tokens, (ablated("head", layer, [len(tokens) - 1], 1),))
            for tokens in prompts()
            for layer in (0, 2)
        ]
        together = lens.run(branches, Keep(attention=True, heads=True))
        for branch, run in zip(branches, together, strict=True):
            alone = lens.run([branch], Keep(attention=True, heads=True))[0]
            assert np.abs(run.attention - alone.attention).max() < 1e-5
            assert (run.heads - alone.heads).abs().max() < 1e-4


def test_a_patch_of_the_last_token_takes_one_row() -> None:
    tokens = [(0, 1, 2, 3, 4), (0, 9, 8, 7, 6)]
    branches = [Branch(t, (ablated("head", 1, [4], h),)) for t in tokens for h in range(10)]
    assert len(pack(branches, 1).tokens()) == 2 * 4 + 20
    assert [len(group) for group in chunks(branches, 1, 14)] == [10, 10]
