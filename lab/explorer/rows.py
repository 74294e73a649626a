"""Examples that were measured one by one, as the same arrays that a study stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from lab.studies.schema import LABELS, MISSING, VARIABLES

SIZED = ("layer", "head", "token")
"""Dimensions whose size depends on what was measured."""


def as_dataset(rows: Mapping[str, Mapping[str, Any]]) -> xr.Dataset:
    """A Dataset of measured examples, by id, from what `lab.studies.study.measure` gives of each.

    Variables that no row has are absent, as in a study that did not measure them. Values that are
    shorter than the others along ``role`` or ``token`` are filled up with missing ones.
    """
    sizes = {dim: max(_size(row, dim) for row in rows.values()) for dim in SIZED}
    lengths = sizes | {dim: len(labels) for dim, labels in LABELS.items()}
    coordinates: dict[str, Any] = {
        "example": np.array(list(rows), dtype=object),
        **{dim: np.array(labels, dtype=object) for dim, labels in LABELS.items()},
        **{dim: np.arange(size) for dim, size in sizes.items()},
    }
    arrays = {}
    for name, variable in VARIABLES.items():
        if any(name in row for row in rows.values()):
            shape = tuple(lengths[dim] for dim in variable.dims)
            values = [_filled(row.get(name), shape, variable.dtype) for row in rows.values()]
            arrays[name] = (("example", *variable.dims), np.stack(values))
    used = {"example", *(dim for dims, _ in arrays.values() for dim in dims)}
    return xr.Dataset(arrays, {dim: coordinates[dim] for dim in coordinates if dim in used})


def put(dataset: xr.Dataset, index: int, values: Mapping[str, Any]) -> None:
    """Write what was measured of one example into a Dataset, in place."""
    for name, value in values.items():
        array = dataset[name]
        array[index] = _filled(value, array.shape[1:], VARIABLES[name].dtype)


def _size(row: Mapping[str, Any], dim: str) -> int:
    """How long a row's values are along a dimension; 0 where it was not measured."""
    for name, variable in VARIABLES.items():
        if dim in variable.dims and name in row:
            return int(np.shape(row[name])[variable.dims.index(dim)])
    return 0


def _filled(value: Any, shape: Sequence[int], dtype: str) -> np.ndarray:
    kind = object if dtype == "str" else dtype
    out = np.full(shape, MISSING[dtype], dtype=kind)
    if value is not None:
        data = np.asarray(value, dtype=kind)
        out[tuple(slice(size) for size in data.shape)] = data
    return out
