"""The judge out of its scheme: how much of it is left when it is asked in another way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from lab.instruments.schemes import SCHEMES
from lab.instruments.statistics import Estimate
from lab.instruments.summaries.claims import FEWEST
from lab.instruments.summaries.schemes import USUAL
from lab.views.format import decimal, interval, signed
from lab.views.table import Cell, Row, Table, arrow, table
from lab.views.wording import RUNS

METRIC = "auroc"


def schemes_table(frame: pd.DataFrame, runs: Sequence[str]) -> Table:
    """AUROC of every model's judge under each scheme, over how much that is below its usual.

    ``frame`` is what `lab.instruments.summaries.schemes.out_of_scheme` gives; ``runs`` the models.
    """
    rows = []
    found = frame[frame["metric"] == METRIC]
    for scheme, spec in SCHEMES.items():
        records = [_record(found, run, scheme) for run in runs]
        if any(records):
            ns = {record["n"] for record in records if record}
            label = f"{spec.words} (n\u00a0=\u00a0{max(ns)})"
            rows.append(Row(label, tuple(_cell(record) for record in records)))
    # The usual scheme alone tells nothing of others.
    shown = rows if len(rows) > 1 else []
    columns = ("asked with", *(RUNS.get(run, run) for run in runs))
    return table("AUROC of the judge, asked in other ways", columns, shown, dense=True)


def _record(frame: pd.DataFrame, run: str, scheme: str) -> dict[str, Any]:
    chosen = frame[(frame["run"] == run) & (frame["scheme"] == scheme)]
    return {str(key): value for key, value in chosen.iloc[0].items()} if len(chosen) else {}


def _cell(record: dict[str, Any]) -> Cell:
    if not record:
        return Cell("\u2013")
    n = int(record["n"])
    value = Estimate(record["value"], record["low"], record["high"], n)
    lines = [interval(value, decimal)]
    if record["scheme"] != USUAL:
        # Told as a change, so that a loss has a minus like everywhere else.
        change = Estimate(-record["drop"], -record["drop_high"], -record["drop_low"], n)
        pointer = arrow(change) if n >= FEWEST else ""
        lines += [f"{pointer}{signed(change.value)}", interval(change, decimal)]
    return Cell(decimal(value.value), more=tuple(line for line in lines if line))
