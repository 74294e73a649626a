"""The headline of a study, as a table on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.instruments.summaries import headline
from lab.views.content.front import cards
from lab.views.content.made import unfinished


def print_headline(dataset: xr.Dataset, provenance: Mapping[str, Any]) -> None:
    """Print the finding and the four key numbers with their 95 % intervals."""
    found = headline(dataset, provenance)
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for card in cards(found):
        table.add_row(Text(card.words), Text(card.number, style="bold"), Text(card.small))
    console = Console(highlight=False)
    console.print()
    console.print(Text(found.title, style="bold"))
    console.print(Text(found.subtitle))
    if left := unfinished(provenance):
        console.print(Text(left, style="bold"), soft_wrap=True)
    console.print()
    console.print(table)
    console.print()
