"""That a study says so where its adapter was trained on what is asked."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tiny_adapter import save_adapter
from tiny_folders import question, write_questions

from lab.data import Example, Passage
from lab.studies.recipe import Recipe
from lab.studies.seen import seen_in_training
from lab.studies.store import PROVENANCE, read_json
from lab.studies.study import run_study
from lab.views.content.made import limits


def asked(dataset: str, *titles: str) -> list[Example]:
    return [
        Example(f"q{i}", dataset, "", "?", (Passage("x"),), (), meta={"title": title})
        for i, title in enumerate(titles)
    ]


def trained(spec: str, *articles: str) -> dict[str, Any]:
    return {"data": [{"spec": spec, "articles": list(articles)}]}


ANTS = trained("squad2:dev.json#Ants,Bees", "Ants", "Bees")


@pytest.mark.parametrize(
    ("source", "examples", "about", "told"),
    [
        ("builtin", [], trained("builtin"), "built-in questions are asked here too"),
        ("builtin:chain", [], trained("builtin"), "built-in questions"),
        ("builtin:chain", [], trained("builtin:chain"), "built-in questions"),
        ("world:train/7/50", [], trained("world:train/0/700"), "same names and wordings"),
        ("squad2:x/dev.json", asked("squad2", "Ants", "Wasps"), ANTS, "asked about (Ants) here"),
        ("squad2:hub/train", asked("squad2", "Bees", "Ants"), ANTS, "(Ants, Bees)"),
        ("drop:a/dev.json", [], trained("drop:b/dev.json"), "a file of this name"),
        ("q.jsonl", [], trained("jsonl:mine/q.jsonl"), "a file of this name"),
        ("builtin", [], {"recipe": {"data": ["builtin"]}}, "was trained on builtin"),
    ],
)
def test_what_was_trained_on_is_told(
    source: str, examples: Sequence[Example], about: dict[str, Any], told: str
) -> None:
    [sentence] = seen_in_training([source], examples, about)
    assert told in sentence
    assert "does not show what it does on questions that it never saw" in sentence


@pytest.mark.parametrize(
    ("source", "examples", "about"),
    [
        ("builtin", [], trained("world:train/0/700")),
        ("builtin:chain", [], trained("builtin:bridge")),
        ("world:test/0/50", [], trained("world:train/0/700")),
        ("squad2:dev.json", asked("squad2", "Wasps"), ANTS),
        ("drop:dev.json", asked("drop", "Ants"), ANTS),
        ("drop:test.json", [], trained("drop:dev.json")),
        ("builtin", [], {}),
    ],
)
def test_nothing_is_told_of_other_questions(
    source: str, examples: Sequence[Example], about: dict[str, Any]
) -> None:
    assert seen_in_training([source], examples, about) == ()


def test_a_study_warns_and_its_report_says_it(
    tiny_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = write_questions(tmp_path / "q.jsonl", [question(0)])
    adapter = save_adapter(tiny_folder, tmp_path / "judge", data=[f"jsonl:{file}"])
    recipe = Recipe(
        str(tiny_folder), f"jsonl:{file}", patching=0, reading=0, controls=0, adapter=str(adapter)
    )
    with caplog.at_level(logging.WARNING, "lab"):
        _, provenance = run_study(recipe, tmp_path / "out")
    sentence = f"The adapter was trained on jsonl:{file}, and questions from a file of this name"
    assert sentence in caplog.text
    assert sentence in limits(provenance, 1, 1)[0]
    assert read_json(tmp_path / "out" / PROVENANCE)["seen_in_training"]
