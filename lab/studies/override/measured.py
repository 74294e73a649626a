"""Measured conflicts as plain data and back, and the tables over all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lab.data.conflicts import PASSAGES, Conflict
from lab.instruments.conflicts import (
    Cell,
    Measured,
    conflict_table,
    measure_conflict,
    measure_verdicts,
)
from lab.instruments.override.contests import CONTESTS, Outcome, Rendered, Verdicts, outcome
from lab.instruments.override.restored import RIGHT, verdict_table
from lab.instruments.statistics import Estimate, mean_estimate, proportion
from lab.roles import Prompt, Prompter
from lab.roles.conflicts import CELLS, SIDES, closed_book_prompt, expected
from lab.studies.override.results import TABLES

if TYPE_CHECKING:
    from lab.engine.lens import Lens


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """What a model said of one conflict in both roles.

    Attributes:
        measured: the generator's table.
        verdicts: the judge's log-odds by passage and candidate.
    """

    measured: Measured
    verdicts: Verdicts

    def outcome(self, contest: str) -> Outcome:
        """How it came out in a contest."""
        return outcome(CONTESTS[contest], self.measured, self.verdicts)


def ask(lens: Lens, prompter: Prompter, conflict: Conflict, *, begun: bool) -> dict[str, Any]:
    """One conflict asked in both roles, as JSON-ready data."""
    lens.forget()  # the last bit must not depend on what ran before
    measured = measure_conflict(lens, conflict, prompter=prompter, begun=begun, generate=False)
    verdicts = measure_verdicts(lens, conflict, prompter=prompter)
    book = measured.closed_book
    return {
        "id": conflict.id,
        "tokens": {side: list(ids) for side, ids in measured.tokens.items()},
        "pair": measured.pair,
        "closed_book": None if book is None else _cell(book),
        "cells": [[*key, _cell(cell)] for key, cell in measured.cells.items()],
        "verdicts": [[*key, value] for key, value in verdicts.items()],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "logits": cell.logits,
        "probabilities": cell.probabilities,
        "top": cell.top,
        "says": cell.says,
    }


def answered(
    data: Mapping[str, Any], conflict: Conflict, rendered: Rendered, prompter: Prompter
) -> Answered:
    """What `ask` stored, with the prompts made again."""
    book = data["closed_book"]
    measured = Measured(
        conflict,
        {side: tuple(data["tokens"][side]) for side in SIDES},
        None if data["pair"] is None else (data["pair"][0], data["pair"][1]),
        None if book is None else _cell_of(book, closed_book_prompt(prompter, conflict)),
        {(a, b): _cell_of(cell, rendered.generator[a, b]) for a, b, cell in data["cells"]},
        generated=False,
    )
    return Answered(measured, {(a, b): float(value) for a, b, value in data["verdicts"]})


def _cell_of(data: Mapping[str, Any], prompt: Prompt) -> Cell:
    logits, shares = data["logits"], data["probabilities"]
    return Cell(prompt, (logits[0], logits[1]), (shares[0], shares[1]), data["top"], data["says"])


# --- tables -------------------------------------------------------------------------------------


def estimate_row(e: Estimate) -> dict[str, Any]:
    """An estimate as columns."""
    return {"value": e.value, "low": e.low, "high": e.high, "n": e.n, "method": e.method}


def conflicts_frame(all_answered: Sequence[Answered]) -> pd.DataFrame:
    """The table "conflicts" of `lab.studies.override.results`."""
    table = conflict_table([a.measured for a in all_answered])
    rows = []
    for key in CELLS:
        named = [*table.says[key].items(), ("margin", table.margin[key])]
        rows += [
            {
                "instruction": key[0],
                "passage": key[1],
                "expected": expected(*key),
                "quantity": name,
                **estimate_row(e),
            }
            for name, e in named
        ]
    for name, e in (("known", table.known), ("usable", table.usable)):
        empty = {"instruction": "", "passage": "", "expected": ""}
        rows.append({**empty, "quantity": name, **estimate_row(e)})
    return pd.DataFrame(rows, columns=TABLES["conflicts"])


def verdicts_frame(all_answered: Sequence[Answered], clusters: Sequence[str]) -> pd.DataFrame:
    """The table "verdicts" of `lab.studies.override.results`."""
    odds = np.array(
        [
            [[a.verdicts[stated, side] for side in SIDES] for stated in PASSAGES]
            for a in all_answered
        ]
    )
    rows: list[dict[str, Any]] = []
    for i, stated in enumerate(PASSAGES):
        for j, side in enumerate(SIDES):
            here = {"passage": stated, "candidate": side, "right": bool(RIGHT[i, j] > 0)}
            told = {
                "log_odds": mean_estimate(odds[:, i, j], clusters),
                "accepts": proportion(odds[:, i, j] > 0, clusters),
            }
            rows += [{**here, "quantity": q, **estimate_row(e)} for q, e in told.items()]
    for name, e in verdict_table(odds, clusters).items():
        rows.append(
            {"passage": "", "candidate": "", "right": "", "quantity": name, **estimate_row(e)}
        )
    return pd.DataFrame(rows, columns=TABLES["verdicts"])


def fallout_frame(all_answered: Sequence[Answered]) -> pd.DataFrame:
    """The table "fallout" of `lab.studies.override.results`."""
    rows = []
    for name in CONTESTS:
        reasons = [a.outcome(name).reasons for a in all_answered]
        first = Counter(found[0] for found in reasons if found)
        rows += [(name, reason, first[reason], len(reasons)) for reason in sorted(first)]
    return pd.DataFrame(rows, columns=TABLES["fallout"])
