"""How a study was made, for whoever reads its report."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.data import licence
from lab.studies.plan import Plan
from lab.studies.recipe import PROMPTING, Recipe

if TYPE_CHECKING:
    from lab.engine.lens import Lens

PACKAGES = (
    "rolelens", "torch", "transformers", "transformer-lens", "peft", "numpy", "xarray", "zarr",
)  # fmt: skip


TOLD = ("recipe", "questions", "steps", "minutes", "curve")
"""What a study repeats of how its adapter was trained."""


def provenance(recipe: Recipe, folder: Path, lens: Lens, plan: Plan) -> dict[str, Any]:
    """Everything that a report says of how it was made, as JSON-ready data."""
    return {
        "title": f"{lens.name} on {', '.join(recipe.data)}",
        "model": model_facts(lens),
        "adapter": adapter_facts(lens),
        "recipe": recipe.as_dict(),
        "prompting": {name: getattr(plan.prompter, name) for name in PROMPTING},
        "templates": dict(plan.prompter.templates()),
        "verdict_words": list(plan.prompter.verdict_words),
        "verdict_tokens": {
            word: [lens.tokenizer.decode([i]) for i in ids]
            for word, ids in zip(
                plan.verdict.words, (plan.verdict.accept, plan.verdict.reject), strict=True
            )
        },
        "versions": versions(),
        "seed": recipe.seed,
        "started": now(),
        "finished": "",
        "command": recipe.command(folder),
        "excluded": [{"example": i, "why": why} for i, why in plan.excluded],
        "notes": [*lens.notes, *plan.notes],
        "data": [{"spec": spec, "licence": licence(spec)} for spec in recipe.data],
    }


def model_facts(lens: Lens) -> dict[str, Any]:
    """Which model it was, as JSON-ready data."""
    return {
        "name": lens.name,
        "source": lens.source,
        "sha256": lens.sha256,
        "architecture": lens.architecture,
        "n_layers": lens.n_layers,
        "n_heads": lens.n_heads,
        "parameters": lens.parameters,
        "dtype": str(lens.dtype).removeprefix("torch."),
    }


def adapter_facts(lens: Lens) -> dict[str, Any] | None:
    """What is known of the adapter that was merged into the model."""
    if lens.adapter is None:
        return None
    about = lens.adapter.about
    known: dict[str, Any] = {key: about[key] for key in TOLD if key in about}
    return {"name": lens.adapter.name, "sha256": lens.adapter.sha256, **known}


def versions() -> dict[str, str]:
    """Versions of the packages that decide the numbers."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed as a package"
    return {**found, "python": platform.python_version()}


def continued(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Provenance of a study that is gone on with: it says so if versions have changed since."""
    old, new = stored.get("versions") or {}, versions()
    differ = [
        f"{name} {old.get(name)} to {new[name]}" for name in new if old.get(name) != new[name]
    ]
    if not differ:
        return dict(stored)
    note = f"Gone on with after versions changed: {', '.join(differ)}."
    notes = stored.get("notes") or []
    return {**stored, "notes": notes if note in notes else [*notes, note]}


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
