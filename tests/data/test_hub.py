"""Benchmarks from the hub, with a local folder in the hub's place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from lab.data import load_examples, score
from lab.errors import LabError

SQUAD_ROWS = [
    {
        "id": "s1",
        "title": "Mill",
        "context": "Ann Lee built it.",
        "question": "Who built it?",
        "answers": {"text": ["Ann Lee", "Ann Lee"], "answer_start": [0, 0]},
    },
    {
        "id": "s2",
        "title": "Mill",
        "context": "Ann Lee built it.",
        "question": "Who burnt it?",
        "answers": {"text": [], "answer_start": []},
    },
]
DROP_ROWS = [
    {
        "section_id": "nfl_1",
        "query_id": name,
        "passage": "Ann ran 10 yards, Bo ran 4.",
        "question": "How far?",
        "answers_spans": {"spans": spans, "types": types},
    }
    for name, spans, types in [
        ("d1", ["14", "14", "13"], ["number", "number", "number"]),
        ("d2", ["Ann", "Ann"], ["span", "span"]),
        ("d3", ["Ann", "Bo"], ["span", "span"]),
        ("d4", ["5 March 1990"], ["date"]),
    ]
]
HOTPOT_ROWS = [
    {
        "id": "h1",
        "question": "Where?",
        "answer": "Oslo",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": {"title": ["Nils"], "sent_id": [1]},
        "context": {"title": ["Nils"], "sentences": [["Nils sails.", " He is from Oslo."]]},
    }
]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, list[Any]], list[Any]]:
    """Puts rows where the hub's client would put them, and gives the list of its calls."""

    def put(name: str, rows: list[Any]) -> list[Any]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        else:
            path.write_text("\n".join(map(json.dumps, rows)))
        calls: list[Any] = []

        def download(repository: str, **options: Any) -> str:
            calls.append((repository, options["repo_type"], *options["allow_patterns"]))
            return str(tmp_path)

        monkeypatch.setattr("huggingface_hub.snapshot_download", download)
        return calls

    return put


def test_squad_rows(hub: Callable[..., Any]) -> None:
    calls = hub("squad_v2/validation-00000-of-00001.parquet", SQUAD_ROWS)
    right, impossible = load_examples("squad2")
    assert calls == [("rajpurkar/squad_v2", "dataset", "**/validation-*.parquet")]
    assert right.answers == (("Ann Lee",),)
    assert right.marked(right.answer_marks[0]) == "Ann Lee"
    assert (impossible.family, impossible.answers) == ("unanswerable", ())


def test_drop_rows_whose_spans_are_ambiguous_are_skipped(hub: Callable[..., Any]) -> None:
    hub("data/train-00000-of-00001.parquet", DROP_ROWS)
    items = load_examples("drop:hub/train")
    assert {item.id: item.family for item in items} == {"d1": "number", "d2": "span", "d4": "date"}
    assert items[0].answers == (("14",), ("13",))
    assert score(items[2], "5 March 1990").em == 1
    assert len(items.skipped) == 1
    assert "one list or several answers" in items.skipped[0]


def test_hotpotqa_rows(hub: Callable[..., Any]) -> None:
    hub("distractor/validation-00000-of-00001.parquet", HOTPOT_ROWS)
    (item,) = load_examples("hotpotqa:hub")
    assert item.passages[0].text == "Nils sails. He is from Oslo."
    assert item.marked(item.evidence[0]) == "He is from Oslo."


def test_another_dataset_of_the_same_layout(hub: Callable[..., Any]) -> None:
    calls = hub("data/validation-0.parquet", SQUAD_ROWS)
    assert len(load_examples("squad2:hub/someone/their-squad")) == 2
    assert calls[0][0] == "someone/their-squad"


def test_musique_comes_as_json_lines(hub: Callable[..., Any]) -> None:
    paragraph = {"idx": 0, "title": "T", "paragraph_text": "Ann won.", "is_supporting": True}
    row = {"id": "2hop__1", "question": "Who?", "answer": "Ann", "paragraphs": [paragraph]}
    hub("musique_ans_v1.0_dev.jsonl", [row])
    assert load_examples("musique")[0].gold == "Ann"


def test_a_part_that_does_not_exist(hub: Callable[..., Any]) -> None:
    hub("data/validation-0.parquet", SQUAD_ROWS)
    with pytest.raises(LabError, match=r"rajpurkar/squad_v2 has no file \*\*/test-\*\.parquet"):
        load_examples("squad2:hub/test")


def test_a_damaged_table_is_named(hub: Callable[..., Any], tmp_path: Path) -> None:
    hub("data/validation-0.parquet", SQUAD_ROWS)
    table = tmp_path / "data" / "validation-0.parquet"
    table.write_bytes(table.read_bytes()[:50])
    with pytest.raises(LabError, match=r"validation-0\.parquet cannot be read .* Delete it"):
        load_examples("squad2")


def test_rows_of_another_layout_are_named(hub: Callable[..., Any]) -> None:
    hub("data/validation-0.parquet", [{"id": "x", "text": "y"}])
    with pytest.raises(LabError, match=r"validation-0\.parquet, row 0: no field|has no field"):
        load_examples("squad2")


def test_without_a_network_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: Any, **__: Any) -> str:
        raise ConnectionError("no route to host")

    monkeypatch.setattr("huggingface_hub.snapshot_download", unreachable)
    with pytest.raises(LabError, match=r"rajpurkar/squad_v2 could not be downloaded.*local file"):
        load_examples("squad2")
