"""Turning the facts of a world into passages, and noting in which sentence each is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from lab.data.example import Mark, Passage
from lab.data.world.facts import Entity, Fact, Scene, Split, Value, of_split
from lab.data.world.names import Namer
from lab.data.world.wordings import frames
from lab.data.world.words import capital
from lab.data.world.writer import Sentence, Writer, stop

FRAMED = 0.4
"""How often a passage without title begins or ends with a sentence on how it came about."""
LISTED = 0.25
"""How often a passage about several things first says which they are."""
FILLED = 0.3
"""How often a sentence that answers nothing follows a thing's description."""
PAIRED = 0.6
"""How often two things are told of in one sentence, where that can be."""
HELD_BACK = 0.4
"""How often something about an earlier thing is told only at the end, where that can be."""


@dataclass(frozen=True, slots=True)
class Told:
    """Composed passages: their text, where each fact is told, and values that answer nothing."""

    passages: tuple[Passage, ...]
    places: tuple[tuple[Fact, Mark], ...]
    noise: tuple[Value, ...]

    def marks(self, facts: Sequence[Fact]) -> tuple[Mark, ...]:
        """The sentences that tell the given facts, in the order of the text, without repeats."""
        found = {mark for fact, mark in self.places if any(fact is f for f in facts)}
        return tuple(sorted(found, key=lambda mark: (mark.passage, mark.start)))


def compose(rng: Random, split: Split, scene: Scene, namer: Namer) -> Told:
    """The passages of a world."""
    passages: list[Passage] = []
    places: list[tuple[Fact, Mark]] = []
    noise: list[Value] = []
    used: set[str] = set()
    for index, group in enumerate(scene.groups):
        writer = Writer(rng, split, scene, namer, used)
        text = ""
        for sentence in _framed(rng, split, scene, _passage(rng, writer, group)):
            text = f"{text} {sentence.text}" if text else sentence.text
            mark = Mark(index, len(text) - len(sentence.text), len(text))
            places += [(fact, mark) for fact in sentence.facts]
        passages.append(Passage(text, _title(rng, split, scene, group)))
        noise += writer.noise
    return Told(tuple(passages), tuple(places), tuple(noise))


def _title(rng: Random, split: Split, scene: Scene, group: Sequence[Entity]) -> str:
    if not scene.titled:
        return ""
    if len(group) == 1:
        return capital(group[0].name)
    return rng.choice(of_split(group[0].kind.headings, split))


def _framed(
    rng: Random, split: Split, scene: Scene, sentences: list[Sentence]
) -> Sequence[Sentence]:
    if scene.titled or rng.random() > FRAMED:
        return sentences
    first, last = rng.choice(frames(split))
    before = [Sentence(stop(first))] if first else []
    after = [Sentence(stop(last))] if last else []
    return [*before, *sentences, *after]


def _passage(rng: Random, writer: Writer, group: Sequence[Entity]) -> list[Sentence]:
    """The sentences about a group of things, one after the other, with some back and forth."""
    facts = {entity.name: list(writer.scene.told(entity)) for entity in group}
    for told in facts.values():
        rng.shuffle(told)
    pair = _pair(rng, group, facts)
    late = _held_back(rng, group, facts)
    alike = len(group) > 1 and len({entity.kind.name for entity in group}) == 1
    sentences = [writer.overview(group)] if alike and rng.random() < LISTED else []
    for entity in group:
        sentences += _block(rng, writer, entity, facts[entity.name])
    if pair is not None:
        sentences.append(writer.contrast(*pair))
    if late is not None:
        sentences.append(writer.comeback(late))
    return sentences


def _block(rng: Random, writer: Writer, entity: Entity, facts: list[Fact]) -> list[Sentence]:
    """Sentences about one thing: the first names it, the others follow on."""
    sentences = [writer.opening(entity, facts)]
    while facts:
        if rng.random() < FILLED / max(2, len(facts) + 1):
            sentences += writer.filler(entity)
        sentences.append(writer.following(entity, facts))
    if rng.random() < FILLED:
        sentences += writer.filler(entity)
    return sentences


def _pair(
    rng: Random, group: Sequence[Entity], facts: dict[str, list[Fact]]
) -> tuple[Fact, Fact] | None:
    """Two facts of the same relation, taken out, to be told in one sentence."""
    if len(group) < 2 or rng.random() > PAIRED:
        return None
    one, two = (facts[entity.name] for entity in rng.sample(list(group), 2))
    if min(len(one), len(two)) < 2:
        return None
    for fact in one:
        for other in two:
            same = fact.value.text == other.value.text
            plain = not (fact.wrong or other.wrong or fact.beside or other.beside)
            if other.relation is fact.relation and plain and not same:
                one.remove(fact)
                two.remove(other)
                return fact, other
    return None


def _held_back(rng: Random, group: Sequence[Entity], facts: dict[str, list[Fact]]) -> Fact | None:
    """A fact about an earlier thing, taken out, to be told only at the end."""
    if len(group) < 2 or rng.random() > HELD_BACK:
        return None
    told = facts[rng.choice(group[:-1]).name]
    fact = next((fact for fact in told if not (fact.wrong or fact.beside)), None)
    if fact is None or len(told) < 3:
        return None
    told.remove(fact)
    return fact
