"""Adapters merged into a model: the same function as peft's, and all that can be wrong with one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import tiny_model
from tiny_folders import save_tiny
from tiny_training import Trained

from lab.engine.adapters import SHIPPED, adapter_hash, find_adapter
from lab.engine.loading import load_lens, open_model, outline
from lab.engine.packing import Branch
from lab.engine.weights import DEFAULT
from lab.errors import LabError

IDS = (5, 17, 99, 3, 250, 42, 8, 61)
CONFIG, WEIGHTS, ABOUT = "adapter_config.json", "adapter_model.safetensors", "rolelens.json"


@pytest.fixture
def folder(trained: Trained, tmp_path: Path) -> Path:
    """A copy of a good adapter, to be damaged."""
    shutil.copytree(trained.folder, tmp_path / "both")
    return tmp_path / "both"


def peft_logits(model: Path, adapter: Path) -> torch.Tensor:
    """The logits after IDS by peft's own forward, nothing merged."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(model)
    with torch.no_grad():
        found: torch.Tensor = PeftModel.from_pretrained(plain, str(adapter))(
            torch.tensor([IDS])
        ).logits[0, -1]
    return found


def test_merged_logits_equal_peft_s_own(trained: Trained) -> None:
    wanted = peft_logits(trained.model, trained.folder).numpy()
    merged = load_lens(str(trained.model), adapter=str(trained.folder))
    plain = load_lens(str(trained.model))
    run = [lens.run([Branch(IDS)])[0].logits[0] for lens in (merged, plain)]
    assert np.abs(run[0] - wanted).max() < 1e-4
    assert np.abs(run[1] - wanted).max() > 0.1
    assert merged.packed


@pytest.mark.parametrize("architecture", ["gpt2", "phi3", "gpt_neox"])
def test_so_do_those_of_models_with_joint_or_transposed_weights(
    architecture: str, tmp_path: Path
) -> None:
    from peft import LoraConfig, get_peft_model

    model = save_tiny(tmp_path / architecture, architecture)
    config = LoraConfig(r=4, target_modules="all-linear", init_lora_weights=False)
    get_peft_model(tiny_model(architecture), config).save_pretrained(tmp_path / "adapter")
    wanted = peft_logits(model, tmp_path / "adapter").numpy()
    lens = load_lens(str(model), adapter=str(tmp_path / "adapter"))
    assert np.abs(lens.run([Branch(IDS)])[0].logits[0] - wanted).max() < 1e-4


def test_a_lens_tells_its_adapter_and_has_a_hash_of_both(trained: Trained) -> None:
    plain = load_lens(str(trained.model))
    lens = load_lens(str(trained.model), adapter=str(trained.folder))
    assert plain.adapter is None
    assert lens.adapter is not None
    assert lens.name == "tiny-llama + both"
    assert lens.adapter.sha256 == trained.facts["adapter_sha256"] == adapter_hash(trained.folder)
    assert lens.adapter.about["lessons_sha256"] == trained.facts["lessons_sha256"]
    assert len({lens.sha256, plain.sha256, lens.adapter.sha256}) == 3
    assert outline(str(trained.model), str(trained.folder)).sha256 == lens.sha256


def test_the_base_model_stays_as_it_was(trained: Trained) -> None:
    before = open_model(outline(str(trained.model))).state_dict()
    load_lens(str(trained.model), adapter=str(trained.folder))
    after = open_model(outline(str(trained.model))).state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_prompts_of_the_training_are_remembered(trained: Trained, folder: Path) -> None:
    found = find_adapter(str(trained.folder), "any")
    assert found.prompting == {
        "layout": "context_first", "format": "auto", "verdict_words": ("Yes", "No"),
    }  # fmt: skip
    (folder / ABOUT).unlink()
    assert find_adapter(str(folder), "any").prompting == {}


def test_an_adapter_of_peft_alone_can_be_used(folder: Path, trained: Trained) -> None:
    for name in (ABOUT, "recipe.json", "README.md"):
        (folder / name).unlink()
    assert load_lens(str(trained.model), adapter=str(folder)).name == "tiny-llama + both"


def no_weights(folder: Path) -> None:
    (folder / WEIGHTS).unlink()


def no_settings(folder: Path) -> None:
    (folder / CONFIG).unlink()


def broken_settings(folder: Path) -> None:
    (folder / CONFIG).write_text('{"peft_type": ')


def list_for_settings(folder: Path) -> None:
    (folder / CONFIG).write_text("[]")


def change_settings(folder: Path, **changes: object) -> None:
    held = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps({**held, **changes}))


def not_lora(folder: Path) -> None:
    change_settings(folder, peft_type="IA3")


def cut_weights(folder: Path) -> None:
    file = folder / WEIGHTS
    file.write_bytes(file.read_bytes()[:-100])


def garbage_weights(folder: Path) -> None:
    (folder / WEIGHTS).write_bytes(b"<html>404</html>" * 10)


def tensor_too_few(folder: Path) -> None:
    held = load_file(folder / WEIGHTS)
    save_file({k: v for k, v in held.items() if k != min(held)}, folder / WEIGHTS)


def tensor_too_many(folder: Path) -> None:
    held = load_file(folder / WEIGHTS)
    other = min(held).replace("layers.0", "layers.9")
    save_file({**held, other: held[min(held)].clone()}, folder / WEIGHTS)


def not_finite(folder: Path) -> None:
    held = load_file(folder / WEIGHTS)
    save_file({k: torch.full_like(v, float("nan")) for k, v in held.items()}, folder / WEIGHTS)


def other_rank(folder: Path) -> None:
    change_settings(folder, r=7)


def other_layers(folder: Path) -> None:
    change_settings(folder, target_modules=["no_such_layer"])


def broken_about(folder: Path) -> None:
    (folder / ABOUT).write_text("{")


def odd_about(folder: Path) -> None:
    (folder / ABOUT).write_text('{"recipe": [1]}')


def odd_words(folder: Path) -> None:
    (folder / ABOUT).write_text('{"recipe": {"verdict_words": 3}}')


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (no_weights, r"no finished adapter: it has no adapter_model\.safetensors.*train-adapter"),
        (no_settings, r"no finished adapter: it has no adapter_config\.json"),
        (broken_settings, r"adapter_config\.json is not readable JSON .* again"),
        (list_for_settings, r"adapter_config\.json does not hold a JSON object"),
        (not_lora, "of the kind 'IA3'. Only LoRA adapters"),
        (cut_weights, r"adapter_model\.safetensors is broken or cut off .* again"),
        (garbage_weights, r"adapter_model\.safetensors is broken or cut off"),
        (tensor_too_few, r"does not fit llama weights .* 1 of its tensors .* choose the model"),
        (tensor_too_many, r"does not fit llama weights .* 1 of its tensors"),
        (not_finite, "does not fit llama weights"),
        (other_rank, "does not fit llama weights"),
        (other_layers, "does not fit llama weights"),
        (broken_about, r"rolelens\.json is not readable JSON"),
        (odd_about, r"rolelens\.json is damaged"),
        (odd_words, r"rolelens\.json is damaged"),
    ],
)
def test_an_adapter_that_cannot_be_used_says_why(
    folder: Path, trained: Trained, damage: Callable[[Path], None], told: str
) -> None:
    damage(folder)
    with pytest.raises(LabError, match=told) as error:
        load_lens(str(trained.model), adapter=str(folder))
    assert "\n" not in str(error.value)


def test_a_model_of_other_shapes_is_refused(trained: Trained, tmp_path: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    other = save_tiny(tmp_path / "wider")
    wide = LlamaConfig(
        vocab_size=320, hidden_size=64, intermediate_size=48, num_hidden_layers=4,
        num_attention_heads=4, max_position_embeddings=512,
    )  # fmt: skip
    LlamaForCausalLM(wide).save_pretrained(other)
    with pytest.raises(LabError, match=r"does not fit llama weights.*trained for another model"):
        load_lens(str(other), adapter=str(trained.folder))


def test_so_is_a_model_with_other_layers(trained: Trained, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="does not fit gpt2 weights"):
        load_lens(str(save_tiny(tmp_path / "gpt2", "gpt2")), adapter=str(trained.folder))


@pytest.mark.parametrize("name", ["nonsense", "a/b", " "])
def test_an_unknown_name_is_told_with_those_that_exist(name: str) -> None:
    with pytest.raises(LabError, match=r"no adapter .* give both, generator, evaluator, or the f"):
        find_adapter(name, DEFAULT)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_adapter_is_for_the_default_model_only(name: str, trained: Trained) -> None:
    with pytest.raises(LabError, match=r"was trained for smollm2-135m-instruct, not for .* Train"):
        load_lens(str(trained.model), adapter=name)


def test_a_training_on_its_way_is_no_adapter(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    with pytest.raises(LabError, match="still being trained, let lab train-adapter end"):
        find_adapter(str(tmp_path), "any")
