"""Inventing what is true in one world: things, what is told of each, and in which passages."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from lab.data.world.facts import (
    Date,
    Entity,
    Fact,
    Kind,
    Link,
    Listing,
    Number,
    Phrase,
    Relation,
    Scene,
    Split,
    Value,
    Year,
    of_split,
    pool_of_split,
)
from lab.data.world.kinds import kinds
from lab.data.world.names import MONTHS, Namer
from lab.data.world.words import bare, listing, number_words

FIRST_YEARS = (1690, 1925)
REPEATED = 0.4
"""How often a value that can be compared for sameness is given to two things."""
DENIED = 0.4
"""How often a sentence denies a wrong value, where the table has such a wording."""
BESIDE = {Phrase: 0.25, Number: 0.06, Year: 0.06}
"""How often a sentence compares a thing with another one that is told of nowhere else."""
DESCRIBED_TOO = 0.3
"""How often a passage without title also describes something that its things are linked to."""


def invent(rng: Random, split: Split, kind: Kind, namer: Namer, titled: bool) -> Scene:
    """A world about some things of a kind, told in one passage or in several with titles."""
    maker = _Maker(rng, split, namer)
    groups = maker.strands(kind) if titled else [maker.crowd(kind)]
    rng.shuffle(groups)
    described = {id(entity) for group in groups for entity in group}
    facts = [fact for fact in maker.facts if id(fact.subject) in described]
    facts += [fact.beside for fact in facts if fact.beside]
    named_too = [fact.subject for fact in facts]
    named_too += [fact.value.target for fact in facts if fact.value.target is not None]
    mentioned = {e.name: e for e in named_too if id(e) not in described}
    return Scene(
        tuple(facts),
        tuple(tuple(group) for group in groups),
        titled,
        kind.name,
        tuple(mentioned.values()),
    )


@dataclass(slots=True)
class _Maker:
    """Makes things and facts; no year, number or phrase is used twice unless that is meant."""

    rng: Random
    split: Split
    namer: Namer
    facts: list[Fact] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def crowd(self, kind: Kind) -> list[Entity]:
        """Some things of one kind, of which nearly the same is told, and perhaps one linked."""
        count = self.rng.choice((1, 2, 2, 3, 3, 3, 3, 4))
        base = self.rng.randint(*FIRST_YEARS)
        things = [self.entity(kind, base + self.rng.randint(-25, 25)) for _ in range(count)]
        wanted = self._choose(kind, {1: 6, 2: 4, 3: 3, 4: 3}[count])
        for thing in things:
            kept = [r for r in wanted if count == 1 or self.rng.random() < 0.88]
            self.tell(thing, kept or wanted[:1])
        links = [
            f.value.target for f in self.facts if f.value.target and f.value.target.kind.relations
        ]
        if links and count < 4 and self.rng.random() < DESCRIBED_TOO:
            other = self.rng.choice(links)
            self.tell(other, self._choose(other.kind, 3))
            things.append(other)
        return things

    def strands(self, kind: Kind) -> list[list[Entity]]:
        """Two or three strands of linked things, the things of one step described alike."""
        base = self.rng.randint(*FIRST_YEARS)
        heads = [self.entity(kind, base + self.rng.randint(-25, 25)) for _ in range(2)]
        first = self._link(kind)
        if first is None:
            self._alike(heads, None)
            return [[head] for head in heads]
        seconds = self._alike(heads, first)
        link = self._link(seconds[0].kind)
        if link is None or self.rng.random() < 0.3:
            self._alike(seconds, None)
            return self._grouped(heads, seconds, [])
        thirds = self._alike(seconds, link)
        self._alike(thirds, None)
        return self._grouped(heads, seconds, thirds)

    def _grouped(
        self, heads: list[Entity], seconds: list[Entity], thirds: list[Entity]
    ) -> list[list[Entity]]:
        """At most five passages: the last step may lose its second, or two things share one."""
        levels = [level for level in (heads, seconds, thirds) if level]
        groups = [[entity] for level in levels for entity in level]
        if len(groups) <= 4 and self.rng.random() < 0.6:
            return groups
        if len(levels) == 3 and self.rng.random() < 0.35:
            return groups[:-1]
        shared = self.rng.choice([level for level in levels if level[0].kind.headings])
        return [shared, *([e] for level in levels if level is not shared for e in level)]

    def _alike(self, things: list[Entity], link: Relation | None) -> list[Entity]:
        """Tell nearly the same of some things; the things that they are linked to, if at all."""
        if not things[0].kind.relations:
            return []
        others = self._choose(things[0].kind, self.rng.choice((2, 2, 3, 3)))
        for thing in things:
            kept = [r for r in others if r is not link and self.rng.random() < 0.8]
            self.tell(thing, [*kept, *([link] if link else [])] or others[:1])
        if link is None:
            return []
        found = [f.value.target for f in self.facts if f.relation is link and f.subject in things]
        return [target for target in found if target is not None]

    def _link(self, kind: Kind) -> Relation | None:
        links = [
            r
            for r in kind.relations
            if isinstance(r.value, Link) and kinds()[r.value.kind].relations
        ]
        return self.rng.choice(links) if links else None

    def _choose(self, kind: Kind, count: int) -> list[Relation]:
        chosen = self.rng.sample(kind.relations, min(count, len(kind.relations)))
        pairs = {s.one: s.two for s in kind.sums} | {s.two: s.one for s in kind.sums}
        partners = {pairs[r.name] for r in chosen if r.name in pairs}
        return chosen + [r for r in kind.relations if r.name in partners and r not in chosen]

    def tell(self, thing: Entity, relations: list[Relation]) -> None:
        """Invent and note the facts about a thing in the given respects."""
        for relation in relations:
            value = self.value(relation, thing)
            deniable = any("{w}" in text for text in of_split(relation.says, self.split))
            wrong = None
            if deniable and self.rng.random() < DENIED:
                wrong = self.value(relation, thing, fresh=True)
                taken = {f.value.text for f in self.facts if f.relation is relation}
                wrong = None if wrong.text in taken | {value.text} else wrong
            beside = None if wrong else self._beside(thing, relation)
            self.facts.append(Fact(thing, relation, value, wrong, beside))

    def _beside(self, thing: Entity, relation: Relation) -> Fact | None:
        """The same kind of fact about a new thing, now and then, for comparison."""
        if self.rng.random() > BESIDE.get(type(relation.value), 0.0):
            return None
        other = self.entity(thing.kind, thing.base + self.rng.randint(-30, 30))
        return Fact(other, relation, self.value(relation, other, fresh=True))

    def entity(self, kind: Kind, base: int) -> Entity:
        """A new thing; its first year is nobody else's."""
        while f"year {base}" in self.used:
            base += self.rng.choice((-1, 1, 2, -3))
        self.used.add(f"year {base}")
        if kind.namer == "person":
            woman = self.rng.random() < 0.5
            name, family = self.namer.person(woman)
            return Entity(kind, name, family, "she" if woman else "he", base)
        name = self.namer.named(kind.namer)
        return Entity(kind, name, name, kind.pronoun, base)

    def value(self, relation: Relation, subject: Entity, fresh: bool = False) -> Value:
        """A value for a relation; now and then one that another thing has, where that is asked."""
        told = [f.value for f in self.facts if f.relation is relation]
        if relation.same and told and not fresh and self.rng.random() < REPEATED:
            return self.rng.choice(told)
        spec = relation.value
        if isinstance(spec, Link):
            target = self.entity(
                kinds()[spec.kind], subject.base + self.rng.randint(spec.low, spec.high)
            )
            return named(target)
        if isinstance(spec, Year):
            return self._year(spec, subject.base, fresh)
        if isinstance(spec, Number):
            return self._number(spec)
        if isinstance(spec, Phrase):
            return self._phrase(spec)
        if isinstance(spec, Listing):
            return self._listing(spec)
        return self._date(spec)

    def _year(self, spec: Year, base: int, fresh: bool) -> Value:
        if spec.low == spec.high == 0:
            return Value(str(base), (str(base),), "year", base)
        low, high = (spec.low, spec.high) if spec.high else (-9, 9)
        while True:
            year = base + self.rng.randint(low, high)
            if f"year {year}" not in self.used:
                self.used.add(f"year {year}")
                return Value(str(year), (str(year),), "year", year)
            low, high = low, high + 1

    def _number(self, spec: Number) -> Value:
        for _ in range(60):
            number = self.rng.randrange(spec.low, spec.high + 1, spec.step)
            if f"number {number}" not in self.used:
                break
        self.used.add(f"number {number}")
        return counted(number, spec.unit, spelled=self.rng.random() < 0.5)

    def _phrase(self, spec: Phrase) -> Value:
        pool = spec.pool if spec.common else pool_of_split(spec.pool, self.split)
        fresh = [text for text in pool if f"{spec.sort} {text}" not in self.used]
        text = self.rng.choice(fresh or pool)
        self.used.add(f"{spec.sort} {text}")
        clause = spec.sort in {"cause", "reason"}
        return Value(
            text, (text,) if clause else tuple(dict.fromkeys((bare(text), text))), spec.sort
        )

    def _listing(self, spec: Listing) -> Value:
        fresh = [text for text in spec.pool if f"{spec.sort} {text}" not in self.used]
        count = self.rng.randint(spec.low, spec.high)
        items = tuple(self.rng.sample(fresh if len(fresh) >= count else spec.pool, count))
        self.used.update(f"{spec.sort} {text}" for text in items)
        return Value(listing(items), (", ".join(items),), f"list of {spec.unit}", items=items)

    def _date(self, spec: Date) -> Value:
        months = [month for month in MONTHS if f"date {month}" not in self.used]
        month, day = self.rng.choice(months or MONTHS), self.rng.randint(2, 28)
        self.used.add(f"date {month}")
        return Value(f"{day} {month}", (f"{day} {month}", f"{month} {day}"), "date")


def named(entity: Entity) -> Value:
    """A thing as a value: its name, and the shorter ways of writing it."""
    answers = (bare(entity.name), entity.name, entity.short)
    return Value(entity.name, tuple(dict.fromkeys(answers)), entity.kind.name, target=entity)


def counted(number: int, unit: str, spelled: bool = False) -> Value:
    """A number with its unit; small ones may be spelled out."""
    digits = f"{number:,}"
    words = number_words(number)
    text = words if spelled and words else digits
    found = (text, digits, *([str(number)] if number > 999 else []), *([words] if words else []))
    return Value(
        f"{text} {unit}".strip(),
        tuple(dict.fromkeys((*found, f"{text} {unit}".strip()))),
        f"number of {unit}",
        number,
    )
