"""Models that break what packing or hooks rely on: exact in another way, or refused in words."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hook_runs import as_hook, plain, tokens
from tiny import BORDER, UNUSUAL, tiny_lens, tiny_model, tiny_tokenizer

from lab.engine import traits
from lab.engine.edits import Block, ablated
from lab.engine.forward import Keep
from lab.engine.lens import Lens, lens_from
from lab.engine.packing import Branch
from lab.errors import LabError

lens_of = cache(tiny_lens)


def gap(lens: Lens, branches: list[Branch]) -> float:
    """Largest difference of the branches' logits from plain hook runs."""
    gaps = [
        np.abs(run.logits - plain(lens, b.tokens, [as_hook(c) for c in b.changes])[list(b.kept)])
        for b, run in zip(branches, lens.run(branches), strict=True)
    ]
    return max(float(g.max()) for g in gaps)


def sweep(lens: Lens, ids: tuple[int, ...], *positions: int) -> list[Branch]:
    return [
        Branch(ids, (ablated("head", layer, [position], head),))
        for layer in range(lens.n_layers) for head in range(lens.n_heads) for position in positions
    ]  # fmt: skip


class TestKnockouts:
    """Some bridges show attention scores that the model has already used: edits go nowhere."""

    @pytest.mark.parametrize("architecture", ["gptj", "opt", "gpt_neo"])
    def test_where_they_would_do_nothing_they_are_refused(self, architecture: str) -> None:
        lens, ids = lens_of(architecture), tokens()
        assert any("cannot be cut" in note for note in lens.notes)
        with pytest.raises(LabError, match=r"edges of tiny .* cannot be cut"):
            lens.run([Branch(ids, (Block(1, (29,), (4, 5)),))])

    @pytest.mark.parametrize("architecture", ["gptj", "opt"])
    def test_all_else_is_exact_there(self, architecture: str) -> None:
        lens, ids = lens_of(architecture), tokens()
        assert lens.packed and lens.grow
        assert gap(lens, sweep(lens, ids, 29)) < 1e-4
        attention = lens.run([Branch(ids)], Keep(attention=True))[0].attention
        wanted = lens.cache(ids)["pattern", 2][0, :, -1].numpy()
        assert np.allclose(attention[2, :, 0], wanted, atol=1e-5)


class TestMasksByRow:
    """GPT-Neo masks by a row's number, in a table as large as its longest sequence."""

    def test_large_sweeps_are_exact_since_nothing_is_packed(self) -> None:
        lens, ids = lens_of("gpt_neo"), tokens(70)
        assert not lens.packed
        assert sum("one by one" in note for note in lens.notes) == 1
        assert gap(lens, sweep(lens, ids, 20, 69)) < 1e-4

    @pytest.mark.parametrize(
        ("sizes", "told"),
        [
            ({"window_size": 256}, "gave other logits"),
            ({"window_size": 256, "max_position_embeddings": 280}, "failed"),
        ],
    )
    def test_the_self_check_would_see_it_in_a_model_that_does_not_say_so(
        self, sizes: dict[str, int], told: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(traits, "masks_by_row", lambda config: False)
        model = tiny_model("gpt_neo", config=UNUSUAL["gpt_neo"](**sizes))
        lens = lens_from(model, tiny_tokenizer(), name="a tiny silent GPT-Neo")
        assert not lens.packed
        assert any(f"one by one, because the fastest way {told}" in note for note in lens.notes)


class TestLongRope:
    """Beyond the original length all tokens are embedded otherwise, those of a trunk too."""

    @pytest.mark.parametrize("length", [BORDER - 1, BORDER, BORDER + 1, BORDER + 20])
    def test_each_length_is_exact_whatever_ran_before(self, length: int) -> None:
        lens, ids = lens_of("phi3_longrope"), tokens(BORDER + 30)
        for before in (None, 25, BORDER, BORDER + 1, BORDER + 30):
            lens.forget()
            if before:
                lens.run([Branch(ids[:before])])
            asked = [Branch(ids[:length]), Branch(ids[:length], keep=(25, length - 1))]
            assert gap(lens, [*asked, *sweep(lens, ids[:length], 30)[::5]]) < 1e-4, before

    def test_branches_of_both_sides_run_in_one_call(self) -> None:
        lens, ids = lens_of("phi3_longrope"), tokens(BORDER + 9)
        lens.forget()
        lengths = (BORDER + 9, BORDER - 3, BORDER + 1, BORDER)
        assert gap(lens, [Branch(ids[:n]) for n in lengths]) < 1e-4

    def test_an_answer_that_crosses_the_border_is_the_greedy_one(self) -> None:
        lens, ids = lens_of("phi3_longrope"), tokens(BORDER - 3, seed=4)
        wanted = list(ids)
        for _ in range(8):
            wanted.append(int(plain(lens, tuple(wanted))[-1].argmax()))
        assert not lens.end_ids() & set(wanted)
        assert lens.generate(ids, max_new_tokens=8) == tuple(wanted[len(ids) :])

    def test_dynamic_scaling_has_no_border_within_the_window(self) -> None:
        lens, ids = lens_of("llama_dynamic"), tokens(64)
        for length in (64, 30, 63):
            assert gap(lens, [Branch(ids[:length])]) < 1e-4


@pytest.mark.parametrize("architecture", ["granite", "cohere"])
class TestScaledLogits:
    def test_asked_logits_equal_those_of_the_whole_vocabulary(self, architecture: str) -> None:
        lens, ids = lens_of(architecture), tokens()
        wanted = plain(lens, ids)[-1][[7, 3]]
        assert lens.asked_logits
        try:
            for lens.packed in (True, False):
                asked = lens.run([Branch(ids)], Keep((7, 3)))[0].logits
                assert np.allclose(asked[0], wanted, atol=1e-5)
        finally:
            lens.packed = True


def test_a_model_that_cannot_use_the_fused_kernel_says_so_and_is_exact() -> None:
    lens, ids = lens_of("gemma2"), tokens()
    assert any("trunks run on plain attention" in note for note in lens.notes)
    assert not any("plain attention" in note for note in lens_of("gemma3").notes)
    lens.forget()
    assert gap(lens, sweep(lens, ids, 29)) < 1e-4


def test_where_rows_cannot_be_born_later_all_run_through_all_layers() -> None:
    lens, ids = lens_of("gpt_bigcode"), tokens()
    assert lens.packed and not lens.grow
    assert any("through all layers, because the fastest way failed" in n for n in lens.notes)
    assert gap(lens, sweep(lens, ids, 29)) < 1e-4


@pytest.mark.parametrize(
    ("architecture", "told"),
    [
        ("bloom", "BloomForCausalLM, is not supported: .* tested: Llama, Qwen2"),
        ("mpt", "MptForCausalLM, is not supported: .* tested: Llama, Qwen2"),
        ("gpt_oss", "not a distribution over tokens"),
    ],
)
def test_what_cannot_be_run_is_refused_in_words(architecture: str, told: str) -> None:
    with pytest.raises(LabError, match=told):
        tiny_lens(architecture)


def test_a_broken_model_is_refused_in_words() -> None:
    model: Any = tiny_model("llama")
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight.fill_(torch.nan)
    with pytest.raises(LabError, match="logits that are not numbers"):
        lens_from(model, tiny_tokenizer(), name="a broken Llama")
