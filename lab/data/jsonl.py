"""The lab's own format: one JSON object a line, for a user's questions and the built-in set.

Fields (all but the first four may be left out)::

    id            unique string
    question      string
    passages      list of {"title", "text"} objects or strings; or "context": one string
    answers       list of gold alternatives; [] = the passages do not answer. An alternative may
                  be a list of strings: one answer made of several spans (metric "drop" only)
    family        string
    evidence      list of {"passage", "quote", "nth"}: exact text of the supporting sentences
    answer_marks  the same for the places of the answer; default: the whole-word occurrences of
                  the answers inside the evidence, or anywhere if there is no evidence
    distractors   list of plausible wrong answers, best first
    metric        "squad" (default), "drop", "hotpotqa" or "musique"
    cluster       key shared by questions on the same passages; default: a hash of their texts
    meta          object of strings

A quote must occur exactly once in its passage, unless "nth" (0 = first) says which one is meant.
"""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import get_args

from lab.data.distractors import is_wrong
from lab.data.example import Answer, Example, Mark, Metric, Passage
from lab.data.examples import Examples
from lab.data.fields import Record, kind, read_jsonl
from lab.data.text import clean, clean_all, cluster_key, find_answers, read_off
from lab.errors import LabError

_METRICS: dict[str, Metric] = {name: name for name in get_args(Metric)}
_PLACES = frozenset({"passage", "quote", "nth"})
_FIELDS = frozenset(
    {"id", "question", "passages", "context", "answers", "family", "evidence", "answer_marks"}
    | {"distractors", "metric", "cluster", "meta"}
)


def read(path: str | PathLike[str], dataset: str = "") -> Examples:
    """The examples of a JSON-lines file; ``dataset`` is the file's stem unless given."""
    name = dataset or Path(path).stem
    return Examples.gather(example(record, name) for record in read_jsonl(path))


def example(record: Record, dataset: str) -> Example:
    """The Example of one record; LabError if a field is missing, unknown, or of a wrong kind."""
    record = Record(record.data, f"{record.where} ({record.data.get('id', 'no id')!s:.80})")
    record.only(_FIELDS)
    identity = record.filled("id")
    passages = _passages(record)
    metric = _metric(record)
    answers, notes = _answers(record, metric)
    evidence = _marks(record, "evidence", passages)
    if "answer_marks" in record.data:
        answer_marks = _marks(record, "answer_marks", passages)
    else:
        answer_marks = find_answers(
            passages, read_off(answers) if metric == "drop" else answers, evidence
        )
    made = Example(
        id=identity,
        dataset=dataset,
        family=record.text("family", ""),
        question=record.filled("question"),
        passages=passages,
        answers=answers,
        evidence=evidence,
        answer_marks=answer_marks,
        distractors=tuple(filter(None, map(clean, record.texts("distractors", [])))),
        metric=metric,
        cluster=record.text("cluster", "") or cluster_key(passages),
        notes=notes,
        meta=_meta(record),
    )
    return replace(made, notes=(*notes, *_right_distractors(made)))


def _right_distractors(made: Example) -> list[str]:
    """Notes on distractors that no judge is shown as wrong, so that a slip does not stay unseen."""
    right = [text for text in made.distractors if not is_wrong(made, text)]
    return [
        f"The distractor {text!r:.80} counts as a right answer and is not used." for text in right
    ]


def _passages(record: Record) -> tuple[Passage, ...]:
    if ("passages" in record.data) == ("context" in record.data):
        raise LabError(f"{record.where} must have either 'passages' or 'context', and not both.")
    if "context" in record.data:
        found = [Passage(record.text("context"))]
    else:
        items = record.get("passages", list)
        found = [_passage(record, item, f"passages[{i}]") for i, item in enumerate(items)]
    if not found:
        raise LabError(f"{record.where}: 'passages' is empty; there must be at least one.")
    for index, passage in enumerate(found):
        if not passage.text.strip():
            raise LabError(f"{record.where}: the text of passage {index} is empty.")
    return tuple(found)


def _passage(record: Record, item: object, name: str) -> Passage:
    if isinstance(item, str):
        return Passage(record.item_text(item, name))
    inner = Record.of(item, f"{record.where}: {name}")
    inner.only(frozenset({"title", "text"}))
    return Passage(inner.text("text"), inner.text("title", ""))


def _metric(record: Record) -> Metric:
    name = record.text("metric", "squad")
    if name not in _METRICS:
        raise LabError(f"{record.where}: unknown metric {name!r}. Known are {', '.join(_METRICS)}.")
    return _METRICS[name]


def _answers(record: Record, metric: Metric) -> tuple[tuple[Answer, ...], tuple[str, ...]]:
    raw = [_spans(record, item, i) for i, item in enumerate(record.get("answers", list))]
    if metric != "drop" and any(len(spans) > 1 for spans in raw):
        raise LabError(
            f"{record.where}: an answer of several spans needs the metric 'drop', not {metric!r}."
        )
    for index, spans in enumerate(raw):
        if not spans or not all(map(clean, spans)):
            raise LabError(
                f"{record.where}: answers[{index}] is empty. "
                'Where the passages do not answer, write "answers": [].'
            )
    return clean_all(raw)


def _spans(record: Record, item: object, index: int) -> Answer:
    name = f"answers[{index}]"
    if isinstance(item, str):
        return (record.item_text(item, name),)
    if not isinstance(item, list):
        raise LabError(
            f"{record.where}: {name} must be a string or a list of strings, not {kind(item)}."
        )
    return tuple(record.item_text(span, f"{name}[{i}]") for i, span in enumerate(item))


def _marks(record: Record, name: str, passages: tuple[Passage, ...]) -> tuple[Mark, ...]:
    return tuple(_mark(item, passages) for item in record.records(name, []))


def _mark(record: Record, passages: tuple[Passage, ...]) -> Mark:
    record.only(_PLACES)
    index, quote, nth = record.get("passage", int), record.text("quote"), record.get("nth", int, -1)
    if not 0 <= index < len(passages):
        raise LabError(
            f"{record.where}: there is no passage {index}; they are counted from 0 to "
            f"{len(passages) - 1}."
        )
    if not quote.strip():
        raise LabError(f"{record.where}: the quote is empty.")
    starts = _starts(passages[index].text, quote)
    if not starts:
        raise LabError(f"{record.where}: the quote {quote!r:.80} is not in passage {index}.")
    if len(starts) > 1 and "nth" not in record.data:
        raise LabError(
            f"{record.where}: the quote {quote!r:.80} occurs {len(starts)} times in passage "
            f'{index}; make it longer, or say which is meant with "nth" (0 = first).'
        )
    if "nth" in record.data and not 0 <= nth < len(starts):
        raise LabError(
            f"{record.where}: nth is {nth}, but the quote occurs {len(starts)} times in passage "
            f"{index} (0 = first)."
        )
    start = starts[nth] if "nth" in record.data else starts[0]
    return Mark(index, start, start + len(quote))


def _starts(text: str, quote: str) -> list[int]:
    found, start = [], text.find(quote)
    while start >= 0:
        found.append(start)
        start = text.find(quote, start + 1)
    return found


def _meta(record: Record) -> dict[str, str]:
    inner = Record.of(record.get("meta", dict, {}), f"{record.where}: meta")
    return {name: inner.text(name) for name in inner.data}
