"""What training one role does to the other: several models on the same examples, against a base.

Runs are studies of the same questions in the same prompts; the first is the base. Several runs with
the same name (training seeds) are averaged, and the spread of the seeds is given beside the
interval over examples. All wrong candidates are the same for all runs, and a measure rests on the
examples for which all runs have it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr

from lab.instruments import statistics as S
from lab.instruments.names import FIXED_WRONG
from lab.instruments.statistics.paired import (
    Draws,
    auroc_draws,
    average,
    calibration_draws,
    mean_draws,
)
from lab.instruments.summaries import differences as D
from lab.instruments.summaries import reading as R
from lab.instruments.summaries import tables as T
from lab.instruments.summaries.behaviour import right
from lab.instruments.summaries.claims import CLAIMS as CLAIMS
from lab.instruments.summaries.claims import Claim as Claim
from lab.instruments.summaries.claims import claims as claims
from lab.instruments.summaries.claims import not_comparable as not_comparable
from lab.instruments.summaries.claims import without_meaning as without_meaning
from lab.instruments.summaries.runs import BASE as BASE
from lab.instruments.summaries.runs import Run as Run
from lab.instruments.summaries.runs import common
from lab.instruments.summaries.runs import run_of as run_of
from lab.instruments.summaries.tables import Floats

TRANSFER_METRICS = (
    "ga", "balanced_accuracy", "auroc", "acceptance", "over_acceptance", "tpr", "tnr", "brier",
    "ece",
)  # fmt: skip
"""``ga``: share of its own answers that are right. ``acceptance`` and ``over_acceptance``
(acceptance minus ``ga``) are over its own answers. The others are over one right and one wrong
candidate for each answerable question: ``tpr`` and ``tnr`` are the shares of right candidates
accepted and of wrong ones rejected, ``brier`` and ``ece`` take the logistic function of the
log-odds as the probability that the candidate is right."""

SHARES = ("ga", "acceptance", "tpr", "tnr")

COLUMNS = ["run", "scope", "name", "metric"]
EXTRA = [*D.COLUMNS, "p", "seeds", "seed_low", "seed_high"]


def matrix(runs: Sequence[Run], rule: str = "f1_50") -> pd.DataFrame:
    """Every measure of every run by group of examples, and its difference from the base.

    Columns: run, scope, name, metric (TRANSFER_METRICS), value, low, high, n (examples), method,
    difference (from the first run), difference_low, difference_high (paired bootstrap over
    clusters, averaged over seeds), clusters, seeds_agree and clear (see
    `lab.instruments.summaries.differences`), p (sign-flip test of the paired difference; NaN for
    ``auroc`` and ``ece``, which are no means), seeds, seed_low, seed_high (range over training
    seeds).
    """
    runs = common(runs)
    names = list(dict.fromkeys(run.name for run in runs))
    base = runs[0].dataset
    clusters = T.labels(base, "cluster")
    measured = _by_name(runs, _alike([_units(run.dataset, rule) for run in runs]))
    rows = []
    for group, metric in product(T.groups(base), TRANSFER_METRICS):
        where = clusters[group.mask]
        found = {
            name: [_draws(units, metric, group.mask, where) for units in measured[name]]
            for name in names
        }
        origin = average(found[names[0]])
        for name in names:
            mean = average(found[name])
            differs = name != names[0]
            values = [d.value for d in found[name]]
            shown = mean.estimate()
            if metric in SHARES and shown.value in (0, 1):
                # No resample can change such a share: Wilson's interval, as everywhere else.
                shown = S.proportion(measured[name][0][metric][group.mask], where)
            singles = [value - origin.value for value in values]
            rows.append(
                T.row(shown, run=name, scope=group.scope, name=group.name, metric=metric)
                | (D.difference(mean - origin, singles) if differs else D.reference(mean))
                | {
                    "p": _p(measured[name], measured[names[0]], metric, group.mask, where)
                    if differs
                    else math.nan,
                    "seeds": len(values),
                    "seed_low": min(values),
                    "seed_high": max(values),
                }
            )
    return T.table(rows, COLUMNS, EXTRA)


Units = dict[str, Floats]
"""One value an example for each measure that is a mean, and the log-odds of the pair."""


def _alike(units: Sequence[Units]) -> list[Units]:
    """The same, but unknown in all runs where it is unknown in one: differences are then paired."""
    unknown = {key: np.any([np.isnan(u[key]) for u in units], axis=0) for key in units[0]}
    return [{key: np.where(unknown[key], np.nan, u[key]) for key in u} for u in units]


def _by_name(runs: Sequence[Run], units: Sequence[Units]) -> dict[str, list[Units]]:
    """The units of each name's training seeds, the base first."""
    found: dict[str, list[Units]] = {}
    for run, unit in zip(runs, units, strict=True):
        found.setdefault(run.name, []).append(unit)
    return found


def _units(ds: xr.Dataset, rule: str) -> Units:
    own, truth = T.numbers(ds, "log_odds", rung="own"), right(ds, "own", rule)
    accepted = np.where(np.isnan(own) | np.isnan(truth), np.nan, own > 0)
    answerable = T.numbers(ds, "answerable") == 1
    gold = np.where(answerable, T.numbers(ds, "log_odds", rung="gold"), np.nan)
    wrong = np.full(gold.size, np.nan)
    for rung in FIXED_WRONG:
        usable = np.where(right(ds, rung, rule) == 0, T.numbers(ds, "log_odds", rung=rung), np.nan)
        wrong = np.where(np.isnan(wrong), usable, wrong)
    paired = ~(np.isnan(gold) | np.isnan(wrong))
    gold, wrong = np.where(paired, gold, np.nan), np.where(paired, wrong, np.nan)
    takes, leaves = (np.where(paired, flag, np.nan) for flag in (gold > 0, wrong <= 0))
    chances = S.verdict_confidence(gold), S.verdict_confidence(wrong)
    return {
        "ga": truth,
        "acceptance": accepted,
        "over_acceptance": accepted - truth,
        "tpr": takes,
        "tnr": leaves,
        "balanced_accuracy": (takes + leaves) / 2,
        "brier": ((chances[0] - 1) ** 2 + chances[1] ** 2) / 2,
        "gold": gold,
        "wrong": wrong,
    }


def _draws(units: Units, metric: str, mask: np.ndarray, clusters: np.ndarray) -> Draws:
    gold, wrong = units["gold"][mask], units["wrong"][mask]
    if metric == "auroc":
        return auroc_draws(gold, wrong, clusters)
    if metric == "ece":
        chance = S.verdict_confidence(np.stack([gold, wrong], axis=1))
        return calibration_draws(chance, np.array([1.0, 0.0]), clusters)
    return mean_draws(units[metric][mask], clusters)


def _p(
    runs: list[Units], base: list[Units], metric: str, mask: np.ndarray, clusters: np.ndarray
) -> float:
    if metric in ("auroc", "ece"):
        return math.nan
    after, before = (np.mean([u[metric][mask] for u in side], axis=0) for side in (runs, base))
    return float(S.sign_flip_test(after - before, clusters).p)


def unchanged(runs: Sequence[Run]) -> pd.DataFrame:
    """For each run but the base, the share of its answers that are word for word the base's.

    Columns: run, value, low, high, n, method. Answers are compared as generated. Of several
    training seeds the mean share.
    """
    runs = common(runs)
    base = runs[0].dataset
    clusters, before = T.labels(base, "cluster"), T.labels(base, "answer_raw")
    same: dict[str, list[Floats]] = {}
    for run in runs:
        if run.name != runs[0].name:
            after = T.labels(run.dataset, "answer_raw")
            same.setdefault(run.name, []).append((after == before).astype(float))
    rows = []
    for name, found in same.items():
        share = np.mean(found, axis=0)
        sure = share.min() == share.max() and share[0] in (0, 1)
        estimate = S.proportion(share, clusters) if sure else S.mean_estimate(share, clusters)
        rows.append(T.row(estimate, run=name))
    return T.table(rows, ["run"])


# --- inside -------------------------------------------------------------------------------------

INSIDE = (
    ("generator", "context"),
    ("generator", "evidence"),
    ("evaluator", "context"),
    ("evaluator", "evidence"),
    ("evaluator", "candidate"),
    ("evaluator", "question"),
)
"""Roles and regions whose mean attention is compared between runs."""


def inside(runs: Sequence[Run], normalisation: str = "raw") -> pd.DataFrame:
    """Where each run looks, and how that differs from the base, paired by example.

    Columns: run, measure, value, low, high, n, method, those of
    `lab.instruments.summaries.differences`, p. ``measure`` is ``ratio`` (attention on the passage,
    answering over judging: geometric mean; its difference is the ratio to the base's ratio) or
    "role/region" (mean attention over layers and heads). Only examples whose attention was measured
    in all runs; empty where the base's was not measured.
    """
    names, extra = ["run", "measure"], [*D.COLUMNS, "p"]
    runs = _with_attention(runs)
    if not runs:
        return T.table([], names, extra)
    clusters = T.labels(runs[0].dataset, "cluster")
    masses = _by_name(runs, _alike([_masses(run.dataset, normalisation) for run in runs]))
    first = masses[runs[0].name]
    base = {key: np.mean([one[key] for one in first], axis=0) for key in first[0]}
    rows = []
    for (name, several), measure in product(masses.items(), base):
        form = math.exp if measure == "ratio" else float
        values = np.mean([one[measure] for one in several], axis=0)
        mean, shift = mean_draws(values, clusters), values - base[measure]
        gap = mean_draws(shift, clusters)
        differs = name != runs[0].name
        singles = [mean_draws(one[measure] - base[measure], clusters).value for one in several]
        shown = _exp(mean.estimate()) if measure == "ratio" else mean.estimate()
        rows.append(
            T.row(shown, run=name, measure=measure)
            | (D.difference(gap, singles, form) if differs else D.reference(mean))
            | {"p": float(S.sign_flip_test(shift, clusters).p) if differs else math.nan}
        )
    return T.table(rows, names, extra)


def _with_attention(runs: Sequence[Run]) -> list[Run]:
    """Those whose attention was measured, on the common examples; none without the base."""
    runs = common(runs)
    measured = [run for run in runs if R.measured(run.dataset)]
    return measured if measured and measured[0] is runs[0] else []


def _masses(ds: xr.Dataset, normalisation: str) -> dict[str, Floats]:
    item = R.regions(ds, normalisation).mean(["layer", "head"])
    found = {
        f"{role}/{region}": np.asarray(item.sel(role=role, region=region).values, dtype=float)
        for role, region in INSIDE
    }
    over, under = found["generator/context"], found["evaluator/context"]
    with np.errstate(all="ignore"):
        logs = np.log(over) - np.log(under)
    return {"ratio": np.where(np.isfinite(logs), logs, np.nan), **found}


def _exp(estimate: S.Estimate) -> S.Estimate:
    value, low, high = (math.exp(x) for x in (estimate.value, estimate.low, estimate.high))
    return S.Estimate(value, low, high, estimate.n, estimate.method)


def head_changes(runs: Sequence[Run], region: str = "context") -> pd.DataFrame:
    """For each run but the base, role and head: how its attention on a region changed.

    Columns: run, role, layer, head, base (mean), value (mean difference), low, high, n, method,
    p (sign-flip test), p_adjusted (Benjamini-Hochberg over the heads of a run and role).
    """
    names = ["run", "role", "layer", "head"]
    runs = _with_attention(runs)
    if len({run.name for run in runs}) < 2:
        return T.table([], names, ["base", "p", "p_adjusted"])
    clusters = T.labels(runs[0].dataset, "cluster")
    attention: dict[str, list[xr.DataArray]] = {}
    for run in runs:
        item = R.regions(run.dataset, "raw").sel(region=region).reset_coords(drop=True)
        attention.setdefault(run.name, []).append(item)
    before, *trained = [
        (name, xr.concat(found, "seed").mean("seed", skipna=False))
        for name, found in attention.items()
    ]
    frames = []
    for (name, item), role in product(trained, ("generator", "evaluator")):
        start = before[1].sel(role=role)
        change = item.sel(role=role).values - start.values
        cells = [(name, role, *cell) for cell in product(
            start["layer"].values.tolist(), start["head"].values.tolist())]  # fmt: skip
        p = S.sign_flip_test(change, clusters).p
        known = np.where(np.isnan(change), np.nan, start.values)
        frames.append(
            T.means_table(change, cells, names, clusters).assign(
                base=_means(known).reshape(-1),
                p=p.reshape(-1),
                p_adjusted=S.benjamini_hochberg(p).reshape(-1),
            )
        )
    return pd.concat(frames).reset_index(drop=True)


def _means(values: Floats) -> Floats:
    """Means over examples, NaN where there is none."""
    with np.errstate(all="ignore"):
        return np.asarray(np.nansum(values, axis=0) / (~np.isnan(values)).sum(axis=0))
