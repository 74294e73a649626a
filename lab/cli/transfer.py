"""The transfer matrix on the terminal and as files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.cli.progress import show_progress
from lab.instruments.summaries.runs import Run
from lab.instruments.summaries.transfer import TRANSFER_METRICS, claims, matrix
from lab.studies.beside import BASE, read_runs, run_beside, run_name
from lab.studies.recipe import Recipe
from lab.studies.study import run_study

MATRIX = "transfer.csv"

SHORT = {
    "ga": "answers right",
    "balanced_accuracy": "balanced acc.",
    "auroc": "AUROC",
    "acceptance": "accepts own",
    "over_acceptance": "over-accept.",
    "tpr": "TPR",
    "tnr": "TNR",
    "brier": "Brier",
    "ece": "ECE",
}
"""What the terminal calls the measures."""


def main_adapter(adapters: Sequence[str]) -> str:
    """Which of the adapters the study itself is of: ``both`` if it is there, else the last one."""
    named = {run_name(adapter): adapter for adapter in adapters}
    trained = [adapter for name, adapter in named.items() if name != BASE]
    return named.get("both", trained[-1] if trained else BASE)


def run_transfer(recipe: Recipe, out: Path, adapters: Sequence[str]) -> list[Run]:
    """Run all adapters into a folder, one of them as the study itself, the others beside it."""
    with show_progress() as progress:
        run_study(recipe, out, progress=progress)
    run_each_beside(recipe, out, [a for a in adapters if a != (recipe.adapter or BASE)])
    return read_runs(out)


def run_each_beside(recipe: Recipe, out: Path, adapters: Sequence[str]) -> None:
    """Run adapters beside a study, one after the other, each with its own progress."""
    for adapter in adapters:
        with show_progress() as progress:
            run_beside(recipe, out, [adapter], progress)


def store_matrix(runs: Sequence[Run], out: Path) -> pd.DataFrame:
    """The matrix, stored as a CSV file in the study's folder."""
    table = matrix(runs)
    table.to_csv(out / MATRIX, index=False, float_format="%.5g")
    return table


def print_matrix(table: pd.DataFrame, runs: Sequence[Run]) -> None:
    """The matrix over all examples: values, and differences from the base with intervals."""
    console = Console(highlight=False)
    overall = table[table["scope"] == "all"].set_index(["metric", "run"])
    names = list(dict.fromkeys(overall.index.get_level_values("run")))
    # A row each measure: five versions side by side still fit a terminal of 80 columns.
    shown = Table(box=None, padding=(0, 1, 0, 0))
    shown.add_column("", no_wrap=True)
    for name in names:
        shown.add_column(name, justify="right")
    for metric in TRANSFER_METRICS:
        shown.add_row(SHORT[metric], *(_cell(overall.loc[(metric, name)]) for name in names))
    console.print()
    console.print(shown)
    console.print(Text("In brackets: 95 % interval of the paired difference from the base."))
    for claim in claims(table, runs):
        why = claim.caveat or claim.difference
        console.print(Text(f"{claim.text}: {claim.seen} ({why})."))


def _cell(row: pd.Series[float]) -> str:
    if math.isnan(row["value"]):
        return "n/a"
    text = f"{row['value']:.2f}"
    if not math.isnan(row["difference_low"]):
        text += f"\n[{_short(row['difference_low'])}, {_short(row['difference_high'])}]"
    return text


def _short(value: float) -> str:
    """A signed difference without the zero before its point."""
    return f"{value:+.2f}".replace("0.", ".", 1)
