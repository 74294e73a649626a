"""Figures of verdicts and of what patching restores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from lab.errors import LabError
from lab.instruments.statistics import Estimate
from lab.instruments.summaries import behaviour, patching
from lab.views import palette
from lab.views.content.behaviour import ladder_data
from lab.views.figures.parts import GREY, INTERVALS, dots, finished, head_axes, heatmap, records
from lab.views.format import decimal, interval, percent, q_value
from lab.views.wording import CONTRASTS, ENDS, NOT_TESTED, TESTED

if TYPE_CHECKING:
    import plotly.graph_objects as go


def candidate_ladder(ds: xr.Dataset) -> go.Figure:
    """How well the judge tells each kind of candidate from the gold answer, and what it accepts."""
    from plotly.subplots import make_subplots

    rows = ladder_data(behaviour.balanced(ds))
    if not rows:
        raise LabError(
            "No candidates were judged on answerable questions here, so there is no ladder to draw."
        )
    titles = ("told apart from the gold answer (AUROC)", "share accepted")
    figure = make_subplots(1, 2, shared_yaxes=True, subplot_titles=titles, horizontal_spacing=0.06)
    colours = (palette.ROLES["evaluator"].light, GREY)
    for column, (name, colour) in enumerate(zip(("auroc", "accept"), colours, strict=True), 1):
        figure.add_trace(dots(rows, name, colour), row=1, col=column)
    figure.add_vline(0.5, line_dash="dash", line_color=GREY, row=1, col=1)
    figure.update_xaxes(range=[-0.02, 1.02])
    figure.update_xaxes(title="AUROC (0.5 is chance)", col=1)
    figure.update_xaxes(title="share", col=2)
    labels = [row["label"] for row in rows]
    figure.update_yaxes(autorange="reversed", categoryorder="array", categoryarray=labels)
    smallest, largest = min(row["n"] for row in rows), max(row["n"] for row in rows)
    n = str(largest) if smallest == largest else f"{smallest} to {largest}"
    caption = f"n = {n} questions. {INTERVALS}"
    return finished(figure, _ladder_title(rows), caption)


def restoration_map(
    ds: xr.Dataset, contrast: str = "role", direction: str = "a_into_b"
) -> go.Figure:
    """What patching each head alone restores: R = 0 nothing, R = 1 all of the difference."""
    import plotly.graph_objects as go

    if (contrast, direction) not in ENDS:
        raise LabError(
            f"Unknown patch {contrast!r}, {direction!r}: contrasts are {', '.join(CONTRASTS)}, "
            "directions a_into_b and b_into_a."
        )
    frame = patching.heads(ds)
    frame = frame[(frame["contrast"] == contrast) & (frame["direction"] == direction)]
    if frame["value"].isna().all():
        raise LabError(f"This study holds no patches for the contrast {contrast!r}.")
    texts = [_patch_words(row) for row in records(frame)]
    figure = go.Figure(heatmap(go, frame, "value", texts, None, ("less", "more")))
    first = frame.iloc[0]
    best = frame.iloc[int(np.nanargmax(frame["value"].abs().to_numpy(dtype=float)))]
    title = (
        f"{ENDS[contrast, direction].capitalize()}: head {best['layer']}.{best['head']} moves the "
        f"decision most, R = {decimal(best['value'])}"
    )
    caption = (
        f"Mean restoration R, {CONTRASTS[contrast][0]}. n = {int(frame['n'].max())}, "
        f"{int(first['too_close'])} left out for a gap below {patching.MIN_GAP} logits, "
        f"{int(first['missing'])} without both runs. {INTERVALS} "
        f"{NOT_TESTED if contrast == patching.UNTESTED else TESTED}"
    )
    return finished(head_axes(figure), title, caption)


def _ladder_title(rows: list[dict[str, Any]]) -> str:
    ranked = [row for row in rows if row["auroc"] and not math.isnan(row["auroc"]["value"])]
    if not ranked:
        return "No rung has both right and wrong candidates"
    worst = min(ranked, key=lambda row: float(row["auroc"]["value"]))
    best = max(ranked, key=lambda row: float(row["auroc"]["value"]))
    return (
        f"Easiest to tell from the gold answer: {best['label']} "
        f"({decimal(best['auroc']['value'])}); hardest: {worst['label']} "
        f"({decimal(worst['auroc']['value'])})"
    )


def _patch_words(row: dict[str, Any]) -> str:
    estimate = Estimate(row["value"], row["low"], row["high"], int(row["n"]))
    p = row["p_adjusted"]
    tested = "" if math.isnan(p) else f", corrected p {q_value(p)}"
    return (
        f"Layer {row['layer']}, head {row['head']}: R = {decimal(estimate.value)} "
        f"{interval(estimate, decimal)}{tested};<br>"
        f"the first choice changes in {percent(row['flip_rate'])} of the runs"
    )
