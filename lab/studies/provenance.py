"""How a study was made, for whoever reads its report."""

from __future__ import annotations

import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from lab.data import licence
from lab.studies.plan import Plan
from lab.studies.recipe import Recipe

if TYPE_CHECKING:
    from lab.engine.lens import Lens

PACKAGES = ("rolelens", "torch", "transformers", "transformer-lens", "numpy", "xarray", "zarr")


def provenance(recipe: Recipe, lens: Lens, plan: Plan, started: str) -> dict[str, Any]:
    """Everything that a report says of how it was made, as JSON-ready data."""
    return {
        "title": f"{lens.name} on {', '.join(recipe.data)}",
        "model": {
            "name": lens.name,
            "source": lens.source,
            "sha256": lens.sha256,
            "architecture": lens.architecture,
            "n_layers": lens.n_layers,
            "n_heads": lens.n_heads,
            "parameters": lens.parameters,
            "dtype": str(lens.dtype).removeprefix("torch."),
        },
        "recipe": recipe.as_dict(),
        "templates": dict(plan.prompter.templates()),
        "verdict_words": list(recipe.verdict_words),
        "verdict_tokens": {
            word: [lens.tokenizer.decode([i]) for i in ids]
            for word, ids in zip(
                plan.verdict.words, (plan.verdict.accept, plan.verdict.reject), strict=True
            )
        },
        "versions": {**versions(), "python": platform.python_version()},
        "seed": recipe.seed,
        "started": started,
        "finished": "",
        "command": shlex.join(["lab", *sys.argv[1:]]) if "lab" in sys.argv[0] else "",
        "excluded": [{"example": i, "why": why} for i, why in plan.excluded],
        "notes": [*lens.notes, *plan.notes],
        "data": [{"spec": spec, "licence": licence(spec)} for spec in recipe.data],
    }


def versions() -> dict[str, str]:
    """Versions of the packages that decide the numbers."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed as a package"
    return found


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
