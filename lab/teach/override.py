"""The exercises of notebook 07."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.teach.compare import Mistake, fault, per_cent
from lab.teach.exercise import Exercise

if TYPE_CHECKING:
    from lab.data.conflicts import Stated
    from lab.instruments.conflicts import Measured
    from lab.instruments.override.ablation import Outcomes
    from lab.roles.conflicts import Instruction

FOLLOWED: tuple[Instruction, Stated] = ("passage", "counterfactual")
"""Told to follow the passage, which is altered."""

TRUE: tuple[Instruction, Stated] = ("passage", "original")
OWN: tuple[Instruction, Stated] = ("memory", "counterfactual")


def _usable(answer: Any, measured: Sequence[Measured]) -> str | None:
    cells = [m.cells for m in measured if m.cells]
    follows = np.array([c[FOLLOWED].says == "counter" for c in cells])
    agrees = np.array([c[TRUE].says == "memory" for c in cells])
    resists = np.array([c[OWN].says == "memory" for c in cells])
    by_sign = [c[FOLLOWED].margin < 0 < c[TRUE].margin for c in cells]
    truth = int((follows & agrees).sum())
    mistakes = [
        Mistake((follows & resists).sum(), "That is for the two instructions, run a and run b on "
                "the altered passage. Here both runs are told to follow the passage."),
        Mistake(follows.sum(), "That looks at the altered passage only: the true one must be "
                "followed, too."),
        Mistake(agrees.sum(), "That looks at the true passage only, where memory alone would do."),
        Mistake(sum(by_sign), "That goes by the sign of the margin, which has no “neither”: take "
                "the most likely token of all (`says`)."),
        Mistake(truth / max(1, len(measured)), "That is the share; the number is asked for."),
        Mistake(len(measured), "That is how many were measured."),
    ]  # fmt: skip
    return fault(answer, truth, mistakes)


def _flips(answer: Any, outcomes: Outcomes) -> str | None:
    before, after = (np.asarray(row) for row in outcomes.said[:2])
    asked = before == 0
    if not asked.any():
        return "None of these pairs was answered as asked, so that none can flip: take more pairs."
    truth = float((after[asked] == 1).mean())
    mistakes = [
        Mistake((after[asked] == 2).mean(), "That is damage: neither of the two answers is said. "
                "A flip says the competing one."),
        Mistake((after[asked] != 0).mean(), "That counts damage as a flip: only the competing "
                "answer, 1, is one."),
        Mistake((after[asked] == 0).mean(), "That is the share that stays with its answer."),
        Mistake((outcomes.own[1] < 0).mean(), "That goes by the sign of the log-odds: take the "
                "most likely token, which is in `said`."),
        Mistake((outcomes.said[2][asked] == 1).mean(), "That is the first random set: row 1 is "
                "the set that was found."),
        Mistake((np.asarray(outcomes.said[2:])[:, asked] == 1).mean(), "That is the mean over the "
                "random sets: row 1 is the set that was found."),
        Mistake((after == 1).mean(), "Divide by the pairs that were first answered as asked "
                "(row 0): no other can flip."),
        Mistake((after[asked] == 1).sum(), "That is their number; the share is asked for."),
        per_cent(truth),
    ]  # fmt: skip
    return fault(answer, truth, mistakes)


def _chance(answer: Any, outcomes: Outcomes) -> str | None:
    shift = (outcomes.own[0] - outcomes.own[1:]).mean(1)
    found, drawn = shift[0], shift[1:]
    more, n = int((drawn >= found).sum()), len(drawn)
    if not n:
        return "There are no random sets to compare with."
    mistakes = [
        Mistake(more / n, "No p-value is zero with so many random sets: the set itself counts as "
                "one of them, above and below the line."),
        Mistake((1 + more) / n, "Count the set itself below the line, too."),
        Mistake(more / (n + 1), "Count the set itself above the line, too."),
        Mistake((drawn < found).mean(), "That is the share of random sets that do less."),
        Mistake((1 + (drawn < found).sum()) / (1 + n), "That counts random sets that do less: "
                "count those that do at least as much."),
        Mistake((1 + (drawn <= found).sum()) / (1 + n), "The sign: a shift towards the competing "
                "answer is the log-odds before (row 0) minus those after."),
        Mistake(more, "That is how many do at least as much."),
    ]  # fmt: skip
    return fault(answer, (1 + more) / (1 + n), mistakes)


EXERCISES = (
    Exercise(
        "07.usable",
        "How many of the conflicts can be used to compare the two passages: told to follow the "
        "passage, the most likely token begins the passage's answer on both?",
        ("measured",),
        _usable,
        "Where both runs say the same, there is nothing to explain; say how many were left out.",
    ),
    Exercise(
        "07.flips",
        "Of the held-out pairs that were answered as asked: what share turns to the competing "
        "answer when the set is off?",
        ("outcomes",),
        _flips,
        "A model that says something else altogether was damaged, not persuaded.",
    ),
    Exercise(
        "07.chance",
        "How often do random sets of the same layers move the log-odds at least as far, as a "
        "p-value?",
        ("outcomes",),
        _chance,
        "A hundred sets can show a p of .01, and no less.",
    ),
)
