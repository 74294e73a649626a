"""A table as the page shows it: text only, no markup, no numbers left to round."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lab.instruments.statistics import Estimate
from lab.views.format import MISSING, Format, interval


@dataclass(frozen=True, slots=True)
class Cell:
    """Text, small print after it, the kind of cell (``num``, ``text`` or ``what``), more lines."""

    text: str
    small: str = ""
    kind: str = "num"
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A row header and its cells; ``head`` ("16.7") makes the header a button that chooses it.

    ``minor`` rows say more of the row above them. ``link`` is the id of what the header leads to.
    """

    label: str
    cells: tuple[Cell, ...] = ()
    head: str = ""
    group: bool = False
    minor: bool = False
    link: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Caption (for screen readers), column headers (the first over the row headers), rows.

    A ``dense`` table has narrow columns, so that many fit side by side.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    dense: bool = False


def cell(estimate: Estimate | None, form: Format, with_n: bool = False) -> Cell:
    """An estimate as a cell: its value, with interval (and n) in small print."""
    if estimate is None or estimate.value != estimate.value:
        return Cell(MISSING)
    small = interval(estimate, form)
    if with_n:
        small = f"{small} n\u00a0=\u00a0{estimate.n}".strip()
    return Cell(form(estimate.value), small)


def ends(estimate: Estimate, form: Format) -> str:
    """The interval on a line of its own, or that there is none."""
    none = "" if estimate.value != estimate.value else "no interval"
    return interval(estimate, form) or none


def arrow(gap: Estimate, zero: float = 0.0) -> str:
    """An arrow where the interval lies on one side of no difference, else nothing."""
    if not gap.excludes(zero):
        return ""
    return "▲\u00a0" if gap.low > zero else "▼\u00a0"


def words(text: str, kind: str = "text") -> Cell:
    """Text as a cell that may wrap."""
    return Cell(text or MISSING, kind=kind)


def table(caption: str, columns: Iterable[str], rows: Iterable[Row], dense: bool = False) -> Table:
    """A table from any iterables."""
    return Table(caption, tuple(columns), tuple(rows), dense)
