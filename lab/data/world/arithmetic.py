"""Questions whose answer is counted, computed or compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from lab.data.example import Answer
from lab.data.world.asking import Desk, Draft
from lab.data.world.facts import Entity, Fact, Relation, Scale, Year, of_split
from lab.data.world.scene import named
from lab.data.world.wordings import discourse
from lab.data.world.words import capital, forms, number_words

DROPPED = 0.6
"""How often two things that differ are not asked to be the same, so that "no" does not prevail."""


def computed(desk: Desk) -> Iterator[Draft]:
    """Counting, comparing, sums and differences over what the passages tell."""
    seen: set[str] = set()
    for fact in desk.scene.facts:
        relation = fact.relation
        if relation.name in seen:
            continue
        seen.add(relation.name)
        told = desk.scene.having(relation)
        if relation.scale and len(told) > 1 and len({f.value.number for f in told}) == len(told):
            yield from _scaled(desk, relation, relation.scale, told)
        if relation.same:
            yield from _same(desk, relation, told)
    yield from _sums(desk)
    yield from _listings(desk)
    yield from _spans(desk)
    yield from _ages(desk)


def _scaled(desk: Desk, relation: Relation, scale: Scale, told: Sequence[Fact]) -> Iterator[Draft]:
    for pair in combinations(told, 2):
        high, low = sorted(pair, key=_number, reverse=True)
        yield _which(desk, scale, high, low)
        yield from _yes_no(desk, scale, high, low)
        yield from _gap(desk, scale, high, low)
        yield from _total(desk, scale, high, low)
    if len(told) > 2 and _complete(desk, told):
        yield _most(desk, scale, told)
        yield from _over(desk, relation, scale, told)


def _which(desk: Desk, scale: Scale, high: Fact, low: Fact) -> Draft:
    more = desk.rng.random() < 0.5
    gold, other = (high, low) if more else (low, high)
    wordings = discourse("who" if high.subject.kind.namer == "person" else "which", desk.split)
    question = _pair_question(desk, desk.rng.choice(wordings), gold.subject, other.subject)
    question = question.replace("{m}", scale.more if more else scale.less)
    question = question.replace("{k}", gold.subject.kind.noun)
    wrong = (named(other.subject).answers[0], *desk.namesakes(gold.subject))
    return _draft(desk, question, _names(gold.subject), (gold, other), wrong, "compare")


def _yes_no(desk: Desk, scale: Scale, high: Fact, low: Fact) -> Iterator[Draft]:
    templates = of_split(scale.yesno, desk.split)
    if not templates:
        return
    truth = desk.rng.random() < 0.5
    one, two = (high, low) if truth else (low, high)
    question = desk.rng.choice(templates).replace("{a}", one.subject.name)
    question = question.replace("{b}", two.subject.name)
    yield _closed(desk, question, truth, (one, two))


def _same(desk: Desk, relation: Relation, told: Sequence[Fact]) -> Iterator[Draft]:
    for one, two in combinations(told, 2):
        if one.value.text != two.value.text and desk.rng.random() < DROPPED:
            continue
        template = desk.rng.choice(of_split(relation.same, desk.split))
        question = _pair_question(desk, template, one.subject, two.subject)
        yield _closed(desk, question, one.value.text == two.value.text, (one, two))


def _closed(desk: Desk, question: str, truth: bool, path: tuple[Fact, ...]) -> Draft:
    right, wrong = ("yes", "no") if truth else ("no", "yes")
    return _draft(desk, question, ((right,),), path, (wrong,), "compare")


def _gap(desk: Desk, scale: Scale, high: Fact, low: Fact) -> Iterator[Draft]:
    templates = of_split(scale.gap, desk.split)
    if not templates:
        return
    question = desk.rng.choice(templates).replace("{a}", high.subject.name)
    question = question.replace("{b}", low.subject.name)
    number = _number(high) - _number(low)
    date = isinstance(high.relation.value, Year)
    unit = "years" if date else getattr(high.relation.value, "unit", "")
    yield _number_draft(desk, question, number, unit, (high, low), "date" if date else "subtract")


def _total(desk: Desk, scale: Scale, high: Fact, low: Fact) -> Iterator[Draft]:
    templates = of_split(scale.total, desk.split)
    if not templates:
        return
    question = _pair_question(desk, desk.rng.choice(templates), high.subject, low.subject)
    unit = getattr(high.relation.value, "unit", "")
    yield _number_draft(desk, question, _number(high) + _number(low), unit, (high, low), "add")


def _most(desk: Desk, scale: Scale, told: Sequence[Fact]) -> Draft:
    more = desk.rng.random() < 0.5
    gold = (max if more else min)(told, key=_number)
    kind = gold.subject.kind
    question = desk.rng.choice(discourse("most", desk.split)).replace("{k}", kind.plural)
    question = question.replace("{n}", kind.noun).replace(
        "{m}", scale.most if more else scale.least
    )
    path = (gold, *(f for f in told if f is not gold))
    wrong = desk.namesakes(gold.subject)
    return _draft(desk, question, _names(gold.subject), path, wrong, "compare")


def _over(desk: Desk, relation: Relation, scale: Scale, told: Sequence[Fact]) -> Iterator[Draft]:
    ordered = sorted(told, key=_number)
    at = desk.rng.randint(1, len(ordered) - 1)
    limit = _limit(_number(ordered[at - 1]), _number(ordered[at]))
    if limit is None:
        return
    digits = str(limit) if isinstance(relation.value, Year) else f"{limit:,}"
    predicate = scale.over.replace("{x}", digits)
    above = [f for f in told if _number(f) > limit]
    plural = told[0].subject.kind.plural
    question = desk.rng.choice(discourse("over", desk.split))
    question = question.replace("{k}", plural).replace("{m}", predicate)
    if len(above) > 0:
        yield _number_draft(desk, question, len(above), plural, tuple(told), "count")
    if len(above) == 2 and len(told) > 2:
        yield _listed(desk, plural, predicate, told, above)


def _listed(
    desk: Desk, plural: str, predicate: str, told: Sequence[Fact], above: Sequence[Fact]
) -> Draft:
    question = desk.rng.choice(discourse("list", desk.split))
    question = question.replace("{k}", plural).replace("{m}", predicate)
    golds = [named(f.subject).answers[0] for f in above]
    others = [named(f.subject).answers[0] for f in told if f not in above]
    wrong = (*(f"{golds[i]}, {text}" for i, text in enumerate(others[:2])), *others, *golds)
    path = tuple(above) + tuple(f for f in told if f not in above)
    return _draft(desk, question, (tuple(golds),), path, wrong, "list")


def _sums(desk: Desk) -> Iterator[Draft]:
    """Two numbers of one thing, added or compared."""
    for fact in desk.scene.facts:
        for pair in fact.subject.kind.sums:
            other = next(
                (f for f in desk.scene.told(fact.subject) if f.relation.name == pair.two), None
            )
            if fact.relation.name != pair.one or other is None:
                continue
            one, two = _number(fact), _number(other)
            path = (fact, other)
            for templates, number, operation in (
                (pair.total, one + two, "add"),
                (pair.more if one > two else pair.less, abs(one - two), "subtract"),
            ):
                question = desk.rng.choice(of_split(templates, desk.split))
                question = question.replace("{s}", fact.subject.name)
                if number:
                    yield _number_draft(desk, question, number, pair.unit, path, operation)


def _listings(desk: Desk) -> Iterator[Draft]:
    """Lists of things: which they are, and how many."""
    for fact in desk.scene.facts:
        items = fact.value.items
        if not items:
            continue
        question = desk.rng.choice(of_split(fact.relation.counts, desk.split))
        question = question.replace("{s}", fact.subject.name)
        unit = getattr(fact.relation.value, "unit", "")
        yield _number_draft(desk, question, len(items), unit, (fact,), "count")
        asked = desk.ask(fact.relation, fact.subject.name)
        others = [f.value for f in desk.scene.having(fact.relation) if f is not fact]
        wrong = (
            *(v.answers[0] for v in others),
            *(", ".join(items[:-1] + v.items[:1]) for v in others),
        )
        yield _draft(desk, asked, (items,), (fact,), (*wrong, *items), "list")


def _limit(low: int, high: int) -> int | None:
    """A round number that is at least the one and below the other."""
    for step in (100, 50, 20, 10, 5, 1):
        limit = (high - 1) // step * step
        if low < limit < high:
            return limit
    return None


def _spans(desk: Desk) -> Iterator[Draft]:
    """Years between two different things that happened."""
    dated = [f for f in desk.scene.facts if of_split(f.relation.event, desk.split)]
    for pair in combinations(dated, 2):
        first, last = sorted(pair, key=_number)
        if first.relation is last.relation or _number(first) == _number(last):
            continue
        question = desk.rng.choice(discourse("span", desk.split))
        for token, fact in (("{a}", first), ("{b}", last)):
            event = desk.rng.choice(of_split(fact.relation.event, desk.split))
            if fact is last and fact.subject is first.subject:
                own = forms(fact.subject.pronoun)[0]
                event = re.sub(r"^the (.+) of \{s\}$", rf"{own} \1", event)
            question = question.replace(token, event.replace("{s}", fact.subject.name))
        years = _number(last) - _number(first)
        yield _number_draft(desk, question, years, "years", (first, last), "date")


def _ages(desk: Desk) -> Iterator[Draft]:
    """The age of a person when something happened."""
    births = [f for f in desk.scene.facts if f.relation.name == "person.born"]
    for birth in births:
        for fact in desk.scene.facts:
            # A single clause serves both splits: it is no wording but a statement's verb.
            clauses = of_split(fact.relation.when, desk.split) or fact.relation.when
            if not clauses or not 8 <= _number(fact) - _number(birth) <= 88:
                continue
            linked = any(
                f.subject is fact.subject and f.value.target is birth.subject
                for f in desk.scene.facts
            )
            if fact.subject is not birth.subject and not linked:
                continue
            clause = desk.rng.choice(clauses).replace("{s}", fact.subject.name)
            question = desk.rng.choice(discourse("age", desk.split)).replace("{c}", clause)
            question = question.replace("{p}", birth.subject.name)
            years = _number(fact) - _number(birth)
            yield _number_draft(desk, question, years, "years", (birth, fact), "date")


def _number_draft(
    desk: Desk, question: str, number: int, unit: str, path: tuple[Fact, ...], operation: str
) -> Draft:
    words = number_words(number)
    long = (f"{number:,} {unit}",) if number != 1 else ()
    texts = (f"{number:,}", str(number), *long, *([words] if words else []))
    answers = tuple((text,) for text in dict.fromkeys(texts))
    return _draft(desk, question, answers, path, _near(desk, number, path, operation), operation)


def _near(desk: Desk, number: int, path: Sequence[Fact], operation: str) -> tuple[str, ...]:
    """Wrong numbers: slips of counting or computing, then what was computed with."""
    if operation == "count":
        slips = [n for n in (number + 1, number - 1, len(path), number + 2) if n >= 0]
    else:
        step = desk.rng.choice((1, 2, 10))
        slips = [number + step, number - step, number + 10]
        if operation == "add":
            slips.append(abs(_number(path[0]) - _number(path[1])))
    wrong = [f"{n:,}" for n in slips if n > 0 or operation == "count"]
    given = [f.value.answers[0] for f in path] if operation in {"add", "subtract"} else []
    mixed = [wrong[0], *given[:2], *wrong[1:]]
    return tuple(dict.fromkeys(mixed))


def _pair_question(desk: Desk, template: str, one: Entity, two: Entity) -> str:
    names = [one.name, two.name]
    desk.rng.shuffle(names)
    return template.replace("{a}", names[0]).replace("{b}", names[1])


def _draft(
    desk: Desk,
    question: str,
    answers: tuple[Answer, ...],
    path: tuple[Fact, ...],
    wrong: Sequence[str],
    operation: str,
) -> Draft:
    relation = path[0].relation
    closed = answers[0][0] in {"yes", "no"}
    topic = f"{relation.name}/{operation}/{closed}"
    meta = {"relation": relation.name, "topic": topic}
    spread = len({mark.passage for mark in desk.told.marks(path)}) > 1
    if spread and operation == "compare" and len(path) == 2:
        family, extra = "bridge", {"type": "comparison", "hops": "2"}
    else:
        family, extra = "arithmetic", {"operation": operation}
    return Draft(family, capital(question), answers, path, tuple(wrong), meta | extra)


def _complete(desk: Desk, told: Sequence[Fact]) -> bool:
    """Whether every thing of the kind that the passages name has a value."""
    kind = told[0].subject.kind
    things = (*desk.scene.described, *desk.scene.mentioned)
    named_things = [e for e in things if e.kind is kind]
    noise = any(value.sort == kind.name for value in desk.told.noise)
    return not noise and len(named_things) == len(told)


def _names(entity: Entity) -> tuple[Answer, ...]:
    return tuple((text,) for text in named(entity).answers)


def _number(fact: Fact) -> int:
    if fact.value.number is None:
        raise ValueError(f"{fact.relation.name} has no number")
    return fact.value.number
