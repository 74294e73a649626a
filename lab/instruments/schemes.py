"""The judge out of its scheme: the same candidates, asked about in ways it was not trained on.

Fine-tuned judges tend to be classifiers of the form that they were trained on ("An Empirical Study
of LLM-as-a-Judge", arXiv 2403.02839). So one right and one wrong candidate are judged under other
verdict words, other prompts, and in other styles, and compared with the usual scheme.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from lab.data import is_wrong
from lab.errors import LabError
from lab.instruments.behaviour import judge
from lab.instruments.case import Case
from lab.instruments.names import FIXED_WRONG

FLUENT = "According to the passage, it is clear that the answer to this question is {}."
"""A sentence that says no more than its candidate, but at length."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """One way of showing a right and a wrong candidate to the judge.

    Attributes:
        words: what it changes, in words.
        prompter: fields of the Prompter that it sets.
        role: the evaluator role that asks.
        right, wrong: sentences around the candidates.
    """

    words: str
    prompter: Mapping[str, Any] = field(default_factory=dict)
    role: str = "evaluator"
    right: str = "{}"
    wrong: str = "{}"


SCHEMES: Mapping[str, Scheme] = MappingProxyType(
    {
        "usual": Scheme("as in the rest of the study"),
        "correct_incorrect": Scheme(
            'verdict words "Correct" and "Incorrect"', {"verdict_words": ("Correct", "Incorrect")}
        ),
        "true_false": Scheme(
            'verdict words "True" and "False"', {"verdict_words": ("True", "False")}
        ),
        "labels_swapped": Scheme("verdict words in reverse order", role="evaluator_labels_swapped"),
        "other_layout": Scheme("the other order of instruction and passage", {"layout": "other"}),
        "candidate_first": Scheme("candidate before the passage", role="evaluator_candidate_first"),
        "plain": Scheme("plain text without chat markup", {"format": "plain"}),
        "few_shot": Scheme("two demonstrations before the question", {"demonstrations": 2}),
        "fluent_wrong": Scheme("a terse right against a fluent wrong candidate", wrong=FLUENT),
        "fluent_right": Scheme("a fluent right against a terse wrong candidate", right=FLUENT),
        "fluent_both": Scheme("both candidates fluent", right=FLUENT, wrong=FLUENT),
    }
)
"""Schemes by name; ``usual`` is what the others are compared with."""


def measure_schemes(case: Case) -> dict[str, tuple[float, float]]:
    """Log-odds of accepting the gold and a wrong candidate, under every scheme that is possible.

    The wrong candidate is the first of FIXED_WRONG. Empty for a question that the passages do not
    answer, or without a wrong candidate; a scheme whose prompts do not fit, or are those of the
    usual one, is left out.
    """
    listed = (case.rungs.get(rung) for rung in FIXED_WRONG)
    wrong = next((text for text in listed if text and is_wrong(case.example, text)), None)
    if not case.example.answerable or wrong is None:
        return {}
    found = {}
    for name, scheme in SCHEMES.items():
        try:
            asked = _asked(case, scheme)
            if scheme.prompter and asked.prompter == case.prompter:
                continue
            prompts = [
                asked.prompt(scheme.role, frame.format(text))
                for frame, text in ((scheme.right, case.rungs["gold"]), (scheme.wrong, wrong))
            ]
            right, other = (verdict.log_odds for verdict in judge(asked, prompts))
        except LabError:
            continue
        found[name] = (right, other)
    return found


def _asked(case: Case, scheme: Scheme) -> Case:
    """The case under a scheme's prompts and verdict words."""
    changes = dict(scheme.prompter)
    if changes.get("layout") == "other":
        first = case.prompter.layout == "instruction_first"
        changes["layout"] = "context_first" if first else "instruction_first"
    prompter = replace(case.prompter, **changes)
    return Case(
        case.lens, prompter, case.example, case.other, case.rungs, case.changed,
        prompter.verdict_tokens(),
    )  # fmt: skip
