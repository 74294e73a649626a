"""Running a study: every example through every instrument, into the store."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from lab.engine.adapters import check_adapter
from lab.engine.alone import alone
from lab.instruments.behaviour import Behaviour, as_array, measure_behaviour
from lab.instruments.case import Case
from lab.instruments.names import CONTRASTS, JUDGED_CONTROLS, READING_ROLES, RUNGS
from lab.instruments.patching import contrasts, measure_patching
from lab.instruments.reading import Reading, measure_reading, quantised
from lab.instruments.schemes import SCHEMES, measure_schemes
from lab.roles import MARKS, SPANS
from lab.studies.plan import Plan, Planned, make_plan
from lab.studies.provenance import continued, now, provenance
from lab.studies.recipe import Recipe
from lab.studies.schema import SHOWN_ROLES
from lab.studies.seen import seen_in_training
from lab.studies.store import (
    PROVENANCE,
    Store,
    create,
    read_json,
    read_study,
    resume,
    write_json,
    writing,
)
from lab.studies.tokens import pack_tokens

if TYPE_CHECKING:
    from lab.engine.lens import Lens
    from lab.engine.loading import Outline

Progress = Callable[[int, int, str], None]
"""Called with examples done, examples in all, and the id of the one that comes next."""

log = logging.getLogger("lab")


def run_study(
    recipe: Recipe,
    folder: str | Path,
    *,
    lens: Lens | None = None,
    progress: Progress | None = None,
) -> tuple[xr.Dataset, dict[str, Any]]:
    """The Dataset and the provenance of a recipe, run as far as it is not stored yet.

    It may be stopped at any moment: run again with the same recipe and folder, it goes on, and
    ends with the same arrays as an unbroken run. Weights are loaded only if something is left to
    run. What is done is told to the logger ``lab``.

    Args:
        recipe: what is run.
        folder: where it is stored.
        lens: the recipe's model if it is loaded already, with the recipe's adapter.
        progress: told before each example.

    Raises:
        LabError: the model or data cannot be had, the lens has another adapter than the recipe, the
            folder holds another study, is being run into by another process, or cannot be written.
            What was stored stays.
    """
    from lab.engine.loading import outline

    if lens is not None:
        check_adapter(lens.adapter, recipe.adapter, recipe.model)
    folder = Path(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    # Examples are read and fitted, and the folder is looked at, before any weight is loaded.
    model = lens or outline(recipe.model, recipe.adapter)
    plan = make_plan(recipe, model)
    _tell_plan(recipe, plan)
    seen = _seen(recipe, plan, model)
    fingerprint = {**plan.fingerprint, "weights": model.sha256}
    store = resume(folder, recipe, fingerprint)
    if store is not None and store.done.all():
        log.info("All %d examples are stored already; nothing is left to run.", len(plan.items))
    else:
        with alone(folder):
            ready = _opened(model, recipe)
            # Looked at again, now that nobody else can have begun or be writing.
            store = resume(folder, recipe, fingerprint)
            if store is None:
                sizes = {"layer": ready.n_layers, "head": ready.n_heads, "token": plan.max_tokens}
                store = create(folder, recipe, fingerprint, plan.ids, sizes)
            store.tidy()
            _note_start(folder, recipe, ready, plan, seen)
            _run(plan, ready, store, progress)
    _note_end(folder)
    return read_study(folder)


def _seen(recipe: Recipe, plan: Plan, model: Lens | Outline) -> tuple[str, ...]:
    """What of the study the model's adapter was trained on, as sentences, which are told too."""
    about = {} if model.adapter is None else model.adapter.about
    found = seen_in_training(recipe.data, [item.example for item in plan.items], about)
    for sentence in found:
        log.warning(sentence)
    return found


def _opened(model: Lens | Outline, recipe: Recipe) -> Lens:
    from lab.engine.loading import Outline, open_lens

    if not isinstance(model, Outline):
        return model
    log.info("Loading %s (%s).", model.title, model.weights.source)
    return open_lens(model, dtype=recipe.dtype)


def _tell_plan(recipe: Recipe, plan: Plan) -> None:
    names = Counter(item.example.family or "of no family" for item in plan.items)
    kinds = ", ".join(f"{count} {family}" for family, count in sorted(names.items()))
    total, sources = len(plan.items), ", ".join(recipe.data)
    log.info("%d example%s of %s: %s.", total, "s" * (total > 1), sources, kinds)
    if plan.excluded:
        log.info("%d left out, the first: %s", len(plan.excluded), plan.excluded[0][1])


def _run(plan: Plan, lens: Lens, store: Store, progress: Progress | None) -> None:
    total, todo = len(plan.items), np.flatnonzero(~store.done)
    if len(todo) < total:
        log.info("%d of %d examples are stored already.", total - len(todo), total)
    for count, index in enumerate(map(int, todo)):
        if progress is not None:
            progress(total - len(todo) + count, total, plan.ids[index])
        store.write(index, measure(plan.case(index, lens), plan.items[index]))
    if progress is not None:
        progress(total, total, "")


def _note_start(folder: Path, recipe: Recipe, lens: Lens, plan: Plan, seen: Sequence[str]) -> None:
    path = folder / PROVENANCE
    made = continued(read_json(path)) if path.exists() else provenance(recipe, folder, lens, plan)
    with writing(folder):
        write_json(path, {**made, "seen_in_training": list(seen)})


def _note_end(folder: Path) -> None:
    path = folder / PROVENANCE
    known = read_json(path) if path.exists() else {}
    if known and not known.get("finished"):
        with writing(folder):
            write_json(path, {**known, "finished": now()})


def measure(case: Case, item: Planned, roles: Sequence[str] = READING_ROLES) -> dict[str, Any]:
    """All variables of one example, ready for the store; ``roles`` are those that are read."""
    # What a trunk was made from must not depend on what ran before, to the last bit.
    case.lens.forget()
    behaviour = measure_behaviour(case, controls="controls" in item.measured)
    values = {**_asked(case), **_behaved(behaviour)}
    if "controls" in item.measured:
        values |= _controlled(behaviour)
    if "reading" in item.measured:
        prompts = [case.prompt(role, behaviour.answer_raw) for role in roles]
        readings = [measure_reading(case, prompt) for prompt in prompts]
        values |= {**_read(readings), **_shown(readings[: len(SHOWN_ROLES)])}
    if "schemes" in item.measured:
        values["scheme_log_odds"] = _schemes(case)
    if "patching" in item.measured:
        values |= _patched(case, behaviour)
    return values


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
    }


def _controlled(b: Behaviour) -> dict[str, Any]:
    return {
        "control_log_odds": as_array(
            {k: v.log_odds for k, v in b.controls.items()}, JUDGED_CONTROLS
        ),
        "control_label_mass": as_array(
            {k: v.label_mass for k, v in b.controls.items()}, JUDGED_CONTROLS
        ),
    }


def _schemes(case: Case) -> np.ndarray:
    found = measure_schemes(case)
    missing = (np.nan, np.nan)
    return np.array([found.get(name, missing) for name in SCHEMES], dtype=np.float32)


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
    return {
        "attention": attention,
        "token_span": spans,
        "token_mark": marks,
        "tokens": np.array([pack_tokens(r.prompt) for r in readings], dtype=object),
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
