"""Does it answer well, does it judge well: tables and figure data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from lab.instruments.statistics import Estimate
from lab.instruments.summaries import tables as T
from lab.views.format import MISSING, decimal, interval, q_value, signed
from lab.views.table import Cell, Row, Table, arrow, cell, table, words
from lab.views.wording import CONTROLS, MEASURES, OWN_ANSWER, RETEST, RUNGS

LADDER = ("gold", "empty", "other_passage", "closed_book", "same_passage", "same_type", "own")
"""Rungs from top to bottom: the right answer, wrong ones as they take more reading, its own."""

ANSWERING = ("ga_em", "ga_f1_50", "ga_f1_80")
OWN = ("ea", "delta", "acceptance", "tpr", "tnr", "balanced_accuracy", "auroc")
OWN_MORE = ("kappa", "mcc", "brier", "ece")
BY_GROUP = ("ga_em", "ga", "ea", "delta", "acceptance", "tpr", "tnr", "auroc")

_HALF, _ZERO = (0.5, 0.5, 0.5), (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Untrained:
    """The untrained model beside a trained one.

    Attributes:
        agreement, balanced: its tables.
        gaps: paired differences, trained minus untrained, by part (``own``, ``fair``) and metric.
        clear: those of them that may be called a change, which an arrow marks.
    """

    agreement: pd.DataFrame
    balanced: pd.DataFrame
    gaps: Mapping[tuple[str, str], Estimate]
    clear: frozenset[tuple[str, str]]


def behaviour_table(
    agreement: pd.DataFrame, balanced: pd.DataFrame, before: Untrained | None = None
) -> Table:
    """All measures over all examples, next to judges that read nothing.

    With ``before`` the untrained model stands beside the trained one.
    """
    rows = [
        _group("Answering"),
        *(_row(agreement, metric, before) for metric in ANSWERING),
        _group("The fair test: one right and one wrong answer to each question that has an answer"),
        *(_retest_row(balanced, metric, before) for metric in RETEST),
        _group("Judging its own answers"),
        *(_row(agreement, metric, before) for metric in (*OWN, *OWN_MORE)),
    ]
    columns = (
        "",
        "this model",
        *(("untrained, and change",) if before else ()),
        "always accept",
        "always reject",
        "majority",
        "what it says",
    )
    return table("Accuracy of answers and of verdicts, over all examples", columns, rows)


def family_table(agreement: pd.DataFrame, balanced: pd.DataFrame) -> Table:
    """The main measures for every dataset and kind of question."""
    groups = agreement[["scope", "name"]].drop_duplicates()
    # The only dataset is the same as all examples.
    alone = (groups["scope"] == "dataset") & ((groups["scope"] == "dataset").sum() == 1)
    rows = []
    for scope, name in groups[~alone].itertuples(index=False):
        found = [_find(agreement, metric, scope=scope, name=name) for metric in BY_GROUP]
        fair = _find(balanced, "balanced_accuracy", scope=scope, name=name, rung="hardest")
        cells = [cell(estimate, decimal) for metric, estimate in zip(BY_GROUP, found, strict=True)]
        label = "all examples" if scope == "all" else name
        rows.append(Row(label, (Cell(str(found[0].n)), cell(fair, decimal), *cells)))
    columns = ("", "n", "fair test", *(MEASURES[metric][2] for metric in BY_GROUP))
    return table("Accuracy by dataset and kind of question", columns, rows, dense=True)


def ladder_table(balanced: pd.DataFrame, mass: pd.DataFrame) -> Table:
    """The rungs of the candidate ladder in numbers.

    The verdict words are weighed over all candidates of a rung, right ones among its own answers
    too, and so have an n of their own.
    """
    rows = []
    for rung in LADDER:
        retest = [_find(balanced, m, rung=rung) for m in ("balanced_accuracy", "auroc")]
        accept, _ = _accepted(balanced, rung)
        rows.append(
            Row(
                RUNGS[rung][0],
                (
                    Cell(str(accept.n)),
                    cell(accept, decimal),
                    cell(retest[0], decimal),
                    cell(retest[1], decimal),
                    cell(_find(balanced, "pair_share", rung=rung), decimal),
                    cell(T.find(mass, rung=rung), decimal, True),
                ),
            )
        )
    columns = (
        "candidate",
        "n",
        "accepted",
        "balanced accuracy against gold",
        "AUROC against gold",
        "gold ranked higher",
        "probability on the verdict words",
    )
    return table("Verdicts on the candidate ladder", columns, rows)


def ladder_data(balanced: pd.DataFrame) -> list[dict[str, Any]]:
    """The rungs as the figure draws them: AUROC against the gold answer, and acceptance."""
    rows = []
    for rung in LADDER:
        accept, n = _accepted(balanced, rung)
        auroc = _find(balanced, "auroc", rung=rung)
        if n:
            label, note = RUNGS[rung]
            rows.append(
                {
                    "label": label,
                    "note": note,
                    "n": n,
                    "auroc": estimate_data(auroc),
                    "accept": estimate_data(accept),
                }
            )
    return rows


def label_notes(mass: pd.DataFrame) -> list[str]:
    """Warnings where the verdict words are unlikely words, by candidate."""
    noted = mass[mass["note"].astype(str) != ""]
    named = {rung: label for rung, (label, _) in RUNGS.items()} | {"own": OWN_ANSWER}
    return [f"{named[r['rung']]}: {r['note']}" for r in noted.to_dict("records")]


def controls_table(controls: pd.DataFrame) -> Table:
    """What each change of the prompt does to the verdict, in numbers."""
    rows = []
    for name in _names(controls, "control"):
        flip, shift, accept = (
            _find(controls, metric, control=name) for metric in ("flip_rate", "shift", "acceptance")
        )
        rows.append(
            Row(
                CONTROLS.get(name, (name, ""))[0],
                (
                    Cell(str(shift.n)),
                    cell(flip, decimal),
                    cell(shift, decimal),
                    Cell(q_value(_adjusted(controls, name, "shift"))),
                    cell(accept, decimal),
                ),
            )
        )
    columns = ("change", "n", "verdicts that flip", "log-odds shift", "corrected p", "accepted")
    return table("What each control does to the verdict", columns, rows)


def controls_data(controls: pd.DataFrame) -> list[dict[str, Any]]:
    """The controls as the figure draws them."""
    rows = []
    for name in _names(controls, "control"):
        shift = _find(controls, "shift", control=name)
        label, note = CONTROLS.get(name, (name, ""))
        rows.append(
            {
                "label": label,
                "note": note,
                "n": shift.n,
                "flip": estimate_data(_find(controls, "flip_rate", control=name)),
                "shift": estimate_data(shift),
            }
        )
    return [row for row in rows if row["n"]]


def estimate_data(estimate: Estimate) -> dict[str, Any] | None:
    """An estimate as plain data for a figure; None where there is none."""
    if math.isnan(estimate.value):
        return None
    return {name: getattr(estimate, name) for name in ("value", "low", "high", "n")}


def _row(agreement: pd.DataFrame, metric: str, before: Untrained | None) -> Row:
    label, note, _ = MEASURES[metric]
    base = _baselines(metric, _find(agreement, "ga").value)
    cells = [Cell(MISSING if math.isnan(x) else decimal(x)) for x in base]
    if before:
        earlier = _find(before.agreement, metric)
        cells = [_before(earlier, before, ("own", metric)), *cells]
    return Row(label, (cell(_find(agreement, metric), decimal, True), *cells, words(note, "what")))


def _before(earlier: Estimate, before: Untrained, key: tuple[str, str]) -> Cell:
    """The untrained model's value, and below it the paired difference where there is one."""
    shown, gap = cell(earlier, decimal, True), before.gaps.get(key)
    if gap is None or math.isnan(gap.value):
        return shown
    pointer = arrow(gap) if key in before.clear else ""
    change = f"{pointer}{signed(gap.value)} {interval(gap, decimal)}".strip()
    return replace(shown, more=(change,))


def _retest_row(balanced: pd.DataFrame, metric: str, before: Untrained | None) -> Row:
    label, note = RETEST[metric]
    found = _find(balanced, metric, rung="hardest")
    base = {"accepts_right": (1.0, 0.0, math.nan), "accepts_wrong": (1.0, 0.0, math.nan)}
    cells = [Cell(MISSING if math.isnan(x) else decimal(x)) for x in base.get(metric, _HALF)]
    if before:
        earlier = _find(before.balanced, metric, rung="hardest")
        cells = [_before(earlier, before, ("fair", metric)), *cells]
    return Row(label, (cell(found, decimal, True), *cells, words(note, "what")))


def _baselines(metric: str, ga: float) -> tuple[float, float, float]:
    """What always accepting, always rejecting and the better of both get, by definition."""
    most = max(ga, 1 - ga) if not math.isnan(ga) else math.nan
    error = (1 - ga, ga, 1 - most)
    lean = 1.0 if ga >= 0.5 else 0.0
    known: dict[str, tuple[float, float, float]] = {
        "ea": (ga, 1 - ga, most),
        "delta": (0.0, 1 - 2 * ga, most - ga),
        "acceptance": (1.0, 0.0, lean),
        "tpr": (1.0, 0.0, lean),
        "tnr": (0.0, 1.0, 1 - lean),
        "balanced_accuracy": _HALF,
        "auroc": _HALF,
        "kappa": _ZERO,
        "mcc": _ZERO,
        "brier": error,
        "ece": error,
    }
    return known.get(metric, (math.nan,) * 3)


def _accepted(balanced: pd.DataFrame, rung: str) -> tuple[Estimate, int]:
    """How often this rung is accepted; for gold, over the widest set of questions it is paired."""
    if rung != "gold":
        found = _find(balanced, "accepts_wrong", rung=rung)
        return found, found.n
    gold = [_find(balanced, "accepts_right", rung=other) for other in LADDER if other != "gold"]
    widest = max(gold, key=lambda estimate: estimate.n)
    return widest, widest.n


def _find(frame: pd.DataFrame, metric: str, **names: str) -> Estimate:
    if "scope" in frame and "scope" not in names:
        names = {"scope": "all", **names}
    return T.find(frame, metric=metric, **names)


def _adjusted(controls: pd.DataFrame, control: str, metric: str) -> float:
    chosen = controls[(controls["control"] == control) & (controls["metric"] == metric)]
    return float(chosen["p_adjusted"].iloc[0]) if len(chosen) else math.nan


def _names(frame: pd.DataFrame, column: str) -> list[str]:
    return [str(name) for name in dict.fromkeys(frame[column])]


def _group(label: str) -> Row:
    return Row(label, group=True)
