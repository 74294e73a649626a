"""Kinds of answers, and spans of a given kind found in a passage by simple rules.

Kinds: ``yes/no``, ``date`` (holds a month's name, or is a year), ``number`` (holds digits, or is a
number word), ``name`` (a run of capitalised words), ``phrase`` (all else).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from lab.data.example import Mark, Passage
from lab.data.text import is_closed, sentences

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
)
_YEAR = r"(?<![\w.,$\u00a3\u20ac])(?:1\d{3}|20\d{2})(?![\w%]|[.,]\d)"
_DATE = re.compile(
    rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}(?:,?\s+\d{{4}})?\b"
    rf"|\b{_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}}\b)?|\b{_MONTH}\s+\d{{4}}\b"
    rf"|{_YEAR}"
)
_NUMBER_WORD = (
    r"(?:(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    r"|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
    r"|hundred|thousand|million|(?<=-)one)(?:[-\s](?=\w))?)+"
)
_DIGITS = r"(?<![\w.,])[$\u00a3\u20ac]?\d+(?:,\d{3})*(?:\.\d+)?%?(?![\w]|[.,]\d)"
_NUMBER = re.compile(rf"{_DIGITS}|\b{_NUMBER_WORD}\b", re.IGNORECASE)
_CAPITAL = r"(?:[^\W\d_a-z][\w'\u2019]*(?:-\w+)*|[A-Z]\.)"
_NAME = re.compile(
    rf"(?<!\w){_CAPITAL}(?:\s+(?:(?:of(?:\s+the)?|de|von|van|da|del|v\.)\s+)?{_CAPITAL})*"
)
# Words that are capitalised only because a sentence starts with them.
_OPENER_WORDS = """
a about after again all also although among an and another any as at because before both but by
despite during each early either even every few finally first following for from he her here his
how however i if in instead it its last later like many more most much neither no nor not now of
on once one only or other our over she since so some soon still such that the their then there
these they this those though through to today together two three under until up upon we what when
where whether which while who why with within without you your
"""
_OPENERS = frozenset(_OPENER_WORDS.split())
_FINDERS = {"date": _DATE, "number": _NUMBER, "name": _NAME}
KINDS = tuple(_FINDERS)


def answer_kind(text: str) -> str:
    """The kind of an answer by its form."""
    bare = text.strip(" .,\"'()")
    if is_closed(text):
        return "yes/no"
    if re.search(rf"\b{_MONTH}\b", bare) or re.fullmatch(_YEAR, bare):
        return "date"
    if re.search(r"\d", bare) or re.fullmatch(_NUMBER_WORD, bare, re.IGNORECASE):
        return "number"
    words = bare.split()
    if words and words[0][0].isupper() and words[-1][0].isupper():
        return "name"
    return "phrase"


def answer_shape(text: str) -> str:
    """What an answer looks like, to tell finer than by kind: "29" from "29-yard", "1984" from
    "May 1984", a name of one word from a longer one. Phrases all have one shape.
    """
    kind = answer_kind(text)
    if kind == "name":
        return "long name" if len(text.split()) > 1 else "short name"
    if kind in {"date", "number"}:
        months = re.sub(_MONTH, "month", text)
        return re.sub(r"\d[\d.,]*", "0", months).casefold()
    return kind


def find_spans(passages: Sequence[Passage], kind: str, near: Sequence[Mark] = ()) -> list[str]:
    """Distinct spans of a kind in the passages, hardest wrong answers first.

    First those in the marked evidence, then those in the same passages, then the others; in the
    order of the text. For ``phrase`` and ``yes/no`` there is no rule, hence no span.
    """
    finder = _FINDERS.get(kind)
    if finder is None:
        return []
    found = [
        (_distance(index, start, near), index, start, passage.text[start:end])
        for index, passage in enumerate(passages)
        for start, end in _matches(finder, passage.text, kind)
    ]
    return list(dict.fromkeys(" ".join(text.split()) for *_, text in sorted(found)))


def _distance(index: int, start: int, near: Sequence[Mark]) -> int:
    marks = [mark for mark in near if mark.passage == index]
    return 2 - bool(marks) - any(mark.start <= start < mark.end for mark in marks)


def _matches(finder: re.Pattern[str], text: str, kind: str) -> Iterator[tuple[int, int]]:
    openings = {start for start, _ in sentences(text)}
    dates = [match.span() for match in _DATE.finditer(text)] if kind == "number" else []
    for match in finder.finditer(text):
        start, end = match.span()
        if any(left <= start < right for left, right in dates):
            continue
        if kind == "name":
            start = _skip_opener(text, start, end, start in openings)
        end = start + len(text[start:end].rstrip(" -\n'\u2019"))
        if end - start > 1 or (kind == "number" and end > start):
            yield start, end


def _skip_opener(text: str, start: int, end: int, opens: bool) -> int:
    """Where the name begins once a leading common word is passed over.

    A single word that opens a sentence is never taken: its capital says nothing.
    """
    words = [(m.start() + start, m.group()) for m in re.finditer(r"\S+", text[start:end])]
    while words and words[0][1].casefold() in _OPENERS:
        words, opens = words[1:], False
    months = bool(words) and re.fullmatch(_MONTH, words[0][1]) is not None
    if not words or months or (opens and len(words) == 1):
        return end
    return words[0][0]
