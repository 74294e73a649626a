"""A study from questions to report: odd texts, one example, and how it says it was made."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from tiny_folders import question, write_questions
from tiny_study import Unbroken

from lab.instruments.behaviour import judge
from lab.instruments.names import RUNGS
from lab.instruments.summaries import headline
from lab.studies.plan import make_plan
from lab.studies.recipe import Recipe
from lab.studies.schema import LABELS, VARIABLES
from lab.studies.store import PROVENANCE, read_json, read_study
from lab.studies.study import run_study
from lab.views.report import render_report, write_report

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>&amp;\"'</title>"


def test_a_lens_says_what_it_is_in_one_line(unbroken: Unbroken) -> None:
    assert repr(unbroken.lens) == "Lens('tiny-llama', 4 layers x 4 heads, adapter=None)"


def test_the_arrays_are_those_that_the_schema_lists(unbroken: Unbroken) -> None:
    dataset, _ = read_study(unbroken.folder)
    assert set(dataset.data_vars) == set(VARIABLES)
    sizes = {"layer": 4, "head": 4, **{dim: len(names) for dim, names in LABELS.items()}}
    assert dict(dataset.sizes).items() >= sizes.items()
    for name, variable in VARIABLES.items():
        assert dataset[name].dims == ("example", *variable.dims)
    for dim, names in LABELS.items():
        assert tuple(dataset[dim].values) == names
    assert np.allclose(dataset["mass"].sum("span"), 1, atol=1e-5)
    # Only the first two examples were to be patched.
    patched = np.isfinite(dataset["patch_clean"]).any(["contrast", "run"])
    assert patched.values.tolist() == [True, True, False]


def test_nothing_warns_when_a_study_is_read(unbroken: Unbroken) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_study(unbroken.folder)


def test_html_in_every_field_reaches_the_report_escaped(unbroken: Unbroken, tmp_path: Path) -> None:
    evil = question(
        0, id=f"id{EVIL}", question=f"When {EVIL}?", family=f"family{EVIL}",
        passages=[{"title": f"Title{EVIL}", "text": f"Built in 1871 {EVIL} after the 1811 fire."}],
        evidence=[{"passage": 0, "quote": f"Built in 1871 {EVIL}"}],
        answers=["1871", f"gold{EVIL}"], distractors=[f"wrong{EVIL}", "1811"],
        meta={f"key{EVIL}": f"value{EVIL}"},
    )  # fmt: skip
    too_long = question(1, id=f"long{EVIL}", question="Why " * 3000 + EVIL)
    file = write_questions(tmp_path / "evil<b>.jsonl", [evil, too_long])
    recipe = replace(unbroken.recipe, data=(f"jsonl:{file}",))
    dataset, provenance = run_study(recipe, tmp_path / "out", lens=unbroken.lens)
    html = render_report(dataset, provenance)
    assert EVIL in dataset["question"].item()
    assert "<img src=x" not in html
    assert "<script>alert" not in html
    assert html.count("</title>") == 1
    assert f"id{EVIL}" == dataset["example"].item()
    [left_out] = provenance["excluded"]
    assert left_out["example"] == f"long{EVIL}"
    assert "evil<b>" not in html


def test_a_study_of_one_example_makes_a_report(unbroken: Unbroken, tmp_path: Path) -> None:
    file = write_questions(tmp_path / "one.jsonl", [question(0)])
    recipe = replace(unbroken.recipe, data=(f"jsonl:{file}",), patching=None)
    dataset, provenance = run_study(recipe, tmp_path / "out", lens=unbroken.lens)
    assert dataset.sizes["example"] == 1
    # There is no other passage to swap in, so that control is missing, not zero.
    assert np.isnan(dataset["control_log_odds"].sel(control="context_swapped")).all()
    assert np.isfinite(dataset["control_log_odds"].sel(control="context_masked")).all()
    found = headline(dataset, provenance)
    assert "Too few examples" in found.title or "n = 1" in found.title
    assert write_report(dataset, provenance, tmp_path / "one.html").stat().st_size > 10_000


@pytest.mark.parametrize("text", ["", ".", "?!...", "\u200b", "   ", "-"])
def test_candidates_that_are_empty_or_only_punctuation_are_judged(
    unbroken: Unbroken, text: str
) -> None:
    plan = make_plan(unbroken.recipe, unbroken.lens)
    case = plan.case(0, unbroken.lens)
    [found] = judge(case, [case.prompt("evaluator", text)])
    assert np.isfinite(found.log_odds)
    assert 0 <= found.label_mass <= 1


def test_answers_that_are_only_punctuation_go_through(unbroken: Unbroken, tmp_path: Path) -> None:
    record = question(0, answers=["."], distractors=["...", "?", " "], evidence=[])
    file = write_questions(tmp_path / "dots.jsonl", [record, question(1, answers=[])])
    recipe = replace(unbroken.recipe, data=(f"jsonl:{file}",), patching=None)
    dataset, provenance = run_study(recipe, tmp_path / "out", lens=unbroken.lens)
    given = dataset["candidate_given"].values
    assert np.isfinite(dataset["log_odds"].values[given]).all()
    assert given[:, RUNGS.index("gold")].all()
    assert render_report(dataset, provenance)


def test_a_study_says_how_it_was_made(unbroken: Unbroken, tmp_path: Path) -> None:
    records = [question(0), question(1, question="Why " * 3000), question(2)]
    file = write_questions(tmp_path / "q 1.jsonl", records)
    recipe = replace(
        unbroken.recipe, data=(f"jsonl:{file}",), patching=0, verdict_words=("Correct", "Incorrect")
    )
    run_study(recipe, tmp_path / "out", lens=unbroken.lens)
    made = read_json(tmp_path / "out" / PROVENANCE)
    assert made["model"]["sha256"] == unbroken.lens.sha256
    assert made["recipe"] == recipe.as_dict()
    assert made["recipe"]["version"] == 2
    assert made["prompting"]["format"] == "auto"
    assert made["started"] <= made["finished"]
    assert [e["example"] for e in made["excluded"]] == ["q1"]
    assert "{passage}" in made["templates"]["evaluator"]
    assert shlex.split(made["command"]) == [
        "lab", "run", "--out", str(tmp_path / "out"), "--model", recipe.model,
        "--data", f"jsonl:{file}", "--verdict-words", "Correct,Incorrect", "--patching", "0",
    ]  # fmt: skip


def test_notes_and_exclusions_stay_after_going_on(unbroken: Unbroken, tmp_path: Path) -> None:
    records = [question(0), question(1, question="Why " * 3000)]
    file = write_questions(tmp_path / "q.jsonl", records)
    recipe = replace(unbroken.recipe, data=(f"jsonl:{file}",), patching=0)
    out = tmp_path / "out"
    run_study(recipe, out, lens=unbroken.lens)
    first = read_json(out / PROVENANCE)
    (out / "arrays.zarr" / "done" / "c" / "0").unlink()
    (out / PROVENANCE).write_text(json.dumps({**first, "finished": "", "notes": ["odd"]}))
    run_study(recipe, out, lens=unbroken.lens)
    again = read_json(out / PROVENANCE)
    assert again == {**first, "notes": ["odd"], "finished": again["finished"]}
    assert again["finished"]


def test_going_on_with_other_versions_is_noted_once(unbroken: Unbroken, tmp_path: Path) -> None:
    file = write_questions(tmp_path / "q.jsonl", [question(0)])
    recipe = replace(unbroken.recipe, data=(f"jsonl:{file}",), patching=0)
    out = tmp_path / "out"
    for _ in range(3):
        run_study(recipe, out, lens=unbroken.lens)
        made = read_json(out / PROVENANCE)
        (out / "arrays.zarr" / "done" / "c" / "0").unlink()
        made["versions"]["torch"] = "1.0"
        (out / PROVENANCE).write_text(json.dumps(made))
    notes = [note for note in made["notes"] if "Gone on with" in note]
    assert len(notes) == 1
    assert "torch 1.0 to " in notes[0]


def test_data_notes_are_in_the_provenance(unbroken: Unbroken, tmp_path: Path) -> None:
    squad = {
        "data": [{"title": "T", "paragraphs": [{
            "context": "The harbour was built in 1871.",
            "qas": [{"id": "a", "question": "When?", "is_impossible": False,
                     "answers": [{"text": "1871", "answer_start": 25}]}],
        }, {"context": "", "qas": [{"id": "b", "question": "Who?", "is_impossible": True,
                                    "answers": []}]}]}]
    }  # fmt: skip
    (tmp_path / "squad.json").write_text(json.dumps(squad))
    recipe = replace(unbroken.recipe, data=(f"squad2:{tmp_path / 'squad.json'}",), patching=0)
    _, made = run_study(recipe, tmp_path / "out", lens=unbroken.lens)
    assert any("squad.json" in note and "empty" in note for note in made["notes"]), made["notes"]


def test_reading_a_study_needs_no_torch(unbroken: Unbroken) -> None:
    """A report can be made years later, on a machine without the model."""
    code = (
        "import sys, lab.views.report, lab.studies.store as s; s.read_study(sys.argv[1]);"
        "assert 'torch' not in sys.modules, 'torch was imported'"
    )
    subprocess.run([sys.executable, "-c", code, str(unbroken.folder)], check=True, timeout=120)


def test_examples_do_not_depend_on_which_ran_before(unbroken: Unbroken, tmp_path: Path) -> None:
    """Alone, the second question gives the bits it gave behind the first, its swaps aside."""
    file = Path(unbroken.recipe.data[0].removeprefix("jsonl:"))
    lines = file.read_text().splitlines()
    alone = tmp_path / "harbours.jsonl"
    alone.write_text(lines[1] + "\n")
    recipe = replace(unbroken.recipe, data=(f"jsonl:{alone}",))
    dataset, _ = run_study(recipe, tmp_path / "out", lens=unbroken.lens)
    whole, _ = read_study(unbroken.folder)
    for name in ("mass", "patch_head", "answer_raw"):
        xr.testing.assert_identical(dataset[name], whole[name].sel(example=["q1"]))


def test_recipes_are_told_apart_by_every_field() -> None:
    plain = Recipe("m", ("builtin",))
    assert plain.command(Path("out")) == "lab run --out out --model m --data builtin"
    other = Recipe("m", ("builtin", "squad2:a b"), n=3, seed=1, dtype="bfloat16")
    assert other.command(Path("o")).endswith("--data 'squad2:a b' --n 3 --seed 1 --dtype bfloat16")
