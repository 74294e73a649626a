"""What the tables of patching say in words."""

from __future__ import annotations

import pandas as pd

from lab.instruments.summaries import patching
from lab.views.content.patching import window_table


def test_a_layer_that_flips_half_of_the_runs_is_called_the_first_and_no_more() -> None:
    """Later layers may flip fewer, so nothing is said of what holds "from" it on."""
    curve = {"contrast": "role", "direction": "a_into_b", "site": "resid", "layer": range(4)}
    rates = {"value": [0.0, 1.2, 0.0, 1.0], "flip_rate": [0.6, 0.1, 0.1, 0.9]}
    shown = window_table(patching.windows(pd.DataFrame(curve | rates)))
    cells = dict(zip(shown.columns[1:], (cell.text for cell in shown.rows[0].cells), strict=True))
    assert cells["first layer to change half of the first choices"] == "layer 0"
    assert not any("from" in column.split() for column in shown.columns)
    assert cells["layers in which R rises most"] == "1"
    assert cells["share of all rises in them"] == "55\u00a0%"
