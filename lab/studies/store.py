"""The store of a study: labelled arrays in Zarr, written example by example.

Every array has one chunk file per example, written under a temporary name and renamed. An example
counts as stored when its flag in ``done``, set last, and all its chunks are there. Going on after a
kill rewrites what was begun and not flagged; the arrays end with the same bytes as after an
unbroken run, since nothing of the clock or the machine is in them.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import zarr
from zarr.errors import BaseZarrError, UnstableSpecificationWarning

from lab.errors import LabError
from lab.studies.recipe import Recipe
from lab.studies.schema import LABELS, MISSING, OPTIONAL, VARIABLES, Variable

ARRAYS = "arrays.zarr"
RECIPE = "recipe.json"
PROVENANCE = "provenance.json"

COORDINATES = ("example", *LABELS, "layer", "head", "token")
"""Arrays that hold labels: written with the store, and never again."""

DAMAGED = (OSError, KeyError, ValueError, TypeError, RuntimeError, BaseZarrError)
"""What Zarr, its codecs and xarray raise for files that are missing, cut off or overwritten."""


class Store:
    """A study's folder. Make one with `create` or `resume`; read one with `read_study`."""

    def __init__(self, folder: Path, group: zarr.Group) -> None:
        self.folder = folder
        with _quiet_zarr():
            self._arrays = {name: _array(group, name) for name in (*VARIABLES, "done")}

    def tidy(self) -> None:
        """Remove what a write that was killed left behind."""
        for left in (self.folder / ARRAYS).rglob("*.partial"):
            left.unlink(missing_ok=True)

    @property
    def done(self) -> np.ndarray:
        """For each example whether it is stored, whole."""
        flags = np.asarray(self._arrays["done"][:], dtype=bool)
        lacking = [not missing_chunks(self.folder, int(i)) for i in np.flatnonzero(flags)]
        flags[flags] = lacking
        return flags

    def write(self, index: int, values: Mapping[str, Any]) -> None:
        """Store all that was measured of one example. What is not given stays missing.

        Raises:
            LabError: the disk is full or not writable; examples stored before are safe.
        """
        with writing(self.folder, self):
            for name, value in values.items():
                self._write_one(name, index, value)
            self._arrays["done"][index] = True

    def _write_one(self, name: str, index: int, value: Any) -> None:
        array = self._arrays[name]
        if array.ndim == 1:
            array[index] = value
            return
        data = np.asarray(value)
        if data.ndim and data.shape[-1] < array.shape[-1] and VARIABLES[name].dims[-1] == "token":
            room = array.shape[-1] - data.shape[-1]
            pad = [(0, 0)] * (data.ndim - 1) + [(0, room)]
            data = np.pad(data, pad, constant_values=MISSING[VARIABLES[name].dtype])  # type: ignore[call-overload]
        array[index] = data


def _array(group: zarr.Group, name: str) -> zarr.Array[Any]:
    array = group[name]
    assert isinstance(array, zarr.Array)
    # A chunk of nothing but missing values is written too, so that a lost file is noticed.
    return array.with_config({"write_empty_chunks": True})


@contextlib.contextmanager
def writing(folder: Path, store: Store | None = None) -> Iterator[None]:
    """Tell a full or unwritable disk in words: what is stored is safe, and how to go on."""
    try:
        yield
    except OSError as error:
        safe = "choose another --out folder."
        if store is not None:
            done = store.done
            safe = (
                f"{int(done.sum())} of {len(done)} examples are stored. Make room or mend the "
                "disk, and run the same command again to go on."
            )
        raise LabError(f"{folder} cannot be written: {error.strerror or error}; {safe}") from error


def missing_chunks(folder: Path, index: int) -> list[str]:
    """The variables whose chunk of a stored example is not there, though it must have been.

    Of a group that may be left unmeasured, all chunks are missing or none.
    """
    arrays = folder / ARRAYS
    lacking = {name for name in VARIABLES if not (arrays / name / "c" / str(index)).exists()}
    unmeasured = [set(group) for group in OPTIONAL.values() if lacking.issuperset(group)]
    return [name for name in VARIABLES if name in lacking.difference(*unmeasured)]


def create(
    folder: Path,
    recipe: Recipe,
    fingerprint: Mapping[str, str],
    ids: Sequence[str],
    sizes: Mapping[str, int],
) -> Store:
    """A new store, in place of whatever was begun in the folder without an example stored.

    Args:
        fingerprint: hashes of what the recipe only names (examples, prompts, weights).
        ids: the examples' ids; ``sizes``: of the dimensions layer, head and token.

    Raises:
        LabError: the folder cannot be written.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with _quiet_zarr():
            group = _create_arrays(folder / ARRAYS, ids, sizes)
        # Written last: a folder without a recipe is begun anew.
        write_json(folder / RECIPE, {"recipe": recipe.as_dict(), "fingerprint": dict(fingerprint)})
    return Store(folder, group)


def resume(folder: Path, recipe: Recipe, fingerprint: Mapping[str, str]) -> Store | None:
    """The store that stands in the folder if it is of this recipe; None if there is none yet.

    Raises:
        LabError: the folder holds a study of another recipe, or of the same recipe on other data,
            prompts or weights, or one that is damaged.
    """
    if not is_study(folder):
        if any((folder / ARRAYS / "done" / "c").glob("*")):
            raise LabError(
                f"{folder} holds arrays with measured examples, but its {RECIPE} is missing. Put "
                "the file back, or choose another --out folder."
            )
        return None
    known = read_json(folder / RECIPE)
    recipe.check_same(known.get("recipe") or {}, folder)
    for what, value in fingerprint.items():
        if (known.get("fingerprint") or {}).get(what) != value:
            raise LabError(
                f"{folder} holds a study with the same recipe, but the {what} have changed since. "
                "Choose another --out folder."
            )
    try:
        with _quiet_zarr():
            store = Store(folder, zarr.open_group(folder / ARRAYS, mode="r+"))
        store.done  # noqa: B018, its file may be damaged
    except DAMAGED as error:
        raise LabError(_damaged(folder, error)) from error
    _check_labels(folder)
    return store


def is_study(folder: Path) -> bool:
    """Whether a folder holds a study, finished or not."""
    return (folder / RECIPE).exists()


def any_done(folder: Path) -> bool:
    """Whether a study's folder holds an example that is finished.

    Raises:
        LabError: its arrays are damaged.
    """
    if not (folder / ARRAYS).exists():
        return False
    try:
        with _quiet_zarr():
            done = zarr.open_group(folder / ARRAYS, mode="r")["done"]
            return bool(np.asarray(done[:]).any())
    except DAMAGED as error:
        raise LabError(_damaged(folder, error, "done")) from error


def _damaged(folder: Path, error: BaseException, name: str = "") -> str:
    what = f"The array {name!r}" if name else "The arrays"
    return (
        f"{what} in {folder / ARRAYS} cannot be read ({str(error) or type(error).__name__}). "
        "The folder is damaged: bring back a copy of it, or run the study into another folder."
    )


def _check_labels(folder: Path) -> None:
    """Raise LabError for a store that does not say which example or variable is which."""
    for name in COORDINATES:
        place = folder / ARRAYS / name
        # Numbers that are all zero need no file; texts do.
        texts = name == "example" or name in LABELS
        if not (place / "zarr.json").exists() or (texts and not (place / "c" / "0").exists()):
            raise LabError(_damaged(folder, KeyError("its file is missing"), name))


def _create_arrays(path: Path, ids: Sequence[str], sizes: Mapping[str, int]) -> zarr.Group:
    shutil.rmtree(path, ignore_errors=True)
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

    Examples that were not finished are left out; the provenance says how many are ``done`` of how
    many that are ``planned``. `lab.studies.schema` says what the variables mean. Everything is in
    memory, so the folder may go on being written.

    Raises:
        LabError: no study there, none of its examples finished, or its arrays cannot be read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise LabError(f"There is no folder {folder}.")
    if not is_study(folder):
        raise LabError(f"{folder} holds no study (it has no {RECIPE}). Make one with `lab run`.")
    dataset = _load(folder)
    done = np.flatnonzero(dataset["done"].values.astype(bool))
    for index in done:
        if missing := missing_chunks(folder, int(index)):
            raise LabError(
                f"{folder} lacks files of the example {dataset['example'].values[index]!r} "
                f"({', '.join(missing[:3])}). Run `lab run` again to measure it anew, or bring "
                "back a copy of the folder."
            )
    if not len(done):
        raise LabError(f"No example of {folder} is finished yet: run `lab run` to go on.")
    path = folder / PROVENANCE
    stored = read_json(path) if path.exists() else {}
    made = {**stored, "done": len(done), "planned": dataset.sizes["example"]}
    return dataset.isel(example=done).drop_vars("done"), made


def _load(folder: Path) -> xr.Dataset:
    """All arrays in memory, or a LabError that names the damaged one."""
    name: Hashable = ""
    if (folder / ARRAYS).exists():
        _check_labels(folder)
    try:
        with _quiet_zarr():
            dataset: xr.Dataset = xr.open_zarr(folder / ARRAYS, consolidated=False, chunks=None)
            for name in dataset.variables:
                dataset[name].load()
    except DAMAGED as error:
        raise LabError(_damaged(folder, error, str(name))) from error
    lacking = [name for name in (*VARIABLES, "done") if name not in dataset]
    if lacking:
        raise LabError(_damaged(folder, KeyError("its folder is missing"), lacking[0]))
    return dataset[[*VARIABLES, "done"]]


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; LabError if it is broken."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(
            f"{path} cannot be read ({error}). It is damaged: bring back a copy of the folder, or "
            "run the study into another one."
        ) from error
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


@contextlib.contextmanager
def _quiet_zarr() -> Iterator[None]:
    """Zarr says at each use that text arrays are not yet in its specification."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableSpecificationWarning)
        yield
