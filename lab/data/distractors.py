"""Wrong candidates for the judge, from hard to easy, and passages with another answer put in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256

from lab.data.example import Example, Mark, Passage
from lab.data.folding import fold
from lab.data.metrics import score
from lab.data.spans import KINDS, answer_kind, answer_shape, find_spans
from lab.data.text import is_closed, occurrences, whole_words

WRONG_BELOW = 0.5
"""A candidate counts as wrong if it is no exact match and its F1 is below this."""


def candidate_rungs(example: Example, pool: Sequence[Example], seed: int = 0) -> dict[str, str]:
    """The candidates that need no model, by rung; a rung that cannot be filled is left out.

    - ``gold``: the first gold answer ("" where the passages do not answer).
    - ``same_type``: a wrong answer of the gold answer's kind from the same passages: the example's
      own first distractor; else, of the gold answers of other questions on the same passages
      and the spans found by `lab.data.spans` (nearest to the evidence first), the first that
      looks like the gold answer and stands in the question only if the gold answer does; for
      yes/no the other word.
    - ``same_passage``: any other answer or span of the same passages, of another kind if there
      is one.
    - ``other_passage``: the gold answer of a question on other passages that does not stand in
      these, chosen by a hash of seed and id; of the same kind if there is one.
    - ``empty``: "" (left out where it is the gold answer).

    ``pool`` holds other examples of the same source (`Examples.pool`). No wrong candidate scores
    an exact match or F1 >= 0.5 against a gold answer, holds one, or is part of one, however
    numbers and plurals are written (`lab.data.folding`). Kinds are coarse and told by form; a right
    answer in words that no gold answer has cannot be noticed.
    """
    rungs = {"gold": example.gold}
    pool = [item for item in pool if item.id != example.id]
    same_type = next(_unlike(example, _same_type(example, pool)), None)
    taken = [] if same_type is None else [same_type]
    same_passage = _fresh(_same_passage(example, pool), taken)
    found = {
        "same_type": same_type,
        "same_passage": next(_unlike(example, same_passage), None),
        "other_passage": next(_unlike(example, _other_passage(example, pool, seed)), None),
        "empty": "" if example.answerable else None,
    }
    return rungs | {name: text for name, text in found.items() if text is not None}


def hard_wrongs(example: Example, pool: Sequence[Example]) -> Iterator[str]:
    """Wrong answers from the example's own passages, hardest first, none twice.

    First those of the gold answer's kind (as the rung ``same_type``), then others
    (``same_passage``); see `candidate_rungs`. Empty where the passages hold none. Adapters are
    trained on these, and a training must stay what it was: unlike a rung, one may be a gold answer
    but for how a number or a plural is written.
    """
    pool = [item for item in pool if item.id != example.id]
    seen: set[str] = set()
    for text in (*_same_type(example, pool), *_same_passage(example, pool)):
        if text.casefold() not in seen:
            seen.add(text.casefold())
            yield text


def is_wrong(example: Example, candidate: str) -> bool:
    """Whether a candidate scores neither an exact match nor an F1 of 0.5 for this example."""
    got = score(example, candidate)
    return not got.em and got.f1 < WRONG_BELOW


def altered(example: Example, pool: Sequence[Example] = ()) -> Example | None:
    """The example with every occurrence of its answer replaced by a wrong one, or None.

    The replacement is the ``same_type`` candidate; it becomes the answer, and the old answer the
    first distractor. Occurrences are whole words in all passages, with any capitals; only a single
    capitalised word must stand as written (the name "Will" is not the verb). Marks move along.
    The id gets the ending ``~altered``, and ``meta`` tells ``original`` and ``replacement``. Where
    the passages held the replacement already, it stands there as before.

    None where no answer is marked, where the answer has several spans, where there is no
    replacement free of the answer, or where the answer would remain.
    """
    if not example.answer_marks or any(len(spans) > 1 for spans in example.answers):
        return None
    surfaces = _surfaces(example)
    found = _same_type(example, [item for item in pool if item.id != example.id])
    options = _unlike(example, found)
    new = next((text for text in options if not _holds(text, surfaces)), None)
    if new is None:
        return None
    edits = [_replacements(passage.text, surfaces) for passage in example.passages]
    passages = tuple(
        Passage(_apply(passage.text, places, new), passage.title)
        for passage, places in zip(example.passages, edits, strict=True)
    )
    if any(_holds(passage.text, surfaces) for passage in passages):
        return None
    marked = [
        Mark(index, start, end)
        for index, places in enumerate(edits)
        for start, end in places
        if any(m.passage == index and m.start < end and start < m.end for m in example.answer_marks)
    ]
    return replace(
        example,
        id=f"{example.id}~altered",
        passages=passages,
        answers=((new,),),
        evidence=tuple(_moved(mark, edits, len(new)) for mark in example.evidence),
        answer_marks=tuple(_moved(mark, edits, len(new)) for mark in marked),
        distractors=(example.gold, *(text for text in example.distractors if text != new)),
        meta={**example.meta, "original": example.gold, "replacement": new},
    )


def _same_type(example: Example, pool: Sequence[Example]) -> Iterator[str]:
    """Wrong answers of the gold answer's kind from the same passages, best first."""
    gold = example.gold
    if example.answerable and is_closed(gold):
        yield from _wrong(example, ["no" if "yes" in gold.casefold() else "yes"])
        return
    yield from _wrong(example, example.distractors)
    kinds = _kinds(example)
    found = [text for text in _siblings(example, pool) if answer_kind(text) in kinds]
    for kind in kinds:
        found += find_spans(example.passages, kind, example.evidence)
    asked, shapes = _named(example, gold), {answer_shape(text) for text in _models(example)}
    found.sort(key=lambda text: (_named(example, text) != asked, answer_shape(text) not in shapes))
    yield from _wrong(example, found)


def _same_passage(example: Example, pool: Sequence[Example]) -> Iterator[str]:
    """Wrong answers from the same passages, those of another kind than the gold one first."""
    kinds = _kinds(example)
    found = list(_siblings(example, pool))
    for kind in KINDS:
        found += find_spans(example.passages, kind, example.evidence)
    found.sort(key=lambda text: (answer_kind(text) in kinds, _named(example, text)))
    yield from _wrong(example, [*found, *example.distractors])


def _named(example: Example, text: str) -> bool:
    """Whether the question itself holds the text, as a comparison names its two answers."""
    return bool(text) and bool(occurrences(example.question, text))


def _models(example: Example) -> Sequence[str]:
    """What a wrong answer should look like: the gold answer, else the distractors."""
    return example.answers[0][:1] if example.answerable else example.distractors


def _other_passage(example: Example, pool: Sequence[Example], seed: int) -> Iterator[str]:
    """Gold answers of questions on other passages, those of the gold answer's kind first."""
    others = [item for item in pool if item.cluster != example.cluster and item.answerable]
    if not others:
        return
    digest = sha256(f"{seed}/{example.id}".encode("utf-8", "surrogatepass")).digest()
    first = int.from_bytes(digest[:8]) % len(others)
    golds = [item.gold for item in others[first:] + others[:first]]
    kinds = _kinds(example)
    alike = (gold for gold in golds if answer_kind(gold) in kinds)
    open_ended = (gold for gold in golds if not is_closed(gold))
    for texts in (alike, open_ended):
        absent = (text for text in texts if not _holds_any(example.passages, text))
        yield from _wrong(example, absent)


def _siblings(example: Example, pool: Sequence[Example]) -> list[str]:
    """Gold answers of other questions on the same passages, if they stand in these passages."""
    golds = [item.gold for item in pool if item.cluster == example.cluster and item.answerable]
    return [gold for gold in golds if _holds_any(example.passages, gold)]


def _holds_any(passages: Iterable[Passage], text: str) -> bool:
    return any(occurrences(passage.text, text) for passage in passages)


def _kinds(example: Example) -> tuple[str, ...]:
    """The kinds a wrong answer may be of: the gold one's, else a distractor's, else as asked."""
    return tuple(dict.fromkeys(map(answer_kind, _models(example)))) or _asked_kinds(example)


def _asked_kinds(example: Example) -> tuple[str, ...]:
    """What kind of answer a question asks for, by its question word; any if that does not tell."""
    question = example.question.casefold()
    for pattern, kinds in _ASKED:
        if re.search(pattern, question):
            return kinds
    return ("name", "number", "date")


_ASKED = (
    (r"\bwhen\b|\b(?:what|which) (?:year|date|month|day)\b", ("date",)),
    (r"\bhow (?:many|much|long|old|far|tall)\b|\bwhat (?:percent|number)", ("number",)),
    (r"\bwho\b|\bwhom\b|\bwhose\b|\bwhere\b", ("name",)),
)


def _wrong(example: Example, candidates: Iterable[str]) -> Iterator[str]:
    return (
        text
        for text in candidates
        if text.strip() and is_wrong(example, text) and not _overlaps(example, text)
    )


def _overlaps(example: Example, candidate: str) -> bool:
    """Whether a gold span stands inside the candidate, or the candidate inside a gold span."""
    golds = [span for spans in example.answers for span in spans]
    return any(occurrences(candidate, gold) or occurrences(gold, candidate) for gold in golds)


def _unlike(example: Example, candidates: Iterable[str]) -> Iterator[str]:
    """Candidates that neither hold a gold span nor are part of one once both are folded."""
    golds = [fold(span) for spans in example.answers for span in spans]
    for text in candidates:
        words = fold(text)
        if not any(_inside(words, gold) or _inside(gold, words) for gold in golds):
            yield text


def _inside(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether the words of a text stand together in another's; no words stand nowhere."""
    places = range(len(whole) - len(part) + 1)
    return bool(part) and any(whole[i : i + len(part)] == part for i in places)


def _fresh(candidates: Iterator[str], taken: Sequence[str]) -> Iterator[str]:
    """Candidates that differ from those taken already."""
    used = {text.casefold() for text in taken}
    return (text for text in candidates if text.casefold() not in used)


def _surfaces(example: Example) -> list[str]:
    """The ways in which the answer is written, longest first."""
    golds = {span for spans in example.answers for span in spans if not is_closed(span)}
    marked = {example.marked(mark) for mark in example.answer_marks}
    return sorted(golds | marked, key=lambda text: (-len(text), text))


def _holds(text: str, surfaces: Iterable[str]) -> bool:
    return any(_places(text, surface) for surface in surfaces)


def _places(text: str, surface: str) -> list[tuple[int, int]]:
    """Where a way of writing the answer stands; a single capitalised word only as written."""
    name = surface != surface.lower() and len(surface.split()) == 1
    return whole_words(text, surface, ignore_case=not name)


def _replacements(text: str, surfaces: Iterable[str]) -> list[tuple[int, int]]:
    """The places of the answer in a text, left to right, the longest way of writing first."""
    places: list[tuple[int, int]] = []
    for surface in surfaces:
        for start, end in _places(text, surface):
            if all(end <= left or right <= start for left, right in places):
                places.append((start, end))
    return sorted(places)


def _apply(text: str, places: Sequence[tuple[int, int]], new: str) -> str:
    for start, end in reversed(places):
        text = text[:start] + new + text[end:]
    return text


def _moved(mark: Mark, edits: Sequence[Sequence[tuple[int, int]]], size: int) -> Mark:
    """Where a mark lies after the replacements of its passage."""
    places = edits[mark.passage]
    start, end = _shift(mark.start, places, size, at_end=False), mark.end
    return Mark(mark.passage, start, _shift(end, places, size, at_end=True))


def _shift(position: int, places: Sequence[tuple[int, int]], size: int, *, at_end: bool) -> int:
    """A position after the replacements; one inside a replaced range goes to its start or end."""
    moved = position
    for start, end in places:
        if end <= position:
            moved += size - (end - start)
        elif start < position:
            moved += (start + size if at_end else start) - position
    return moved
