"""What the sentences of a report are made of: estimates, and how much each kind of them rests on.

A study need not measure everything on every example: attention may be read on a few, and a
question without a right and a wrong candidate makes no pair. So the independent units are counted
for each kind of number, and not once for the study.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from lab.instruments import statistics as S
from lab.instruments.statistics import Estimate
from lab.instruments.summaries import behaviour, patching
from lab.instruments.summaries import tables as T
from lab.instruments.summaries.summary import Tables

ENOUGH = 6
"""Fewer independent units (passages) than this never give a direction: no paired test over five
of them can reach p < 0.05, however clear the numbers look."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Units:
    """How many independent units (clusters of examples that share passages) a number rests on.

    Attributes:
        study: all examples.
        own: those with a verdict on the model's own answer.
        pairs: those with a verdict on a right and on a wrong candidate.
        attention: those with attention on the passage when answering and when judging.
        filler: those with it when judging and in the answering prompt of the judge's length.
        patched: those with heads patched between answering and judging, and runs far enough apart.
    """

    study: int
    own: int
    pairs: int
    attention: int
    filler: int
    patched: int


@dataclass(frozen=True, slots=True)
class Facts:
    """The estimates that the sentences are made of; NaN where something was not measured.

    ``lazy`` is the better of the two judges that read nothing, "accepting" or "rejecting"
    everything, and ``against_lazy`` how much more often the model's verdicts on its own answers
    are right than that judge's, paired by example.
    """

    tables: Tables
    n: int
    units: Units
    ga: Estimate
    ea: Estimate
    delta: Estimate
    acceptance: Estimate
    always_accept: Estimate
    always_reject: Estimate
    lazy: str
    against_lazy: Estimate
    balanced: Estimate
    auroc: Estimate
    ratio: Estimate
    filler_ratio: Estimate
    label_mass: Estimate


def gather(ds: xr.Dataset, tables: Tables) -> Facts:
    """The estimates that a headline needs, from a study and its tables."""

    def judged(metric: str) -> Estimate:
        return T.find(tables.agreement, scope="all", metric=metric)

    def retested(metric: str) -> Estimate:
        return T.find(tables.balanced, scope="all", rung="hardest", metric=metric)

    def ratio(numerator: str) -> Estimate:
        return T.find(
            tables.ratios,
            numerator=numerator,
            denominator="evaluator",
            region="context",
            normalisation="raw",
            aggregate="mean",
        )

    accept, reject = judged("always_accept"), judged("always_reject")
    lazy = "rejecting" if reject.value > accept.value else "accepting"
    return Facts(
        tables=tables,
        n=ds.sizes.get("example", 0),
        units=count_units(ds, tables.rule),
        ga=judged(f"ga_{tables.rule}"),
        ea=judged("ea"),
        delta=judged("delta"),
        acceptance=judged("acceptance"),
        always_accept=accept,
        always_reject=reject,
        lazy=lazy,
        against_lazy=_against(ds, tables.rule, lazy),
        balanced=retested("balanced_accuracy"),
        auroc=retested("auroc"),
        ratio=ratio("generator"),
        filler_ratio=ratio("generator_filler"),
        label_mass=T.find(tables.label_mass, rung="own"),
    )


def _against(ds: xr.Dataset, rule: str, lazy: str) -> Estimate:
    """Share of verdicts on own answers that are right, minus that of a judge that reads nothing."""
    log_odds, truth = T.numbers(ds, "log_odds", rung="own"), behaviour.right(ds, "own", rule)
    agrees = np.where(np.isnan(log_odds), np.nan, (log_odds > 0) == (truth > 0))
    read_nothing = truth if lazy == "accepting" else 1 - truth
    return S.mean_estimate(agrees - read_nothing, T.labels(ds, "cluster"))


# --- what was measured on how much --------------------------------------------------------------


def count_units(ds: xr.Dataset, rule: str = "f1_50") -> Units:
    """The independent units of each kind of measurement, see :class:`Units`.

    ``rule`` says when a candidate counts as right (``behaviour.RULES``).
    """
    return Units(
        study=T.independent(ds),
        own=_units(ds, _judged(ds, "own") & ~np.isnan(behaviour.right(ds, "own", rule))),
        pairs=_units(ds, _paired(ds, rule)),
        attention=attention_units(ds, "generator", "evaluator"),
        filler=attention_units(ds, "generator_filler", "evaluator"),
        patched=_units(ds, _patched(ds)),
    )


def attention_units(ds: xr.Dataset, first: str, second: str) -> int:
    """How many independent units have attention on the passage in both of these roles."""
    return _units(ds, _looked(ds, first) & _looked(ds, second))


def _units(ds: xr.Dataset, there: Mask) -> int:
    return int(np.unique(S.cluster_codes(there.size, T.labels(ds, "cluster"))[there]).size)


def _judged(ds: xr.Dataset, rung: str) -> Mask:
    return ~np.isnan(T.numbers(ds, "log_odds", rung=rung))


def _paired(ds: xr.Dataset, rule: str) -> Mask:
    """The questions of the row ``hardest`` in the table of ``behaviour.balanced``."""
    of_use = T.numbers(ds, "answerable") != 0
    wrong = [
        _judged(ds, rung) & (behaviour.right(ds, rung, rule) == 0) for rung in behaviour.HARDEST
    ]
    return np.asarray(_judged(ds, "gold") & of_use & np.any(wrong, axis=0))


def _looked(ds: xr.Dataset, role: str) -> Mask:
    mass = T.numbers(ds, "mass", role=role, span="context")
    return np.asarray((mass > 0).any(axis=tuple(range(1, mass.ndim))))


def _patched(ds: xr.Dataset) -> Mask:
    a, b = (T.numbers(ds, "patch_clean", contrast="role", run=run) for run in ("a", "b"))
    effect = T.numbers(ds, "patch_head", contrast="role")
    there = ~np.isnan(effect).all(axis=tuple(range(1, effect.ndim)))
    return np.asarray(there & (np.abs(a - b) >= patching.MIN_GAP))
