"""A plan: which examples a study runs, fitted to the model, and which it leaves out and why."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lab.data import Example, altered, candidate_rungs, load_examples
from lab.errors import LabError
from lab.instruments.case import ANSWER_TOKENS, Case
from lab.instruments.reading import READING_ROLES
from lab.roles import CONTROLS, Prompter, VerdictTokens
from lab.studies.recipe import Recipe

if TYPE_CHECKING:
    from lab.engine.lens import Lens

ROLES_USED = tuple(dict.fromkeys((*READING_ROLES, *(c.role for c in CONTROLS.values()))))

_LONGEST_ANSWER = " ".join(["answer"] * (ANSWER_TOKENS + 8))
"""Stands for the model's own answer, unknown yet, when prompts are fitted to the window."""


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """One example that will be run; see `Case` for the fields."""

    example: Example
    other: Example | None
    rungs: dict[str, str]
    changed: Example | None
    patched: bool


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What a study will run on one model.

    Attributes:
        items: the examples, in the order of the sources.
        excluded: (id, why) of examples that do not fit.
        notes: oddities of the data, as sentences.
        max_tokens: length of the longest prompt whose tokens are shown, with room for the answer.
    """

    items: tuple[Planned, ...]
    excluded: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    prompter: Prompter
    verdict: VerdictTokens
    max_tokens: int

    def case(self, index: int, lens: Lens) -> Case:
        """One example, opened on the model."""
        item = self.items[index]
        return Case(
            lens, self.prompter, item.example, item.other, item.rungs, item.changed, self.verdict
        )

    @property
    def fingerprint(self) -> str:
        """A hash of all that is asked, so that a changed file is not taken for the same study."""
        text = "\n".join(
            repr((item.example, item.other, sorted(item.rungs.items()), item.changed, item.patched))
            for item in self.items
        )
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def make_plan(recipe: Recipe, lens: Lens) -> Plan:
    """The examples of a recipe, fitted to a model's window.

    Raises:
        LabError: a source cannot be read, an example is too long under ``too_long="error"``, or
            nothing is left.
    """
    window = lens.max_tokens - ANSWER_TOKENS - 1
    longest = min(recipe.max_tokens or window, window)
    prompter = Prompter(
        lens.tokenizer,
        layout=recipe.layout,
        format=recipe.format,
        verdict_words=recipe.verdict_words,
        max_tokens=longest,
        too_long=recipe.too_long,
    )
    items: list[Planned] = []
    excluded: list[tuple[str, str]] = []
    notes: list[str] = []
    for spec in recipe.data:
        chosen = load_examples(spec, n=recipe.n, seed=recipe.seed)
        notes += [f"{spec}: {line}" for line in (*chosen.skipped, *chosen.notes)]
        fitted, left_out = _fit(prompter, chosen.items, chosen.pool, recipe)
        items += fitted
        excluded += left_out
    if not items:
        why = f" The first: {excluded[0][1]}" if excluded else ""
        raise LabError(f"No example is left to run: all {len(excluded)} were left out.{why}")
    items = _unique(items)
    return Plan(
        tuple(items), tuple(excluded), tuple(notes), prompter, prompter.verdict_tokens(),
        max(_shown_length(prompter, item.example) for item in items),
    )  # fmt: skip


def _fit(
    prompter: Prompter, examples: Sequence[Example], pool: Sequence[Example], recipe: Recipe
) -> tuple[list[Planned], list[tuple[str, str]]]:
    kept: list[Example] = []
    rungs: dict[str, dict[str, str]] = {}
    excluded = []
    for example in examples:
        ladder = candidate_rungs(example, pool, recipe.seed)
        try:
            fitted = prompter.fit(example, ROLES_USED, [*ladder.values(), _LONGEST_ANSWER])
        except LabError as error:
            if recipe.too_long == "error":
                raise
            excluded.append((example.id, str(error)))
            continue
        kept.append(fitted)
        # A candidate must stand in the passages that are shown, not in one that was dropped.
        rungs[fitted.id] = (
            ladder if fitted is example else candidate_rungs(fitted, pool, recipe.seed)
        )
    planned = [
        Planned(
            example,
            _other(kept, index),
            rungs[example.id],
            altered(example, pool),
            recipe.patching is None or index < recipe.patching,
        )
        for index, example in enumerate(kept)
    ]
    return planned, excluded


def _other(examples: Sequence[Example], index: int) -> Example | None:
    """The next example on other passages, going round."""
    around = (*examples[index + 1 :], *examples[:index])
    return next((e for e in around if e.cluster != examples[index].cluster), None)


def _unique(items: list[Planned]) -> list[Planned]:
    """The items with ids made unique across sources, by the source's name in front."""
    ids = [item.example.id for item in items]
    if len(set(ids)) == len(ids):
        return items
    named = [
        replace(item, example=replace(item.example, id=f"{item.example.dataset}:{item.example.id}"))
        for item in items
    ]
    new = [item.example.id for item in named]
    doubled = sorted({i for i in new if new.count(i) > 1})
    if doubled:
        raise LabError(
            f"The id {doubled[0]!r} occurs twice among the chosen examples"
            f"{f' (and {len(doubled) - 1} more do)' if len(doubled) > 1 else ''}: give each "
            "question an id of its own, or do not name a source twice."
        )
    return named


def _shown_length(prompter: Prompter, example: Example) -> int:
    return max(
        len(prompter.render(example, "generator")),
        len(prompter.render(example, "evaluator", "")) + 3 * ANSWER_TOKENS,
    )
