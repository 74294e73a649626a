"""The exercises that need a model, on a tiny random one: by plain TransformerLens, and wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
import torch
from tiny import tiny_lens, tiny_tokenizer

from lab import Branch, knockout, measure_reading, teach
from lab.data import Example, Mark, Passage
from lab.instruments.case import Case
from lab.roles import SPANS, Prompt, Prompter, log_odds

TEXT = "The harbour of Kestrel was built in 1871. It burned in 2019."
LAYER, HEAD = 1, 2


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def case() -> Case:
    lens, prompter = tiny_lens("llama"), Prompter(tiny_tokenizer())
    lens.config.max_position_embeddings = 2048
    example = Example(
        id="Kestrel", dataset="tiny", family="f", question="When was Kestrel built?",
        passages=(Passage(TEXT, "Kestrel"),), answers=(("1871",),), evidence=(Mark(0, 0, 41),),
        answer_marks=(Mark(0, 36, 40),), distractors=("2019",), cluster="Kestrel",
    )  # fmt: skip
    return Case(lens, prompter, example, None, {"gold": "1871"}, None, prompter.verdict_tokens())


def generator() -> Prompt:
    return case().prompt("generator")


def evaluator() -> Prompt:
    return case().prompt("evaluator", "1871")


def verdict(prompt: Prompt, *changes) -> float:
    return float(log_odds(case().lens.run([Branch(prompt.token_ids, changes)])[0].logits[0],
                          case().verdict))  # fmt: skip


def said(name: str, answer, *given) -> str:
    return teach.assess(name, answer, *given).removeprefix(f"{name}: ")


class TestMass:
    def test_from_the_cache(self):
        lens, prompt = case().lens, evaluator()
        cache, reading = lens.cache(prompt), measure_reading(case(), prompt)
        spans = np.array([[s == name for name in SPANS] for s in prompt.spans], dtype=float)
        patterns = [cache["pattern", i][0].numpy() for i in range(lens.n_layers)]
        mass = np.stack([p[:, -1] for p in patterns]) @ spans
        assert said("05.mass", mass, cache, reading).startswith("right")
        for answer, words in (
            (np.stack([p[:, -2] for p in patterns]) @ spans, "token before the decision"),
            (np.stack([p[:, :, -1] for p in patterns]) @ spans, "That is a column"),
            (mass.transpose(0, 2, 1), "spans come last"),
            (mass.mean(1), "keep them apart"),
            (mass[0], "layer 0 only"),
            (mass[..., ::-1], "values are off"),
        ):
            assert words in said("05.mass", answer, cache, reading)


class TestPatch:
    def patched(self, put) -> float:
        """The verdict after a plain TransformerLens hook in the layer of the exercise."""
        lens, target = case().lens, evaluator()
        z = lens.cache(generator())["z", LAYER][0, -1].clone()

        def hook(value, hook):
            value = value.clone()
            put(value, z)
            return value

        name = f"blocks.{LAYER}.attn.hook_z"
        ids = torch.tensor([target.token_ids])
        with torch.no_grad():
            row = lens.bridge.run_with_hooks(ids, fwd_hooks=[(name, hook)])[0, -1]
        return log_odds(row.numpy(), case().verdict)

    @pytest.mark.parametrize(
        ("put", "words"),
        [
            (lambda v, z: v[0, -1, HEAD].copy_(z[HEAD]), "right"),
            (lambda v, z: None, "Nothing has changed"),
            (lambda v, z: v[0, -1].copy_(z), "All heads"),
            (lambda v, z: v[0, -1, HEAD].zero_(), "silenced"),
            (lambda v, z: v[0, -1, HEAD + 1].copy_(z[HEAD + 1]), "next head"),
            (lambda v, z: v[0, generator().decision, HEAD].copy_(z[HEAD]), "the other prompt"),
        ],
    )
    def test_by_a_hook(self, put, words):
        given = case(), generator(), evaluator(), LAYER, HEAD
        assert words in said("05.patch", self.patched(put), *given)


class TestCut:
    def test_the_look_at_the_evidence(self):
        prompt = evaluator()
        layers = range(case().lens.n_layers)
        plain = verdict(prompt)

        def after(queries, keys, where=layers) -> float:
            return verdict(prompt, *knockout(queries, prompt.where(keys), where))

        cut = after([prompt.decision], "evidence")
        assert said("04.cut", cut - plain, case(), prompt).startswith("right")
        for answer, words in (
            (cut, "log-odds after the cut"),
            (plain - cut, "The sign"),
            (after([prompt.decision], "context") - plain, "whole passage"),
            (after(prompt.where("candidate"), "evidence") - plain, "candidate's tokens"),
            (after([prompt.decision], "answer") - plain, "tokens of the answer"),
            (after([prompt.decision], "evidence", [layers[-1]]) - plain, "last layer only"),
            (None, "not answered yet"),
        ):
            assert words in said("04.cut", answer, case(), prompt)
