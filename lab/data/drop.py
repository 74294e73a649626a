"""DROP (Dua et al. 2019): one passage, an answer that is often counted or computed.

Families: the kind of the first gold answer, ``number``, ``span``, ``spans`` or ``date``. The
``validated_answers`` are further alternatives. Numbers get no marks, since they are mostly not in
the passage; spans and dates are marked wherever they stand as whole words, and only if that is
one place its sentence counts as evidence (the benchmark gives none).
"""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterator
from os import PathLike

from lab.data.example import Answer, Example, Passage
from lab.data.examples import Examples
from lab.data.fields import Record, read_json
from lab.data.text import (
    clean_all,
    cluster_key,
    find_answers,
    has_entity,
    read_off,
    sentences_with,
)

_REPEATED_SPAN = "The gold list repeats a span; the list without repeats counts as right too."
_DECODED = "A gold answer holds an HTML entity; the character it stands for counts as right too."
_ENTITY = "The passage holds HTML entities, left as they are."


def read(path: str | PathLike[str]) -> Examples:
    """The questions of a DROP file; those without passage or answer are skipped."""
    return Examples.gather(_examples(read_json(path, "object"), str(path)))


def _examples(passages: dict[str, object], where: str) -> Iterator[Example | str]:
    for name, value in passages.items():
        entry = Record.of(value, f"{where}: {name}")
        pairs = entry.records("qa_pairs")
        said: dict[str, set[object]] = defaultdict(set)
        count: dict[str, int] = defaultdict(int)
        for pair in pairs:
            asked = pair.text("question").strip().casefold()
            said[asked].add(_answer(_sub(pair, "answer"))[1])
            count[asked] += 1
        for pair in pairs:
            asked = pair.text("question").strip().casefold()
            notes = _repeat_note(count[asked], len(said[asked]))
            yield question(pair, entry.text("passage"), name, notes)


def question(
    record: Record, text: str, passage_id: str = "", notes: tuple[str, ...] = ()
) -> Example | str:
    """The Example of one entry of ``qa_pairs``, or why it is left out."""
    identity = record.filled("query_id")
    record = Record(record.data, f"{record.where} ({identity})")
    family, first = _answer(_sub(record, "answer"))
    others = [_answer(item)[1] for item in record.records("validated_answers", [])]
    if not text.strip():
        return f"{record.where}: the passage is empty."
    if not record.text("question").strip():
        return f"{record.where}: the question is empty."
    if not first:
        return f"{record.where}: the answer is empty."
    answers, changes = clean_all(_with_variants([first, *others]))
    passages = (Passage(text),)
    marks = () if family == "number" else find_answers(passages, read_off(answers))
    return Example(
        id=identity,
        dataset="drop",
        family=family,
        question=record.filled("question"),
        passages=passages,
        answers=answers,
        evidence=sentences_with(passages, marks) if len(marks) == 1 else (),
        answer_marks=marks,
        metric="drop",
        cluster=cluster_key(passages),
        notes=notes + changes + _notes(text, [first, *others]),
        meta={"passage_id": passage_id} if passage_id else {},
    )


def _sub(record: Record, name: str) -> Record:
    return Record(record.get(name, dict), f"{record.where}: {name}")


def _answer(record: Record) -> tuple[str, Answer]:
    """Family and spans of an answer object: its number, else its spans, else its date."""
    number = record.text("number", "").strip()
    if number:
        return "number", (number,)
    spans = tuple(span for span in record.texts("spans", []) if span.strip())
    if spans:
        return ("span" if len(spans) == 1 else "spans"), spans
    date = _sub(record, "date") if "date" in record.data else Record({}, record.where)
    parts = [date.text(name, "").strip() for name in ("day", "month", "year")]
    joined = " ".join(filter(None, parts))
    return "date", (joined,) if joined else ()


def _with_variants(answers: list[Answer]) -> Iterator[Answer]:
    """Each answer, before it the list without repeats, after it the text without entities."""
    for spans in answers:
        yield tuple(dict.fromkeys(spans))
        yield spans
        yield tuple(map(html.unescape, spans))


def _notes(text: str, answers: list[Answer]) -> tuple[str, ...]:
    found = {
        _ENTITY: has_entity(text),
        _DECODED: any(has_entity(span) for spans in answers for span in spans),
        _REPEATED_SPAN: any(len(set(spans)) < len(spans) for spans in answers),
    }
    return tuple(note for note, holds in found.items() if holds)


def _repeat_note(count: int, answers: int) -> tuple[str, ...]:
    if count == 1:
        return ()
    how = "with another answer" if answers > 1 else "with the same answer"
    return (f"The same question stands under another id in this passage, {how}.",)
