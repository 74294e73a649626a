"""Switches for heads in a notebook: controls, the answer before and after, and what links them.

Every change runs in the background at once; a newer change ends what an older one began. Whatever
goes wrong is told in the widget, in words.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ipywidgets
from markupsafe import Markup

from lab.explorer.jobs import Watch, in_words
from lab.explorer.selection import Head
from lab.explorer.switch import html
from lab.explorer.switch.asking import ASKS
from lab.explorer.switch.board import PUTS, Switched, Switches
from lab.explorer.switch.switches import head_list

if TYPE_CHECKING:
    from lab.explorer.switch.switches import HeadSwitches

MOST_CHIPS = 48
"""Single heads that have a button of their own; others are named in the text field."""

_WIDE = {"width": "auto", "flex": "1 1 280px", "max_width": "100%", "margin": "0"}
_ROW = {"flex_flow": "row wrap", "align_items": "center"}


class SwitchPanel:
    """What a notebook shows of some switches.

    Attributes:
        box: everything, as one widget.
    """

    def __init__(self, switches: HeadSwitches) -> None:
        self._switches = switches
        self._lock, self._again, self._quiet = threading.RLock(), False, False
        self._added: list[Head] = []
        self._make_controls()
        self._asked, self._result = ipywidgets.HTML(), ipywidgets.HTML()
        self.box = ipywidgets.VBox(
            [
                ipywidgets.HTML(str(html.style())),
                _row(self._conflict, self._ask, self._put),
                self._asked,
                _row(ipywidgets.Label("Switch off:"), *self._sets.values(), self._all_on),
                self._heads,
                _row(self._typed, self._stop, self._bar),
                self._status,
                self._result,
            ]
        )
        self.box.add_class("rl")
        self.box.add_class("rl-switches")
        self.follow()

    # --- controls -----------------------------------------------------------------------------

    def _make_controls(self) -> None:
        switches, choices = self._switches, self._switches.choices
        conflicts = [(f"{c.id}: {c.question}", c.id) for c in switches.board.conflicts.values()]
        self._conflict = self._menu("Conflict", conflicts, "conflict")
        self._ask = self._menu("Told to", [(words, ask) for ask, words in ASKS.items()], "ask")
        puts = [(words, name) for name, words in PUTS.items()]
        self._put = self._menu("Heads put out", puts, "put")
        self._sets = {name: self._set_button(name) for name in choices.sets}
        self._all_on = ipywidgets.Button(description="All on", tooltip="Switch all heads on")
        self._all_on.on_click(self._guarded(lambda _: self._change(heads=())))
        self._heads = _row()
        self._typed = ipywidgets.Text(
            placeholder="such as 12.3 14.0",
            description="Other heads",
            continuous_update=False,
            style={"description_width": "auto"},
            layout={"width": "auto", "flex": "0 1 320px", "margin": "0"},
        )
        self._typed.observe(self._guarded(self._type), names="value")
        self._stop = ipywidgets.Button(description="Stop", disabled=True)
        self._stop.on_click(self._guarded(lambda _: self._halt()))
        self._bar = ipywidgets.IntProgress(layout={"width": "180px", "visibility": "hidden"})
        self._status = ipywidgets.HTML()

    def _menu(self, label: str, options: Sequence[tuple[str, str]], field: str) -> Any:
        menu = ipywidgets.Dropdown(
            options=list(options),
            description=label,
            style={"description_width": "auto"},
            layout=_WIDE,
        )
        menu.observe(self._guarded(lambda c: self._change(**{field: c["new"]})), names="value")
        return menu

    def _set_button(self, name: str) -> Any:
        heads = self._switches.choices.sets[name]
        button = ipywidgets.ToggleButton(
            description=f"{name} ({len(heads)})", tooltip=_names(heads), layout={"width": "auto"}
        )
        button.observe(self._guarded(lambda c: self._toggle(heads, c["new"])), names="value")
        return button

    def _chip(self, head: Head) -> Any:
        off = head in self._switches.selection.heads
        chip = ipywidgets.ToggleButton(
            value=off, description=_names([head]), layout={"width": "auto"}
        )
        chip.observe(self._guarded(lambda c: self._toggle((head,), c["new"])), names="value")
        return chip

    def _guarded(self, act: Callable[[Any], None]) -> Callable[[Any], None]:
        """An action of a control: silent while controls follow, and never failing unheard."""

        def guarded(change: Any) -> None:
            if self._quiet:
                return
            try:
                act(change)
            except Exception as error:
                self._switches.jobs.last_error = error
                self._tell(error=in_words(error, self._switches.jobs.kept_in))

        return guarded

    def _change(self, **changes: Any) -> None:
        selection = replace(self._switches.selection, **changes)
        self._switches.adopt(self._switches.choices.check(selection))

    def _toggle(self, heads: tuple[Head, ...], off: bool) -> None:
        chosen = set(self._switches.selection.heads)
        self._change(heads=tuple(chosen | {*heads} if off else chosen - {*heads}))

    def _type(self, change: Any) -> None:
        found = [self._switches.choices.head(head) for head in head_list(change["new"])]
        if found:
            self._added += [head for head in found if head not in self._added]
            self._typed.value = ""
            self._toggle(tuple(found), True)

    # --- from the selection to the controls ---------------------------------------------------

    def follow(self) -> None:
        """Put the selection into the controls, and run it."""
        selection = self._switches.selection
        with self._silently():
            self._conflict.value, self._ask.value = selection.conflict, selection.ask
            self._put.value = selection.put
            off = {*selection.heads}
            for name, heads in self._switches.choices.sets.items():
                self._sets[name].value = off >= {*heads}
                there = len(off & {*heads})
                part = f"{there} of " if 0 < there < len(heads) else ""
                self._sets[name].description = f"{name} ({part}{len(heads)})"
            self._follow_heads(selection)
        self._start()

    def _follow_heads(self, selection: Switches) -> None:
        sets = self._switches.choices.sets.values()
        known = dict.fromkeys([*selection.heads, *(h for heads in sets for h in heads)])
        shown = sorted({*list(known)[:MOST_CHIPS], *self._added})
        if [chip.description for chip in self._heads.children] != [_names([h]) for h in shown]:
            self._heads.children = tuple(self._chip(head) for head in shown)
        for head, chip in zip(shown, self._heads.children, strict=True):
            chip.value = head in selection.heads

    @contextmanager
    def _silently(self) -> Iterator[None]:
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before

    # --- running ------------------------------------------------------------------------------

    def _start(self) -> None:
        """Run the selection as it is now; what runs for an older one is ended first."""
        with self._lock:
            self._say_asked()
            if self._switches.jobs.running:
                self._again = True
                self._switches.jobs.stop()
                return
            self._stop.disabled = False
            self._tell("starting")
            self._switches.jobs.start(self._switches.compute, Watch(self._progress), self._ended)

    def _ended(self, result: Switched | None, problem: str) -> None:
        with self._lock:
            again, self._again = self._again, False
            if result is not None:
                self._switches.keep(result)
            if again:
                self._start()
                return
            if result is not None:
                self.show(result)
            else:
                self._idle()
                self._result.value = ""
                self._tell(error=problem)

    def _progress(self, done: int, total: int, step: str) -> None:
        self._bar.max, self._bar.value = max(1, total), done
        self._bar.layout.visibility = "visible"
        self._tell(f"{step}…")

    def _halt(self) -> None:
        with self._lock:
            self._again = False
            self._switches.jobs.stop()

    def show(self, result: Switched) -> None:
        """Show what was run."""
        self._idle()
        self._result.value = str(html.changed(result))
        self._tell(f"Took {result.seconds:.1f} s.")

    def wait(self) -> None:
        """Wait until nothing runs any more."""
        while self._switches.jobs.running or self._again:
            self._switches.jobs.wait(0.05)
        self._switches.jobs.wait()

    def _say_asked(self) -> None:
        try:
            found = html.asked(self._switches.board.decision(self._switches.selection))
        except Exception as error:  # told again, in full, by the run that follows
            found = Markup('<p class="rl-error">{}</p>').format(in_words(error))
        self._asked.value = str(found)

    def _idle(self) -> None:
        self._stop.disabled = True
        self._bar.layout.visibility = "hidden"

    def _tell(self, words: str = "", error: str = "") -> None:
        self._status.value = str(
            Markup(
                '<p class="rl-note" role="status" aria-live="polite">{}</p>'
                '<p class="rl-error" role="alert">{}</p>'
            ).format(words, error)
        )


def _row(*children: Any) -> Any:
    row = ipywidgets.HBox(list(children), layout=_ROW)
    row.add_class("rl-switches-row")
    return row


def _names(heads: Any) -> str:
    return ", ".join(f"{layer}.{head}" for layer, head in heads)
