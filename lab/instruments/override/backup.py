"""Backup heads: those that do a head's work only once it is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

from lab.engine.lens import Lens
from lab.instruments import statistics as S
from lab.instruments.override.ablation import Values, ablate_sets
from lab.instruments.override.find import LEAST
from lab.instruments.override.pairs import Head, Pair, clusters_of
from lab.instruments.override.testing import least_p


@dataclass(frozen=True, slots=True, eq=False)
class Backups:
    """Effects of ablating every head alone, and with a set already ablated.

    Attributes:
        heads: heads that matter more with the set gone than before, by the rule of `backups`.
        ablated: the set.
        alone, after: [layer, head], mean shift of the log-odds towards the competing answer when
            the head is ablated in the whole model, and after the set is; NaN where not run.
        adjusted: Benjamini-Hochberg p of the difference after - alone, over all heads.
        enough: whether a lone backup could be significant at all, on so few clusters.
    """

    heads: tuple[Head, ...]
    ablated: tuple[Head, ...]
    alone: Float[np.ndarray, "layer head"]
    after: Float[np.ndarray, "layer head"]
    adjusted: Float[np.ndarray, "layer head"]
    enough: bool

    def to_dataframe(self) -> pd.DataFrame:
        """One row a head: layer, head, alone, after, p_adjusted, backup; enough, always alike."""
        cells = list(np.ndindex(*self.alone.shape))
        return pd.DataFrame(
            {
                "layer": [la for la, _ in cells],
                "head": [h for _, h in cells],
                "alone": self.alone.reshape(-1),
                "after": self.after.reshape(-1),
                "p_adjusted": self.adjusted.reshape(-1),
                "backup": [cell in self.heads for cell in cells],
                "enough": self.enough,
            }
        )


def backups(
    lens: Lens,
    pairs: Sequence[Pair],
    run: int,
    ablated: Sequence[Head],
    *,
    values: Values | None = None,
    level: float = 0.05,
    least: float = LEAST,
    only: Sequence[Head] | None = None,
) -> Backups:
    """Ablate every head alone and after a set, and tell those that stand in for the set.

    Patching cannot see a head that is silent in both runs and wakes when another is ablated
    (self-repair: McGrath et al. 2023, arXiv 2307.15771), so that the search does not list it among
    the heads that decide. Here a head is a backup if ablating it after the set moves the answer
    further towards the competing one, by at least ``least`` of the clean log-odds, and
    significantly more than ablating it alone does.

    With ``only`` the other heads are not run, and have NaN. A head before the first ablated one
    cannot wake, as nothing reaches it.
    """
    every = [(la, h) for la in range(lens.n_layers) for h in range(lens.n_heads)]
    cells = every if only is None else sorted(only)
    gone = tuple(ablated)
    tables = np.full((3, lens.n_layers, lens.n_heads), np.nan)
    if not cells:
        return Backups((), gone, tables[0], tables[1], tables[2], enough=True)
    sets = [(), gone, *((cell,) for cell in cells), *((*gone, cell) for cell in cells)]
    own = ablate_sets(lens, pairs, run, sets, values).own
    alone = own[0] - own[2 : 2 + len(cells)]
    after = own[1] - own[2 + len(cells) :]
    clusters = np.asarray(clusters_of(pairs), dtype=object)
    draws = max(20_000, int(2 * len(cells) / level))
    test = S.sign_flip_test((after - alone).T, clusters, n_draws=draws)
    adjusted = S.benjamini_hochberg(test.p)
    large = least * np.abs(own[0]).mean()
    mean = after.mean(1)
    found = [
        cell
        for i, cell in enumerate(cells)
        if cell not in gone and adjusted[i] <= level and test.mean[i] > 0 and mean[i] >= large
    ]
    tables[:, *np.array(cells).T] = alone.mean(1), mean, adjusted
    enough = least_p(test, draws) * len(cells) <= level
    return Backups(tuple(found), gone, tables[0], tables[1], tables[2], enough)
