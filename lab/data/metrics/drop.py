"""DROP answer metrics: exact match and F1 over lists of answer spans, strict about numbers.

Definitions: Dua et al. 2019, as in the benchmark's published evaluation.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_BULLET = re.compile(r"^\s*(?:[-*\u2022]\s+|\d{1,2}[.)]\s+)")
_LINES = re.compile(r"[;\n]+")
_COMMAS = re.compile(r"(?<!\d),\s*|,(?!\d)\s*")
_AND = re.compile(r"(?:^|\s+)(?:and|&)\s+", re.IGNORECASE)


def is_number(token: str) -> bool:
    """Whether Python reads the token as a float ("inf" and "nan" count, as officially)."""
    try:
        float(token)
    except ValueError:
        return False
    return True


def tokens(text: str) -> list[str]:
    """Normalised tokens: split at blanks and hyphens, no punctuation, numbers as floats."""
    return [token for part in re.split(" |-", text.lower()) for token in _clean(part)]


def _clean(part: str) -> list[str]:
    bare = part if is_number(part) else part.translate(_PUNCTUATION)
    if is_number(bare):
        bare = str(float(bare))
    return _ARTICLE.sub(" ", bare).split()


def split_spans(text: str) -> list[str]:
    """The answer spans that a free-text answer lists, in order.

    Lines and semicolons separate spans if there are any; otherwise commas and the words "and"
    and "&" do. Commas inside numbers and list bullets are not separators.
    """
    parts = [_BULLET.sub("", part) for part in _LINES.split(text) if part.strip()]
    if len(parts) == 1:
        parts = [piece for part in _COMMAS.split(parts[0]) for piece in _AND.split(part)]
    return [part.strip() for part in parts if part.strip()] or [text]


def score_spans(predicted: Sequence[str], gold: Sequence[str]) -> tuple[float, float]:
    """(exact match, F1) of a list of predicted spans against one gold list.

    EM: the same set of normalised spans, and as many of them. F1: spans are paired one to one so
    that the sum of their F1 is greatest; the mean is over the longer list, to two decimals.
    """
    ours = [tokens(span) for span in predicted]
    theirs = [tokens(span) for span in gold]
    same = {" ".join(span) for span in ours} == {" ".join(span) for span in theirs}
    if not ours or not theirs:
        return (float(not ours and not theirs),) * 2
    total = _best_total([[_pair_f1(set(mine), set(right)) for mine in ours] for right in theirs])
    mean = total / max(len(ours), len(theirs))
    return float(same and len(ours) == len(theirs)), round(mean, 2)


def _best_total(table: list[list[float]]) -> float:
    """The greatest sum of a one-to-one choice of rows and columns (Hungarian method)."""
    if len(table) == len(table[0]) == 1:
        return table[0][0]
    # Imported here: scipy takes longer to import than the rest of this package together.
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    values = np.array(table)
    return float(values[linear_sum_assignment(values, maximize=True)].sum())


def _pair_f1(predicted: set[str], gold: set[str]) -> float:
    """F1 of two token sets; 0 if the gold one has numbers and none of them is shared."""
    shared = predicted & gold
    numbers = {token for token in gold if is_number(token)}
    if numbers and not numbers & predicted:
        return 0.0
    precision = len(shared) / len(predicted) if predicted else 1.0
    recall = len(shared) / len(gold) if gold else 1.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def score(prediction: str | Sequence[str], golds: Sequence[Sequence[str]]) -> tuple[float, float]:
    """(exact match, F1), each the best over the gold alternatives.

    A list is taken as the spans that were predicted. A plain string is one span against a gold of
    one span, and is split by `split_spans` against a gold of several, or as the gold is where it
    has just its words ("Paris, France, Rome, Italy"): the official metric takes lists and leaves
    their parsing to the system. That uses the gold to choose between ways of reading the same words
    ("July 4, 1990" must not be split), never to choose the words.
    Alternatives whose first span is blank are ignored, as officially.
    """
    results = [
        score_spans(_as_spans(prediction, gold), gold) for gold in golds if gold and gold[0].strip()
    ]
    return (
        max((em for em, _ in results), default=0.0),
        max((f1 for _, f1 in results), default=0.0),
    )


def _as_spans(prediction: str | Sequence[str], gold: Sequence[str]) -> Sequence[str]:
    if not isinstance(prediction, str):
        return prediction
    if len(gold) > 1 and tokens(prediction) == tokens(", ".join(gold)):
        return gold
    return split_spans(prediction) if len(gold) > 1 else [prediction]
