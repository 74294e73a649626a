"""What each view of an explorer shows, as a plotly figure, and figures as files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
import xarray as xr

from lab.errors import LabError
from lab.explorer.results import PatchResult
from lab.explorer.selection import ROLES, Selection
from lab.views import figures, palette
from lab.views.figures.attention import What
from lab.views.figures.parts import finished
from lab.views.format import percent

if TYPE_CHECKING:
    import plotly.graph_objects as go

DRAWN = ("heads", "flow", "reader", "bench")
"""The views that have a figure."""

PICTURES = (".svg", ".png", ".pdf", ".jpg", ".jpeg", ".webp")


def heads(dataset: xr.Dataset, selection: Selection) -> go.Figure:
    """The head map: a measure of attention on the passage, or restoration by patching."""
    if "/" in selection.quantity:
        return figures.restoration_map(dataset, *selection.quantity.split("/"))
    what = cast(What, selection.quantity)
    return figures.head_map(dataset, what, normalisation=selection.norm)


def reader(frame: pd.DataFrame, selection: Selection) -> go.Figure:
    """Attention of the decision on every token of both prompts, coloured by span.

    ``frame`` is that of `lab.explorer.frames.reader`.
    """
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    figure = make_subplots(
        len(ROLES), 1, shared_yaxes="all", subplot_titles=ROLES, vertical_spacing=0.18
    )
    seen: set[str] = set()
    for row, role in enumerate(ROLES, start=1):
        side = frame[frame["role"] == role]
        for span, part in side.groupby("span", sort=False):
            name = str(span)
            bar = go.Bar(
                x=part["position"],
                y=part["attention"],
                name=palette.SPAN_LABELS.get(name, name),
                marker_color=palette.SPANS[name].light,
                legendgroup=name,
                showlegend=name not in seen,
                customdata=[_token_words(record) for record in part.to_dict("records")],
                hovertemplate="%{customdata}<extra></extra>",
            )
            seen.add(name)
            figure.add_trace(bar, row=row, col=1)
    figure.update_xaxes(title="token", row=len(ROLES), col=1)
    figure.update_yaxes(title="share of attention", tickformat=".0%")
    figure.update_layout(bargap=0)
    caption = (
        f"Example {_plain(selection.example)}, n = 1, so without intervals. Attention of the "
        "decision, stored for each head in steps of 1/255."
    )
    return finished(figure, _reader_title(frame, selection), caption)


def bench(result: PatchResult) -> go.Figure:
    """What a patch changed: a map for heads, curves for layers, two bars for a set."""
    import plotly.graph_objects as go

    caption = (
        f"{result.words} Example {_plain(result.example)}, n = 1, so without intervals. Effect: "
        f"{_plain(result.measure)}. {result.note}"
    )
    if result.what == "heads":
        return figures.layer_head_maps({"R": result.restoration}, result.title, caption, "number")
    if result.what == "layers":
        curves = result.to_dataframe().groupby("site", sort=False)
        lines = [
            go.Scatter(x=part["restoration"], y=part["layer"], name=str(site), mode="lines+markers")
            for site, part in curves
        ]
        figure = go.Figure(lines).update_xaxes(title="restoration R").update_yaxes(title="layer")
        return finished(figure, result.title, caption)
    bars = {"source run": result.source, "before": result.target, "after": float(result.patched)}
    figure = go.Figure(go.Bar(x=list(bars.values()), y=list(bars), orientation="h"))
    figure.update_xaxes(title="effect (logits)").update_yaxes(autorange="reversed")
    return finished(figure, result.title, caption)


def save(figure: go.Figure, path: str | os.PathLike[str]) -> Path:
    """The path of a figure, saved as ``.html`` (alive, in one file) or as a picture.

    Raises:
        LabError: the ending is unknown, the file cannot be written, or a picture is asked for and
            kaleido, or the browser that it needs, is not there.
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in (".html", *PICTURES):
        raise LabError(
            f"A figure cannot be saved as {target.name!r}: end the name with .html or one of "
            f"{', '.join(PICTURES)}."
        )
    try:
        if ending == ".html":
            figure.write_html(target, include_plotlyjs=True)
        else:
            figure.write_image(target)
    except OSError as error:
        raise LabError(f"{target} cannot be written: {error.strerror or error}.") from error
    except (ImportError, ValueError, RuntimeError) as error:
        first = str(error).strip().splitlines()
        raise LabError(
            f"Plotly cannot make a picture here ({first[0] if first else type(error).__name__}). "
            "Install kaleido (pip install 'kaleido>=1') and Chrome or Chromium, or save the figure "
            f"as {target.with_suffix('.html').name}, which needs neither."
        ) from error
    return target


def _token_words(record: Any) -> str:
    return (
        f"“{_plain(record['token'][:80])}”, token {record['position']}, "
        f"{palette.SPAN_LABELS.get(record['span'], record['span'])}: {percent(record['attention'])}"
    )


def _reader_title(frame: pd.DataFrame, selection: Selection) -> str:
    whose = {
        "head": f"Head {selection.layer}.{selection.head}",
        "set": f"{len(selection.heads)} heads together",
        "layer": f"Layer {selection.layer}, mean of its heads,",
        "all": "All heads, mean,",
    }[selection.scope]
    shares = frame[frame["span"] == "context"].groupby("role")["attention"].sum()
    answering, judging = (float(shares.get(role, np.nan)) for role in ROLES)
    verb = "put" if selection.scope == "set" else "puts"
    return (
        f"{whose} {verb} {percent(answering)} of its attention on the passage when answering, "
        f"{percent(judging)} when judging"
    )


def _plain(text: str) -> str:
    """Text from data without what plotly would read as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;")
