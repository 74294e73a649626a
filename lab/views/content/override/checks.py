"""Checks around the heads of a contest: unrelated behaviour, cut attention, texts, other splits."""

from __future__ import annotations

from typing import Any

import pandas as pd

from lab.views.content.override import rows as R
from lab.views.content.override.rows import Record, Tables
from lab.views.content.override.words import MEASURES, RUNS, SPANS
from lab.views.format import decimal, percent
from lab.views.table import Cell, Row, Table, cell, table, words

MOST_TEXTS = 8

MOST_HEADS = 20
"""So many heads are listed by splits, and all found ones."""


def elsewhere_table(tables: Tables) -> Table:
    """What the heads do to prompts and texts that have nothing to do with the conflict."""
    rows = []
    frame = tables.get("elsewhere")
    for record in R.records(frame):
        title, small = MEASURES.get(str(record["measure"]), (str(record["measure"]), ""))
        label = f"{record['prompts']}: {title} ({small})"
        rows.append(Row(label, (R.against(record, str(record["measure"])),)))
    frame = tables.get("text")
    for record in R.records(frame):
        title, small = MEASURES["rise"]
        label = f"{title} ({small}; {decimal(float(record['clean']))} with all heads)"
        rows.append(Row(label, (R.against(record, "rise"),)))
    return table("Behaviour that has nothing to do with it", ("", "all found heads off"), rows)


def knockout_table(frame: pd.DataFrame | None, flips: str) -> Table:
    """For each run and pair of spans the window of layers in which the cut does most.

    ``flips`` is the measure by which the contest counts them.
    """
    rows = []
    for (run, queries, keys), part in R.grouped(frame, ["run", "queries", "keys"]):
        if part["value"].isna().all():
            continue
        r = R.records(part.loc[[part["value"].abs().idxmax()]])[0]
        rows.append(
            Row(
                f"{RUNS.get(str(run), run)}: the {SPANS.get(queries, queries)} "
                f"cannot look at the {SPANS.get(keys, keys)}",
                (
                    Cell(f"{int(r['first'])} to {int(r['last'])}"),
                    cell(R.estimate(r), decimal, with_n=True),
                    _share_of(r, flips),
                    _share_of(r, "damage"),
                ),
            )
        )
    columns = (
        "",
        "layers",
        "shift towards the other answer, logits",
        *(MEASURES[measure][0] for measure in (flips, "damage")),
    )
    return table("Attention cut in windows of layers, the strongest window each", columns, rows)


def _share_of(record: Record, measure: str) -> Cell:
    """A share of the pairs that can show it, and how many these are."""
    n = R.whole(record["n_two_token" if measure == "two_token" else "n_asked"])
    return Cell(percent(float(record[measure])), f"n\u00a0=\u00a0{n}" if n else "")


def texts_table(frame: pd.DataFrame | None) -> Table:
    """Some texts, with all heads on and with the found ones off; those that change come first."""
    rows = []
    if frame is not None:
        same = frame["before"] == frame["after"]
        for r in R.records(frame.loc[same.sort_values(kind="stable").index[:MOST_TEXTS]]):
            texts = (words(_cut(r["before"])), words(_cut(r["after"])))
            rows.append(Row(_cut(r["question"]), (words(str(r["run"])), *texts)))
    return table("Texts with all heads on, and with the found ones off",
                 ("question", "run", "all heads on", "the heads off"), rows)  # fmt: skip


def splits_table(frame: pd.DataFrame | None) -> Table:
    """In how many splits heads pass the test: every found head, and of the others the foremost."""
    rows = []
    if frame is not None:
        order = frame.sort_values(["splits", "layer", "head"], ascending=[False, True, True])
        found = R.marked(order["chosen"])
        others = max(0, MOST_HEADS - int(found.sum()))
        for r in R.records(order[found | ((~found).cumsum() <= others)]):
            passed = f"{int(r['splits'])} of {int(r['of'])}"
            marks = ("yes" if R.true(r[name]) else "no" for name in ("chosen", "chosen_swapped"))
            rows.append(Row(R.head(r), (Cell(passed), *(words(mark) for mark in marks))))
    columns = (
        "head", "splits in which it passes the test", "found here", "found on the other half",
    )  # fmt: skip
    return table("Heads that pass the test on other splits of the same pairs", columns, rows)


def _cut(text: Any, most: int = 300) -> str:
    said = str(text)
    return said if len(said) <= most else f"{said[:most]}…"
