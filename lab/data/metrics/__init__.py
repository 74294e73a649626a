"""Official answer metrics of the four benchmarks, behind one function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.data.example import Answer, Example, Metric
from lab.data.metrics import drop, hotpotqa, musique, squad
from lab.data.metrics.refusal import is_refusal, map_refusal

__all__ = ["Score", "drop", "hotpotqa", "is_refusal", "map_refusal", "musique", "score", "squad"]


@dataclass(frozen=True, slots=True)
class Score:
    """Exact match and F1 of one answer, each in [0, 1]."""

    em: float
    f1: float


Prediction = str | Sequence[str]


def score(example: Example, prediction: Prediction) -> Score:
    """Exact match and F1 of an answer by the example's official metric, best over its golds.

    The prediction is scored as it stands: pass a model's answer through `map_refusal` first.
    A list of strings is a list of answer spans, which only DROP knows; elsewhere it is joined by
    ", ". Where the passages do not answer the question, every metric follows SQuAD 2.0: only an
    answer that normalises to nothing scores (the other benchmarks define no such case).
    """
    if not example.answers:
        return Score(*squad.score(_text(prediction), ()))
    return _METRICS[example.metric](prediction, example.answers)


def _squad(prediction: Prediction, golds: Sequence[Answer]) -> Score:
    return Score(*squad.score(_text(prediction), _texts(golds)))


def _drop(prediction: Prediction, golds: Sequence[Answer]) -> Score:
    return Score(*drop.score(prediction, golds))


def _hotpotqa(prediction: Prediction, golds: Sequence[Answer]) -> Score:
    # Officially there is one gold; several (a user's own file) are alternatives as elsewhere.
    results = [hotpotqa.answer(_text(prediction), gold) for gold in _texts(golds)]
    return Score(max(result.em for result in results), max(result.f1 for result in results))


def _musique(prediction: Prediction, golds: Sequence[Answer]) -> Score:
    return Score(*musique.answer(_text(prediction), _texts(golds)))


def _text(prediction: Prediction) -> str:
    return prediction if isinstance(prediction, str) else ", ".join(prediction)


def _texts(golds: Sequence[Answer]) -> list[str]:
    return [", ".join(gold) for gold in golds]


_METRICS: dict[Metric, Callable[[Prediction, Sequence[Answer]], Score]] = {
    "squad": _squad,
    "drop": _drop,
    "hotpotqa": _hotpotqa,
    "musique": _musique,
}
