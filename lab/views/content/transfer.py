"""What training changes: the models side by side, tables and figure data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import xarray as xr

from lab.instruments.statistics import Estimate
from lab.instruments.summaries import behaviour as B
from lab.instruments.summaries import tables as T
from lab.instruments.summaries import transfer
from lab.instruments.summaries.runs import BASE, Run, common
from lab.instruments.summaries.schemes import out_of_scheme
from lab.instruments.summaries.summary import FOR_READERS, Tables
from lab.instruments.summaries.transfer import TRANSFER_METRICS, Claim
from lab.views.content.behaviour import Untrained, estimate_data
from lab.views.content.curves import Curve, curve_size, curves, stored_curve
from lab.views.content.schemes import schemes_table
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
from lab.views.table import Cell, Row, Table, arrow, table, words
from lab.views.wording import INSIDE, RUNS, TRANSFER

COLOURS = {"generator": "gen", "evaluator": "eva", "both": "more", "verdict-only": "less"}
"""CSS colours of the models, as `palette.RUNS` has them; any other is grey."""

ROLES = {"generator": "answering", "evaluator": "judging"}
LEVEL = 0.05
MOST_HEADS = 10

FEWEST = 10
"""With fewer questions no arrow is set: a bootstrap interval of so few is too narrow."""

PAIRED = {
    ("own", "ga_f1_50"): ("ga", 1),
    ("own", "acceptance"): ("acceptance", 1),
    ("fair", "balanced_accuracy"): ("balanced_accuracy", 1),
    ("fair", "auroc"): ("auroc", 1),
    ("fair", "accepts_right"): ("tpr", 1),
    ("fair", "accepts_wrong"): ("tnr", -1),
}
"""Lines of the table of behaviour that the matrix has too; -1: as one minus it."""


@dataclass(frozen=True, slots=True)
class Training:
    """The summaries of several models on the same questions, each computed once."""

    runs: list[Run]
    matrix: pd.DataFrame
    claims: list[Claim]
    inside: pd.DataFrame
    heads: pd.DataFrame
    schemes: pd.DataFrame

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Training | None:
        """The summaries; None where there is nothing to compare."""
        light = [replace(run, dataset=_light(run.dataset)) for run in runs]
        light = [run for run in light if run.dataset.sizes.get("example")]
        if len({run.name for run in light}) < 2:
            return None
        light = common(light)
        matrix = transfer.matrix(light)
        return cls(
            light,
            matrix,
            transfer.claims(matrix, light),
            transfer.inside(light),
            transfer.head_changes(light),
            out_of_scheme(light),
        )

    @property
    def names(self) -> list[str]:
        """The models, the reference first."""
        return list(dict.fromkeys(run.name for run in self.runs))


@dataclass(frozen=True, slots=True)
class Section:
    """What the template shows of it."""

    lead: str
    matrix: Table
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
    return Section(
        lead(found),
        matrix_table(found),
        group_table(found),
        claims_table(found),
        inside_table(found),
        heads_lead(found),
        heads_table(found),
        schemes_table(found.schemes, found.names),
        drawn,
        curve_size(stored_curve(provenance)),
        numbers,
    )


def untrained(
    found: Training | None, tables: Tables, balanced: pd.DataFrame, provenance: Mapping[str, Any]
) -> Untrained | None:
    """The untrained model's behaviour beside a trained one's; None where either is not there.

    A difference is given where the matrix holds exactly the two values that the table shows, so
    that it is paired over the same candidates.
    """
    name = transfer.trained_name(provenance.get("adapter"))
    if found is None or name == BASE or found.names[0] != BASE:
        return None
    base = found.runs[0].dataset.drop_vars(["dataset", "family"], errors="ignore")
    other = {"own": B.agreement(base, tables.rule), "fair": B.balanced(base, tables.rule)}
    this = {"own": tables.agreement, "fair": balanced}
    gaps = {}
    for (part, metric), (measure, sign) in PAIRED.items():
        at = {"scope": "all", "metric": metric} | ({"rung": "hardest"} if part == "fair" else {})
        shown = [T.find(side[part], **at).value for side in (this, other)]
        held = [_find(found, run, measure).value for run in (name, BASE)]
        held = [value if sign > 0 else 1 - value for value in held]
        if all(math.isclose(a, b, abs_tol=1e-9) for a, b in zip(shown, held, strict=True)):
            gap = gap_of(_record(found, name, measure))
            gaps[part, metric] = gap if sign > 0 else _negated(gap)
    return Untrained(other["own"], other["fair"], gaps)


# --- sentences ----------------------------------------------------------------------------------


def run_label(name: str) -> str:
    """What a model is called: by what was trained, or by its own name."""
    return RUNS.get(name, name)


def lead(found: Training) -> str:
    """Which models, on which questions, and what the intervals and ranges mean."""
    seeds = {name: sum(run.name == name for run in found.runs) for name in found.names}
    models = [
        run_label(name) + (f" ({count(seeds[name], 'training seed')})" if seeds[name] > 1 else "")
        for name in found.names
    ]
    base = found.runs[0].dataset
    n, passages = base.sizes["example"], T.independent(base)
    judged = _find(found, found.names[0], "tpr").n
    lines = [
        f"One model in {len(models)} versions, {', '.join(models[:-1])} and {models[-1]}, on the "
        f"same {count(n, 'question')} in the same prompts.",
        f"These share {count(passages, 'passage')}: with so few, intervals are too narrow."
        if passages < FEWEST
        else "",
        f"Verdicts are compared on {count(judged, 'question')} with a right and a wrong candidate; "
        "the wrong one is the same for all versions." if judged else "",
        f"Differences are from the version \u201c{run_label(found.names[0])}\u201d, paired by "
        "question.",
        "Where there are several training seeds, values are their means; the range of the single "
        "trainings shows how much is luck of the training, which no interval over questions does."
        if max(seeds.values()) > 1
        else "Each was trained once: what another training seed would change is not known.",
    ]  # fmt: skip
    return " ".join(line for line in lines if line)


def heads_lead(found: Training) -> str:
    """How many heads look at the passage differently after each training."""
    if found.heads.empty:
        return ""
    parts = []
    for name in found.names[1:]:
        of_run = found.heads[found.heads["run"] == name]
        clear = of_run[of_run["p_adjusted"] <= LEVEL]["role"].value_counts()
        if len(of_run):
            each = len(of_run) // of_run["role"].nunique()
            told = " and ".join(f"{clear.get(r, 0)} when {word}" for r, word in ROLES.items())
            parts.append(f"{run_label(name)}, {told} (of {each})")
    return (
        f"Heads whose attention to the passage changed (corrected p of {LEVEL:g} or less): "
        f"{'; '.join(parts)}. For the others no change is shown."
    )


# --- tables -------------------------------------------------------------------------------------


def matrix_table(found: Training) -> Table:
    """All models by all measures, over all examples."""
    rows = []
    for name in found.names:
        records = [_record(found, name, metric) for metric in TRANSFER_METRICS]
        rows.append(Row(run_label(name), tuple(_cell(record) for record in records)))
        seeds = int(records[0]["seeds"])
        if seeds > 1:
            cells = tuple(Cell("", _seeds(record)) for record in records)
            rows.append(Row(f"range of {seeds} seeds", cells, minor=True))
    ns = [_find(found, found.names[0], metric).n for metric in TRANSFER_METRICS]
    columns = ("", *(f"{TRANSFER[metric][2]}, n\u00a0=\u00a0{n}"
                     for metric, n in zip(TRANSFER_METRICS, ns, strict=True)))  # fmt: skip
    return table("What training changes, all questions", columns, rows, dense=True)


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
            records = [_record(found, name, m, str(scope), str(group)) for m in TRANSFER_METRICS]
            rows.append(Row(run_label(name), tuple(_cell(record) for record in records)))
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


def _record(
    found: Training, run: str, metric: str, scope: str = "all", name: str = "all"
) -> dict[str, Any]:
    frame = found.matrix
    chosen = frame[
        (frame["run"] == run) & (frame["metric"] == metric)
        & (frame["scope"] == scope) & (frame["name"] == name)
    ]  # fmt: skip
    return {str(key): value for key, value in chosen.iloc[0].items()} if len(chosen) else {}


def _find(found: Training, run: str, metric: str) -> Estimate:
    return T.find(found.matrix, run=run, metric=metric, scope="all")


def gap_of(record: Mapping[str, Any]) -> Estimate:
    """The difference from the reference in a row of one of the tables."""
    value, low, high = (float(record[f"difference{end}"]) for end in ("", "_low", "_high"))
    return Estimate(value, low, high, int(record["n"]), "paired bootstrap")


def _negated(gap: Estimate) -> Estimate:
    return Estimate(-gap.value, -gap.high, -gap.low, gap.n, gap.method)


def _cell(record: Mapping[str, Any]) -> Cell:
    return _compared(_estimate(record), gap_of(record), decimal, decimal)


def _inside_cell(frame: pd.DataFrame, run: str, measure: str) -> Cell:
    chosen = frame[(frame["run"] == run) & (frame["measure"] == measure)]
    if chosen.empty:
        return words("", "num")
    record = {str(key): value for key, value in chosen.iloc[0].items()}
    forms = (ratio, ratio) if measure == "ratio" else (percent, points)
    return _compared(_estimate(record), gap_of(record), *forms, 1.0 if measure == "ratio" else 0.0)


def _compared(
    value: Estimate, gap: Estimate, form: Format, change: Format, zero: float = 0.0
) -> Cell:
    """A value over its difference, each with its interval on a line of its own."""
    lines = [interval(value, form)]
    if not math.isnan(gap.value):
        number = change(gap.value) if zero else signed(gap.value, change)
        unit = " points" if change is points else ""
        pointer = arrow(gap, zero) if gap.n >= FEWEST else ""
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
        metric: [gap_of(_record(found, name, metric)) for name in trained]
        for metric in TRANSFER_METRICS
    }
    rows = [
        {
            "label": TRANSFER[metric][0],
            "note": TRANSFER[metric][1],
            "n": max(gap.n for gap in row),
            "cells": [estimate_data(gap) for gap in row],
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


def _light(dataset: xr.Dataset) -> xr.Dataset:
    """Without what no summary needs, in memory."""
    return dataset.drop_vars([name for name in FOR_READERS if name in dataset]).compute()
