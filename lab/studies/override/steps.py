"""How far an override study is, and its model, which is loaded when it is first needed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.engine.lens import Lens
    from lab.engine.loading import Outline

Progress = Callable[[int, int, str], None]
"""Called with parts done, parts in all, and what is done now."""

Show = Callable[[str], AbstractContextManager[Progress]]
"""Opens a progress that counts the named unit, such as `lab.cli.progress.show_progress`."""

log = logging.getLogger("lab")


@dataclass(eq=False)
class Steps:
    """Counts what is done, in parts that take about as long as each other.

    Attributes:
        progress: who is told.
        total: parts in all, at most.
    """

    progress: Progress | None
    total: int
    _done: int = 0
    _now: int = 0

    def __call__(self, what: str, parts: int = 1) -> None:
        """Tell what is done now; its parts count as done with the next call."""
        self._done = min(self._done + self._now, self.total)
        self._now = parts
        if self.progress is not None:
            self.progress(self._done, self.total, what)

    def end(self) -> None:
        """Tell that everything is done."""
        if self.progress is not None:
            self.progress(self.total, self.total, "")


@contextmanager
def counting(show: Show | None, unit: str, total: int) -> Iterator[Steps]:
    """Steps of one phase of a study, told to a progress of its own."""
    if show is None or not total:
        yield Steps(None, total)
        return
    with show(unit) as progress:
        steps = Steps(progress, total)
        yield steps
        steps.end()


@dataclass(eq=False)
class Model:
    """The model, loaded the first time that it is called for.

    Attributes:
        named: the model, or what is known of it before its weights are loaded.
        opened: told once it is there.
    """

    named: Lens | Outline
    opened: Callable[[Lens], None]
    _lens: Lens | None = field(default=None)

    def __call__(self) -> Lens:
        """The model."""
        if self._lens is None:
            self._lens = self._open()
            self.opened(self._lens)
        return self._lens

    def _open(self) -> Lens:
        from lab.engine.loading import Outline, open_lens

        if not isinstance(self.named, Outline):
            return self.named
        log.info("Loading %s (%s).", self.named.title, self.named.weights.source)
        return open_lens(self.named)
