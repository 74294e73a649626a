"""Running patches for an explorer: one example's case and contrasts, opened once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lab.explorer.jobs import Jobs, Watch
from lab.explorer.selection import Choices, Head, Selection
from lab.explorer.sources import Source

if TYPE_CHECKING:
    from lab.explorer.directions import What
    from lab.explorer.results import PatchResult
    from lab.instruments.patching import Contrast


class Runner:
    """Patches on a source's examples.

    Attributes:
        jobs: what runs in the background.
        last: what was given last.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._contrasts: dict[str, dict[str, Contrast]] = {}
        self.jobs = Jobs()
        self.last: PatchResult | None = None

    def patch(
        self,
        selection: Selection,
        choices: Choices,
        direction: str,
        what: What,
        heads: Iterable[Head] | None,
        watch: Watch,
    ) -> PatchResult:
        """One patch of the selected example; see `Explorer.run`."""
        from lab.engine.watching import watched  # which loads torch, as the next two do
        from lab.explorer.bench import Request, patch
        from lab.instruments.patching import contrasts

        chosen: tuple[Head, ...] = ()
        if what in ("head", "set"):
            asked = _selected(selection, what) if heads is None else heads
            chosen = tuple(sorted({choices.head(pair) for pair in asked}))
        request = Request(direction, what, chosen)
        watch.step(0, 0, "opening the example")
        case = self._source.case(selection.example)
        if selection.example not in self._contrasts:
            behaviour = self._source.behaviour(selection.example)
            watch.step(0, 0, "comparing the runs")
            with watched(case.lens, lambda layer: watch.layer(layer, case.lens.n_layers)):
                self._contrasts[selection.example] = contrasts(case, behaviour)
        self.last = patch(case, request, self._contrasts[selection.example], watch)
        return self.last


def _selected(selection: Selection, what: What) -> tuple[Head, ...]:
    return selection.heads if what == "set" else ((selection.layer, selection.head),)
