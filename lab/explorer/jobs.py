"""One piece of work at a time, in the background, that can be stopped and never fails unheard."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from lab.errors import LabError

KEPT_IN = "explorer.last_error"

LEAST_SECONDS = 0.1
"""Progress of one step is told at most this often: a front end has to draw it each time."""


class Stopped(Exception):
    """Raised inside of a piece of work that was asked to stop."""


class Watch:
    """What a piece of work tells of its progress, and how it learns that it should stop."""

    def __init__(self, tell: Callable[[int, int, str], None] | None = None) -> None:
        self._tell = tell
        self._stop = threading.Event()
        self._words, self._told = "", 0.0

    def stop(self) -> None:
        """Ask the work to end at its next step."""
        self._stop.set()

    def step(self, done: int, total: int, words: str) -> None:
        """Tell how far the work is; raises Stopped if it should go no further."""
        if self._stop.is_set():
            raise Stopped
        now = time.monotonic()
        if self._tell is None or (words == self._words and now - self._told < LEAST_SECONDS):
            return
        self._words, self._told = words, now
        self._tell(done, total, words)

    def layer(self, layer: int, layers: int) -> None:
        """Tell which layer the present step has come to."""
        self.step(layer, layers, self._words)


class Jobs:
    """Runs one function at a time in a thread, and hands what it gives, or why not, to a caller.

    Attributes:
        last_error: the last error, as it was raised.
        kept_in: where a user finds that error, as words for what nobody foresaw.
    """

    def __init__(self, kept_in: str = KEPT_IN) -> None:
        self.kept_in = kept_in
        self.running = False
        self.last_error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._watch: Watch | None = None

    def start(
        self, work: Callable[[Watch], Any], watch: Watch, ended: Callable[[Any, str], None]
    ) -> None:
        """Run ``work(watch)`` in a thread; then ``ended(value, problem)``, one of them empty.

        Raises:
            LabError: something is running already.
        """
        if self.running:
            raise LabError("Something is still running: stop it first, or wait until it is done.")
        self.running, self._watch = True, watch
        self._thread = threading.Thread(
            target=self._run, args=(work, watch, ended), name="rolelens-bench", daemon=True
        )
        self._thread.start()

    def _run(
        self, work: Callable[[Watch], Any], watch: Watch, ended: Callable[[Any, str], None]
    ) -> None:
        value, problem = None, ""
        try:
            value = work(watch)
        except BaseException as error:
            problem = self._note(error)
        self.running = False
        try:
            ended(value, problem)
        except BaseException as error:
            ended(None, self._note(error))

    def _note(self, error: BaseException) -> str:
        if not isinstance(error, Stopped):
            self.last_error = error
        return in_words(error, self.kept_in)

    def stop(self) -> None:
        """Ask what runs to stop; nothing happens if nothing runs."""
        if self._watch is not None:
            self._watch.stop()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until what runs has ended and handed on what it gave; whether it has."""
        if self._thread is None:
            return True
        self._thread.join(seconds)
        return not self._thread.is_alive()


def in_words(error: BaseException, kept_in: str = KEPT_IN) -> str:
    """An error as a sentence for whoever looks at a widget."""
    if isinstance(error, Stopped):
        return "Stopped."
    if isinstance(error, LabError):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is too little memory for this. Close other programs, or take fewer heads."
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return (
        f"Something went wrong that the lab did not foresee ({told}). The whole story is in "
        f"{kept_in}."
    )
