"""What questions of every family have in common: drafts, wrong answers, and their checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from lab.data.distractors import is_wrong
from lab.data.example import Answer, Example, Mark, Metric
from lab.data.text import find_answers, is_closed, occurrences, read_off
from lab.data.world.compose import Told
from lab.data.world.facts import Entity, Fact, Relation, Scene, Split, Value, of_split
from lab.data.world.scene import named
from lab.data.world.words import capital

METRICS: dict[str, Metric] = {
    "extract": "squad",
    "arithmetic": "drop",
    "bridge": "hotpotqa",
    "chain": "musique",
}
MOST_WRONG = 5
_DOUBLED = re.compile(r"\b(\w+) \1\b")


@dataclass(frozen=True, slots=True)
class Draft:
    """A question before it is an example.

    ``path`` holds the facts that it needs, ``wrong`` the candidates for distractors, hardest
    first. Without ``answers`` the passages do not answer it.
    """

    family: str
    question: str
    answers: tuple[Answer, ...]
    path: tuple[Fact, ...]
    wrong: tuple[str, ...]
    meta: dict[str, str] = field(default_factory=dict)

    @property
    def topic(self) -> str:
        """What the question is about; a world is not asked about one topic twice."""
        return self.meta["topic"]


@dataclass(frozen=True, slots=True)
class Desk:
    """What a question is made from: the world, its text, a split's wordings and chance."""

    rng: Random
    split: Split
    scene: Scene
    told: Told

    def ask(self, relation: Relation, subject: str, simple: bool = True) -> str:
        """A question for the value of a relation; of a long subject none with a possessive.

        "" if there is none, or if a word would stand twice in a row.
        """
        asks = of_split(relation.asks, self.split)
        if not simple:
            asks = tuple(t for t in asks if "{s}'s" not in t and "{s} in " not in t)
        question = capital(self.rng.choice(asks).replace("{s}", subject)) if asks else ""
        return "" if _DOUBLED.search(question) else question

    def values(self) -> list[Value]:
        """All values that the passages hold, with those that answer nothing."""
        found = [value for f in self.scene.facts for value in (f.value, f.wrong) if value]
        found += [named(entity) for entity in self.scene.described]
        return [*found, *self.told.noise]

    def rivals(self, relation: Relation, path: Sequence[Fact], sort: str) -> tuple[str, ...]:
        """Wrong answers for the last step of a path, hardest first.

        What its own sentence denies, what is told in the same respect of other things, steps of
        the path itself, then other values of the same sort.
        """
        denied = [f.wrong for f in path[-1:] if f.wrong]
        alike = [f.value for f in self.scene.having(relation) if all(f is not p for p in path)]
        steps = [f.value for f in path[:-1]]
        others = self.values()
        self.rng.shuffle(alike)
        self.rng.shuffle(others)
        near = [v for v in (*denied, *alike, *steps, *others) if v.sort == sort]
        coarse = [v for v in others if _coarse(v.sort) == _coarse(sort)]
        return tuple(dict.fromkeys(v.answers[0] for v in (*near, *coarse)))

    def namesakes(self, entity: Entity) -> tuple[str, ...]:
        """Other things of the same kind in the passages, those described first."""
        described = [named(e) for e in self.scene.described if e.kind is entity.kind]
        others = [v for v in self.values() if v.sort == entity.kind.name]
        self.rng.shuffle(described)
        own = named(entity).answers[0]
        found = dict.fromkeys(v.answers[0] for v in (*described, *others))
        return tuple(text for text in found if text != own)


def finish(draft: Draft, desk: Desk, name: str, cluster: str) -> Example | None:
    """The example of a draft; None if it has too few wrong answers or cannot be marked."""
    evidence = desk.told.marks(draft.path) if draft.answers else ()
    bare = Example(
        id=name,
        dataset="world",
        family=draft.family,
        question=draft.question,
        passages=desk.told.passages,
        answers=draft.answers,
        evidence=evidence,
        metric=METRICS[draft.family],
        cluster=cluster,
        meta={**draft.meta, "domain": desk.scene.domain},
    )
    closed = any(is_closed(span) for spans in draft.answers for span in spans)
    wrong = list(_usable(bare, draft.wrong))[: desk.rng.randint(3, MOST_WRONG)]
    if len(wrong) < (1 if closed else 2):
        return None
    computed = draft.meta.get("operation") in {"count", "add", "subtract", "date"}
    marks: tuple[Mark, ...] = ()
    if draft.answers and not closed and not computed:
        last = _answer_places(draft, desk, evidence)
        golds = read_off(draft.answers) if draft.family == "arithmetic" else draft.answers
        marks = find_answers(bare.passages, golds, last)
        if not marks:
            return None
    return Example(
        id=bare.id,
        dataset=bare.dataset,
        family=bare.family,
        question=bare.question,
        passages=bare.passages,
        answers=bare.answers,
        evidence=evidence,
        answer_marks=marks,
        distractors=tuple(wrong),
        metric=bare.metric,
        cluster=cluster,
        meta=bare.meta,
    )


def _answer_places(draft: Draft, desk: Desk, evidence: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """The sentences in which the answer is looked for: for a path those of its last fact."""
    return desk.told.marks(draft.path[-1:]) if draft.meta.get("hops") else evidence


def _usable(example: Example, candidates: Iterable[str]) -> Iterable[str]:
    """Candidates that are wrong, hold no gold answer, and are not named by the question."""
    golds = [span for spans in example.answers for span in spans]
    comparing = example.meta.get("type") == "comparison" or example.meta.get("operation") in {
        "compare",
        "list",
    }
    seen: set[str] = set()
    for text in candidates:
        if text.casefold() in seen or not is_wrong(example, text):
            continue
        if any(occurrences(text, gold) or occurrences(gold, text) for gold in golds):
            continue
        if not comparing and occurrences(example.question, text):
            continue
        seen.add(text.casefold())
        yield text


def _coarse(sort: str) -> str:
    """Numbers of all units are of one coarse sort; nothing else is."""
    return "number" if sort.startswith("number") else sort


def distinct(facts: Sequence[Fact], fact: Fact) -> bool:
    """Whether no other of the facts has the same value."""
    return all(f is fact or f.value.text.casefold() != fact.value.text.casefold() for f in facts)
