"""Prompts to measure on: built-in examples in their roles, of about a wanted length."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lab.data.builtin import read
from lab.data.example import Example
from lab.engine.lens import Lens
from lab.roles import Prompt, Prompter


@dataclass(frozen=True, slots=True)
class Pair:
    """Two prompts of one example: heads are carried from ``source`` into ``target``."""

    source: Prompt
    target: Prompt


def generators_near(lens: Lens, length: int, count: int) -> list[Prompt]:
    """Generator prompts of different built-in examples, the nearest to ``length`` tokens first."""
    prompter = Prompter(lens.tokenizer)
    prompts = [prompter.render(example, "generator") for example in read()]
    return sorted(prompts, key=lambda p: abs(len(p) - length))[:count]


def example_near(lens: Lens, length: int) -> Example:
    """An answerable built-in example whose generator prompt has about ``length`` tokens.

    Where none is long enough, the passages of further examples are put behind those of a
    chain example until it is.
    """
    prompter = Prompter(lens.tokenizer)

    def size(example: Example) -> int:
        return len(prompter.render(example, "generator"))

    answerable = [example for example in read() if example.answerable]
    longest = max(answerable, key=size)
    if size(longest) >= length:
        return min(answerable, key=lambda e: abs(size(e) - length))
    first, *others = read(("chain",))
    grown = first
    for passage in (p for example in others for p in example.passages):
        longer = replace(grown, passages=(*grown.passages, passage))
        if abs(size(longer) - length) > abs(size(grown) - length):
            break
        grown = longer
    return grown


def candidate_pairs(lens: Lens, length: int, count: int) -> list[Pair]:
    """Evaluators of a right (source) and a wrong candidate, of equal token length.

    Pairs are of different examples, the nearest to ``length`` tokens first. The wrong candidate
    is the first of the example's distractors that makes the prompt exactly as long as the gold
    answer does; examples without one are passed over.
    """
    prompter = Prompter(lens.tokenizer)
    pairs = []
    for example in read():
        if not example.answerable:
            continue
        right = prompter.render(example, "evaluator", example.gold)
        wrongs = (prompter.render(example, "evaluator", d) for d in example.distractors)
        wrong = next((w for w in wrongs if len(w) == len(right)), None)
        if wrong is not None:
            pairs.append(Pair(right, wrong))
    return sorted(pairs, key=lambda p: abs(len(p.target) - length))[:count]


def role_pairs(lens: Lens, length: int, count: int) -> list[Pair]:
    """Generator (source) and evaluator of the gold answer, nearest to ``length`` tokens.

    Their lengths differ; the decision is the last token of both.
    """
    prompter = Prompter(lens.tokenizer)
    pairs = [
        Pair(prompter.render(e, "generator"), prompter.render(e, "evaluator", e.gold))
        for e in read()
        if e.answerable
    ]
    return sorted(pairs, key=lambda p: abs(len(p.target) - length))[:count]


def described(prompt: Prompt) -> str:
    """A prompt in a few words, for the results."""
    shown = "" if prompt.candidate is None else f" of {prompt.candidate!r}"
    return f"{prompt.example_id}, {prompt.role}{shown}, {len(prompt)} tokens"
