"""Content controls: the same judgement with one part of the prompt masked, swapped or moved.

How a prompt is worded is a Role (see ``roles.py``); what it is about is changed here, before it is
rendered, by putting other content into the example or another candidate beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from lab.data.example import Example, Passage
from lab.errors import LabError

Content = Literal["kept", "masked", "swapped"]

MASK = "____"
"""What stands in the place of a masked part."""


@dataclass(frozen=True, slots=True)
class Control:
    """A control: the role it is asked in, and what happens to the content first."""

    role: str = "evaluator"
    candidate: Content = "kept"
    context: Content = "kept"
    question: Content = "kept"


CONTROLS = MappingProxyType(
    {
        "candidate_masked": Control(candidate="masked"),
        "candidate_swapped": Control(candidate="swapped"),
        "context_masked": Control(context="masked"),
        "context_swapped": Control(context="swapped"),
        "question_masked": Control(question="masked"),
        "candidate_first": Control(role="evaluator_candidate_first"),
        "filler": Control(role="generator_filler"),
        "labels_swapped": Control(role="evaluator_labels_swapped"),
    }
)
"""The controls that a study stores, by name. To judge the gold candidate, no control is needed:
it is the evaluator with ``candidate=example.gold``."""


def apply_control(
    name: str,
    example: Example,
    candidate: str,
    *,
    wrong: str | None = None,
    other: Example | None = None,
) -> tuple[str, Example, str]:
    """The role, the example and the candidate to render for a control.

    A masked part becomes ``____``; a masked context is one untitled passage of it. A swapped
    candidate is ``wrong``, a plausible wrong answer; a swapped context or question is that of
    ``other``. Where the context goes, its evidence and answer marks go with it, and ``answers``
    becomes empty: the passages no longer answer the question. Masking and swapping are the
    C-MASK and C-SWAP ablations of "Can LLMs Judge Better Than They Generate?"
    (arXiv 2606.28050), extended to the other parts.

    Raises LabError for an unknown control, or where it needs a ``wrong`` or an ``other`` that
    is missing or the same.
    """
    if name not in CONTROLS:
        raise LabError(f'There is no control "{name}". Controls are: {", ".join(CONTROLS)}.')
    control = CONTROLS[name]
    if control.candidate == "swapped" and (wrong is None or wrong == candidate):
        raise LabError(
            f'Control "{name}" of example {example.id} needs a wrong candidate that differs from '
            "the one it replaces: pass wrong=..., for instance one of the example's distractors."
        )
    if "swapped" in (control.context, control.question) and (
        other is None or other.passages == example.passages
    ):
        raise LabError(
            f'Control "{name}" of example {example.id} needs an example with other passages: '
            "pass other=..."
        )
    swap = other or example
    passages = {"masked": (Passage(MASK),), "swapped": swap.passages}
    questions = {"kept": example.question, "masked": MASK, "swapped": swap.question}
    candidates = {"kept": candidate, "masked": MASK, "swapped": wrong or ""}
    if control.context in passages:
        example = replace(
            example,
            passages=passages[control.context],
            answers=(),
            evidence=(),
            answer_marks=(),
        )
    example = replace(example, question=questions[control.question])
    return control.role, example, candidates[control.candidate]
