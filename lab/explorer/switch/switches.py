"""Heads switched on and off for one decision of a conflict: what the model says then."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lab.errors import LabError
from lab.explorer.jobs import Jobs, Watch
from lab.explorer.selection import Choices, Head, one_of
from lab.explorer.switch.asking import ASKS
from lab.explorer.switch.board import PUTS, Switchboard, Switched, Switches

if TYPE_CHECKING:
    import pandas as pd

    from lab.data.conflicts import Conflict
    from lab.engine.lens import Lens
    from lab.explorer.switch.panel import SwitchPanel
    from lab.roles import Prompter
    from lab.studies.override.results import OverrideResults

Sets = Mapping[str, Iterable[Head]]


@dataclass(frozen=True, slots=True)
class SwitchChoices:
    """What there is to choose from.

    Attributes:
        conflicts: ids.
        asks: decisions of each conflict, see `lab.explorer.switch.asking.ASKS`.
        sets: named sets of heads.
        puts: what ablated heads can put out.
        layers, heads: how many.
    """

    conflicts: tuple[str, ...]
    asks: tuple[str, ...]
    sets: Mapping[str, tuple[Head, ...]]
    puts: tuple[str, ...]
    layers: int
    heads: int

    def head(self, pair: Any) -> Head:
        """A (layer, head) pair as plain numbers; LabError if there is no such head."""
        return Choices((), self.layers, self.heads, (), ()).head(pair)

    def check(self, selection: Switches) -> Switches:
        """The selection with its heads in order and none twice.

        Raises:
            LabError: it names something that does not exist; the message says what does.
        """
        one_of("conflict", selection.conflict, self.conflicts)
        one_of("ask", selection.ask, self.asks)
        one_of("put", selection.put, self.puts)
        if isinstance(selection.heads, str) or not isinstance(selection.heads, Iterable):
            raise LabError(f"heads={selection.heads!r}: give a list of (layer, head) pairs.")
        return replace(selection, heads=tuple(sorted({self.head(h) for h in selection.heads})))

    def named(self, names: Iterable[str] | str) -> tuple[Head, ...]:
        """The heads of some sets, by their names."""
        listed = [names] if isinstance(names, str) else list(names)
        for name in listed:
            one_of("set", name, tuple(self.sets))
        return tuple(sorted({head for name in listed for head in self.sets[name]}))


class HeadSwitches:
    """Sets of heads and single heads, switched off for one decision of a conflict.

    Make one with `lab.switch_heads`. As the last line of a notebook's cell it shows its controls,
    and the answer before and after. ``selection`` can be read and set.
    """

    def __init__(self, board: Switchboard, sets: Mapping[str, tuple[Head, ...]]) -> None:
        self.board, self.jobs = board, Jobs("switches.last_error")
        lens = board.lens
        self.choices = SwitchChoices(
            tuple(board.conflicts), tuple(ASKS), sets, tuple(PUTS), lens.n_layers, lens.n_heads
        )
        self._selection = Switches(self.choices.conflicts[0], "generator/memory/counterfactual")
        self._last: Switched | None = None
        self._shown: SwitchPanel | None = None

    def __repr__(self) -> str:
        many, sets = len(self.choices.conflicts), len(self.choices.sets)
        return f"<HeadSwitches of {many} conflicts and {sets} sets of heads: {self._selection}>"

    # --- what is chosen -----------------------------------------------------------------------

    @property
    def selection(self) -> Switches:
        """What the switches stand at; set it, or change parts of it with `select`."""
        return self._selection

    @selection.setter
    def selection(self, value: Switches) -> None:
        if not isinstance(value, Switches):
            raise LabError(
                f"A selection cannot be {value!r}: use switches.select(heads=[(3, 1)]), for "
                "instance, or dataclasses.replace(switches.selection, ...)."
            )
        self.adopt(self.choices.check(value))

    def select(self, **changes: Any) -> Switches:
        """The selection after changing some of its fields.

        ``sets`` takes names of sets and switches off their heads, and no others.

        Raises:
            LabError: something does not exist; the message says what does.
        """
        for name in changes:
            one_of("field", name, (*asdict(self._selection), "sets"))
        if "sets" in changes:
            if "heads" in changes:
                raise LabError("Give heads or sets, not both.")
            changes["heads"] = self.choices.named(changes.pop("sets"))
        self.selection = replace(self._selection, **changes)
        return self._selection

    def adopt(self, selection: Switches) -> None:
        """Take over a checked selection; a widget that is shown follows it."""
        if selection == self._selection:
            return
        self._selection = selection
        if self._shown is not None:
            self._shown.follow()

    # --- what comes of it ---------------------------------------------------------------------

    def run(self) -> Switched:
        """What the switches change, as they stand now. What was run last is not run again.

        Raises:
            LabError: the decision cannot be asked; the message says why.
        """
        if self._last is None or self._last.selection != self._selection:
            if self._shown is not None:
                self._shown.wait()
            if self._last is None or self._last.selection != self._selection:
                self.keep(self.board.run(self._selection))
        assert self._last is not None
        if self._shown is not None:
            self._shown.show(self._last)
        return self._last

    def compute(self, watch: Watch) -> Switched:
        """The same, watched, for work in the background."""
        return self.board.run(self._selection, watch)

    def keep(self, result: Switched) -> None:
        """Remember a result as the last one."""
        self._last = result

    @property
    def data(self) -> pd.DataFrame:
        """What the widget shows, as a table: see `Switched.to_dataframe`."""
        return self.run().to_dataframe()

    @property
    def last_result(self) -> Switched | None:
        """What was run last, from Python or from the widget."""
        return self._last

    @property
    def last_error(self) -> BaseException | None:
        """The last error of work in the background, as it was raised."""
        return self.jobs.last_error

    # --- in a notebook ------------------------------------------------------------------------

    @property
    def panel(self) -> SwitchPanel:
        """The controls and the answer, as widgets."""
        if self._shown is None:
            from lab.explorer.switch.panel import SwitchPanel

            self._shown = SwitchPanel(self)
        return self._shown

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        from lab.explorer.switch.html import still

        bundle = dict(self.panel.box._repr_mimebundle_() or {})
        bundle["text/html"] = still(self._last)
        bundle["text/plain"] = repr(self)
        return bundle


def switch_heads(
    lens: Lens,
    conflicts: Sequence[Conflict] | Conflict | None = None,
    sets: Sets | OverrideResults | str | os.PathLike[str] | None = None,
    *,
    prompter: Prompter | None = None,
    begun: bool = True,
    n_random: int = 100,
    seed: int = 0,
) -> HeadSwitches:
    """Switches for heads: pick a conflict, turn heads off, and watch the answer change.

    Args:
        lens: the model.
        conflicts: as `lab.data.conflicts.load_conflicts` gives them; the built-in ones by default.
        sets: named sets of (layer, head) pairs; or a finished study of override heads (its folder,
            or what `read_override` gives), whose found heads are taken. Single heads can always be
            switched.
        prompter: how the conflicts are asked; as `measure_conflict` asks them by default.
        begun: whether answers are begun with the conflict's cloze, so that the decision is where
            the answer must come.
        n_random: how many random sets of heads stand beside the chosen one, where so many exist.
        seed: of the random sets.

    Raises:
        LabError: no conflict, two of one id, or a set with a head that the model does not have.
    """
    from lab.data.conflicts import Conflict, load_conflicts
    from lab.instruments.conflicts import conflict_prompter

    chosen = load_conflicts("builtin") if conflicts is None else conflicts
    listed = [chosen] if isinstance(chosen, Conflict) else list(chosen)
    known = {c.id: c for c in listed if isinstance(c, Conflict)}
    if not known or len(known) != len(listed):
        raise LabError(
            "Heads are switched on conflicts: give some, each with an id of its own, for instance "
            'lab.data.conflicts.load_conflicts("builtin", n=8).'
        )
    board = Switchboard(lens, known, prompter or conflict_prompter(lens), begun, n_random, seed)
    switches = HeadSwitches(board, {})
    return HeadSwitches(board, _checked(named_sets(sets), switches.choices))


def named_sets(sets: Any) -> Sets:
    """Sets of heads by name: as given, or those of the contests of an override study.

    Raises:
        LabError: it is neither, or no contest of the study is finished.
    """
    if sets is None:
        return {}
    if isinstance(sets, Mapping):
        return sets
    from lab.studies.override.results import heads_of, read_override

    results = read_override(Path(sets)) if isinstance(sets, str | os.PathLike) else sets
    if not hasattr(results, "tables") or "contests" not in results.tables:
        raise LabError(
            "Sets of heads are a mapping from names to heads, or a finished study of override "
            "heads; in this one no contest is finished, or it is something else."
        )
    found = results.tables["contests"].set_index("contest")["heads"]
    return {f"{name} heads": heads_of(text) for name, text in found.items()}


def _checked(sets: Sets, choices: SwitchChoices) -> Mapping[str, tuple[Head, ...]]:
    try:
        found = {
            str(name): tuple(sorted({choices.head(head) for head in heads}))
            for name, heads in sets.items()
        }
    except TypeError:
        raise LabError(
            'Sets of heads are a mapping from names to heads: {"found": [(12, 3), (14, 0)]}.'
        ) from None
    return MappingProxyType({name: heads for name, heads in found.items() if heads})


def head_list(text: str) -> tuple[Head, ...]:
    """Heads written as ``12.3 14.0``, with spaces or commas between them.

    Raises:
        LabError: something in it is no head.
    """
    found = []
    for part in re.split(r"[\s,;]+", text.strip()):
        match = re.fullmatch(r"(\d+)\.(\d+)", part)
        if part and not match:
            raise LabError(f"{part!r} is no head: write layer and head with a point, as 12.3.")
        if match:
            found.append((int(match[1]), int(match[2])))
    return tuple(found)
