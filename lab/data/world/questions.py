"""Questions for what the passages say, in one, two or three steps, and for what they leave out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lab.data.world.asking import Desk, Draft, distinct
from lab.data.world.facts import Entity, Fact, Relation, of_split
from lab.data.world.scene import named
from lab.data.world.words import capital

_PARTICIPLE = re.compile(
    r"^(?:\w+ed|\w+ing|born|built|led|made|found|known|lost|driven|sent|taught|founded|rich|full|cut"
    r"|won|held|written|worn|drawn|grown|sung|kept|shot|begun|run|set|laid)\b (?!at\b)"
)
FAMILIES = {1: "extract", 2: "bridge", 3: "chain"}


@dataclass(frozen=True, slots=True)
class Route:
    """A noun phrase for a thing, and the facts that lead to it."""

    phrase: str
    entity: Entity
    path: tuple[Fact, ...]


def direct(desk: Desk) -> Iterator[Draft]:
    """Questions that one sentence answers: for a value, or for the thing that has it."""
    for fact in desk.scene.facts:
        if fact.value.items:
            continue
        yield _draft(desk, desk.ask(fact.relation, fact.subject.name), (fact,))
        backs = of_split(fact.relation.backs, desk.split)
        if backs and _one_of_many(desk, fact):
            yield _back(desk, desk.rng.choice(backs), fact)


def stepwise(desk: Desk) -> Iterator[Draft]:
    """Questions that name a thing only through one or two other facts."""
    firsts = list(_routes(desk))
    for route in firsts:
        yield from _asked(desk, route)
    for route in firsts:
        for longer in _further(desk, route):
            yield from _asked(desk, longer)


def unanswered(desk: Desk) -> Iterator[Draft]:
    """Questions worded like the others, for what the passages do not tell."""
    for entity in (*desk.scene.described, *desk.scene.mentioned):
        start = Route(entity.name, entity, ())
        for relation in _left_out(desk, entity):
            yield from _vain(desk, start, relation)
    for first in _routes(desk):
        for route in (first, *_further(desk, first)):
            for relation in _left_out(desk, route.entity):
                yield from _vain(desk, route, relation)


def _left_out(desk: Desk, entity: Entity) -> list[Relation]:
    """Respects in which nothing is told of a thing, but something of another one."""
    told = {fact.relation.name for fact in desk.scene.told(entity)}
    about = {f.relation.name for f in desk.scene.facts if f.value.target is entity}
    return [
        relation
        for relation in entity.kind.relations
        if relation.name not in told
        and not relation.guessable
        and not relation.counts
        and not (relation.mutual and relation.name in about)
    ]


def _vain(desk: Desk, route: Route, relation: Relation) -> Iterator[Draft]:
    question = desk.ask(relation, route.phrase, simple=not route.path)
    rivals = desk.rivals(relation, (), _sort(desk, relation))
    if question and len(rivals) > 1:
        yield Draft(
            FAMILIES[len(route.path) + 1],
            question,
            (),
            route.path,
            rivals,
            _meta(relation, len(route.path) + 1, route.entity),
        )


def _sort(desk: Desk, relation: Relation) -> str:
    """The sort of a relation's values."""
    told = desk.scene.having(relation)
    if told:
        return told[0].value.sort
    spec = relation.value
    named_sort = getattr(spec, "kind", "") or getattr(spec, "sort", "")
    if named_sort:
        return str(named_sort)
    unit = getattr(spec, "unit", None)
    if unit is not None:
        return f"number of {unit}"
    return "year" if hasattr(spec, "low") else "date"


def _routes(desk: Desk) -> Iterator[Route]:
    """Things named through one fact: as its value ("the builder of") or as its bearer."""
    for fact in desk.scene.facts:
        refs = of_split(fact.relation.refs, desk.split)
        if refs and fact.value.target is not None:
            phrase = desk.rng.choice(refs).replace("{s}", fact.subject.name)
            yield Route(phrase, fact.value.target, (fact,))
        bearer = _bearer(desk, fact)
        if bearer:
            yield Route(bearer, fact.subject, (fact,))


def _further(desk: Desk, route: Route) -> Iterator[Route]:
    """The things to which a second fact leads from a route's end."""
    for fact in desk.scene.told(route.entity):
        refs = of_split(fact.relation.refs, desk.split)
        if refs and fact.value.target is not None and fact not in route.path:
            phrase = desk.rng.choice(refs).replace("{s}", route.phrase)
            yield Route(phrase, fact.value.target, (*route.path, fact))


def _bearer(desk: Desk, fact: Fact) -> str:
    """A noun phrase for a thing by what is told of it; "" if others could be meant."""
    tags = [t for t in of_split(fact.relation.tags, desk.split) if _PARTICIPLE.match(t)]
    if not tags or not _one_of_many(desk, fact):
        return ""
    tag = desk.rng.choice(tags).replace("{v}", fact.value.text)
    return f"the {fact.subject.kind.noun} {tag}"


def _one_of_many(desk: Desk, fact: Fact) -> bool:
    """Whether the passages tell of several things of the kind, and the value of this one only."""
    peers = [e for e in desk.scene.described if e.kind is fact.subject.kind]
    return len(peers) > 1 and distinct(desk.scene.having(fact.relation), fact)


def _asked(desk: Desk, route: Route) -> Iterator[Draft]:
    for fact in desk.scene.told(route.entity):
        if fact.value.items or any(fact is f for f in route.path):
            continue
        question = desk.ask(fact.relation, route.phrase, simple=False)
        if question and fact.value.text not in question:
            yield _draft(desk, question, (*route.path, fact))


def _draft(desk: Desk, question: str, path: tuple[Fact, ...]) -> Draft:
    last = path[-1]
    answers = tuple((text,) for text in last.value.answers)
    rivals = desk.rivals(last.relation, path, last.value.sort)
    family = FAMILIES[len(path)]
    return Draft(
        family, question, answers, path, rivals, _meta(last.relation, len(path), last.subject)
    )


def _back(desk: Desk, template: str, fact: Fact) -> Draft:
    question = capital(template.replace("{v}", fact.value.text))
    answers = tuple((text,) for text in named(fact.subject).answers)
    meta = _meta(fact.relation, 1, fact.subject) | {"asked": "subject"}
    return Draft("extract", question, answers, (fact,), desk.namesakes(fact.subject), meta)


def _meta(relation: Relation, steps: int, subject: Entity) -> dict[str, str]:
    meta = {"relation": relation.name, "topic": f"{relation.name}/{subject.name}"}
    if steps > 1:
        meta |= {"hops": str(steps)} | ({"type": "bridge"} if steps == 2 else {})
    return meta
