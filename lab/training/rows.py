"""Rows: prompts with the tokens that a role should say after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lab.data import Example
from lab.errors import LabError
from lab.roles import REFUSAL, Prompt, Prompter
from lab.roles.tokenizer import encode
from lab.training.recipe import TrainedRole

Kind = Literal["answer", "verdict"]


@dataclass(frozen=True, slots=True)
class Row:
    """One thing to learn: after this prompt, say this.

    Attributes:
        kind: an answer or a verdict.
        prompt: token ids of the prompt, exactly those that are fed when the role is asked.
        target: token ids to be said after it, the end of the turn included.
        accept: for a verdict, whether the candidate is right.
        weight: share in the mean over the rows of its kind.
    """

    kind: Kind
    prompt: tuple[int, ...]
    target: tuple[int, ...]
    accept: bool = False
    weight: float = 1.0

    @property
    def fed(self) -> tuple[int, ...]:
        """The tokens that must be run to predict the whole target."""
        return (*self.prompt, *self.target[:-1])


def rows(
    prompter: Prompter,
    example: Example,
    role: TrainedRole,
    right: str,
    wrong: Sequence[str],
    *,
    verdicts: bool = True,
) -> list[Row]:
    """What one question teaches a role.

    Args:
        prompter: how it is asked.
        example: the question.
        role: which role is trained.
        right: a right answer; it is the generator's target and the candidate to accept.
        wrong: candidates to reject; together they weigh as much as the right one.
        verdicts: whether verdicts are taught; without them ``evaluator`` learns nothing.
    """
    found: list[Row] = []
    if role in ("generator", "both"):
        prompt = prompter.render(example, "generator")
        found.append(Row("answer", prompt.token_ids, target_ids(prompter, prompt, right)))
    if role != "generator" and wrong and verdicts:
        judged = [(right, True, 0.5), *((text, False, 0.5 / len(wrong)) for text in wrong)]
        for text, accept, weight in judged:
            prompt = prompter.render(example, "evaluator", text)
            word = prompter.verdict_words[0 if accept else 1]
            target = target_ids(prompter, prompt, word)
            found.append(Row("verdict", prompt.token_ids, target, accept, weight))
    return found


def right_answer(example: Example) -> str:
    """The answer that is taught: the shortest gold one, or the refusal where there is none."""
    golds = [", ".join(spans) for spans in example.answers]
    return min(golds, key=len, default=REFUSAL)


def target_ids(prompter: Prompter, prompt: Prompt, text: str) -> tuple[int, ...]:
    """The token ids of a text said after a prompt, and of the end of the turn.

    Raises:
        LabError: the tokenizer would join the text with the prompt's last token, or has no token
            that ends a turn.
    """
    tokenizer = prompter.tokenizer
    # In plain text the cue ends with a colon, after which words begin with a space.
    lead = "" if prompter.frame.suffix else " "
    whole = encode(tokenizer, prompt.text + lead + text)
    length = len(prompt.token_ids)
    if whole[:length] != prompt.token_ids or len(whole) == length:
        raise LabError(
            f"The tokenizer joins {text!r} with the end of the prompt of example "
            f"{prompt.example_id}, so it cannot be learned: use another format."
        )
    if tokenizer.eos_token_id is None:
        raise LabError("The tokenizer has no token that ends a turn, so answers cannot end.")
    return (*whole[length:], int(tokenizer.eos_token_id))
