"""What the tests of training share: recipes for a tiny model, and its learner in memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.data import Example, load_examples
from lab.engine.loading import Outline, outline
from lab.roles import Prompter
from lab.training.learner import open_learner
from lab.training.objective import Learner
from lab.training.recipe import TrainingRecipe


@dataclass(frozen=True)
class Trained:
    """A finished training."""

    recipe: TrainingRecipe
    model: Path
    folder: Path
    facts: dict[str, Any]


def recipe_of(model: Path, questions: Path, role: Any = "both", **changes: Any) -> TrainingRecipe:
    """A recipe that a tiny model runs through in seconds."""
    usual: dict[str, Any] = {
        "rank": 4, "alpha": 16, "learning_rate": 0.02, "epochs": 4, "dev_questions": 3,
        "precision": "float32",
    }  # fmt: skip
    return TrainingRecipe(role, (f"jsonl:{questions}",), str(model), **{**usual, **changes})


def opened(recipe: TrainingRecipe) -> tuple[Learner, Prompter, list[Example]]:
    """The learner of a recipe before its first step, its prompter and all its questions."""
    found = outline(recipe.model)
    prompter = prompter_of(recipe, found)
    learner = open_learner(recipe, found, prompter.verdict_tokens())
    return learner, prompter, list(load_examples(recipe.data[0]))


def prompter_of(recipe: TrainingRecipe, model: Outline) -> Prompter:
    return Prompter(
        model.tokenizer,
        layout=recipe.layout,
        format=recipe.format,
        verdict_words=recipe.verdict_words,
    )
