"""MuSiQue metrics: answer, supporting paragraphs, and the grouped score of MuSiQue-Full.

Definitions: Trivedi et al. 2022, as in the benchmark's published evaluation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from lab.data.metrics import squad
from lab.data.metrics.hotpotqa import harmonic


def answer(prediction: str, golds: Sequence[str]) -> tuple[float, float]:
    """(exact match, F1) by the SQuAD functions, each the best over the answer and its aliases."""
    return (
        max(squad.exact_match(prediction, gold) for gold in golds),
        max(squad.f1(prediction, gold) for gold in golds),
    )


def support_f1(prediction: Collection[Any], gold: Collection[Any]) -> float:
    """F1 of the predicted supporting paragraphs' indices; 1 if both sets are empty."""
    ours, theirs = set(prediction), set(gold)
    if not ours and not theirs:
        return 1.0
    shared = len(ours & theirs)
    return harmonic(shared / len(ours) if ours else 0.0, shared / len(theirs) if theirs else 0.0)


def group_score(
    value: float, predicted_sufficient: Sequence[bool], sufficient: Sequence[bool]
) -> float:
    """The answer (or support) F1 of a question and its unanswerable twin taken together.

    ``value``, the F1 on the answerable twin, counts only if the sufficiency of the passages is
    judged rightly for every member of the group; otherwise the group scores 0.
    """
    right = list(map(bool, predicted_sufficient)) == list(map(bool, sufficient))
    return value if right else 0.0
