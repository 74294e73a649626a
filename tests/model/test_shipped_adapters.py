"""The adapters that come with the package: whole, small, described, and exactly merged."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest
import torch

import lab
from lab.data import score
from lab.engine.adapters import ABOUT, SHIPPED, adapter_hash, find_adapter
from lab.engine.loading import open_model, outline
from lab.engine.weights import DEFAULT, PACKAGED
from lab.errors import LabError
from lab.training.card import CARD

ADAPTERS = Path(str(files("lab") / "adapters"))
MOST_BYTES = 6_000_000


def about(name: str) -> dict:
    return json.loads((ADAPTERS / name / ABOUT).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", SHIPPED)
class TestAsShipped:
    def test_it_is_whole_small_and_says_how_it_was_made(self, name: str) -> None:
        folder = ADAPTERS / name
        assert (folder / "adapter_model.safetensors").stat().st_size < MOST_BYTES
        facts = about(name)
        assert facts["recipe"]["role"] == name
        assert facts["adapter_sha256"] == adapter_hash(folder)
        assert facts["model"]["sha256"] == PACKAGED[DEFAULT].sha256
        assert facts["curve"][-1]["step"] == facts["steps"]

    def test_its_card_names_data_licences_and_what_must_not_be_evaluated_on(
        self, name: str
    ) -> None:
        card = (ADAPTERS / name / CARD).read_text(encoding="utf-8")
        assert "CC BY-SA 4.0" in card
        for source in about(name)["data"]:
            for article in source["articles"]:
                assert article in card
        assert f"lab train-adapter --role {name}" in card

    def test_it_tells_no_path_of_the_machine_it_was_made_on(self, name: str) -> None:
        for file in (ADAPTERS / name).glob("*"):
            if file.suffix != ".safetensors":
                text = file.read_text(encoding="utf-8")
                assert "/home/" not in text and "/root/" not in text and "/tmp/" not in text

    def test_it_is_found_by_its_name(self, name: str) -> None:
        found = find_adapter(name, DEFAULT)
        assert found.name == name
        assert found.prompting["layout"] == about(name)["recipe"]["layout"]


def test_all_learned_from_the_same_questions_in_as_many_steps() -> None:
    facts = [about(name) for name in SHIPPED]
    for key in ("lessons_sha256", "steps", "questions"):
        assert len({one[key] for one in facts}) == 1, key
    recipes = [{**one["recipe"], "role": ""} for one in facts]
    assert all(recipe == recipes[0] for recipe in recipes)


@pytest.mark.model
class TestOnTheDefaultModel:
    @pytest.fixture(scope="class")
    def lens(self) -> lab.Lens:
        try:
            return lab.load_lens(adapter="both")
        except LabError as error:
            pytest.skip(f"the default model cannot be had: {error}")

    def test_merged_weights_equal_peft_s_own_forward(self, lens: lab.Lens) -> None:
        from peft import PeftModel

        plain = open_model(outline(DEFAULT), attention="sdpa")
        wrapped = PeftModel.from_pretrained(plain, str(ADAPTERS / "both")).eval()
        example = lab.load_examples("builtin:extract")[0]
        assert dict(lens.prompting) == lens.adapter.prompting  # not those of the model alone
        prompter = lab.Prompter(lens.tokenizer, **lens.prompting)
        for prompt in (
            prompter.render(example, "generator"),
            prompter.render(example, "evaluator", example.gold),
        ):
            with torch.no_grad():
                theirs = wrapped(torch.tensor([prompt.token_ids])).logits[0, -1]
            ours = lens.run([lab.Branch(prompt.token_ids)])[0].logits[0]
            gap = (torch.tensor(ours) - theirs).abs().max() / theirs.abs().max()
            assert gap < 1e-4

    def test_it_answers_questions_that_the_base_cannot(self, lens: lab.Lens) -> None:
        examples = lab.load_examples("builtin:extract", n=8, answerable=True)
        right = 0
        for example in examples:
            case = lab.open_case(lens, example)
            right += score(example, lab.answer(lens, case.prompt("generator"))).f1 >= 0.5
        assert right >= 2, "the base answers none of the built-in questions"
