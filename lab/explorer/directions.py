"""What the patch bench can be asked: directions and what is carried over. No torch."""

from __future__ import annotations

from typing import Literal

from lab.instruments.names import CONTRASTS
from lab.instruments.names import DIRECTIONS as WAYS
from lab.views.wording import ENDS

What = Literal["heads", "layers", "head", "set"]

WHATS: dict[What, str] = {
    "heads": "every head, one at a time",
    "layers": "every layer: residual stream, MLP",
    "head": "the chosen head",
    "set": "the brushed heads together",
}

DIRECTIONS = {f"{contrast}/{way}": ENDS[contrast, way] for contrast in CONTRASTS for way in WAYS}
"""Contrast and direction, to what it is called."""
