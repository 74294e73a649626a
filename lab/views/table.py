"""A table as the page shows it: text only, no markup, no numbers left to round."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lab.instruments.statistics import Estimate
from lab.views.format import MISSING, Format, interval


@dataclass(frozen=True, slots=True)
class Cell:
    """Text, small print after it, and the kind of cell (``num``, ``text`` or ``what``)."""

    text: str
    small: str = ""
    kind: str = "num"


@dataclass(frozen=True, slots=True)
class Row:
    """A row header and its cells; ``head`` ("16.7") makes the header a button that chooses it."""

    label: str
    cells: tuple[Cell, ...] = ()
    head: str = ""
    group: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Caption (for screen readers), column headers (the first over the row headers), rows."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def cell(estimate: Estimate | None, form: Format, with_n: bool = False) -> Cell:
    """An estimate as a cell: its value, with interval (and n) in small print."""
    if estimate is None or estimate.value != estimate.value:
        return Cell(MISSING)
    small = interval(estimate, form)
    if with_n:
        small = f"{small} n\u00a0=\u00a0{estimate.n}".strip()
    return Cell(form(estimate.value), small)


def words(text: str, kind: str = "text") -> Cell:
    """Text as a cell that may wrap."""
    return Cell(text or MISSING, kind=kind)


def table(caption: str, columns: Iterable[str], rows: Iterable[Row]) -> Table:
    """A table from any iterables."""
    return Table(caption, tuple(columns), tuple(rows))
