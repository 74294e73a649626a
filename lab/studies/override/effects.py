"""What the chosen heads of a contest do: ablated, cut off, read, here and elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from lab.errors import LabError
from lab.instruments import statistics as S
from lab.instruments.override.ablation import How
from lab.instruments.override.backup import backups
from lab.instruments.override.classify import classify
from lab.instruments.override.decisions import Captured, capture
from lab.instruments.override.generation import generate_ablated
from lab.instruments.override.knockout import WINDOW, Edge, knock_out, layer_windows
from lab.instruments.override.matched import matched_sets
from lab.instruments.override.pairs import RUNS, Head, Pair, clusters_of
from lab.instruments.override.prove import (
    Against,
    Proof,
    prove,
    prove_elsewhere,
    random_sets,
    text_loss,
)
from lab.studies.override.contest import ContestRun, Tables
from lab.studies.override.plan import Unrelated
from lab.studies.override.results import CONTEST_TABLES, heads_text

if TYPE_CHECKING:
    from lab.engine.lens import Lens

log = logging.getLogger("lab")

FEW_SETS = 30
"""Random sets beside mean and resampled ablation; zero ablation, the main effect, has all."""

TEXT_SETS = 20
"""Random sets on plain text, where each costs a whole pass."""

GENERATED, GENERATED_TOKENS = 6, 10
"""Held-out pairs whose texts are generated, and how many tokens."""

DECISION_STRIDE = 3
"""Windows for edges from the decision stand so many layers apart."""
EARLIER_PAIRS = 8
"""Held-out pairs on which edges from earlier tokens are cut, which runs all tokens behind them; in
three windows, early, middle and late layers."""

EDGES: dict[str, tuple[tuple[Edge, ...], tuple[Edge, ...]]] = {
    "generator": (
        (("decision", "context"), ("decision", "question"), ("decision", "instruction")),
        (("question", "context"), ("cue", "context")),
    ),
    "evaluator": (
        (("decision", "context"), ("decision", "question"), ("decision", "candidate")),
        (("question", "context"), ("candidate", "context"), ("cue", "context")),
    ),
}
"""For each role edges from the decision, and from tokens before it."""

BACKUP_PAIRS = 16
"""Held-out pairs on which every later head is ablated in search of backups."""


def proof_tables(c: ContestRun) -> Tables:
    """The table proof."""
    donors = capture(c.model(), c.discovery)
    frames = [pd.DataFrame(columns=CONTEST_TABLES["proof"])]
    for run in (0, 1):
        own = c.found.set_of(run)
        if own:
            frames += _prove_own(c, run, own, donors)
        if set(own) != set(c.heads):
            proof = prove(c.lens(), c.held_out, run, c.heads, None, ablations=("zero",), random=())
            frames.append(_proof(proof, "all", "layers"))
    return {"proof": _joined(frames, "proof")}


def _prove_own(
    c: ContestRun, run: int, heads: Sequence[Head], donors: Captured
) -> list[pd.DataFrame]:
    """A run's own set in three ways, and beside sets that look where its heads look."""
    n, seed, lens = c.recipe.random_sets, c.recipe.seed, c.lens()
    mass = c.table("heads")[f"mass_{RUNS[run]}"].to_numpy(float)
    near = matched_sets(heads, mass.reshape(lens.n_layers, lens.n_heads), n, seed)

    def proven(ablations: Sequence[How], **more: Any) -> Proof:
        return prove(lens, c.held_out, run, heads, donors, ablations=ablations, seed=seed,
                     donor_clusters=clusters_of(c.discovery), **more)  # fmt: skip

    return [
        _proof(proven(("zero",), n_random=n), "run", "layers"),
        _proof(proven(("zero",), random=near), "run", "attention"),
        _proof(proven(("mean", "resample"), n_random=min(n, FEW_SETS)), "run", "layers"),
    ]


def _proof(proof: Proof, which: str, control: str) -> pd.DataFrame:
    frame = proof.to_dataframe()
    return frame.assign(set=which, heads=heads_text(proof.heads), control=control)


def elsewhere_tables(c: ContestRun) -> Tables:
    """The table elsewhere."""
    prompts = {
        "questions": c.around.questions.get(c.drawn.contest.role, Unrelated((), ())),
        "clozes": c.around.known_clozes(c.known, c.discovery_clusters),
    }
    frames = [pd.DataFrame(columns=CONTEST_TABLES["elsewhere"])]
    for name, asked in prompts.items():
        if asked.prompts:
            found = prove_elsewhere(
                c.model(),
                asked.prompts,
                c.heads,
                n_random=c.recipe.random_sets,
                clusters=asked.clusters,
                seed=c.recipe.seed,
            )
            frames.append(found.to_dataframe().assign(prompts=name))
    return {"elsewhere": _joined(frames, "elsewhere")}


def text_tables(c: ContestRun) -> Tables:
    """The table text."""
    if not c.around.texts:
        return {"text": pd.DataFrame(columns=CONTEST_TABLES["text"])}
    lens = c.model()
    n = min(TEXT_SETS, c.recipe.random_sets)
    drawn = random_sets(c.heads, lens.n_layers, lens.n_heads, n, c.recipe.seed)
    losses = text_loss(lens, c.around.texts, [(), c.heads, *drawn])
    rise = losses[1:] - losses[0]
    against = Against(S.mean_estimate(rise[0]), rise[1:].mean(1))
    row = {"measure": "rise", "clean": losses[0].mean(), **against.row()}
    return {"text": pd.DataFrame([row], columns=CONTEST_TABLES["text"])}


def texts_tables(c: ContestRun) -> Tables:
    """The table texts."""
    lens = c.model()
    rows: list[dict[str, Any]] = []
    for number in c.found.held_out[:GENERATED]:
        pair = c.drawn.pairs[number]
        for run in (0, 1):
            row = {
                "conflict": c.drawn.ids[number],
                "run": RUNS[run],
                "question": c.drawn.questions[number],
                "expected": c.drawn.contest.expected[run],
            }
            for moment, heads in (("before", ()), ("after", c.found.set_of(run))):
                row[moment] = _text(lens, pair.asked(run).tokens, heads)
                row[f"{moment}_says"] = c.drawn.says(number, row[moment])
            rows.append(row)
    return {"texts": pd.DataFrame(rows, columns=CONTEST_TABLES["texts"])}


def _text(lens: Lens, tokens: Sequence[int], heads: Sequence[Head]) -> str:
    ids = generate_ablated(lens, tokens, heads, max_new_tokens=GENERATED_TOKENS)
    text = str(lens.tokenizer.decode(list(ids), skip_special_tokens=True))
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def kinds_tables(c: ContestRun) -> Tables:
    """The table kinds; empty where an architecture norms what its heads write."""
    try:
        found = classify(c.model(), c.held_out, c.heads, c.found.sweep.of(c.found.held_out))
    except LabError as error:
        log.info("%s: routing and writing are not told apart. %s", c.drawn.name, error)
        return {"kinds": pd.DataFrame(columns=CONTEST_TABLES["kinds"])}
    return {"kinds": found.to_dataframe()}


def knockout_tables(c: ContestRun) -> Tables:
    """The table knockout; empty where attention edges cannot be cut."""
    lens = c.model()
    if not lens.knockouts:
        log.info("%s: no attention is knocked out: %s", c.drawn.name, "; ".join(lens.notes))
        return {"knockout": pd.DataFrame(columns=CONTEST_TABLES["knockout"])}
    close, early = EDGES[c.drawn.contest.role]
    third = -(-lens.n_layers // 3)
    thirds = [(i, min(i + third, lens.n_layers) - 1) for i in range(0, lens.n_layers, third)]
    near = layer_windows(lens.n_layers, min(WINDOW, lens.n_layers))[1::DECISION_STRIDE]
    plans = ((close, near, c.held_out), (early, thirds, c.held_out[:EARLIER_PAIRS]))
    frames = [pd.DataFrame(columns=CONTEST_TABLES["knockout"])]
    for run in (0, 1):
        for edges, windows, pairs in plans:
            there = [edge for edge in edges if _has(pairs, run, edge)]
            if there:
                frames.append(knock_out(lens, pairs, run, there, windows).to_dataframe())
    return {"knockout": _joined(frames, "knockout")}


def _has(pairs: Sequence[Pair], run: int, edge: Edge) -> bool:
    spans = [{"decision", *pair.asked(run).spans} for pair in pairs]
    return all(name in there for there in spans for name in edge)


def backups_tables(c: ContestRun) -> Tables:
    """The table backups."""
    lens = c.model()
    frames = [pd.DataFrame(columns=CONTEST_TABLES["backups"])]
    for run in (0, 1):
        if own := c.found.set_of(run):
            first = min(layer for layer, _ in own)
            later = [(la, h) for la in range(first + 1, lens.n_layers) for h in range(lens.n_heads)]
            found = backups(lens, c.held_out[:BACKUP_PAIRS], run, own, only=later)
            frames.append(found.to_dataframe().assign(run=RUNS[run]))
    return {"backups": _joined(frames, "backups")}


def _joined(frames: Sequence[pd.DataFrame], name: str) -> pd.DataFrame:
    """Frames one below the other, the first being empty and there for its columns."""
    full = [frame for frame in frames if len(frame)]
    columns = list(CONTEST_TABLES[name])
    return pd.concat(full, ignore_index=True)[columns] if full else frames[0]
