"""Runs: studies of the same questions on several versions of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import xarray as xr

from lab.errors import LabError

BASE = "base"
"""What the model without any training of ours is called."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One model's study.

    Attributes:
        name: what was trained (``base``, ``generator``, ...); runs of the same name are seeds.
        dataset: its arrays.
        seed: of its training; None for the base.
        adapter: the adapter's own name; empty for the base.
    """

    name: str
    dataset: xr.Dataset
    seed: int | None = None
    adapter: str = ""


def trained_role(adapter: Mapping[str, Any] | None) -> str:
    """What was trained, from what a run's provenance says of its adapter; else its name."""
    if not adapter:
        return BASE
    return str((adapter.get("recipe") or {}).get("role") or adapter.get("name"))


def run_of(runs: Sequence[Run], adapter: Mapping[str, Any] | None) -> str:
    """What the run of an adapter is called among some runs."""
    own = str((adapter or {}).get("name") or "")
    return next((run.name for run in runs if own and run.adapter == own), trained_role(adapter))


def common(runs: Sequence[Run]) -> list[Run]:
    """The runs on the examples that all of them hold, in the first one's order.

    Raises:
        LabError: there is no run, or no example that all runs hold.
    """
    if not runs:
        raise LabError("There is no run to compare.")
    first = [str(i) for i in runs[0].dataset["example"].values.tolist()]
    kept = set(first).intersection(
        *({str(i) for i in run.dataset["example"].values.tolist()} for run in runs)
    )
    ids = [i for i in first if i in kept]
    if not ids:
        raise LabError("The runs have no example in common, so they cannot be compared.")
    return [replace(run, dataset=run.dataset.sel(example=ids)) for run in runs]
