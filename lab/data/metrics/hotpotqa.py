"""HotpotQA metrics: answer, supporting facts, and both jointly.

Definitions: Yang et al. 2018, as in the benchmark's published evaluation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from lab.data.metrics.squad import exact_match, normalise

_CLOSED = frozenset({"yes", "no", "noanswer"})

Fact = tuple[str, int]
"""A supporting sentence: paragraph title and index of the sentence."""


class Overlap(NamedTuple):
    """Exact match, F1, precision and recall, each in [0, 1]."""

    em: float
    f1: float
    precision: float
    recall: float


def answer(prediction: str, gold: str) -> Overlap:
    """How well an answer matches the gold one.

    Normalised as in SQuAD. Where either side is "yes", "no" or "noanswer", anything but the same
    word has F1 0. Without a shared word F1 is 0 as well, so two answers that both normalise to
    nothing ("the", "a") have EM 1 and F1 0: a quirk of the official metric, kept.
    """
    em = exact_match(prediction, gold)
    ours, theirs = normalise(prediction), normalise(gold)
    if ours != theirs and _CLOSED & {ours, theirs}:
        return Overlap(em, 0.0, 0.0, 0.0)
    shared = (Counter(ours.split()) & Counter(theirs.split())).total()
    if not shared:
        return Overlap(em, 0.0, 0.0, 0.0)
    precision, recall = shared / len(ours.split()), shared / len(theirs.split())
    return Overlap(em, harmonic(precision, recall), precision, recall)


def supporting_facts(prediction: Collection[Fact], gold: Collection[Fact]) -> Overlap:
    """How well a set of supporting sentences matches the gold one."""
    ours, theirs = set(prediction), set(gold)
    precision = len(ours & theirs) / len(ours) if ours else 0.0
    recall = len(ours & theirs) / len(theirs) if theirs else 0.0
    return Overlap(float(ours == theirs), harmonic(precision, recall), precision, recall)


def joint(answered: Overlap, supported: Overlap) -> Overlap:
    """Answer and support together: EM, precision and recall multiply, F1 follows from them."""
    precision = answered.precision * supported.precision
    recall = answered.recall * supported.recall
    return Overlap(answered.em * supported.em, harmonic(precision, recall), precision, recall)


def harmonic(precision: float, recall: float) -> float:
    """F1 of a precision and a recall; 0 if both are 0."""
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0
