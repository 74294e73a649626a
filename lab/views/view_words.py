"""The words of the linked views: what the picker measures, and sentences for each view."""

from __future__ import annotations

from typing import Any

PICKER: dict[str, dict[str, Any]] = {
    "disagreement": {
        "label": "mistaken by",
        "note": "How far the verdict's probability is from the truth about its own answer: above "
        ".5 the verdict is mistaken.",
        "digits": 2,
        "signed": False,
    },
    "log_odds": {
        "label": "log-odds",
        "note": "Log-odds of accepting its own answer, in logits: above 0 it accepts.",
        "digits": 1,
        "signed": True,
    },
    "gap": {
        "label": "gold lead",
        "note": "Log-odds of the gold answer minus those of the hardest wrong candidate: above 0 "
        "it ranks them rightly.",
        "digits": 1,
        "signed": True,
    },
    "ratio": {
        "label": "reads less",
        "note": "Attention on the passage when answering over when judging, mean over all heads.",
        "digits": 1,
        "signed": False,
    },
    "f1": {
        "label": "F1",
        "note": "Word overlap of its answer with a gold answer; .5 or more counts as right.",
        "digits": 2,
        "signed": False,
    },
}
"""Measures of single examples by which the picker sorts, in the order of its columns."""

VIEWS: dict[str, Any] = {
    "map_help": "Arrow keys choose a head; with shift, or with the key s, a set of heads; Escape "
    "empties the set.",
    "map": "Map of layers and heads, attention on the passage:",
    "search": "Search questions and answers",
    "lost": "; the chosen one is not among them",
    "no_fit": "No example fits these filters.",
    "columns": "What the columns say",
    "candidates": "Every candidate that it judged for this question",
    "faint": "is spread over tokens too faint to show (what rounds to nothing is not kept).",
    "failed": "It could not be read.",
    "layer_help": "Up and down arrow keys choose a layer.",
    "text_help": "Left and right arrow keys move along the tokens.",
    "drag": "With a mouse, drag over a map to choose a set of heads.",
    "set": "Mean over the heads of the set, which is chosen below the head maps.",
    "same": "The strongest token of both texts is full colour.",
    "own": "The strongest token of each text is full colour.",
    "point": "Point at or tap a token, or move along a text with the arrow keys, to read its "
    "numbers.",
    "sink": "The first token (sink) is never coloured; the bar above each text has its share.",
    "flow": "in this one example, mean over the heads of each layer.",
    "restoration": "R = 0: as the target; R = 1: as the source.",
    "other": "This result is of another example:",
    "overstated": "Intervals are 95 %. Heads are listed by the same numbers by which they are "
    "chosen, so the largest are overstated.",
    "no_attention": "This study measured no attention.",
    "no_heads": "This study measured nothing by head.",
    "no_patching": "No patching was run in this study.",
    "no_tokens": "This study kept no attention on single tokens.",
    "no_norms": "Norm-weighted shares were not measured here: the bar shows attention.",
    "not_here": "The tokens of this example are not here.",
    "not_read": "This example has not been read yet: the model has to run on it in both roles.",
    "not_held": "This page lists the example but does not hold its tokens.",
    "not_measured": "The attention of this example was not measured.",
    "outcomes": {
        "true,true": "answered right, judged right",
        "true,false": "answered right, judged wrong",
        "false,true": "answered wrong, judged right",
        "false,false": "answered wrong, judged wrong",
    },
}
"""Sentences of the linked views, which travel with their data."""
