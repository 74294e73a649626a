"""The judge out of its scheme: how much of it is left when it is asked in another way."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd

from lab.instruments.schemes import SCHEMES
from lab.instruments.statistics import Estimate
from lab.instruments.summaries.schemes import USUAL
from lab.views.content.trained import gap_of
from lab.views.format import decimal, interval, signed
from lab.views.table import Cell, Row, Table, arrow, ends, table
from lab.views.wording import RUNS

METRIC = "auroc"


def schemes_table(frame: pd.DataFrame, runs: Sequence[str], idle: Collection[str] = ()) -> Table:
    """AUROC of every model's judge under each scheme, over how much that differs from its usual.

    ``frame`` is what `lab.instruments.summaries.schemes.out_of_scheme` gives; ``runs`` the models;
    ``idle`` those whose verdicts mean nothing, which a dagger marks.
    """
    rows = []
    found = frame[frame["metric"] == METRIC]
    for scheme, spec in SCHEMES.items():
        records = [_record(found, run, scheme) for run in runs]
        if any(records):
            ns = {record["n"] for record in records if record}
            label = f"{spec.words} (n\u00a0=\u00a0{max(ns)})"
            cells = (_cell(r, run in idle) for r, run in zip(records, runs, strict=True))
            rows.append(Row(label, tuple(cells)))
    # The usual scheme alone tells nothing of others.
    shown = rows if len(rows) > 1 else []
    columns = ("asked with", *(RUNS.get(run, run) for run in runs))
    return table("AUROC of the judge, asked in other ways", columns, shown, dense=True)


def _record(frame: pd.DataFrame, run: str, scheme: str) -> dict[str, Any]:
    chosen = frame[(frame["run"] == run) & (frame["scheme"] == scheme)]
    return {str(key): value for key, value in chosen.iloc[0].items()} if len(chosen) else {}


def _cell(record: dict[str, Any], idle: bool) -> Cell:
    if not record:
        return Cell("\u2013")
    n = int(record["n"])
    value = Estimate(record["value"], record["low"], record["high"], n)
    lines = [ends(value, decimal)]
    if record["scheme"] != USUAL:
        change = gap_of(record)
        pointer = arrow(change) if record["clear"] and not idle else ""
        lines += [f"{pointer}{signed(change.value)}", interval(change, decimal)]
    shown = f"{decimal(value.value)}\u00a0†" if idle else decimal(value.value)
    return Cell(shown, more=tuple(line for line in lines if line))
