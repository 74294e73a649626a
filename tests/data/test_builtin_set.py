"""The built-in set keeps to its rules, and the checks notice what breaks them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from lab.data import Example, Mark, Passage, load_examples
from lab.data.builtin import FAMILIES
from lab.data.validate import main, validate, validate_all, validate_file, words


@pytest.fixture(scope="module")
def shipped() -> list[Example]:
    return list(load_examples("builtin"))


def test_the_shipped_set_keeps_to_every_rule(shipped: list[Example]) -> None:
    assert validate_all(shipped) == []
    assert len(shipped) == 96
    assert {item.dataset for item in shipped} == {"builtin"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_can_be_loaded_alone(family: str) -> None:
    items = load_examples(f"builtin:{family}")
    assert len(items) == 24
    assert {item.family for item in items} == {family}


def test_passages_spread_from_short_to_long(shipped: list[Example]) -> None:
    sizes = [words(item) for item in shipped]
    assert min(sizes) < 110
    assert max(sizes) > 400


def broken(example: Example, **changes: object) -> str:
    return " ".join(validate(replace(example, **changes)))


def test_what_the_checks_notice_in_one_example(shipped: list[Example]) -> None:
    by_id = {item.id: item for item in shipped}
    right = next(i for i in shipped if i.family == "extract" and i.answerable)
    missing = next(i for i in shipped if i.family == "extract" and not i.answerable)
    chain = by_id["chain-01"]
    assert "question mark" in broken(right, question="Tell me.")
    assert "must have 80 to 450" in broken(right, passages=(Passage("Too short."),))
    assert "1 distractors; 2 are needed" in broken(right, distractors=right.distractors[:1])
    assert "F1 1.00" in broken(right, distractors=(right.gold, *right.distractors))
    assert "repeated" in broken(right, distractors=right.distractors[:1] * 2)
    assert "not found: ['Xqzt Vwpf']" in broken(
        right, distractors=(right.distractors[0], "Xqzt Vwpf")
    )
    assert "No gold answer" in broken(right, answer_marks=())
    assert "The evidence is in 0 passages" in broken(right, evidence=())
    assert "it has evidence" in broken(missing, evidence=(Mark(0, 0, 5),))
    assert "must be 'squad'" in broken(right, metric="drop")
    assert "two digits" in broken(right, id="extract-1")
    assert "meta.hops" in broken(chain, meta={"hops": "9"})
    assert "passages, not 4 to 7" in broken(chain, passages=chain.passages[:2])
    arithmetic = by_id["arithmetic-01"]
    assert "meta.operation is ''" in broken(arithmetic, meta={})
    assert "must be 'bridge' or" in broken(by_id["bridge-01"], meta={"hops": "2"})


def test_what_the_checks_notice_in_a_set(shipped: list[Example]) -> None:
    extract = [item for item in shipped if item.family == "extract"]
    assert "extract: There are 23 questions; there must be 24." in validate_all(extract[1:])
    assert "extract-01: the id occurs 2 times." in validate_all([extract[0], *extract])
    same = [replace(item, cluster="one") for item in extract]
    assert any("24 questions share the cluster" in line for line in validate_all(same))
    apart = [replace(item, cluster=item.id) for item in extract]
    assert any("The same passages have the clusters" in line for line in validate_all(apart))


def test_only_general_rules_hold_for_other_families(shipped: list[Example]) -> None:
    assert validate(replace(shipped[0], family="own", id="anything", metric="drop")) == []


def test_a_file_is_checked_to_its_end(write_jsonl: Callable[..., Path]) -> None:
    lines = (files("lab.data.builtin") / "extract.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    del records[2]["question"]
    records[5]["answers"] = 7
    examples, problems = validate_file(write_jsonl(*records))
    assert len(examples) == 22
    assert ["line 3" in problems[0], "line 6" in problems[1]] == [True, True]


def test_the_command_reports_and_fails(
    write_jsonl: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.count("no problem found") == 4
    path = write_jsonl({"id": "q", "question": "Why", "context": "Short.", "answers": []})
    assert main([str(path), str(tmp_path / "gone.jsonl")]) == 1
    out = capsys.readouterr().out
    assert "- q: The question does not end with a question mark." in out
    assert "There is no file" in out
