"""Plotly figures: what they show, on which axes, and what they say."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from lab.errors import LabError
from lab.instruments.summaries import patching, reading
from lab.views.figures import candidate_ladder, head_map, restoration_map, span_mass


@pytest.fixture(scope="module")
def ds(study):
    return study[0]


def shown_spans(ds) -> int:
    return int((ds["span_tokens"] > 0).any(["example", "role"]).sum())


def caption(figure) -> str:
    return figure.layout.annotations[-1].text.replace("<br>", " ")


@pytest.mark.parametrize("normalisation", reading.NORMALISATIONS)
def test_span_mass_shows_both_roles_with_layers_upwards(ds, normalisation):
    figure = span_mass(ds, normalisation)
    assert len(figure.data) == 2 * shown_spans(ds)
    assert figure.layout.yaxis.title.text == "layer"
    assert list(figure.data[0].y) == list(range(5))
    assert "n = 12" in caption(figure) and "95 %" in caption(figure)
    assert "attention" in figure.layout.title.text


def test_the_legend_lists_demonstrations_only_where_prompts_have_them(ds):
    def names(dataset) -> set[str]:
        return {trace.name for trace in span_mass(dataset).data}

    demonstrated = ds.copy(deep=True)
    demonstrated["span_tokens"].loc[{"span": "demonstrations"}] = 400
    assert "demonstrations" not in names(ds)
    assert names(demonstrated) == names(ds) | {"demonstrations"}


def test_stacked_bars_add_up_to_the_whole(ds):
    figure = span_mass(ds)
    bars = figure.data[: shown_spans(ds)]
    total = np.sum([np.asarray(bar.x, dtype=float) for bar in bars], axis=0)
    assert total == pytest.approx(np.ones(5))


def test_the_difference_map_is_symmetric_about_zero_and_equals_the_summary(ds):
    heat = head_map(ds).data[0]
    assert heat.zmin == -heat.zmax
    frame = reading.head_differences(ds)
    expected = frame.pivot(index="layer", columns="head", values="value").to_numpy()
    assert np.asarray(heat.z, dtype=float) == pytest.approx(expected)


def test_a_cell_says_in_words_what_it_means(ds):
    text = head_map(ds).data[0].text[3][2]
    assert text.startswith("Layer 3, head 2: ")
    assert "when answering" in text and "when judging" in text and "points" in text


@pytest.mark.parametrize("what", ["generator", "evaluator"])
def test_a_role_map_starts_at_zero(ds, what):
    figure = head_map(ds, what, region="evidence")
    assert figure.data[0].zmin == 0
    assert "evidence" in figure.layout.title.text


def test_the_ladder_has_a_chance_line_and_intervals(ds):
    figure = candidate_ladder(ds)
    assert figure.layout.shapes[0].x0 == 0.5
    assert figure.layout.yaxis.categoryarray[0] == "the gold answer"
    auroc = figure.data[0]
    assert "the gold answer" not in auroc.y
    assert all(gap >= 0 for gap in auroc.error_x.array if gap == gap)
    assert "questions" in caption(figure)


def test_the_restoration_map_names_the_strongest_head(ds):
    frame = patching.heads(ds)
    frame = frame[(frame["contrast"] == "passage") & (frame["direction"] == "b_into_a")]
    best = frame.loc[frame["value"].abs().idxmax()]
    figure = restoration_map(ds, "passage", "b_into_a")
    assert f"head {best['layer']}.{best['head']} " in figure.layout.title.text
    assert "left out" in caption(figure)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ds: head_map(ds, "both"), "Unknown map 'both'"),
        (lambda ds: head_map(ds, region="passages"), "Unknown region 'passages'"),
        (lambda ds: span_mass(ds, "log"), "Unknown normalisation 'log'"),
        (lambda ds: restoration_map(ds, "roles"), "Unknown patch 'roles'"),
        (lambda ds: span_mass(ds.drop_vars("mass")), "holds no attention"),
        (lambda ds: restoration_map(ds.drop_vars("patch_head")), "holds no patches"),
        (lambda ds: candidate_ladder(ds.drop_vars("log_odds")), "No candidates were judged"),
    ],
)
def test_what_cannot_be_drawn_is_said_clearly(ds, call, message):
    with pytest.raises(LabError, match=message):
        call(ds)


def test_the_views_load_without_torch_and_without_plotly():
    code = (
        "import sys, lab.views.report, lab.views.figures; "
        "print([m for m in ('torch', 'transformers', 'plotly') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
