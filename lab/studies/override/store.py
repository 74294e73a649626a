"""The folder of an override study: each result a file of its own, written whole when it is done.

A file is written under a temporary name and renamed, so that it is whole or absent. What is there
is not run again; what is not is run, from files only, so that a study that was killed ends with the
same bytes as an unbroken one.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from lab.engine.alone import alone
from lab.errors import LabError
from lab.studies.override.recipe import OverrideRecipe
from lab.studies.override.results import CONTEST_TABLES, FOLDER, TABLES, read_table
from lab.studies.store import RECIPE, read_json

FLOATS = "%.6g"
"""How numbers are written in tables: far finer than any interval."""


@dataclass(frozen=True, slots=True)
class OverrideStore:
    """The folder ``override`` inside a study's folder; make one with `open_override`.

    Names of files are relative to it, such as "instruction/heads.csv".
    """

    folder: Path

    def has(self, *names: str) -> bool:
        """Whether all these files are there."""
        return all((self.folder / name).exists() for name in names)

    def write_tables(self, tables: Mapping[str, pd.DataFrame]) -> None:
        """Write tables as CSV files, by name without the ending."""
        for name, frame in tables.items():
            text = frame.to_csv(index=False, float_format=FLOATS, lineterminator="\n")
            self._write_text(f"{name}.csv", text)

    def table(self, name: str) -> pd.DataFrame:
        """A table that is there."""
        columns = CONTEST_TABLES if "/" in name else TABLES
        return read_table(self.folder / f"{name}.csv", columns.get(name.split("/")[-1], ()))

    def write_json(self, name: str, data: Any) -> None:
        """Write JSON data."""
        self._write_text(name, json.dumps(data, ensure_ascii=False, indent=1))

    def json(self, name: str) -> dict[str, Any]:
        """JSON data that is there."""
        return read_json(self.folder / name)

    def write_arrays(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Write arrays as an npz file."""
        self._write(name, lambda file: np.savez(file, **dict[str, Any](arrays)))

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Arrays that are there.

        Raises:
            LabError: the file is damaged.
        """
        path = self.folder / name
        try:
            with np.load(path, allow_pickle=False) as stored:
                return {key: stored[key] for key in stored.files}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise LabError(
                f"{path} cannot be read ({error}). Delete it and run `lab override` again: it is "
                "made anew."
            ) from error

    def _write_text(self, name: str, text: str) -> None:
        self._write(name, lambda file: file.write(text.encode("utf-8")))

    def _write(self, name: str, write: Callable[[IO[bytes]], Any]) -> None:
        path = self.folder / name
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".partial")
            try:
                with os.fdopen(handle, "wb") as file:
                    write(file)
                Path(temporary).chmod(0o644)
                Path(temporary).replace(path)
            finally:
                Path(temporary).unlink(missing_ok=True)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Tell a full or unwritable disk in words."""
    try:
        yield
    except OSError as error:
        raise LabError(
            f"{path} cannot be written: {error.strerror or error}. What was finished before is "
            "stored: make room or mend the disk, and run the same command again to go on."
        ) from error


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the place of an override study in a study's folder; LabError if that cannot be."""
    place = folder / FOLDER
    with writing(place):
        place.mkdir(parents=True, exist_ok=True)
    with alone(place):
        yield


def open_override(
    folder: Path, recipe: OverrideRecipe, fingerprint: Mapping[str, str]
) -> OverrideStore:
    """The store of a recipe in a study's folder, made if there is none yet.

    Args:
        folder: of the study.
        recipe: what is run.
        fingerprint: hashes of what the recipe only names (conflicts, prompts, weights).

    Raises:
        LabError: the folder holds an override study of another recipe, or of the same on other
            conflicts, prompts or weights, or cannot be written.
    """
    store = OverrideStore(folder / FOLDER)
    if store.has(RECIPE):
        known = store.json(RECIPE)
        recipe.check_same(known.get("recipe") or {}, folder)
        for what, value in fingerprint.items():
            if (known.get("fingerprint") or {}).get(what) != value:
                raise LabError(
                    f"{folder} holds an override study with the same recipe, but the {what} have "
                    "changed since. Choose another --out folder."
                )
        with writing(store.folder):
            for left in store.folder.rglob(".*.partial"):
                left.unlink(missing_ok=True)
        return store
    if _results(store.folder):
        raise LabError(
            f"{store.folder} holds results, but its {RECIPE} is missing. Put the file back, or "
            "choose another --out folder."
        )
    store.write_json(RECIPE, {"recipe": recipe.as_dict(), "fingerprint": dict(fingerprint)})
    return store


def _results(folder: Path) -> Sequence[Path]:
    return sorted(folder.glob("*.csv")) + sorted(folder.glob("*/*.json"))
