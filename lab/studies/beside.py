"""Runs beside a study: the same questions, in the same prompts, on other versions of the model."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.engine.adapters import SHIPPED
from lab.errors import LabError
from lab.instruments.summaries.runs import BASE as BASE
from lab.instruments.summaries.runs import Run, trained_name
from lab.studies.recipe import PROMPTING, Recipe
from lab.studies.store import any_done, is_study, read_json, read_study

if TYPE_CHECKING:
    from lab.studies.study import Progress

log = logging.getLogger("lab")

BESIDE = "beside"
"""The folder inside a study's folder that holds the runs beside it."""


def run_beside(
    recipe: Recipe, folder: str | Path, adapters: Iterable[str], progress: Progress | None = None
) -> None:
    """Run the recipe on other versions of its model, into ``folder/beside``; resumable.

    Nothing is patched and no controls are run: these runs are there to compare answers, verdicts
    and attention. Prompts are written as in the study itself, whatever an adapter was trained on.

    Args:
        recipe: that of the study.
        folder: of the study, which must have been begun (its prompts are taken from there).
        adapters: ``base`` for the model alone, names as in `lab.load_lens`, or folders.
        progress: told before each example of each run.

    Raises:
        LabError: as `run_study` does, or two adapters share a name.
    """
    from lab.studies.study import run_study  # which loads torch: reading runs needs none

    folder = Path(folder)
    prompting = read_json(folder / "provenance.json").get("prompting") or {}
    if prompting:
        # Older studies say it in their recipe alone.
        prompting.setdefault("demonstrations", recipe.demonstrations or 0)
    missing = [name for name in PROMPTING if name not in prompting]
    if missing:
        raise LabError(f"{folder} does not say how its prompts were written: run it anew.")
    prompting["verdict_words"] = tuple(prompting["verdict_words"])
    light = replace(recipe, patching=0, controls=0, **prompting)
    places: dict[str, str] = {}
    for adapter in adapters:
        name = run_name(adapter)
        if name in places:
            raise LabError(
                f"{places[name]} and {adapter} would both be called {name}: rename one folder."
            )
        places[name] = adapter
    for name, adapter in places.items():
        chosen = replace(light, adapter=None if adapter == BASE else adapter)
        run_study(chosen, folder / BESIDE / name, progress=progress)


def run_name(adapter: str) -> str:
    """What a run is called: an adapter's name, or that of its folder."""
    return adapter if adapter in (BASE, *SHIPPED) else Path(adapter).resolve().name


def read_runs(folder: str | Path) -> list[Run]:
    """A study and the runs beside it, the base first; empty where there are none.

    Runs are named by what was trained, so that training seeds of one role share a name. A run
    beside of which no example is finished is left out, and the log says so.

    Raises:
        LabError: a run is damaged.
    """
    folder = Path(folder)
    places = [place for place in sorted((folder / BESIDE).glob("*")) if is_study(place)]
    if not places:
        return []
    begun = [place for place in places if not _empty(place)]
    if not begun:
        return []
    runs = [_run(*read_study(place)) for place in (folder, *begun)]
    order = {BASE: 0, "generator": 1, "evaluator": 2, "verdict-only": 3, "both": 4}
    return sorted(runs, key=lambda run: (order.get(run.name, 5), run.name, run.seed or 0))


def _empty(place: Path) -> bool:
    if any_done(place):
        return False
    log.info("%s holds no finished example yet and is left out.", place)
    return True


def _run(dataset: Any, provenance: dict[str, Any]) -> Run:
    adapter = provenance.get("adapter")
    trained = (adapter or {}).get("recipe") or {}
    return Run(trained_name(adapter), dataset, trained.get("seed"))
