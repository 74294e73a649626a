"""What the report opens with, and the sentences that introduce its sections."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr

from lab.instruments.statistics import Estimate
from lab.instruments.summaries import Headline, KeyNumber
from lab.instruments.summaries.sentences import are
from lab.views.content.reading import Reading
from lab.views.format import count, decimal, interval, percent, ratio
from lab.views.table import ends

FORMS = {"context": ratio}


@dataclass(frozen=True, slots=True)
class Card:
    """One of the large numbers: its colour class, the number, what it counts, small print."""

    colour: str
    number: str
    words: str
    small: str
    note: str


def cards(headline: Headline) -> list[Card]:
    """The key numbers that the study has, as cards."""
    return [_card(number) for number in headline.numbers if not math.isnan(number.estimate.value)]


MEASURED = {"reading": "mass", "patching": "patch_head", "controls": "control_log_odds"}
"""What may be left out of a study, and an array that is empty then."""


def measured(dataset: xr.Dataset) -> dict[str, bool]:
    """Which of MEASURED the study holds for at least one example."""
    return {
        name: array in dataset and bool(np.isfinite(dataset[array].values).any())
        for name, array in MEASURED.items()
    }


def _card(number: KeyNumber) -> Card:
    form = FORMS.get(number.colour, decimal)
    estimate = number.estimate
    return Card(
        number.colour,
        form(estimate.value),
        number.label,
        f"{ends(estimate, form)}, n\u00a0=\u00a0{estimate.n}",
        number.explanation,
    )


def questions(n: int) -> str:
    """``24 questions, each with a passage to read``."""
    return f"{count(n, 'question')}{', each' if n > 1 else ''} with a passage to read"


def candidate_lead(table: pd.DataFrame) -> str:
    """How the shares are to be read, and how far the candidate's own tokens read the passage."""
    lead = "Mean over all heads and layers, and the ratio of both roles within each example."
    mean = table[table["aggregate"] == "mean"] if len(table) else table
    if mean["value"].isna().all():
        return lead
    top = mean.iloc[int(mean["value"].argmax())]
    found = Estimate(top["value"], top["low"], top["high"], int(top["n"]))
    return (
        f"{lead} The decision may also learn of the passage through the candidate's tokens: in the "
        f"layer where these look at the passage most (layer {int(top['layer'])}), they give it "
        f"{percent(found.value)} {interval(found, percent)} of their attention when judging."
    )


def changed_lead(found: Reading, level: float = 0.05) -> str:
    """How many heads change at all, and in which direction."""
    frame = found.heads
    clear = frame[frame["p_adjusted"] <= level]
    less, more = int((clear["value"] > 0).sum()), int((clear["value"] < 0).sum())
    rest = len(frame) - less - more
    others = f"; for the other {rest} no difference is shown" if rest else ""
    shown = "The ten largest" if len(frame) > 10 else "All"
    return (
        f"Of {count(len(frame), 'head')}, {_look(less)} at the passage less when judging than when "
        f"answering, and {_look(more)} at it more (corrected p of {level:g} or less){others}. "
        f"{shown} differences:"
    )


def _look(heads: int) -> str:
    return f"{heads or 'none'} look{'s' if heads < 2 else ''}"


def readers_lead(found: Reading) -> str:
    """How far the strongest readers of both roles are the same heads."""
    overlap = found.overlap
    k = len(overlap.generator)
    if not k:
        return "Attention was not measured in this study."
    return (
        f"Of the {k} heads that read the passage most when answering, {are(overlap.shared)} also "
        f"among the {k} that read it most when judging (Jaccard index {decimal(overlap.jaccard)}; "
        f"{decimal(overlap.expected)} would be chance). Ranked by attention for each token of the "
        "passage."
    )
