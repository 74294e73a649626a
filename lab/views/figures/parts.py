"""What all figures share: maps, dots with intervals, ground, title and caption."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd

from lab.instruments.statistics import Estimate
from lab.views import palette
from lab.views.format import decimal, interval

INTERVALS = "Intervals: 95 %, bootstrap over examples or passages."
GREY = palette.PAGE["dim"].light


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def heatmap(
    go: Any,
    frame: pd.DataFrame,
    column: str,
    texts: list[str],
    colour: str | None,
    signed: tuple[str, str] = ("evaluator", "generator"),
) -> Any:
    """A heatmap with layers upwards; one colour from zero, or two about zero."""
    wide = frame.pivot(index="layer", columns="head", values=column).sort_index()
    words = frame.assign(text=texts).pivot(index="layer", columns="head", values="text")
    values = wide.to_numpy(dtype=float)
    top = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 1.0
    tones = {**palette.ROLES, **palette.PAGE}
    scale = (
        [[0, "#ffffff"], [1, colour]]
        if colour
        else [[0, tones[signed[0]].light], [0.5, "#ffffff"], [1, tones[signed[1]].light]]
    )
    return go.Heatmap(
        z=values,
        x=wide.columns,
        y=wide.index,
        colorscale=scale,
        zmin=0 if colour else -top,
        zmax=top or 1.0,
        xgap=1,
        ygap=1,
        text=words.sort_index().to_numpy(),
        hovertemplate="%{text}<extra></extra>",
    )


def dots(rows: list[dict[str, Any]], name: str, colour: str) -> Any:
    import plotly.graph_objects as go

    known = [(row["label"], row[name], row["n"]) for row in rows if row[name]]
    ends = [Estimate(e["value"], e["low"], e["high"], n) for _, e, n in known]
    return go.Scatter(
        x=[e.value for e in ends],
        y=[label for label, _, _ in known],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [e.high - e.value for e in ends],
            "arrayminus": [e.value - e.low for e in ends],
        },
        mode="markers",
        marker={"color": colour, "size": 10},
        showlegend=False,
        customdata=[
            f"{label}: {decimal(e.value)} {interval(e, decimal)}, n = {e.n}"
            for (label, _, _), e in zip(known, ends, strict=True)
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )


def head_axes(figure: Any) -> Any:
    figure.update_xaxes(title="head", dtick=1, showgrid=False, zeroline=False)
    figure.update_yaxes(title="layer", showgrid=False, zeroline=False)
    return figure


def finished(figure: Any, title: str, caption: str) -> Any:
    """The figure with its title, its caption below, and a quiet ground."""
    lines = _wrapped(title, 72)
    figure.update_layout(
        template="plotly_white",
        title={"text": "<br>".join(lines), "x": 0, "xref": "paper", "font": {"size": 18}},
        font={"color": palette.PAGE["ink"].light},
        legend={"traceorder": "normal"},
        margin={"l": 60, "r": 20, "t": 56 + 24 * len(lines), "b": 110},
        height=560,
    )
    figure.add_annotation(
        text="<br>".join(_wrapped(caption)),
        xref="paper",
        yref="paper",
        x=0,
        y=-0.16,
        xanchor="left",
        yanchor="top",
        align="left",
        showarrow=False,
        font={"size": 12, "color": GREY},
    )
    return figure


def _wrapped(text: str, width: int = 104) -> list[str]:
    return textwrap.wrap(text, width)
