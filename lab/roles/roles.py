"""The roles: what a model is told to do with an example, as tables of plain text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from lab.errors import LabError

Layout = Literal["instruction_first", "context_first"]
Slot = Literal["none", "last", "first", "filler"]

VERDICT_WORDS = ("Yes", "No")
"""The words for accepting and for rejecting a candidate, in this order."""

REFUSAL = "unanswerable"
"""What a generator is told to say where the passage does not answer the question."""


@dataclass(frozen=True, slots=True)
class Task:
    """What the model is told: an instruction, and the cue that ends the message.

    ``{first}`` and ``{second}`` stand for the verdict words in the order in which they are shown.
    Neither text may be empty, or begin or end with white space.
    """

    instruction: str
    cue: str


TASKS = MappingProxyType(
    {
        "answer": Task(
            "Answer the question using only the passage. Reply with the shortest possible answer. "
            f'If the passage does not answer the question, reply "{REFUSAL}".',
            "Answer:",
        ),
        "judge": Task(
            "Judge whether the proposed answer to the question is correct according to the "
            "passage. Answer with one word only, {first} or {second}.",
            "Verdict ({first} or {second}):",
        ),
        "repeat": Task(
            "Repeat the proposed answer to the question word for word. "
            "Answer with the proposed answer only.",
            "Answer:",
        ),
    }
)
"""What the roles tell the model to do, by name; a Prompter may be given other wordings."""


@dataclass(frozen=True, slots=True)
class Role:
    """One way of asking an example.

    Attributes:
        name: what results call it.
        task: a key of TASKS.
        candidate: where the candidate stands: nowhere, ``last`` (after the question), ``first``
            (before the passage); or ``filler``: neutral words of the same length in its place.
        framing: a sentence said about the candidate before the instruction.
        labels_swapped: whether the verdict words are shown in reverse order.
    """

    name: str
    task: Literal["answer", "judge", "repeat"]
    candidate: Slot
    framing: str = ""
    labels_swapped: bool = False


ROLES = MappingProxyType(
    {
        role.name: role
        for role in (
            Role("generator", "answer", "none"),
            Role("evaluator", "judge", "last"),
            Role("generator_filler", "answer", "filler"),
            Role("evaluator_candidate_first", "judge", "first"),
            Role("evaluator_repeat", "repeat", "last"),
            Role("evaluator_labels_swapped", "judge", "last", labels_swapped=True),
            Role("evaluator_told_own", "judge", "last", "You gave the proposed answer yourself."),
            Role("evaluator_told_other", "judge", "last", "Someone else gave the proposed answer."),
        )
    }
)
"""All roles by name.

``generator_filler`` has the generator's task, but neutral words in the place of the candidate, so
that its decision is as far from the passage as the evaluator's. ``evaluator_candidate_first``
shows the candidate before the passage. ``evaluator_repeat`` is the positive control for reading
the candidate: the evaluator's prompt with the task to repeat it. ``evaluator_told_own`` and
``evaluator_told_other`` say whose answer is judged; the evaluator itself is not told.
"""

LAYOUTS = MappingProxyType(
    {
        "instruction_first": ("instruction", "context", "question", "candidate", "cue"),
        "context_first": ("context", "question", "instruction", "candidate", "cue"),
    }
)
"""Order of the parts. ``instruction_first`` is the literature's. In ``context_first`` all roles
that show no candidate before the passage begin with the same tokens, up to the question's end, so
that nothing but the role can differ, and the shared part can be run once. Demonstrations end that:
they are asked in the role of their prompt, and so prompts with them differ before the passage."""

HEADINGS = MappingProxyType(
    {
        "instruction": "Task: ",
        "context": "Passage:\n",
        "question": "Question: ",
        "candidate": "Proposed answer: ",
    }
)
"""What stands before each part. All instructions begin with the same word and a space, so that in
``context_first`` no tokenizer can cut the question's end differently from role to role."""

FILLER = (
    "The words in this line stand here only to fill the space of another part of the page and "
    "say nothing about the passage or the question."
)


def check_tasks(tasks: Mapping[str, Task]) -> None:
    """Raise LabError unless these are wordings of all the tasks in TASKS, and of no others."""
    if set(tasks) != set(TASKS):
        raise LabError(
            f"The tasks are worded for {', '.join(sorted(tasks)) or 'nothing'}: word each of "
            f"{', '.join(TASKS)}."
        )
    for name, task in tasks.items():
        for part, text in (("instruction", task.instruction), ("cue", task.cue)):
            # A chat template may trim a message, and the decision must be in the cue.
            if not text or text != text.strip():
                raise LabError(
                    f'The {part} of the task "{name}" is {text!r}: it must not be empty, nor begin '
                    "or end with white space."
                )


def find_role(name: str) -> Role:
    """The role of that name; LabError with the known names where there is none."""
    if name not in ROLES:
        raise LabError(f'There is no role "{name}". Roles are: {", ".join(ROLES)}.')
    return ROLES[name]
