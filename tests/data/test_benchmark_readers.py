"""The official formats: small records written here, and samples of the real files."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.data import Examples, load_examples, score
from lab.errors import LabError

Write = Callable[..., Path]

CONTEXT = " The mill was built by Ann Lee in 1850. It burnt down. "
SQUAD = {
    "version": "v2.0",
    "data": [
        {
            "title": "Mill",
            "paragraphs": [
                {
                    "context": CONTEXT,
                    "qas": [
                        {
                            "id": "a1",
                            "question": " Who built the mill? ",
                            "is_impossible": False,
                            "answers": [
                                {"text": "Ann Lee", "answer_start": 23},
                                {"text": "Ann Lee", "answer_start": 23},
                                {"text": "Ann Lee in ", "answer_start": 23},
                            ],
                        },
                        {
                            "id": "a2",
                            "question": "Who burnt the mill?",
                            "is_impossible": True,
                            "answers": [],
                            "plausible_answers": [{"text": "Ann Lee", "answer_start": 23}],
                        },
                    ],
                }
            ],
        }
    ],
}


def answer(number: str = "", spans: list[str] | None = None, **date: str) -> dict[str, Any]:
    return {"number": number, "spans": spans or [], "date": date}


def pair(name: str, given: dict[str, Any], question: str = "How many?", **more: Any) -> dict:
    return {"query_id": name, "question": question, "answer": given, **more}


DROP = {
    "nfl_1": {
        "passage": "Ann ran 10&#160;yards, Bo 4 and Cy 4. Bo fell. On 8 May Cy won.",
        "qa_pairs": [
            pair("d1", answer("14"), validated_answers=[answer(spans=["fourteen"]), answer()]),
            pair("d2", answer("6")),
            pair("d3", answer(spans=["Ann"]), "Who ran far?"),
            pair("d4", answer(spans=["Ann", "Bo", "Ann"]), "Who ran?"),
            pair("d5", answer(day="8", month="May", year=""), "When?"),
            pair("d6", answer(), "Nothing?"),
            pair("d7", answer(spans=["10&#160;yards"]), "How far?"),
        ],
    }
}
HOTPOT = [
    {
        "_id": "h1",
        "question": "Where was the maker of the Sprite born? ",
        "answer": "Oslo",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Sprite &amp; Co", 1], ["Nils", 0], ["Nils", 9], ["Nobody", 0]],
        "context": [
            ["Rome", ["Oslo is not Rome."]],
            ["Sprite &amp; Co", ["A boat.", " Made by Nils.", ""]],
            ["Nils", ["Nils is from Oslo.", " He sails."]],
        ],
    },
    {
        "_id": "h2",
        "question": "Is it so?",
        "answer": "no",
        "type": "comparison",
        "level": "easy",
        "supporting_facts": [["A", 0]],
        "context": [["A", ["There is no way."]], ["B", []]],
    },
]
MUSIQUE = {
    "id": "3hop1__1_2_3",
    "question": "Who?",
    "answer": "Ann\u200b Lee",
    "answer_aliases": ["A. Lee"],
    "answerable": True,
    "paragraphs": [
        {"idx": 7, "title": "T", "paragraph_text": "\ufeffAnn Lee won.", "is_supporting": True},
        {"idx": 2, "title": "T", "paragraph_text": "Ann Lee lost.", "is_supporting": False},
        {"idx": 5, "title": "U", "paragraph_text": "U met A. Lee.", "is_supporting": True},
    ],
    "question_decomposition": [],
}


def test_squad_answers_marks_and_evidence(write_json: Write) -> None:
    right, impossible = load_examples(f"squad2:{write_json(SQUAD)}")
    assert right.question == "Who built the mill?"
    assert right.answers == (("Ann Lee",), ("Ann Lee in",))
    assert right.passages[0].text == CONTEXT
    assert [right.marked(mark) for mark in right.answer_marks] == ["Ann Lee in"]
    assert [right.marked(m) for m in right.evidence] == ["The mill was built by Ann Lee in 1850."]
    assert (right.family, right.dataset, right.metric) == ("answerable", "squad2", "squad")
    assert impossible.family == "unanswerable"
    assert (impossible.answers, impossible.answer_marks, impossible.evidence) == ((), (), ())
    assert impossible.distractors == ("Ann Lee",)
    assert impossible.cluster == right.cluster


def test_squad_repeats_within_a_paragraph_are_kept_by_id_and_noted(write_json: Write) -> None:
    data = copy.deepcopy(SQUAD)
    questions = data["data"][0]["paragraphs"][0]["qas"]
    questions.append({**questions[0], "id": "a3"})
    items = load_examples(f"squad2:{write_json(data)}")
    assert [item.id for item in items if item.notes] == ["a1", "a3"]
    assert "under another id" in items.notes[0]


def test_squad_wrong_offsets_are_noted_and_not_marked(write_json: Write) -> None:
    data = copy.deepcopy(SQUAD)
    for gold in data["data"][0]["paragraphs"][0]["qas"][0]["answers"]:
        gold["answer_start"] = 400
    item = load_examples(f"squad2:{write_json(data)}")[0]
    assert item.answer_marks == ()
    assert "answer_start" in item.notes[0]


def test_squad_golds_without_a_word_are_dropped_as_the_metric_does(write_json: Write) -> None:
    data = copy.deepcopy(SQUAD)
    golds = data["data"][0]["paragraphs"][0]["qas"][0]["answers"]
    golds.append({"text": ".", "answer_start": 38})
    item = load_examples(f"squad2:{write_json(data)}")[0]
    assert (".",) not in item.answers
    assert "without any word" in item.notes[0]
    golds[:] = golds[-1:]
    assert "no gold answer" in load_examples(f"squad2:{write_json(data)}").skipped[0]


def test_squad_skips_and_counts_what_cannot_be_asked(write_json: Write) -> None:
    data = copy.deepcopy(SQUAD)
    data["data"][0]["paragraphs"].append({**data["data"][0]["paragraphs"][0], "context": "  "})
    items = load_examples(f"squad2:{write_json(data)}")
    assert len(items) == 2
    assert [line.rsplit(": ", 1)[1] for line in items.skipped] == ["the context is empty."] * 2
    assert "data[0]: paragraphs[1]: qas[0] (a1)" in items.skipped[0]


def test_drop_kinds_alternatives_and_marks(write_json: Write) -> None:
    items = load_examples(f"drop:{write_json(DROP)}")
    by_id = {item.id: item for item in items}
    assert [item.family for item in items] == ["number", "number", "span", "spans", "date", "span"]
    assert by_id["d1"].answers == (("14",), ("fourteen",))
    assert score(by_id["d1"], "Fourteen").em == 1
    assert by_id["d1"].answer_marks == ()
    assert [by_id["d3"].marked(mark) for mark in by_id["d3"].answer_marks] == ["Ann"]
    assert by_id["d3"].marked(by_id["d3"].evidence[0]).startswith("Ann ran")
    assert by_id["d5"].gold == "8 May"
    assert "d6" in items.skipped[0]
    assert by_id["d4"].evidence == ()


def test_drop_repeated_spans_entities_and_conflicts_are_noted(write_json: Write) -> None:
    by_id = {item.id: item for item in load_examples(f"drop:{write_json(DROP)}")}
    assert by_id["d4"].answers == (("Ann", "Bo"), ("Ann", "Bo", "Ann"))
    assert score(by_id["d4"], "Ann and Bo").em == 1
    assert "&#160;" in by_id["d3"].passages[0].text
    assert by_id["d7"].answers == (("10&#160;yards",), ("10\u00a0yards",))
    assert any("with another answer" in note for note in by_id["d2"].notes)
    assert any("HTML entit" in note for note in by_id["d3"].notes)


def test_hotpotqa_sentences_and_facts(write_json: Write) -> None:
    bridge, closed = load_examples(f"hotpotqa:{write_json(HOTPOT)}")
    assert bridge.passages[1].text == "A boat. Made by Nils."
    assert bridge.passages[1].title == "Sprite &amp; Co"
    assert [bridge.marked(m) for m in bridge.evidence] == ["Made by Nils.", "Nils is from Oslo."]
    assert [(m.passage, bridge.marked(m)) for m in bridge.answer_marks] == [(2, "Oslo")]
    assert [note for note in bridge.notes if "does not exist" in note] == list(bridge.notes)
    assert len(bridge.notes) == 2
    assert (bridge.family, bridge.meta["level"]) == ("bridge", "hard")
    assert closed.answer_marks == ()
    assert closed.notes == ("An empty paragraph was left out.",)


def test_musique_paragraphs_aliases_and_twins(write_jsonl: Write) -> None:
    twin = {**MUSIQUE, "answerable": False}
    item, unanswerable = load_examples(f"musique:{write_jsonl(MUSIQUE, twin)}")
    assert item.answers == (("Ann Lee",), ("A. Lee",))
    assert item.passages[0].text == "\ufeffAnn Lee won."
    assert [item.marked(mark) for mark in item.evidence] == ["Ann Lee won.", "U met A. Lee."]
    assert [item.marked(mark) for mark in item.answer_marks] == ["Ann Lee", "A. Lee"]
    assert (item.family, item.meta["hops"]) == ("3hop", "3")
    assert any("Invisible" in note for note in item.notes)
    assert unanswerable.id == "3hop1__1_2_3__unanswerable"
    assert (unanswerable.answers, unanswerable.distractors) == ((), ("Ann Lee",))


def test_clusters_follow_the_gold_paragraphs_in_any_order(write_jsonl: Write) -> None:
    other = copy.deepcopy(MUSIQUE) | {"id": "2hop__9"}
    other["paragraphs"] = [*reversed(other["paragraphs"])][:1] + other["paragraphs"][:1]
    first, second = load_examples(f"musique:{write_jsonl(MUSIQUE, other)}")
    assert first.cluster == second.cluster


@pytest.mark.parametrize(
    ("spec", "value", "said"),
    [
        ("squad2", [], "must hold an object at the top, not a list"),
        ("hotpotqa", {}, "must hold a list at the top, not an object"),
        ("squad2", {"version": "1"}, "has no field 'data'"),
        ("squad2", {"data": [{"paragraphs": [{"context": 3}]}]}, "'context' must be a string"),
        ("squad2", {"data": []}, "holds no question"),
        ("drop", {"p": {"passage": "x"}}, "p has no field 'qa_pairs'"),
        ("drop", {"p": {"passage": "x", "qa_pairs": [pair("d", {})]}}, "no usable question"),
        ("hotpotqa", ["x"], "record 0 must be an object"),
        ("hotpotqa", [{**HOTPOT[0], "context": [["A", "text"]]}], "must be a list of sentences"),
        ("hotpotqa", [{**HOTPOT[0], "context": [["A"]]}], "context[0] must be a list of two"),
        ("hotpotqa", [{**HOTPOT[0], "supporting_facts": [["A", "0"]]}], "must be a whole number"),
        ("musique", {**MUSIQUE, "paragraphs": [{"idx": "1"}]}, "'idx' must be a whole number"),
        ("musique", {**MUSIQUE, "paragraphs": MUSIQUE["paragraphs"][:1] * 2}, "the same idx"),
        ("musique", {**MUSIQUE, "paragraphs": []}, "all paragraphs are empty"),
    ],
)
def test_broken_benchmark_files_are_named(
    write_json: Write, spec: str, value: Any, said: str
) -> None:
    path = write_json(value)
    with pytest.raises(LabError) as caught:
        load_examples(f"{spec}:{path}")
    assert said in str(caught.value)
    assert path.name in str(caught.value)


def test_a_truncated_benchmark_file(write_json: Write) -> None:
    path = write_json(SQUAD)
    path.write_text(path.read_text()[:300])
    with pytest.raises(LabError, match="is cut off"):
        load_examples(f"squad2:{path}")


@pytest.fixture
def real(shared_data: Path) -> Callable[[str], Examples]:
    def load(name: str) -> Examples:
        ending = "jsonl" if name == "musique" else "json"
        return load_examples(f"{name}:{shared_data}/{name}/sample.{ending}")

    return load


def sound(items: Examples) -> None:
    """What holds for every example, whatever benchmark it is from."""
    assert len({item.id for item in items}) == len(items)
    for item in items:
        assert item.question == item.question.strip() != ""
        assert all(passage.text.strip() for passage in item.passages)
        assert len(set(item.answers)) == len(item.answers)
        for mark in (*item.evidence, *item.answer_marks):
            assert item.marked(mark) == item.marked(mark).strip() != ""
        for gold in item.answers:
            assert score(item, gold if len(gold) > 1 else gold[0]).em == 1
        assert not item.answerable or score(item, "").em == 0


def test_the_squad_sample(real: Callable[[str], Examples]) -> None:
    items = real("squad2")
    sound(items)
    assert Counter(item.family for item in items) == {"answerable": 1957, "unanswerable": 2133}
    assert len({item.cluster for item in items}) == 431
    assert all(bool(item.answer_marks) == item.answerable == bool(item.evidence) for item in items)
    assert all(item.distractors for item in items if not item.answerable)
    assert not items.skipped


def test_the_squad_marks_are_the_official_ones(
    real: Callable[[str], Examples], shared_data: Path
) -> None:
    raw = json.loads((shared_data / "squad2/sample.json").read_text(encoding="utf-8"))
    paragraphs = [p for article in raw["data"] for p in article["paragraphs"]]
    starts = {
        q["id"]: {a["answer_start"] for a in q["answers"]} for p in paragraphs for q in p["qas"]
    }
    for item in real("squad2"):
        texts = {span for spans in item.answers for span in spans}
        for mark in item.answer_marks:
            assert item.marked(mark) in texts
            assert mark.start in starts[item.id]


def test_the_drop_sample(real: Callable[[str], Examples]) -> None:
    items = real("drop")
    sound(items)
    counts = {"number": 266, "span": 148, "spans": 12, "date": 2}
    assert Counter(item.family for item in items) == counts
    assert len({item.cluster for item in items}) == 158
    assert sum("with another answer" in note for note in items.notes) == 2
    assert all(not item.answer_marks for item in items if item.family == "number")


def test_the_hotpotqa_sample(real: Callable[[str], Examples]) -> None:
    items = real("hotpotqa")
    sound(items)
    assert Counter(item.family for item in items) == {"bridge": 222, "comparison": 78}
    assert sum(not item.answer_marks for item in items) == 23
    assert all(item.evidence for item in items)
    assert not items.skipped


def test_the_musique_sample(real: Callable[[str], Examples]) -> None:
    items = real("musique")
    sound(items)
    assert Counter(item.family for item in items) == {"2hop": 143, "3hop": 38, "4hop": 24}
    assert all(len(item.evidence) == int(item.meta["hops"]) for item in items)
    assert all(len(item.passages) == 20 and item.answer_marks for item in items)
