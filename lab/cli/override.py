"""Override heads from the command line: the study, and its findings as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.cli.progress import show_progress
from lab.studies.override.recipe import OverrideRecipe
from lab.studies.override.results import FEWEST_SETS, OverrideResults
from lab.studies.override.run import run_override

COLUMNS = ("contest", "pairs used", "heads", "of all", "flips in a", "flips in b", "elsewhere")

EXPLAINED = (
    "Flips: share of held-out answers that turn to the competing one when the run's own heads are "
    "zero-ablated, with its 95 % interval; below it the middle 95 % of random sets of the same "
    "layers, and p. Elsewhere: unrelated prompts whose next token changes."
)


def find_override(recipe: OverrideRecipe, out: Path) -> OverrideResults:
    """Run a recipe into a folder and print what was found."""
    results = run_override(recipe, out, show=show_progress)
    print_override(results)
    return results


def print_override(results: OverrideResults) -> None:
    """The contests, one to a line, with what ablating their heads does."""
    console = Console(highlight=False)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for number, name in enumerate(COLUMNS):
        table.add_column(name, justify="left" if number in (0, 2) else "right", no_wrap=number == 0)
    contests = results.tables["contests"]
    for _, row in contests.iterrows():
        table.add_row(*(Text(cell) for cell in cells(row, results.contests.get(row["contest"]))))
    console.print()
    console.print(table)
    if (contests["state"] == "found").any():
        console.print(Text(EXPLAINED))
    for _, row in contests.iterrows():
        console.print(Text(f"{row['contest']}: {row['why']}"))
        if row["state"] == "found":
            console.print(Text(f"  a: {row['run_a']}; b: {row['run_b']}"))


def cells(row: pd.Series[Any], tables: Mapping[str, pd.DataFrame] | None) -> list[str]:
    """A contest's line of the table."""
    first = [str(row["contest"]), f"{int(row['used'])} of {int(row['usable'])}"]
    if row["state"] != "found" or tables is None:
        return [*first, str(row["state"]), "", "", "", ""]
    proof, elsewhere = tables["proof"], tables["elsewhere"]
    return [
        *first,
        str(row["heads"]),
        f"{100 * row['share_of_heads']:.1f} %",
        *(_flips(proof, run, str(row["flip_measure"])) for run in "ab"),
        _against(elsewhere, {"prompts": "questions", "measure": "changed"}),
    ]


def _flips(proof: pd.DataFrame, run: str, measure: str) -> str:
    wanted = {"run": run, "set": "run", "control": "layers", "how": "zero", "measure": measure}
    return _against(proof, wanted)


def _against(table: pd.DataFrame, wanted: Mapping[str, str]) -> str:
    """A share with its interval, and below it the random sets'."""
    for column, value in wanted.items():
        table = table[table[column] == value]
    if table.empty:
        return "no heads"
    row = table.iloc[0]
    text = f"{row['value']:.2f}"
    if math.isnan(row["value"]):
        return "n/a"
    if not math.isnan(row["low"]):
        text += f" [{row['low']:.2f}, {row['high']:.2f}]"
    if not math.isnan(row["random_low"]):
        p = f"p = {row['p']:.2g}"
        sets = int(row["random_sets"])
        few = f" ({sets} sets)" if sets < FEWEST_SETS else ""
        text += f"\nrandom {row['random_low']:.2f} to {row['random_high']:.2f}, {p}{few}"
    return text
