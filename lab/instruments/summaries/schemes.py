"""How much of a judge is left when it is asked in another way than usual."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr

from lab.instruments.statistics.paired import Draws, auroc_draws, average, mean_draws
from lab.instruments.summaries import differences as D
from lab.instruments.summaries import tables as T
from lab.instruments.summaries.runs import Run, common
from lab.instruments.summaries.tables import Floats

SCHEME_METRICS = ("auroc", "balanced_accuracy")

USUAL = "usual"


def out_of_scheme(runs: Sequence[Run]) -> pd.DataFrame:
    """AUROC and balanced accuracy of each run's judge under each scheme, and the drop.

    Columns: run, scheme, metric, value, low, high, n (questions), method, those of
    `lab.instruments.summaries.differences`: the difference is this scheme minus the usual one on
    the same questions, so that below zero is worse than usual. Questions are those that all runs
    judged both ways; a run in which none was is left out.
    """
    names, extra = ["run", "scheme", "metric"], list(D.COLUMNS)
    runs = [run for run in common(runs) if "scheme_log_odds" in run.dataset]
    if not runs:
        return T.table([], names, extra)
    clusters = T.labels(runs[0].dataset, "cluster")
    rows = []
    for scheme in T.coordinate(runs[0].dataset, "scheme"):
        both = [~np.isnan(_odds(run.dataset, scheme, USUAL)).any(axis=1) for run in runs]
        asked = [run for run, known in zip(runs, both, strict=True) if known.any()]
        kept = np.all([known for known in both if known.any()], axis=0) if asked else np.array(0)
        if not kept.any():
            continue
        for name, metric in product(dict.fromkeys(run.name for run in asked), SCHEME_METRICS):
            several = [run.dataset for run in asked if run.name == name]
            here, usual = (
                [_draws(_odds(ds, which)[kept], metric, clusters[kept]) for ds in several]
                for which in (scheme, USUAL)
            )
            mean = average(here)
            singles = [one.value - other.value for one, other in zip(here, usual, strict=True)]
            rows.append(
                T.row(mean.estimate(), run=name, scheme=scheme, metric=metric)
                | (
                    D.reference(mean)
                    if scheme == USUAL
                    else D.difference(mean - average(usual), singles)
                )
            )
    return T.table(rows, names, extra)


def _odds(ds: xr.Dataset, *schemes: str) -> Floats:
    """Log-odds of the right and the wrong candidate under each scheme, side by side."""
    values = ds["scheme_log_odds"].transpose("example", ...)
    pairs = [values.sel(scheme=name, pair=["right", "wrong"]).values for name in schemes]
    return np.concatenate(pairs, axis=1).astype(float)


def _draws(odds: Floats, metric: str, clusters: np.ndarray) -> Draws:
    right, wrong = odds.T
    if metric == "auroc":
        return auroc_draws(right, wrong, clusters)
    return mean_draws(((right > 0).astype(float) + (wrong <= 0)) / 2, clusters)
