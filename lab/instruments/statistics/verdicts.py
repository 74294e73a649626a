"""How good verdicts are: rates, ranking, calibration."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.metrics import brier_score_loss, roc_auc_score

from lab.errors import LabError
from lab.instruments.statistics.estimate import Estimate
from lab.instruments.statistics.resampling import (
    CONFIDENCE,
    RESAMPLES,
    Floats,
    columns_of,
    count_blocks,
    kept_codes,
    percentile_interval,
    too_few,
)


def confusion_rates(
    tp: ArrayLike, fp: ArrayLike, tn: ArrayLike, fn: ArrayLike
) -> dict[str, Floats]:
    """Rates of a judge from its counts ("accept" is the positive verdict), over any shape.

    ``ga`` is the share of right candidates, ``ea`` the share of verdicts that agree with the
    oracle, ``delta`` = ea - ga. A rate whose denominator is zero is NaN; ``mcc`` of a judge that
    always says the same is 0 by convention, and NaN where all candidates are of one kind.
    """
    tp, fp, tn, fn = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (tp, fp, tn, fn)))
    n, right, wrong = tp + fp + tn + fn, tp + fn, fp + tn
    accepted, rejected = tp + fp, tn + fn
    with np.errstate(all="ignore"):
        ga, ea = right / n, (tp + tn) / n
        tpr, tnr = tp / right, tn / wrong
        chance = (accepted * right + rejected * wrong) / n**2
        spread = right * wrong * accepted * rejected
        mcc = np.where(spread > 0, (tp * tn - fp * fn) / np.sqrt(spread), 0.0)
        return {
            "ga": ga,
            "ea": ea,
            "delta": ea - ga,
            "acceptance": accepted / n,
            "over_acceptance": accepted / n - ga,
            "tpr": tpr,
            "tnr": tnr,
            "balanced_accuracy": (tpr + tnr) / 2,
            "precision": tp / accepted,
            "kappa": (ea - chance) / (1 - chance),
            "mcc": np.where(right * wrong > 0, mcc, np.nan),
            "majority": np.maximum(ga, 1 - ga),
            "always_accept": ga,
            "always_reject": 1 - ga,
        }


def auroc(
    scores: ArrayLike,
    labels: ArrayLike,
    clusters: ArrayLike | None = None,
    n_resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Area under the ROC curve with a bootstrap interval; NaN where only one class is there.

    It is the chance that a right candidate scores above a wrong one, ties counting half.
    """
    pairs = columns_of((scores, labels))
    kept = np.asarray(~np.isnan(pairs).any(axis=0))
    (score, label), codes = pairs[:, kept], kept_codes(kept, clusters)
    if np.unique(label).size < 2:
        return Estimate(math.nan, n=score.size, method="only one class: not defined")
    value = float(roc_auc_score(label, score))
    units = int(codes.max()) + 1
    if units < 2:
        return Estimate(value, n=score.size, method=too_few(score.size))
    drawn = _auroc_draws(score, label, codes, n_resamples, seed)
    return percentile_interval(value, drawn, score.size, codes, CONFIDENCE)


def _auroc_draws(
    score: Floats, label: Floats, codes: NDArray[np.intp], n_resamples: int, seed: int
) -> Floats:
    """The area in every resample of the clusters; NaN where one class is missing."""
    units = int(codes.max()) + 1
    level = np.unique(score, return_inverse=True)[1].reshape(-1)
    table = np.zeros((2, units, int(level.max()) + 1))
    np.add.at(table, (label.astype(int), codes, level), 1.0)
    wrong, right = table
    # wins[i, j]: pairs in which a right one of cluster i scores above a wrong one of cluster j
    wins = right @ (np.cumsum(wrong, axis=1) - wrong / 2).T
    n_wrong, n_right = wrong.sum(axis=1), right.sum(axis=1)
    blocks = []
    for counts in count_blocks(units, n_resamples, seed):
        pairs_there = (counts @ n_wrong) * (counts @ n_right)
        with np.errstate(all="ignore"):
            blocks.append(np.einsum("bi,bi->b", counts @ wins, counts) / pairs_there)
    return np.concatenate(blocks)


def expected_calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = 10) -> float:
    """Expected calibration error: mean gap between confidence and accuracy over equal-width bins.

    Bins are [low, high), the last one closed (Guo et al. 2017). NaN pairs are left out.
    """
    c, y = _known_pairs(confidence, correct)
    if c.size == 0:
        return math.nan
    gaps = np.bincount(calibration_bin(c, bins), weights=c - y, minlength=bins)
    return float(np.abs(gaps).sum() / c.size)


def calibration_bin(confidence: ArrayLike, bins: int = 10) -> NDArray[np.int64]:
    """The bin of each confidence: [low, high) and the last one closed."""
    edges = np.arange(1, bins) / bins
    return np.asarray(np.searchsorted(edges, np.asarray(confidence, dtype=float), side="right"))


def brier(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Brier score: mean squared gap between confidence and outcome; NaN without data."""
    c, y = _known_pairs(confidence, correct)
    return float(brier_score_loss(y, c, pos_label=1)) if c.size else math.nan


def aurc(confidence: ArrayLike, correct: ArrayLike, area: str = "mean") -> float:
    """Area under the risk-coverage curve: the error rate met when the surest verdicts come first.

    Equal confidences are grouped: within a group the expected number of errors grows evenly, so
    that the order of the data does not matter. ``area``: "mean" of the risks at each coverage, or
    "trapezoid" over coverage from 1/N to 1 (Geifman and El-Yaniv 2017).
    """
    if area not in ("mean", "trapezoid"):
        raise LabError(f'area must be "mean" or "trapezoid", not {area!r}.')
    c, y = _known_pairs(confidence, correct)
    if c.size == 0:
        return math.nan
    group = np.unique(-c, return_inverse=True)[1].reshape(-1)
    expected = np.bincount(group, weights=1 - y) / np.bincount(group)
    coverage = np.arange(1, c.size + 1)
    risk = np.cumsum(expected[np.sort(group)]) / coverage
    if area == "mean":
        return float(risk.mean())
    return float(np.trapezoid(risk, coverage / c.size))


def verdict_confidence(log_odds: ArrayLike) -> Floats:
    """Probability of "accept" among the two verdicts: the logistic function of the log-odds."""
    return np.asarray(special.expit(np.asarray(log_odds, dtype=float)))


def _known_pairs(confidence: ArrayLike, correct: ArrayLike) -> tuple[Floats, Floats]:
    pairs = columns_of((confidence, correct))
    c, y = pairs[:, ~np.isnan(pairs).any(axis=0)]
    return c, y
