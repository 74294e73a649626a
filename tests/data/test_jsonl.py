"""The lab's own format, and what is said about broken files."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.data import Mark, Passage, load_examples
from lab.errors import LabError

SMALL = {"id": "q1", "question": "Who came?", "context": "Ann came. Bo left.", "answers": ["Ann"]}
Write = Callable[..., Path]


def one(write_jsonl: Write, **changes: Any) -> Any:
    record = {**SMALL, **changes}
    return load_examples(str(write_jsonl({k: v for k, v in record.items() if v is not ...})))[0]


def refused(write_jsonl: Write, **changes: Any) -> str:
    with pytest.raises(LabError) as caught:
        one(write_jsonl, **changes)
    assert "mine.jsonl, line 1" in str(caught.value)
    return str(caught.value)


def test_the_smallest_record(write_jsonl: Write) -> None:
    item = one(write_jsonl)
    assert (item.id, item.dataset, item.family, item.metric) == ("q1", "mine", "", "squad")
    assert item.passages == (Passage("Ann came. Bo left."),)
    assert item.answers == (("Ann",),)
    assert [item.marked(mark) for mark in item.answer_marks] == ["Ann"]
    assert item.cluster


def test_a_full_record(write_jsonl: Write) -> None:
    item = one(
        write_jsonl,
        context=...,
        passages=[{"title": "One", "text": "Ann ran. Ann ran."}, "Bo slept."],
        answers=["Ann", ["Ann"]],
        family="own",
        evidence=[{"passage": 0, "quote": "Ann ran.", "nth": 1}],
        distractors=["Bo", " "],
        metric="musique",
        cluster="c1",
        meta={"hops": "2"},
    )
    assert item.passages == (Passage("Ann ran. Ann ran.", "One"), Passage("Bo slept."))
    assert item.evidence == (Mark(0, 9, 17),)
    assert item.answer_marks == (Mark(0, 9, 12),)
    assert item.answers == (("Ann",),)
    assert item.distractors == ("Bo",)
    assert (item.family, item.metric, item.cluster, item.meta["hops"]) == (
        "own",
        "musique",
        "c1",
        "2",
    )


def test_given_answer_marks_replace_the_search(write_jsonl: Write) -> None:
    item = one(write_jsonl, answer_marks=[{"passage": 0, "quote": "came"}])
    assert [item.marked(mark) for mark in item.answer_marks] == ["came"]
    assert one(write_jsonl, answer_marks=[]).answer_marks == ()


def test_a_computed_number_is_not_looked_for_in_a_drop_passage(write_jsonl: Write) -> None:
    item = one(write_jsonl, context="2 men and 3 boys.", answers=["2"], metric="drop")
    assert item.answer_marks == ()


def test_markup_in_every_field_stays_as_it_is(write_jsonl: Write) -> None:
    evil = "<script>alert('x')</script> &lt;b&gt;"
    item = one(
        write_jsonl,
        id=evil,
        question=evil,
        context=...,
        passages=[{"title": evil, "text": f"So {evil} it is."}],
        answers=[evil],
        distractors=[evil],
        family=evil,
        meta={evil: evil},
        evidence=[{"passage": 0, "quote": evil}],
    )
    assert item.passages[0] == Passage(f"So {evil} it is.", evil)
    texts = (item.id, item.question, item.gold, item.distractors[0], item.family, item.meta[evil])
    assert set(texts) == {evil}
    assert item.marked(item.answer_marks[0]) == item.marked(item.evidence[0]) == evil


def test_invisible_characters_are_removed_from_answers_with_a_note(write_jsonl: Write) -> None:
    item = one(write_jsonl, answers=["\u200bAnn "])
    assert item.gold == "Ann"
    assert "Invisible" in item.notes[0]


def test_a_distractor_that_is_right_does_not_stay_unseen(write_jsonl: Write) -> None:
    item = one(write_jsonl, distractors=["the Ann", "Bo"])
    assert item.notes == ("The distractor 'the Ann' counts as a right answer and is not used.",)
    assert one(write_jsonl, answers=[], distractors=["Ann", "Bo"]).notes == ()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"question": ...}, "no field 'question'"),
        ({"answers": ...}, "no field 'answers'"),
        ({"question": 5}, "'question' must be a string, not a whole number"),
        ({"question": "  "}, "'question' is empty"),
        ({"answers": "Ann"}, "'answers' must be a list, not a string"),
        ({"answers": [3]}, "answers[0] must be a string or a list of strings"),
        ({"answers": [" "]}, 'write "answers": []'),
        ({"answers": [["Ann", "Bo"]]}, "needs the metric 'drop'"),
        ({"context": ...}, "either 'passages' or 'context'"),
        ({"passages": ["x"]}, "either 'passages' or 'context'"),
        ({"context": ..., "passages": []}, "'passages' is empty"),
        ({"context": " \n"}, "text of passage 0 is empty"),
        ({"context": ..., "passages": [{"title": "T"}]}, "passages[0] has no field 'text'"),
        ({"metric": "bleu"}, "unknown metric 'bleu'"),
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"meta": {"hops": 2}}, "meta: field 'hops' must be a string"),
        ({"evidence": [{"passage": 0, "quote": "Cy"}]}, "the quote 'Cy' is not in passage 0"),
        ({"evidence": [{"passage": 1, "quote": "Bo"}]}, "no passage 1"),
        ({"evidence": [{"passage": 0, "quote": "e"}]}, "occurs 2 times"),
        ({"evidence": [{"passage": 0, "quote": "e", "nth": 2}]}, "nth is 2"),
        ({"evidence": [{"passage": True, "quote": "e"}]}, "must be a whole number"),
        ({"question": "\ud800"}, "surrogate"),
    ],
)
def test_a_broken_record_is_named(write_jsonl: Write, changes: dict[str, Any], said: str) -> None:
    if changes.get("question") == "\ud800":
        path = write_jsonl(SMALL)
        path.write_text(path.read_text().replace("Who came?", "\\ud800"))
        with pytest.raises(LabError, match=said):
            load_examples(str(path))
        return
    assert said in refused(write_jsonl, **changes)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"id": "q1", "quest', "line 1 is cut off"),
        (b'{"id": 1,,}', "line 1 is not JSON"),
        (b"[1, 2]", "line 1 must be an object, not a list"),
        (b'[\n {"id": "q1"}\n]', "The file is one list, but must hold one object a line"),
        (b'[{"id": "q1"}]', "The file is one list, but must hold one object a line"),
        (b'{\n "id": "q1"\n}\n{\n}', "Its first object runs over several lines"),
        (gzip.compress(b'{"id": "q1"}'), r"mine.jsonl is compressed \(gzip\): unpack it first"),
        (b'{"id": "caf\xe9"}', "not UTF-8: byte 11 \\(line 1\\)"),
        (b"", "holds no question"),
        (b"[" * 100_000, "not usable JSON"),
        (b'{"id": ' + b"9" * 5000 + b"}", "not usable JSON"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(content)
    with pytest.raises(LabError, match=said) as caught:
        load_examples(str(path))
    assert "mine.jsonl" in str(caught.value)


def test_blank_lines_line_separators_and_a_byte_order_mark_do_no_harm(write_jsonl: Write) -> None:
    path = write_jsonl({**SMALL, "context": "Ann\u2028came."}, {**SMALL, "id": "q2"})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n\r\n"))
    items = load_examples(str(path))
    assert [item.id for item in items] == ["q1", "q2"]
    assert items[0].passages[0].text == "Ann\u2028came."
