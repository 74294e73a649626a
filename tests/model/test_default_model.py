"""The default model, for real: what the lab measures on it equals plain TransformerLens."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

import lab
from lab.data import candidate_rungs, load_examples
from lab.engine.edits import set_to
from lab.engine.forward import Keep
from lab.engine.lens import Lens
from lab.engine.packing import Branch
from lab.errors import LabError
from lab.instruments.behaviour import judge
from lab.instruments.case import Case
from lab.instruments.reading import measure_reading
from lab.roles import SPANS, Prompter, label_mass, log_odds

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def lens() -> Lens:
    try:
        return lab.load_lens()
    except LabError as error:
        pytest.skip(f"the default model cannot be had: {error}")


@pytest.fixture(scope="module")
def case(lens: Lens) -> Case:
    examples = load_examples("builtin:extract")
    example = next(e for e in examples if e.answerable)
    prompter = Prompter(lens.tokenizer)
    rungs = candidate_rungs(example, examples.pool)
    return Case(lens, prompter, example, None, rungs, None, prompter.verdict_tokens())


def plain(lens: Lens, tokens: tuple[int, ...], hooks: list | None = None) -> np.ndarray:
    with torch.no_grad():
        out = lens.bridge.run_with_hooks(torch.tensor([tokens]), fwd_hooks=hooks or [])
    return out[0, -1].numpy()


def test_it_is_the_pinned_model_and_passes_its_self_check(lens: Lens) -> None:
    assert lens.name == "SmolLM2-135M-Instruct"
    assert (lens.n_layers, lens.n_heads, lens.parameters) == (30, 9, 134_515_008)
    assert lens.packed and lens.grow and lens.asked_logits and not lens.notes


def test_it_is_asked_as_is_known_to_suit_it_unless_told_otherwise(lens: Lens) -> None:
    examples = load_examples("builtin:extract")
    usual = lab.open_case(lens, examples[0], examples.pool).prompt("generator")
    short = lab.open_case(lens, examples[0], prompter=Prompter(lens.tokenizer)).prompt("generator")
    assert dict(lens.prompting) == {"format": "plain", "demonstrations": 4}
    assert "<|im_start|>" not in usual.text and usual.text.count("Question:") == 5
    assert "<|im_start|>" in short.text and short.text.count("Question:") == 1


def test_loading_it_again_takes_seconds(lens: Lens) -> None:
    start = time.perf_counter()
    lab.load_lens(check=False)
    assert time.perf_counter() - start < 20  # about two on a quiet machine


def test_a_sweep_over_all_heads_equals_hook_runs(lens: Lens, case: Case) -> None:
    target = case.prompt("evaluator", case.example.gold).token_ids
    source = lens.run([Branch(case.prompt("generator").token_ids)], Keep(heads=True))[0].heads
    assert source is not None
    last = len(target) - 1
    pairs = [(layer, head) for layer in range(lens.n_layers) for head in range(lens.n_heads)]
    runs = lens.run(
        [Branch(target, (set_to("head", la, [last], source[la, h], h),)) for la, h in pairs]
    )
    changes = []
    for layer, head in ((0, 0), (7, 4), (17, 7), (22, 1), (29, 8)):

        def patch(z: torch.Tensor, hook: object, layer: int = layer, head: int = head) -> object:
            z = z.clone()
            z[0, last, head] = source[layer, head, 0]
            return z

        wanted = plain(lens, target, [(f"blocks.{layer}.attn.hook_z", patch)])
        got = runs[pairs.index((layer, head))].logits
        assert got is not None
        assert np.abs(got[0] - wanted).max() < 1e-4 * max(1, np.abs(wanted).max())
        changes.append(np.abs(wanted - plain(lens, target)).max())
    assert max(changes) > 0.1, "none of these patches did anything"


def test_reading_equals_a_full_cache_summed_by_hand(lens: Lens, case: Case) -> None:
    prompt = case.prompt("evaluator", case.example.gold)
    reading = measure_reading(case, prompt)
    cache = lens.cache(prompt)
    for layer in (0, 11, 29):
        row = cache["pattern", layer][0, :, -1].numpy()
        for column, span in enumerate(SPANS):
            wanted = row[:, list(prompt.where(span))].sum(-1)
            assert np.allclose(reading.mass[layer, :, column], wanted, atol=1e-5)
    assert np.allclose(reading.mass.sum(-1), 1, atol=1e-4)
    assert np.abs(reading.logits - plain(lens, prompt.token_ids)).max() < 1e-3


def test_verdicts_of_a_ladder_equal_single_runs(lens: Lens, case: Case) -> None:
    prompts = [case.prompt("evaluator", text) for text in (case.example.gold, *case.rungs.values())]
    for prompt, verdict in zip(prompts, judge(case, prompts), strict=True):
        row = plain(lens, prompt.token_ids)
        assert verdict.log_odds == pytest.approx(log_odds(row, case.verdict), abs=1e-3)
        assert verdict.label_mass == pytest.approx(label_mass(row, case.verdict), abs=1e-3)


def test_the_greedy_answer_equals_hugging_face(lens: Lens, case: Case) -> None:
    tokens = case.prompt("generator").token_ids
    with torch.no_grad():
        out = lens.twin.generate(
            torch.tensor([tokens]), attention_mask=torch.ones(1, len(tokens), dtype=torch.long),
            do_sample=False, max_new_tokens=12, pad_token_id=0,
        )  # fmt: skip
    wanted = [t for t in out[0, len(tokens) :].tolist() if t != lens.tokenizer.eos_token_id]
    assert list(lens.generate(tokens, max_new_tokens=12)) == wanted
