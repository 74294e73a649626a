"""SQuAD 2.0 (Rajpurkar et al. 2018): one paragraph, an answer span of it, or no answer.

Families: ``answerable`` and ``unanswerable``. Answers: the distinct gold texts. Marks: the places
that ``answer_start`` gives; evidence: the sentences that hold them. Distractors: the
``plausible_answers`` of an unanswerable question. Files of SQuAD 1.1 can be read too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from os import PathLike

from lab.data.example import Example, Mark, Passage
from lab.data.examples import Examples
from lab.data.fields import Record, read_json
from lab.data.metrics.squad import normalise
from lab.data.text import clean, clean_all, cluster_key, outermost, sentences_with, trim

_REPEATED = "The same question stands under another id in this paragraph."


def read(path: str | PathLike[str]) -> Examples:
    """The questions of a SQuAD file; those without context or gold answer are skipped."""
    return Examples.gather(_examples(Record(read_json(path, "object"), str(path))))


def _examples(file: Record) -> Iterator[Example | str]:
    for article in file.records("data"):
        for paragraph in article.records("paragraphs"):
            context, title = paragraph.text("context"), article.text("title", "")
            questions = paragraph.records("qas")
            counts = Counter(item.text("question").strip().casefold() for item in questions)
            for item in questions:
                repeated = counts[item.text("question").strip().casefold()] > 1
                notes = (_REPEATED,) if repeated else ()
                yield question(item, context, title, notes)


def question(
    record: Record, context: str, title: str = "", notes: Sequence[str] = ()
) -> Example | str:
    """The Example of one entry of ``qas``, or why it is left out."""
    identity = record.filled("id")
    record = Record(record.data, f"{record.where} ({identity})")
    passages = (Passage(context),)
    impossible = record.get("is_impossible", bool, False)
    golds = [] if impossible else record.records("answers")
    plausible = record.records("plausible_answers", []) if impossible else []
    golds, blanks = _without_blank(golds)
    answers, changes = clean_all((gold.text("text"),) for gold in golds)
    if not context.strip():
        return f"{record.where}: the context is empty."
    if not record.text("question").strip():
        return f"{record.where}: the question is empty."
    if not impossible and not answers:
        return f"{record.where}: there is no gold answer, but is_impossible is not set."
    marks, misplaced = _marks(golds, context)
    distractors = dict.fromkeys(clean(item.text("text")) for item in plausible)
    return Example(
        id=identity,
        dataset="squad2",
        family="unanswerable" if impossible else "answerable",
        question=record.filled("question"),
        passages=passages,
        answers=answers,
        evidence=sentences_with(passages, marks),
        answer_marks=outermost(marks),
        distractors=tuple(filter(None, distractors)),
        metric="squad",
        cluster=cluster_key(passages),
        notes=(*notes, *blanks, *changes, *misplaced),
        meta={"title": title} if title else {},
    )


def _without_blank(golds: list[Record]) -> tuple[list[Record], tuple[str, ...]]:
    """The gold answers that the metric counts, and a note if it drops one (such as ".")."""
    kept = [gold for gold in golds if normalise(gold.text("text"))]
    note = "A gold answer without any word was left out, as the official metric does."
    return kept, (note,) if len(kept) < len(golds) else ()


def _marks(golds: Sequence[Record], context: str) -> tuple[list[Mark], tuple[str, ...]]:
    """Where the gold answers stand, and a note if an offset was wrong."""
    marks, wrong = [], False
    for gold in golds:
        text, start = gold.text("text"), gold.get("answer_start", int)
        if start < 0 or context[start : start + len(text)] != text:
            wrong = True
        elif clean(text):
            marks.append(Mark(0, *trim(context, start, start + len(text))))
    return marks, ("An answer_start does not point at its text; not marked.",) if wrong else ()
