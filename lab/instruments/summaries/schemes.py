"""How much of a judge is left when it is asked in another way than usual."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from lab.instruments.statistics.paired import Draws, auroc_draws, average, mean_draws
from lab.instruments.summaries import tables as T
from lab.instruments.summaries.runs import Run, common
from lab.instruments.summaries.tables import Floats

SCHEME_METRICS = ("auroc", "balanced_accuracy")

USUAL = "usual"


def out_of_scheme(runs: Sequence[Run]) -> pd.DataFrame:
    """AUROC and balanced accuracy of each run's judge under each scheme, and the drop.

    Columns: run, scheme, metric, value, low, high, n (questions), method, drop (the usual scheme
    minus this one on the same questions: positive is worse than usual), drop_low, drop_high
    (paired bootstrap over clusters, averaged over training seeds).
    """
    names, extra = ["run", "scheme", "metric"], ["drop", "drop_low", "drop_high"]
    runs = [run for run in common(runs) if "scheme_log_odds" in run.dataset]
    rows = []
    for name in dict.fromkeys(run.name for run in runs):
        several = [run.dataset for run in runs if run.name == name]
        clusters = T.labels(several[0], "cluster")
        for scheme in T.coordinate(several[0], "scheme"):
            odds = [_odds(ds, scheme) for ds in several]
            usual = [_odds(ds, USUAL) for ds in several]
            # Only questions that were judged both ways, so that the two can be subtracted.
            both = ~np.isnan(np.concatenate([*odds, *usual], axis=1)).any(axis=1)
            if not both.any():
                continue
            for metric in SCHEME_METRICS:
                mean, reference = (
                    average([_draws(one[both], metric, clusters[both]) for one in side])
                    for side in (odds, usual)
                )
                drop = (reference - mean).estimate()
                own = scheme == USUAL
                rows.append(
                    T.row(mean.estimate(), run=name, scheme=scheme, metric=metric)
                    | {
                        "drop": math.nan if own else drop.value,
                        "drop_low": math.nan if own else drop.low,
                        "drop_high": math.nan if own else drop.high,
                    }
                )
    return T.table(rows, names, extra)


def _odds(ds: xr.Dataset, scheme: str) -> Floats:
    values = ds["scheme_log_odds"].sel(scheme=scheme)
    return np.asarray(values.sel(pair=["right", "wrong"]).values, dtype=float)


def _draws(odds: Floats, metric: str, clusters: np.ndarray) -> Draws:
    right, wrong = odds.T
    if metric == "auroc":
        return auroc_draws(right, wrong, clusters)
    return mean_draws(((right > 0).astype(float) + (wrong <= 0)) / 2, clusters)
