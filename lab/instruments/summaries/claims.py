"""Published claims on what training one role does to the other, against a transfer matrix."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lab.instruments import statistics as S
from lab.instruments.summaries.differences import FEWEST
from lab.instruments.summaries.runs import BASE, Run

MOST_ALIKE = 0.5
"""A model that gives more than this share of the questions one and the same answer is not one
whose judgement of its own answers can be compared with another's."""


LEAST_MASS = 0.5
"""A model that, asked to judge, gives its two verdict words together less than this probability is
not judging: their log-odds compare two words that it would hardly say."""


LEAST_RIGHT = 10
"""A model with fewer right answers has next to none to lose: that training makes answers worse
cannot be seen on it."""


DISAGREE = "the single trainings do not all change it in this direction"
"""Why a difference between means over training seeds is not taken for one of training."""


SCORED_ONLY = ("verdict-only",)
"""Trained on the log-odds of the verdict words alone: these mean something however unlikely both
words are."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A published claim, and whether it is seen here.

    Attributes:
        text: the claim.
        seen: ``seen``, ``opposite`` or ``not seen``: the interval lies on the claimed side of
            zero, on the other side, or covers it; ``cannot be said`` where ``caveat`` forbids it.
        difference: the paired difference from the base that decides it.
        measure: what was measured.
        caveat: why it cannot be said; empty otherwise.
    """

    text: str
    seen: str
    difference: S.Estimate
    measure: str
    caveat: str = ""


CLAIMS = (
    (
        "Training to answer makes the judge over-accept",
        "generator", "over_acceptance", 1,
        "acceptance of its own answers minus the share that is right",
    ),
    (
        "Training to answer makes the judge accept wrong candidates",
        "generator", "tnr", -1,
        "share of wrong candidates rejected",
    ),
    (
        "Training to judge makes answers worse",
        "evaluator", "ga", -1,
        "share of its own answers that are right",
    ),
    (
        "Training to judge makes the judge over-conservative",
        "evaluator", "over_acceptance", -1,
        "acceptance of its own answers minus the share that is right",
    ),
)  # fmt: skip
"""Claims of "Can LLMs Judge Better Than They Generate?" (arXiv 2606.28050) on training one role:
words, run, metric, claimed sign, and what is measured."""

OTHER = "the model that it is compared with"

ON_OWN_ANSWERS = ("acceptance", "over_acceptance")
"""Measures that rest on how a model judges what it says itself."""

ON_VERDICTS = (
    "acceptance", "over_acceptance", "balanced_accuracy", "auroc", "tpr", "tnr", "brier", "ece",
)  # fmt: skip
"""Measures that rest on verdicts."""


def claims(
    table: pd.DataFrame, runs: Sequence[Run] = (), name: str = "all", scope: str = "all"
) -> list[Claim]:
    """The published claims against a `matrix`, for one group of examples.

    A claim is left out where its run is not there, and all are where the first run, from which
    differences are taken, is not the untrained model. With the ``runs`` that the matrix was made
    from, a claim on how a model judges its own answers is withheld where it has but one answer,
    and a claim on its verdicts where it hardly gives any. Nor is a difference said to be seen that
    single trainings of several contradict.
    """
    if table.empty or table["run"].iloc[0] != BASE:
        return []
    found = []
    for text, run, metric, sign, measure in CLAIMS:
        chosen = table[
            (table["run"] == run) & (table["metric"] == metric)
            & (table["scope"] == scope) & (table["name"] == name)
        ]  # fmt: skip
        if chosen.empty:
            continue
        row = chosen.iloc[0]
        gap = S.Estimate(
            float(row["difference"]), float(row["difference_low"]),
            float(row["difference_high"]), int(row["n"]), "paired bootstrap",
        )  # fmt: skip
        caveat = (
            _few(gap, int(row["clusters"]))
            or not_comparable(runs, run, metric)
            or _floor(gap, metric, sign, float(row["value"]))
            or (DISAGREE if gap.excludes(0) and not row["seeds_agree"] else "")
        )
        seen = "cannot be said" if caveat else _seen(gap, sign)
        found.append(Claim(text, seen, gap, measure, caveat))
    return found


def _seen(gap: S.Estimate, sign: int) -> str:
    if not gap.excludes(0):
        return "not seen"
    return "seen" if gap.value * sign > 0 else "opposite"


def _few(gap: S.Estimate, clusters: int) -> str:
    if gap.n < FEWEST:
        return f"{gap.n} questions are too few"
    return f"questions on {clusters} passages are too few" if clusters < FEWEST else ""


def not_comparable(runs: Sequence[Run], name: str, metric: str) -> str:
    """Why a measure of a model cannot be compared with the first one's; empty where it can.

    It must mean something in both: see `without_meaning`.
    """
    mine = without_meaning([run for run in runs if run.name == name], metric)
    if mine or not runs or name == runs[0].name:
        return mine
    return without_meaning([run for run in runs if run.name == runs[0].name], metric, OTHER)


def without_meaning(runs: Sequence[Run], metric: str, called: str = "this model") -> str:
    """Why a measure of a model's training seeds says nothing; empty where it does.

    A judge cannot be measured that hardly says a verdict word, nor how a model judges its own
    answers where it has but one answer.
    """
    usual = [usual_answer(run) for run in runs] if metric in ON_OWN_ANSWERS else []
    alike = [(share, text) for text, share in usual if share > MOST_ALIKE]
    if alike:
        (least, text), (most, _) = min(alike), max(alike)
        said = f"says \u201c{text}\u201d" if text else "gives no answer"
        shares = f"{least:.0%}" if f"{least:.0%}" == f"{most:.0%}" else f"{least:.0%} to {most:.0%}"
        return f"asked to answer, {called} {said} to {shares} of the questions"
    judged = metric in ON_VERDICTS and not any(run.name in SCORED_ONLY for run in runs)
    masses = [said_at_all(run) for run in runs if judged]
    if masses and min(masses) < LEAST_MASS:
        # Never rounded up to the limit that it lies below.
        share = math.floor(100 * min(masses) + 1e-9)
        return f"asked to judge, {called} says a verdict word with {share}% probability"
    return ""


def _floor(gap: S.Estimate, metric: str, sign: int, value: float) -> str:
    """Where answers shall get worse: whether the untrained model has enough right ones to lose."""
    had = round((value - gap.value) * gap.n)
    if metric != "ga" or sign > 0 or gap.excludes(0) or had >= LEAST_RIGHT:
        return ""
    return f"the untrained model answers only {had} of {gap.n} right: it has hardly any to lose"


def said_at_all(run: Run) -> float:
    """Mean probability that a model's first word, asked to judge, is a verdict; 1 if unknown."""
    if "label_mass" not in run.dataset:
        return 1.0
    known = np.asarray(run.dataset["label_mass"].values, dtype=float)
    known = known[np.isfinite(known)]
    return float(known.mean()) if known.size else 1.0


def usual_answer(run: Run) -> tuple[str, float]:
    """A model's most common own answer, and the share of the questions to which it gives it."""
    if "answer" not in run.dataset or not run.dataset.sizes["example"]:
        return "", 0.0
    answers = [str(text).strip() for text in np.atleast_1d(run.dataset["answer"].values)]
    text, count = Counter(answers).most_common(1)[0]
    return text, count / len(answers)
