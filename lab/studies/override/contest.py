"""What is known of a contest once its heads are chosen: the tables of the search itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lab.instruments import statistics as S
from lab.instruments.names import DIRECTIONS
from lab.instruments.override.ablation import ablate_sets
from lab.instruments.override.contests import Rendered
from lab.instruments.override.find import Found, candidate_heads
from lab.instruments.override.matched import attention_mass
from lab.instruments.override.pairs import RUNS, Head, Pair
from lab.instruments.override.prove import random_sets
from lab.instruments.override.screen import attribution_screen
from lab.instruments.override.sweep import window_of
from lab.instruments.override.testing import significant_heads
from lab.studies.override.plan import Surroundings
from lab.studies.override.recipe import OverrideRecipe
from lab.studies.override.results import CONTEST_TABLES, heads_text
from lab.studies.override.search import MOST, Drawn, search_swapped
from lab.studies.override.store import OverrideStore

if TYPE_CHECKING:
    from lab.engine.lens import Lens

Tables = dict[str, pd.DataFrame]

CURVE_KS = (1, 2, 4, 8, 16)
CURVE_SETS, CURVE_PAIRS = 30, 16
"""Random sets for these lengths of the curve only: so many, on so many held-out pairs."""

SPLITS = 20
"""Other splits on which the test is repeated. No model is run for it."""

SCREENED = 8
"""Pairs on which attribution patching is compared with the exact sweep."""


@dataclass(frozen=True, slots=True, eq=False)
class ContestRun:
    """A searched contest, ready to be reported on.

    Attributes:
        store: where its tables go.
        drawn: its pairs.
        recipe: of the study.
        found: what the search chose.
        lens: loads the model.
        around: unrelated prompts and texts.
        known: for each of its clozes whether the model knows the answer.
        conflicts: the prompts of all conflicts of the study, used or not.
    """

    store: OverrideStore
    drawn: Drawn
    recipe: OverrideRecipe
    found: Found
    lens: Callable[[], Lens]
    around: Surroundings
    known: tuple[bool, ...]
    conflicts: tuple[Rendered, ...]

    def model(self) -> Lens:
        """The model, without anything remembered, so that no last bit depends on what ran."""
        lens = self.lens()
        lens.forget()
        return lens

    @property
    def heads(self) -> tuple[Head, ...]:
        """The chosen heads."""
        return self.found.heads

    @property
    def discovery(self) -> list[Pair]:
        """The pairs that heads were chosen on."""
        return [self.drawn.pairs[i] for i in self.found.chosen_on]

    @property
    def held_out(self) -> list[Pair]:
        """The pairs that are reported on."""
        return [self.drawn.pairs[i] for i in self.found.held_out]

    @property
    def discovery_clusters(self) -> set[str]:
        """The clusters that heads were chosen on."""
        return {pair.cluster for pair in self.discovery}

    def table(self, name: str) -> pd.DataFrame:
        """A table of this contest that is there."""
        return self.store.table(f"{self.drawn.name}/{name}")


def heads_tables(c: ContestRun) -> Tables:
    """The tables heads and layers."""
    found, sweep = c.found, c.found.sweep
    held, part = sweep.of(found.held_out), sweep.of(found.chosen_on)
    again = significant_heads(held.shift, held.clusters)
    means = S.bootstrap_means(held.shift, np.asarray(held.clusters, dtype=object))
    with np.errstate(all="ignore"):
        known = (~np.isnan(held.restoration)).sum(0)
        restored = np.nansum(held.restoration, 0) / known
    mass = attention_mass(c.model(), c.discovery)
    tested = found.tested
    kept = set(candidate_heads(part)[1])
    cells = list(np.ndindex(*tested.p.shape[1:]))
    columns: dict[str, Any] = {"layer": [la for la, _ in cells], "head": [h for _, h in cells]}
    for way, name in enumerate(DIRECTIONS):
        columns |= {
            name: tested.mean[way].ravel(),
            f"p_{name}": tested.p[way].ravel(),
            f"q_{name}": tested.adjusted[way].ravel(),
            f"held_{name}": means.value[way].ravel(),
            f"held_{name}_low": means.low[way].ravel(),
            f"held_{name}_high": means.high[way].ravel(),
            f"held_{name}_p": again.p[way].ravel(),
            f"held_{name}_restoration": restored[way].ravel(),
        }
    published = found.published.to_dataframe()
    sets = {
        "tested": set(tested.heads),
        "candidate": kept,
        "in_a": set(found.set_of(0)),
        "in_b": set(found.set_of(1)),
        "half_a": set(found.set_of(0, 0.5)),
        "half_b": set(found.set_of(1, 0.5)),
        "chosen": set(found.heads),
    }
    columns |= {name: [cell in there for cell in cells] for name, there in sets.items()}
    columns |= {"published": list(published["label"]), "score": list(published["score"])}
    columns |= {f"mass_{RUNS[run]}": mass[run].ravel() for run in (0, 1)}
    frame = pd.DataFrame(columns)[list(CONTEST_TABLES["heads"])]
    return {"heads": frame, "layers": _layers(c)}


def _layers(c: ContestRun) -> pd.DataFrame:
    table = c.found.sweep.of(c.found.held_out).to_dataframe()
    table = table[table["site"] != "head"]
    part = c.found.sweep.of(c.found.chosen_on)
    windows = {name: window_of(part, way) for way, name in enumerate(DIRECTIONS)}
    inside = [
        (w := windows[direction]) is not None and w.first <= layer <= w.last
        for direction, layer in zip(table["direction"], table["layer"], strict=True)
    ]
    return table.assign(window=inside)[list(CONTEST_TABLES["layers"])]


def curve_tables(c: ContestRun) -> Tables:
    """The table curve."""
    lens, frames = c.model(), []
    for run in (0, 1):
        chosen = c.found.chosen[run]
        frame = chosen.to_dataframe()
        lengths = _lengths(len(chosen.ranking))
        bands = {k: _band(lens, c, run, chosen.ranking[:k]) for k in lengths}
        for column in ("random_mean", "random_low", "random_high", "random_sets"):
            frame[column] = [bands.get(k, {}).get(column, np.nan) for k in frame["k"]]
        frames.append(frame)
    return {"curve": pd.concat(frames, ignore_index=True)[list(CONTEST_TABLES["curve"])]}


def _lengths(n: int) -> list[int]:
    return sorted({k for k in (*CURVE_KS, n) if 0 < k <= n})


def _band(lens: Lens, c: ContestRun, run: int, heads: Sequence[Head]) -> dict[str, float]:
    """Mean and middle 95 % of the effects of random sets of the layers; empty without any."""
    n = min(CURVE_SETS, c.recipe.random_sets)
    sets = random_sets(heads, lens.n_layers, lens.n_heads, n, c.recipe.seed)
    if not sets:
        return {}
    own = ablate_sets(lens, c.held_out[:CURVE_PAIRS], run, [(), *sets]).own
    effects = (own[0] - own[1:]).mean(1)
    low, high = np.percentile(effects, [2.5, 97.5])
    return {
        "random_mean": float(effects.mean()),
        "random_low": float(low),
        "random_high": float(high),
        "random_sets": len(sets),
    }


def stability_tables(c: ContestRun) -> Tables:
    """The tables stability and splits."""
    swapped = search_swapped(c.store, c.drawn, c.recipe, c.found.sweep, c.lens)
    counts: dict[Head, int] = dict.fromkeys((*c.heads, *swapped.heads), 0)
    for seed in range(c.recipe.seed + 1, c.recipe.seed + 1 + SPLITS):
        for head in candidate_heads(c.found.sweep.of(c.drawn.split(seed)))[1][:MOST]:
            counts[head] = counts.get(head, 0) + 1
    stability = [
        (*head, n, SPLITS, n / SPLITS, head in c.heads, head in swapped.heads)
        for head, n in sorted(counts.items())
    ]
    first, second = set(c.heads), set(swapped.heads)
    agree = (
        S.jaccard(first, second),
        S.expected_jaccard(c.found.tested.p[0].size, len(first), len(second)),
    )
    splits = [
        (name, len(found.chosen_on), heads_text(found.heads), *agree, found.tested.enough)
        for name, found in (("discovery", c.found), ("held_out", swapped))
    ]
    return {
        "stability": pd.DataFrame(stability, columns=CONTEST_TABLES["stability"]),
        "splits": pd.DataFrame(splits, columns=CONTEST_TABLES["splits"]),
    }


def screen_tables(c: ContestRun) -> Tables:
    """The table screen."""
    chosen = c.found.chosen_on[:SCREENED]
    pairs = [c.drawn.pairs[i] for i in chosen]
    frame = attribution_screen(c.model(), pairs).agreement(c.found.sweep.of(chosen))
    return {"screen": frame.assign(n=len(pairs))[list(CONTEST_TABLES["screen"])]}
