"""The explorer: one selection, linked views, data and figures of them, and the patch bench."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.errors import LabError
from lab.explorer import drawing, frames, recall
from lab.explorer.jobs import Watch, in_words
from lab.explorer.payloads import payload
from lab.explorer.running import Runner
from lab.explorer.selection import Choices, Head, Selection, changed, to_state
from lab.explorer.sources import Source
from lab.instruments.summaries.reading import NORMALISATIONS
from lab.views.explorer_payload import explorer_page
from lab.views.page import write_page

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from lab.engine.lens import Lens
    from lab.explorer.directions import What
    from lab.explorer.panel import Panel
    from lab.explorer.patterns import AttentionPattern
    from lab.explorer.results import PatchResult
    from lab.roles import Prompt

Listener = Callable[[Selection], None]

LIVE_BYTES = 2_500_000
"""About how much a widget is sent at once; it asks for further examples one by one."""


class Explorer:
    """Examples, what was measured of them, and a selection that all views share.

    Make one with `lab.explore`. As the last line of a notebook's cell it shows its views, which
    follow `selection` and set it. Where a model is loaded the patch bench is live.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._listeners: list[Listener] = []
        self._runner = Runner(source)
        self._shown: Panel | None = None
        if source.lens is not None and not any(map(source.is_read, source.ids[:1])):
            source.read(source.ids[0])
        self._payload = payload(source, LIVE_BYTES)
        self._selection = self._first_selection()

    def __repr__(self) -> str:
        live = "live" if self.live else "no model loaded"
        return f"<Explorer of {len(self._source.ids)} examples, {live}: {self._selection}>"

    # --- selection --------------------------------------------------------------------------

    @property
    def selection(self) -> Selection:
        """What all views show; set it to a Selection, or change parts of it with `select`."""
        return self._selection

    @selection.setter
    def selection(self, value: Selection) -> None:
        if not isinstance(value, Selection):
            raise LabError(
                f"A selection cannot be {value!r}: use explorer.select(layer=3, head=1), for "
                "instance, or dataclasses.replace(explorer.selection, ...)."
            )
        wanted = self.choices.check(value)
        if self.live and not self._source.is_read(wanted.example):
            self.read(wanted.example)
        self.adopt(wanted)

    def select(self, **changes: Any) -> Selection:
        """The selection after changing some of its fields.

        ``head`` may be a (layer, head) pair. ``heads`` brushes a set of such pairs. Examples that
        were not read yet are read where a model is loaded.

        Raises:
            LabError: something does not exist; the message says what does.
        """
        self.selection = changed(self._selection, **changes)
        return self._selection

    @property
    def choices(self) -> Choices:
        """What there is to be selected."""
        names = tuple(q["name"] for q in self._payload["quantities"])
        return Choices(
            self._source.ids,
            self._payload["layers"],
            self._payload["heads"],
            NORMALISATIONS,
            names or ("difference",),
        )

    def observe(self, callback: Listener) -> Callable[[], None]:
        """Call ``callback`` with the new selection whenever it changes, here or in a widget.

        Returns a function that ends this.
        """
        self._listeners.append(callback)
        return partial(_remove, self._listeners, callback)

    def adopt(self, selection: Selection) -> None:
        """Take over a checked selection, as a widget hands it on: nothing is read for it."""
        if selection == self._selection:
            return
        self._selection = selection
        if self._shown is not None:
            self._shown.show_selection()
        for listener in list(self._listeners):
            listener(selection)

    def _first_selection(self) -> Selection:
        listed = self._payload["reader"]["examples"]
        held = next((e for e in listed if e["roles"] is not None), listed[0])
        start = self._payload["start"]
        choices = self.choices
        quantity = "difference" if "difference" in choices.quantities else choices.quantities[0]
        return Selection(held["id"], start["layer"], start["head"], quantity=quantity)

    # --- what the views show ----------------------------------------------------------------

    def data(self, view: str = "heads") -> pd.DataFrame:
        """What a view shows under the present selection, as a tidy table.

        ``view`` is ``examples``, ``heads``, ``flow``, ``reader`` or ``bench``; for the columns see
        the function of that name in `lab.explorer.frames`, for the last `PatchResult`.

        Raises:
            LabError: there is no such view, or nothing was measured for it.
        """
        frames.check_view(view)
        if view == "examples":
            return frames.examples(self._payload)
        if view == "bench":
            return self._result().to_dataframe()
        if view == "reader":
            return frames.reader(self._one(), self._selection, self.choices)
        table = frames.heads if view == "heads" else frames.flow
        return table(self._source.measured, self._selection)

    def figure(self, view: str = "heads") -> go.Figure:
        """What a view shows under the present selection, as a plotly figure.

        ``view`` is ``heads``, ``flow``, ``reader`` or ``bench``.

        Raises:
            LabError: there is no such view, or nothing was measured for it.
        """
        frames.check_view(view, drawing.DRAWN)
        if view == "bench":
            return drawing.bench(self._result())
        if view == "reader":
            return drawing.reader(self.data("reader"), self._selection)
        if view == "flow":
            from lab.views import figures

            return figures.span_mass(self._source.measured, self._selection.norm)
        return drawing.heads(self._source.measured, self._selection)

    def save(self, path: str | os.PathLike[str], view: str = "heads") -> Path:
        """The path of a view's figure, saved as ``.html``, or as ``.svg``, ``.png`` or ``.pdf``.

        Raises:
            LabError: a picture is asked for and what plotly needs for it is not installed.
        """
        return drawing.save(self.figure(view), path)

    def export(self, path: str | os.PathLike[str]) -> Path:
        """The path of a page with the linked views, for a browser alone: no network, no Python.

        Raises:
            LabError: the file cannot be written.
        """
        note = f"{len(self._source.ids)} examples. Exported with the selection as it was."
        state = to_state(self._selection, self.choices)
        return write_page(path, explorer_page(payload(self._source), self.title, note, state))

    @property
    def payload(self) -> dict[str, Any]:
        """What a widget is sent: plain data, see `lab.explorer.payloads`."""
        return self._payload

    @property
    def title(self) -> str:
        """What is explored, in a few words."""
        return str(self._source.provenance.get("title") or "Role Lens")

    def _one(self) -> Any:
        """The stored arrays of the chosen example."""
        example = self._selection.example
        if not self._source.is_read(example):
            raise LabError(
                f"Example {example!r} was not read, so there is no attention of it. "
                + (
                    "Read it with explorer.read()."
                    if self.live
                    else "Load a model to read it: explorer.load()."
                )
            )
        measured = self._source.measured
        ids = [str(name) for name in measured["example"].values]
        return measured.isel(example=ids.index(example))

    def _result(self) -> PatchResult:
        if self.last_result is None:
            raise LabError("Nothing was patched yet: call explorer.run(), or use the patch bench.")
        return self.last_result

    # --- running ----------------------------------------------------------------------------

    @property
    def live(self) -> bool:
        """Whether a model is loaded, so that examples can be read and patched."""
        return self._source.lens is not None

    @property
    def lens(self) -> Lens | None:
        """The model, if one is loaded."""
        return self._source.lens

    @property
    def last_result(self) -> PatchResult | None:
        """What the patch bench gave last, from Python or from the widget."""
        return self._runner.last

    @property
    def last_error(self) -> BaseException | None:
        """The last error of work in the background, as it was raised."""
        return self._runner.jobs.last_error

    def load(self, *, device: str = "cpu") -> Lens:
        """The study's own model, loaded as its recipe says; from then on the bench is live.

        Raises:
            LabError: the provenance does not name a model, it cannot be loaded, or its weights
                are others than those of the study.
        """
        from lab.engine.loading import load_lens

        if self._source.lens is None:
            recipe = recall.recipe(self._source.provenance)
            lens = load_lens(
                recipe.model, adapter=recipe.adapter, device=device, dtype=recipe.dtype
            )
            self._source.use(lens)
            if self._shown is not None:
                self._shown.redraw()
        assert self._source.lens is not None
        return self._source.lens

    def read(self, example: str | None = None) -> None:
        """Measure answers, verdicts and attention of an example (by default the chosen one).

        What was read is kept. Nothing happens if it was read before.

        Raises:
            LabError: no model is loaded, or the example does not fit it.
        """
        name = self._selection.example if example is None else example
        if name not in self._source.ids:
            raise LabError(f"There is no example {name!r}; explorer.choices.examples lists them.")
        if not self._source.is_read(name):
            self._source.read(name)
            self._payload = payload(self._source, LIVE_BYTES)
            if self._shown is not None:
                self._shown.show_data()
                self._shown.show_read(name)

    def run(
        self,
        direction: str = "role/a_into_b",
        what: What = "heads",
        heads: Iterable[Head] | None = None,
    ) -> PatchResult:
        """Carry activations from one run of the chosen example into another, and what it changes.

        Args:
            direction: contrast and direction: ``role/a_into_b`` carries from answering into
                judging, ``role/b_into_a`` back; ``candidate/...`` from the right candidate's
                verdict into the wrong one's, and back; ``passage/...`` from the true passage into
                the altered one, and back. See `lab.contrasts`.
            what: ``heads`` (each head alone), ``layers`` (each residual stream and MLP output
                alone), ``head`` or ``set`` (these heads together, with the text that follows).
            heads: which, for ``head`` and ``set``; by default what is selected.

        Raises:
            LabError: no model is loaded, the example does not allow the contrast, or something is
                running in the widget.
        """
        if self._runner.jobs.running:
            raise LabError("The patch bench is running: stop it, or wait until it is done.")
        watch = Watch(self._shown.show_progress if self._shown is not None else None)
        asked = (self._selection, self.choices, direction, what, heads)
        try:
            result = self._runner.patch(*asked, watch)
        except BaseException as error:
            if self._shown is not None:
                self._shown.show_end(None, in_words(error))
            raise
        if self._shown is not None:
            self._shown.show_end(result, "")
        return result

    def pattern(self, prompt: Prompt | str | None = None) -> AttentionPattern:
        """The chosen head's whole attention pattern on a short prompt, for a notebook.

        ``prompt`` is by default the chosen example's in the chosen role; see
        `lab.attention_pattern`.

        Raises:
            LabError: no model is loaded, or the prompt is too long to be drawn.
        """
        from lab.explorer.patterns import attention_pattern

        case = None if isinstance(prompt, str) else self._source.case(self._selection.example)
        if prompt is None:
            assert case is not None
            answer = self._source.behaviour(self._selection.example).answer_raw
            prompt = case.prompt(self._selection.role, answer)
        if self._source.lens is None:
            raise LabError("No model is loaded: call explorer.load() first.")
        return attention_pattern(
            self._source.lens, prompt, self._selection.layer, self._selection.head
        )

    # --- in a notebook ----------------------------------------------------------------------

    @property
    def widget(self) -> Any:
        """The linked views, without the line of controls below them."""
        return self._panel().views

    def _panel(self) -> Panel:
        if self._shown is None:
            from lab.explorer.panel import Panel

            self._shown = Panel(self, self._source, self._runner)
        return self._shown

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        from lab.explorer.fallback import static_html

        bundle = dict(self._panel().box._repr_mimebundle_() or {})
        example = self._selection.example
        index = self._source.ids.index(example)
        one = self._one() if self._source.is_read(example) else None
        bundle["text/html"] = static_html(
            self.title,
            self._payload["reader"]["examples"][index],
            one,
            self._selection,
            self.choices,
        )
        bundle["text/plain"] = repr(self)
        return bundle


def _remove(listeners: list[Listener], callback: Listener) -> None:
    if callback in listeners:
        listeners.remove(callback)
