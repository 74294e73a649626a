"""A tiny study, the model that it was made with, and explorers of both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from synthetic_study import synthetic_study
from tiny import tiny_model, tiny_tokenizer
from tiny_folders import question, write_questions

import lab
from lab.data import Examples
from lab.engine.lens import Lens, lens_from


@dataclass(frozen=True)
class Made:
    """A study in a folder, its model and its questions."""

    folder: Path
    lens: Lens
    examples: Examples
    dataset: xr.Dataset
    provenance: dict[str, Any]


@pytest.fixture(scope="session")
def lens() -> Lens:
    model = tiny_model("llama")
    model.config.max_position_embeddings = 2048  # its tokenizer makes many tokens of a passage
    return lens_from(model, tiny_tokenizer(), name="tiny llama")


@pytest.fixture(scope="session")
def made(lens: Lens, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Three questions, of which the last was answered and judged but not read."""
    root = tmp_path_factory.mktemp("explored")
    file = write_questions(root / "harbours.jsonl", [question(i) for i in range(3)])
    recipe = lab.Recipe("tiny llama", (f"jsonl:{file}",), reading=2, patching=2, controls=0)
    dataset, provenance = lab.run_study(recipe, root / "out", lens=lens)
    examples = lab.load_examples(f"jsonl:{file}")
    return Made(root / "out", lens, examples, dataset, provenance)


@pytest.fixture(scope="session")
def live(made: Made) -> lab.Explorer:
    """A study with its model. Tests may select and run what they like."""
    return lab.explore(made.folder, lens=made.lens)


@pytest.fixture(scope="session")
def invented() -> lab.Explorer:
    """A made-up study of eight examples, without a model."""
    return lab.explore(synthetic_study(n=8, layers=5, heads=4))
