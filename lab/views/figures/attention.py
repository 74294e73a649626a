"""Figures of attention: layer by layer, head by head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from lab.errors import LabError
from lab.instruments.statistics import Estimate
from lab.instruments.summaries import reading
from lab.instruments.summaries import tables as T
from lab.instruments.summaries.facts import attention_units
from lab.instruments.summaries.sentences import reading_finding
from lab.views import palette
from lab.views.figures.parts import INTERVALS, finished, head_axes, heatmap, records
from lab.views.format import count, decimal, interval, percent, points, q_value, ratio
from lab.views.reading_payload import without_absent_spans
from lab.views.wording import NORMS

if TYPE_CHECKING:
    import plotly.graph_objects as go

What = Literal["generator", "evaluator", "difference"]

ROLES = ("generator", "evaluator")
REGIONS = {**palette.SPAN_LABELS, **palette.MARK_LABELS}


def span_mass(ds: xr.Dataset, normalisation: str = "raw") -> go.Figure:
    """Where the decision looks in each role, layer by layer, as stacked bars (lines per token).

    ``normalisation`` is one of ``raw``, ``sink_excluded``, ``enrichment``, ``norm_weighted``.
    """
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    _measured(ds)
    ds = without_absent_spans(ds)
    frame = reading.by_layer(ds, normalisation)
    norm = NORMS[normalisation]
    share = norm["unit"] == "share"
    figure = make_subplots(1, 2, shared_yaxes=True, subplot_titles=ROLES, horizontal_spacing=0.05)
    for column, role in enumerate(ROLES, start=1):
        for span in T.coordinate(ds, "span"):
            rows = frame[(frame["role"] == role) & (frame["region"] == span)].sort_values("layer")
            style = {
                # A missing bar would let the next one start at zero again.
                "x": rows["value"].fillna(0) if share else rows["value"],
                "y": rows["layer"],
                "name": palette.SPAN_LABELS[span],
                "legendgroup": span,
                "showlegend": column == 1,
                "customdata": [_span_words(row, span, norm) for row in records(rows)],
                "hovertemplate": "%{customdata}<extra></extra>",
            }
            colour = palette.SPANS[span].light
            trace = (
                go.Bar(**style, orientation="h", marker_color=colour)
                if share
                else go.Scatter(**style, mode="lines", line_color=colour)
            )
            figure.add_trace(trace, row=1, col=column)
    label = "share of attention" if share else "times an even share (log scale)"
    figure.update_xaxes(
        title=label,
        **({"tickformat": ".0%", "range": [0, 1]} if share else {"type": "log"}),
    )
    figure.update_yaxes(title="layer", col=1)
    figure.update_layout(barmode="stack", bargap=0.08)
    n = ds.sizes["example"]
    return finished(figure, _span_title(ds, normalisation), f"{norm['note']} n = {n}. {INTERVALS}")


def head_map(
    ds: xr.Dataset,
    what: What = "difference",
    region: str = "context",
    normalisation: str = "raw",
) -> go.Figure:
    """A map of layers and heads: attention on a region in one role, or the difference of both.

    ``region`` is a span or a mark; ``difference`` is generator minus evaluator, on a scale that is
    symmetric about zero.
    """
    import plotly.graph_objects as go

    _measured(ds)
    if what not in (*ROLES, "difference"):
        raise LabError(
            f"Unknown map {what!r}: use 'generator', 'evaluator' or 'difference' for what."
        )
    if region not in REGIONS:
        raise LabError(f"Unknown region {region!r}: use one of {', '.join(REGIONS)}.")
    frame = reading.head_differences(ds, region, normalisation)
    share = NORMS[normalisation]["unit"] == "share"
    column = "value" if what == "difference" else what
    texts = [_head_words(row, region, share) for row in records(frame)]
    heat = heatmap(
        go, frame, column, texts, None if what == "difference" else palette.ROLES[what].light
    )
    if share:
        heat.colorbar.tickformat = ".0%"
    figure = go.Figure(heat)
    n = int(frame["n"].max())
    caption = (
        f"Mean {NORMS[normalisation]['of']} on the {REGIONS[region]}, {_what(what)}. n = {n}. "
        f"{INTERVALS} Corrected p: sign-flip test, Benjamini-Hochberg over heads."
    )
    return finished(head_axes(figure), _head_title(frame, what, region, share), caption)


def layer_head_maps(
    maps: Mapping[str, Float[np.ndarray, "layer head"]],
    title: str,
    caption: str = "",
    unit: Literal["share", "number"] = "share",
) -> go.Figure:
    """Maps of layers and heads side by side, from plain arrays, by what each is called.

    All share one scale: from zero in one colour (a role's own, where the map is called like the
    role), or, where any value is negative, symmetric about zero. For one example by hand; the
    other figures take a study.
    """
    from plotly.subplots import make_subplots

    arrays = {name: np.asarray(values, dtype=float) for name, values in maps.items()}
    if not arrays or any(values.ndim != 2 for values in arrays.values()):
        raise LabError("Give at least one array with two axes, layers and heads.")
    top = max(float(np.nanmax(np.abs(values))) for values in arrays.values()) or 1.0
    signed = any(float(np.nanmin(values)) < 0 for values in arrays.values())
    form = percent if unit == "share" else decimal
    figure = make_subplots(
        1, len(arrays), shared_yaxes=True, subplot_titles=list(arrays), horizontal_spacing=0.04
    )
    for column, (name, values) in enumerate(arrays.items(), start=1):
        heat = _array_map(name, values, signed, top, form)
        heat.showscale = column == len(arrays) and (signed or len(arrays) == 1)
        heat.colorbar.tickformat = ".0%" if unit == "share" else ""
        figure.add_trace(heat, row=1, col=column)
    low = form(-top) if signed else form(0)
    scale = f" One scale: {low} to {form(top)} (full colour)." if len(arrays) > 1 else ""
    head_axes(figure).update_yaxes(title="", selector=lambda axis: axis.anchor != "x")
    return finished(figure, title, f"{caption}{scale}".strip())


def _measured(ds: xr.Dataset) -> None:
    if not reading.measured(ds):
        raise LabError("This study holds no attention: run the reading instrument first.")


def _array_map(
    name: str, values: Float[np.ndarray, "layer head"], signed: bool, top: float, form: Any
) -> Any:
    import plotly.graph_objects as go

    layers, heads = np.indices(values.shape)
    frame = pd.DataFrame({"layer": layers.ravel(), "head": heads.ravel(), "value": values.ravel()})
    words = [
        f"Layer {row['layer']}, head {row['head']}: {form(row['value'])} ({name})"
        for row in records(frame)
    ]
    colour = palette.ROLES.get(name, palette.SPANS["context"]).light
    heat = heatmap(go, frame, "value", words, None if signed else colour, ("less", "more"))
    heat.zmin, heat.zmax = (-top if signed else 0), top
    return heat


def _span_words(row: dict[str, Any], span: str, norm: dict[str, str]) -> str:
    form = percent if norm["unit"] == "share" else ratio
    estimate = Estimate(row["value"], row["low"], row["high"], int(row["n"]))
    return (
        f"Layer {row['layer']}, {row['role']}: {form(estimate.value)} {interval(estimate, form)} "
        f"on the {palette.SPAN_LABELS[span]}"
    )


def _span_title(ds: xr.Dataset, normalisation: str) -> str:
    found = T.find(
        reading.ratios(ds),
        numerator="generator",
        denominator="evaluator",
        region="context",
        normalisation=normalisation,
        aggregate="mean",
    )
    return reading_finding(found, attention_units(ds, "generator", "evaluator"))


def _what(what: str) -> str:
    return {
        "generator": "when answering",
        "evaluator": "when judging",
        "difference": "when answering minus when judging",
    }[what]


def _head_words(row: dict[str, Any], region: str, share: bool) -> str:
    form = percent if share else ratio
    estimate = Estimate(row["value"], row["low"], row["high"], int(row["n"]))
    of = "of its attention" if share else "an even share"
    difference = (
        f"{points(estimate.value)} points {interval(estimate, points)}"
        if share
        else f"{decimal(estimate.value)} {interval(estimate, decimal)}"
    )
    return (
        f"Layer {row['layer']}, head {row['head']}: {form(row['generator'])} {of} on the "
        f"{REGIONS[region]} when answering,<br>{form(row['evaluator'])} when judging; difference "
        f"{difference}, corrected p {q_value(row['p_adjusted'])}"
    )


def _head_title(frame: pd.DataFrame, what: str, region: str, share: bool) -> str:
    name = REGIONS[region]
    if what == "difference":
        clear = frame[frame["p_adjusted"] <= 0.05]
        less, more = int((clear["value"] > 0).sum()), int((clear["value"] < 0).sum())
        return (
            f"Of {count(len(frame), 'head')}, {less} look at the {name} less when judging, "
            f"{more} more"
        )
    values = frame[what].to_numpy(dtype=float)
    if not np.isfinite(values).any():
        return f"The {name} is not in the prompt {_what(what)}"
    best = frame.iloc[int(np.nanargmax(values))]
    form = percent if share else ratio
    return (
        f"Head {best['layer']}.{best['head']} looks at the {name} most {_what(what)}: "
        f"{form(best[what])}"
    )
