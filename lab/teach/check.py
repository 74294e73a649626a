"""Checking an answer: one line that says whether it is right, and if not, what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lab.errors import LabError
from lab.teach import by_hand, first_look, override, patching, reading, transfer, your_own
from lab.teach.exercise import Exercise

_NOTEBOOKS = (first_look, transfer, reading, patching, by_hand, your_own, override)

EXERCISES: Mapping[str, Exercise] = MappingProxyType(
    {exercise.name: exercise for notebook in _NOTEBOOKS for exercise in notebook.EXERCISES}
)
"""All exercises by name, in the order of the notebooks."""


def check(name: str, answer: Any, *given: Any) -> None:
    """Print whether an answer is right, and if not, what is wrong with it.

    Args:
        name: of the exercise, as ``03.ratio``.
        answer: yours; ``...`` or None stands for "not answered yet".
        given: the objects of the notebook from which the truth is computed, as the notebook's
            cell has them.

    Raises:
        LabError: there is no such exercise, or it needs other objects.
    """
    print(assess(name, answer, *given))


def assess(name: str, answer: Any, *given: Any) -> str:
    """The line that `check` prints: ``NAME: right. ...``, ``not yet. ...`` or ``not answered``."""
    exercise = _find(name)
    if len(given) != len(exercise.given):
        raise LabError(
            f"Exercise {name} takes {', '.join(('the answer', *exercise.given))}: call "
            f"{exercise.call()}"
        )
    if answer is None or answer is ...:
        return f"{name}: not answered yet. {exercise.asks}"
    wrong = exercise.judge(answer, *given)
    if wrong is None:
        return f"{name}: right. {exercise.learned}"
    return f"{name}: not yet. {wrong}"


def _find(name: str) -> Exercise:
    if name not in EXERCISES:
        raise LabError(f"There is no exercise {name!r}. Exercises are: {', '.join(EXERCISES)}.")
    return EXERCISES[name]
