"""A Case: one example opened on one model, with the prompts that all instruments share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lab.data import Example, altered, candidate_rungs
from lab.errors import LabError
from lab.roles import ROLES, Prompt, Prompter, VerdictTokens, apply_control

if TYPE_CHECKING:
    from lab.engine.lens import Lens

ANSWER_TOKENS = 32
"""The longest answer that is generated."""


@dataclass(eq=False)
class Case:
    """One example on one model.

    Attributes:
        lens: the model.
        prompter: renders for its tokenizer.
        example: what is asked, already fitted to the model's window.
        other: an example on other passages, for controls that swap the context; None if there
            is none.
        rungs: candidates that need no model, by rung of the ladder.
        changed: the same question on passages that give another answer; None if not possible.
        verdict: the verdict words' tokens.
    """

    lens: Lens
    prompter: Prompter
    example: Example
    other: Example | None
    rungs: Mapping[str, str]
    changed: Example | None
    verdict: VerdictTokens
    _prompts: dict[tuple[str, str | None], Prompt] = field(default_factory=dict, repr=False)

    def prompt(self, role: str, candidate: str | None = None) -> Prompt:
        """The example in a role; rendered once. Roles that show no candidate ignore it."""
        if ROLES[role].candidate == "none":
            candidate = None
        key = (role, candidate)
        if key not in self._prompts:
            self._prompts[key] = self.prompter.render(self.example, role, candidate)
        return self._prompts[key]

    def control(self, name: str, candidate: str, wrong: str | None) -> Prompt | None:
        """A control's prompt; None where this example has nothing to swap in."""
        try:
            role, changed, shown = apply_control(
                name, self.example, candidate, wrong=wrong, other=self.other
            )
        except LabError:
            return None
        return self.prompter.render(changed, role, shown)


def open_case(
    lens: Lens,
    example: Example,
    pool: Sequence[Example] = (),
    *,
    prompter: Prompter | None = None,
    seed: int = 0,
) -> Case:
    """One example opened on a model, ready for all instruments.

    Args:
        lens: the model.
        example: what is asked.
        pool: more examples of the same source (`Examples.pool`), from which candidates and the
            swapped passage are taken; without it those that need another passage are missing.
        prompter: how it is asked; by default as `Lens.prompting` says, or in the model's own chat
            format.
        seed: of the choice of wrong candidates.

    Raises:
        LabError: the example does not fit the model's window.
    """
    if prompter is None:
        # Room for the answer that follows the prompt.
        room = lens.max_tokens - ANSWER_TOKENS - 1
        prompter = Prompter(lens.tokenizer, max_tokens=room, **lens.prompting)
    return Case(
        lens,
        prompter,
        prompter.fit(example),
        next((e for e in pool if e.cluster != example.cluster), None),
        candidate_rungs(example, pool, seed),
        altered(example, pool),
        prompter.verdict_tokens(),
    )
