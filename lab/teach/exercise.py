"""An exercise as data: what is asked, what its checker needs, and how it judges an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Judge = Callable[..., str | None]
"""From an answer, and what the exercise was given, to what is wrong with it; None if nothing."""


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise of a notebook.

    Attributes:
        name: number of the notebook and a word, as ``03.ratio``.
        asks: what is asked, in a sentence.
        given: what the checker takes beside the answer, by the names that the notebook uses.
        judge: tells what is wrong with an answer.
        learned: what a right answer shows, in a sentence.
    """

    name: str
    asks: str
    given: tuple[str, ...]
    judge: Judge
    learned: str

    def call(self) -> str:
        """How its checker is called."""
        parts = ", ".join((f'"{self.name}"', "answer", *self.given))
        return f"lab.teach.check({parts})"


def describe(answer: Any) -> str:
    """What an answer is, in a few words, for those that cannot be judged."""
    shape = getattr(answer, "shape", None)
    if shape is not None and tuple(shape):
        return f"an array of shape {tuple(int(size) for size in shape)}"
    text = repr(answer)
    return text if len(text) <= 60 else f"a {type(answer).__name__}"
