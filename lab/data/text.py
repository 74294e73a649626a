"""Finding things in text: whole-word occurrences, sentences, invisible characters, passage keys."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from lab.data.example import Answer, Mark, Passage
from lab.data.metrics.drop import is_number

# Characters that show nothing and carry no meaning in an answer: zero-width space, direction
# marks, word joiner, byte-order mark. Joiners (U+200C, U+200D) stay: some scripts need them.
_INVISIBLE = str.maketrans("", "", "\u200b\u200e\u200f\u2060\ufeff")
_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-fA-F]+|[A-Za-z]+);")
_ABBREVIATION = re.compile(
    r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|Prof|Gen|Col|Capt|Lt|Sgt|Rev|Hon|vs|etc|cf|No|Vol|Ft"
    r"|approx|c|ca|e\.g|i\.e|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec))\.$"
)
_BREAK = re.compile(r"(?:[.!?\u2026]+[\"'\u201d\u2019)\]]*(?:\[\d+\])*(?=\s+\S)|\n+)")


def clean(answer: str) -> str:
    """The answer without white space at its ends and without invisible characters."""
    return answer.translate(_INVISIBLE).strip()


def has_entity(text: str) -> bool:
    """Whether the text holds an HTML entity such as ``&#241;``."""
    return _ENTITY.search(text) is not None


def cluster_key(passages: Iterable[Passage]) -> str:
    """A short key that examples with the same passage texts share, whatever the titles."""
    digest = hashlib.sha256()
    for passage in passages:
        digest.update(passage.text.encode("utf-8", "surrogatepass") + b"\x00")
    return digest.hexdigest()[:16]


def gold_cluster(passages: Sequence[Passage], evidence: Iterable[Mark]) -> str:
    """The cluster key of the passages that hold the evidence, whatever their order."""
    used = {mark.passage for mark in evidence} or set(range(len(passages)))
    return cluster_key(sorted((passages[i] for i in used), key=lambda passage: passage.text))


def whole_passage(passages: Sequence[Passage], index: int) -> Mark:
    """The mark of a passage's whole text."""
    return Mark(index, *trim(passages[index].text, 0, len(passages[index].text)))


def whole(passages: Sequence[Passage], marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Marks of the whole passages in which the given marks are."""
    return tuple(whole_passage(passages, index) for index in sorted({m.passage for m in marks}))


def is_closed(answer: str) -> bool:
    """Whether an answer is a bare yes or no, which stands nowhere in a passage as an answer."""
    return answer.strip(" .!").casefold() in {"yes", "no"}


def read_off(answers: Iterable[Answer]) -> tuple[Answer, ...]:
    """The answers that may be looked for in a DROP passage.

    Its numbers are mostly counted or computed: the same digits in the passage are an accident.
    """
    return tuple(
        spans for spans in answers if not any(is_number(span.replace(",", "")) for span in spans)
    )


def clean_all(answers: Iterable[Answer]) -> tuple[tuple[Answer, ...], tuple[str, ...]]:
    """The distinct answers after `clean`, blank ones left out, and notes on what was changed."""
    kept: list[Answer] = []
    hidden = False
    for spans in answers:
        bare = tuple(filter(None, map(clean, spans)))
        hidden |= any(span.strip() not in bare for span in spans if clean(span))
        if bare:
            kept.append(bare)
    notes = ("Invisible characters were removed from an answer.",) if hidden else ()
    return tuple(dict.fromkeys(kept)), notes


def occurrences(text: str, phrase: str) -> list[tuple[int, int]]:
    """Where a phrase stands in a text as whole words, as (start, end) pairs, left to right.

    As written if it occurs so, else with any capitals. White space matches any white space. A
    number is not found inside a longer one ("4" is not in "14", "4,000" or "4.5").
    """
    return whole_words(text, phrase) or whole_words(text, phrase, ignore_case=True)


def whole_words(text: str, phrase: str, *, ignore_case: bool = False) -> list[tuple[int, int]]:
    """Like `occurrences`, with the capitals as written, or with any."""
    words = phrase.split()
    # The test for the first word costs little and spares most of the expressions.
    if not words or words[0].casefold() not in text.casefold():
        return []
    body = r"\s+".join(map(re.escape, words))
    before = r"(?<!\w)" if re.match(r"\w", words[0][0]) else ""
    after = r"(?!\w)" if re.match(r"\w", words[-1][-1]) else ""
    if words[0][0].isdigit():
        before += r"(?<!\d[.,])"
    if words[-1][-1].isdigit():
        after += r"(?![.,]\d)"
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    return [match.span() for match in re.finditer(before + body + after, text, flags)]


def sentences(text: str) -> list[tuple[int, int]]:
    """The sentences of a text as (start, end) pairs without the white space around them.

    A simple rule: a sentence ends at a stop, question or exclamation mark before white space, or
    at a line break; not after an initial or a common abbreviation, nor before a small letter.
    """
    bounds = [0]
    for match in _BREAK.finditer(text):
        following = text[match.end() :].lstrip()[:1]
        abbreviated = _ABBREVIATION.search(text[max(0, match.end() - 8) : match.end()])
        if "\n" in match.group() or not (following.islower() or abbreviated):
            bounds.append(match.end())
    bounds.append(len(text))
    spans = (trim(text, start, end) for start, end in pairwise(bounds))
    return [span for span in spans if span[0] < span[1]]


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """A (start, end) range without the white space and invisible characters at its ends."""
    while start < end and not clean(text[start]):
        start += 1
    while start < end and not clean(text[end - 1]):
        end -= 1
    return start, end


def sentences_with(passages: Sequence[Passage], marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Marks of the sentences that the given marks touch."""
    marks = list(marks)
    return tuple(
        Mark(index, start, end)
        for index, passage in enumerate(passages)
        for start, end in sentences(passage.text)
        if any(m.passage == index and m.start < end and start < m.end for m in marks)
    )


def find_answers(
    passages: Sequence[Passage], answers: Iterable[Answer], within: Sequence[Mark] = ()
) -> tuple[Mark, ...]:
    """Marks of the gold answers in the passages (inside ``within``, if given), whole words only.

    Yes and no are never looked for. Of marks inside one another the longest is kept.
    """
    spans = {span for answer in answers for span in answer if not is_closed(span)}
    found = [
        Mark(index, start, end)
        for span in spans
        for index, passage in enumerate(passages)
        for start, end in occurrences(passage.text, span)
    ]
    if within:
        found = [mark for mark in found if any(_inside(mark, outer) for outer in within)]
    return outermost(found)


def outermost(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """The marks in order of place, without repeats and without those inside another."""
    distinct = sorted(set(marks), key=lambda mark: (mark.passage, mark.start, -mark.end))
    kept: list[Mark] = []
    for mark in distinct:
        if not (kept and _inside(mark, kept[-1])):
            kept.append(mark)
    return tuple(kept)


def _inside(mark: Mark, outer: Mark) -> bool:
    return mark.passage == outer.passage and outer.start <= mark.start and mark.end <= outer.end
