"""How far a run is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

EVERY_SECONDS = 30.0
"""How often a line is written where there is no terminal."""

Progress = Callable[[int, int, str], None]


@contextmanager
def show_progress(unit: str = "example") -> Iterator[Progress]:
    """A function for a study or a training to tell how far it is; it writes to standard error.

    ``unit`` is what is counted, in the singular.
    """
    if not sys.stderr.isatty():
        yield _Lines(unit)
        return
    bar = _Bar(unit)
    try:
        yield bar
    finally:
        bar.close()


class _Bar:
    """A tqdm bar that appears with the first call, below the messages before it."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._bar: tqdm[Any] | None = None

    def __call__(self, done: int, total: int, name: str) -> None:
        if self._bar is None:
            self._bar = tqdm(total=total, initial=done, unit=self._unit, dynamic_ncols=True)
        self._bar.set_description_str(_printable(name) or "done", refresh=False)
        self._bar.update(done - self._bar.n)
        self._bar.refresh()

    def close(self) -> None:
        """Leave the bar as it stands."""
        if self._bar is not None:
            self._bar.close()


class _Lines:
    """Sparse lines with the time left, judged by what was done so far."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._begun: tuple[float, int] | None = None
        self._last = 0.0

    def __call__(self, done: int, total: int, _: str) -> None:
        now = time.monotonic()
        if self._begun is None:
            self._begun = (now, done)
            self._last = now
        since, before = self._begun
        if now - self._last < EVERY_SECONDS and done < total:
            return
        self._last = now
        left = ""
        if before < done < total:
            seconds = (now - since) / (done - before) * (total - done)
            left = f", about {_duration(seconds)} left"
        print(f"lab: {done} of {total} {self._unit}s{left}.", file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
