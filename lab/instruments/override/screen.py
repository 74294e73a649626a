"""Attribution patching: a first-order estimate of every patch, and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from scipy import stats

from lab.engine.gradients import head_gradients
from lab.engine.lens import Lens
from lab.instruments.names import DIRECTIONS
from lab.instruments.override.decisions import Captured, capture
from lab.instruments.override.pairs import Pair
from lab.instruments.override.sweep import Sweep


@dataclass(frozen=True, slots=True, eq=False)
class Screen:
    """First-order estimates of `Sweep.shift`.

    Attributes:
        shift: [pair, direction, layer, head], towards the giving prompt's answer, log-odds.
    """

    shift: Float[np.ndarray, "pair direction layer head"]

    def agreement(self, sweep: Sweep, top: int = 10) -> pd.DataFrame:
        """How the estimates rank heads beside the exact sweep of the same pairs.

        One row a direction: direction, spearman (of the mean shifts over heads), top and shared
        (how many of the ``top`` heads by exact |shift| are among as many by estimate), largest
        (the exact shift of the head that the estimate misjudges most) and estimated (its estimate).
        """
        rows = []
        for way, direction in enumerate(DIRECTIONS):
            exact, rough = (x.shift[:, way].mean(0).reshape(-1) for x in (sweep, self))
            best = [set(np.argsort(-np.abs(x))[:top].tolist()) for x in (exact, rough)]
            worst = int(np.abs(exact - rough).argmax())
            rows.append(
                {
                    "direction": direction,
                    "spearman": float(stats.spearmanr(exact, rough).statistic),
                    "top": top,
                    "shared": len(best[0] & best[1]),
                    "largest": float(exact[worst]),
                    "estimated": float(rough[worst]),
                }
            )
        return pd.DataFrame(rows)


def attribution_screen(
    lens: Lens, pairs: Sequence[Pair], captured: Captured | None = None
) -> Screen:
    """Estimate every head's patch by (giving output - taking output) times the gradient.

    Attribution patching (Nanda 2023; Syed et al. 2023, arXiv 2310.10348) needs one backward pass a
    run, whatever the number of heads. Here exact patches cost about as much, so that it is of use
    only as a comparison, or for models whose heads are too many to patch. It fails where attention
    is saturated: the gradient is then nearly zero, though a patch changes everything.
    """
    kept = captured or capture(lens, pairs)
    shifts = []
    for number, pair in enumerate(pairs):
        for giving, sign in ((0, 1.0), (1, -1.0)):
            taking = 1 - giving
            gradient = head_gradients(lens, pair.asked(taking).tokens, pair.answers)
            moved = (kept.heads[number, giving] - kept.heads[number, taking]).to(gradient)
            shifts.append(sign * torch.einsum("lhd,lhd->lh", moved, gradient))
    table = torch.stack(shifts).float().cpu().numpy()
    return Screen(table.reshape(len(pairs), 2, *table.shape[1:]))
