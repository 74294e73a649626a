"""Packed runs equal plain TransformerLens hook runs, in every architecture and for every edit."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hook_runs import as_hook, plain, tokens
from tiny import ARCHITECTURES, tiny_lens, tiny_tokenizer

from lab.engine.edits import Block, Edit, ablated, knockout, scaled, set_to
from lab.engine.forward import Keep
from lab.engine.lens import Lens
from lab.engine.packing import Branch
from lab.errors import LabError

lens_of = cache(tiny_lens)


def changes_for(lens: Lens, length: int) -> dict[str, tuple[Edit | Block, ...]]:
    """One of each kind of change, at the decision, earlier, and at several positions."""
    last, d_head = length - 1, lens.bridge.cfg.d_head
    generator = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).to(lens.dtype)

    width = lens.config.hidden_size
    pool = draw(5, d_head)
    return {
        "set head": (set_to("head", 2, [last], draw(d_head), head=1),),
        "set head at three positions": (
            set_to("head", 1, [length - 9, length - 4, last], draw(3, d_head), head=3),
        ),
        "set mlp": (set_to("mlp", 1, [last - 2], draw(width)),),
        "set resid_pre": (set_to("resid_pre", 3, [last], draw(width)),),
        "set resid_post": (set_to("resid_post", 0, [last - 5, last], draw(2, width)),),
        "scale head": (scaled("head", 3, [last], 2.5, head=0),),
        "zero head": (ablated("head", 0, [last], 2),),
        "mean head": (ablated("head", 2, [last], 0, how="mean", reference=pool),),
        "resample head": (ablated("head", 2, [last], 0, how="resample", reference=pool, pick=7),),
        "zero mlp": (ablated("mlp", 3, [last]),),
        "block one head": (Block(2, (last,), (3, 4, last - 4, last - 1), (1,)),),
        "block a span in all layers": knockout(
            range(length - 6, length), range(4, length - 8), range(lens.n_layers)
        ),
        "several at once": (
            ablated("head", 1, [last], 1),
            scaled("mlp", 2, [last - 3], 0.5),
            Block(3, (last, last - 3), (0, 5, last - 4)),
        ),
    }


def check_changes(lens: Lens, tolerance: float, *, skip: tuple[str, ...] = ()) -> None:
    ids = tokens()
    kinds = {k: c for k, c in changes_for(lens, len(ids)).items() if k not in skip}
    branches = [Branch(ids), *(Branch(ids, changes) for changes in kinds.values())]
    lens.forget()
    runs = lens.run(branches)
    clean = plain(lens, ids)[-1]
    assert np.abs(runs[0].logits[0] - clean).max() < tolerance
    for (kind, changes), run in zip(kinds.items(), runs[1:], strict=True):
        wanted = plain(lens, ids, [as_hook(change) for change in changes])[-1]
        assert np.abs(wanted - clean).max() > 10 * tolerance or "resid_post" in kind, (
            f"{kind} changes nothing, so it tests nothing"
        )
        assert np.abs(run.logits[0] - wanted).max() < tolerance, kind


@pytest.mark.parametrize("architecture", ARCHITECTURES)
class TestEveryArchitecture:
    def test_each_kind_of_change_equals_a_plain_hook_run(self, architecture: str) -> None:
        lens = lens_of(architecture)
        assert lens.packed and lens.grow and lens.knockouts, lens.notes
        check_changes(lens, 1e-4)

    def test_all_heads_at_the_decision_equal_single_hook_runs(self, architecture: str) -> None:
        lens, ids = lens_of(architecture), tokens()
        source = lens.run([Branch(tokens(24, seed=3))], Keep(heads=True))[0].heads
        pairs = [(la, h) for la in range(lens.n_layers) for h in range(lens.n_heads)]
        edits = [set_to("head", la, [len(ids) - 1], source[la, h], h) for la, h in pairs]
        runs = lens.run([Branch(ids, (e,)) for e in edits])
        for edit, run in zip(edits, runs, strict=True):
            wanted = plain(lens, ids, [as_hook(edit)])[-1]
            assert np.abs(run.logits[0] - wanted).max() < 1e-4

    def test_branches_of_different_texts_do_not_see_each_other(self, architecture: str) -> None:
        lens = lens_of(architecture)
        stem = tokens(20)
        texts = [stem + tokens(n, seed=n) for n in (2, 7, 13, 1)]
        branches = [
            Branch(text, (ablated("head", 1, [len(text) - 1], 0),) if i % 2 else (),
                   keep=tuple(range(len(text) - 2, len(text))))
            for i, text in enumerate(texts)
        ]  # fmt: skip
        runs = lens.run(branches)
        for branch, run in zip(branches, runs, strict=True):
            wanted = plain(lens, branch.tokens, [as_hook(c) for c in branch.changes])[-2:]
            assert np.abs(run.logits - wanted).max() < 1e-4

    def test_reading_equals_the_rows_of_a_full_cache(self, architecture: str) -> None:
        lens, ids = lens_of(architecture), tokens()
        everything = Keep(attention=True, value_norms=True, heads=True, mlp=True, resid=True)
        run = lens.run([Branch(ids, keep=(22, 29))], everything)[0]
        cache = lens.cache(ids)
        for layer in range(lens.n_layers):
            pattern = cache["pattern", layer][0, :, [22, 29]]
            assert np.abs(run.attention[layer] - pattern.numpy()).max() < 1e-5
            z = cache["z", layer][0, [22, 29]].transpose(0, 1)
            assert (run.heads[layer] - z).abs().max() < 1e-4
            assert (run.mlp[layer] - cache["mlp_out", layer][0, [22, 29]]).abs().max() < 1e-4
            assert (run.resid[layer] - cache["resid_post", layer][0, [22, 29]]).abs().max() < 1e-4
            self._check_norms(lens, run, cache, layer)
        assert np.allclose(run.attention.sum(-1), 1, atol=1e-5)
        assert not run.attention[:, :, 0, 23:].any(), "a token looks ahead"

    @staticmethod
    def _check_norms(lens: Lens, run: Any, cache: Any, layer: int) -> None:
        values = cache["v", layer][0]  # [key, kv_head, d_head]
        w_o = lens.bridge.blocks[layer].attn.W_O
        share = lens.n_heads // values.shape[1]
        window = lens.window(layer) or len(values)
        for head in range(lens.n_heads):
            wanted = (values[:, head // share] @ w_o[head]).norm(dim=-1).numpy()
            assert np.allclose(run.value_norms[layer, head, -window:], wanted[-window:], atol=1e-3)

    def test_patching_a_run_with_its_own_activations_changes_nothing(
        self, architecture: str
    ) -> None:
        lens, ids = lens_of(architecture), tokens()
        last = len(ids) - 1
        own = lens.run([Branch(ids)], Keep(heads=True, mlp=True, resid=True))[0]
        edits = [
            *(set_to("head", la, [last], own.heads[la, h], h)
              for la in range(lens.n_layers) for h in range(lens.n_heads)),
            *(set_to("mlp", la, [last], own.mlp[la]) for la in range(lens.n_layers)),
            *(set_to("resid_post", la, [last], own.resid[la]) for la in range(lens.n_layers)),
        ]  # fmt: skip
        for run in lens.run([Branch(ids, (e,)) for e in edits]):
            assert np.abs(run.logits[0] - own.logits[0]).max() < 1e-5

    def test_patching_the_last_residual_carries_the_whole_decision_over(
        self, architecture: str
    ) -> None:
        lens, target, source = lens_of(architecture), tokens(30), tokens(21, seed=5)
        given = lens.run([Branch(source)], Keep(resid=True))[0]
        edit = set_to("resid_post", lens.n_layers - 1, [29], given.resid[-1])
        run = lens.run([Branch(target, (edit,))])[0]
        assert np.abs(run.logits - given.logits).max() < 1e-4

    def test_blocked_tokens_have_no_say(self, architecture: str) -> None:
        """Cutting a span off from all later positions in all layers makes it irrelevant."""
        lens, ids = lens_of(architecture), tokens(30)
        changed = (*ids[:21], *tokens(4, seed=9), *ids[25:])
        cut = knockout(range(25, 30), range(21, 25), range(lens.n_layers))
        a, b = (lens.run([Branch(t, cut)])[0].logits for t in (ids, changed))
        assert np.abs(a - b).max() < 1e-5
        assert np.abs(plain(lens, ids)[-1] - plain(lens, changed)[-1]).max() > 1e-2

    def test_without_growth_or_packing_the_numbers_stay(self, architecture: str) -> None:
        lens = lens_of(architecture)
        try:
            lens.grow = False
            check_changes(lens, 1e-4)
            lens.packed = False
            check_changes(lens, 1e-4)
        finally:
            lens.grow = lens.packed = True

    def test_asked_logits_equal_those_of_the_whole_vocabulary(self, architecture: str) -> None:
        lens, ids = lens_of(architecture), tokens()
        asked = lens.run([Branch(ids)], Keep(logits=(7, 3)))[0].logits
        assert np.abs(asked[0] - plain(lens, ids)[-1][[7, 3]]).max() < 1e-4

    def test_greedy_generation_equals_hugging_face(self, architecture: str) -> None:
        lens, ids = lens_of(architecture), tokens()
        out = lens.twin.generate(
            torch.tensor([ids]), do_sample=False, max_new_tokens=8, eos_token_id=None,
            attention_mask=torch.ones(1, len(ids), dtype=torch.long), pad_token_id=0,
        )  # fmt: skip
        wanted = out[0, len(ids) :].tolist()
        end = lens.tokenizer.eos_token_id
        if end in wanted:
            wanted = wanted[: wanted.index(end)]
        assert list(lens.generate(ids, max_new_tokens=8)) == wanted[:8]

    def test_bfloat16_costs_no_more_packed_than_plain(self, architecture: str) -> None:
        """Typically within 0.01 of the largest logit (bfloat16 steps are 0.004 to 0.008 of a
        number), and about as far from the float32 run as plain bfloat16 is, since
        both round.
        """
        lens, exact = lens_of(architecture, torch.bfloat16), lens_of(architecture)
        assert lens.packed and lens.grow and lens.knockouts, lens.notes
        ids = tokens()
        changes = changes_for(lens, len(ids))
        runs = lens.run([Branch(ids, c) for c in changes.values()])
        gaps = []
        for change, run in zip(changes.values(), runs, strict=True):
            hooks = [as_hook(c) for c in change]
            wanted, truth = plain(lens, ids, hooks)[-1], plain(exact, ids, hooks)[-1]
            step = 1e-2 * max(1.0, float(np.abs(wanted).max()))
            gaps.append(np.abs(run.logits[0] - wanted) / (100 * step))
            assert np.abs(run.logits[0] - truth).max() < 2 * np.abs(wanted - truth).max() + step
        assert np.median(np.stack(gaps)) < 1e-2


def test_trunks_are_reused_and_give_the_same_numbers() -> None:
    lens = lens_of("llama")
    ids, other = tokens(40), tokens(25) + tokens(9, seed=2)
    assert ids[:25] == other[:25]
    lens.forget()
    fresh = lens.run([Branch(other)])[0].logits
    lens.forget()
    lens.run([Branch(ids)])
    again = lens.run([Branch(other)])[0].logits
    assert np.abs(fresh - again).max() < 1e-5


def test_a_windowed_trunk_is_never_cut() -> None:
    lens = lens_of("gemma3")
    long, short = tokens(40), tokens(25)
    lens.forget()
    lens.run([Branch(long)])
    assert np.abs(lens.run([Branch(short)])[0].logits[0] - plain(lens, short)[-1]).max() < 1e-4


def test_many_branches_are_split_without_changing_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    lens, ids = lens_of("qwen2"), tokens()
    branches = [
        Branch(ids, (ablated("head", la, [29], h),))
        for la in range(lens.n_layers) for h in range(lens.n_heads)
    ]  # fmt: skip
    together = [r.logits for r in lens.run(branches)]
    monkeypatch.setattr("lab.engine.lens.MOST_SCORE_BYTES", 4 * 4 * 3 * 33)
    apart = [r.logits for r in lens.run(branches)]
    assert max(np.abs(a - b).max() for a, b in zip(together, apart, strict=True)) < 1e-5


def test_hooks_are_gone_after_an_error() -> None:
    lens, ids = lens_of("llama"), tokens()
    clean = plain(lens, ids)
    wrong = set_to("head", 1, [29], torch.zeros(3), head=0)
    with pytest.raises(LabError, match="vectors of size 3"):
        lens.run([Branch(ids, (wrong,))])
    assert np.array_equal(plain(lens, ids), clean)


def test_a_site_that_an_architecture_lacks_is_an_error_not_a_zero() -> None:
    ids = tokens()
    width = lens_of("gpt_neox").config.hidden_size
    edit = set_to("resid_mid", 1, [29], torch.zeros(width))
    try:
        run = lens_of("gpt_neox").run([Branch(ids, (edit,))])[0]
    except LabError as error:
        assert "resid_mid" in str(error)
    else:  # parallel blocks have no middle; if a hook is offered it must at least do something
        assert np.abs(run.logits[0] - plain(lens_of("gpt_neox"), ids)[-1]).max() > 1e-4


def test_tokens_shown_are_tokens_fed() -> None:
    lens = lens_of("llama")
    text = "The harbour of Kestrel"
    ids = tiny_tokenizer()(text, add_special_tokens=False).input_ids
    assert lens.tokenizer(text, add_special_tokens=False).input_ids == ids
    assert lens.bridge.tokenizer(text, add_special_tokens=False).input_ids == ids
