"""Contests beside each other: shared heads, heads of one ablated in another, and put into it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd

from lab.instruments.override.overlap import overlap
from lab.instruments.override.pairs import RUNS
from lab.instruments.override.prove import prove, random_sets
from lab.instruments.override.restored import Restored, restore_verdicts
from lab.studies.override.contest import ContestRun
from lab.studies.override.results import TABLES

ACROSS_SETS, ACROSS_PAIRS = 30, 16
"""Random sets and pairs on which heads of one contest are ablated in another."""
LEAST_ACROSS = 5
"""Fewer pairs of another contest say nothing."""

RESTORED_SETS, RESTORED_CONFLICTS = 30, 32
"""Random sets and conflicts on which outputs are put from the generator's run into the judge's."""


def crossing_table(runs: Sequence[ContestRun]) -> pd.DataFrame:
    """The table crossing: each two contests compared, from their sweeps."""
    rows = [
        {
            "first": x.drawn.name,
            "second": y.drawn.name,
            "first_role": x.drawn.contest.role,
            "second_role": y.drawn.contest.role,
            **overlap(
                x.heads,
                y.heads,
                x.found.sweep.shift.mean(1),
                y.found.sweep.shift.mean(1),
                x.drawn.clusters,
                y.drawn.clusters,
                x.recipe.seed,
            )
            .to_dataframe()
            .iloc[0],
        }
        for x, y in combinations(runs, 2)
    ]
    return pd.DataFrame(rows, columns=TABLES["crossing"])


def across_table(x: ContestRun, others: Sequence[ContestRun]) -> pd.DataFrame:
    """The rows of the table across with the heads of one contest."""
    frames = [pd.DataFrame(columns=TABLES["across"])]
    sets = {RUNS[run]: x.found.set_of(run) for run in (0, 1) if x.found.set_of(run)}
    lens = x.model()
    for y in others:
        pairs = [p for p in y.drawn.pairs if p.cluster not in x.discovery_clusters]
        if len(pairs) < LEAST_ACROSS:
            continue
        for (name, heads), run in product(sets.items(), (0, 1)):
            found = prove(
                lens,
                pairs[:ACROSS_PAIRS],
                run,
                heads,
                None,
                ablations=("zero",),
                n_random=min(ACROSS_SETS, x.recipe.random_sets),
                seed=x.recipe.seed,
            )
            named = {"heads_of": x.drawn.name, "set": name, "pairs_of": y.drawn.name}
            frames.append(found.to_dataframe().assign(**named))
    return joined(frames, "across")


def restored_table(x: ContestRun) -> pd.DataFrame:
    """The rows of the table restored with the heads of one generator contest."""
    clusters = [rendered.cluster for rendered in x.conflicts]
    free = [i for i, cluster in enumerate(clusters) if cluster not in x.discovery_clusters]
    order = np.random.default_rng([x.recipe.seed, 59]).permutation(free)
    kept = sorted(order[:RESTORED_CONFLICTS].astype(int).tolist())
    if len(kept) < LEAST_ACROSS:
        return pd.DataFrame(columns=TABLES["restored"])
    lens = x.model()
    n = min(RESTORED_SETS, x.recipe.random_sets)
    drawn = random_sets(x.heads, lens.n_layers, lens.n_heads, n, x.recipe.seed)
    odds = restore_verdicts(lens, [x.conflicts[i] for i in kept], [(), x.heads, *drawn])
    found = Restored(odds, tuple(clusters[i] for i in kept))
    frame = found.to_dataframe(x.recipe.seed).assign(contest=x.drawn.name)
    return frame[list(TABLES["restored"])]


def joined(frames: Sequence[pd.DataFrame], name: str) -> pd.DataFrame:
    """Frames one below the other, with the columns of a table, also where all are empty."""
    full = [frame for frame in frames if len(frame)]
    columns = list(TABLES[name])
    return pd.concat(full, ignore_index=True)[columns] if full else pd.DataFrame(columns=columns)
