"""``lab train-adapter``: from a tiny file of questions to a run with the adapter."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from tiny_folders import question, save_tiny, write_questions
from typer.testing import CliRunner, Result

from lab.cli import app
from lab.cli.progress import show_progress
from lab.cli.shared import STOPPED_TRAINING
from lab.cli.train import in_words
from lab.studies.store import PROVENANCE, read_json
from lab.training.recipe import TRAINED_ROLES, TrainingRecipe


def lab(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def plain(text: str) -> str:
    """Text with its line breaks and runs of spaces as single spaces."""
    return " ".join(text.split())


@dataclass(frozen=True)
class Told:
    """A finished ``lab train-adapter``."""

    model: Path
    questions: Path
    out: Path
    result: Result

    def arguments(self, out: Path) -> list[object]:
        return [
            "train-adapter", "--role", "both", "--data", f"jsonl:{self.questions}", "--model",
            self.model, "--out", out, "--rank", 4, "--learning-rate", 0.02, "--epochs", 2,
            "--dev-questions", 3, "--precision", "float32", "--verdict-words", "True, False",
        ]  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    root = tmp_path_factory.mktemp("train")
    model = save_tiny(root / "tiny-llama", window=2048)
    file = write_questions(root / "harbours.jsonl", [question(i) for i in range(10)])
    made = Told(model, file, root / "adapter", Result)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROLELENS_CACHE", str(root / "cache"))
        result = lab(*made.arguments(made.out))
    return Told(model, file, made.out, result)


def test_says_how_far_it_came_where_it_is_and_how_it_is_used(told: Told) -> None:
    assert told.result.exit_code == 0, told.result.output
    about = read_json(told.out / "rolelens.json")
    out, err = plain(told.result.stdout), plain(told.result.stderr)
    assert f"Trained for {about['steps']} steps on {about['questions']} questions." in out
    assert f"On {about['dev_questions']} questions kept out of it:" in out
    assert out.endswith(
        f"Stored in {told.out}. Next: lab run --adapter {told.out} --model {told.model} "
        "--out FOLDER"
    )
    assert f"{about['steps']} of {about['steps']} steps." in err
    assert f"{about['questions']} questions to learn from" in err
    assert (told.out / "README.md").exists()


def test_options_become_the_recipe_and_the_rest_is_as_usual_there(told: Told) -> None:
    given = read_json(told.out / "recipe.json")
    usual = TrainingRecipe("both", tuple(given["data"])).as_dict()
    assert {key: value for key, value in given.items() if value != usual[key]} == {
        "model": str(told.model), "rank": 4, "learning_rate": 0.02, "epochs": 2,
        "dev_questions": 3, "precision": "float32", "verdict_words": ["True", "False"],
    }  # fmt: skip


def test_a_run_uses_the_adapter_and_its_prompts(told: Told, tmp_path: Path) -> None:
    result = lab(
        "run", "--adapter", told.out, "--model", told.model, "--data", f"jsonl:{told.questions}",
        "--n", 1, "--patching", 0, "--reading", 0, "--controls", 0, "--out", tmp_path / "run",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = read_json(tmp_path / "run" / PROVENANCE)
    assert found["adapter"]["sha256"] == read_json(told.out / "rolelens.json")["adapter_sha256"]
    assert found["prompting"] == {
        "layout": "context_first", "format": "auto", "verdict_words": ["True", "False"],
        "demonstrations": 0,
    }  # fmt: skip
    assert "tiny-llama + adapter" in plain(result.output)


def test_a_second_call_has_nothing_to_do(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(*_: object, **__: object) -> None:
        raise AssertionError("a model was looked for")

    monkeypatch.setattr("lab.training.train.outline", unwanted)
    result = lab(*told.arguments(told.out))
    assert result.exit_code == 0, result.output
    assert "nothing is left to train" in result.stderr
    assert plain(result.stdout) == plain(told.result.stdout)


def test_ctrl_c_is_told_in_one_sentence_and_the_same_command_goes_on(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lab.training import train

    monkeypatch.setenv("ROLELENS_CACHE", str(tmp_path / "cache"))
    gradients, count = train._gradients, 0

    def interrupted(*arguments: object) -> tuple[float, int]:
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        return gradients(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(train, "_gradients", interrupted)
        result = lab(*told.arguments(tmp_path / "out"))
    assert result.exit_code == 130
    assert "Traceback" not in result.output
    [line] = [x for x in result.stderr.splitlines() if "stopped" in x]
    assert line == f"lab: {STOPPED_TRAINING}"
    again = lab(*told.arguments(tmp_path / "out"))
    assert "Going on after step 3 of" in again.stderr
    name = "adapter_model.safetensors"
    assert (tmp_path / "out" / name).read_bytes() == (told.out / name).read_bytes()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["--seed", 3], "seed was 0, now 3"),
        (["--rank", 0], "rank is 0: it must be at least 1"),
        (["--verdict-words", "Yes"], "two different words"),
        (["--data", "nonsense"], "now ['jsonl:"),
        (["--data", "builtin"], "builtin is there to evaluate adapters on"),
        (["--data", "world:test/0/9"], "world:test/0/9 is there to evaluate adapters on"),
        (["--role", "judge"], "'generator'"),
        (["--role", "evaluator"], "role was 'both', now 'evaluator'"),
    ],
)
def test_what_cannot_be_done_is_told_without_a_traceback(
    told: Told, changes: list[object], sentence: str
) -> None:
    result = lab(*told.arguments(told.out), *changes)
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit), result.exception
    assert sentence in plain(result.stderr)
    assert "Traceback" not in result.output


def test_help_tells_the_defaults_of_the_recipe() -> None:
    result = lab("train-adapter", "--help")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    options = re.split(r"\n  (?=-)", result.stdout)
    texts = {re.search(r"--([\w-]+)", option)[1]: plain(option) for option in options[1:]}  # type: ignore[index]
    usual = TrainingRecipe("both", ("builtin",))
    for field in fields(TrainingRecipe):
        text, value = texts[field.name.replace("_", "-")], getattr(usual, field.name)
        if field.name in ("role", "data"):
            assert text.endswith("[required]")
        elif value is None:
            assert "default" not in text
        else:
            shown = ",".join(value) if isinstance(value, tuple) else value
            assert text.endswith(f"[default: {shown}]"), text
    for role in TRAINED_ROLES:
        assert role in texts["role"]


def test_progress_counts_in_its_unit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 10_000, 20))
    monkeypatch.setattr("lab.cli.progress.time.monotonic", lambda: float(next(clock)))
    with show_progress("step") as tell:
        for done in range(1, 11):
            tell(done, 10, "loss 0.5")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "lab: 3 of 10 steps, about 2 min left."
    assert lines[-1] == "lab: 10 of 10 steps."


def test_the_end_in_words() -> None:
    point = {"step": 9, "questions": 35, "answers_exact": 0.257, "answer_loss": 1.0, "auroc": 0.598,
             "right_above_wrong": 0.571, "accepted_right": 0.486, "accepted_wrong": 0.4,
             "label_mass": 1.0}  # fmt: skip
    facts = {"steps": 9, "questions": 100, "curve": [{**point, "answers_exact": 0.0}, point]}
    assert in_words(facts) == (
        "Trained for 9 steps on 100 questions. On 35 questions kept out of it: 26 % of the answers "
        "are the gold answer to the letter; the right candidate ranks above the hardest wrong one "
        "for 57 % (AUROC 0.60); 49 % of the right and 40 % of the wrong candidates are accepted. "
        "These are points of a learning curve, without intervals; a run has them."
    )
    none = json.loads(json.dumps({**facts, "curve": [{**point, "questions": 0}]}))
    assert in_words(none).endswith(
        "None was kept out of training, so there are no learning curves."
    )
