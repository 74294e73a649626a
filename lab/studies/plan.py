"""A plan: which examples a study runs, fitted to the model, and which it leaves out and why."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from lab.data import Example, load_examples
from lab.errors import LabError
from lab.instruments.case import (
    LONGEST_ANSWERS,
    Case,
    changed_passages,
    fit_example,
    longest_prompt,
    swapped_in,
)
from lab.roles import Prompter, VerdictTokens
from lab.studies.recipe import COUNTED, Recipe

if TYPE_CHECKING:
    from lab.engine.lens import Lens
    from lab.roles.tokenizer import Tokenizer


class Reader(Protocol):
    """What a plan needs of a model: a Lens, or a `lab.engine.loading.Outline` without weights."""

    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def prompting(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """One example that will be run; see `Case` for the fields.

    ``measured`` names those of COUNTED that are measured for it.
    """

    example: Example
    other: Example | None
    rungs: dict[str, str]
    changed: Example | None
    measured: frozenset[str]


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
    def ids(self) -> tuple[str, ...]:
        """The examples' ids, unique within the study."""
        return tuple(item.example.id for item in self.items)

    @property
    def fingerprint(self) -> dict[str, str]:
        """Hashes of what is asked and how, so that a changed file is not taken for the same study.

        "prompts" changes with the chat template, the demonstrations and the verdict's tokens.
        """
        asked = (
            repr(
                (
                    item.example,
                    item.other,
                    sorted(item.rungs.items()),
                    item.changed,
                    sorted(item.measured),
                )
            )
            for item in self.items
        )
        return {
            "examples": _hash(asked),
            "prompts": _hash((repr(dict(self.prompter.templates())), repr(self.verdict))),
        }


def _hash(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def make_plan(recipe: Recipe, model: Reader) -> Plan:
    """The examples of a recipe, fitted to a model's window.

    Raises:
        LabError: a source cannot be read, an example is too long under ``too_long="error"``, or
            nothing is left.
    """
    window = longest_prompt(model.max_tokens)
    prompter = Prompter(
        model.tokenizer,
        **recipe.prompting(model.prompting),
        max_tokens=min(recipe.max_tokens or window, window),
        too_long=recipe.too_long,
    )
    items: list[Planned] = []
    excluded: list[tuple[str, str]] = []
    notes: list[str] = []
    for spec in recipe.data:
        chosen = load_examples(spec, n=recipe.n, seed=recipe.seed)
        notes += [f"{spec}: {line}" for line in (*chosen.skipped, *chosen.notes)]
        fitted, left_out = _fit_all(prompter, chosen.items, chosen.pool, recipe)
        items += fitted
        excluded += left_out
    if not items:
        why = f" The first: {excluded[0][1]}" if excluded else ""
        raise LabError(f"No example is left to run: all {len(excluded)} were left out.{why}")
    items = _unique(items)
    # Everything is fitted now: a prompt must not lose passages that its counterparts keep.
    shown = replace(prompter, max_tokens=None)
    return Plan(
        tuple(items), tuple(excluded), tuple(notes), shown, shown.verdict_tokens(),
        max(_shown_length(shown, item.example) for item in items),
    )  # fmt: skip


def _fit_all(
    prompter: Prompter, examples: Sequence[Example], pool: Sequence[Example], recipe: Recipe
) -> tuple[list[Planned], list[tuple[str, str]]]:
    kept: list[tuple[Example, dict[str, str]]] = []
    excluded = []
    for example in examples:
        try:
            kept.append(fit_example(prompter, example, pool, recipe.seed))
        except LabError as error:
            if recipe.too_long == "error":
                raise
            excluded.append((example.id, str(error)))
    fitted = [example for example, _ in kept]
    planned = [
        Planned(
            example,
            # The next one, going round.
            swapped_in(prompter, example, (*fitted[index + 1 :], *fitted[:index])),
            rungs,
            changed_passages(prompter, example, pool),
            _measured(recipe, index),
        )
        for index, (example, rungs) in enumerate(kept)
    ]
    return planned, excluded


def _measured(recipe: Recipe, index: int) -> frozenset[str]:
    """What is measured for the example at this place of its source."""
    limits = {name: getattr(recipe, name) for name in COUNTED}
    return frozenset(name for name, most in limits.items() if most is None or index < most)


def _unique(items: list[Planned]) -> list[Planned]:
    """The items with ids made unique across sources, by the source's name in front."""
    ids = [item.example.id for item in items]
    if len(set(ids)) == len(ids):
        return items
    named = [
        replace(item, example=replace(item.example, id=f"{item.example.dataset}:{item.example.id}"))
        for item in items
    ]
    doubled = sorted(i for i, n in Counter(item.example.id for item in named).items() if n > 1)
    if doubled:
        raise LabError(
            f"The id {doubled[0]!r} occurs twice among the chosen examples"
            f"{f' (and {len(doubled) - 1} more do)' if len(doubled) > 1 else ''}: give each "
            "question an id of its own, or do not name a source twice."
        )
    return named


def _shown_length(prompter: Prompter, example: Example) -> int:
    judged = (prompter.render(example, "evaluator", answer) for answer in LONGEST_ANSWERS)
    return max(len(prompter.render(example, "generator")), *map(len, judged))
