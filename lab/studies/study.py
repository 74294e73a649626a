"""Running a study: every example through every instrument, into the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from lab.errors import LabError
from lab.instruments.behaviour import (
    JUDGED_CONTROLS,
    RUNGS,
    Behaviour,
    as_array,
    measure_behaviour,
)
from lab.instruments.case import Case
from lab.instruments.patching import CONTRASTS, contrasts, measure_patching
from lab.instruments.reading import READING_ROLES, Reading, measure_reading, quantised
from lab.roles import MARKS, SPANS
from lab.studies.plan import Plan, Planned, make_plan
from lab.studies.provenance import now, provenance
from lab.studies.recipe import Recipe
from lab.studies.schema import SHOWN_ROLES
from lab.studies.store import (
    PROVENANCE,
    create_or_resume,
    read_json,
    read_study,
    write_json,
)

if TYPE_CHECKING:
    from lab.engine.lens import Lens

Progress = Callable[[int, int, str], None]
"""Called with examples done, examples in all, and the id of the one that comes next."""


def run_study(
    recipe: Recipe,
    folder: str | Path,
    *,
    lens: Lens | None = None,
    progress: Progress | None = None,
) -> tuple[xr.Dataset, dict[str, Any]]:
    """The Dataset and the provenance of a recipe, run as far as it is not stored yet.

    It may be stopped at any moment: run again with the same recipe and folder, it goes on, and
    ends with the same arrays as an unbroken run.

    Args:
        recipe: what is run.
        folder: where it is stored.
        lens: the recipe's model if it is loaded already.
        progress: told before each example.

    Raises:
        LabError: the model or data cannot be had, the folder holds another study or cannot be
            written. What was stored stays.
    """
    from lab.engine.loading import load_lens

    folder = Path(folder)
    if lens is None:
        lens = load_lens(recipe.model, dtype=recipe.dtype)
    plan = make_plan(recipe, lens)
    store = create_or_resume(
        folder,
        recipe,
        {"examples": plan.fingerprint, "weights": lens.sha256},
        [item.example.id for item in plan.items],
        {"layer": lens.n_layers, "head": lens.n_heads, "token": plan.max_tokens},
    )
    _note_start(folder, recipe, lens, plan)
    todo = np.flatnonzero(~store.done)
    for count, index in enumerate(todo):
        if progress is not None:
            progress(len(plan.items) - len(todo) + count, len(plan.items),
                     plan.items[index].example.id)  # fmt: skip
        store.write(int(index), measure(plan.case(int(index), lens), plan.items[index]))
    if progress is not None:
        progress(len(plan.items), len(plan.items), "")
    if len(todo):
        write_json(folder / PROVENANCE, {**read_json(folder / PROVENANCE), "finished": now()})
    return read_study(folder)


def _note_start(folder: Path, recipe: Recipe, lens: Lens, plan: Plan) -> None:
    path = folder / PROVENANCE
    if not path.exists():
        try:
            write_json(path, provenance(recipe, lens, plan, now()))
        except OSError as error:
            raise LabError(f"{folder} cannot be written ({error.strerror}).") from error


def measure(case: Case, item: Planned) -> dict[str, Any]:
    """All variables of one example, ready for the store."""
    # What a trunk was made from must not depend on what ran before, to the last bit.
    case.lens.forget()
    behaviour = measure_behaviour(case)
    readings = [
        measure_reading(case, case.prompt(role, behaviour.answer_raw)) for role in READING_ROLES
    ]
    return {
        **_asked(case),
        **_behaved(behaviour),
        **_read(readings),
        **_shown(readings[: len(SHOWN_ROLES)]),
        **(_patched(case, behaviour) if item.patched else {}),
    }


def _asked(case: Case) -> dict[str, Any]:
    example = case.example
    notes = [*example.notes, *case.prompt("generator").notes]
    return {
        "dataset": example.dataset,
        "family": example.family,
        "cluster": example.cluster,
        "question": example.question,
        "gold": example.gold,
        "answerable": example.answerable,
        "notes": json.dumps(list(dict.fromkeys(notes)), ensure_ascii=False),
    }


def _behaved(b: Behaviour) -> dict[str, Any]:
    texts = [b.candidates.get(rung, "") for rung in RUNGS]
    return {
        "answer": b.answer,
        "answer_raw": b.answer_raw,
        "em": b.score.em,
        "f1": b.score.f1,
        "closed_book_answer": b.closed_book,
        "closed_book_em": b.closed_book_score.em,
        "closed_book_f1": b.closed_book_score.f1,
        "candidate": np.array(texts, dtype=object),
        "candidate_given": np.array([rung in b.candidates for rung in RUNGS]),
        "candidate_em": as_array({k: s.em for k, s in b.candidate_scores.items()}, RUNGS),
        "candidate_f1": as_array({k: s.f1 for k, s in b.candidate_scores.items()}, RUNGS),
        "log_odds": as_array({k: v.log_odds for k, v in b.verdicts.items()}, RUNGS),
        "label_mass": as_array({k: v.label_mass for k, v in b.verdicts.items()}, RUNGS),
        "control_log_odds": as_array(
            {k: v.log_odds for k, v in b.controls.items()}, JUDGED_CONTROLS
        ),
        "control_label_mass": as_array(
            {k: v.label_mass for k, v in b.controls.items()}, JUDGED_CONTROLS
        ),
    }


def _read(readings: list[Reading]) -> dict[str, Any]:
    names = ("mass", "norm_mass", "mark_mass", "norm_mark_mass", "span_tokens", "mark_tokens",
             "candidate_to_context")  # fmt: skip
    return {name: np.stack([getattr(reading, name) for reading in readings]) for name in names}


def _shown(readings: list[Reading]) -> dict[str, Any]:
    length = max(len(reading.prompt) for reading in readings)
    heads = readings[0].attention.shape[:2]
    attention = np.zeros((len(readings), *heads, length), np.uint8)
    spans = np.full((len(readings), length), -1, np.int8)
    marks = np.zeros((len(readings), length), np.uint8)
    for i, reading in enumerate(readings):
        prompt = reading.prompt
        attention[i, :, :, : len(prompt)] = quantised(reading.attention)
        spans[i, : len(prompt)] = [SPANS.index(name) for name in prompt.spans]
        for bit, mark in enumerate(MARKS):
            marks[i, list(prompt.where(mark))] |= 1 << bit
    tokens = [json.dumps(list(r.prompt.tokens()), ensure_ascii=False) for r in readings]
    return {
        "attention": attention,
        "token_span": spans,
        "token_mark": marks,
        "tokens": np.array(tokens, dtype=object),
    }


def _patched(case: Case, behaviour: Behaviour) -> dict[str, Any]:
    lens = case.lens
    heads = (len(CONTRASTS), 2, lens.n_layers, lens.n_heads)
    layers = (len(CONTRASTS), 2, 2, lens.n_layers)
    values: dict[str, Any] = {
        "patch_clean": np.full((len(CONTRASTS), 2), np.nan, np.float32),
        "patch_head": np.full(heads, np.nan, np.float32),
        "patch_head_flip": np.full(heads, -1, np.int8),
        "patch_layer": np.full(layers, np.nan, np.float32),
        "patch_layer_flip": np.full(layers, -1, np.int8),
    }
    for name, contrast in contrasts(case, behaviour).items():
        patched = measure_patching(lens, contrast)
        place = CONTRASTS.index(name)
        values["patch_clean"][place] = patched.clean
        values["patch_head"][place] = patched.head
        values["patch_head_flip"][place] = patched.head_flip
        values["patch_layer"][place] = patched.layer
        values["patch_layer_flip"][place] = patched.layer_flip
    return values
