"""Benchmarks from the Hugging Face hub: rows of the published tables, turned into Examples.

The tables lay the same content out in columns of lists. What they lack: SQuAD 2.0 its
``plausible_answers``; DROP the border between one list of spans and several annotators' answers,
so that its rows with different spans are skipped (the official file has them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.data import drop, hotpotqa, musique, squad2
from lab.data.example import Example
from lab.data.examples import Examples
from lab.data.fields import Record, read_jsonl
from lab.errors import LabError

Build = Callable[[Record], Example | str]


@dataclass(frozen=True, slots=True)
class Table:
    """A benchmark on the hub: dataset id, file pattern with ``{split}``, and its row's Example."""

    repository: str
    pattern: str
    build: Build
    split: str = "validation"


def read(benchmark: str, name: str = "") -> Examples:
    """The examples of a benchmark, downloaded once and then taken from the hub's local cache.

    ``name`` is a split ("train"), or another dataset of the same layout ("owner/name").
    """
    table = TABLES[benchmark]
    repository = name if "/" in name else table.repository
    split = table.split if "/" in name or not name else name
    pattern = table.pattern.format(split=split)
    paths = sorted(_download(repository, pattern).glob(pattern))
    if not paths:
        raise LabError(f"The hub's dataset {repository} has no file {pattern}.")
    return Examples.gather(table.build(row) for path in paths for row in _rows(path, repository))


def _download(repository: str, pattern: str) -> Path:
    """The local folder of a dataset, with the files that fit the pattern."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(repository, repo_type="dataset", allow_patterns=[pattern]))
    except Exception as error:  # the hub's client raises many kinds: network, name, rights, disk
        raise LabError(
            f"The dataset {repository} could not be downloaded from the hub "
            f"({type(error).__name__}) and is not in the local cache. Check the network and the "
            "name, or give a local file instead, such as squad2:FILE."
        ) from error


def _rows(path: Path, repository: str) -> Iterator[Record]:
    """The rows of a parquet or JSON-lines file as records; LabError if the file is damaged."""
    if path.suffix != ".parquet":
        yield from read_jsonl(path)
        return
    from pyarrow import ArrowException
    from pyarrow.parquet import read_table

    try:
        rows = read_table(path).to_pylist()
    except (ArrowException, OSError) as error:
        raise LabError(
            f"{repository}: {path} cannot be read ({str(error).strip():.200}). Delete it, and it "
            "is downloaded again."
        ) from error
    for index, row in enumerate(rows):
        yield Record(row, f"{repository}, {path.name}, row {index}")


def squad2_row(row: Record) -> Example | str:
    """The Example of a row of SQuAD 2.0: answers as two lists, none where impossible."""
    answers = _columns(row, "answers", ("text", "answer_start"))
    record = {
        "id": row.text("id"),
        "question": row.text("question"),
        "is_impossible": not answers,
        "answers": answers,
    }
    return squad2.question(Record(record, row.where), row.text("context"), row.text("title", ""))


def drop_row(row: Record) -> Example | str:
    """The Example of a row of DROP, or why it is left out."""
    pairs = _columns(row, "answers_spans", ("spans", "types"))
    distinct = list({(pair["types"], pair["spans"]): None for pair in pairs})
    if sum(kind == "span" for kind, _ in distinct) > 1:
        return f"{row.where}: several spans, which may be one list or several answers."
    answers = [_drop_answer(kind, text) for kind, text in distinct]
    if not answers:
        return f"{row.where}: the answer is empty."
    record = {
        "query_id": row.text("query_id"),
        "question": row.text("question"),
        "answer": answers[0],
        "validated_answers": answers[1:],
    }
    return drop.question(Record(record, row.where), row.text("passage"), row.text("section_id", ""))


def _drop_answer(kind: str, text: str) -> dict[str, Any]:
    if kind == "number":
        return {"number": text}
    # A date comes as one text; its parts are joined anyway, so one of them may hold it all.
    return {"date": {"year": text}} if kind == "date" else {"spans": [text]}


def hotpotqa_row(row: Record) -> Example | str:
    """The Example of a row of HotpotQA: facts and context as parallel lists."""
    facts = _columns(row, "supporting_facts", ("title", "sent_id"))
    context = _columns(row, "context", ("title", "sentences"))
    record = {
        **{name: row.text(name) for name in ("question", "answer", "type", "level")},
        "_id": row.text("id"),
        "supporting_facts": [[fact["title"], fact["sent_id"]] for fact in facts],
        "context": [[item["title"], item["sentences"]] for item in context],
    }
    return hotpotqa.question(Record(record, row.where))


def _columns(row: Record, field: str, names: Iterable[str]) -> list[Mapping[str, Any]]:
    """A field of parallel lists as a list of objects."""
    inner = Record(row.get(field, dict), f"{row.where}: {field}")
    lists = {name: inner.get(name, list) for name in names}
    if len(set(map(len, lists.values()))) > 1:
        raise LabError(f"{inner.where}: {', '.join(lists)} must be equally long.")
    return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


TABLES = {
    "squad2": Table("rajpurkar/squad_v2", "**/{split}-*.parquet", squad2_row),
    "drop": Table("ucinlp/drop", "**/{split}-*.parquet", drop_row),
    "hotpotqa": Table("hotpotqa/hotpot_qa", "distractor/{split}-*.parquet", hotpotqa_row),
    "musique": Table(
        "dgslibisey/MuSiQue", "musique_ans_v1.0_{split}.jsonl", musique.question, split="dev"
    ),
}
