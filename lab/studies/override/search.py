"""Searching one contest for heads: patches pair by pair, the search, and both as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.instruments.override.contests import Contest, discovery_share
from lab.instruments.override.find import (
    Found,
    candidate_heads,
    mean_restoration,
    open_search,
)
from lab.instruments.override.pairs import Head, Pair, clusters_of, split_by_cluster
from lab.instruments.override.select import Chosen
from lab.instruments.override.sweep import Sweep, patch_sweep
from lab.instruments.override.testing import published_rule
from lab.studies.override.recipe import OverrideRecipe
from lab.studies.override.store import OverrideStore

if TYPE_CHECKING:
    from lab.engine.lens import Lens

MOST = 20
"""So many of the heads that pass the test are ablated in search of the smallest sets."""

Tell = Callable[[str], None]
"""Called with what is done now, before each step."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A contest with the pairs that it uses.

    Attributes:
        contest: which.
        pairs: the used pairs.
        ids, questions: of their conflicts.
        says: what a generated text says, by the pair's number: see the table "texts".
    """

    contest: Contest
    pairs: tuple[Pair, ...]
    ids: tuple[str, ...]
    questions: tuple[str, ...]
    says: Callable[[int, str], str]

    @property
    def name(self) -> str:
        """The contest's name, and that of its folder."""
        return self.contest.name

    @property
    def clusters(self) -> list[str]:
        """The cluster of each pair."""
        return clusters_of(self.pairs)

    def split(self, seed: int) -> np.ndarray:
        """Mask of the pairs to choose heads on."""
        n = len({c or f"\0{i}" for i, c in enumerate(self.clusters)})
        return split_by_cluster(self.clusters, seed, discovery_share(n))


SWEEP_ARRAYS = ("clean", "clean_top", "head", "head_top", "layer", "layer_top")


def patch_pairs(store: OverrideStore, drawn: Drawn, lens: Callable[[], Lens], tell: Tell) -> Sweep:
    """The patches of all pairs, each pair run once and stored."""
    for number, pair in enumerate(drawn.pairs):
        name = _patches(drawn, number)
        tell(f"{drawn.name}: patching pair {number + 1} of {len(drawn.pairs)}")
        if not store.has(name):
            model = lens()
            model.forget()
            sweep = patch_sweep(model, [pair])
            store.write_arrays(name, {field: getattr(sweep, field) for field in SWEEP_ARRAYS})
    return _sweep(store, drawn)


def _patches(drawn: Drawn, number: int) -> str:
    """The file of one pair's patches, named by its place among the used pairs."""
    return f"{drawn.name}/patches/{number:04d}.npz"


def _sweep(store: OverrideStore, drawn: Drawn) -> Sweep:
    parts = [store.arrays(_patches(drawn, i)) for i in range(len(drawn.pairs))]
    stacked = {field: np.concatenate([part[field] for part in parts]) for field in SWEEP_ARRAYS}
    answers = tuple(pair.answers for pair in drawn.pairs)
    return Sweep(**stacked, answers=answers, clusters=tuple(drawn.clusters))


def search_contest(
    store: OverrideStore,
    drawn: Drawn,
    recipe: OverrideRecipe,
    sweep: Sweep,
    lens: Callable[[], Lens],
) -> Found:
    """The heads of a contest, chosen on its discovery pairs, from the file if it is there."""
    return _found(store, drawn, f"{drawn.name}/found.json", sweep, drawn.split(recipe.seed), lens)


def search_swapped(
    store: OverrideStore,
    drawn: Drawn,
    recipe: OverrideRecipe,
    sweep: Sweep,
    lens: Callable[[], Lens],
) -> Found:
    """The same search on the held-out pairs, to see whether it finds the same heads."""
    other = ~drawn.split(recipe.seed)
    return _found(store, drawn, f"{drawn.name}/swapped.json", sweep, other, lens)


def _found(
    store: OverrideStore,
    drawn: Drawn,
    name: str,
    sweep: Sweep,
    discovery: np.ndarray,
    lens: Callable[[], Lens],
) -> Found:
    if not store.has(name):
        model = lens()
        model.forget()
        search = open_search(model, drawn.pairs, sweep=sweep)
        found = search.choose(discovery=discovery, most=MOST)
        store.write_json(name, {"runs": [_data(chosen) for chosen in found.chosen]})
    chosen = [_chosen(data, discovery, drawn) for data in store.json(name)["runs"]]
    part = sweep.of(discovery)
    return Found(
        tuple(sorted({head for c in chosen for head in c.sets[max(c.sets)]})),
        sweep,
        discovery,
        candidate_heads(part)[0],
        published_rule(mean_restoration(part)),
        (chosen[0], chosen[1]),
    )


def _data(chosen: Chosen) -> dict[str, Any]:
    return {
        "run": chosen.run,
        "ranking": chosen.ranking,
        "curve": chosen.curve.tolist(),
        "greedy": chosen.greedy,
        "largest": chosen.largest,
        "sets": {str(share): heads for share, heads in chosen.sets.items()},
    }


def _chosen(data: Mapping[str, Any], discovery: np.ndarray, drawn: Drawn) -> Chosen:
    return Chosen(
        int(data["run"]),
        _heads(data["ranking"]),
        np.array(data["curve"], dtype=float),
        _heads(data["greedy"]),
        float(data["largest"]),
        {float(share): _heads(heads) for share, heads in data["sets"].items()},
        discovery,
        tuple(drawn.clusters),
    )


def _heads(data: Sequence[Sequence[int]]) -> tuple[Head, ...]:
    return tuple((int(layer), int(head)) for layer, head in data)
