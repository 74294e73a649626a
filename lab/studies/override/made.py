"""How an override study was made, for whoever reads its results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.data.conflicts import LICENCES
from lab.instruments.override.contests import CONTESTS
from lab.roles.conflicts import conflict_templates
from lab.studies.override.plan import OverridePlan
from lab.studies.override.recipe import OverrideRecipe
from lab.studies.override.store import OverrideStore
from lab.studies.provenance import adapter_facts, continued, model_facts, now, versions
from lab.studies.recipe import PROMPTING
from lab.studies.store import PROVENANCE

if TYPE_CHECKING:
    from lab.engine.lens import Lens


def note_start(
    store: OverrideStore, recipe: OverrideRecipe, folder: Path, plan: OverridePlan, lens: Lens
) -> None:
    """Write how the study is made, or that versions have changed since it was begun."""
    if store.has(PROVENANCE):
        known = store.json(PROVENANCE)
        if (made := continued(known)) != known:
            store.write_json(PROVENANCE, made)
        return
    store.write_json(PROVENANCE, _made(recipe, folder, plan, lens))


def note_end(store: OverrideStore) -> None:
    """Write when the study was finished, the first time that it is."""
    known = store.json(PROVENANCE) if store.has(PROVENANCE) else {}
    if known and not known.get("finished"):
        store.write_json(PROVENANCE, {**known, "finished": now()})


def _made(recipe: OverrideRecipe, folder: Path, plan: OverridePlan, lens: Lens) -> dict[str, Any]:
    return {
        "title": f"Override heads of {lens.name} on {', '.join(recipe.data)}",
        "model": model_facts(lens),
        "adapter": adapter_facts(lens),
        "recipe": recipe.as_dict(),
        "prompting": {name: getattr(plan.prompter, name) for name in PROMPTING},
        "templates": {
            **conflict_templates(plan.prompter, begun=recipe.begun),
            "answering, unrelated questions": plan.prompter.templates()["generator"],
        },
        "verdict_words": list(plan.verdict.words),
        "contests": {name: list(contest.words) for name, contest in CONTESTS.items()},
        "versions": versions(),
        "seed": recipe.seed,
        "started": now(),
        "finished": "",
        "command": recipe.command(folder),
        "excluded": [{"conflict": i, "why": why} for i, why in plan.excluded],
        "notes": [*lens.notes, *plan.notes],
        "data": [
            {"spec": spec, "licence": LICENCES.get(spec.partition(":")[0], "unknown")}
            for spec in recipe.data
        ],
    }
