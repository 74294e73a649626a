"""One decision of a conflict: what is asked, and which two answers compete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from lab.data.conflicts import PASSAGES, Conflict, Stated
from lab.errors import LabError
from lab.roles import Prompt, Prompter
from lab.roles.conflicts import (
    CELLS,
    SIDES,
    Instruction,
    Side,
    answer_tokens,
    conflict_prompts,
    expected,
    judge_prompts,
)

if TYPE_CHECKING:
    from lab.roles.verdict import VerdictTokens

_STATED = {"original": "the passage is true", "counterfactual": "the passage is altered"}
_TOLD = {"passage": "answer by the passage", "memory": "answer from own knowledge"}
_JUDGED = {"memory": "judge the true answer", "counter": "judge the other answer"}

ASKS: Mapping[str, str] = MappingProxyType(
    {
        **{f"generator/{told}/{stated}": f"{_TOLD[told]}; {_STATED[stated]}"
           for told, stated in reversed(CELLS)},
        **{f"evaluator/{stated}/{side}": f"{_JUDGED[side]}; {_STATED[stated]}"
           for stated, side in product(PASSAGES, SIDES)},
    }
)  # fmt: skip
"""The decisions of a conflict: role, and the cell of its table; what is asked, in words."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of a conflict.

    Attributes:
        conflict: which.
        ask: one of ASKS.
        prompt: what the model reads.
        answers: both competing answers; the first is the true one, or to accept.
        tokens: ids that may begin each.
        asked: 0 or 1, the answer that an obedient and knowing model gives.
        stated: which passage is read.
        begun: words with which the reply is begun; empty for verdicts.
    """

    conflict: Conflict
    ask: str
    prompt: Prompt
    answers: tuple[str, str]
    tokens: tuple[tuple[int, ...], tuple[int, ...]]
    asked: int
    stated: Stated
    begun: str = ""

    @property
    def role(self) -> str:
        """``generator`` or ``evaluator``."""
        return self.ask.split("/")[0]


def decisions(prompter: Prompter, conflict: Conflict, begun: bool = True) -> dict[str, Decision]:
    """All decisions of a conflict, in the order of ASKS.

    Raises:
        LabError: no first token tells the answers apart, so that a decision cannot either.
    """
    told = conflict_prompts(prompter, conflict, begun=begun)
    tokens = answer_tokens(prompter.tokenizer, conflict, list(told.values()))
    if not all(tokens.values()):
        raise LabError(
            f"The answers of conflict {conflict.id}, {conflict.memory!r} and {conflict.counter!r}, "
            "begin with the same token for this model, or one with an article, so that one "
            "decision cannot tell them apart: choose another conflict."
        )
    found: dict[str, Decision] = {}
    for (instruction, stated), prompt in told.items():
        ask = f"generator/{instruction}/{stated}"
        reply = _begun(prompter, conflict, prompt, instruction, stated) if begun else ""
        found[ask] = Decision(
            conflict, ask, prompt, (conflict.memory, conflict.counter),
            (tokens["memory"], tokens["counter"]),
            SIDES.index(expected(instruction, stated)), stated, reply,
        )  # fmt: skip
    verdict = prompter.verdict_tokens()
    for (stated, side), prompt in judge_prompts(prompter, conflict).items():
        ask = f"evaluator/{stated}/{side}"
        found[ask] = _judged(prompter, conflict, ask, prompt, verdict, stated, side)
    return {ask: found[ask] for ask in ASKS}


def _begun(
    prompter: Prompter, conflict: Conflict, prompt: Prompt, told: Instruction, stated: Stated
) -> str:
    """What of a prompt is the begun reply: all that is not there without it."""
    plain = conflict_prompts(prompter, conflict)[told, stated]
    return prompt.text[len(plain.text) :].strip()


def _judged(
    prompter: Prompter,
    conflict: Conflict,
    ask: str,
    prompt: Prompt,
    verdict: VerdictTokens,
    stated: Stated,
    side: Side,
) -> Decision:
    right = (stated == "original") == (side == "memory")
    words = cast("tuple[str, str]", tuple(prompter.verdict_words))
    return Decision(
        conflict, ask, prompt, words, (tuple(verdict.accept), tuple(verdict.reject)),
        int(not right), stated,
    )  # fmt: skip
