"""What can be true in an invented world: kinds of things, their relations, entities and facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Split = Literal["train", "test"]

TEST_SHARE = 4
"""One wording in so many (at least one of two or more) belongs to the test split."""


def of_split(wordings: Sequence[str], split: Split) -> tuple[str, ...]:
    """The wordings of a table's row that belong to a split: the last quarter is for the test.

    A row with a single wording is for training only.
    """
    held = max(1, len(wordings) // TEST_SHARE) if len(wordings) > 1 else 0
    cut = len(wordings) - held
    return tuple(wordings[cut:] if split == "test" else wordings[:cut])


def pool_of_split(pool: Sequence[str], split: Split) -> tuple[str, ...]:
    """The phrases of a pool that belong to a split: every third is for the test."""
    return tuple(
        phrase for index, phrase in enumerate(pool) if (index % 3 == 2) == (split == "test")
    )


@dataclass(frozen=True, slots=True)
class Link:
    """A value that is another thing; its first year lies so many years from the subject's."""

    kind: str
    low: int = -40
    high: int = 40


@dataclass(frozen=True, slots=True)
class Year:
    """A value that is a year, so many years after the subject's first year."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number in steps, with the plural of its unit, which follows it in the text."""

    low: int
    high: int
    unit: str
    step: int = 1


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase or clause out of a pool; ``sort`` says which values may be confused.

    A ``common`` pool of plain words serves both splits.
    """

    sort: str
    pool: tuple[str, ...]
    common: bool = False


@dataclass(frozen=True, slots=True)
class Date:
    """A day of the year, such as 9 March."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A value of several things of a sort, with the plural of what they are."""

    sort: str
    pool: tuple[str, ...]
    low: int
    high: int
    unit: str


ValueSpec = Link | Year | Number | Phrase | Date | Listing


@dataclass(frozen=True, slots=True)
class Sum:
    """Two numbers of one thing that can be added or compared: relations, unit, questions on {s}.

    ``more`` asks by how much the first exceeds the second, ``less`` the other way round.
    """

    one: str
    two: str
    unit: str
    total: tuple[str, ...]
    more: tuple[str, ...]
    less: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """How things are compared by a number or a year.

    ``more`` to ``least`` are predicates of one thing ("is longer", "is the shortest"), ``over``
    is a predicate of several with a limit ("are longer than {x} metres"); ``gap``, ``yesno`` and
    ``total`` are questions about {a} and {b}, of which ``gap`` takes {a} to have more, and
    ``yesno`` asks whether {a} has more.
    """

    more: str
    less: str
    most: str
    least: str
    over: str
    gap: tuple[str, ...] = ()
    yesno: tuple[str, ...] = ()
    total: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Relation:
    """One thing that can be said and asked about a kind.

    In the wordings {s} is the subject, {p} its possessive, {o} its object form, {v} the value and
    {w} a value that is wrong.

    Attributes:
        name: unique among all relations, ``kind.what``.
        value: what kind of value it has.
        tells: predicates that follow a subject.
        says: whole sentences, without the stop.
        tags: participles and appositions that can stand beside the subject.
        asks: questions for the value.
        backs: questions for the subject, given the value.
        refs: noun phrases for the value, where it is another thing.
        same: questions whether {a} and {b} have the same value.
        event: a noun phrase for what happened in the year; ``when`` the same as a clause.
        scale: how things are compared by it.
        counts: questions how many things the value lists.
        mutual: what holds of the value towards the subject as well, as marriage does.
        guessable: other sentences may hint at it, so that it is never asked in vain.
    """

    name: str
    value: ValueSpec
    tells: tuple[str, ...]
    says: tuple[str, ...]
    asks: tuple[str, ...]
    tags: tuple[str, ...] = ()
    backs: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    event: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    scale: Scale | None = None
    counts: tuple[str, ...] = ()
    mutual: bool = False
    guessable: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing and what can be told of it.

    Attributes:
        name: key of the kind; ``plural`` and ``noun`` are the words for it in questions.
        namer: which sort of name it gets (`lab.data.world.names`).
        pronoun: "it" or "she"; "" for people, who have their own.
        nouns: ways to mention it again ("the ship").
        is_a: what it is, with the article; true of every one of the kind.
        be: "is" or "was", before ``is_a``.
        relations: what can be said of it.
        fillers: sentences without the stop that answer no question.
        headings: titles of a passage about several.
        sums: numbers of one thing that belong together.
    """

    name: str
    noun: str
    plural: str
    namer: str
    pronoun: str
    nouns: tuple[str, ...]
    is_a: tuple[str, ...]
    be: str
    relations: tuple[Relation, ...]
    fillers: tuple[str, ...]
    headings: tuple[str, ...] = ()
    sums: tuple[Sum, ...] = ()


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing in one invented world. ``base`` is its first year, of birth or founding."""

    kind: Kind
    name: str
    short: str
    pronoun: str
    base: int


@dataclass(frozen=True, slots=True)
class Value:
    """A value in words, the ways to write it as an answer, and what it is besides."""

    text: str
    answers: tuple[str, ...]
    sort: str
    number: int | None = None
    target: Entity | None = None
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """What is told of an entity.

    ``wrong`` is a value that its sentence denies, and ``beside`` a fact about something else that
    its sentence tells too, if it does.
    """

    subject: Entity
    relation: Relation
    value: Value
    wrong: Value | None = None
    beside: Fact | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """The things of a world, what is told of each, and in which passages.

    ``groups`` holds, for each passage, the entities that it describes.
    """

    facts: tuple[Fact, ...]
    groups: tuple[tuple[Entity, ...], ...]
    titled: bool
    domain: str
    mentioned: tuple[Entity, ...] = field(default=())

    @property
    def described(self) -> tuple[Entity, ...]:
        """All entities that a passage describes."""
        return tuple(entity for group in self.groups for entity in group)

    def told(self, entity: Entity) -> tuple[Fact, ...]:
        """The facts about an entity."""
        return tuple(fact for fact in self.facts if fact.subject is entity)

    def fact(self, entity: Entity, relation: Relation) -> Fact | None:
        """What is told of an entity in one respect, or None."""
        found = (f for f in self.told(entity) if f.relation.name == relation.name)
        return next(found, None)

    def having(self, relation: Relation) -> tuple[Fact, ...]:
        """All facts in one respect."""
        return tuple(fact for fact in self.facts if fact.relation.name == relation.name)
