"""The model card: what it says, and that it can be written from the folder alone."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny_training import Trained

from lab.engine.weights import DEFAULT, PACKAGED
from lab.errors import LabError
from lab.training.card import CARD, RESULTS, write_card
from lab.training.recipe import TrainingRecipe


@pytest.fixture
def folder(trained: Trained, tmp_path: Path) -> Path:
    """A copy of a trained folder that holds nothing but what the card is written from."""
    (tmp_path / "both").mkdir()
    shutil.copy(trained.folder / "rolelens.json", tmp_path / "both")
    return tmp_path / "both"


def changed(folder: Path, **changes: Any) -> str:
    """The card after changes of what is known."""
    path = folder / "rolelens.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return card(folder)


def card(folder: Path) -> str:
    return " ".join(write_card(folder).read_text().split())


def as_default(folder: Path, *specs: str, articles: tuple[str, ...] = ()) -> str:
    """The card of an adapter for the default model, trained on these sources."""
    about = json.loads((folder / "rolelens.json").read_text())
    recipe = {**about["recipe"], "model": DEFAULT, "data": list(specs)}
    data = [
        {"spec": spec, "licence": licence, "questions": 7, "articles": list(articles[:with_them])}
        for spec, licence, with_them in zip(
            specs, ("CC BY-SA 4.0", "made by this project"), (9, 0), strict=False
        )
    ]
    model = {"title": PACKAGED[DEFAULT].title, "sha256": PACKAGED[DEFAULT].sha256}
    return changed(folder, recipe=recipe, data=data, model=model)


def test_training_writes_the_card_that_the_folder_gives(trained: Trained, folder: Path) -> None:
    write_card(folder)
    assert (folder / CARD).read_text() == (trained.folder / CARD).read_text()


def test_a_lost_card_is_written_again(trained: Trained, tmp_path: Path) -> None:
    from lab.training.train import train_adapter

    shutil.copytree(trained.folder, tmp_path / "both")
    (tmp_path / "both" / CARD).unlink()
    train_adapter(trained.recipe, tmp_path / "both")
    assert (tmp_path / "both" / CARD).read_text() == (trained.folder / CARD).read_text()


def test_it_says_how_the_adapter_was_made(trained: Trained, folder: Path) -> None:
    text, facts = card(folder), trained.facts
    for value in (
        "tiny-llama, trained as both", facts["model"]["sha256"], facts["adapter_sha256"],
        facts["lessons_sha256"], f"| steps | {facts['steps']} |", f"| threads | {facts['threads']}",
        f"| minutes | {facts['minutes']} |", "| seed | 0 |", "| rank | 4 |",
        "| learning rate | 0.02 |", "| verdict words | Yes, No |", "| peft | ",
        "`jsonl:harbours.jsonl` | the user's own | 11 |",
        f"On {facts['curve'][-1]['questions']} questions kept out",
        facts["prompts"]["generator"].split("\n")[1],
    ):  # fmt: skip
        assert value in text, value


def test_no_folder_of_the_machine_is_shown_but_in_the_command(folder: Path) -> None:
    text = write_card(folder).read_text()
    with_path = [line for line in text.splitlines() if str(folder.parent.parent) in line]
    assert all("lab train-adapter" in line for line in with_path)


def test_the_command_gives_the_very_recipe(trained: Trained, folder: Path) -> None:
    [line] = [x for x in write_card(folder).read_text().splitlines() if "lab train-adapter" in x]
    threads, *command = shlex.split(line)
    assert threads == f"OMP_NUM_THREADS={trained.facts['threads']}"
    from typer.testing import CliRunner

    from lab.cli import app

    taken: list[TrainingRecipe] = []

    def take(recipe: TrainingRecipe, *_: object, **__: object) -> None:
        taken.append(recipe)
        raise LabError("enough")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lab.cli.train.train_adapter", take)
        assert CliRunner().invoke(app, command[1:]).exit_code == 1
    assert taken == [trained.recipe]


def test_the_curves_are_a_table_with_a_row_for_every_point(trained: Trained, folder: Path) -> None:
    lines = write_card(folder).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| step | exact"))
    rows = lines[start + 2 : start + 2 + len(trained.facts["curve"])]
    assert [row.split("|")[1].strip() for row in rows] == [
        str(point["step"]) for point in trained.facts["curve"]
    ]
    assert {line.count("|") for line in lines[start : start + 2 + len(rows)]} == {9}


def test_without_held_out_questions_there_are_no_curves(folder: Path) -> None:
    point = {"step": 0, "questions": 0, "answers_exact": None, "answer_loss": None, "auroc": None,
             "right_above_wrong": None, "accepted_right": None, "accepted_wrong": None,
             "label_mass": None}  # fmt: skip
    text = changed(folder, curve=[point])
    assert "No question was kept out of training, so there are no curves." in text


class TestDefaultModel:
    SPECS = ("squad2:/home/me/dev-v2.0.json#Huguenot,Islamism", "world:train/0/800")

    def test_names_the_public_model_its_licence_and_that_it_was_quantised(
        self, folder: Path
    ) -> None:
        text = as_default(folder, *self.SPECS)
        assert "SmolLM2-135M-Instruct, trained as both" in text
        assert "under Apache-2.0" in text
        assert "SmolLM2-135M-Instruct.Q4_1.gguf" in text
        assert PACKAGED[DEFAULT].sha256 in text
        assert 'from_pretrained("HuggingFaceTB/SmolLM2-135M-Instruct")' in text
        assert "lab run --adapter both --data" in text

    def test_has_the_front_matter_of_peft_s_cards(self, folder: Path) -> None:
        as_default(folder, *self.SPECS)
        front = yaml.safe_load((folder / CARD).read_text().split("---\n")[1])
        assert front == {
            "base_model": "HuggingFaceTB/SmolLM2-135M-Instruct",
            "library_name": "peft",
            "license": "apache-2.0",
        }

    def test_names_the_licence_of_the_text_and_what_is_never_to_be_evaluated_on(
        self, folder: Path
    ) -> None:
        text = as_default(folder, *self.SPECS, articles=("Huguenot", "Islamism"))
        assert "Text under CC BY-SA 4.0 was trained on." in text
        assert "`squad2:dev-v2.0.json#Huguenot,Islamism` | CC BY-SA 4.0 | 7" in text
        never = text.partition("## Never use for evaluation")[2].partition("## Training")[0]
        assert "any question on these articles of `squad2`: Huguenot, Islamism" in never
        assert "any `world:train/...`" in never
        assert "`world:test/...` shares none" in never

    def test_says_nothing_of_cc_by_sa_where_no_such_text_was_read(self, folder: Path) -> None:
        assert "BY-SA" not in card(folder)


TABLE = {"title": "Balanced accuracy", "columns": ["adapter", "n", "value"],
         "rows": [["base", 96, 0.51234], ["both | more", 96, None]]}  # fmt: skip


class TestResults:
    def test_are_left_out_where_there_are_none(self, folder: Path) -> None:
        assert "## Results" not in write_card(folder).read_text()

    def test_are_tables(self, folder: Path) -> None:
        (folder / RESULTS).write_text(json.dumps([TABLE, {**TABLE, "title": "Other"}]))
        lines = write_card(folder).read_text().splitlines()
        start = lines.index("### Balanced accuracy")
        assert lines[start + 2 : start + 6] == [
            "| adapter | n | value |", "| --- | --- | --- |", "| base | 96 | 0.512 |",
            "| both \\| more | 96 | - |",
        ]  # fmt: skip
        assert "### Other" in lines

    def test_have_their_note_below_them(self, folder: Path) -> None:
        noted = {**TABLE, "note": "\u2020: says nothing here."}
        (folder / RESULTS).write_text(json.dumps([noted, {**TABLE, "title": "Other"}]))
        text = write_card(folder).read_text()
        assert "| both \\| more | 96 | - |\n\n\u2020: says nothing here.\n\n### Other" in text

    @pytest.mark.parametrize(
        "text", ["{", "{}", "[3]", '[{"title": "x"}]',
                 '[{"title": "x", "columns": ["a"], "rows": [[1, 2]]}]'],
    )  # fmt: skip
    def test_that_are_damaged_are_told(self, folder: Path, text: str) -> None:
        (folder / RESULTS).write_text(text)
        with pytest.raises(LabError, match=r"results\.json"):
            write_card(folder)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"recipe": {"role": "both"}}'])
def test_a_damaged_or_unfinished_folder_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "rolelens.json").write_text(text)
    with pytest.raises(LabError):
        write_card(tmp_path)
    assert not (tmp_path / CARD).exists()


def test_a_folder_without_an_adapter_is_told(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="needs the folder of a finished adapter"):
        write_card(tmp_path)
