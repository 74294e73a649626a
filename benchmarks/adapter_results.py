"""What the adapters reach, as Markdown for the docs and as results for their cards.

    python benchmarks/adapter_results.py OUT [OUT ...] [--cards lab/adapters]

Each OUT is a folder of `lab transfer`. Prints a table for every dataset, the claims, the share of
unchanged answers, attention, and how much of the judge is left when it is asked in other ways. Of
several training seeds it prints means, and below them the range of the single trainings. With
--cards the results of every adapter are stored beside it and its card is written anew: those of
that one training alone.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lab.engine.adapters import ABOUT
from lab.instruments.schemes import SCHEMES
from lab.instruments.statistics import Estimate
from lab.instruments.summaries.runs import BASE, Run, common
from lab.instruments.summaries.schemes import out_of_scheme
from lab.instruments.summaries.transfer import (
    TRANSFER_METRICS,
    claims,
    head_changes,
    inside,
    matrix,
    not_comparable,
    unchanged,
    without_meaning,
)
from lab.studies.beside import read_runs
from lab.training.card import RESULTS, write_card
from lab.views.format import Format, decimal, interval, percent, ratio, signed
from lab.views.wording import INSIDE, TRANSFER

LEVEL = 0.05

SHORT = ("ga", "auroc")
"""Measures that are also shown for all datasets in one table."""


def main() -> None:
    """Print all tables, and write the cards where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, help="folders of lab transfer")
    parser.add_argument("--cards", type=Path, help="folder of adapters whose cards are written")
    args = parser.parse_args()
    results: list[dict[str, Any]] = []
    short: dict[str, list[list[str]]] = {metric: [] for metric in SHORT}
    names: list[str] = []
    for folder in args.folders:
        runs = common(read_runs(folder))
        table = matrix(runs)
        names = list(dict.fromkeys([*names, *table["run"]]))
        for metric, lines in short.items():
            lines += [short_line(table, runs, name, metric) for name in datasets(table)]
        for name in datasets(table):
            print(matrix_lines(table, runs, name))
        print(claim_lines(table, runs))
        print(unchanged_lines(runs))
        print(inside_lines(runs))
        print(scheme_lines(runs))
        if args.cards:
            own = shipped(runs, args.cards)
            one = matrix(own)
            results += [part for name in datasets(one) for part in card_tables(one, own, name)]
    for metric, lines in short.items():
        print(f"\n**{TRANSFER[metric][0]}**\n\n" + markdown(["", *names], lines))
    if args.cards:
        write_cards(args.cards, results)


def shipped(runs: Sequence[Run], adapters: Path) -> list[Run]:
    """The runs without other training seeds of the adapters in a folder."""
    there = {path.parent.name for path in adapters.glob(f"*/{ABOUT}")}
    named = {run.name for run in runs if run.adapter in there}
    return [run for run in runs if run.adapter in there or run.name not in named]


def datasets(table: pd.DataFrame) -> list[str]:
    """The datasets of a matrix; "all" where there is one only."""
    names = list(dict.fromkeys(table[table["scope"] == "dataset"]["name"]))
    return names or ["all"]


def rows_of(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of a matrix on one dataset."""
    scope = "all" if name == "all" else "dataset"
    return table[(table["scope"] == scope) & (table["name"] == name)]


def short_line(table: pd.DataFrame, runs: Sequence[Run], name: str, metric: str) -> list[str]:
    """One measure of all versions on one dataset."""
    found = rows_of(table, name)
    rows = found[found["metric"] == metric].set_index("run")
    title = name if name != "all" else str(runs[0].dataset["dataset"].values[0])
    label = f"{title}, n = {int(rows['n'].iloc[0])}"
    return [label, *(marked(row, runs, str(run), metric) for run, row in rows.iterrows())]


def matrix_lines(table: pd.DataFrame, runs: Sequence[Run], name: str) -> str:
    """All versions by all measures on one dataset; a mark where the difference is sure."""
    found = rows_of(table, name)
    title = name if name != "all" else str(runs[0].dataset["dataset"].values[0])
    names = list(dict.fromkeys(found["run"]))
    lines = []
    for metric in TRANSFER_METRICS:
        rows = found[found["metric"] == metric].set_index("run")
        label = f"{TRANSFER[metric][2]}, n = {int(rows['n'].iloc[0])}"
        lines.append([label, *(marked(rows.loc[run], runs, run, metric) for run in names)])
    return f"\n**{title}**\n\n" + markdown(["", *names], lines)


def marked(row: pd.Series[Any], runs: Sequence[Run], name: str, metric: str) -> str:
    """A value with its interval, and whether its paired difference from base is a change.

    An arrow says that it is (`lab.instruments.summaries.differences`), a dagger that the measure
    says nothing of this model. The range of several trainings is on a line of its own.
    """
    text = f"{decimal(row['value'])} {ends(row, decimal)}".strip()
    if without_meaning([run for run in runs if run.name == name], metric):
        text += " †"
    elif row["clear"] and not not_comparable(runs, name, metric):
        text += pointer(row)
    if row["seeds"] < 2 or math.isnan(row["seed_low"]):
        return text
    return f"{text}<br>{decimal(row['seed_low'])} to {decimal(row['seed_high'])}"


def pointer(row: pd.Series[Any], zero: float = 0.0) -> str:
    """An arrow up or down, for a difference that is a change."""
    return " ▲" if row["difference"] > zero else " ▼"


def ends(row: Any, form: Format, prefix: str = "") -> str:
    """An interval in brackets; empty where there is none."""
    value, low, high = (row[f"{prefix}{end}"] for end in ("low", "low", "high"))
    return interval(Estimate(value, low, high), form)


def claim_lines(table: pd.DataFrame, runs: Sequence[Run]) -> str:
    """The published claims over all questions."""
    rows = [
        [
            claim.text,
            f"{claim.seen}{f' ({claim.caveat})' if claim.caveat else ''}",
            f"{signed(claim.difference.value)} {interval(claim.difference, decimal)}, "
            f"n = {claim.difference.n}",
        ]
        for claim in claims(table, runs)
    ]
    return "\n" + markdown(["claim", "here", "difference from base"], rows)


def unchanged_lines(runs: Sequence[Run]) -> str:
    """How many answers are word for word the base's."""
    rows = [
        [row["run"], f"{decimal(row['value'])} {ends(row, decimal)}", str(row["n"])]
        for row in unchanged(runs).to_dict("records")
    ]
    return "\n" + markdown(["unchanged answers", "share", "n"], rows)


def inside_lines(runs: Sequence[Run]) -> str:
    """Attention of every version, and how many heads changed their view of the passage."""
    found = inside(runs)
    if found.empty:
        return "\n(attention was not measured)"
    names = list(dict.fromkeys(found["run"]))
    at = found.set_index(["run", "measure"])
    lines = []
    for measure, label in INSIDE.items():
        form, zero = (ratio, 1.0) if measure == "ratio" else (percent, 0.0)
        cells = []
        for run in names:
            row = at.loc[run, measure]
            text = f"{form(row['value'])} {ends(row, form)}".strip()
            cells.append(text + pointer(row, zero) if row["clear"] else text)
        lines.append([label, *cells])
    heads = head_changes(runs)
    if not heads.empty:
        for role in dict.fromkeys(heads["role"]):
            part = heads[heads["role"] == role]
            cells = [
                f"{int((part[part['run'] == run]['p_adjusted'] <= LEVEL).sum())}"
                if run != BASE
                else ""
                for run in names
            ]
            lines.append([f"heads that changed, as {role}", *cells])
    return f"\nn = {int(found['n'].max())}\n\n" + markdown(["", *names], lines)


def scheme_lines(runs: Sequence[Run]) -> str:
    """AUROC of each judge asked in other ways; a mark where the drop is sure."""
    found = out_of_scheme(runs)
    found = found[found["metric"] == "auroc"] if not found.empty else found
    if found.empty:
        return "\n(other ways of asking were not tried)"
    names = list(dict.fromkeys(found["run"]))
    at = found.set_index(["run", "scheme"])
    lines = []
    for scheme in dict.fromkeys(found["scheme"]):
        cells = []
        for run in names:
            if (run, scheme) not in at.index:
                cells.append("")
                continue
            row = at.loc[run, scheme]
            text = f"{decimal(row['value'])} {ends(row, decimal)}".strip()
            if without_meaning([one for one in runs if one.name == run], "auroc"):
                text += " †"
            elif row["clear"]:
                text += pointer(row)
            cells.append(text)
        n = int(at.xs(scheme, level="scheme")["n"].max())
        lines.append([f"{SCHEMES[scheme].words}, n = {n}", *cells])
    return "\n" + markdown(["AUROC, asked with", *names], lines)


def card_tables(table: pd.DataFrame, runs: Sequence[Run], name: str) -> list[dict[str, Any]]:
    """For each version one table of results on a dataset, marked with the version's name."""
    found = rows_of(table, name)
    title = "built-in questions" if name in ("all", "builtin") else name
    tables = []
    for run in dict.fromkeys(found["run"]):
        rows, why = [], []
        for metric in TRANSFER_METRICS:
            here = found[(found["run"] == run) & (found["metric"] == metric)].iloc[0]
            base = found[(found["run"] == BASE) & (found["metric"] == metric)].iloc[0]
            idle = not_comparable(runs, str(run), metric)
            why += [idle] if idle and idle not in why else []
            change = f"{signed(here['difference'])} {ends(here, decimal, 'difference_')}".strip()
            rows.append(
                [
                    TRANSFER[metric][2],
                    f"{decimal(here['value'])} {ends(here, decimal)}".strip(),
                    decimal(base["value"]),
                    f"{change} †" if idle else change,
                    str(int(here["n"])),
                ]
            )
        columns = ("measure", "value [95 %]", "untrained", "difference [95 %]", "n")
        made = {"run": run, "title": title, "columns": columns, "rows": rows}
        tables.append(made | ({"note": f"†: says nothing, since {'; '.join(why)}."} if why else {}))
    return tables


def write_cards(adapters: Path, results: Sequence[Mapping[str, Any]]) -> None:
    """Store each adapter's results beside it, and write its card."""
    for folder in sorted(path.parent for path in adapters.glob(f"*/{ABOUT}")):
        mine = [
            {key: value for key, value in table.items() if key != "run"}
            for table in results
            if table["run"] == folder.name
        ]
        if mine:
            (folder / RESULTS).write_text(json.dumps(mine, indent=1, ensure_ascii=False) + "\n")
            print(f"wrote {write_card(folder)}")


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main()
