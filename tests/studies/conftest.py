"""A tiny model and a few questions on disk, and an unbroken study of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_folders import question, save_tiny, write_questions
from tiny_study import Unbroken

from lab.engine.loading import load_lens
from lab.studies.recipe import Recipe
from lab.studies.study import run_study


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("models") / "tiny-llama", window=2048)


@pytest.fixture(scope="session")
def unbroken(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    # Sums in another order differ in the last bit; a study promises its bytes on one machine.
    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp("study")
    file = write_questions(root / "harbours.jsonl", [question(i) for i in range(3)])
    recipe = Recipe(str(tiny_folder), (f"jsonl:{file}",), patching=2)
    lens = load_lens(str(tiny_folder))
    run_study(recipe, root / "out", lens=lens)
    return Unbroken(recipe, lens, root / "out")
