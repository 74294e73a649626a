"""Which conflicts are usable, and the table over many of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import pandas as pd

from lab.data.conflicts import Stated
from lab.errors import LabError
from lab.instruments.conflicts.measured import ALIKE, Measured, Rule, Says
from lab.instruments.statistics import Estimate, mean_estimate, proportion
from lab.roles.conflicts import CELLS, Instruction, expected

REASONS = (
    ALIKE,
    "unknown closed-book",
    "does not follow the passage",
    "does not answer from memory",
)
"""Why a conflict cannot be used, in the order in which they are looked at."""


def unusable(measured: Measured, rule: Rule = "argmax") -> tuple[str, ...]:
    """Why a conflict cannot be used, as REASONS in their order; empty where it can.

    It can where a first token tells the answers apart, the model knows the true one without a
    passage (by the most likely token, whatever the rule), and on the counterfactual passage it
    gives the passage's answer when told to follow the passage and the true one when told to
    answer from its own knowledge.
    """
    _check_rule(rule, [measured])
    if not measured.cells:
        return REASONS[:1]
    failed = (
        False,
        not measured.known,
        measured.cells["passage", "counterfactual"].told(rule) != "counter",
        measured.cells["memory", "counterfactual"].told(rule) != "memory",
    )
    return tuple(reason for reason, there in zip(REASONS, failed, strict=True) if there)


@dataclass(frozen=True, slots=True)
class ConflictTable:
    """The table over many conflicts. Intervals are over subjects where several share one.

    Attributes:
        rule: how an answer was told, see Cell.told.
        n: conflicts measured.
        known: share of the conflicts known closed-book. This and what follows is of those
            whose answers a first token tells apart; ``usable`` is of all.
        says: for each cell the share of decisions for each of memory, counter and other.
        margin: for each cell the mean margin, in logits.
        usable: share of usable conflicts.
        dropped: how many fall out for each reason, each conflict counted at its first one.
        reasons: how many have each reason, whatever else they have.
    """

    rule: Rule
    n: int
    known: Estimate
    says: Mapping[tuple[Instruction, Stated], Mapping[Says, Estimate]]
    margin: Mapping[tuple[Instruction, Stated], Estimate]
    usable: Estimate
    dropped: Mapping[str, int]
    reasons: Mapping[str, int]

    def frame(self) -> pd.DataFrame:
        """One row for each cell, with the answer expected of an obedient and knowing model."""
        rows = [
            {
                "instruction": key[0],
                "passage": key[1],
                "expected": expected(*key),
                **{name: str(estimate) for name, estimate in self.says[key].items()},
                "margin": str(self.margin[key]),
                "n": self.margin[key].n,
            }
            for key in CELLS
        ]
        return pd.DataFrame(rows)

    def sentence(self) -> str:
        """How many conflicts can be used, and why the others cannot."""
        left = self.n - sum(self.dropped.values())
        why = ", ".join(f"{count} {reason}" for reason, count in self.dropped.items() if count)
        return f"{left} of {self.n} conflicts are usable" + (f"; out: {why}." if why else ".")


def conflict_table(measured: Sequence[Measured], rule: Rule = "argmax") -> ConflictTable:
    """The 2 x 2 table, the filter, and their intervals over many conflicts.

    Raises LabError for an unknown rule, or the rule ``generated`` where nothing was generated.
    """
    _check_rule(rule, measured)
    clusters = [m.conflict.cluster for m in measured]
    whole = [m for m in measured if m.cells]
    groups = [m.conflict.cluster for m in whole]
    why = [unusable(m, rule) for m in measured]
    first = Counter(reasons[0] for reasons in why if reasons)
    every = Counter(reason for reasons in why for reason in reasons)
    return ConflictTable(
        rule=rule,
        n=len(measured),
        known=proportion([m.known for m in whole], groups),
        says={
            key: {
                said: proportion([m.cells[key].told(rule) == said for m in whole], groups)
                for said in get_args(Says)
            }
            for key in CELLS
        },
        margin={key: mean_estimate([m.cells[key].margin for m in whole], groups) for key in CELLS},
        usable=proportion([not reasons for reasons in why], clusters),
        dropped={reason: first[reason] for reason in REASONS},
        reasons={reason: every[reason] for reason in REASONS},
    )


def _check_rule(rule: Rule, measured: Sequence[Measured]) -> None:
    if rule not in get_args(Rule):
        raise LabError(f"There is no rule {rule!r}. Choose one of: {', '.join(get_args(Rule))}.")
    if rule == "generated" and not all(m.generated for m in measured):
        raise LabError('The rule "generated" needs generated answers: measure with generate=True.')
