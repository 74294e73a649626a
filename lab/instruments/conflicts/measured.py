"""Conflicts: does a model answer from the passage or from memory?

The 2 x 2 table of "Vision-Default, Prior-Override" (arXiv 2606.28273), transposed to text: two
instructions (according to the passage, from your own knowledge) by two passages (original,
counterfactual). The margin of a decision is logit(memory answer) - logit(counter answer), one
token each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float

from lab.data.conflicts import PASSAGES, Conflict, Stated
from lab.data.text import whole_words
from lab.engine.packing import Branch
from lab.errors import LabError
from lab.roles import Prompt, Prompter, log_odds
from lab.roles.conflicts import (
    CELLS,
    SIDES,
    Instruction,
    Side,
    answer_tokens,
    closed_book_prompt,
    conflict_prompts,
    judge_prompts,
)

if TYPE_CHECKING:
    from lab.engine.lens import Lens
    from lab.engine.loading import Outline

Says = Literal["memory", "counter", "other"]
Rule = Literal["argmax", "pair", "generated"]

ROOM = 16
"""The longest answer that is generated, in tokens."""

ALIKE = "no first token tells the answers apart"
"""Why a conflict has no margin: both answers begin with the same token, or one with an article."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One decision of the table.

    Attributes:
        prompt: what was asked.
        logits: of the memory and of the counter answer, one token each (see Measured.pair).
        probabilities: of both, each summed over all tokens that may begin the answer.
        top: the most likely token of the whole vocabulary, as text.
        says: which answer that token begins.
        text: the greedy answer's first line; empty where nothing was generated.
        text_says: which answer it holds; ``other`` where it holds neither or both.
    """

    prompt: Prompt
    logits: tuple[float, float]
    probabilities: tuple[float, float]
    top: str
    says: Says
    text: str = ""
    text_says: Says = "other"

    @property
    def margin(self) -> float:
        """logit(memory answer) - logit(counter answer)."""
        return self.logits[0] - self.logits[1]

    def told(self, rule: Rule) -> Says:
        """What the decision says: by its most likely token, by the sign of the margin, or by the
        generated text."""
        if rule == "argmax":
            return self.says
        if rule == "generated":
            return self.text_says
        return "memory" if self.margin > 0 else "counter"


@dataclass(frozen=True, slots=True)
class Measured:
    """One conflict on one model.

    Attributes:
        conflict: what was asked.
        tokens: for each answer, the ids that may begin it at these decisions.
        pair: the ids of the margin, memory answer first: of the ids of an answer the one that the
            model prefers where the passage gives that answer and is to be followed. None where
            no first token tells the answers apart.
        closed_book: the decision behind the cloze, where each answer's logit is that of the
            spelling which the model prefers there. None where ``pair`` is.
        cells: the table by instruction and passage; empty where ``pair`` is None.
        generated: whether answers were generated.
    """

    conflict: Conflict
    tokens: Mapping[Side, tuple[int, ...]]
    pair: tuple[int, int] | None
    closed_book: Cell | None
    cells: Mapping[tuple[Instruction, Stated], Cell]
    generated: bool

    @property
    def known(self) -> bool:
        """Whether the cloze's most likely next token begins the true answer."""
        return self.closed_book is not None and self.closed_book.says == "memory"

    def effect(self) -> Callable[[Float[np.ndarray, " token"]], float]:
        """The margin as a function of a decision's logits, to patch and ablate with.

        Raises LabError where no first token tells the answers apart.
        """
        if self.pair is None:
            raise LabError(f"Conflict {self.conflict.id} has no margin: {ALIKE}.")
        memory, counter = self.pair
        return lambda row: float(row[memory] - row[counter])


def conflict_prompter(lens: Lens | Outline) -> Prompter:
    """How a lens is asked about conflicts unless told otherwise.

    As its adapter was trained; without one the passage stands before the instruction, so that the
    prompts of both instructions begin with the same tokens, up to the question's end.
    """
    told = lens.adapter.prompting if lens.adapter else {"layout": "context_first"}
    # Room for a begun reply and for the answer behind it.
    return Prompter(lens.tokenizer, max_tokens=lens.max_tokens - 4 * ROOM, **told)


def measure_conflict(
    lens: Lens,
    conflict: Conflict,
    *,
    prompter: Prompter | None = None,
    begun: bool = False,
    generate: bool = True,
) -> Measured:
    """The closed-book answer and the 2 x 2 table of one conflict.

    Args:
        lens: the model.
        conflict: what is asked.
        prompter: how; ``conflict_prompter(lens)`` by default.
        begun: whether the reply is begun, up to the end of the cloze, see ``conflict_prompts``.
        generate: whether to generate the greedy answers too, up to 16 tokens each.

    Raises:
        LabError: a prompt does not fit the model's window, or the prompter has demonstrations.
    """
    prompter = prompter or conflict_prompter(lens)
    prompts = conflict_prompts(prompter, conflict, begun=begun)
    cloze = closed_book_prompt(prompter, conflict)
    tokens = answer_tokens(lens.tokenizer, conflict, list(prompts.values()))
    bare = answer_tokens(lens.tokenizer, conflict, [cloze])
    if not (all(tokens.values()) and all(bare.values())):
        return Measured(conflict, tokens, None, None, {}, generate)
    rows: dict[tuple[Instruction, Stated], Float[np.ndarray, " token"]] = {}
    for stated in PASSAGES:  # two prompts on one passage share the most
        keys = [key for key in CELLS if key[1] == stated]
        rows.update(zip(keys, decision_rows(lens, [prompts[k] for k in keys]), strict=True))
    pair = (
        _best(rows["passage", "original"], tokens["memory"]),
        _best(rows["passage", "counterfactual"], tokens["counter"]),
    )
    alone = decision_rows(lens, [cloze])[0]
    alone_pair = (_best(alone, bare["memory"]), _best(alone, bare["counter"]))
    reader = _Reader(lens, conflict, generate)
    return Measured(
        conflict,
        tokens,
        pair,
        reader.cell(cloze, alone, bare, alone_pair),
        {key: reader.cell(prompts[key], rows[key], tokens, pair) for key in CELLS},
        generate,
    )


def decision_rows(lens: Lens, prompts: Sequence[Prompt]) -> list[Float[np.ndarray, " token"]]:
    """The logits at the decisions of some prompts, run together as branches of one trunk."""
    traces = lens.run([Branch(prompt.token_ids) for prompt in prompts])
    return [trace.logits[0] for trace in traces if trace.logits is not None]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Makes cells of a conflict's decisions."""

    lens: Lens
    conflict: Conflict
    generate: bool

    def cell(
        self,
        prompt: Prompt,
        row: Float[np.ndarray, " token"],
        tokens: Mapping[Side, tuple[int, ...]],
        pair: tuple[int, int],
    ) -> Cell:
        top = int(row.argmax())
        says: Says = next((side for side in SIDES if top in tokens[side]), "other")
        whole = np.logaddexp.reduce(row.astype(float))
        shares = [float(np.exp(row[list(tokens[s])].astype(float) - whole).sum()) for s in SIDES]
        text = self._answer(prompt) if self.generate else ""
        return Cell(
            prompt,
            (float(row[pair[0]]), float(row[pair[1]])),
            (shares[0], shares[1]),
            str(self.lens.tokenizer.decode([top])),
            says,
            text,
            text_says(self.conflict, text),
        )

    def _answer(self, prompt: Prompt) -> str:
        ids = self.lens.generate(prompt.token_ids, max_new_tokens=ROOM, stop=("\n",))
        text: str = self.lens.tokenizer.decode(ids, skip_special_tokens=True)
        return next((line.strip() for line in text.splitlines() if line.strip()), "")


def text_says(conflict: Conflict, text: str) -> Says:
    """Which answer a text holds as whole words, in any case: one of the true ones, the counter
    answer, or ``other``: neither, or both."""
    true = any(_holds(text, answer) for answer in (conflict.memory, *conflict.aliases))
    counter = _holds(text, conflict.counter)
    if true == counter:
        return "other"
    return "memory" if true else "counter"


def _holds(text: str, answer: str) -> bool:
    return bool(whole_words(text, answer, ignore_case=True))


def _best(row: Float[np.ndarray, " token"], ids: Sequence[int]) -> int:
    return max(ids, key=lambda i: float(row[i]))


def measure_verdicts(
    lens: Lens, conflict: Conflict, *, prompter: Prompter | None = None
) -> dict[tuple[Stated, Side], float]:
    """The judge's log-odds of accepting, by passage and candidate, from one packed run.

    A judge that only reads the candidate gives one candidate the same log-odds on both passages;
    one that only says yes gives all four the same.
    """
    prompter = prompter or conflict_prompter(lens)
    prompts = judge_prompts(prompter, conflict)
    verdict = prompter.verdict_tokens()
    rows = decision_rows(lens, list(prompts.values()))
    return {key: log_odds(row, verdict) for key, row in zip(prompts, rows, strict=True)}
