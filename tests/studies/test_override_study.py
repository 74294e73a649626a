"""An override study: what it finds, what it tells, and that it can be stopped anywhere."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from override_study import PAIRS, PLANTED_CONTESTS, finished, planted, run_planted

from lab.data.conflicts import load_conflicts
from lab.engine.loading import load_lens
from lab.errors import LabError
from lab.instruments.conflicts import conflict_prompter
from lab.instruments.override.contests import CONTESTS, Outcome
from lab.roles.conflicts import closed_book_prompt, conflict_prompts, judge_prompts
from lab.studies.override.recipe import OverrideRecipe
from lab.studies.override.results import (
    CONTEST_TABLES,
    FOLDER,
    LATER,
    TABLES,
    OverrideResults,
    heads_of,
    heads_text,
    read_override,
)
from lab.studies.override.run import run_override
from lab.studies.override.steps import Progress
from lab.studies.override.store import OverrideStore
from lab.studies.override.told import Told, verdict_said
from lab.studies.store import RECIPE
from lab.views.override_report import render_override


class Killed(BaseException):
    """Stands for a process that ends without a chance to tidy up."""


def stored(folder: Path) -> dict[str, bytes]:
    """Every file of the override study but what tells the time."""
    root = folder / FOLDER
    files = (f for f in root.rglob("*") if f.is_file() and f.name != "provenance.json")
    return {str(f.relative_to(root)): f.read_bytes() for f in files}


@dataclass(frozen=True)
class Tiny:
    """A finished study of a tiny random model, which decides nothing."""

    recipe: OverrideRecipe
    folder: Path
    results: OverrideResults


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("tiny-override")
    recipe = OverrideRecipe(str(tiny_folder), n=5, random_sets=5)
    return Tiny(recipe, folder, run_override(recipe, folder, lens=load_lens(str(tiny_folder))))


@pytest.fixture(scope="session")
def whole() -> Path:
    """The folder of a finished study of a planted model (not to be changed)."""
    torch.set_num_threads(1)
    return finished()


@pytest.fixture(scope="session")
def results(whole: Path) -> OverrideResults:
    return read_override(whole)


def rows(table: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """The rows with these values."""
    for column, value in wanted.items():
        table = table[table[column] == value]
    return table


class TestPlanted:
    def test_exactly_the_planted_heads_are_found(self, results: OverrideResults) -> None:
        table = results.tables["contests"].set_index("contest")
        for contest in PLANTED_CONTESTS:
            row = table.loc[contest]
            assert row["state"] == "found"
            assert heads_of(row["heads"]) == planted().heads
            assert row["used"] == PAIRS == row["discovery"] + row["held_out"]
            assert row["gap_low"] > 5

    def test_a_contest_without_pairs_is_told_as_such(self, results: OverrideResults) -> None:
        row = results.tables["contests"].set_index("contest").loc["checked"]
        assert (row["state"], row["used"], row["heads"]) == ("too few", 0, "")
        assert "0 of 24 conflicts" in row["why"] and "at least 16" in row["why"]
        assert row["gap"] == pytest.approx(0.4)
        assert set(results.contests) == set(PLANTED_CONTESTS)

    def test_every_table_has_its_columns(self, results: OverrideResults) -> None:
        assert set(results.tables) == set(TABLES) - {"conflicts", "verdicts", "fallout"}
        for tables in results.contests.values():
            assert set(tables) == set(CONTEST_TABLES)
            for name, columns in CONTEST_TABLES.items():
                assert len(tables[name])
                more = set(tables[name].columns) - set(columns)
                assert all(column.removeprefix("p_").startswith("looks_") for column in more)
                assert not set(columns) - set(tables[name].columns)

    def test_ablation_flips_held_out_answers_and_random_sets_do_not(
        self, results: OverrideResults
    ) -> None:
        for tables in results.contests.values():
            main = rows(tables["proof"], set="run", how="zero", measure="to_other")
            assert (main["value"] == 1).all() and (main["n"] == PAIRS - 12).all()
            assert (main["random_high"] == 0).all()
            # Layers of four heads have few other sets, and none of them is counted twice.
            assert (main["random_sets"] < 20).all()
            assert main["p"].to_numpy() == pytest.approx(1 / (1 + main["random_sets"].to_numpy()))
            assert set(main["control"]) == {"layers", "attention"}

    def test_what_is_reported_is_not_what_was_chosen_on(self, results: OverrideResults) -> None:
        row = results.tables["contests"].set_index("contest").loc["instruction"]
        tables = results.contests["instruction"]
        assert row["discovery_clusters"] == 12
        for name in ("curve", "layers", "kinds"):
            assert (tables[name]["n"] <= row["held_out"]).all()
        heads = tables["heads"]
        assert len(heads) == 12 and heads["chosen"].sum() == 3
        assert not np.allclose(heads["a_into_b"], heads["held_a_into_b"])

    def test_routing_and_writing_are_told_apart(self, results: OverrideResults) -> None:
        p = planted()
        kinds = results.contests["instruction"]["kinds"].set_index(["layer", "head"])["kind"]
        assert kinds[p.router] == "routing"
        assert kinds[p.copier] == kinds[p.memory] == "writing"

    def test_nothing_happens_elsewhere(self, results: OverrideResults) -> None:
        for tables in results.contests.values():
            assert (rows(tables["elsewhere"], measure="changed")["value"] == 0).all()
            assert set(tables["elsewhere"]["prompts"]) == {"questions", "clozes"}
            assert abs(tables["text"]["value"]).max() < 0.05

    def test_both_halves_find_the_same_and_contests_share_it(
        self, results: OverrideResults
    ) -> None:
        splits = results.contests["candidate"]["splits"]
        assert list(splits["split"]) == ["discovery", "held_out"]
        crossing = results.tables["crossing"].iloc[0]
        assert (crossing["first"], crossing["second"]) == ("instruction", "candidate")
        assert crossing["jaccard"] == 1 > crossing["expected"]
        across = rows(results.tables["across"], heads_of="candidate", pairs_of="instruction")
        own = across[(across["set"] == across["run"]) & (across["measure"] == "to_other")]
        assert (own["value"] > 0.8).all() and len(own) == 2

    def test_restored_has_a_measure_that_a_constant_shift_cannot_move(
        self, results: OverrideResults
    ) -> None:
        table = results.tables["restored"]
        assert set(table["measure"]) == {"balanced_accuracy", "auroc", "log_odds"}
        wide = table.pivot(index="measure", columns="moment", values="value")
        assert wide["difference"].to_numpy() == pytest.approx(
            (wide["after"] - wide["before"]).to_numpy(), abs=1e-5
        )
        assert (rows(table, moment="after")["random_sets"] < 20).all()


class TestTold:
    def told(self, right: int, wrong: int, gap: float = 4.0) -> Told:
        """Conflicts of which some are decided as asked, and some the other way round."""
        outcomes = (
            *(Outcome((gap / 2, -gap / 2), ()) for _ in range(right)),
            *(Outcome((-gap / 2, gap / 2), ("run a gives the other answer",))
              for _ in range(wrong)),
        )  # fmt: skip
        clusters = tuple(f"subject{i}" for i in range(right + wrong))
        usable = tuple(range(right))
        return Told(
            CONTESTS["passage"], outcomes, clusters, usable, usable, OverrideRecipe("m", pairs=50)
        )

    def test_pairs_that_chance_decides_are_not_searched(self) -> None:
        """As many are decided the other way round, so the model does not tell the runs apart."""
        told = self.told(30, 30)
        assert not told.enough
        row = told.row(None, None)
        assert row["state"] == "no gap" and row["gap_low"] < 0 < row["gap_high"]
        assert row["why"] == told.sentence()
        assert "Over all 60 conflicts the two runs do not differ for sure (0.00 [" in row["why"]
        assert "the 30 pairs that are decided as asked may be chance" in row["why"]

    def test_pairs_of_a_model_that_tells_the_runs_apart_are(self) -> None:
        assert self.told(30, 8).enough and "30 are used" in self.told(30, 8).sentence()

    def test_too_few_are_told_first(self) -> None:
        assert self.told(15, 15).row(None, None)["state"] == "too few"
        assert "at least 16" in self.told(15, 15).sentence()


class TestEarlierVersions:
    def test_tables_without_later_columns_are_read(self, whole: Path, tmp_path: Path) -> None:
        shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
        for name, columns in LATER.items():
            path = tmp_path / FOLDER / "instruction" / f"{name}.csv"
            pd.read_csv(path).drop(columns=list(columns)).to_csv(path, index=False)
        found = read_override(tmp_path)
        for name, columns in LATER.items():
            assert found.contests["instruction"][name][list(columns)].isna().all(axis=None)
        words = render_override(found)
        assert "too few held-out subjects" not in words and "to find a lone head" not in words


class TestStopped:
    def test_killed_again_and_again_it_ends_with_the_same_bytes(
        self, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        plain, left = OverrideStore._write, 0

        def write(self: OverrideStore, name: str, data: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            plain(self, name, data)

        monkeypatch.setattr(OverrideStore, "_write", write)
        kills = 0
        # Where it is killed is no multiple of anything, so that it hits patches, searches, tables
        # between the two of one step, and what stands beside other contests.
        for left in (1, 11, 14, 18, 1, 1, 2, 3, 5, 2, 7, 4, 9, 1, 2, 1000):  # noqa: B007
            try:
                run_planted(tmp_path)
                break
            except Killed:
                kills += 1
                torn = tmp_path / FOLDER / "instruction" / ".x.partial"
                torn.parent.mkdir(exist_ok=True)
                torn.write_bytes(b"half")
        assert kills >= 12
        assert stored(tmp_path) == stored(whole)

    def test_what_is_finished_is_neither_run_nor_written_again(self, whole: Path) -> None:
        def unwanted() -> Any:
            raise AssertionError("the model was asked for")

        before = {f: f.stat().st_mtime_ns for f in (whole / FOLDER).rglob("*")}
        run_planted(whole, model=unwanted)
        assert before == {f: f.stat().st_mtime_ns for f in (whole / FOLDER).rglob("*")}

    def test_a_lost_table_is_made_again_alone(self, whole: Path, tmp_path: Path) -> None:
        shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
        (tmp_path / FOLDER / "candidate" / "kinds.csv").unlink()
        told: list[str] = []

        @contextmanager
        def show(unit: str) -> Iterator[Progress]:
            assert unit == "part"
            yield lambda done, total, what: told.append(what)

        run_planted(tmp_path, show)
        assert stored(tmp_path) == stored(whole)
        assert "candidate: telling routing from writing" in told and told[-1] == ""

    def test_a_half_finished_study_can_be_read(self, whole: Path, tmp_path: Path) -> None:
        shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
        for name in ("contests.csv", "candidate/proof.csv"):
            (tmp_path / FOLDER / name).unlink()
        found = read_override(tmp_path)
        assert "contests" not in found.tables and "crossing" in found.tables
        assert "proof" not in found.contests["candidate"]
        assert found.recipe["pairs"] == PAIRS


class TestConflicts:
    def test_a_model_that_decides_nothing_gets_no_heads_and_no_error(self, tiny: Tiny) -> None:
        contests = tiny.results.tables["contests"]
        assert list(contests["contest"]) == ["instruction", "passage", "candidate", "checked"]
        assert (contests["state"] == "too few").all()
        assert (contests["conflicts"] == 5).all()
        assert contests["gap"].notna().all() and not tiny.results.contests
        fallout = tiny.results.tables["fallout"]
        lost = fallout.groupby("contest")["conflicts"].sum()
        usable = contests.set_index("contest")["usable"]
        assert all(lost.get(name, 0) + usable[name] == 5 for name in usable.index)

    def test_the_tables_over_all_conflicts(self, tiny: Tiny) -> None:
        table = tiny.results.tables["conflicts"]
        assert len(table) == 4 * 4 + 2
        cell = rows(table, instruction="passage", passage="original")
        shares = cell[cell["quantity"] != "margin"]["value"]
        assert shares.sum() == pytest.approx(1, abs=1e-5)
        verdicts = tiny.results.tables["verdicts"]
        assert set(verdicts["quantity"]) == {"log_odds", "accepts", "balanced_accuracy", "auroc"}
        assert tiny.results.tables["crossing"].empty

    def test_how_it_was_made_is_told(self, tiny: Tiny) -> None:
        made = tiny.results.provenance
        assert made["finished"] and made["model"]["n_layers"] == 4
        assert made["command"].startswith("lab override --out") and "--n 5" in made["command"]
        assert set(made["contests"]) == {"instruction", "passage", "candidate", "checked"}

    def test_the_prompts_are_kept_as_they_are_asked(self, tiny: Tiny) -> None:
        kept = tiny.results.provenance["templates"]
        prompter = conflict_prompter(load_lens(tiny.recipe.model))
        conflict = load_conflicts("builtin")[0]
        fields = {"{passage}": conflict.original, "{question}": conflict.question,
                  "{candidate}": conflict.memory, "{cloze}": conflict.cloze}  # fmt: skip

        def filled(name: str) -> str:
            text = str(kept[name])
            for field, words in fields.items():
                text = text.replace(field, words)
            return text

        told = conflict_prompts(prompter, conflict, begun=True)
        assert filled("answering, told to follow the passage") == told["passage", "original"].text
        memory = filled("answering, told to answer from own knowledge")
        assert memory == told["memory", "original"].text
        judged = judge_prompts(prompter, conflict)["original", "memory"].text
        assert filled("judging") == judged
        assert filled("without a passage") == closed_book_prompt(prompter, conflict).text
        assert len(kept) == 5 and "{filler}" not in "".join(kept.values())

    def test_a_second_run_loads_no_weights(
        self, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def unwanted(*_: object, **__: object) -> None:
            raise AssertionError("weights were loaded")

        monkeypatch.setattr("lab.engine.loading.open_lens", unwanted)
        before = stored(tiny.folder)
        run_override(tiny.recipe, tiny.folder)
        assert stored(tiny.folder) == before

    def test_killed_while_conflicts_are_asked_it_ends_the_same(
        self, tiny: Tiny, tmp_path: Path
    ) -> None:
        shutil.copytree(tiny.folder, tmp_path, dirs_exist_ok=True)
        for name in ("measured/00003.json", "conflicts.csv", "verdicts.csv", "contests.csv"):
            (tmp_path / FOLDER / name).unlink()
        run_override(tiny.recipe, tmp_path)
        assert stored(tmp_path) == stored(tiny.folder)


class TestRefusals:
    def test_another_recipe_is_named(self, tiny: Tiny) -> None:
        with pytest.raises(LabError, match="seed was 0, now 1"):
            run_override(replace(tiny.recipe, seed=1), tiny.folder)

    def test_a_missing_recipe_is_told(self, whole: Path, tmp_path: Path) -> None:
        shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
        (tmp_path / FOLDER / RECIPE).unlink()
        with pytest.raises(LabError, match=r"its recipe\.json is missing"):
            run_planted(tmp_path)

    def test_a_damaged_file_is_named(self, whole: Path, tmp_path: Path) -> None:
        shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
        (tmp_path / FOLDER / "instruction" / "patches" / "0003.npz").write_bytes(b"PK\x03\x04no")
        with pytest.raises(LabError, match=r"0003\.npz cannot be read"):
            run_planted(tmp_path)
        (tmp_path / FOLDER / "instruction" / "proof.csv").write_text("run,set\na,run\n")
        with pytest.raises(LabError, match=r"proof\.csv lacks the column 'heads'"):
            read_override(tmp_path)

    def test_a_full_disk_is_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "replace", full)
        with pytest.raises(LabError, match="No space left on device"):
            run_planted(tmp_path)
        assert not list((tmp_path / FOLDER).glob("*.partial"))

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"data": ()}, "at least one source"),
            ({"n": 0}, "n is 0"),
            ({"pairs": 8}, "at least 16"),
            ({"least_pairs": 2}, "at least 4"),
            ({"random_sets": 0}, "at least 1"),
        ],
    )
    def test_a_bad_recipe_says_what_is_wrong(self, options: dict[str, Any], why: str) -> None:
        with pytest.raises(LabError, match=why):
            OverrideRecipe("any", **options)

    def test_no_study_there(self, tmp_path: Path) -> None:
        with pytest.raises(LabError, match="holds no override study"):
            read_override(tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [("Yes, it is.", "accept"), ("no", "reject"), ("Not so", "other"), ("", "other")],
)
def test_a_verdict_is_a_word_of_its_own(text: str, says: str) -> None:
    assert verdict_said(text, ("Yes", "No")) == says


def test_heads_are_written_and_read_as_words() -> None:
    heads = ((3, 1), (12, 10))
    assert heads_text(heads) == "L3H1 L12H10"
    assert heads_of("L3H1 L12H10") == heads
