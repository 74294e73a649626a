"""The cache of converted models: whole folders only, written aside and renamed."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import platformdirs

from lab.engine.weights.folder import is_whole
from lab.errors import LabError


def cache_folder() -> Path:
    """Where converted models are kept: ``ROLELENS_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("ROLELENS_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("rolelens"))


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A working folder whose ``model`` becomes ``folder`` if nothing goes wrong.

    Whatever happens, the working folder goes; after a kill, the next one sweeps it up.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        work = Path(tempfile.mkdtemp(prefix=f".{folder.name}.{os.getpid()}.", dir=folder.parent))
    except OSError as error:
        raise LabError(
            f"The cache folder {folder.parent} cannot be written ({error.strerror}). "
            "Set ROLELENS_CACHE to a folder of yours."
        ) from error
    try:
        (work / "model").mkdir()
        yield work
        _move(work / "model", folder)
    except OSError as error:
        raise LabError(
            f"The model could not be written to {folder.parent}: {error.strerror or error}. "
            "Make room, or set ROLELENS_CACHE to another disk."
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _move(new: Path, folder: Path) -> None:
    """Put a whole folder in its place, unless another process has just done so."""
    if folder.exists() and not is_whole(folder):
        shutil.rmtree(folder)
    try:
        new.rename(folder)
    except OSError:
        if not is_whole(folder):
            raise


def _sweep(folder: Path) -> None:
    """Remove working folders of processes that are gone."""
    import psutil

    for left in folder.parent.glob(f".{glob.escape(folder.name)}.*"):
        owner = left.name.removeprefix(f".{folder.name}.").partition(".")[0]
        if not (owner.isdigit() and psutil.pid_exists(int(owner))):
            shutil.rmtree(left, ignore_errors=True)
