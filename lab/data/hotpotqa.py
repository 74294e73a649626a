"""HotpotQA (Yang et al. 2018): several titled paragraphs, of which two are needed.

Families: ``bridge`` and ``comparison``. Evidence: the supporting sentences. Marks: whole-word
occurrences of the answer in the evidence, or failing that in the paragraphs that hold it; none
for yes and no. The cluster is a key of the gold paragraphs, since the others are retrieved anew
for every question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike

from lab.data.example import Example, Mark, Passage
from lab.data.examples import Examples
from lab.data.fields import Record, kind, read_json
from lab.data.text import clean_all, find_answers, gold_cluster, trim, whole
from lab.errors import LabError


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A titled paragraph as the benchmark gives it: cut into sentences."""

    title: str
    sentences: tuple[str, ...]


def read(path: str | PathLike[str]) -> Examples:
    """The questions of a HotpotQA file; those without text, question or answer are skipped."""
    records = read_json(path, "list")
    return Examples.gather(
        question(Record.of(value, f"{path}, record {index}")) for index, value in enumerate(records)
    )


def question(record: Record) -> Example | str:
    """The Example of one record, or why it is left out."""
    identity = record.filled("_id")
    record = Record(record.data, f"{record.where} ({identity})")
    given = list(_paragraphs(record))
    # Sentences carry the space before them: joined with nothing they give the paragraph back.
    full = [item for item in given if "".join(item.sentences).strip()]
    passages = tuple(Passage("".join(item.sentences), item.title) for item in full)
    answers, changes = clean_all([(record.text("answer"),)])
    if not passages:
        return f"{record.where}: the context is empty."
    if not record.text("question").strip():
        return f"{record.where}: the question is empty."
    if not answers:
        return f"{record.where}: the answer is empty."
    evidence, notes = _evidence(record, full)
    if len(full) < len(given):
        notes = (*notes, "An empty paragraph was left out.")
    marks = find_answers(passages, answers, evidence)
    return Example(
        id=identity,
        dataset="hotpotqa",
        family=record.text("type", "bridge"),
        question=record.filled("question"),
        passages=passages,
        answers=answers,
        evidence=evidence,
        answer_marks=marks or find_answers(passages, answers, whole(passages, evidence)),
        metric="hotpotqa",
        cluster=gold_cluster(passages, evidence),
        notes=changes + notes,
        meta={"level": record.text("level")} if "level" in record.data else {},
    )


def _paragraphs(record: Record) -> Iterator[Paragraph]:
    for index, item in enumerate(record.get("context", list)):
        name = f"context[{index}]"
        title, sentences = _pair(record, item, name)
        if not isinstance(sentences, list):
            raise LabError(
                f"{record.where}: {name}[1] must be a list of sentences, not {kind(sentences)}."
            )
        yield Paragraph(
            record.item_text(title, f"{name}[0]"),
            tuple(record.item_text(s, f"{name}[1][{i}]") for i, s in enumerate(sentences)),
        )


def _evidence(
    record: Record, paragraphs: Sequence[Paragraph]
) -> tuple[tuple[Mark, ...], tuple[str, ...]]:
    """Marks of the supporting sentences, and notes on facts that point nowhere."""
    places = {item.title: index for index, item in reversed(list(enumerate(paragraphs)))}
    marks: set[Mark] = set()
    notes: list[str] = []
    for index, item in enumerate(record.get("supporting_facts", list)):
        title, number = _pair(record, item, f"supporting_facts[{index}]")
        if type(number) is not int:
            raise LabError(
                f"{record.where}: supporting_facts[{index}][1] must be a whole number, "
                f"not {kind(number)}."
            )
        place = places.get(record.item_text(title, f"supporting_facts[{index}][0]"))
        mark = None if place is None else _sentence(paragraphs[place], place, number)
        if mark:
            marks.add(mark)
        else:
            notes.append(f"The supporting fact {title!r}, sentence {number}, does not exist.")
    return tuple(sorted(marks, key=lambda mark: (mark.passage, mark.start))), tuple(notes)


def _sentence(paragraph: Paragraph, place: int, number: int) -> Mark | None:
    if not 0 <= number < len(paragraph.sentences):
        return None
    start = sum(map(len, paragraph.sentences[:number]))
    end = start + len(paragraph.sentences[number])
    start, end = trim("".join(paragraph.sentences), start, end)
    return Mark(place, start, end) if start < end else None


def _pair(record: Record, item: object, name: str) -> tuple[object, object]:
    if not isinstance(item, list) or len(item) != 2:
        raise LabError(f"{record.where}: {name} must be a list of two, not {kind(item)}.")
    return item[0], item[1]
