"""What the lab refuses, shown as words: for notebooks that refuse something on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lab.errors import LabError


@contextmanager
def refused() -> Iterator[None]:
    """Print the words of a `LabError` raised inside, in place of a traceback.

    Other errors go through. Where nothing was refused, that is said.
    """
    try:
        yield
    except LabError as error:
        print(f"Refused: {error}")
    else:
        print("Nothing was refused.")
