"""What all summary tables share: groups of examples, and rows that carry an Estimate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from lab.instruments.statistics import Estimate, bootstrap_means, cluster_codes

Floats = NDArray[np.float64]

NUMBERS = ("value", "low", "high", "n", "method")
"""Columns that every table ends with, after its labels."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Group:
    """Some of the examples: all of them, those of a dataset, or those of a family in a dataset."""

    scope: str
    name: str
    mask: NDArray[np.bool_]


def groups(ds: xr.Dataset) -> list[Group]:
    """All examples, then each dataset, then each family where a dataset has several."""
    n = ds.sizes.get("example", 0)
    found = [Group("all", "all", np.ones(n, dtype=bool))]
    datasets, families = labels(ds, "dataset"), labels(ds, "family")
    parts: list[Group] = []
    for dataset in dict.fromkeys(datasets):
        mask = datasets == dataset
        found.append(Group("dataset", dataset, mask))
        inside = dict.fromkeys(families[mask])
        if len(inside) > 1:
            parts += [
                Group("family", f"{dataset}/{family}", mask & (families == family))
                for family in inside
            ]
    return found + parts


def independent(ds: xr.Dataset) -> int:
    """How many independent units (clusters of examples that share passages) there are."""
    codes = cluster_codes(ds.sizes.get("example", 0), labels(ds, "cluster"))
    return len(set(codes.tolist()))


def labels(ds: xr.Dataset, name: str) -> NDArray[np.object_]:
    """A text coordinate of the examples as plain strings; empty strings where it is absent."""
    if name not in ds:
        return np.full(ds.sizes.get("example", 0), "", dtype=object)
    return np.array([str(value) for value in np.asarray(ds[name].values).tolist()], dtype=object)


def numbers(ds: xr.Dataset, name: str, **at: str) -> Floats:
    """A variable as floats, at one position of named dimensions; all NaN where it is absent."""
    if name not in ds or any(str(v) not in coordinate(ds, dim) for dim, v in at.items()):
        return np.full(ds.sizes.get("example", 0), np.nan)
    return np.asarray(ds[name].sel(at).values, dtype=float)


def coordinate(ds: xr.Dataset, dim: str) -> list[str]:
    """The labels of a dimension; an empty list where the dataset does not have it."""
    return [str(value) for value in ds[dim].values.tolist()] if dim in ds.coords else []


def has(ds: xr.Dataset, *names: str) -> bool:
    """Whether the study measured all of these variables."""
    return all(name in ds for name in names)


def row(estimate: Estimate, **names: Any) -> Row:
    """A table row: labels, then the numbers of an Estimate."""
    return {**names, **{column: getattr(estimate, column) for column in NUMBERS}}


def table(rows: Iterable[Row], names: Sequence[str], extra: Sequence[str] = ()) -> pd.DataFrame:
    """Rows as a DataFrame with the columns in order, also where there is no row at all."""
    return pd.DataFrame(list(rows), columns=[*names, *NUMBERS, *extra])


def means_table(
    values: ArrayLike, cells: Sequence[tuple[Any, ...]], dims: Sequence[str], clusters: ArrayLike
) -> pd.DataFrame:
    """A table of means over the first axis of ``values``, one row for each of the other cells."""
    means = bootstrap_means(values, clusters)
    frame = pd.DataFrame(list(cells), columns=list(dims))
    for column in ("value", "low", "high", "n"):
        frame[column] = np.asarray(getattr(means, column)).reshape(-1)
    known = frame["low"].notna()
    return frame.assign(
        method=np.where(known, "percentile bootstrap, 2,000 resamples", "no interval: too few")
    )


def find(frame: pd.DataFrame, **names: Any) -> Estimate:
    """The Estimate in the one row with these labels; an empty one where there is none."""
    chosen = frame
    for column, wanted in names.items():
        chosen = chosen[chosen[column] == wanted]
    if chosen.empty:
        return Estimate(math.nan, method="not measured")
    first = chosen.iloc[0]
    return Estimate(
        float(first["value"]),
        float(first["low"]),
        float(first["high"]),
        int(first["n"]),
        str(first["method"]),
    )
