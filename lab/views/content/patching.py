"""What moves the decision when it is copied from one run into the other: table and figure data."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from lab.instruments.statistics import Estimate
from lab.instruments.summaries import patching
from lab.views.format import MISSING, count, decimal, percent, q_value
from lab.views.packing import rounded
from lab.views.table import Cell, Row, Table, cell, table, words
from lab.views.wording import CONTRASTS, ENDS, NOT_TESTED, TESTED

SITES = ("resid", "mlp")
CURVE = {"value": "value", "low": "low", "high": "high", "flip": "flip_rate"}


def patched_table(top: pd.DataFrame, k: int = 5) -> Table:
    """The ``k`` heads with the largest mean R in every contrast and direction."""
    rows: list[Row] = []
    first = top[top["rank"] <= k]
    for contrast, direction in ENDS:
        frame = first[(first["contrast"] == contrast) & (first["direction"] == direction)]
        if frame.empty:
            continue
        rows.append(Row(f"{CONTRASTS[contrast][0]}, {ENDS[contrast, direction]}", group=True))
        for record in frame.to_dict("records"):
            restored = Estimate(record["value"], record["low"], record["high"], int(record["n"]))
            rows.append(
                Row(
                    "",
                    (
                        cell(restored, decimal, True),
                        Cell(decimal(record["ratio_of_means"])),
                        Cell(f"{decimal(record['shift'])} logits"),
                        Cell(q_value(record["p_adjusted"])),
                        Cell(percent(record["flip_rate"])),
                    ),
                    head=f"{int(record['layer'])}.{int(record['head'])}",
                )
            )
    columns = ("head", "mean R", "R of means", "mean shift", "corrected p", "first choice changes")
    return table("Heads with the largest restoration", columns, rows)


def window_table(windows: pd.DataFrame, layers: pd.DataFrame) -> Table:
    """In which layers the residual stream comes to carry each contrast that was measured.

    ``layers`` are the curves that the windows are of.
    """
    rows = []
    measured = layers[layers["value"].notna()]
    known = set(zip(measured["contrast"], measured["direction"], strict=True))
    for record in windows.to_dict("records"):
        contrast, direction = record["contrast"], record["direction"]
        if (contrast, direction) not in known:
            continue
        rises, flips = record["first"] >= 0, record["half_flip_layer"] >= 0
        rows.append(
            Row(
                CONTRASTS[contrast][0],
                (
                    words(ENDS[contrast, direction]),
                    Cell(_layers(record["first"], record["last"]) if rises else "it does not rise"),
                    Cell(percent(record["held"]) if rises else MISSING),
                    Cell(f"layer {record['half_flip_layer']}" if flips else "none"),
                ),
            )
        )
    columns = (
        "contrast",
        "direction",
        "layers in which R rises most",
        "share of all rises in them",
        "first layer to change half of the first choices",
    )
    return table("Layers in which the residual stream comes to carry the difference", columns, rows)


def _layers(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}\u00a0to\u00a0{last}"


def patching_data(heads: pd.DataFrame, layers: pd.DataFrame) -> list[dict[str, Any]]:
    """Each contrast and direction as the figure draws it."""
    data = []
    for contrast, direction in ENDS:
        frame = heads[(heads["contrast"] == contrast) & (heads["direction"] == direction)]
        frame = frame.sort_values(["layer", "head"])
        if frame.empty:
            continue
        n = int(frame["n"].max())
        if not n or math.isnan(frame["value"].abs().max()):
            continue
        curves = layers[(layers["contrast"] == contrast) & (layers["direction"] == direction)]
        first = frame.iloc[0]
        tested = contrast != patching.UNTESTED
        q = {"q": rounded(frame["p_adjusted"])} if tested else {}
        data.append(
            {
                "key": f"{contrast}/{direction}",
                "contrast": contrast,
                "contrast_label": CONTRASTS[contrast][0],
                "direction": direction,
                "direction_label": ENDS[contrast, direction],
                "note": f"{CONTRASTS[contrast][1]} {TESTED if tested else NOT_TESTED}",
                "used": _used(n, int(first["too_close"]), int(first["missing"])),
                "head": {**_columns(frame), **q},
                "layers": {
                    site: _columns(curves[curves["site"] == site].sort_values("layer"))
                    for site in SITES
                },
            }
        )
    return data


def _columns(frame: pd.DataFrame) -> dict[str, list[float | None]]:
    return {name: rounded(frame[column]) for name, column in CURVE.items()}


def _used(n: int, too_close: int, missing: int) -> str:
    left_out = [
        f"{count(too_close, 'example')} left out as the two clean runs differ by less than "
        f"{patching.MIN_GAP} logits" if too_close else "",
        f"{missing} without both runs" if missing else "",
    ]  # fmt: skip
    return "; ".join([f"n = {n}", *(part for part in left_out if part)]) + "."
