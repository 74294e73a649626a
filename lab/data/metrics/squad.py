"""SQuAD 2.0 answer metrics: exact match and bag-of-words F1 over normalised text.

Definitions: Rajpurkar et al. 2018, as in the benchmark's published evaluation.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


def normalise(text: str) -> str:
    """Lower case, no ASCII punctuation, no articles, single spaces; in that order.

    Accents stay, and number words stay words: "twenty-one" becomes "twentyone".
    """
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", bare).split())


def exact_match(prediction: str, gold: str) -> float:
    """1.0 if both are equal once normalised, else 0.0."""
    return float(normalise(prediction) == normalise(gold))


def f1(prediction: str, gold: str) -> float:
    """Overlap of the two bags of words, in [0, 1]; with an empty side, 1 only if both are empty."""
    return bag_f1(normalise(prediction).split(), normalise(gold).split())


def bag_f1(predicted: Sequence[str], gold: Sequence[str]) -> float:
    """F1 of two multisets of tokens; with an empty side, 1 only if both are empty."""
    if not predicted or not gold:
        return float(not predicted and not gold)
    shared = (Counter(predicted) & Counter(gold)).total()
    return 2 * shared / (len(predicted) + len(gold))


def score(prediction: str, golds: Sequence[str]) -> tuple[float, float]:
    """(exact match, F1), each the best over the golds.

    Golds that normalise to nothing are dropped. With none left the question counts as
    unanswerable, and only a prediction that normalises to nothing scores.
    """
    kept = [gold for gold in golds if normalise(gold)] or [""]
    return (
        max(exact_match(prediction, gold) for gold in kept),
        max(f1(prediction, gold) for gold in kept),
    )
