"""A folder that holds another study, or a damaged one, is refused in one clear sentence."""

from __future__ import annotations

import json
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


DAMAGE = [cut_chunk, overwrite_chunk, empty_metadata, remove_array, remove_arrays]


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
    ],
)
def test_a_recipe_that_cannot_be_is_refused(field: str, value: Any, told: str) -> None:
    with pytest.raises(LabError, match=told):
        Recipe(**{"model": "m", "data": ("builtin",), field: value})
