"""The generator's heads put into the judge: how much of the balanced accuracy comes back?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from lab.data.conflicts import PASSAGES
from lab.engine.forward import Keep, Trace
from lab.engine.lens import Lens
from lab.engine.packing import Branch
from lab.instruments import statistics as S
from lab.instruments.override.ablation import replace_heads
from lab.instruments.override.contests import Rendered
from lab.instruments.override.decisions import last_row, run_reduced
from lab.instruments.override.pairs import Head
from lab.instruments.override.prove import Against
from lab.instruments.statistics.paired import Draws, auroc_draws, mean_draws
from lab.roles import log_odds
from lab.roles.conflicts import SIDES, Instruction

MOMENTS = ("before", "after", "difference")
MEASURES = ("balanced_accuracy", "auroc", "log_odds")

RIGHT = np.array([[1.0, -1.0], [-1.0, 1.0]])
"""By passage and candidate: 1 where the candidate is what the passage says."""


@dataclass(frozen=True, slots=True, eq=False)
class Restored:
    """A judge's verdicts with sets of heads taken from the generator's run.

    Attributes:
        log_odds: [set, conflict, passage, candidate], of accepting. Set 0 is the unchanged judge,
            set 1 the heads, the others random sets.
        clusters: of the conflicts.
    """

    log_odds: Float[np.ndarray, "set conflict passage candidate"]
    clusters: tuple[str, ...]

    def to_dataframe(self, seed: int = 0) -> pd.DataFrame:
        """One row a moment (before, after, difference) and measure, beside the random sets.

        Measures: balanced_accuracy, auroc (right against wrong candidates, over all conflicts),
        log_odds (mean). A shift of all log-odds alike can change the first and the last, but not
        the AUROC. Columns: moment, measure, and those of `Against.row`.
        """
        rows = []
        for measure in MEASURES:
            before = self._draws(0, measure, seed)
            after = self._draws(1, measure, seed)
            others = np.array([self._value(i, measure) for i in range(2, len(self.log_odds))])
            found = {
                "before": (before, np.zeros(0)),
                "after": (after, others),
                "difference": (after - before, others - before.value),
            }
            rows += [
                {"moment": moment, "measure": measure, **Against(d.estimate(), random).row()}
                for moment, (d, random) in found.items()
            ]
        return pd.DataFrame(rows)

    def _draws(self, number: int, measure: str, seed: int) -> Draws:
        if measure == "auroc":
            right, wrong = self._sides(number)
            doubled = np.repeat(np.asarray(self.clusters, dtype=object), 2)
            return auroc_draws(right, wrong, doubled, seed)
        return mean_draws(self._by_conflict(number, measure), list(self.clusters), seed)

    def _value(self, number: int, measure: str) -> float:
        if measure == "auroc":
            right, wrong = self._sides(number)
            wins = (right[:, None] > wrong).mean() + 0.5 * (right[:, None] == wrong).mean()
            return float(wins)
        return float(self._by_conflict(number, measure).mean())

    def _by_conflict(self, number: int, measure: str) -> np.ndarray:
        odds = self.log_odds[number]
        if measure == "log_odds":
            return np.asarray(odds.mean((1, 2)))
        # Two right and two wrong candidates a conflict: the share of true verdicts is balanced.
        return np.asarray(((odds > 0) == (RIGHT > 0)).mean((1, 2)))

    def _sides(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        odds = self.log_odds[number]
        return odds[:, RIGHT > 0].reshape(-1), odds[:, RIGHT < 0].reshape(-1)


def restore_verdicts(
    lens: Lens,
    asked: Sequence[Rendered],
    sets: Sequence[Sequence[Head]],
    instruction: Instruction = "passage",
) -> Float[np.ndarray, "set conflict passage candidate"]:
    """The judge's log-odds with heads at its decision set to what they put out in the generator's.

    Both are asked about the same passage and question, the generator under ``instruction``. Into
    both candidates' runs on one passage go the same outputs, so that what tells the candidates
    apart must come from the judge. An empty set is the unchanged judge.
    """
    return np.stack([_one(lens, rendered, sets, instruction) for rendered in asked], axis=1)


def _one(
    lens: Lens, rendered: Rendered, sets: Sequence[Sequence[Head]], instruction: Instruction
) -> np.ndarray:
    told = [Branch(rendered.generator[instruction, stated].token_ids) for stated in PASSAGES]
    outputs: list[Any] = run_reduced(lens, told, Keep(False, heads=True), _heads)
    branches = []
    for stated, values in zip(PASSAGES, outputs, strict=True):
        for side in SIDES:
            prompt = rendered.judge[stated, side]
            branches += [
                Branch(prompt.token_ids, replace_heads(heads, [prompt.decision], values))
                for heads in sets
            ]
    odds = run_reduced(
        lens, branches, Keep(), lambda _, trace: log_odds(last_row(trace), rendered.verdict)
    )
    shape = (len(PASSAGES), len(SIDES), len(sets))
    return np.moveaxis(np.array(odds, dtype=float).reshape(shape), -1, 0)


def _heads(_: int, trace: Trace) -> Any:
    assert trace.heads is not None
    return trace.heads[:, :, 0].clone()


def verdict_table(
    log_odds: Float[np.ndarray, "conflict passage candidate"], clusters: Sequence[str]
) -> dict[str, S.Estimate]:
    """Balanced accuracy and AUROC of a judge over all four verdicts of each conflict."""
    alone = Restored(np.asarray(log_odds)[None], tuple(clusters))
    return {
        measure: alone._draws(0, measure, 0).estimate()
        for measure in ("balanced_accuracy", "auroc")
    }
