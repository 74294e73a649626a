"""What the instruments' arrays are labelled with. No torch, so that arrays are read without it."""

from __future__ import annotations

from lab.roles import CONTROLS

RUNGS = ("own", "gold", "same_type", "same_passage", "other_passage", "closed_book", "empty")
"""The candidate ladder: the model's own answer, the gold one, and wrong ones from hard to easy."""

FIXED_WRONG = ("same_type", "same_passage", "other_passage")
"""Where models are compared, the wrong candidate is the first of these: it depends on no model."""

JUDGED_CONTROLS = tuple(name for name, c in CONTROLS.items() if c.role.startswith("evaluator"))
"""Controls that end in a verdict."""

READING_ROLES = (
    "generator",
    "evaluator",
    "generator_filler",
    "evaluator_candidate_first",
    "evaluator_repeat",
)
"""Roles whose reading is measured: the two that are compared, and three controls."""

CONTRASTS = ("role", "candidate", "passage")
"""Pairs of runs a and b between which activations are carried over."""

DIRECTIONS = ("a_into_b", "b_into_a")
"""Which run gives and which takes."""
