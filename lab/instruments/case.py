"""A Case: one example opened on one model, with the prompts that all instruments share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from lab.data import Example, altered, candidate_rungs
from lab.errors import LabError
from lab.instruments.names import READING_ROLES
from lab.roles import CONTROLS, ROLES, Prompt, Prompter, VerdictTokens, apply_control

if TYPE_CHECKING:
    from lab.engine.lens import Lens

ANSWER_TOKENS = 32
"""The longest answer that is generated."""

LONGEST_ANSWERS = (" ".join(["answer"] * (ANSWER_TOKENS + 8)), "\ufffd" * (ANSWER_TOKENS + 8))
"""Stand for the model's own answer, unknown yet, when prompts are fitted to the window: words, and
what broken pieces of characters decode to, which takes several tokens each to say again."""

ROLES_USED = tuple(dict.fromkeys((*READING_ROLES, *(c.role for c in CONTROLS.values()))))
"""Roles in which a fitted example is asked."""

_SWAPS_TRIED = 8
_POOL_LOOKED_AT = 32


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
        """The example in a role; rendered once. Roles that show no candidate ignore it.

        Raises:
            LabError: there is no such role, or the prompt does not fit the model's window.
        """
        if role not in ROLES:
            raise LabError(f"There is no role {role!r}: the roles are {', '.join(ROLES)}.")
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
    """One example opened on a model, ready for all instruments, as a study's plan opens it.

    Args:
        lens: the model.
        example: what is asked.
        pool: more examples of the same source (`Examples.pool`), from which candidates and the
            swapped passage are taken; without it those that need another passage are missing.
        prompter: how it is asked; by default as `Lens.prompting` says, or in the model's own chat
            format. Its ``too_long`` says whether the example may lose passages to fit.
        seed: of the choice of wrong candidates.

    Raises:
        LabError: the example does not fit the model's window with the longest candidate in it, or
            with room for the longest answer behind it; or it is no single example.
    """
    if not isinstance(example, Example):
        raise LabError(
            f"open_case opens one example, not a {type(example).__name__}: of several examples "
            "take one, as in open_case(lens, examples[0], examples.pool)."
        )
    if prompter is None:
        prompter = Prompter(lens.tokenizer, **lens.prompting)
    room = longest_prompt(lens.max_tokens)
    prompter = replace(prompter, max_tokens=min(prompter.max_tokens or room, room))
    fitted, rungs = fit_example(prompter, example, pool, seed)
    # Everything is fitted now: a prompt must not lose passages that its counterparts keep.
    shown = replace(prompter, max_tokens=None)
    return Case(
        lens,
        shown,
        fitted,
        swapped_in(prompter, fitted, _fitted_pool(prompter, fitted, pool, seed)),
        rungs,
        changed_passages(prompter, fitted, pool),
        shown.verdict_tokens(),
    )


def longest_prompt(window: int) -> int:
    """The most tokens that a prompt may have in a model's window, with room for the answer."""
    return window - ANSWER_TOKENS - 1


def fit_example(
    prompter: Prompter, example: Example, pool: Sequence[Example], seed: int
) -> tuple[Example, dict[str, str]]:
    """The example fitted to the prompter's ``max_tokens``, and its candidates by rung.

    There is room for each candidate and for the longest answer. The candidates are those of the
    passages that are left: none comes from a passage that was dropped.

    Raises LabError where it does not fit; see `Prompter.fit`.
    """
    ladder = candidate_rungs(example, pool, seed)
    fitted = prompter.fit(example, ROLES_USED, [*ladder.values(), *LONGEST_ANSWERS])
    return fitted, ladder if fitted is example else candidate_rungs(fitted, pool, seed)


def swapped_in(prompter: Prompter, asked: Example, others: Iterable[Example]) -> Example | None:
    """The first of the others on other passages, if its passages fit the question that is asked.

    It is fitted as an example of its own, so that its evidence is never dropped. None where none
    of the first eight fits.
    """
    found = (e for e in others if e.cluster != asked.cluster and e.passages != asked.passages)
    for other in islice(found, _SWAPS_TRIED):
        try:
            swapped = replace(other, question=asked.question)
            fitted = prompter.fit(swapped, ("evaluator",), LONGEST_ANSWERS)
        except LabError:
            continue
        return replace(fitted, question=other.question)
    return None


def changed_passages(
    prompter: Prompter, example: Example, pool: Sequence[Example]
) -> Example | None:
    """The fitted example on passages that give another answer; see `lab.data.altered`.

    None where there are none, or where they would have to lose passages to fit.
    """
    changed = altered(example, pool)
    if changed is None:
        return None
    try:
        fitted = prompter.fit(changed, ("generator",))
    except LabError:
        return None
    return changed if fitted is changed else None


def _fitted_pool(
    prompter: Prompter, asked: Example, pool: Sequence[Example], seed: int
) -> Iterator[Example]:
    """The pool's examples on other passages from the asked one on, going round, each fitted.

    Those that do not fit are left out, as a study leaves them out. Only so many are looked at.
    """
    place = next((i for i, e in enumerate(pool) if e.id == asked.id), len(pool))
    around = (*pool[place + 1 :], *pool[:place])
    others = (e for e in around if e.cluster != asked.cluster)
    for other in islice(others, _POOL_LOOKED_AT):
        try:
            yield fit_example(prompter, other, pool, seed)[0]
        except LabError:
            continue
