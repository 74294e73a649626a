"""What training changes: the models side by side, tables and figure data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from lab.instruments.statistics import Estimate
from lab.instruments.summaries import tables as T
from lab.instruments.summaries import transfer
from lab.instruments.summaries.transfer import TRANSFER_METRICS
from lab.views.content.behaviour import estimate_data
from lab.views.content.curves import Curve, curve_size, curves, stored_curve
from lab.views.content.schemes import schemes_table
from lab.views.content.trained import (
    ROLES,
    Training,
    gap_of,
    heads_lead,
    lead,
    run_label,
)
from lab.views.format import (
    Format,
    count,
    decimal,
    interval,
    percent,
    points,
    q_value,
    ratio,
    signed,
)
from lab.views.table import Cell, Row, Table, arrow, ends, table, words
from lab.views.wording import INSIDE, TRANSFER

COLOURS = {"generator": "gen", "evaluator": "eva", "both": "more", "verdict-only": "less"}
"""CSS colours of the models, as `palette.RUNS` has them; any other is grey."""

MOST_HEADS = 10


@dataclass(frozen=True, slots=True)
class Section:
    """What the template shows of it."""

    lead: str
    matrix: Table
    without_meaning: tuple[str, ...]
    groups: Table
    claims: Table
    inside: Table
    heads_lead: str
    heads: Table
    schemes: Table
    curves: list[Curve]
    curve_size: str
    curve_table: Table


def section(found: Training, provenance: Mapping[str, Any]) -> Section:
    """The tables and sentences of the section."""
    drawn, numbers = curves(provenance)
    silent = [name for name in found.names if found.without_meaning(name, "auroc")]
    return Section(
        lead(found),
        matrix_table(found),
        without_meaning(found),
        group_table(found),
        claims_table(found),
        inside_table(found),
        heads_lead(found),
        heads_table(found),
        schemes_table(found.schemes, found.names, silent),
        drawn,
        curve_size(stored_curve(provenance)),
        numbers,
    )


# --- tables -------------------------------------------------------------------------------------


def matrix_table(found: Training) -> Table:
    """All models by all measures, over all examples."""
    rows = []
    for name in found.names:
        records = [found.record(name, metric) for metric in TRANSFER_METRICS]
        rows.append(Row(run_label(name), _cells(found, name, records)))
        seeds = int(records[0]["seeds"])
        if seeds > 1:
            ranges = tuple(Cell("", _seeds(record)) for record in records)
            rows.append(Row(f"range of {seeds} seeds", ranges, minor=True))
    ns = [found.value(found.names[0], metric).n for metric in TRANSFER_METRICS]
    columns = ("", *(f"{TRANSFER[metric][2]}, n\u00a0=\u00a0{n}"
                     for metric, n in zip(TRANSFER_METRICS, ns, strict=True)))  # fmt: skip
    return table("What training changes, all questions", columns, rows, dense=True)


def without_meaning(found: Training) -> tuple[str, ...]:
    """What † stands for: each model whose measures say nothing, and why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for name in found.names:
        for metric in TRANSFER_METRICS:
            why = found.without_meaning(name, metric)
            if why:
                reasons.setdefault((name, why), []).append(TRANSFER[metric][0])
    return tuple(
        f"{run_label(name).capitalize()}: {why}. So {', '.join(measures)} say nothing here, and no "
        "arrow is set; the figure leaves them out."
        for (name, why), measures in reasons.items()
    )


def group_table(found: Training) -> Table:
    """The same for every dataset and kind of question; values and differences."""
    rows = []
    groups = found.matrix[found.matrix["scope"] != "all"]
    for scope, group in groups[["scope", "name"]].drop_duplicates().itertuples(index=False):
        at = {"run": found.names[0], "scope": scope, "name": group}
        n, pairs = (T.find(found.matrix, metric=metric, **at).n for metric in ("ga", "tpr"))
        label = f"{group or 'no name'}: {count(n, 'answer')}, {count(pairs, 'pair')} of candidates"
        rows.append(Row(label, group=True))
        for name in found.names:
            records = [found.record(name, m, str(scope), str(group)) for m in TRANSFER_METRICS]
            rows.append(Row(run_label(name), _cells(found, name, records)))
    columns = ("", *(TRANSFER[metric][2] for metric in TRANSFER_METRICS))
    return table("What training changes, by dataset and kind of question", columns, rows, True)


def claims_table(found: Training) -> Table:
    """Published claims, and whether they are seen here."""
    rows = []
    for claim in found.claims:
        gap = claim.difference
        small = f"{interval(gap, decimal)} n\u00a0=\u00a0{gap.n}".strip()
        cells = (
            Cell(claim.seen, claim.caveat, "text"),
            Cell(signed(gap.value), small),
            words(claim.measure, "what"),
        )
        rows.append(Row(claim.text, cells))
    columns = ("claim", "here", "difference from untrained", "what was measured")
    return table("Published claims on training one role", columns, rows)


def inside_table(found: Training) -> Table:
    """Attention of each model: the reading ratio, and means by region."""
    rows = []
    if not found.inside.empty:
        for name in found.names:
            cells = tuple(_inside_cell(found.inside, name, measure) for measure in INSIDE)
            n = T.find(found.inside, run=name, measure="ratio").n
            rows.append(Row(run_label(name), (*cells, Cell(str(n)))))
    columns = ("", *INSIDE.values(), "n")
    return table("Attention inside each model", columns, rows, dense=True)


def heads_table(found: Training, k: int = MOST_HEADS) -> Table:
    """For each trained model and role, the heads whose attention to the passage changed most."""
    rows: list[Row] = []
    reference = run_label(found.names[0])
    for (name, role), frame in found.heads.groupby(["run", "role"], sort=False):
        order = frame["value"].abs().sort_values(ascending=False, kind="stable").index
        rows.append(Row(f"{run_label(str(name))}, when {ROLES[str(role)]}", group=True))
        for record in frame.loc[order[:k]].to_dict("records"):
            change = Estimate(record["value"], record["low"], record["high"], int(record["n"]))
            small = f"{interval(change, points)} n\u00a0=\u00a0{change.n}".strip()
            cells = (
                Cell(percent(record["base"])),
                Cell(percent(record["base"] + change.value)),
                Cell(f"{signed(change.value, points)} points", small),
                Cell(q_value(record["p_adjusted"])),
            )
            rows.append(Row("", cells, head=f"{int(record['layer'])}.{int(record['head'])}"))
    columns = ("head", f"passage, {reference}", "passage, trained", "change", "corrected p")
    return table("Heads whose attention to the passage training changed most", columns, rows)


def _cells(found: Training, name: str, records: Sequence[Mapping[str, Any]]) -> tuple[Cell, ...]:
    """One model's row of measures."""
    return tuple(
        _cell(found, name, metric, record)
        for metric, record in zip(TRANSFER_METRICS, records, strict=True)
    )


def _cell(found: Training, name: str, metric: str, record: Mapping[str, Any]) -> Cell:
    """A dagger marks a measure that says nothing of this model."""
    pointed = bool(record["clear"]) and not transfer.not_comparable(found.runs, name, metric)
    shown = _compared(_estimate(record), gap_of(record), decimal, decimal, pointed)
    idle = found.without_meaning(name, metric) and shown.more
    return replace(shown, text=f"{shown.text}\u00a0†") if idle else shown


def _inside_cell(frame: pd.DataFrame, run: str, measure: str) -> Cell:
    chosen = frame[(frame["run"] == run) & (frame["measure"] == measure)]
    if chosen.empty:
        return words("", "num")
    record = {str(key): value for key, value in chosen.iloc[0].items()}
    forms = (ratio, ratio) if measure == "ratio" else (percent, points)
    zero = 1.0 if measure == "ratio" else 0.0
    return _compared(_estimate(record), gap_of(record), *forms, bool(record["clear"]), zero)


def _compared(
    value: Estimate,
    gap: Estimate,
    form: Format,
    change: Format,
    pointed: bool,
    zero: float = 0.0,
) -> Cell:
    """A value over its difference, each with its interval on a line of its own.

    ``pointed``: the difference may be called a change, which an arrow marks.
    """
    lines = [ends(value, form)]
    if not math.isnan(gap.value):
        number = change(gap.value) if zero else signed(gap.value, change)
        unit = " points" if change is points else ""
        pointer = arrow(gap, zero) if pointed else ""
        lines += [f"{pointer}{number}{unit}", interval(gap, change)]
    return Cell(form(value.value), more=tuple(line for line in lines if line))


def _estimate(record: Mapping[str, Any]) -> Estimate:
    value, low, high = (float(record[key]) for key in ("value", "low", "high"))
    return Estimate(value, low, high, int(record["n"]), str(record["method"]))


def _seeds(record: Mapping[str, Any]) -> str:
    if math.isnan(record["seed_low"]):
        return ""
    return f"{decimal(record['seed_low'])} to {decimal(record['seed_high'])}"


# --- figure data --------------------------------------------------------------------------------


def transfer_data(found: Training | None) -> dict[str, Any] | None:
    """The differences as the figure draws them: a row for each measure, a column for each model."""
    if found is None:
        return None
    trained = found.names[1:]
    gaps = {
        metric: [gap_of(found.record(name, metric)) for name in trained]
        for metric in TRANSFER_METRICS
    }
    rows = [
        {
            "label": TRANSFER[metric][0],
            "note": TRANSFER[metric][1],
            "n": max(gap.n for gap in row),
            "cells": [
                None if transfer.not_comparable(found.runs, name, metric) else estimate_data(gap)
                for name, gap in zip(trained, row, strict=True)
            ],
        }
        for metric, row in gaps.items()
    ]
    most = reach([gap for row in gaps.values() for gap in row])
    scale = {"domain": [-most, most], "guides": [0], "ends": [f"\u2212{most:g}", "0", f"+{most:g}"]}
    columns = [
        {"label": run_label(name), "colour": COLOURS.get(name, "dim"), **scale} for name in trained
    ]
    return {"columns": columns, "rows": rows, "of": run_label(found.names[0])}


def reach(gaps: Sequence[Estimate], step: float = 0.1) -> float:
    """How far a scale must go on both sides of zero to show all intervals."""
    ends = [abs(x) for gap in gaps for x in (gap.value, gap.low, gap.high) if math.isfinite(x)]
    return round(step * max(1, math.ceil(max(ends, default=step) / step - 1e-9)), 6)
