"""Bundles: rows run along a token tree mean what the same rows mean run alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from tiny_folders import save_tiny
from tiny_training import opened, recipe_of

from lab.errors import LabError
from lab.training.bundles import bundle
from lab.training.checkpoint import trainable
from lab.training.objective import Learner, loss
from lab.training.rows import Row

TRUNK = (5, 17, 99, 3, 250, 42)


def row(*ids: int, target: Sequence[int] = (8, 61), accept: bool = True) -> Row:
    return Row("answer", tuple(ids), tuple(target), accept)


ROWS: dict[str, list[Row]] = {
    "a single row": [row(*TRUNK)],
    "identical rows": [row(*TRUNK), row(*TRUNK)],
    "a common prefix": [row(*TRUNK, 7), row(*TRUNK, 9, 11), row(*TRUNK, 12, 13, 14)],
    "branches of branches": [
        row(*TRUNK, 7, 20, 21), row(*TRUNK, 7, 20, 22), row(*TRUNK, 7, 23), row(*TRUNK, 30),
    ],
    "a row that is a prefix of another": [row(*TRUNK), row(*TRUNK, 8, 77, 78)],
    "a prompt that is a part of another row's target": [row(*TRUNK), row(*TRUNK, 8)],
    "no common prefix": [row(4, 17, 99), row(6, 17, 99, 3), row(4, 17, 100)],
    "a target of one token": [row(*TRUNK, target=(9,)), row(*TRUNK, 9, target=(10,))],
}  # fmt: skip
EACH = pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS.keys())


@pytest.fixture(scope="module")
def learner(model: Path, questions: Path) -> Learner:
    """A learner whose adapter changes something, so that all its gradients differ from zero."""
    found, _, _ = opened(recipe_of(model, questions))
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in trainable(found.model).values():
            parameter.normal_(0, 0.05)
    return found


def alone(learner: Learner, item: Row) -> torch.Tensor:
    """The logits that predict a row's target, on transformers' own attention."""
    model = learner.model.get_base_model()
    kernel = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        logits: torch.Tensor = model(input_ids=torch.tensor([item.fed])).logits[0]
    finally:
        model.set_attn_implementation(kernel)
    return logits[len(item.prompt) - 1 :]


def gradients(learner: Learner, value: torch.Tensor) -> dict[str, torch.Tensor]:
    parameters = trainable(learner.model)
    found = torch.autograd.grad(value, list(parameters.values()))
    return dict(zip(parameters, found, strict=True))


@EACH
def test_logits_equal_those_of_each_row_alone(learner: Learner, rows: list[Row]) -> None:
    assert learner.model.config.num_key_value_heads < learner.model.config.num_attention_heads
    for item, packed in zip(rows, learner.logits(bundle(rows)), strict=True):
        assert packed.dtype == torch.float32
        assert packed.shape[0] == len(item.target)
        assert (packed - alone(learner, item)).abs().max() < 1e-4


@EACH
def test_gradients_equal_the_sum_of_each_row_alone(learner: Learner, rows: list[Row]) -> None:
    packed = gradients(learner, loss(learner, bundle(rows), "generator"))
    tokens = sum(len(item.target) for item in rows)
    parts = [
        torch.nn.functional.cross_entropy(
            alone(learner, item), torch.tensor(item.target), reduction="sum"
        )
        for item in rows
    ]
    wanted = gradients(learner, torch.stack(parts).sum() / tokens)
    assert max(g.abs().max() for g in wanted.values()) > 1e-2
    for name, gradient in wanted.items():
        assert (packed[name] - gradient).abs().max() < 1e-4, name


def test_what_rows_share_is_laid_out_once() -> None:
    rows = ROWS["branches of branches"]
    made = bundle(rows)
    # The trunk, then 7 20 21 8, 22 8, 23 8, and 30 8.
    assert len(made) == len(TRUNK) + 4 + 2 + 2 + 2
    assert made.trunk == len(TRUNK)
    assert [block.end - block.start for block in made.blocks] == [8, 2]
    for item, places in zip(rows, made.places, strict=True):
        assert made.tokens[list(places)].tolist() == list(item.fed[-len(item.target) :])
        assert made.positions[list(places)].tolist() == [
            len(item.prompt) - 1 + i for i in range(len(item.target))
        ]


def test_rows_without_a_common_prefix_have_no_trunk() -> None:
    made = bundle(ROWS["no common prefix"])
    assert made.trunk == 0
    assert [block.start for block in made.blocks] == [0, made.blocks[1].start]


def test_no_rows_make_an_empty_bundle() -> None:
    assert len(bundle([])) == 0


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3", "phi3", "gpt_neox", "gpt2"])
def test_models_with_full_attention_can_be_trained(
    architecture: str, tmp_path: Path, questions: Path
) -> None:
    folder = save_tiny(tmp_path / architecture, architecture)
    learner, _, _ = opened(recipe_of(folder, questions))
    value = loss(learner, bundle(ROWS["a common prefix"]), "generator")
    assert any(g.abs().max() > 0 for g in gradients(learner, value).values())
    again = loss(learner, bundle(ROWS["a common prefix"]), "generator")
    assert value.item() == again.item()  # nothing is dropped out at random


@pytest.mark.parametrize(("architecture", "window"), [("gemma3", 10), ("mistral", 300)])
def test_a_window_that_is_shorter_than_prompts_is_refused(
    architecture: str, window: int, tmp_path: Path, questions: Path
) -> None:
    folder = save_tiny(tmp_path / architecture, architecture)
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(
        text.replace('"sliding_window": 10', f'"sliding_window": {window}')
    )
    with pytest.raises(LabError, match=r"cannot be trained in bundles: .* full causal attention"):
        opened(recipe_of(folder, questions))
