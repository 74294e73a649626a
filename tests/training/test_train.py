"""Training from a recipe to a folder: it learns, it repeats itself, and it goes on after a stop."""

from __future__ import annotations

import json
import math
import shutil
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_folders import question, write_questions
from tiny_training import Trained, prompter_of, recipe_of

from lab.engine.alone import alone
from lab.engine.loading import load_lens, outline
from lab.engine.packing import Branch
from lab.errors import LabError
from lab.training.checkpoint import trainable
from lab.training.learner import open_learner
from lab.training.recipe import TrainingRecipe
from lab.training.train import train_adapter

FILES = ("adapter_config.json", "adapter_model.safetensors")


def stored(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


class Stopped(Exception):
    """What a test stops a training with."""


def stop_at(last: int, how: type[BaseException] = Stopped) -> Callable[[int, int, str], None]:
    def tell(done: int, total: int, _: str) -> None:
        assert last < total
        if done == last:
            raise how

    return tell


@pytest.fixture
def saving_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints after every step."""
    monkeypatch.setattr("lab.training.train.CHECKPOINT_SECONDS", -1.0)


@pytest.fixture(scope="module")
def stopped_once(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the same training, stopped on its way; not to be changed."""
    folder = tmp_path_factory.mktemp("stopped") / "both"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stopped):
        patch.setattr("lab.training.train.CHECKPOINT_SECONDS", -1.0)
        train_adapter(trained.recipe, folder, progress=stop_at(6))
    return folder


@pytest.fixture
def stopped(stopped_once: Path, tmp_path: Path, saving_always: None) -> Path:
    """A copy of it, to go on from or to be damaged."""
    shutil.copytree(stopped_once, tmp_path / "both")
    return tmp_path / "both"


class TestLearning:
    def test_the_loss_falls_and_the_answers_become_likely(self, trained: Trained) -> None:
        losses, curve = trained.facts["losses"], trained.facts["curve"]
        assert sum(losses[-4:]) < 0.5 * sum(losses[:4])
        assert curve[-1]["answer_loss"] < 0.75 * curve[0]["answer_loss"]
        assert curve[-1]["label_mass"] > curve[0]["label_mass"] + 0.2

    def test_the_curves_begin_before_the_first_step_and_end_after_the_last(
        self, trained: Trained
    ) -> None:
        steps = [point["step"] for point in trained.facts["curve"]]
        assert steps[0] == 0
        assert steps[-1] == trained.facts["steps"] == len(trained.facts["losses"])
        assert steps == sorted(set(steps))
        assert len({point["questions"] for point in trained.facts["curve"]}) == 1

    def test_verdicts_can_be_left_for_later_steps(
        self, model: Path, questions: Path, tmp_path: Path
    ) -> None:
        def trained_with(role: str, share: float) -> dict[str, Any]:
            recipe = recipe_of(model, questions, role, epochs=2, dev_questions=0,
                               verdicts_from=share)  # fmt: skip
            return train_adapter(recipe, tmp_path / f"{role}-{share}")

        judge = trained_with("evaluator", 0.5)
        silent = judge["steps"] // 2
        assert not any(judge["losses"][:silent])
        assert all(judge["losses"][silent:])
        # Steps without a lesson leave the weights alone, and those of answers are the same.
        both, whole = trained_with("both", 0.5), trained_with("both", 0.0)
        answers = trained_with("generator", 0.5)
        assert both["losses"][0] < whole["losses"][0]
        assert answers["tokens"] < both["tokens"] < whole["tokens"]
        assert answers["adapter_sha256"] == trained_with("generator", 0.0)["adapter_sha256"]

    def test_nothing_warns_when_a_model_is_made_ready(self, trained: Trained) -> None:
        model = outline(str(trained.model))
        verdict = prompter_of(trained.recipe, model).verdict_tokens()
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            open_learner(trained.recipe, model, verdict)

    @pytest.mark.parametrize("share", [-0.1, 1.0, math.nan])
    def test_but_not_for_after_the_last(self, model: Path, questions: Path, share: float) -> None:
        with pytest.raises(LabError, match="verdicts_from"):
            recipe_of(model, questions, verdicts_from=share)

    def test_before_the_first_step_the_adapter_changes_nothing(
        self, trained: Trained, model: Path, questions: Path, tmp_path: Path
    ) -> None:
        facts = train_adapter(recipe_of(model, questions, learning_rate=1e-7), tmp_path)
        assert facts["curve"][0] == trained.facts["curve"][0]
        one = facts["curve"][-1]["answer_loss"]
        assert one == pytest.approx(facts["curve"][0]["answer_loss"], abs=1e-3)

    @pytest.mark.parametrize("role", ["generator", "evaluator", "verdict-only"])
    def test_every_role_can_be_trained(
        self, role: str, model: Path, questions: Path, trained: Trained, tmp_path: Path
    ) -> None:
        facts = train_adapter(recipe_of(model, questions, role), tmp_path)
        assert facts["steps"] == trained.facts["steps"]
        assert facts["questions"] == trained.facts["questions"]
        assert facts["lessons_sha256"] == trained.facts["lessons_sha256"]
        assert sum(facts["losses"][-4:]) < sum(facts["losses"][:4])
        before, after = facts["curve"][0], facts["curve"][-1]
        if role == "generator":
            assert after["answer_loss"] < 0.8 * before["answer_loss"]
        if role == "evaluator":
            assert after["label_mass"] > before["label_mass"] + 0.2

    def test_half_precision_learns_too(self, model: Path, questions: Path, tmp_path: Path) -> None:
        recipe = recipe_of(model, questions, precision="bfloat16")
        losses = train_adapter(recipe, tmp_path)["losses"]
        assert sum(losses[-4:]) < 0.6 * sum(losses[:4])


class TestRepeating:
    def test_the_same_seed_gives_the_same_bytes(self, trained: Trained, tmp_path: Path) -> None:
        facts = train_adapter(trained.recipe, tmp_path / "again")
        assert stored(tmp_path / "again") == stored(trained.folder)
        same = ("losses", "curve", "adapter_sha256", "lessons_sha256", "tokens")
        assert [facts[key] for key in same] == [trained.facts[key] for key in same]

    def test_another_seed_gives_another_adapter(self, trained: Trained, tmp_path: Path) -> None:
        facts = train_adapter(replace(trained.recipe, seed=1), tmp_path)
        assert facts["adapter_sha256"] != trained.facts["adapter_sha256"]

    def test_what_is_stored_does_not_depend_on_the_order_of_sets(self, trained: Trained) -> None:
        targets = json.loads((trained.folder / FILES[0]).read_text())["target_modules"]
        assert targets == sorted(targets)
        assert "q_proj" in targets
        assert "lm_head" not in targets

    def test_a_training_that_was_stopped_ends_with_the_bytes_of_an_unbroken_one(
        self, stopped: Path, trained: Trained
    ) -> None:
        told: list[int] = []
        facts = train_adapter(trained.recipe, stopped, progress=lambda done, *_: told.append(done))
        assert told[0] == 6  # its checkpoint was written after step 5
        assert stored(stopped) == stored(trained.folder)
        assert facts["losses"] == trained.facts["losses"]
        assert facts["curve"] == trained.facts["curve"]
        assert facts["tokens"] == trained.facts["tokens"]
        assert not list(stopped.glob("checkpoint*"))

    def test_ctrl_c_stores_the_last_whole_step(self, trained: Trained, tmp_path: Path) -> None:
        told: list[int] = []
        with pytest.raises(KeyboardInterrupt):
            train_adapter(trained.recipe, tmp_path, progress=stop_at(3, KeyboardInterrupt))
        train_adapter(trained.recipe, tmp_path, progress=lambda done, *_: told.append(done))
        assert told[0] == 4
        assert stored(tmp_path) == stored(trained.folder)

    def test_but_not_weights_that_are_half_changed(
        self, trained: Trained, stopped: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = {f.name: f.read_bytes() for f in (stopped / "checkpoint").iterdir()}

        def halfway(learner: Any, *_: object) -> None:
            for parameter in trainable(learner.model).values():
                parameter.data += 1
            raise KeyboardInterrupt

        monkeypatch.setattr("lab.training.train._update", halfway)
        with pytest.raises(KeyboardInterrupt):
            train_adapter(trained.recipe, stopped)
        assert {f.name: f.read_bytes() for f in (stopped / "checkpoint").iterdir()} == before

    def test_a_kill_between_two_checkpoints_keeps_the_older(
        self, stopped: Path, trained: Trained
    ) -> None:
        (stopped / "checkpoint").rename(stopped / "checkpoint.old")
        (stopped / "checkpoint.part").mkdir()
        train_adapter(trained.recipe, stopped)
        assert stored(stopped) == stored(trained.folder)

    def test_a_kill_while_the_adapter_is_written_loses_nothing(
        self, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def killed(*_: object) -> None:
            raise Stopped

        with monkeypatch.context() as patch:
            patch.setattr("lab.training.train.write_about", killed)
            with pytest.raises(Stopped):
                train_adapter(trained.recipe, tmp_path)
        told: list[int] = []
        train_adapter(trained.recipe, tmp_path, progress=lambda done, *_: told.append(done))
        assert told == []
        assert stored(tmp_path) == stored(trained.folder)


class TestFinished:
    def test_nothing_is_loaded_where_nothing_is_left(
        self, trained: Trained, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def unwanted(*_: object, **__: object) -> None:
            raise AssertionError("a model was looked for")

        monkeypatch.setattr("lab.training.train.outline", unwanted)
        before = {f: f.stat().st_mtime_ns for f in trained.folder.iterdir()}
        assert train_adapter(trained.recipe, trained.folder) == json.loads(
            (trained.folder / "rolelens.json").read_text()
        )
        assert {f: f.stat().st_mtime_ns for f in trained.folder.iterdir()} == before

    def test_the_folder_holds_what_peft_and_the_lab_need_and_nothing_else(
        self, trained: Trained
    ) -> None:
        assert sorted(f.name for f in trained.folder.iterdir()) == [
            "README.md", *FILES, "recipe.json", "rolelens.json",
        ]  # fmt: skip

    def test_no_path_of_the_base_model_is_stored_as_its_name(self, trained: Trained) -> None:
        config = json.loads((trained.folder / FILES[0]).read_text())
        assert config["base_model_name_or_path"] == "tiny-llama"

    def test_plain_peft_opens_it(self, trained: Trained) -> None:
        from peft import PeftModel
        from transformers import AutoModelForCausalLM

        ids = torch.tensor([[5, 17, 99, 3, 250, 42]])
        plain = AutoModelForCausalLM.from_pretrained(trained.model)
        with torch.no_grad():
            before = plain(ids).logits
            after = PeftModel.from_pretrained(plain, str(trained.folder))(ids).logits
        assert (before - after).abs().max() > 0.1
        mine = load_lens(str(trained.model), adapter=str(trained.folder))
        logits = torch.tensor(mine.run([Branch(tuple(ids[0].tolist()))])[0].logits[0])
        assert (after[0, -1] - logits).abs().max() < 1e-4


class TestRefusals:
    def test_a_folder_with_another_recipe_is_refused_with_what_differs(
        self, trained: Trained
    ) -> None:
        other = replace(trained.recipe, rank=2, seed=9)
        with pytest.raises(LabError, match=r"seed was 0, now 9; rank was 4, now 2\. Go on with"):
            train_adapter(other, trained.folder)

    def test_so_is_a_folder_that_holds_only_the_adapter(
        self, trained: Trained, tmp_path: Path
    ) -> None:
        shutil.copytree(trained.folder, tmp_path / "copy")
        (tmp_path / "copy" / "recipe.json").unlink()
        with pytest.raises(LabError, match="seed was 0, now 9"):
            train_adapter(replace(trained.recipe, seed=9), tmp_path / "copy")

    def test_a_folder_that_cannot_be_made_is_told(self, trained: Trained, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(LabError, match="cannot be written"):
            train_adapter(trained.recipe, tmp_path / "file" / "out")

    @pytest.mark.parametrize(
        ("field", "value", "told"),
        [
            ("n", "3", "n is '3': it must be a whole number"),
            ("rank", 2.5, "rank is 2.5: it must be a whole number"),
            ("seed", "x", "seed is 'x': it must be a whole number"),
            ("learning_rate", "0.1", "learning_rate is '0.1': it must be a number"),
            ("model", Path("tiny"), "model is .*: it must be a text"),
        ],
    )
    def test_a_field_of_a_wrong_kind_is_named(self, field: str, value: Any, told: str) -> None:
        with pytest.raises(LabError, match=told):
            TrainingRecipe(**{"role": "both", "data": "jsonl:q.jsonl", field: value})

    def test_one_source_need_not_stand_in_a_list(self) -> None:
        assert TrainingRecipe("both", "jsonl:q.jsonl").data == ("jsonl:q.jsonl",)

    @pytest.mark.parametrize("spec", ["builtin", "builtin:chain", "world:test/0/20"])
    def test_what_adapters_are_evaluated_on_is_not_learned(
        self, spec: str, trained: Trained, tmp_path: Path
    ) -> None:
        recipe = replace(trained.recipe, data=(*trained.recipe.data, spec))
        with pytest.raises(LabError, match=f"{spec} is there to evaluate adapters on"):
            train_adapter(recipe, tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_a_folder_in_which_nothing_was_trained_yet_is_begun_anew(
        self, trained: Trained, tmp_path: Path
    ) -> None:
        with pytest.raises(LabError, match=r"give more questions, or fewer dev_questions"):
            train_adapter(replace(trained.recipe, dev_questions=500), tmp_path)
        train_adapter(trained.recipe, tmp_path)
        assert stored(tmp_path) == stored(trained.folder)

    def test_a_folder_with_a_checkpoint_is_not(self, trained: Trained, stopped: Path) -> None:
        with pytest.raises(LabError, match=r"seed was 0, now 9\. Go on with"):
            train_adapter(replace(trained.recipe, seed=9), stopped)

    def test_nor_is_one_that_another_process_trains_into(
        self, trained: Trained, stopped: Path
    ) -> None:
        with alone(stopped), pytest.raises(LabError, match="Another process is running in"):
            train_adapter(trained.recipe, stopped)

    def test_the_same_files_named_otherwise_are_the_same_recipe(
        self, trained: Trained, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(trained.model.parent)
        near = replace(trained.recipe, model=f"./{trained.model.name}")
        assert train_adapter(near, trained.folder)["steps"] == trained.facts["steps"]

    @pytest.mark.parametrize("text", ["{", "[]"])
    def test_a_damaged_recipe_is_told(self, text: str, trained: Trained, tmp_path: Path) -> None:
        (tmp_path / "recipe.json").write_text(text)
        with pytest.raises(LabError, match=r"recipe\.json is damaged .* choose another --out"):
            train_adapter(trained.recipe, tmp_path)

    @pytest.mark.parametrize("how", ["cut", "lacking", "shape", "state", "empty state", "missing"])
    def test_a_damaged_checkpoint_is_told(self, how: str, stopped: Path, trained: Trained) -> None:
        tensors, state = (stopped / "checkpoint" / n for n in ("tensors.safetensors", "state.json"))
        held = load_file(tensors)
        first = next(name for name in held if name.startswith("weight/"))
        if how == "cut":
            tensors.write_bytes(tensors.read_bytes()[:-50])
        elif how == "lacking":
            save_file({k: v for k, v in held.items() if k != first}, tensors)
        elif how == "shape":
            save_file({**held, first: torch.zeros(3, 5)}, tensors)
        elif how == "state":
            state.write_text('{"step": ')
        elif how == "empty state":
            state.write_text("{}")
        else:
            state.unlink()
        with pytest.raises(LabError, match=r"is damaged .* Delete it to train from the start"):
            train_adapter(trained.recipe, stopped)

    def test_questions_that_changed_on_the_way_are_told(
        self, model: Path, tmp_path: Path, saving_always: None
    ) -> None:
        file = write_questions(tmp_path / "q.jsonl", [question(i) for i in range(6)])
        recipe = recipe_of(model, file)
        with pytest.raises(Stopped):
            train_adapter(recipe, tmp_path / "out", progress=stop_at(3))
        write_questions(file, [question(i) for i in range(1, 7)])
        with pytest.raises(LabError, match=r"the lessons changed: restore what was there"):
            train_adapter(recipe, tmp_path / "out")

    def test_so_are_other_weights(
        self, trained: Trained, stopped: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        state = stopped / "checkpoint" / "state.json"
        held: dict[str, Any] = json.loads(state.read_text())
        held["of"]["model"] = "0" * 64
        state.write_text(json.dumps(held))
        with pytest.raises(LabError, match="the model changed"):
            train_adapter(trained.recipe, stopped)
