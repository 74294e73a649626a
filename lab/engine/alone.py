"""One process a folder: two that write into the same one would spoil each other's files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from lab.errors import LabError

LOCK = ".running"
"""The file in a folder that is held, and there, while something is run into it."""


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder that is there, while something is run into it.

    The operating system lets go of it when the process ends, however that happens.

    Raises:
        LabError: another process holds it, or it cannot be written.
    """
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise LabError(
            f"Another process is running in {folder}: let it end, or choose another --out folder."
        ) from None
    except OSError as error:
        raise LabError(
            f"{folder} cannot be written: {error.strerror or error}; choose another --out folder."
        ) from error
    try:
        yield
    finally:
        # While it is held: after that the file might be another process's.
        with contextlib.suppress(OSError):
            (folder / LOCK).unlink()
        lock.release()
