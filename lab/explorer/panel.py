"""An explorer in a notebook: the linked views, a line of controls, and what links them to Python.

Whatever goes wrong on the way from a click is told in the widget, in words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ipywidgets

from lab.errors import LabError
from lab.explorer.jobs import Watch, in_words
from lab.explorer.payloads import one_example
from lab.explorer.results import PatchResult
from lab.explorer.running import Runner
from lab.explorer.selection import from_state, to_state
from lab.explorer.sources import Source
from lab.explorer.widget import ExplorerWidget

if TYPE_CHECKING:
    from lab.explorer.explorer import Explorer

VIEWS = ("picker", "norm", "heads", "flow", "reader", "bench")

IDLE: dict[str, Any] = {
    "running": False, "done": 0, "total": 0, "step": "", "error": "", "result": None,
}  # fmt: skip


class Panel:
    """What a notebook shows of an explorer.

    Attributes:
        views: the linked views.
        box: these and the controls below them.
    """

    def __init__(self, explorer: Explorer, source: Source, runner: Runner) -> None:
        self._explorer, self._source, self._runner = explorer, source, runner
        self._bench = {**IDLE, "live": False, "options": _options()}
        self.views = self._new_views()
        self._said = ipywidgets.Label()
        self._drawn = ipywidgets.Output()
        self._prompt = ipywidgets.Text(
            placeholder="a short text",
            description="Short text",
            layout={"width": "26em", "max_width": "100%"},
        )
        self._file = ipywidgets.Text(
            value="explorer.html", description="File", layout={"max_width": "100%"}
        )
        controls = ipywidgets.HBox(
            [
                self._file,
                self._button("Export page", self._export),
                self._prompt,
                self._button("Full pattern of the head", self._draw_pattern),
            ],
            layout={"flex_flow": "row wrap"},
        )
        self.box = ipywidgets.VBox([self.views, controls, self._said, self._drawn])

    # --- from Python to the views -------------------------------------------------------------

    def show_selection(self) -> None:
        """Put the explorer's selection into the views."""
        state = to_state(self._explorer.selection, self._explorer.choices)
        self.views.state = {**self.views.state, **state}

    def show_progress(self, done: int, total: int, step: str) -> None:
        """Show how far a patch is."""
        self._show_bench(running=True, done=done, total=total, step=step, error="")

    def show_end(self, result: PatchResult | None, problem: str) -> None:
        """Show what a patch gave, or why it gave nothing."""
        self._show_bench(
            **{**IDLE, "error": problem, "result": None if result is None else result.as_state()}
        )

    def show_data(self) -> None:
        """Draw the views from what the explorer knows now."""
        self.views.data = self._explorer.payload

    def show_read(self, example: str) -> None:
        """Hand on the tokens and attention of an example that was read."""
        index = self._explorer.choices.examples.index(example)
        try:
            found = one_example(self._source, example)
        except Exception as error:
            found = {"error": in_words(error)}
        self.views.tell({"kind": "read", "example": index, **found})

    def redraw(self) -> None:
        """Draw the views anew, with all that is known now."""
        old, self.views = self.views, self._new_views()
        self.box.children = (self.views, *self.box.children[1:])
        old.close()

    def _show_bench(self, **changes: Any) -> None:
        self._bench = {**self._bench, **changes}
        self.views.bench = self._bench

    def _new_views(self) -> ExplorerWidget:
        self._bench = {**self._bench, "live": self._explorer.live}
        views = ExplorerWidget(
            data=self._explorer.payload,
            state=to_state(self._explorer.selection, self._explorer.choices),
            views=list(VIEWS),
            bench=self._bench,
        )
        views.observe(self._follow, names="state")
        views.on_msg(self._hear)
        return views

    # --- from the views to Python -------------------------------------------------------------

    def _follow(self, change: Any) -> None:
        explorer = self._explorer
        try:
            wanted = from_state(change["new"], explorer.selection, explorer.choices)
            explorer.adopt(wanted)
        except Exception as error:
            self._runner.jobs.last_error = error
            self._show_bench(error=in_words(error))

    def _hear(self, _: Any, message: Any, __: Any) -> None:
        known: dict[str, Callable[[dict[str, Any]], None]] = {
            "run": self._run,
            "stop": self._stop,
            "read": self._read,
        }
        act = known.get(str(message.get("kind"))) if isinstance(message, dict) else None
        if act is None:
            return
        try:
            act(message)
        except Exception as error:
            self._runner.jobs.last_error = error
            self._show_bench(error=in_words(error))

    def _run(self, message: dict[str, Any]) -> None:
        request = message.get("request") or {}
        heads = [tuple(pair) for pair in request.get("heads") or []]
        selection, choices = self._explorer.selection, self._explorer.choices

        def work(watch: Watch) -> PatchResult:
            asked = (str(request.get("direction")), request.get("what"), heads or None)
            return self._runner.patch(selection, choices, *asked, watch)  # type: ignore[arg-type]

        if not self._runner.jobs.running:
            self._show_bench(**{**IDLE, "running": True, "step": "starting"})
        self._runner.jobs.start(work, Watch(self.show_progress), self.show_end)

    def _stop(self, _: dict[str, Any]) -> None:
        self._runner.jobs.stop()

    def _read(self, message: dict[str, Any]) -> None:
        index = int(message["example"])
        examples = self._explorer.choices.examples
        try:
            if not 0 <= index < len(examples):
                raise LabError(f"There are examples 0 to {len(examples) - 1}, not {index}.")
            name = examples[index]
            if self._source.is_read(name):
                self.show_read(name)
                return
            self._runner.jobs.start(
                lambda _: self._explorer.read(name),
                Watch(),
                lambda _, problem: self._refuse(index, problem) if problem else None,
            )
        except LabError as error:
            self._refuse(index, str(error))

    def _refuse(self, index: int, problem: str) -> None:
        self.views.tell({"kind": "read", "example": index, "error": problem})

    # --- the line of controls -----------------------------------------------------------------

    def _button(self, words: str, act: Callable[[], str]) -> ipywidgets.Button:
        def press(_: Any) -> None:
            try:
                self._said.value = act()
            except Exception as error:
                self._runner.jobs.last_error = error
                self._said.value = in_words(error)

        button = ipywidgets.Button(description=words, layout={"width": "auto"})
        button.on_click(press)
        return button

    def _export(self) -> str:
        path = self._explorer.export(self._file.value.strip() or "explorer.html")
        return f"Written to {path} ({path.stat().st_size / 1e6:.1f} MB)."

    def _draw_pattern(self) -> str:
        selection = self._explorer.selection
        pattern = self._explorer.pattern(self._prompt.value or None)
        self._drawn.outputs = (
            {
                "output_type": "display_data",
                "data": {"text/html": pattern.html, "text/plain": repr(pattern)},
                "metadata": {},
            },
        )
        return f"Head {selection.layer}.{selection.head} on {len(pattern.tokens)} tokens."


def _options() -> dict[str, list[list[str]]]:
    """What the bench can be asked: [value, words] pairs."""
    from lab.explorer.directions import DIRECTIONS, WHATS

    return {
        "direction": [list(pair) for pair in DIRECTIONS.items()],
        "what": [list(pair) for pair in WHATS.items()],
    }
