"""Running an override study: conflicts measured, heads searched, and what they do, into files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab.engine.adapters import check_adapter
from lab.instruments.override.contests import Rendered
from lab.instruments.override.find import Found
from lab.studies.override.contest import (
    ContestRun,
    Tables,
    curve_tables,
    heads_tables,
    screen_tables,
    stability_tables,
)
from lab.studies.override.crossing import across_table, crossing_table, joined, restored_table
from lab.studies.override.effects import (
    backups_tables,
    elsewhere_tables,
    kinds_tables,
    knockout_tables,
    proof_tables,
    text_tables,
    texts_tables,
)
from lab.studies.override.made import note_end, note_start
from lab.studies.override.measured import (
    Answered,
    answered,
    ask,
    conflicts_frame,
    fallout_frame,
    verdicts_frame,
)
from lab.studies.override.plan import OverridePlan, Surroundings, make_override_plan
from lab.studies.override.recipe import OverrideRecipe
from lab.studies.override.results import OverrideResults, heads_text, read_override
from lab.studies.override.search import Drawn, patch_pairs, search_contest
from lab.studies.override.steps import Model, Show, Steps, counting
from lab.studies.override.store import OverrideStore, held, open_override
from lab.studies.override.told import Told, contests_frame, draw_contests

if TYPE_CHECKING:
    from lab.engine.lens import Lens
    from lab.engine.loading import Outline

log = logging.getLogger("lab")


@dataclass(frozen=True, slots=True)
class Making:
    """Tables of a contest that are made together.

    Attributes:
        tables: their names.
        words: what is told while they are made.
        parts: how long it takes beside others with FULL pairs, about a second each on two cores.
        make: makes them.
    """

    tables: tuple[str, ...]
    words: str
    parts: int
    make: Callable[[ContestRun], Tables]


ALWAYS = (
    Making(("heads", "layers"), "testing every head", 8, heads_tables),
    Making(("curve",), "ablating more and more heads", 12, curve_tables),
    Making(("stability", "splits"), "searching the held-out half too", 25, stability_tables),
)
"""Made of every searched contest."""

FOUND = (
    Making(("proof",), "ablating the heads, and random sets", 45, proof_tables),
    Making(("elsewhere",), "ablating them in unrelated prompts", 20, elsewhere_tables),
    Making(("text",), "ablating them in plain text", 20, text_tables),
    Making(("texts",), "generating texts", 15, texts_tables),
    Making(("kinds",), "telling routing from writing", 12, kinds_tables),
    Making(("knockout",), "cutting attention", 50, knockout_tables),
    Making(("backups",), "looking for backup heads", 30, backups_tables),
    Making(("screen",), "estimating patches by gradients", 15, screen_tables),
)
"""Made where heads were found."""

PAIR, SEARCH, ACROSS, RESTORED = 2, 25, 15, 45
"""Parts of the other steps."""

FULL = 50
"""Fewer pairs than these take so much less."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What all contests of a study share.

    Attributes:
        conflicts: the prompts of all conflicts.
        known: for each whether the model knows the answer closed-book.
        around: unrelated prompts and texts.
    """

    conflicts: tuple[Rendered, ...]
    known: tuple[bool, ...]
    around: Surroundings


def run_override(
    recipe: OverrideRecipe,
    folder: str | Path,
    *,
    lens: Lens | None = None,
    show: Show | None = None,
) -> OverrideResults:
    """The results of a recipe, run as far as they are not stored yet.

    It may be stopped at any moment: run again with the same recipe and folder, it goes on, and
    ends with the same tables as an unbroken run. Weights are loaded only if something is left to
    run. What is done is told to the logger ``lab``.

    Args:
        recipe: what is run.
        folder: of the study; results go into its folder ``override``.
        lens: the recipe's model if it is loaded already, with the recipe's adapter.
        show: opens a progress for each phase: first conflicts are counted, then parts of the work
            on the contests that have enough of them.

    Raises:
        LabError: the model or data cannot be had, the lens has another adapter than the recipe, the
            folder holds another override study, is being run into by another process, or cannot be
            written. What was stored stays.
    """
    from lab.engine.loading import outline

    if lens is not None:
        check_adapter(lens.adapter, recipe.adapter, recipe.model)
    folder = Path(folder)
    named = lens or outline(recipe.model, recipe.adapter)
    plan = make_override_plan(recipe, named)
    with held(folder):
        _run(recipe, folder, named, plan, show)
    return read_override(folder)


def _run(
    recipe: OverrideRecipe,
    folder: Path,
    named: Lens | Outline,
    plan: OverridePlan,
    show: Show | None,
) -> None:
    """Run what is not stored yet into a folder that is held."""
    store = open_override(folder, recipe, {**plan.fingerprint, "weights": named.sha256})
    model = Model(named, lambda opened: note_start(store, recipe, folder, plan, opened))
    _tell_plan(recipe, plan)
    with counting(show, "conflict", len(plan.conflicts)) as steps:
        everything = _measure(store, recipe, plan, model, steps)
    told, drawn = draw_contests(recipe, plan, everything)
    for one in told.values():
        log.info("%s: %s", one.contest.name, one.sentence())
    known = tuple(a.measured.known for a in everything)
    asked = Asked(plan.rendered, known, plan.around)
    run_contests(store, recipe, asked, told, drawn, model, show)
    note_end(store)


def _tell_plan(recipe: OverrideRecipe, plan: OverridePlan) -> None:
    total = len(plan.conflicts)
    log.info("%d conflict%s of %s.", total, "s" * (total > 1), ", ".join(recipe.data))
    if plan.excluded:
        log.info("%d left out, the first: %s", len(plan.excluded), plan.excluded[0][1])


def _measure(
    store: OverrideStore,
    recipe: OverrideRecipe,
    plan: OverridePlan,
    model: Callable[[], Lens],
    steps: Steps,
) -> list[Answered]:
    """What the model says of every conflict, and the tables over all of them."""
    everything = []
    both = zip(plan.conflicts, plan.rendered, strict=True)
    for number, (conflict, rendered) in enumerate(both):
        name = f"measured/{number:05d}.json"
        steps(f"asking about {conflict.id}")
        if not store.has(name):
            store.write_json(name, ask(model(), plan.prompter, conflict, begun=recipe.begun))
        everything.append(answered(store.json(name), conflict, rendered, plan.prompter))
    tables: dict[str, Callable[[], Tables]] = {
        "conflicts": lambda: {"conflicts": conflicts_frame(everything)},
        "verdicts": lambda: {"verdicts": verdicts_frame(everything, plan.clusters)},
        "fallout": lambda: {"fallout": fallout_frame(everything)},
    }
    for name, make in tables.items():
        _once(store, [name], make)
    return everything


def run_contests(
    store: OverrideStore,
    recipe: OverrideRecipe,
    asked: Asked,
    told: Mapping[str, Told],
    drawn: Mapping[str, Drawn],
    model: Callable[[], Lens],
    show: Show | None = None,
) -> None:
    """Search all contests that have enough pairs, and make every table that is not there yet."""
    with counting(show, "part", sum(_parts(one) for one in drawn.values())) as steps:
        _run_contests(store, recipe, asked, told, drawn, model, steps)


def _parts(drawn: Drawn) -> int:
    """How much there is to do for a contest in which heads are found."""
    made = [making.parts for making in (*ALWAYS, *FOUND)]
    if drawn.contest.role == "generator":
        made.append(RESTORED)
    return len(drawn.pairs) * PAIR + sum(_scaled(p, drawn) for p in (SEARCH, ACROSS, *made))


def _scaled(parts: int, drawn: Drawn) -> int:
    return max(1, round(parts * len(drawn.pairs) / FULL))


def _run_contests(
    store: OverrideStore,
    recipe: OverrideRecipe,
    asked: Asked,
    told: Mapping[str, Told],
    drawn: Mapping[str, Drawn],
    model: Callable[[], Lens],
    steps: Steps,
) -> None:
    found = {name: _search(store, recipe, one, model, steps) for name, one in drawn.items()}
    _once(store, ["contests"], lambda: {"contests": contests_frame(told, drawn, found)})
    runs = [
        ContestRun(
            store, drawn[name], recipe, one, model, asked.around, asked.known, asked.conflicts
        )
        for name, one in found.items()
    ]
    for run in runs:
        heads = heads_text(run.heads) or "no heads"
        log.info("%s: found %s, on %d pairs.", run.drawn.name, heads, len(run.discovery))
        for making in (*ALWAYS, *(FOUND if run.heads else ())):
            steps(f"{run.drawn.name}: {making.words}", _scaled(making.parts, run.drawn))
            files = [f"{run.drawn.name}/{table}" for table in making.tables]
            _once(store, files, lambda m=making, r=run: m.make(r))  # type: ignore[misc]
    _cross(store, runs, steps)


def _search(
    store: OverrideStore,
    recipe: OverrideRecipe,
    drawn: Drawn,
    model: Callable[[], Lens],
    steps: Steps,
) -> Found:
    sweep = patch_pairs(store, drawn, model, lambda what: steps(what, PAIR))
    steps(f"{drawn.name}: searching the smallest sets of heads", _scaled(SEARCH, drawn))
    return search_contest(store, drawn, recipe, sweep, model)


def _cross(store: OverrideStore, runs: Sequence[ContestRun], steps: Steps) -> None:
    """The tables over several contests."""
    those = [run for run in runs if run.heads]
    _once(store, ["crossing"], lambda: {"crossing": crossing_table(those)})
    for run in those:
        parts = _scaled(ACROSS, run.drawn)
        steps(f"{run.drawn.name}: ablating its heads in other contests", parts)
        file = f"{run.drawn.name}/across"
        _once(store, [file], lambda r=run: {"across": across_table(r, runs)})  # type: ignore[misc]
    generating = [run for run in those if run.drawn.contest.role == "generator"]
    for run in generating:
        parts = _scaled(RESTORED, run.drawn)
        steps(f"{run.drawn.name}: putting its heads' outputs into the judge", parts)
        file = f"{run.drawn.name}/restored"
        _once(store, [file], lambda r=run: {"restored": restored_table(r)})  # type: ignore[misc]
    for name, givers in (("across", those), ("restored", generating)):
        found = [store.table(f"{run.drawn.name}/{name}") for run in givers]
        _once(store, [name], lambda n=name, f=found: {n: joined(f, n)})  # type: ignore[misc]


def _once(store: OverrideStore, files: Sequence[str], make: Callable[[], Tables]) -> None:
    """Make and write tables unless all are there; ``files`` name them, folder and all."""
    if store.has(*(f"{file}.csv" for file in files)):
        return
    made = make()
    store.write_tables({file: made[file.split("/")[-1]] for file in files})
