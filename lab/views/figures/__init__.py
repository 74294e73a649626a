"""Plotly figures for notebooks, from the same summaries as the report.

Every figure has a title that states what is seen, units on its axes, and n and interval in the
caption below it. Layers run upwards on the vertical axis in all of them.
"""

from lab.views.figures.attention import head_map, layer_head_maps, span_mass
from lab.views.figures.outcomes import candidate_ladder, restoration_map
from lab.views.figures.training import learning_curves, transfer

__all__ = [
    "candidate_ladder",
    "head_map",
    "layer_head_maps",
    "learning_curves",
    "restoration_map",
    "span_mass",
    "transfer",
]
