"""Adapters in a study, light studies, and the runs beside a study."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zarr
from tiny_adapter import save_adapter
from tiny_folders import question, write_questions

from lab.engine.loading import load_lens
from lab.errors import LabError
from lab.instruments.summaries.runs import Run
from lab.instruments.summaries.schemes import out_of_scheme
from lab.instruments.summaries.transfer import matrix
from lab.studies.beside import read_runs, run_beside
from lab.studies.recipe import Recipe
from lab.studies.schema import OPTIONAL
from lab.studies.store import ARRAYS, missing_chunks, read_study
from lab.studies.study import run_study


@pytest.fixture(scope="module")
def study(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Recipe, Path]:
    """A light study of a tiny model with an adapter, and the base and another seed beside it."""
    root = tmp_path_factory.mktemp("beside")
    file = write_questions(root / "asked.jsonl", [question(i) for i in range(3)])
    adapters = [
        save_adapter(tiny_folder, root / f"judge-{seed}", seed, role="evaluator",
                     layout="context_first", verdict_words=["True", "False"])
        for seed in (0, 1)
    ]  # fmt: skip
    recipe = Recipe(
        str(tiny_folder), (f"jsonl:{file}",), patching=0, controls=1, reading=2,
        adapter=str(adapters[0]),
    )  # fmt: skip
    run_study(recipe, root / "out")
    run_beside(recipe, root / "out", ["base", str(adapters[1])])
    return recipe, root / "out"


def test_a_study_asks_in_the_prompts_that_its_adapter_was_trained_on(
    study: tuple[Recipe, Path],
) -> None:
    _, provenance = read_study(study[1])
    assert provenance["prompting"]["layout"] == "context_first"
    assert provenance["verdict_words"] == ["True", "False"]
    assert provenance["templates"]["evaluator"].index("{passage}") < provenance["templates"][
        "evaluator"
    ].index("Task:")
    assert provenance["model"]["name"].endswith("+ judge-0")
    assert provenance["adapter"]["recipe"]["role"] == "evaluator"


def test_a_lens_with_another_adapter_than_the_recipe_is_refused(
    study: tuple[Recipe, Path], tmp_path: Path
) -> None:
    recipe = study[0]
    plain, judge = load_lens(recipe.model), load_lens(recipe.model, adapter=recipe.adapter)
    with pytest.raises(LabError, match="asks for the adapter judge-0, but the lens has no adapter"):
        run_study(recipe, tmp_path / "out", lens=plain)
    with pytest.raises(LabError, match="asks for no adapter, but the lens has the adapter judge-0"):
        run_study(replace(recipe, adapter=None), tmp_path / "out", lens=judge)
    assert not (tmp_path / "out").exists()
    run_study(replace(recipe, n=1, reading=0, controls=0), tmp_path / "out", lens=judge)


def test_a_recipe_outweighs_what_the_adapter_was_trained_on(study: tuple[Recipe, Path]) -> None:
    told = {"layout": "context_first", "verdict_words": ("True", "False")}
    assert study[0].prompting(told)["layout"] == "context_first"
    assert replace(study[0], layout="instruction_first").prompting(told) == {
        "layout": "instruction_first", "format": "auto", "verdict_words": ("True", "False"),
        "demonstrations": 0,
    }  # fmt: skip
    told = {"demonstrations": 2}
    assert study[0].prompting(told)["demonstrations"] == 2
    assert replace(study[0], demonstrations=0).prompting(told)["demonstrations"] == 0


def test_an_older_study_says_in_its_recipe_how_many_demonstrations_it_shows(
    study: tuple[Recipe, Path], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(study[1], copy)
    about = json.loads((copy / "provenance.json").read_text())
    del about["prompting"]["demonstrations"]
    (copy / "provenance.json").write_text(json.dumps(about))
    shutil.rmtree(copy / "beside")
    run_beside(replace(study[0], n=1, reading=0), copy, ["base"])
    _, found = read_study(copy / "beside" / "base")
    assert found["prompting"]["demonstrations"] == 0
    assert found["prompting"]["layout"] == "context_first"


def test_only_so_many_examples_are_measured_as_the_recipe_says(study: tuple[Recipe, Path]) -> None:
    dataset, _ = read_study(study[1])
    read = np.isfinite(dataset["mass"].values).all(axis=(1, 2, 3, 4))
    assert read.tolist() == [True, True, False]
    controlled = np.isfinite(dataset["control_log_odds"].values).any(axis=1)
    assert controlled.tolist() == [True, False, False]
    assert not np.isfinite(dataset["patch_head"].values).any()
    assert np.isfinite(dataset["f1"].values).all()


def test_a_lost_chunk_of_a_measured_group_is_noticed(
    study: tuple[Recipe, Path], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(study[1], copy)
    assert missing_chunks(copy, 0) == missing_chunks(copy, 2) == []
    lost = OPTIONAL["reading"][0]
    (copy / ARRAYS / lost / "c" / "0").rename(tmp_path / "lost")
    assert missing_chunks(copy, 0) == [lost]


def test_the_runs_beside_a_study_answer_the_same_questions_in_the_same_prompts(
    study: tuple[Recipe, Path],
) -> None:
    runs = read_runs(study[1])
    assert [(run.name, run.seed) for run in runs] == [
        ("base", None), ("evaluator", 0), ("evaluator", 1),
    ]  # fmt: skip
    first = runs[0].dataset
    for run in runs:
        assert run.dataset["example"].values.tolist() == first["example"].values.tolist()
        fixed = {"rung": ["gold", "same_type"]}
        assert (run.dataset["candidate"].sel(fixed) == first["candidate"].sel(fixed)).all()
    odds = [run.dataset["log_odds"].sel(rung="gold").values for run in runs]
    assert not np.allclose(odds[0], odds[1]), "the adapter changes verdicts"
    _, base = read_study(study[1] / "beside" / "base")
    _, main = read_study(study[1])
    assert base["templates"] == main["templates"]
    assert base["adapter"] is None


def renamed(study: Path, place: Path, **recipes: dict[str, object]) -> Path:
    """A copy of a study whose adapters were trained otherwise, by the name of their run."""
    shutil.copytree(study, place)
    for name, changes in recipes.items():
        path = next(p for p in place.rglob("provenance.json") if _adapter(p) == name)
        about = json.loads(path.read_text())
        about["adapter"]["recipe"] |= changes
        path.write_text(json.dumps(about))
    return place


def _adapter(path: Path) -> str:
    return str((json.loads(path.read_text()).get("adapter") or {}).get("name", "")).replace(
        "-", "_"
    )


def test_only_trainings_alike_but_for_the_seed_are_taken_for_training_seeds(
    study: tuple[Recipe, Path], tmp_path: Path
) -> None:
    def names(**recipes: dict[str, object]) -> list[str]:
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        return [run.name for run in read_runs(renamed(study[1], place, **recipes))]

    assert names(judge_1={"rank": 4}) == ["base", "judge-0", "judge-1"]
    assert names(judge_1={"data": ["world:train/0/9"]}) == ["base", "judge-0", "judge-1"]
    assert names(judge_1={"seed": 0}) == ["base", "judge-0", "judge-1"], "no other seed"
    moved = {"judge_0": {"data": ["squad2:here/a.json"]}, "judge_1": {"data": ["squad2:a.json"]}}
    assert names(**moved) == ["base", "evaluator", "evaluator"], "the same data elsewhere"


def test_the_matrix_of_the_runs_averages_the_seeds(study: tuple[Recipe, Path]) -> None:
    table = matrix(read_runs(study[1]))
    row = table[(table["run"] == "evaluator") & (table["metric"] == "tpr")].iloc[0]
    assert row["seeds"] == 2
    assert row["seed_low"] <= row["value"] <= row["seed_high"]


def test_two_runs_must_not_share_a_name(study: tuple[Recipe, Path], tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "same").mkdir(parents=True)
    with pytest.raises(LabError, match="would both be called same"):
        run_beside(study[0], study[1], [str(tmp_path / name / "same") for name in "ab"])


def test_a_version_does_not_run_beside_itself(study: tuple[Recipe, Path]) -> None:
    recipe, folder = study
    before = sorted((folder / "beside").iterdir())
    with pytest.raises(LabError, match=r"The study itself is of .*judge-0"):
        run_beside(recipe, folder, [str(recipe.adapter)])
    with pytest.raises(LabError, match="The study itself is of base"):
        run_beside(replace(recipe, adapter=None), folder, ["base"])
    assert sorted((folder / "beside").iterdir()) == before


def test_counts_below_zero_are_refused() -> None:
    with pytest.raises(LabError, match="reading is -1"):
        Recipe("m", ("builtin",), reading=-1)


def test_the_judge_is_tried_out_of_its_scheme_on_the_same_questions(
    study: tuple[Recipe, Path], tmp_path: Path
) -> None:
    recipe = replace(study[0], schemes=2, reading=0, controls=0)
    run_study(recipe, tmp_path / "out")
    dataset, _ = read_study(tmp_path / "out")
    odds = dataset["scheme_log_odds"]
    assert np.isfinite(odds.drop_sel(scheme="true_false").values[:2]).all()
    assert np.isnan(odds.sel(scheme="true_false").values).all(), "these are its usual words"
    assert np.isnan(odds.values[2]).all(), "only so many as the recipe says"
    usual, ladder = odds.sel(scheme="usual", pair="right"), dataset["log_odds"].sel(rung="gold")
    np.testing.assert_allclose(usual.values[:2], ladder.values[:2], atol=1e-4)
    words = odds.sel(scheme="correct_incorrect").values[:2]
    assert not np.allclose(words, odds.sel(scheme="usual").values[:2])


def test_the_drop_out_of_scheme_is_paired(study: tuple[Recipe, Path], tmp_path: Path) -> None:
    dataset, _ = read_study(study[1])
    odds = dataset["scheme_log_odds"].copy()
    odds.loc[{"scheme": "usual"}] = [[2.0, -2.0]] * 3
    odds.loc[{"scheme": "plain"}] = [[-1.0, -2.0], [1.0, 2.0], [1.0, 2.0]]
    table = out_of_scheme([Run("both", dataset.assign(scheme_log_odds=odds))])
    plain = table[(table["scheme"] == "plain") & (table["metric"] == "balanced_accuracy")].iloc[0]
    assert plain["value"] == pytest.approx(0.5)
    assert plain["difference"] == pytest.approx(-0.5)
    auroc = table[(table["scheme"] == "plain") & (table["metric"] == "auroc")].iloc[0]
    # Of the nine pairs of a right (-1, 1, 1) and a wrong (-2, 2, 2) candidate three are in order.
    assert auroc["value"] == pytest.approx(3 / 9)
    assert auroc["n"] == 3
    assert "true_false" not in set(table["scheme"]), "what was not measured has no row"


def test_a_run_without_a_finished_example_is_left_out(
    study: tuple[Recipe, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(study[1], copy)
    done = zarr.open_group(copy / "beside" / "judge-1" / ARRAYS, mode="a")["done"]
    done[:] = False
    with caplog.at_level("INFO", logger="lab"):
        runs = read_runs(copy)
    assert [(run.name, run.seed) for run in runs] == [("base", None), ("evaluator", 0)]
    assert "judge-1 holds no finished example" in caplog.text
    zarr.open_group(copy / "beside" / "base" / ARRAYS, mode="a")["done"][:] = False
    assert read_runs(copy) == []


def test_a_run_that_is_not_finished_is_told(
    study: tuple[Recipe, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(study[1], tmp_path / "copy")
    (tmp_path / "copy" / "beside" / "judge-1" / ARRAYS / "done" / "c" / "2").unlink()
    read_runs(study[1])
    assert not caplog.records
    assert len(read_runs(tmp_path / "copy")) == 3
    assert "judge-1 holds 2 of 3 examples yet" in caplog.text


def test_all_versions_are_looked_for_before_one_is_run(
    study: tuple[Recipe, Path], tmp_path: Path
) -> None:
    recipe, folder = study
    before = sorted((folder / "beside").iterdir())
    fine = tmp_path / "fine"
    shutil.copytree(str(recipe.adapter), fine)
    with pytest.raises(LabError, match="There is no adapter 'typo'"):
        run_beside(recipe, folder, [str(fine), "typo"])
    assert sorted((folder / "beside").iterdir()) == before
