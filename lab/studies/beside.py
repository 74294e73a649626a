"""Runs beside a study: the same questions, in the same prompts, on other versions of the model."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.engine.adapters import SHIPPED, find_adapter
from lab.errors import LabError
from lab.instruments.summaries.runs import BASE as BASE
from lab.instruments.summaries.runs import Run, trained_role
from lab.studies.recipe import PROMPTING, Recipe
from lab.studies.store import any_done, is_study, read_json, read_study
from lab.training.lessons import without_folders
from lab.training.recipe import TrainingRecipe

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
        LabError: as `run_study` does, two adapters share a name, or one is the study's own.
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
    versions = find_versions(recipe.model, adapters, recipe.adapter or BASE)
    for name, adapter in versions.items():
        chosen = replace(light, adapter=None if adapter == BASE else adapter)
        run_study(chosen, folder / BESIDE / name, progress=progress)


def find_versions(model: str, adapters: Iterable[str], study: str | None = None) -> dict[str, str]:
    """The name of the run of each version of a model, once all are found to be there.

    ``study`` is the version that they are run beside, if any: beside itself it would be taken for
    a second training of the same role.

    Raises:
        LabError: there is no such adapter, two share a name, or one has the study's.
    """
    places: dict[str, str] = {}
    for adapter in adapters:
        name = run_name(adapter)
        if places.get(name, adapter) != adapter:
            raise LabError(
                f"{places[name]} and {adapter} would both be called {name}: rename one folder."
            )
        places[name] = adapter
    for adapter in places.values():
        if adapter != BASE:
            find_adapter(adapter, model)
    own = None if study is None else run_name(study)
    if own in places:
        raise LabError(
            f"The study itself is of {study}: what runs beside it must be another version than "
            f"{places[own]}, under another name."
        )
    return places


def run_name(adapter: str) -> str:
    """What a run is called: an adapter's name, or that of its folder."""
    return adapter if adapter in (BASE, *SHIPPED) else Path(adapter).resolve().name


def read_runs(folder: str | Path) -> list[Run]:
    """A study and the runs beside it, the base first; empty where there are none.

    Runs are named by what was trained, so that training seeds of one role share a name; adapters
    of one role that were trained in different ways are told apart by their own names. A run beside
    of which no example is finished is left out, and the log says so, as it does of unfinished ones.

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
    read = [read_study(place) for place in (folder, *begun)]
    for place, (_, made) in zip(begun, read[1:], strict=True):
        _tell_unfinished(place, made)
    adapters = [provenance.get("adapter") or {} for _, provenance in read]
    roles = [trained_role(adapter) for adapter in adapters]
    names = _names(adapters, roles)
    order = {BASE: 0, "generator": 1, "evaluator": 2, "verdict-only": 3, "both": 4}
    runs = [
        (
            order.get(role, 5),
            Run(name, dataset, _trained(adapter).get("seed"), str(adapter.get("name") or "")),
        )
        for (dataset, _), adapter, role, name in zip(read, adapters, roles, names, strict=True)
    ]
    ordered = sorted(runs, key=lambda one: (one[0], one[1].name, one[1].seed or 0))
    return [run for _, run in ordered]


def _empty(place: Path) -> bool:
    if any_done(place):
        return False
    log.info("%s holds no finished example yet and is left out.", place)
    return True


def _tell_unfinished(place: Path, made: Mapping[str, Any]) -> None:
    if made["done"] < made["planned"]:
        log.warning(
            "%s holds %d of %d examples yet: versions are compared on those that all hold.",
            place,
            made["done"],
            made["planned"],
        )


def _trained(adapter: Mapping[str, Any]) -> Mapping[str, Any]:
    return adapter.get("recipe") or {}


def _names(adapters: Sequence[Mapping[str, Any]], roles: Sequence[str]) -> list[str]:
    """What the runs of some adapters are called: by role, as far as that says which is which."""
    kinds = [f"{role} {_kind(adapter)}" for role, adapter in zip(roles, adapters, strict=True)]
    names = []
    for role, kind, adapter in zip(roles, kinds, adapters, strict=True):
        alike = [one for one, other in zip(adapters, kinds, strict=True) if other == kind]
        seeds = [_trained(one).get("seed") for one in alike]
        own = str(adapter.get("name") or role)
        if len(set(seeds)) < len(seeds):
            names.append(own)  # twice the same seed is no other training seed
        elif roles.count(role) == len(alike):
            names.append(role)
        else:
            names.append(str(min(str(one.get("name") or role) for one in alike)))
    return names


def _kind(adapter: Mapping[str, Any]) -> str:
    """How an adapter was trained, whatever its seed, and wherever its data lay."""
    usual = TrainingRecipe("both", ("builtin",)).as_dict()
    trained = {**usual, **_trained(adapter), "seed": None}
    trained["data"] = [without_folders(str(spec)) for spec in trained["data"]]
    return json.dumps(trained, sort_keys=True)
