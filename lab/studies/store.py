"""The store of a study: labelled arrays in Zarr, written example by example.

Every array has one chunk per example, so an example is written whole or not at all: its flag in
``done`` is set last. Going on after a kill rewrites what was begun and not flagged; the arrays end
with the same bytes as after an unbroken run, since nothing of the clock or the machine is in them.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr

from lab.errors import LabError
from lab.studies.recipe import Recipe
from lab.studies.schema import LABELS, MISSING, VARIABLES, Variable

ARRAYS = "arrays.zarr"
RECIPE = "recipe.json"
PROVENANCE = "provenance.json"


class Store:
    """A study's folder. Make one with `create_or_resume`; read one with `read_study`."""

    def __init__(self, folder: Path, group: zarr.Group) -> None:
        self.folder = folder
        self._group = group

    @property
    def done(self) -> np.ndarray:
        """For each example whether it is stored."""
        return np.asarray(self._array("done")[:], dtype=bool)

    def write(self, index: int, values: Mapping[str, Any]) -> None:
        """Store all that was measured of one example. What is not given stays missing.

        Raises:
            LabError: the disk is full or not writable; examples stored before are safe.
        """
        try:
            for name, value in values.items():
                self._write_one(name, index, value)
            self._array("done")[index] = True
        except OSError as error:
            stored = int(self.done.sum())
            raise LabError(
                f"{self.folder} cannot be written: {error.strerror or error}. "
                f"{stored} of {len(self.done)} examples are stored; make room and run the same "
                "command again to go on."
            ) from error

    def _write_one(self, name: str, index: int, value: Any) -> None:
        array = self._array(name)
        if array.ndim == 1:
            array[index] = value
            return
        data = np.asarray(value)
        if data.ndim and data.shape[-1] < array.shape[-1] and VARIABLES[name].dims[-1] == "token":
            room = array.shape[-1] - data.shape[-1]
            pad = [(0, 0)] * (data.ndim - 1) + [(0, room)]
            data = np.pad(data, pad, constant_values=MISSING[VARIABLES[name].dtype])  # type: ignore[call-overload]
        array[index] = data

    def _array(self, name: str) -> zarr.Array[Any]:
        array = self._group[name]
        assert isinstance(array, zarr.Array)
        return array


def create_or_resume(
    folder: Path,
    recipe: Recipe,
    fingerprint: Mapping[str, str],
    ids: list[str],
    sizes: Mapping[str, int],
) -> Store:
    """The store of a recipe: a new one, or the one that stands in the folder.

    Args:
        fingerprint: hashes of what the recipe only names (examples, weights).
        ids: the examples' ids; ``sizes``: of the dimensions layer, head and token.

    Raises:
        LabError: the folder cannot be written, or holds a study of another recipe, or of the same
            recipe on other data or weights.
    """
    stored = folder / RECIPE
    if stored.exists():
        known = read_json(stored)
        recipe.check_same(known.get("recipe", {}), folder)
        for what, value in fingerprint.items():
            if known.get("fingerprint", {}).get(what) != value:
                raise LabError(
                    f"{folder} holds a study with the same recipe, but its {what} have changed "
                    "since. Choose another --out folder."
                )
        with _zarr_warnings():
            return Store(folder, zarr.open_group(folder / ARRAYS, mode="r+"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _zarr_warnings():
            group = _create_arrays(folder / ARRAYS, ids, sizes)
        # Written last: a folder without a recipe is begun anew.
        write_json(stored, {"recipe": recipe.as_dict(), "fingerprint": dict(fingerprint)})
    except OSError as error:
        raise LabError(
            f"{folder} cannot be written ({error.strerror or error}): choose another --out folder."
        ) from error
    return Store(folder, group)


def _create_arrays(path: Path, ids: list[str], sizes: Mapping[str, int]) -> zarr.Group:
    group = zarr.open_group(path, mode="w")
    _create(group, "example", ("example",), np.array(ids, dtype=object), "str")
    for dim, labels in LABELS.items():
        _create(group, dim, (dim,), np.array(labels, dtype=object), "str")
    for dim in ("layer", "head", "token"):
        _create(group, dim, (dim,), np.arange(sizes[dim], dtype="i4"), "i4")
    lengths = {"example": len(ids), **sizes, **{d: len(names) for d, names in LABELS.items()}}
    done = Variable((), "bool", "whether the example is stored")
    for name, variable in {**VARIABLES, "done": done}.items():
        dims = ("example", *variable.dims)
        shape = tuple(lengths[d] for d in dims)
        array = group.create_array(
            name,
            shape=shape,
            chunks=(1, *shape[1:]),
            dtype=str if variable.dtype == "str" else variable.dtype,
            fill_value=MISSING[variable.dtype],
            dimension_names=dims,
        )
        array.attrs["meaning"] = variable.meaning
    return group


def _create(
    group: zarr.Group, name: str, dims: tuple[str, ...], values: np.ndarray, dtype: str
) -> None:
    array = group.create_array(
        name, shape=values.shape, chunks=(max(1, len(values)),),
        dtype=str if dtype == "str" else dtype, dimension_names=dims,
    )  # fmt: skip
    array[:] = values


def read_study(folder: str | Path) -> tuple[xr.Dataset, dict[str, Any]]:
    """The stored examples of a study as one Dataset, and its provenance.

    Examples that were not finished are left out. `lab.studies.schema` says what the variables
    mean. Everything is in memory, so the folder may go on being written.

    Raises:
        LabError: no study there, none of its examples finished, or its arrays cannot be read.
    """
    folder = Path(folder)
    if not (folder / RECIPE).exists():
        raise LabError(f"{folder} holds no study (it has no {RECIPE}). Make one with `lab run`.")
    try:
        with _zarr_warnings():
            dataset = xr.open_zarr(folder / ARRAYS, consolidated=False).load()
    except (OSError, KeyError, ValueError) as error:
        raise LabError(f"The arrays in {folder} cannot be read: {error}") from error
    done = dataset["done"].values.astype(bool)
    if not done.any():
        raise LabError(f"No example of {folder} is finished yet: run `lab run` to go on.")
    kept = dataset.isel(example=np.flatnonzero(done)).drop_vars("done")
    path = folder / PROVENANCE
    return kept, read_json(path) if path.exists() else {}


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; LabError if it is broken."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(f"{path} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise LabError(f"{path} does not hold a JSON object.")
    return data


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write JSON under a temporary name and rename it, so that it is whole or absent."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, ensure_ascii=False, indent=1)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    finally:
        Path(temporary).unlink(missing_ok=True)


class _zarr_warnings(warnings.catch_warnings):
    """Zarr says at each use that text arrays are not yet in its specification."""

    def __enter__(self) -> Any:
        entered = super().__enter__()
        warnings.simplefilter("ignore")
        return entered
