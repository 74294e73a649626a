"""A tiny model in a folder, questions for it, and adapters trained on them once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_folders import question, save_tiny, write_questions
from tiny_training import Trained, recipe_of

from lab.training.train import train_adapter


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache folder."""
    monkeypatch.setenv("ROLELENS_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("trained-on") / "tiny-llama", window=2048)


@pytest.fixture(scope="session")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight passages; three of them are asked a second question."""
    records = [question(i) for i in range(8)]
    for i in range(3):
        year = 1811 + i
        records.append(
            question(
                i,
                id=f"light{i}",
                question="When did its lighthouse burn down?",
                answers=[str(year)],
                distractors=[str(year + 60)],
                evidence=[],
            )
        )
    return write_questions(tmp_path_factory.mktemp("data") / "harbours.jsonl", records)


@pytest.fixture(scope="session")
def trained(model: Path, questions: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """An adapter for both roles; its folder is not to be changed."""
    root = tmp_path_factory.mktemp("adapters")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROLELENS_CACHE", str(root / "cache"))
        recipe = recipe_of(model, questions)
        facts = train_adapter(recipe, root / "both")
    return Trained(recipe, model, root / "both", facts)
