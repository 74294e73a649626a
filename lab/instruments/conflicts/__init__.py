"""Conflicts between passage and memory: what a model says, and which of them can be used."""

from lab.instruments.conflicts.measured import (
    ALIKE,
    ROOM,
    Cell,
    Measured,
    Rule,
    Says,
    conflict_prompter,
    decision_rows,
    measure_conflict,
    measure_verdicts,
    text_says,
)
from lab.instruments.conflicts.usable import REASONS, ConflictTable, conflict_table, unusable

__all__ = [
    "ALIKE",
    "REASONS",
    "ROOM",
    "Cell",
    "ConflictTable",
    "Measured",
    "Rule",
    "Says",
    "conflict_prompter",
    "conflict_table",
    "decision_rows",
    "measure_conflict",
    "measure_verdicts",
    "text_says",
    "unusable",
]
