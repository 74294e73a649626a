"""Sentences: how one or two facts are put into words, with names, nouns and pronouns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from lab.data.world.facts import Entity, Fact, Scene, Split, Value, of_split
from lab.data.world.names import Namer
from lab.data.world.scene import counted
from lab.data.world.wordings import discourse
from lab.data.world.words import capital, forms, listing, number_words, possessive

SPOKEN = 0.09
"""How often a fact is told in somebody's words."""
JOINED = 0.38
"""How often two facts share a sentence."""
SAID = 0.55
"""How often a single fact has a sentence form of its own, not just a predicate."""
LED = 0.3
"""How often a plain sentence has words before its subject."""

_NOMINATIVE = re.compile(r"(?:^|, |\bthat )$")
"""What stands before a thing that is a subject; elsewhere its name is used, not "it" or "she"."""
_NO_OPENING = re.compile(r"^(?:which|who|whose|later|never|with|already|also)\b")
"""Words that cannot begin a sentence when a tag is put in front of its subject."""
_ENDED = re.compile(r"^one of|\b(?:that|with|than|who)\b")
"""A description after which no relative clause may follow."""
_STEMS = ("born", "died", "founded", "built", "launched", "made", "patented", "opened", "won")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and the facts that it tells."""

    text: str
    facts: tuple[Fact, ...] = ()


@dataclass(slots=True)
class Writer:
    """Writes the sentences of one passage.

    It knows what the last sentence was about and what else was in it, so that a pronoun never
    has two things to stand for. ``used`` holds wordings used already, here and in the other
    passages; ``noise`` gathers the values that answer nothing.
    """

    rng: Random
    split: Split
    scene: Scene
    namer: Namer
    used: set[str]
    noise: list[Value] = field(default_factory=list)
    _last: Entity | None = None
    _near: set[str] = field(default_factory=set)
    _known: set[str] = field(default_factory=set)

    def overview(self, group: Sequence[Entity]) -> Sentence:
        """A sentence that says which things the passage is about."""
        template = self._fresh(discourse("overviews", self.split))
        names = listing([entity.name for entity in group])
        text = template.replace("{c}", number_words(len(group))).replace("{l}", names)
        return Sentence(stop(text.replace("{k}", group[0].kind.plural)))

    def opening(self, entity: Entity, facts: list[Fact]) -> Sentence:
        """The first sentence about a thing; the facts in it are taken out of the list."""
        kind, name = entity.kind, entity.name
        what = self._fresh(of_split(kind.is_a, self.split))
        is_what = f"{kind.be} {what}"
        plain = [fact for fact in facts if _is_plain(fact)]
        tagged = [fact for fact in plain if self._tags(fact)]
        ways = ["is"] + ["apposed", "apposed", "clause", "said"] * bool(plain)
        way = self.rng.choice(ways + ["tagged", "tagged", "tagged"] * bool(tagged))
        told: list[Fact] = []
        text = f"{name} {is_what}"
        if way in ("apposed", "clause"):
            told = plain[:1]
            text = self._described(entity, what, self._predicate(told[0]), way == "clause")
        elif way == "tagged":
            told = tagged[:1]
            tag = self._tag(told[0])
            others = [fact for fact in plain if fact is not told[0]][:1]
            rest = self._predicate(others[0]) if others else is_what
            if others and not _clash(tag, rest):
                told += others
            else:
                rest = is_what
            front = self.rng.random() < 0.6 and not _NO_OPENING.match(tag)
            text = f"{tag}, {name} {rest}" if front else f"{name}, {tag}, {rest}"
        elif way == "said":
            says = [s for s in of_split(plain[0].relation.says, self.split) if "{w}" not in s]
            told = plain[:1] if says else []
            text = self._fill(self._fresh(says), entity, name, plain[0]) if says else text
        for fact in told:
            facts.remove(fact)
        self._note(entity, told)
        return Sentence(stop(text), tuple(told))

    def following(self, entity: Entity, facts: list[Fact]) -> Sentence:
        """A further sentence about a thing; the facts in it are taken out of the list."""
        fact = facts.pop(0)
        says = of_split(fact.relation.says, self.split)
        if fact.wrong is not None:
            return self._said(entity, fact, self._fresh([s for s in says if "{w}" in s]))
        if fact.beside is not None:
            return self._compared(fact, fact.beside)
        if self.rng.random() < SPOKEN:
            return self._spoken(entity, fact)
        other = next((f for f in facts if _is_plain(f)), None)
        if other is not None and self.rng.random() < JOINED:
            facts.remove(other)
            return self._joined(entity, fact, other)
        plain = [s for s in says if "{w}" not in s]
        if plain and self.rng.random() < SAID:
            return self._said(entity, fact, self._fresh(plain))
        lead = ""
        if self.rng.random() < LED:
            lead = self._fresh(discourse(self.rng.choice(("leads", "more")), self.split))
        text = f"{lead}{self._subject(entity)} {self._predicate(fact)}"
        self._note(entity, [fact])
        return Sentence(stop(text), (fact,))

    def contrast(self, one: Fact, two: Fact) -> Sentence:
        """Two things told of in the same respect."""
        text = self.rng.choice(discourse("pairs", self.split))
        tells = of_split(one.relation.tells, self.split)
        for fact, name, predicate in ((one, "{a}", "{t}"), (two, "{b}", "{u}")):
            told = self._fill(self.rng.choice(tells), fact.subject, fact.subject.pronoun, fact)
            text = text.replace(name, fact.subject.short).replace(predicate, told)
        self._last = None
        return Sentence(stop(text), (one, two))

    def comeback(self, fact: Fact) -> Sentence:
        """A sentence that comes back to a thing described before."""
        entity = fact.subject
        text = self.rng.choice(discourse("returns", self.split)).replace("{n}", entity.name)
        text = text.replace("{s}", entity.pronoun).replace("{t}", self._predicate(fact))
        self._note(entity, [fact])
        return Sentence(stop(text), (fact,))

    def filler(self, entity: Entity) -> list[Sentence]:
        """A sentence that answers no question, unless all are used up."""
        templates = [t for t in of_split(entity.kind.fillers, self.split) if t not in self.used]
        if not templates:
            return []
        template = self._fresh(templates)
        subject = self._subject(entity, template)
        text = template
        if "{person}" in text:
            text = text.replace("{person}", self._stranger())
        if "{year}" in text:
            year = max(e.base for e in self.scene.described) + self.rng.randint(5, 60)
            self.noise.append(Value(str(year), (str(year),), "year", year))
            text = text.replace("{year}", str(year))
        if "{n}" in text:
            number = self.rng.randint(13, 98)
            self.noise.append(counted(number, ""))
            text = text.replace("{n}", str(number))
        self._last = None
        return [Sentence(stop(self._fill(text, entity, subject, None)))]

    def _described(self, entity: Entity, what: str, predicate: str, clause: bool) -> str:
        if not clause or _ENDED.search(what):
            return f"{entity.name}, {what}, {predicate}"
        who = "who" if entity.kind.namer == "person" else "that"
        return f"{entity.name} {entity.kind.be} {what} {who} {predicate}"

    def _spoken(self, entity: Entity, fact: Fact) -> Sentence:
        """A fact in somebody's words, with the thing's name in it."""
        words = capital(f"{entity.name} {self._predicate(fact)}")
        text = self._fresh(discourse("voices", self.split)).replace("{T}", words)
        text = text.replace("{q}", self._stranger()).replace("{n}", entity.name)
        self._last = None
        return Sentence(stop(text), (fact,))

    def _compared(self, fact: Fact, beside: Fact) -> Sentence:
        """A fact beside the like fact about something that is told of nowhere else."""
        text = self._fresh(discourse("besides", self.split))
        which = "who" if fact.subject.kind.namer == "person" else "which"
        text = text.replace("{r}", which).replace("{a}", fact.subject.name)
        text = text.replace("{b}", beside.subject.name)
        text = text.replace("{t}", self._predicate(fact)).replace("{u}", self._predicate(beside))
        self._known.add(fact.subject.name)
        self._last = None
        return Sentence(stop(text), (fact, beside))

    def _joined(self, entity: Entity, one: Fact, two: Fact) -> Sentence:
        """Two facts in one sentence."""
        subject, pronoun = self._subject(entity), entity.pronoun
        first, second = self._predicate(one), self._predicate(two)
        which = "who" if entity.kind.namer == "person" else "which"
        ways = [f"{subject} {first} and {second}"]
        if one.value.target is None:
            ways += [f"{subject} {first}, and {pronoun} {second}"]
            ways += [f"{subject} {first}; {pronoun} {second}"]
        if subject != pronoun and "," not in first:
            ways.append(f"{subject}, {which} {first}, {second}")
        tag = self._tag(one) if self._tags(one) else ""
        target = one.value.target
        confusing = target is not None and subject == pronoun == target.pronoun
        if tag and not (confusing or _NO_OPENING.match(tag) or _clash(tag, second)):
            ways.append(f"{tag}, {subject} {second}")
        self._note(entity, [one, two])
        return Sentence(stop(self.rng.choice(ways)), (one, two))

    def _said(self, entity: Entity, fact: Fact, template: str) -> Sentence:
        """A fact in a sentence form of its own."""
        subject = self._subject(entity, template)
        rivals = [v.target for v in (fact.value, fact.wrong) if v and v.target]
        named_first = re.match(r"[^{]*\{[vw]\}", template) is not None
        if named_first and any(rival.pronoun == entity.pronoun for rival in rivals):
            subject = entity.short
        self._note(entity, [fact])
        return Sentence(stop(self._fill(template, entity, subject, fact)), (fact,))

    def _stranger(self) -> str:
        """The name of somebody who plays no part."""
        name, family = self.namer.person(self.rng.random() < 0.5)
        self.noise.append(Value(name, (name, family), "person"))
        return name

    def _subject(self, entity: Entity, template: str = "{s}") -> str:
        """A name, a noun or a pronoun: never one that another thing close by could be meant by."""
        if entity.name not in self._known:
            return entity.name
        if self._last is not entity:
            return entity.short
        roll = self.rng.random()
        if roll < 0.6 and entity.pronoun not in self._near and not _is_object(template):
            return entity.pronoun
        if roll < 0.8 and entity.kind.nouns and entity.kind.name not in self._near:
            return self.rng.choice(entity.kind.nouns)
        return entity.short

    def _note(self, entity: Entity, facts: Sequence[Fact]) -> None:
        """Remember what the last sentence was about, and what else was in it."""
        self._known.add(entity.name)
        self._last = entity
        values = [value for fact in facts for value in (fact.value, fact.wrong) if value]
        targets = [value.target for value in values if value.target]
        self._near = {t.pronoun for t in targets} | {t.kind.name for t in targets}

    def _tags(self, fact: Fact) -> tuple[str, ...]:
        return of_split(fact.relation.tags, self.split)

    def _tag(self, fact: Fact) -> str:
        return self._fresh(self._tags(fact)).replace("{v}", fact.value.text)

    def _predicate(self, fact: Fact) -> str:
        tell = self._fresh(of_split(fact.relation.tells, self.split))
        return self._fill(tell, fact.subject, fact.subject.pronoun, fact)

    def _fresh(self, options: Sequence[str]) -> str:
        """One of the wordings, if possible one that has not been used."""
        chosen = self.rng.choice([t for t in options if t not in self.used] or list(options))
        self.used.add(chosen)
        return chosen

    def _fill(self, template: str, entity: Entity, subject: str, fact: Fact | None) -> str:
        """The template with its subject: as given at its first mention, then a pronoun."""
        own, him, himself = forms(entity.pronoun)
        short = {"{s}": entity.pronoun, "{p}": own, "{o}": him}
        named = {"{s}": subject, "{p}": possessive(subject), "{o}": subject}
        other = {"{r}": himself}
        if fact is not None:
            other |= {"{v}": fact.value.text, "{w}": fact.wrong.text if fact.wrong else "{w}"}
        brief = subject == entity.pronoun
        parts = re.split(r"(\{[a-z]\})", template)
        for index, part in enumerate(parts):
            if part in short:
                parts[index] = (short if brief else named)[part]
                brief = True
            elif part in other:
                parts[index] = other[part]
        return "".join(parts)


def stop(text: str) -> str:
    """The text with its capital and its stop."""
    return f"{capital(text)}."


def _is_plain(fact: Fact) -> bool:
    """Whether a fact may share a sentence with another one."""
    return fact.wrong is None and fact.beside is None


def _clash(one: str, two: str) -> bool:
    """Whether two parts of a sentence would repeat the same verb."""
    return any(stem in one and stem in two for stem in _STEMS)


def _is_object(template: str) -> bool:
    """Whether the first mention of the thing in a template is {s} and may be no subject."""
    before, mention, _ = re.split(r"(\{[sop]\})", f"{template}{{s}}", maxsplit=1)
    return mention == "{s}" and not _NOMINATIVE.search(before)
