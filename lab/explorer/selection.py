"""What is selected in an explorer: an example, heads, a role, and what of them is shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal

from lab.errors import LabError

Head = tuple[int, int]
"""Layer and head, both counted from zero."""

Scope = Literal["head", "set", "layer", "all"]

SCOPES: tuple[Scope, ...] = ("head", "set", "layer", "all")
ROLES = ("generator", "evaluator")


@dataclass(frozen=True, slots=True)
class Selection:
    """What all views of an explorer show.

    Attributes:
        example: id of the example that is read.
        layer, head: the chosen head.
        heads: the brushed set of (layer, head) pairs, in ascending order; may be empty.
        scope: whose attention the reader shows: the chosen ``head``, the mean of the brushed
            ``set``, of the ``layer``, or of ``all`` heads.
        role: ``generator`` or ``evaluator``.
        norm: normalisation of attention, one of `lab.instruments.summaries.reading`'s.
        quantity: what the head map shows.
    """

    example: str
    layer: int = 0
    head: int = 0
    heads: tuple[Head, ...] = ()
    scope: Scope = "head"
    role: str = "generator"
    norm: str = "raw"
    quantity: str = "difference"

    @property
    def chosen(self) -> tuple[Head, ...]:
        """The heads of the scope ``head`` or ``set``: what a patch carries over."""
        return self.heads if self.scope == "set" else ((self.layer, self.head),)


@dataclass(frozen=True, slots=True)
class Choices:
    """What exists to be selected.

    Attributes:
        examples: ids, in the order in which views list them.
        layers, heads: how many.
        norms, quantities: names.
    """

    examples: tuple[str, ...]
    layers: int
    heads: int
    norms: tuple[str, ...]
    quantities: tuple[str, ...]

    def check(self, selection: Selection) -> Selection:
        """The selection with its heads in order and none twice.

        Raises:
            LabError: it names something that does not exist; the message says what does.
        """
        one_of("example", selection.example, self.examples)
        heads = tuple(sorted({self.head(pair) for pair in selection.heads}))
        self.head((selection.layer, selection.head))
        one_of("scope", selection.scope, SCOPES)
        one_of("role", selection.role, ROLES)
        one_of("norm", selection.norm, self.norms)
        one_of("quantity", selection.quantity, self.quantities)
        if selection.scope == "set" and not heads:
            raise LabError('The scope "set" needs heads: select(heads=[(layer, head), ...]).')
        return replace(selection, heads=heads, layer=int(selection.layer), head=int(selection.head))

    def head(self, pair: Any) -> Head:
        """A (layer, head) pair as plain numbers; LabError if there is no such head."""
        try:
            layer, head = (_whole(number) for number in pair)
        except (TypeError, ValueError):
            raise LabError(
                f"{pair!r} is no head: give two whole numbers (layer, head), for instance (3, 1)."
            ) from None
        if not (0 <= layer < self.layers and 0 <= head < self.heads):
            raise LabError(
                f"There is no head {layer}.{head}: layers are 0 to {self.layers - 1}, heads 0 to "
                f"{self.heads - 1}."
            )
        return layer, head


def changed(selection: Selection, **changes: Any) -> Selection:
    """The selection with some fields changed, not yet checked.

    ``head`` may be a (layer, head) pair, which also sets the scope to that head, and ``heads``
    sets it to that set, where no ``scope`` is given.

    Raises:
        LabError: a field does not exist.
    """
    known = asdict(selection)
    for name in changes:
        one_of("field", name, tuple(known))
    if isinstance(changes.get("head"), Sequence):
        pair = changes.pop("head")
        if len(pair) != 2 or "layer" in changes:
            raise LabError(
                f"head={pair!r}: give head=(layer, head), or layer=... and head=... as numbers."
            )
        changes = {"scope": "head", **changes, "layer": pair[0], "head": pair[1]}
    if "heads" in changes:
        heads = changes["heads"]
        if not isinstance(heads, Iterable) or isinstance(heads, str):
            raise LabError(f"heads={heads!r}: give a list of (layer, head) pairs.")
        changes["heads"] = tuple(heads)
        changes = {**({"scope": "set"} if changes["heads"] else {}), **changes}
    if changes.get("heads") == () and selection.scope == "set" and "scope" not in changes:
        changes["scope"] = "head"
    return replace(selection, **changes)


def to_state(selection: Selection, choices: Choices) -> dict[str, Any]:
    """The selection as the front end holds it: JSON, with the example as an index."""
    heads = [list(pair) for pair in selection.heads]
    example = choices.examples.index(selection.example)
    return {**asdict(selection), "heads": heads, "example": example}


def from_state(state: Mapping[str, Any], selection: Selection, choices: Choices) -> Selection:
    """The selection that the front end asks for, on top of the present one.

    Keys that are missing, or that stand for nothing in Python, leave their field as it is.

    Raises:
        LabError: a value does not exist.
    """
    fields = {name: state[name] for name in asdict(selection) if state.get(name) is not None}
    if "example" in fields:
        index = _whole(fields["example"])
        if not 0 <= index < len(choices.examples):
            raise LabError(f"There are examples 0 to {len(choices.examples) - 1}, not {index}.")
        fields["example"] = choices.examples[index]
    if "heads" in fields:
        fields["heads"] = tuple(tuple(pair) for pair in fields["heads"])
    asked = replace(selection, **fields)
    if asked.scope == "set" and not asked.heads:
        # A brush that has just been emptied: the views then fall back to the chosen head.
        asked = replace(asked, scope="head")
    return choices.check(asked)


def _whole(value: Any) -> int:
    number = int(value)
    if number != value or isinstance(value, bool):
        raise ValueError(f"{value!r} is no whole number")
    return number


def one_of(what: str, value: Any, known: Sequence[str]) -> None:
    """Refuse a value that is not among the known ones, naming the nearest.

    Raises:
        LabError: it is not.
    """
    if value in known:
        return
    near = get_close_matches(str(value), known, n=3, cutoff=0.5)
    listed = ", ".join(known[:12]) + (f" and {len(known) - 12} more" if len(known) > 12 else "")
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise LabError(f"There is no {what} {value!r}. There are: {listed}.{hint}")
