"""What an override study asks: its conflicts, unrelated prompts, and plain texts, all as tokens."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lab.data import load_examples
from lab.data.conflicts import Conflict, load_conflicts
from lab.errors import LabError
from lab.instruments.conflicts import conflict_prompter
from lab.instruments.override.contests import ContestRole, Rendered, render
from lab.roles import Prompter, VerdictTokens
from lab.roles.conflicts import closed_book_prompt
from lab.roles.tokenizer import encode
from lab.studies.override.recipe import OverrideRecipe

if TYPE_CHECKING:
    from lab.engine.lens import Lens
    from lab.engine.loading import Outline

Tokens = tuple[int, ...]

QUESTIONS, CLOZES, TEXTS = 12, 24, 6
"""How many unrelated prompts and texts the chosen heads are ablated on."""
TEXT_TOKENS = 40
LONGEST_QUESTION = 600
"""Unrelated questions whose prompt has more tokens are passed over, as each costs a pass."""

log = logging.getLogger("lab")


@dataclass(frozen=True, slots=True, eq=False)
class Unrelated:
    """Prompts that have nothing to do with a conflict, and the clusters they belong to."""

    prompts: tuple[Tokens, ...]
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """What chosen heads are ablated on besides conflicts.

    Attributes:
        questions: of each role, about the built-in examples.
        clozes: of the conflicts, asked without any passage; only those that the model knows and
            whose subjects heads were not chosen on count, see `known_clozes`.
        texts: plain texts.
    """

    questions: Mapping[ContestRole, Unrelated]
    clozes: Unrelated
    texts: tuple[Tokens, ...]

    def known_clozes(self, known: Sequence[bool], without: Iterable[str]) -> Unrelated:
        """At most CLOZES of the clozes that are known, none of the given clusters."""
        left = set(without)
        kept = [
            i
            for i, (there, cluster) in enumerate(zip(known, self.clozes.clusters, strict=True))
            if there and cluster not in left
        ][:CLOZES]
        return Unrelated(
            tuple(self.clozes.prompts[i] for i in kept),
            tuple(self.clozes.clusters[i] for i in kept),
        )


@dataclass(frozen=True, slots=True, eq=False)
class OverridePlan:
    """What a study will run on one model.

    Attributes:
        conflicts: those that fit the model's window, with their prompts in ``rendered``.
        excluded: (id, why) of those that do not.
        notes: oddities of the data, as sentences.
        prompter: how they are asked.
        verdict: the tokens that accept and reject.
        around: unrelated prompts and texts.
    """

    conflicts: tuple[Conflict, ...]
    rendered: tuple[Rendered, ...]
    excluded: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    prompter: Prompter
    verdict: VerdictTokens
    around: Surroundings

    @property
    def clusters(self) -> list[str]:
        """The cluster of each conflict."""
        return [conflict.cluster for conflict in self.conflicts]

    @property
    def fingerprint(self) -> dict[str, str]:
        """Hashes of what is asked and how, so that a changed file is not taken for the same."""
        prompts = (
            repr([prompt.token_ids for prompt in (*r.generator.values(), *r.judge.values())])
            for r in self.rendered
        )
        return {
            "conflicts": _hash(map(repr, self.conflicts)),
            "prompts": _hash((*prompts, repr(self.verdict), _plain(self.around))),
        }


def _plain(around: Surroundings) -> str:
    """The tokens of all unrelated prompts, as text."""
    asked = [(role, found.prompts) for role, found in sorted(around.questions.items())]
    return repr((asked, around.clozes.prompts, around.texts))


def _hash(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def make_override_plan(recipe: OverrideRecipe, model: Lens | Outline) -> OverridePlan:
    """The conflicts of a recipe, fitted to a model's window, and what is asked besides.

    Raises:
        LabError: a source cannot be read, two conflicts share an id, or none fits the window.
    """
    prompter = conflict_prompter(model)
    verdict = prompter.verdict_tokens()
    kept: list[Conflict] = []
    rendered: list[Rendered] = []
    excluded: list[tuple[str, str]] = []
    notes: list[str] = []
    for spec in recipe.data:
        chosen = load_conflicts(spec, n=recipe.n, seed=recipe.seed)
        if chosen.skipped:
            count = len(chosen.skipped)
            notes.append(f"{spec}: {count} records skipped, the first: {chosen.skipped[0]}")
        for conflict in chosen:
            try:
                rendered.append(render(prompter, conflict, verdict, begun=recipe.begun))
            except LabError as error:
                excluded.append((conflict.id, str(error)))
                continue
            kept.append(conflict)
    _check(kept, excluded)
    around = _surroundings(prompter, kept)
    return OverridePlan(
        tuple(kept), tuple(rendered), tuple(excluded), tuple(notes), prompter, verdict, around
    )


def _check(kept: Sequence[Conflict], excluded: Sequence[tuple[str, str]]) -> None:
    if not kept:
        raise LabError(
            f"No conflict is left to run: all {len(excluded)} were left out. The first: "
            f"{excluded[0][1]}"
        )
    ids = [conflict.id for conflict in kept]
    if doubled := sorted({name for name in ids if ids.count(name) > 1}):
        raise LabError(
            f"The id {doubled[0]!r} occurs twice among the conflicts: do not name a source twice."
        )


def _surroundings(prompter: Prompter, conflicts: Sequence[Conflict]) -> Surroundings:
    examples = load_examples("builtin", answerable=True)
    order = np.random.default_rng(61).permutation(len(examples)).tolist()
    found: dict[ContestRole, Unrelated] = {}
    roles: tuple[ContestRole, ...] = ("generator", "evaluator")
    for role in roles:
        prompts: list[Tokens] = []
        clusters: list[str] = []
        for index in order:
            example = examples[index]
            candidate = example.gold if role == "evaluator" else None
            try:
                prompt = prompter.render(example, role, candidate)
            except LabError:
                continue
            if len(prompt) <= LONGEST_QUESTION and len(prompts) < QUESTIONS:
                prompts.append(prompt.token_ids)
                clusters.append(example.cluster)
        found[role] = Unrelated(tuple(prompts), tuple(clusters))
    clozes = [closed_book_prompt(prompter, conflict) for conflict in conflicts]
    texts = {examples[i].cluster: examples[i].passages[0].text for i in order}
    tokens = (encode(prompter.tokenizer, text)[:TEXT_TOKENS] for text in texts.values())
    return Surroundings(
        found,
        Unrelated(
            tuple(prompt.token_ids for prompt in clozes),
            tuple(conflict.cluster for conflict in conflicts),
        ),
        tuple(tuple(ids) for ids in tokens if len(ids) > 1)[:TEXTS],
    )
