"""MuSiQue (Trivedi et al. 2022): twenty titled paragraphs, of which two to four are needed.

Families: ``2hop``, ``3hop`` and ``4hop``. Evidence: the supporting paragraphs, whole. Marks:
whole-word occurrences of the answer or an alias in them. The cluster is a key of the supporting
paragraphs. A record of MuSiQue-Full that is not answerable shares its id with its answerable twin
and gets the ending ``__unanswerable``; the twin's answer is its distractor.
"""

from __future__ import annotations

import re
from os import PathLike

from lab.data.example import Example, Passage
from lab.data.examples import Examples
from lab.data.fields import Record, read_jsonl
from lab.data.text import clean_all, find_answers, gold_cluster, whole_passage
from lab.errors import LabError


def read(path: str | PathLike[str]) -> Examples:
    """The questions of a MuSiQue file; those without text, question or answer are skipped."""
    return Examples.gather(map(question, read_jsonl(path)))


def question(record: Record) -> Example | str:
    """The Example of one record, or why it is left out."""
    identity = record.filled("id")
    record = Record(record.data, f"{record.where} ({identity})")
    answerable = record.get("answerable", bool, True)
    given = record.records("paragraphs")
    _check_indices(record, given)
    full = [item for item in given if item.text("paragraph_text").strip()]
    passages = tuple(Passage(item.text("paragraph_text"), item.text("title")) for item in full)
    aliases = record.texts("answer_aliases", [])
    answers, notes = clean_all((text,) for text in [record.text("answer"), *aliases])
    if not passages:
        return f"{record.where}: all paragraphs are empty."
    if not record.text("question").strip():
        return f"{record.where}: the question is empty."
    if not answers:
        return f"{record.where}: the answer is empty."
    evidence = tuple(
        whole_passage(passages, index)
        for index, item in enumerate(full)
        if item.get("is_supporting", bool)
    )
    if len(full) < len(given):
        notes = (*notes, "An empty paragraph was left out.")
    steps = record.records("question_decomposition", [])
    return Example(
        id=identity if answerable else f"{identity}__unanswerable",
        dataset="musique",
        family=f"{_hops(identity, len(steps))}hop",
        question=record.filled("question"),
        passages=passages,
        answers=answers if answerable else (),
        evidence=evidence if answerable else (),
        answer_marks=find_answers(passages, answers, evidence) if answerable and evidence else (),
        distractors=() if answerable else (answers[0][0],),
        metric="musique",
        cluster=gold_cluster(passages, evidence),
        notes=notes,
        meta={"hops": _hops(identity, len(steps)), "kind": identity.split("__")[0]},
    )


def _hops(identity: str, steps: int) -> str:
    """The number of hops: told by the id, else the number of sub-questions."""
    named = re.match(r"(\d)hop", identity)
    return named.group(1) if named else str(steps)


def _check_indices(record: Record, paragraphs: list[Record]) -> None:
    indices = [item.get("idx", int) for item in paragraphs]
    if len(set(indices)) < len(indices):
        raise LabError(f"{record.where}: two paragraphs have the same idx.")
