"""An override study in which heads are found, of a planted model, and what it is made from.

A planted model's vocabulary cannot hold conflicts in words, so its pairs stand for those of two
contests, and the tables over conflicts come from a tiny random model.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest import mock

import torch

from lab.data.conflicts import PASSAGES
from lab.engine.lens import Lens
from lab.engine.planted import SPANS, WORDS, Planted, planted_model, token_ids
from lab.instruments.override.contests import CONTESTS, Outcome, Rendered
from lab.instruments.override.decisions import capture
from lab.instruments.override.pairs import Pair, planted_pairs
from lab.roles import Prompt, VerdictTokens
from lab.roles.conflicts import INSTRUCTIONS, SIDES
from lab.studies.override.plan import Surroundings, Unrelated
from lab.studies.override.recipe import OverrideRecipe
from lab.studies.override.results import FOLDER, OverrideResults, read_override
from lab.studies.override.run import Asked, run_contests
from lab.studies.override.search import Drawn
from lab.studies.override.steps import Show
from lab.studies.override.store import OverrideStore, open_override
from lab.studies.override.told import Told
from lab.studies.provenance import versions
from lab.studies.store import PROVENANCE

PAIRS = 20
RECIPE = OverrideRecipe("planted", pairs=PAIRS, random_sets=20)
FEW = {"GENERATED": 2, "GENERATED_TOKENS": 1, "TEXT_SETS": 3}
"""Planted models never end a text, and each text and random set costs a run of its own."""
PLANTED_CONTESTS = {"instruction": 1, "candidate": 2}
"""The contests that have pairs, and the seeds of these."""


@cache
def planted() -> Planted:
    """The model; its heads that decide are ``planted().heads``."""
    return planted_model(3, 4, 1)


@cache
def pairs_of(contest: str) -> tuple[Pair, ...]:
    """The pairs of a contest."""
    return tuple(planted_pairs(planted(), PAIRS, PLANTED_CONTESTS[contest]))


@dataclass(frozen=True)
class Material:
    """What `run_contests` runs on."""

    asked: Asked
    told: dict[str, Told]
    drawn: dict[str, Drawn]


@cache
def material() -> Material:
    """The contests, the unrelated prompts, and conflicts for the judge."""
    drawn = {name: _drawn(name) for name in PLANTED_CONTESTS}
    told = {name: _told(name) for name in CONTESTS}
    conflicts = tuple(_rendered(pair) for pair in planted_pairs(planted(), 24, 5))
    words = [token_ids("start", "read", f"filler{i}", "cue") for i in range(6)]
    unrelated = Unrelated(tuple(words), tuple(f"place{i}" for i in range(6)))
    around = Surroundings(
        {"generator": unrelated, "evaluator": unrelated},
        Unrelated(tuple(words), tuple(f"fact{i}" for i in range(6))),
        tuple((*row, *row) for row in words[:3]),
    )
    return Material(Asked(conflicts, (True,) * 6, around), told, drawn)


def _drawn(name: str) -> Drawn:
    pairs = pairs_of(name)

    def says(number: int, text: str) -> str:
        answers = [WORDS[ids[0]] for ids in pairs[number].answers]
        return CONTESTS[name].expected[answers.index(text)] if text in answers else "other"

    ids = tuple(f"{name}-{i}" for i in range(len(pairs)))
    questions = tuple(f"What of {pair.cluster}?" for pair in pairs)
    return Drawn(CONTESTS[name], pairs, ids, questions, says)


def _told(name: str) -> Told:
    if name not in PLANTED_CONTESTS:
        outcomes = (Outcome((0.5, 0.1), ("run b gives the other answer",)),) * 24
        clusters = tuple(f"subject{i}" for i in range(24))
        return Told(CONTESTS[name], outcomes, clusters, (), (), RECIPE)
    pairs = pairs_of(name)
    odds = capture(planted().lens, pairs).difference
    outcomes = tuple(Outcome((float(a), float(b)), ()) for a, b in odds)
    every = tuple(range(len(pairs)))
    return Told(CONTESTS[name], outcomes, tuple(p.cluster for p in pairs), every, every, RECIPE)


def _rendered(pair: Pair) -> Rendered:
    """A conflict whose judge accepts with the remembered answer and rejects with the read one."""

    def prompt(run: int) -> Prompt:
        tokens = pair.asked(run).tokens
        spans = [next(s for s, where in SPANS.items() if i in where) for i in range(len(tokens))]
        offsets = tuple((i, i + 1) for i in range(len(tokens)))
        return Prompt("planted", pair.cluster, " " * len(tokens), tokens, offsets, tuple(spans))

    return Rendered(
        {(name, stated): prompt(i) for name in INSTRUCTIONS for i, stated in enumerate(PASSAGES)},
        {(stated, side): prompt(1 - i) for stated in PASSAGES for i, side in enumerate(SIDES)},
        {"memory": pair.answers[0], "counter": pair.answers[1]},
        VerdictTokens(("remembered", "read"), *pair.answers),
        pair.cluster,
    )


def run_planted(
    folder: Path, show: Show | None = None, model: Callable[[], Lens] | None = None
) -> OverrideStore:
    """Run the planted study into a folder as far as it is not there yet."""
    torch.set_num_threads(1)  # sums in another order differ in the last bit
    store = open_override(folder, RECIPE, {})
    m = material()
    loaded = model or (lambda: planted().lens)
    with mock.patch.multiple("lab.studies.override.effects", **FEW):
        run_contests(store, RECIPE, m.asked, m.told, m.drawn, loaded, show)
    return store


@cache
def finished() -> Path:
    """The folder of a finished study, built once a session and not to be changed."""
    folder = Path(tempfile.mkdtemp(prefix="planted-override-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    build_override(folder)
    return folder


def build_override(folder: Path, conflicts: Path | None = None) -> OverrideResults:
    """A finished study with every table; those over conflicts are copied from another study."""
    store = run_planted(folder)
    for name in ("conflicts", "verdicts", "fallout"):
        if conflicts is not None:
            shutil.copy(conflicts / FOLDER / f"{name}.csv", store.folder / f"{name}.csv")
    lens = planted().lens
    store.write_json(
        PROVENANCE,
        {
            "title": "Override heads of a planted model",
            "model": {
                "name": "planted", "source": "in memory", "sha256": "", "dtype": "float32",
                "architecture": lens.architecture, "n_layers": lens.n_layers,
                "n_heads": lens.n_heads, "parameters": lens.parameters,
            },
            "adapter": None,
            "recipe": RECIPE.as_dict(),
            "prompting": {},
            "templates": {},
            "verdict_words": ["remembered", "read"],
            "contests": {name: list(contest.words) for name, contest in CONTESTS.items()},
            "versions": versions(),
            "seed": 0,
            "started": "2026-01-01T00:00:00+00:00",
            "finished": "2026-01-01T00:10:00+00:00",
            "command": "lab override --out FOLDER",
            "excluded": [],
            "notes": [],
            "data": [{"spec": "planted", "licence": "part of this project, under its licence"}],
        },
    )  # fmt: skip
    return read_override(folder)
