"""How well the model answers, how well it judges, and how much of that is base rate.

A judge that leans to reject looks good where the answers are bad, without reading anything. So the
agreement with the oracle on the model's own answers (EA) stands next to the lines of the judges
that always accept and always reject, and the primary outcome is the balanced re-test: one right
and one wrong candidate for each question.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from lab.errors import LabError
from lab.instruments import statistics as S
from lab.instruments.statistics import Estimate
from lab.instruments.summaries import tables as T
from lab.instruments.summaries.tables import Floats, Group

RULES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "em": lambda em, f1: np.where(np.isnan(em), np.nan, em >= 1),
    "f1_50": lambda em, f1: np.where(np.isnan(f1), np.nan, f1 >= 0.5),
    "f1_80": lambda em, f1: np.where(np.isnan(f1), np.nan, f1 >= 0.8),
}
"""When a candidate counts as right: exact match, token F1 of at least 0.5, or of at least 0.8."""

RULE_WORDS = {
    "em": "exact match",
    "f1_50": "token F1 of at least 0.5",
    "f1_80": "token F1 of at least 0.8",
}

WRONG_RUNGS = ("same_type", "same_passage", "other_passage", "closed_book", "own", "empty")
"""Where wrong candidates come from."""

HARDEST = ("same_type", "same_passage", "closed_book", "other_passage")
"""The row ``hardest`` of the re-test takes, for each question, the first of these that exists."""

METRICS = (
    "ga_em", "ga_f1_50", "ga_f1_80", "ga", "ea", "delta", "acceptance", "over_acceptance", "tpr",
    "tnr", "balanced_accuracy", "precision", "kappa", "mcc", "auroc", "brier", "ece", "aurc",
    "majority", "always_accept", "always_reject",
)  # fmt: skip


def right(ds: xr.Dataset, rung: str, rule: str = "f1_50") -> Floats:
    """For each example, whether its candidate is right: 1, 0, or NaN where there is none.

    A gold candidate is right by definition. Its score may say otherwise: metrics compare answers,
    and a gold answer may be a list of spans whose text does not show where one of them ends.
    """
    if rule not in RULES:
        raise LabError(f"Unknown rule {rule!r} for right answers: use one of {', '.join(RULES)}.")
    em = T.numbers(ds, "candidate_em", rung=rung)
    f1 = T.numbers(ds, "candidate_f1", rung=rung)
    given = T.numbers(ds, "candidate_given", rung=rung)
    found = np.where(given == 0, np.nan, RULES[rule](em, f1))
    return np.where(np.isnan(found), np.nan, 1.0) if rung == "gold" else found


def agreement(ds: xr.Dataset, rule: str = "f1_50") -> pd.DataFrame:
    """Accuracy of answers and of verdicts on the model's own answers, by group of examples.

    Columns: scope (all, dataset, family), name, metric (one of METRICS), value, low, high, n,
    method. All but ``ga_em``, ``ga_f1_50`` and ``ga_f1_80`` are over the answers that were judged,
    so that delta = ea - ga holds exactly. ``auroc`` ranks right above wrong by log-odds; ``brier``
    and ``ece`` take the logistic function of the log-odds as the probability that the candidate is
    right; ``aurc`` takes the surer verdicts first. Lines of judges that read nothing: ``majority``,
    ``always_accept``, ``always_reject``.
    """
    if not T.has(ds, "log_odds", "em", "f1"):
        return T.table([], ["scope", "name", "metric"])
    em, f1 = T.numbers(ds, "em"), T.numbers(ds, "f1")
    log_odds, oracle = T.numbers(ds, "log_odds", rung="own"), right(ds, "own", rule)
    clusters = T.labels(ds, "cluster")
    rows = []
    for group in T.groups(ds):
        m = group.mask
        found = {
            f"ga_{name}": S.proportion(RULES[name](em[m], f1[m]), clusters[m]) for name in RULES
        }
        found |= judged(log_odds[m], oracle[m], clusters[m])
        rows += [
            T.row(found[metric], scope=group.scope, name=group.name, metric=metric)
            for metric in METRICS
        ]
    return T.table(rows, ["scope", "name", "metric"])


def judged(log_odds: Floats, oracle: Floats, clusters: ArrayLike | None) -> dict[str, Estimate]:
    """Every measure of a judge from its log-odds and the oracle's labels, with intervals."""
    there = ~(np.isnan(log_odds) | np.isnan(oracle))
    score, truth = log_odds[there], oracle[there]
    names = None if clusters is None else np.asarray(clusters)[there]
    accept = (score > 0).astype(float)
    agrees = (accept == truth).astype(float)
    only_right, only_wrong, only_accepted = (
        np.where(condition, 1.0, np.nan) for condition in (truth == 1, truth == 0, accept == 1)
    )
    cells = np.stack(
        [accept * truth, accept * (1 - truth), (1 - accept) * (1 - truth), (1 - accept) * truth],
        axis=1,
    )
    found = S.bootstrap_sums(lambda s: S.confusion_rates(*np.moveaxis(s, -1, 0)), cells, names)
    shares = {
        "ga": truth,
        "ea": agrees,
        "acceptance": accept,
        "tpr": accept * only_right,
        "tnr": (1 - accept) * only_wrong,
        "precision": truth * only_accepted,
        "always_accept": truth,
        "always_reject": 1 - truth,
    }
    found |= {metric: S.proportion(flags, names) for metric, flags in shares.items()}
    chance = S.verdict_confidence(score)
    found["auroc"] = S.auroc(score, truth, names)
    found["brier"] = S.mean_estimate((chance - truth) ** 2, names)
    found["ece"] = _ece(chance, truth, names)
    found["aurc"] = Estimate(
        S.aurc(S.verdict_confidence(np.abs(score)), agrees),
        n=score.size,
        method="value only: no interval is computed",
    )
    return found


def _ece(chance: Floats, truth: Floats, clusters: ArrayLike | None, bins: int = 10) -> Estimate:
    """Expected calibration error; resamples overstate it where there are few examples a bin."""
    member = S.calibration_bin(chance, bins)[:, None] == np.arange(bins)
    columns = np.concatenate([member * (chance - truth)[:, None], np.ones((len(truth), 1))], axis=1)
    found = S.bootstrap_sums(
        lambda s: {"ece": np.abs(s[..., :-1]).sum(axis=-1) / s[..., -1]}, columns, clusters
    )
    return found["ece"]


# --- the balanced re-test -----------------------------------------------------------------------


def balanced(ds: xr.Dataset, rule: str = "f1_50", families: bool = False) -> pd.DataFrame:
    """Verdicts on one right and one wrong candidate for each question, by source of the wrong one.

    Columns: scope, name, rung (where the wrong candidate comes from; ``hardest`` takes one for
    each question, see HARDEST), metric, value, low, high, n (questions), method. Metrics:
    ``balanced_accuracy`` (0.5 is chance, whatever the judge leans to), ``auroc`` of the log-odds,
    ``pair_share`` (questions whose right candidate has the higher log-odds; a tie counts half),
    ``accepts_right`` and ``accepts_wrong``. The right candidate is the gold answer, whatever its
    score; wrong candidates that happen to be right are left out. So are questions that the passages
    do not answer: their right candidate is always the same word, so that a judge could tell it, or
    dislike it, without reading. By all examples and by dataset; ``families=True`` adds families.
    """
    names = ["scope", "name", "rung", "metric"]
    if not T.has(ds, "log_odds", "candidate_f1"):
        return T.table([], names)
    no_use = T.numbers(ds, "answerable") == 0
    gold = np.where(no_use, np.nan, T.numbers(ds, "log_odds", rung="gold"))
    wrong = {
        rung: np.where(right(ds, rung, rule) == 0, T.numbers(ds, "log_odds", rung=rung), np.nan)
        for rung in WRONG_RUNGS
    }
    wrong = {"hardest": _first_known([wrong[rung] for rung in HARDEST])} | wrong
    clusters = T.labels(ds, "cluster")
    rows = []
    for group in T.groups(ds):
        if group.scope == "family" and not families:
            continue
        for rung, log_odds in wrong.items():
            found = _retest(gold, log_odds, clusters, group)
            rows += [
                T.row(estimate, scope=group.scope, name=group.name, rung=rung, metric=metric)
                for metric, estimate in found.items()
            ]
    return T.table(rows, names)


def _first_known(columns: list[Floats]) -> Floats:
    chosen = columns[0].copy()
    for column in columns[1:]:
        chosen = np.where(np.isnan(chosen), column, chosen)
    return chosen


def _retest(gold: Floats, wrong: Floats, clusters: ArrayLike, group: Group) -> dict[str, Estimate]:
    pair = group.mask & ~np.isnan(gold) & ~np.isnan(wrong)
    high, low = gold[pair], wrong[pair]
    codes = S.cluster_codes(gold.size, clusters)[pair]
    verdicts_right = (np.where(high > 0, 1.0, 0.0) + np.where(low > 0, 0.0, 1.0)) / 2
    wins = (high > low) + 0.5 * (high == low)
    truth = np.repeat([1, 0], high.size)
    ranked = S.auroc(np.concatenate([high, low]), truth, np.concatenate([codes, codes]))
    share = S.mean_estimate if 0.5 in wins else S.proportion
    return {
        "balanced_accuracy": S.mean_estimate(verdicts_right, codes),
        "auroc": replace(ranked, n=high.size),
        "pair_share": share(wins, codes),
        "accepts_right": S.proportion(high > 0, codes),
        "accepts_wrong": S.proportion(low > 0, codes),
    }


# --- controls -----------------------------------------------------------------------------------


def controls(ds: xr.Dataset) -> pd.DataFrame:
    """What each change of the prompt does to the verdict on the model's own answer.

    Columns: control, metric, value, low, high, n, method, p, p_adjusted. Metrics: ``flip_rate``
    (verdict differs from that of the unmodified prompt; p: sign-flip test of the change in
    acceptance, the exact McNemar test where each example has a passage of its own and there are
    few), ``shift`` (mean change of the log-odds, in logits; p: sign-flip test), ``acceptance``.
    The tests flip whole clusters. p-values are corrected over the controls (Benjamini-Hochberg).
    """
    names = ["control", "metric"]
    if not T.has(ds, "control_log_odds", "log_odds"):
        return T.table([], names, ["p", "p_adjusted"])
    before, clusters = T.numbers(ds, "log_odds", rung="own"), T.labels(ds, "cluster")
    rows = []
    for control in T.coordinate(ds, "control"):
        after = T.numbers(ds, "control_log_odds", control=control)
        shift = after - before
        known = ~np.isnan(shift)
        was, now = (np.where(known, x > 0, np.nan) for x in (before, after))
        found = {
            "flip_rate": (
                S.proportion(np.abs(now - was), clusters),
                float(S.sign_flip_test(now - was, clusters).p),
            ),
            "shift": (
                S.mean_estimate(shift, clusters),
                float(S.sign_flip_test(shift, clusters).p),
            ),
            "acceptance": (S.proportion(now, clusters), math.nan),
        }
        rows += [
            T.row(estimate, control=control, metric=metric, p=p)
            for metric, (estimate, p) in found.items()
        ]
    frame = T.table(rows, names, ["p", "p_adjusted"])
    for metric in ("flip_rate", "shift"):
        chosen = frame["metric"] == metric
        frame.loc[chosen, "p_adjusted"] = S.benjamini_hochberg(frame.loc[chosen, "p"].to_numpy())
    return frame


def label_mass(ds: xr.Dataset) -> pd.DataFrame:
    """How much probability the verdict words get at the decision, by rung.

    Columns: rung, value, low, high, n, method, note. Where they get little, the log-odds compare
    two words that the model would hardly say, and the note says so.
    """
    if not T.has(ds, "label_mass"):
        return T.table([], ["rung"], ["note"])
    clusters = T.labels(ds, "cluster")
    rows = []
    for rung in T.coordinate(ds, "rung"):
        estimate = S.mean_estimate(T.numbers(ds, "label_mass", rung=rung), clusters)
        rows.append(T.row(estimate, rung=rung, note=_mass_note(estimate)))
    return T.table(rows, ["rung"], ["note"])


def _mass_note(estimate: Estimate) -> str:
    if math.isnan(estimate.value) or estimate.value >= 0.5:
        return ""
    # What would round onto the limit is not given in figures.
    share = f"only {estimate.value:.0%}" if estimate.value < 0.495 else "just under half"
    return (
        f"The verdict words get {share} of the probability: "
        "the verdict compares two words that the model would rarely say."
    )
