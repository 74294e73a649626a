"""Guesses, recorded before a result and shown beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lab.errors import LabError


@dataclass(frozen=True, slots=True)
class Prediction:
    """A question with its possible answers, and the one that was guessed.

    Attributes:
        question: what is to be guessed.
        options: the possible answers.
        guess: the one that was chosen; None where no guess was made.
    """

    question: str
    options: tuple[str, ...]
    guess: str | None = None

    def reveal(self, result: str, details: str = "") -> None:
        """Print the guess beside the result, which is one of the options.

        ``details`` are the numbers behind it.

        Raises:
            LabError: the result is none of the options.
        """
        if result not in self.options:
            raise LabError(f"{result!r} is none of the options: {', '.join(self.options)}.")
        shown = f"{result} ({details})" if details else result
        print(f"Your guess: {self.guess or 'none'}. The result: {shown}.")
        if self.guess is not None:
            print("As you guessed." if self.guess == result else "Not as you guessed: why?")


def predict(question: str, options: Sequence[str], guess: str | int | None = None) -> Prediction:
    """Print a question with its options and record the guess, to be revealed later.

    Args:
        question: what is to be guessed.
        options: two possible answers or more.
        guess: one of them, or its number, counted from 1. Without it nothing is recorded, and
            the notebook goes on.

    Raises:
        LabError: fewer than two options, or a guess that is none of them or could be two.
    """
    known = tuple(options)
    if len(known) < 2 or isinstance(options, str):
        raise LabError("A prediction needs at least two options, as a list of texts.")
    prediction = Prediction(question, known, _chosen(known, guess))
    print(question)
    for number, option in enumerate(known, start=1):
        print(f"  {number}  {option}")
    if prediction.guess is None:
        print(f"No guess yet: add guess=1 (to {len(known)}) to the call, and run it again.")
    else:
        print(f"Your guess: {prediction.guess}")
    return prediction


def _chosen(options: tuple[str, ...], guess: str | int | None) -> str | None:
    if guess is None or guess in options:
        return guess  # type: ignore[return-value]
    if isinstance(guess, int) and 1 <= guess <= len(options):
        chosen = options[guess - 1]
        if str(guess) in options and chosen != str(guess):
            raise LabError(
                f"The guess {guess} is the number of one option and the text of another: write "
                f'guess="{guess}" or guess="{chosen}".'
            )
        return chosen
    raise LabError(
        f"The guess {guess!r} is none of the options: give a number from 1 to {len(options)}, or "
        "one of the texts."
    )
