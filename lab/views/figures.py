"""Plotly figures for notebooks, from the same summaries as the report.

Every figure has a title that states what is seen, units on its axes, and n and interval in the
caption below it. Layers run upwards on the vertical axis in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from lab.errors import LabError
from lab.instruments.statistics import Estimate
from lab.instruments.summaries import behaviour, patching, reading
from lab.instruments.summaries import tables as T
from lab.instruments.summaries.sentences import reading_finding
from lab.views import palette
from lab.views.content.behaviour import ladder_data
from lab.views.format import count, decimal, interval, percent, points, q_value, ratio
from lab.views.reading_payload import without_absent_spans
from lab.views.wording import CONTRASTS, ENDS, NORMS

if TYPE_CHECKING:
    import plotly.graph_objects as go

What = Literal["generator", "evaluator", "difference"]

ROLES = ("generator", "evaluator")
REGIONS = {**palette.SPAN_LABELS, **palette.MARK_LABELS}
INTERVALS = "Intervals: 95 %, bootstrap over examples or passages."
GREY = palette.PAGE["dim"].light


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
                "customdata": [_span_words(row, span, norm) for row in _records(rows)],
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
    return _finished(figure, _span_title(ds, normalisation), f"{norm['note']} n = {n}. {INTERVALS}")


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
    texts = [_head_words(row, region, share) for row in _records(frame)]
    heat = _heatmap(
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
    return _finished(_head_axes(figure), _head_title(frame, what, region, share), caption)


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
        figure.add_trace(_dots(rows, name, colour), row=1, col=column)
    figure.add_vline(0.5, line_dash="dash", line_color=GREY, row=1, col=1)
    figure.update_xaxes(range=[-0.02, 1.02])
    figure.update_xaxes(title="AUROC (0.5 is chance)", col=1)
    figure.update_xaxes(title="share", col=2)
    labels = [row["label"] for row in rows]
    figure.update_yaxes(autorange="reversed", categoryorder="array", categoryarray=labels)
    smallest, largest = min(row["n"] for row in rows), max(row["n"] for row in rows)
    n = str(largest) if smallest == largest else f"{smallest} to {largest}"
    caption = f"n = {n} questions. {INTERVALS}"
    return _finished(figure, _ladder_title(rows), caption)


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
    texts = [_patch_words(row) for row in _records(frame)]
    figure = go.Figure(_heatmap(go, frame, "value", texts, None, ("less", "more")))
    first = frame.iloc[0]
    best = frame.iloc[int(np.nanargmax(frame["value"].abs().to_numpy(dtype=float)))]
    title = (
        f"{ENDS[contrast, direction].capitalize()}: head {best['layer']}.{best['head']} moves the "
        f"decision most, R = {decimal(best['value'])}"
    )
    caption = (
        f"Mean restoration R, {CONTRASTS[contrast][0]}. n = {int(frame['n'].max())}, "
        f"{int(first['too_close'])} left out for a gap below {patching.MIN_GAP} logits, "
        f"{int(first['missing'])} without both runs. {INTERVALS}"
    )
    return _finished(_head_axes(figure), title, caption)


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
    _head_axes(figure).update_yaxes(title="", selector=lambda axis: axis.anchor != "x")
    return _finished(figure, title, f"{caption}{scale}".strip())


# --- parts --------------------------------------------------------------------------------------


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _measured(ds: xr.Dataset) -> None:
    if not reading.measured(ds):
        raise LabError("This study holds no attention: run the reading instrument first.")


def _heatmap(
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


def _array_map(
    name: str, values: Float[np.ndarray, "layer head"], signed: bool, top: float, form: Any
) -> Any:
    import plotly.graph_objects as go

    layers, heads = np.indices(values.shape)
    frame = pd.DataFrame({"layer": layers.ravel(), "head": heads.ravel(), "value": values.ravel()})
    words = [
        f"Layer {row['layer']}, head {row['head']}: {form(row['value'])} ({name})"
        for row in _records(frame)
    ]
    colour = palette.ROLES.get(name, palette.SPANS["context"]).light
    heat = _heatmap(go, frame, "value", words, None if signed else colour, ("less", "more"))
    heat.zmin, heat.zmax = (-top if signed else 0), top
    return heat


def _dots(rows: list[dict[str, Any]], name: str, colour: str) -> Any:
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


def _head_axes(figure: Any) -> Any:
    figure.update_xaxes(title="head", dtick=1, showgrid=False, zeroline=False)
    figure.update_yaxes(title="layer", showgrid=False, zeroline=False)
    return figure


def _finished(figure: Any, title: str, caption: str) -> Any:
    """The figure with its title, its caption below, and a quiet ground."""
    figure.update_layout(
        template="plotly_white",
        title={"text": title, "x": 0, "xref": "paper", "font": {"size": 18}},
        font={"color": palette.PAGE["ink"].light},
        legend={"traceorder": "normal"},
        margin={"l": 60, "r": 20, "t": 80, "b": 110},
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


def _wrapped(text: str, width: int = 120) -> list[str]:
    import textwrap

    return textwrap.wrap(text, width)


# --- words --------------------------------------------------------------------------------------


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
    return reading_finding(found, T.independent(ds))


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
    return (
        f"Layer {row['layer']}, head {row['head']}: R = {decimal(estimate.value)} "
        f"{interval(estimate, decimal)}, corrected p {q_value(row['p_adjusted'])};<br>"
        f"the first choice changes in {percent(row['flip_rate'])} of the runs"
    )
