"""Lessons: the questions that are learned from, their right and wrong candidates, and bundles."""

from __future__ import annotations

import hashlib
import logging
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePath

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lab.data import Example, hard_wrongs, is_wrong, load_examples
from lab.errors import LabError
from lab.roles import REFUSAL, Prompter
from lab.training.bundles import Bundle, bundle
from lab.training.recipe import TrainedRole, TrainingRecipe
from lab.training.rows import Row, right_answer, rows

log = logging.getLogger("lab")

HARD_WRONGS = 8
"""Most same-passage wrong answers from which those that are shown are drawn."""

CLOSED_BOOK_SHARE = 0.25
"""For this share of the questions one wrong candidate is an answer given without the passage."""

CLOSED_BOOK_MOST = 500
"""But for about so many at most, since each must be generated before the training."""

CLOSED_BOOK_WORDS = 12
"""Longer answers without the passage are not shown: their length alone would give them away."""

TARGET_TOKENS = 64
"""Room for what is said after the longest prompt."""

ClosedBook = Callable[[Sequence[Example]], Sequence[str]]
"""Answers without the passages, one for each example."""


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """The questions of one source on the same passages, which have the ``key`` as cluster."""

    source: str
    key: str
    items: Sequence[Example]

    @property
    def passages(self) -> set[tuple[str, str]]:
        """What tells that another group is on a passage of this one."""
        evidence = {e.passages[mark.passage].text for e in self.items for mark in e.evidence}
        return {("cluster", self.key), *(("passage", text) for text in evidence)}


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """One question with what is taught about it."""

    example: Example
    wrong: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """All questions of a training recipe.

    Attributes:
        train, dev: lessons, grouped by their passages. No passage that holds evidence for a
            question of one part does so for one of the other, and no cluster is in both. Passages
            that are there to distract may recur, as those of HotpotQA and MuSiQue do.
        notes: what was left out, as sentences.
        sources: for each source what was used of it, for the model card.
    """

    train: tuple[tuple[Lesson, ...], ...]
    dev: tuple[tuple[Lesson, ...], ...]
    notes: tuple[str, ...]
    sources: Mapping[str, Mapping[str, object]]

    @property
    def fingerprint(self) -> str:
        """Hash of everything that is taught."""
        texts = (
            repr((lesson.example, lesson.wrong))
            for groups in (self.train, self.dev)
            for group in groups
            for lesson in group
        )
        return hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()


def read_lessons(recipe: TrainingRecipe, closed_book: ClosedBook | None = None) -> Lessons:
    """The lessons of a recipe; the same for the same recipe but its role.

    Args:
        recipe: which sources, how many questions, which seed.
        closed_book: gives answers without the passages; None leaves such candidates out.

    Raises:
        LabError: a source cannot be read, or nothing is left to learn.
    """
    groups, notes, sources = _read(recipe)
    total = sum(len(group.items) for group in groups)
    if not total:
        raise LabError("There is nothing to learn: no source holds a question.")
    # Passages go to the dev part by a hash, whatever else is learned from.
    share = recipe.dev_questions / total
    parts: dict[bool, list[_Group]] = {True: [], False: []}
    for name, group in zip(_joined(groups), groups, strict=True):
        parts[_draw(f"dev/{name}").random() < share].append(group)
    if not parts[False]:
        raise LabError(
            f"All {total} questions are held out for the learning curves: give more questions, or "
            "fewer dev_questions."
        )
    some = min(CLOSED_BOOK_SHARE, CLOSED_BOOK_MOST / total)
    asked = [
        (group.source, example)
        for group in (*parts[False], *parts[True])
        for example in group.items
        if _shown(example, recipe, some)
    ]
    guesses: dict[tuple[str, str], str] = {}
    if closed_book is not None:
        told = closed_book([example for _, example in asked])
        # Ids are unique within a source only.
        guesses = {(s, e.id): text for (s, e), text in zip(asked, told, strict=True)}
    train, dev = (
        tuple(_lessons(group, recipe, guesses) for group in parts[which]) for which in (False, True)
    )
    return Lessons(train, dev, tuple(notes), sources)


def _read(
    recipe: TrainingRecipe,
) -> tuple[list[_Group], list[str], dict[str, dict[str, object]]]:
    """The questions of all sources, what was left out, and what was used of each source."""
    groups: list[_Group] = []
    notes: list[str] = []
    sources: dict[str, dict[str, object]] = {}
    for spec in recipe.data:
        read = load_examples(spec, n=recipe.n, seed=recipe.seed)
        notes += [f"{spec}: {line}" for line in read.skipped]
        chosen = _thinned(read.items, recipe.unanswerable)
        sources[spec] = {
            "questions": len(chosen),
            "articles": sorted({e.meta["title"] for e in chosen if e.meta.get("title")}),
        }
        found: dict[str, list[Example]] = defaultdict(list)
        for example in chosen:
            found[example.cluster or example.id].append(example)
        groups += [_Group(spec, key, items) for key, items in found.items()]
    return groups, notes, sources


def _joined(groups: Sequence[_Group]) -> list[str]:
    """For each group a name, the same for those that share a cluster or an evidence passage.

    Also where others link them, or where they are of two sources. It is that of the first of them.
    """
    first: dict[tuple[str, str], int] = {}
    links = [
        (i, first.setdefault(key, i)) for i, group in enumerate(groups) for key in group.passages
    ]
    shape = (len(groups), len(groups))
    graph = coo_array((np.ones(len(links), bool), tuple(zip(*links, strict=True))), shape=shape)
    names: dict[int, str] = {}
    return [
        names.setdefault(label, f"{without_folders(group.source)}/{group.key}")
        for group, label in zip(groups, connected_components(graph)[1].tolist(), strict=True)
    ]


def without_folders(spec: str) -> str:
    """The name of a source with its file's name alone: the same wherever the file lies."""
    kind, colon, rest = spec.partition(":")
    path, mark, titles = rest.partition("#")
    is_file = kind != "world" and path != "hub" and not path.startswith("hub/")
    return f"{kind}{colon}{PurePath(path).name if is_file else path}{mark}{titles}"


def _thinned(examples: Sequence[Example], most: float) -> list[Example]:
    """The examples with so many unanswerable ones left out that their share is at most ``most``."""
    without = [e.id for e in examples if not e.answerable]
    if most >= 1:
        return list(examples)
    allowed = int(most / (1 - most) * (len(examples) - len(without)))
    kept = set(sorted(without, key=lambda name: _draw(f"thin/{name}").random())[:allowed])
    return [e for e in examples if e.answerable or e.id in kept]


def _shown(example: Example, recipe: TrainingRecipe, share: float) -> bool:
    return _draw(f"closed/{recipe.seed}/{example.id}").random() < share


def _lessons(
    group: _Group, recipe: TrainingRecipe, guesses: Mapping[tuple[str, str], str]
) -> tuple[Lesson, ...]:
    return tuple(
        Lesson(e, _wrongs(e, group.items, recipe, guesses.get((group.source, e.id), "")))
        for e in group.items
    )


def _wrongs(
    example: Example, siblings: Sequence[Example], recipe: TrainingRecipe, guess: str
) -> tuple[str, ...]:
    """The candidates to reject: mostly answers of the same type from the same passage.

    ``guess`` is an answer given without the passage, or empty.
    """
    draw = _draw(f"wrong/{recipe.seed}/{example.id}")
    hard = list(islice(hard_wrongs(example, siblings), HARD_WRONGS))
    first, rest = hard[:1], hard[1:]
    draw.shuffle(rest)
    pool = first + rest
    if guess and len(guess.split()) <= CLOSED_BOOK_WORDS and is_wrong(example, guess):
        pool.insert(1, guess)
    if example.answerable and draw.random() < 0.2:
        pool.insert(1, REFUSAL)
    written = {text.casefold(): text for text in reversed(pool)}
    ordered = dict.fromkeys(written[text.casefold()] for text in pool)
    return tuple(ordered)[: recipe.wrong_per_question]


def _draw(label: str) -> random.Random:
    return random.Random(hashlib.sha256(label.encode("utf-8", "surrogatepass")).digest())


def plan(groups: Sequence[Sequence[Lesson]], recipe: TrainingRecipe) -> list[tuple[Lesson, ...]]:
    """The lessons of every bundle of a training, in an order drawn from the seed.

    Groups are cut by questions alone, never by what a role makes of them, so that all roles learn
    from the same questions in the same order.
    """
    planned: list[tuple[Lesson, ...]] = []
    for epoch in range(recipe.epochs):
        draw = _draw(f"epoch/{recipe.seed}/{epoch}")
        cut = [part for group in groups for part in _cut(group, recipe.questions_per_bundle, draw)]
        draw.shuffle(cut)
        planned += cut
    return planned


def _cut(group: Sequence[Lesson], size: int, draw: random.Random) -> list[tuple[Lesson, ...]]:
    """A group in parts of about equal size, so that none is left with a single question."""
    order = list(group)
    draw.shuffle(order)
    count = -(-len(order) // size)
    return [tuple(order[i::count]) for i in range(count)]


def lesson_bundle(
    lessons: Sequence[Lesson], prompter: Prompter, role: TrainedRole, *, verdicts: bool = True
) -> Bundle:
    """What some lessons on the same passages teach a role, as one bundle."""
    found: list[Row] = []
    for lesson in lessons:
        right = right_answer(lesson.example)
        found += rows(prompter, lesson.example, role, right, lesson.wrong, verdicts=verdicts)
    return bundle(found)


def fit(lessons: Lessons, recipe: TrainingRecipe, prompter: Prompter, window: int) -> Lessons:
    """The lessons whose longest prompt leaves room in a bundle; notes say how many were left out.

    What is too long is decided by the evaluator's prompt for all roles alike. ``window`` is the
    longest sequence that the model was made for, in tokens.

    Raises:
        LabError: nothing is left to learn.
    """
    limit = min(recipe.max_tokens // 2, window - TARGET_TOKENS)
    left_out = 0

    def short(lesson: Lesson) -> bool:
        nonlocal left_out
        candidate = max((right_answer(lesson.example), *lesson.wrong), key=len)
        fits = len(prompter.render(lesson.example, "evaluator", candidate)) <= limit
        left_out += not fits
        return fits

    parts = []
    for groups in (lessons.train, lessons.dev):
        kept = (tuple(filter(short, group)) for group in groups)
        parts.append(tuple(group for group in kept if group))
    if not parts[0]:
        raise LabError(
            f"No question fits {limit} tokens, which is half of max_tokens or what the model's "
            "window leaves: allow more, or take other data."
        )
    notes = lessons.notes
    if left_out:
        notes = (*notes, f"{left_out} questions of more than {limit} tokens were left out.")
    return replace(lessons, train=parts[0], dev=parts[1], notes=notes)
