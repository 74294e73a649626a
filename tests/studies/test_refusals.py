"""A folder that holds another study, or a damaged one, is refused in one clear sentence."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_folders import question, write_questions
from tiny_study import Unbroken, stored_bytes

from lab.errors import LabError
from lab.studies.recipe import Recipe
from lab.studies.store import ARRAYS, PROVENANCE, RECIPE, read_study
from lab.studies.study import run_study


@pytest.fixture
def copy(unbroken: Unbroken, tmp_path: Path) -> Path:
    """A copy of the finished study, to be damaged."""
    shutil.copytree(unbroken.folder, tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seed": 7}, "seed was 0, now 7"),
        ({"verdict_words": ("Correct", "Incorrect")}, "verdict_words was None, now"),
        ({"layout": "context_first"}, "layout was None, now 'context_first'"),
        ({"demonstrations": 2}, "demonstrations was None, now 2"),
        ({"n": 2, "patching": None}, "n was None, now 2; patching was 2, now None"),
    ],
)
def test_another_recipe_is_refused_and_the_difference_named(
    unbroken: Unbroken, copy: Path, change: dict[str, Any], told: str
) -> None:
    before = stored_bytes(copy)
    with pytest.raises(LabError, match=f"another recipe: {told}.*choose another --out folder"):
        run_study(replace(unbroken.recipe, **change), copy, lens=unbroken.lens)
    assert stored_bytes(copy) == before


def test_the_same_files_named_otherwise_are_the_same_recipe(
    unbroken: Unbroken, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data = Path(unbroken.recipe.model), Path(unbroken.recipe.data[0].partition(":")[2])
    monkeypatch.chdir(data.parent)
    near = replace(unbroken.recipe, model=os.path.relpath(model), data=(f"jsonl:./{data.name}",))
    dataset, _ = run_study(near, copy, lens=unbroken.lens)
    assert dataset.sizes["example"] == 3
    write_questions(data.parent / "other.jsonl", [question(0)])
    with pytest.raises(LabError, match=r"another recipe: data was .* now \['jsonl:other.jsonl'\]"):
        run_study(replace(near, data=("jsonl:other.jsonl",)), copy, lens=unbroken.lens)


def test_one_source_need_not_stand_in_a_list() -> None:
    assert Recipe("m", "jsonl:q.jsonl") == Recipe("m", ("jsonl:q.jsonl",))
    assert Recipe("m", ["builtin"]) == Recipe("m", ("builtin",))


def test_arrays_of_an_older_layout_are_not_gone_on_with_but_read(
    unbroken: Unbroken, copy: Path
) -> None:
    stored = json.loads((copy / RECIPE).read_text())
    stored["recipe"]["version"] = 1
    del stored["recipe"]["schemes"]
    (copy / RECIPE).write_text(json.dumps(stored))
    told = "version was 1, now 2; schemes was None, now 0"
    with pytest.raises(LabError, match=told):
        run_study(unbroken.recipe, copy, lens=unbroken.lens)
    assert read_study(copy)[0].sizes["example"] == 3


def test_changed_data_under_the_same_name_are_refused(unbroken: Unbroken, tmp_path: Path) -> None:
    file = write_questions(tmp_path / "q.jsonl", [question(0)])
    recipe = replace(unbroken.recipe, data=(f"jsonl:{file}",), patching=0)
    run_study(recipe, tmp_path / "out", lens=unbroken.lens)
    write_questions(file, [question(0, distractors=["1899"])])
    with pytest.raises(LabError, match="same recipe, but the examples have changed since"):
        run_study(recipe, tmp_path / "out", lens=unbroken.lens)


@pytest.mark.parametrize("part", ["weights", "prompts"])
def test_changed_weights_and_templates_are_refused(
    unbroken: Unbroken, copy: Path, part: str
) -> None:
    stored = json.loads((copy / RECIPE).read_text())
    stored["fingerprint"][part] = "0" * 64
    (copy / RECIPE).write_text(json.dumps(stored))
    with pytest.raises(LabError, match=f"the {part} have changed since"):
        run_study(unbroken.recipe, copy, lens=unbroken.lens)


def test_the_fingerprint_follows_weights_and_templates(unbroken: Unbroken, copy: Path) -> None:
    from lab.studies.plan import make_plan

    stored = json.loads((copy / RECIPE).read_text())["fingerprint"]
    assert stored["weights"] == unbroken.lens.sha256
    correct = replace(unbroken.recipe, verdict_words=("Correct", "Incorrect"))
    assert make_plan(correct, unbroken.lens).fingerprint["prompts"] != stored["prompts"]


@pytest.mark.parametrize("text", ["", "{", "[]", '"text"', "\x00\xff", '{"fingerprint": {}}'])
def test_a_damaged_recipe_is_told(unbroken: Unbroken, copy: Path, text: str) -> None:
    (copy / RECIPE).write_bytes(text.encode("latin-1"))
    before = stored_bytes(copy)
    with pytest.raises(LabError, match=r"recipe.*(damaged|does not hold)"):
        run_study(unbroken.recipe, copy, lens=unbroken.lens)
    assert stored_bytes(copy) == before


def test_measured_arrays_without_their_recipe_are_not_overwritten(
    unbroken: Unbroken, copy: Path
) -> None:
    (copy / RECIPE).unlink()
    with pytest.raises(LabError, match=r"its recipe\.json is missing"):
        run_study(unbroken.recipe, copy, lens=unbroken.lens)
    assert unbroken.same_arrays(copy)


def cut_chunk(folder: Path) -> None:
    chunk = next(f for f in (folder / ARRAYS / "mass" / "c" / "0").rglob("*") if f.is_file())
    chunk.write_bytes(chunk.read_bytes()[:10])


def overwrite_chunk(folder: Path) -> None:
    chunk = next(f for f in (folder / ARRAYS / "question" / "c").rglob("*") if f.is_file())
    chunk.write_bytes(b"no zarr at all")


def empty_metadata(folder: Path) -> None:
    (folder / ARRAYS / "mass" / "zarr.json").write_text("")


def remove_array(folder: Path) -> None:
    shutil.rmtree(folder / ARRAYS / "mass")


def remove_arrays(folder: Path) -> None:
    shutil.rmtree(folder / ARRAYS)


def remove_ids(folder: Path) -> None:
    shutil.rmtree(folder / ARRAYS / "example")


def remove_labels(folder: Path) -> None:
    shutil.rmtree(folder / ARRAYS / "span" / "c")


DAMAGE = [
    cut_chunk, overwrite_chunk, empty_metadata, remove_array, remove_arrays, remove_ids,
    remove_labels,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_arrays_are_told_when_a_study_is_read(
    copy: Path, damage: Callable[[Path], None]
) -> None:
    damage(copy)
    with pytest.raises(LabError, match=r"arrays\.zarr cannot be read .* The folder is damaged"):
        read_study(copy)


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_arrays_are_told_when_a_study_is_run_again(
    unbroken: Unbroken, copy: Path, damage: Callable[[Path], None]
) -> None:
    damage(copy)
    with pytest.raises(LabError, match="damaged"):
        run_study(unbroken.recipe, copy, lens=unbroken.lens)


def test_damaged_provenance_is_told(copy: Path) -> None:
    (copy / PROVENANCE).write_text("{")
    with pytest.raises(LabError, match=r"provenance\.json cannot be read"):
        read_study(copy)


def test_a_folder_without_a_study_is_told(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="holds no study"):
        read_study(tmp_path)
    with pytest.raises(LabError, match=r"There is no folder .*nix\."):
        read_study(tmp_path / "nix")


def test_a_study_without_a_finished_example_is_told(copy: Path) -> None:
    shutil.rmtree(copy / ARRAYS / "done" / "c")
    with pytest.raises(LabError, match=r"No example of .* is finished yet"):
        read_study(copy)


@pytest.mark.parametrize("place", ["file", "file/out"])
def test_a_file_in_the_way_of_the_folder_is_told(
    unbroken: Unbroken, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LabError, match=r"cannot be written: .*choose another --out folder"):
        run_study(unbroken.recipe, tmp_path / place, lens=unbroken.lens)
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_folder_without_the_right_to_write_is_told(
    unbroken: Unbroken, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("lab.studies.store.tempfile", SimpleNamespace(mkstemp=refused))
    with pytest.raises(LabError, match="cannot be written: Permission denied"):
        run_study(unbroken.recipe, tmp_path / "out", lens=unbroken.lens)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("layout", "sideways", "instruction_first, context_first"),
        ("format", "html", "auto, chat, plain"),
        ("too_long", "cut", "drop, error"),
        ("dtype", "int8", "float32, bfloat16, float16"),
        ("verdict_words", ("Yes", "yes"), "two different words"),
        ("verdict_words", ("Yes",), "two different words"),
        ("n", 0, "at least 1"),
        ("max_tokens", -5, "at least 1"),
        ("patching", -1, "0 or more"),
        ("data", (), "at least one source"),
        ("data", Path("q.jsonl"), r"data is .*q.jsonl.*: it must be a source"),
        ("data", (3,), r"data is \(3,\): it must be a source"),
        ("model", Path("tiny"), r"model is .*tiny.*: it must be a text"),
        ("adapter", 3, "adapter is 3: it must be a text"),
        ("n", "3", "n is '3': it must be a whole number"),
        ("n", 2.5, "n is 2.5: it must be a whole number"),
        ("n", True, "n is True: it must be a whole number"),
        ("seed", "x", "seed is 'x': it must be a whole number"),
        ("reading", "all", "reading is 'all': it must be a whole number"),
        ("demonstrations", 1.0, "demonstrations is 1.0: it must be a whole number"),
        ("verdict_words", "Yes,No", "two different words, .*, not 'Yes,No'"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(field: str, value: Any, told: str) -> None:
    with pytest.raises(LabError, match=told):
        Recipe(**{"model": "m", "data": ("builtin",), field: value})
