"""The measurements on tiny models: equal to plain runs by hand, right where the truth is known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
import xarray as xr
from tiny import tiny_lens, tiny_tokenizer

from lab.data import Example, Mark, Passage, altered, candidate_rungs
from lab.engine.lens import Lens
from lab.instruments.behaviour import Behaviour, answer, as_array, judge, measure_behaviour
from lab.instruments.case import Case
from lab.instruments.names import CONTRASTS, JUDGED_CONTROLS, READING_ROLES, RUNGS
from lab.instruments.patching import (
    Contrast,
    Patched,
    contrasts,
    decision_logits,
    measure_patching,
)
from lab.instruments.reading import (
    measure_answering,
    measure_reading,
    membership,
    quantised,
)
from lab.instruments.summaries.reading import regions
from lab.roles import MARKS, SPANS, Prompt, Prompter, label_mass, log_odds

LENSES = ("llama", "gemma3", "gpt_neox")


def harbour(place: str, year: str, wrong: str) -> Example:
    text = f"The harbour of {place} was built in {year}. It burned in {wrong}."
    start = text.index(year)
    return Example(
        id=place, dataset="tiny", family="f", question=f"When was {place} built?",
        passages=(Passage(text, place), Passage("Nothing else is known.", "Notes")),
        answers=((year,),), evidence=(Mark(0, 0, start + 5),),
        answer_marks=(Mark(0, start, start + 4),), distractors=(wrong,), cluster=place,
    )  # fmt: skip


EXAMPLES = (harbour("Kestrel", "1871", "2019"), harbour("Orvane", "1902", "1899"))


@cache
def lens_of(architecture: str) -> Lens:
    lens = tiny_lens(architecture)
    # Rotary positions have no weights, so the window of the tests' tiny models can be widened.
    lens.config.max_position_embeddings = 2048
    return lens


@cache
def case_of(architecture: str = "llama") -> Case:
    lens, first = lens_of(architecture), EXAMPLES[0]
    prompter = Prompter(tiny_tokenizer())
    return Case(
        lens, prompter, first, EXAMPLES[1], candidate_rungs(first, EXAMPLES),
        altered(first, EXAMPLES), prompter.verdict_tokens(),
    )  # fmt: skip


@cache
def behaviour_of(architecture: str = "llama") -> Behaviour:
    return measure_behaviour(case_of(architecture))


@pytest.fixture
def even() -> Iterator[Case]:
    """A model whose queries are zero, so that it attends to all earlier tokens evenly."""
    lens = tiny_lens("llama")
    lens.config.max_position_embeddings = 2048
    for layer in lens.twin.model.layers:
        layer.self_attn.q_proj.weight.zero_()
    yield replace(case_of(), lens=lens, _prompts={})


def plain(lens: Lens, prompt: Prompt, hooks: list[object] | None = None) -> np.ndarray:
    """The decision's logits from TransformerLens alone."""
    with torch.no_grad():
        ids = torch.tensor([prompt.token_ids])
        return lens.bridge.run_with_hooks(ids, fwd_hooks=hooks or [])[0, -1].float().numpy()


# --- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", LENSES)
@pytest.mark.parametrize("role", READING_ROLES)
def test_reading_equals_a_full_cache_read_by_hand(architecture: str, role: str) -> None:
    case = case_of(architecture)
    prompt = case.prompt(role, "2019")
    case.lens.forget()
    reading = measure_reading(case, prompt)
    patterns = case.lens.cache(prompt)
    for layer in range(case.lens.n_layers):
        rows = patterns["pattern", layer][0].numpy()
        assert np.abs(reading.attention[layer] - rows[:, -1]).max() < 1e-5
        for i, span in enumerate(SPANS):
            by_hand = rows[:, -1, list(prompt.where(span))].sum(-1)
            assert np.allclose(reading.mass[layer, :, i], by_hand, atol=1e-5)
        for i, mark in enumerate(MARKS):
            by_hand = rows[:, -1, list(prompt.where(mark))].sum(-1)
            assert np.allclose(reading.mark_mass[layer, :, i], by_hand, atol=1e-5)
        asked = list(prompt.where("candidate"))
        if asked:
            by_hand = rows[:, asked][:, :, list(prompt.where("context"))].sum(-1).mean(-1)
            assert np.allclose(reading.candidate_to_context[layer], by_hand, atol=1e-5)
        else:
            assert np.isnan(reading.candidate_to_context).all()


def test_norm_weighted_mass_equals_values_times_w_o_by_hand() -> None:
    case = case_of("llama")
    prompt = case.prompt("generator")
    reading, patterns = measure_reading(case, prompt), case.lens.cache(prompt)
    for layer in range(case.lens.n_layers):
        values = patterns["v", layer][0]
        w_o = case.lens.bridge.blocks[layer].attn.W_O
        for head in range(case.lens.n_heads):
            share = case.lens.n_heads // values.shape[1]
            norms = (values[:, head // share] @ w_o[head]).norm(dim=-1).numpy()
            weighted = patterns["pattern", layer][0, head, -1].numpy() * norms
            for i, span in enumerate(SPANS):
                wanted = weighted[list(prompt.where(span))].sum() / weighted.sum()
                assert reading.norm_mass[layer, head, i] == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("architecture", LENSES)
@pytest.mark.parametrize("role", READING_ROLES)
def test_masses_sum_to_one_and_tokens_are_all_counted(architecture: str, role: str) -> None:
    case = case_of(architecture)
    prompt = case.prompt(role, "2019")
    reading = measure_reading(case, prompt)
    assert np.allclose(reading.mass.sum(-1), 1, atol=1e-5)
    assert np.allclose(reading.norm_mass.sum(-1), 1, atol=1e-5)
    assert reading.span_tokens.sum() == len(prompt)
    spans, marks = membership(prompt)
    assert (spans.sum(1) == 1).all()
    assert (reading.mark_tokens == marks.sum(0)).all()
    assert (reading.mark_mass <= 1 + 1e-6).all()


def test_even_attention_gives_each_span_its_share_of_the_tokens(even: Case) -> None:
    for role in READING_ROLES:
        reading = measure_reading(even, even.prompt(role, "2019"))
        share = reading.span_tokens / reading.span_tokens.sum()
        assert np.allclose(reading.mass, share, atol=1e-5)


def test_even_attention_has_enrichment_one_in_the_summaries(even: Case) -> None:
    """The four normalisations are made by the summaries from what is measured here."""
    readings = [measure_reading(even, even.prompt(role, "2019")) for role in READING_ROLES]
    dims = {"mass": "span", "norm_mass": "span", "mark_mass": "mark", "norm_mark_mass": "mark"}
    sizes = {"span_tokens": "span", "mark_tokens": "mark"}

    def stacked(name: str) -> np.ndarray:
        return np.stack([getattr(reading, name) for reading in readings])[None]

    arrays = {n: (("example", "role", "layer", "head", d), stacked(n)) for n, d in dims.items()}
    counts = {n: (("example", "role", d), stacked(n)) for n, d in sizes.items()}
    dataset = xr.Dataset(
        arrays | counts,
        coords={"role": list(READING_ROLES), "span": list(SPANS), "mark": list(MARKS)},
    )
    enriched = regions(dataset, "enrichment").values
    assert np.allclose(enriched[np.isfinite(enriched)], 1, atol=1e-4)
    first = readings[0]
    without_sink = regions(dataset, "sink_excluded").sel(role="generator", region="context")
    tokens = dict(zip(SPANS, first.span_tokens, strict=True))
    wanted = tokens["context"] / (first.span_tokens.sum() - tokens["sink"])
    assert np.allclose(without_sink, wanted, atol=1e-5)


def test_reading_over_an_answer_equals_the_mean_of_its_rows_by_hand() -> None:
    case = case_of()
    prompt = case.prompt("generator")
    ids = tuple(tiny_tokenizer()("1871, I think", add_special_tokens=False).input_ids)
    reading = measure_answering(case, prompt, ids)
    patterns = case.lens.cache((*prompt.token_ids, *ids[:-1]))
    for layer in range(case.lens.n_layers):
        rows = patterns["pattern", layer][0, :, prompt.decision :].mean(1).numpy()
        for i, span in enumerate(SPANS):
            by_hand = rows[:, list(prompt.where(span))].sum(-1)
            assert np.allclose(reading.mass[layer, :, i], by_hand, atol=1e-5)
    total = reading.mass.sum(-1)
    assert (total <= 1 + 1e-5).all()
    assert (total < 1 - 1e-6).any(), "no head looks at the answer itself, so nothing is tested"
    assert (reading.norm_mass.sum(-1) <= 1 + 1e-5).all()


def test_an_answer_of_one_token_is_read_at_the_decision() -> None:
    case = case_of()
    prompt = case.prompt("generator")
    one, whole = measure_answering(case, prompt, (7,)), measure_reading(case, prompt)
    assert np.allclose(one.mass, whole.mass, atol=1e-6)
    assert np.allclose(one.norm_mass, whole.norm_mass, atol=1e-6)


def test_rounding_to_bytes_is_off_by_at_most_half_a_step() -> None:
    values = np.linspace(0, 1, 1001, dtype=np.float32)
    assert np.abs(quantised(values) / 255 - values).max() <= 1 / 510 + 1e-6


# --- behaviour ----------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", LENSES)
def test_the_whole_ladder_judged_at_once_equals_single_plain_runs(architecture: str) -> None:
    case, found = case_of(architecture), behaviour_of(architecture)
    assert set(found.candidates) <= set(RUNGS)
    assert len(found.candidates) >= 5
    for rung, text in found.candidates.items():
        row = plain(case.lens, case.prompt("evaluator", text))
        assert found.verdicts[rung].log_odds == pytest.approx(log_odds(row, case.verdict), abs=1e-3)
        assert found.verdicts[rung].label_mass == pytest.approx(
            label_mass(row, case.verdict), abs=1e-4
        )


@pytest.mark.parametrize("architecture", LENSES)
def test_controls_equal_single_plain_runs(architecture: str) -> None:
    case, found = case_of(architecture), behaviour_of(architecture)
    assert set(found.controls) == set(JUDGED_CONTROLS)
    wrong = case.rungs["same_type"]
    for name, judged in found.controls.items():
        prompt = case.control(name, found.answer_raw, wrong)
        assert prompt is not None
        row = plain(case.lens, prompt)
        assert judged.log_odds == pytest.approx(log_odds(row, case.verdict), abs=1e-3)


def test_a_ladder_runs_what_its_prompts_share_once(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of()
    prompts = [case.prompt("evaluator", text) for text in ("1871", "2019", "", "Kestrel")]
    case.lens.forget()
    run: list[int] = []
    hook = case.lens.twin.base_model.register_forward_pre_hook(
        lambda _, args, kwargs: run.append(kwargs["input_ids"].shape[1]), with_kwargs=True
    )
    try:
        judge(case, prompts)
    finally:
        hook.remove()
    shortest = min(map(len, prompts))
    assert len(run) == 1, "the trunk was run more than once"
    assert shortest * 0.5 < run[0] < shortest


def test_judging_does_not_depend_on_the_company() -> None:
    case = case_of()
    texts = ("1871", "2019", "", "the harbour of Kestrel, which burned", "?")
    together = judge(case, [case.prompt("evaluator", text) for text in texts])
    for text, found in zip(texts, together, strict=True):
        [alone] = judge(case, [case.prompt("evaluator", text)])
        assert found.log_odds == pytest.approx(alone.log_odds, abs=1e-3)


def test_the_answer_is_the_greedy_first_line() -> None:
    case, prompt = case_of(), case_of().prompt("generator")
    ids = case.lens.generate(prompt.token_ids, max_new_tokens=32, stop=("\n",))
    text = case.lens.tokenizer.decode(ids, skip_special_tokens=True)
    assert answer(case.lens, prompt) == text.strip().split("\n")[0].strip()
    assert behaviour_of().answer_raw == answer(case.lens, prompt)


def test_the_right_answer_to_an_unanswerable_question_is_to_say_so() -> None:
    example = replace(EXAMPLES[0], answers=(), answer_marks=(), evidence=())
    rungs = candidate_rungs(example, EXAMPLES)
    case = replace(case_of(), example=example, rungs=rungs, changed=None, _prompts={})
    found = measure_behaviour(case)
    assert found.right("gold")
    assert found.candidates["gold"] != ""
    assert "empty" not in found.candidates
    assert not found.right("same_type")


def test_without_another_example_the_swapped_context_is_missing() -> None:
    found = measure_behaviour(replace(case_of(), other=None, _prompts={}))
    assert set(JUDGED_CONTROLS) - set(found.controls) == {"context_swapped"}


def test_missing_values_are_nan_in_the_order_asked() -> None:
    found = as_array({"b": 2.0}, ("a", "b"))
    assert np.isnan(found[0])
    assert found[1] == 2


# --- patching -----------------------------------------------------------------------------------


@cache
def patched_of(architecture: str, name: str) -> tuple[Contrast, Patched]:
    case = case_of(architecture)
    found = contrasts(case, behaviour_of(architecture))
    if name == "role" and name not in found:
        # Both runs of this random model say the same; compare the tokens that differ most then.
        a = case.prompt("generator")
        b = case.prompt("evaluator", behaviour_of(architecture).answer_raw)
        gap = np.subtract(*decision_logits(case.lens, a, b))
        up, down = int(gap.argmax()), int(gap.argmin())
        found[name] = Contrast(a, b, lambda row: float(row[up] - row[down]))
    return found[name], measure_patching(case.lens, found[name])


def hook_loop(lens: Lens, contrast: Contrast, kind: str) -> np.ndarray:
    """Effects of all single patches, one TransformerLens run each: [direction, ...]."""
    prompts = (contrast.a, contrast.b)
    caches = [lens.cache(p) for p in prompts]
    site = {"head": "z", "mlp": "mlp_out", "resid": "resid_post"}[kind]
    hook_name = {"head": "attn.hook_z", "mlp": "hook_mlp_out", "resid": "hook_resid_post"}[kind]
    heads = range(lens.n_heads) if kind == "head" else [None]
    out = []
    for source, target in ((0, 1), (1, 0)):
        for layer in range(lens.n_layers):
            given = caches[source][site, layer][0, -1]
            for head in heads:

                def put(value: torch.Tensor, hook: object, head=head, given=given) -> torch.Tensor:
                    value = value.clone()
                    if head is None:
                        value[0, -1] = given
                    else:
                        value[0, -1, head] = given[head]
                    return value

                row = plain(lens, prompts[target], [(f"blocks.{layer}.{hook_name}", put)])
                out.append(contrast.effect(row))
    return np.array(out).reshape(2, lens.n_layers, *([len(heads)] if kind == "head" else []))


@pytest.mark.parametrize("name", CONTRASTS)
@pytest.mark.parametrize("architecture", LENSES)
def test_patching_equals_a_hook_loop_over_everything(architecture: str, name: str) -> None:
    lens = lens_of(architecture)
    contrast, patched = patched_of(architecture, name)
    assert np.abs(patched.head - hook_loop(lens, contrast, "head")).max() < 1e-3
    assert np.abs(patched.layer[:, 0] - hook_loop(lens, contrast, "mlp")).max() < 1e-3
    assert np.abs(patched.layer[:, 1] - hook_loop(lens, contrast, "resid")).max() < 1e-3


@pytest.mark.parametrize("name", CONTRASTS)
@pytest.mark.parametrize("architecture", LENSES)
def test_the_last_residual_restores_everything_in_both_directions(
    architecture: str, name: str
) -> None:
    contrast, patched = patched_of(architecture, name)
    a, b = patched.clean
    assert np.allclose(patched.layer[:, 1, -1], [a, b], atol=1e-3)
    if abs(a - b) > 0.1:
        restored = (patched.layer[:, 1, -1] - [b, a]) / (np.array([a, b]) - [b, a])
        assert np.allclose(restored, 1, atol=1e-2)
    else:
        assert architecture != "llama", "both runs decide alike, so nothing can be restored"
    rows = decision_logits(lens_of(architecture), contrast.a, contrast.b)
    if rows[0].argmax() != rows[1].argmax():
        assert patched.layer_flip[:, 1, -1].tolist() == [1, 1]


def test_clean_effects_are_those_of_plain_runs() -> None:
    for name in CONTRASTS:
        contrast, patched = patched_of("llama", name)
        rows = [plain(lens_of("llama"), p) for p in (contrast.a, contrast.b)]
        assert np.allclose(patched.clean, [contrast.effect(r) for r in rows], atol=1e-3)


def test_the_roles_prompts_that_are_patched_have_different_lengths() -> None:
    contrast, _ = patched_of("llama", "role")
    assert (contrast.a.role, contrast.b.role) == ("generator", "evaluator")
    assert len(contrast.a) != len(contrast.b)


def test_a_run_patched_with_itself_does_not_change() -> None:
    contrast, _ = patched_of("llama", "candidate")
    same = measure_patching(lens_of("llama"), replace(contrast, b=contrast.a))
    assert np.allclose(same.head, same.clean[0], atol=1e-3)
    assert np.allclose(same.layer, same.clean[0], atol=1e-3)
    assert not same.head_flip.any()
    assert not same.layer_flip.any()


def test_flips_are_changes_of_the_most_likely_token() -> None:
    seen = set()
    for architecture in LENSES:
        lens = lens_of(architecture)
        for name in CONTRASTS:
            contrast, patched = patched_of(architecture, name)
            given, usual = lens.cache(contrast.a), plain(lens, contrast.b).argmax()
            for layer in range(lens.n_layers):

                def put(
                    value: torch.Tensor, hook: object, given=given, layer=layer
                ) -> torch.Tensor:
                    value = value.clone()
                    value[0, -1] = given["resid_post", layer][0, -1]
                    return value

                row = plain(lens, contrast.b, [(f"blocks.{layer}.hook_resid_post", put)])
                changed = bool(row.argmax() != usual)
                assert patched.layer_flip[0, 1, layer] == changed
                seen.add(changed)
    assert seen == {True, False}, "no patch flips, or all do, so nothing is tested"


def test_contrasts_that_cannot_be_told_apart_are_left_out() -> None:
    case = case_of()
    # 1871 and 1872 begin with the same token, so their first tokens tell nothing apart.
    same = replace(case, changed=replace(case.example, answers=(("1872",),)), _prompts={})
    assert "passage" in contrasts(case, behaviour_of())
    assert "passage" not in contrasts(same, behaviour_of())
    assert "passage" not in contrasts(replace(case, changed=None, _prompts={}), behaviour_of())
    agreeing = replace(behaviour_of(), candidates={"own": "x", "gold": "1871"})
    assert "candidate" not in contrasts(case, agreeing)
