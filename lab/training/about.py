"""What is known of a trained adapter: how it was made, its curves, its hashes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.data import licence
from lab.engine.adapters import ABOUT
from lab.errors import LabError
from lab.roles import Prompter
from lab.training.lessons import Lessons
from lab.training.recipe import TrainingRecipe

if TYPE_CHECKING:
    from lab.engine.loading import Outline

PACKAGES = ("rolelens", "torch", "transformers", "peft")


def about(
    recipe: TrainingRecipe,
    model: Outline,
    lessons: Lessons,
    prompter: Prompter,
    made: Mapping[str, Any],
    sha256: str,
) -> dict[str, Any]:
    """All that the model card says of how an adapter was made, as JSON-ready data."""
    import torch

    return {
        "recipe": recipe.as_dict(),
        "model": {"title": model.weights.title, "sha256": model.sha256},
        "adapter_sha256": sha256,
        "questions": sum(map(len, lessons.train)),
        "dev_questions": sum(map(len, lessons.dev)),
        "lessons_sha256": lessons.fingerprint,
        "data": [
            {"spec": spec, "licence": licence(spec), **facts}
            for spec, facts in lessons.sources.items()
        ],
        "prompts": {role: prompter.templates()[role] for role in ("generator", "evaluator")},
        "steps": made["step"],
        "tokens": made["tokens"],
        "minutes": round(made["seconds"] / 60, 1),
        "threads": torch.get_num_threads(),
        "losses": made["losses"],
        "curve": made["curve"],
        "notes": list(lessons.notes),
        "versions": {name: version(name) for name in PACKAGES},
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write_about(folder: Path, facts: Mapping[str, Any]) -> None:
    """Store it beside the adapter; LabError where the folder cannot be written."""
    try:
        text = json.dumps(dict(facts), indent=1, ensure_ascii=False)
        (folder / ABOUT).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise LabError(f"{folder} cannot be written ({error.strerror or error}).") from error
