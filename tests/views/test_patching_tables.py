"""What the tables of patching say in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from synthetic_study import synthetic_study

from lab.instruments.summaries import patching
from lab.views.content.patching import patched_table, patching_data, window_table
from lab.views.figures import restoration_map
from lab.views.format import MISSING
from lab.views.wording import CONTRASTS, NOT_TESTED, TESTED

CURVE = {"contrast": "role", "direction": "a_into_b", "site": "resid", "layer": range(4)}


def test_a_layer_that_flips_half_of_the_runs_is_called_the_first_and_no_more() -> None:
    """Later layers may flip fewer, so nothing is said of what holds "from" it on."""
    rates = {"value": [0.0, 1.2, 0.0, 1.0], "flip_rate": [0.6, 0.1, 0.1, 0.9]}
    layers = pd.DataFrame(CURVE | rates)
    shown = window_table(patching.windows(layers), layers)
    cells = dict(zip(shown.columns[1:], (cell.text for cell in shown.rows[0].cells), strict=True))
    assert cells["first layer to change half of the first choices"] == "layer 0"
    assert not any("from" in column.split() for column in shown.columns)
    assert cells["layers in which R rises most"] == "1"
    assert cells["share of all rises in them"] == "55\u00a0%"


def test_a_contrast_without_any_measured_pair_is_not_said_to_be_without_effect() -> None:
    flat = pd.DataFrame(CURVE | {"value": [0.0] * 4, "flip_rate": [0.0] * 4})
    unknown = pd.DataFrame(
        CURVE | {"contrast": "passage", "value": [np.nan] * 4, "flip_rate": [np.nan] * 4}
    )
    layers = pd.concat([flat, unknown])
    shown = window_table(patching.windows(layers), layers)
    assert [row.label for row in shown.rows] == [CONTRASTS["role"][0]]
    assert "it does not rise" in [cell.text for cell in shown.rows[0].cells]


@pytest.fixture(scope="module")
def heads() -> pd.DataFrame:
    return patching.heads(synthetic_study(n=24, layers=3, heads=4)[0])


def test_the_runs_own_choices_are_shown_without_a_p_value_and_the_page_says_why(heads) -> None:
    layers = pd.DataFrame(columns=["contrast", "direction", "site", "layer", "value"])
    layers = layers.assign(low=None, high=None, flip_rate=None)
    for sweep in patching_data(heads, layers):
        untested = sweep["contrast"] == "role"
        assert ("q" not in sweep["head"]) == untested
        assert (NOT_TESTED in sweep["note"]) == untested
        assert (TESTED in sweep["note"]) == (not untested)
    shown = patched_table(patching.top_heads(heads))
    at = shown.columns.index("corrected p") - 1
    titles = [row.label for row in shown.rows if row.group]
    assert titles[0].startswith(CONTRASTS["role"][0])
    of_role = [row.cells[at].text for row in shown.rows[1:6]]
    others = [row.cells[at].text for row in shown.rows[12:] if not row.group]
    assert set(of_role) == {MISSING} and MISSING not in others


def test_a_figure_of_patches_says_what_its_p_values_are_of() -> None:
    pytest.importorskip("plotly")
    dataset = synthetic_study(n=24, layers=3, heads=4)[0]
    for contrast, why in (("role", NOT_TESTED), ("passage", TESTED)):
        figure = restoration_map(dataset, contrast, "a_into_b")
        words = " ".join(figure.to_json().replace("<br>", " ").split())
        assert ("corrected p" in str(figure.data[0].text)) == (contrast != "role")
        assert why.split(":")[0] in words
