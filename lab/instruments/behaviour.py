"""Behaviour: what the model answers, and how it judges a ladder of candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lab.data import Score, is_wrong, map_refusal, score
from lab.errors import LabError
from lab.instruments.case import ANSWER_TOKENS, Case
from lab.instruments.names import JUDGED_CONTROLS, RUNGS
from lab.roles import REFUSAL, Prompt, apply_control, label_mass, log_odds

if TYPE_CHECKING:
    from lab.engine.lens import Lens


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict: ``log_odds`` of accepting, and the probability mass on the verdict words."""

    log_odds: float
    label_mass: float


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What one example's runs showed.

    Attributes:
        answer_raw: the model's answer, first line, as generated.
        closed_book_raw: its answer when the passages are masked.
        answer, closed_book: the same with refusals mapped to the empty answer.
        score, closed_book_score: their official EM and F1.
        candidates: the text of each rung that exists.
        candidate_scores: EM and F1 of each.
        verdicts: the judgement of each.
        controls: the judgement of the own answer under each control that was possible.
    """

    answer_raw: str
    closed_book_raw: str
    answer: str
    closed_book: str
    score: Score
    closed_book_score: Score
    candidates: Mapping[str, str]
    candidate_scores: Mapping[str, Score]
    verdicts: Mapping[str, Judgement]
    controls: Mapping[str, Judgement]

    def right(self, rung: str) -> bool:
        """Whether a rung's candidate is right: exact, or F1 of at least 0.5."""
        got = self.candidate_scores[rung]
        return bool(got.em) or got.f1 >= 0.5


def measure_behaviour(case: Case, *, controls: bool = True) -> Behaviour:
    """What the model answers with and without the passages, and all its verdicts.

    ``controls=False`` leaves the verdicts under control prompts out.

    The answer is greedy, at most 32 tokens, and ends with its first line. All candidates of the
    ladder are judged in one packed run, since they share the prompt up to the candidate.
    """
    closed_role, closed_example, _ = apply_control("context_masked", case.example, "")
    del closed_role  # the generator is asked, not the judge
    raw = answer(case.lens, case.prompt("generator"))
    closed_raw = answer(case.lens, case.prompter.render(closed_example, "generator"))

    candidates = _ladder(case, raw, closed_raw)
    scores = {rung: score(case.example, map_refusal(text)) for rung, text in candidates.items()}
    prompts = {rung: case.prompt("evaluator", text) for rung, text in candidates.items()}
    verdicts = dict(zip(prompts, judge(case, list(prompts.values())), strict=True))

    wrong = next((t for t in _wrong_ones(case) if t != raw), None)
    judged = {}
    for name in JUDGED_CONTROLS if controls else ():
        prompt = case.control(name, raw, wrong)
        if prompt is not None:
            judged[name] = judge(case, [prompt])[0]
    return Behaviour(
        answer_raw=raw,
        closed_book_raw=closed_raw,
        answer=map_refusal(raw),
        closed_book=map_refusal(closed_raw),
        score=scores["own"],
        closed_book_score=scores["closed_book"],
        candidates=candidates,
        candidate_scores=scores,
        verdicts=verdicts,
        controls=judged,
    )


def answer(lens: Lens, prompt: Prompt) -> str:
    """The model's greedy answer to a generator prompt: its first line that says anything."""
    ids = lens.generate(prompt.token_ids, max_new_tokens=ANSWER_TOKENS, stop=("\n",))
    text: str = lens.tokenizer.decode(ids, skip_special_tokens=True)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""


def judge(case: Case, prompts: Sequence[Prompt]) -> list[Judgement]:
    """The verdicts at the decisions of some prompts, run together as branches of one trunk.

    Raises:
        LabError: what is given are no prompts, but a text, say.
    """
    from lab.engine.packing import Branch

    if isinstance(prompts, str) or not all(isinstance(prompt, Prompt) for prompt in prompts):
        raise LabError(
            "judge takes prompts, in a list: make one of a candidate answer with "
            "case.prompt('evaluator', 'the answer')."
        )
    traces = case.lens.run([Branch(p.token_ids) for p in prompts])
    rows = [trace.logits[0] for trace in traces if trace.logits is not None]
    return [Judgement(log_odds(row, case.verdict), label_mass(row, case.verdict)) for row in rows]


def _ladder(case: Case, own: str, closed_book: str) -> dict[str, str]:
    known = {"own": own, **case.rungs, "closed_book": closed_book}
    if not case.example.answerable:
        # The right answer to an unanswerable question is to say so.
        known["gold"] = REFUSAL
    return {rung: known[rung] for rung in RUNGS if rung in known}


def _wrong_ones(case: Case) -> list[str]:
    listed = [case.rungs.get(r) for r in ("same_type", "same_passage", "other_passage")]
    return [text for text in listed if text and is_wrong(case.example, text)]


def as_array(values: Mapping[str, float], names: Sequence[str]) -> np.ndarray:
    """Values in the order of ``names``, NaN where one is missing."""
    return np.array([values.get(name, np.nan) for name in names], dtype=np.float32)
