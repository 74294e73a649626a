"""Figures of what training changes: differences from the untrained model, and learning curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from lab.errors import LabError
from lab.instruments.statistics import Estimate
from lab.instruments.summaries.transfer import TRANSFER_METRICS
from lab.views import palette
from lab.views.content.curves import curve_points, curve_size
from lab.views.content.trained import gap_of, run_label
from lab.views.content.transfer import reach
from lab.views.figures.parts import GREY, INTERVALS, dots, finished, records
from lab.views.format import decimal, interval, signed
from lab.views.wording import CURVES, TRANSFER

if TYPE_CHECKING:
    import plotly.graph_objects as go

COLUMNS = 3
DASHES = ("solid", "dash", "dot", "dashdot")


def transfer(matrix: pd.DataFrame, scope: str = "all", name: str = "all") -> go.Figure:
    """What training changes: differences from the first model, one panel a measure.

    ``matrix`` is the table of `lab.instruments.summaries.transfer.matrix`; ``scope`` and ``name``
    choose a group of questions in it.
    """
    from plotly.subplots import make_subplots

    frame = matrix[(matrix["scope"] == scope) & (matrix["name"] == name)]
    compared = frame[frame["difference"].notna()]
    if compared.empty:
        raise LabError(
            f"The matrix compares no models on {scope} {name!r}: give one with two models or more, "
            "and a group that is in it."
        )
    shown = [metric for metric in TRANSFER_METRICS if (compared["metric"] == metric).any()]
    figure = make_subplots(
        math.ceil(len(shown) / COLUMNS),
        COLUMNS,
        shared_yaxes=True,
        subplot_titles=[TRANSFER[metric][0] for metric in shown],
        horizontal_spacing=0.04,
        vertical_spacing=0.12,
    )
    runs = list(dict.fromkeys(compared["run"]))
    gaps = {(row["run"], row["metric"]): gap_of(row) for row in records(compared)}
    for i, (metric, run) in enumerate((m, r) for m in shown for r in runs):
        if (run, metric) in gaps:
            at = divmod(i // len(runs), COLUMNS)
            figure.add_trace(_dot(run, gaps[run, metric]), row=at[0] + 1, col=at[1] + 1)
    most = reach(list(gaps.values()))
    figure.update_xaxes(range=[-1.05 * most, 1.05 * most], zerolinecolor=GREY, zerolinewidth=1.5)
    labels = [run_label(run) for run in runs]
    figure.update_yaxes(autorange="reversed", categoryorder="array", categoryarray=labels)
    ns = [gap.n for gap in gaps.values()]
    n = f"{min(ns)} to {max(ns)}" if min(ns) < max(ns) else str(ns[0])
    reference = run_label(str(frame["run"].iloc[0]))
    caption = (
        f"Difference from “{reference}”, paired by question; lower is better for the Brier "
        f"score and the calibration error. n = {n}. {INTERVALS}"
    )
    finished(figure, _transfer_title(gaps), caption)
    return figure.update_layout(height=640)


def learning_curves(curve: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Answering and judging against training steps.

    ``curve`` is a list of points as training stores them: ``step``, ``questions`` and the measures
    of the page's learning curves.
    """
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    kept = curve_points(curve)
    names = [name for name in CURVES if any(name in values for _, values in kept)]
    if not names:
        raise LabError("There is no point with a step and a measure in this learning curve.")
    titles = ("answering", "judging")
    figure = make_subplots(1, 2, shared_yaxes=True, subplot_titles=titles, horizontal_spacing=0.06)
    judging = [name for name in names if name != "answers_exact"]
    for name in names:
        role = "evaluator" if name in judging else "generator"
        points = [(step, values[name]) for step, values in kept if name in values]
        figure.add_trace(
            go.Scatter(
                x=[step for step, _ in points],
                y=[value for _, value in points],
                name=CURVES[name],
                mode="lines+markers",
                line={
                    "color": palette.ROLES[role].light,
                    "dash": DASHES[judging.index(name)] if name in judging else "solid",
                },
                hovertemplate=f"{CURVES[name]}, step %{{x}}: %{{y:.2f}}<extra></extra>",
            ),
            row=1,
            col=1 + (name in judging),
        )
    figure.update_xaxes(title="step")
    figure.update_yaxes(range=[-0.02, 1.02])
    figure.update_yaxes(title="share, or area under the curve", col=1)
    caption = f"On questions that were not trained on. {curve_size(curve)}"
    return finished(figure, _curve_title(names[0], kept), caption)


def _dot(run: str, gap: Estimate) -> Any:
    ends = {"value": gap.value, "low": gap.low, "high": gap.high}
    tone = palette.RUNS.get(run, palette.PAGE["dim"])
    return dots([{"label": run_label(run), "of": ends, "n": gap.n}], "of", tone.light)


def _transfer_title(gaps: Mapping[tuple[str, str], Estimate]) -> str:
    clear = {at: gap for at, gap in gaps.items() if gap.excludes(0)}
    if not clear:
        return "No difference from the reference is shown"
    (run, metric), gap = max(clear.items(), key=lambda pair: abs(pair[1].value))
    return (
        f"Changes most: {TRANSFER[metric][0]}, {run_label(run)}, {signed(gap.value)} "
        f"{interval(gap, decimal)}"
    )


def _curve_title(name: str, kept: Sequence[tuple[int, Mapping[str, float]]]) -> str:
    known = [(step, values[name]) for step, values in kept if name in values]
    (start, first), (end, last) = known[0], known[-1]
    return (
        f"{CURVES[name].capitalize()}: {decimal(first)} at step {start:,}, {decimal(last)} at step "
        f"{end:,}"
    )
