"""Made-up results of an override study: every table, for tests that need no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from lab.studies.override.results import (
    CONTEST_TABLES,
    TABLES,
    OverrideResults,
    heads_text,
)

LAYERS, HEADS = 6, 4
CHOSEN = ((3, 1), (4, 2))
WAYS = ("a_into_b", "b_into_a")
ESTIMATED = {"value": 0.62, "low": 0.4, "high": 0.8, "n": 20, "method": "bootstrap"}
AGAINST = {
    **ESTIMATED, "random_mean": 0.03, "random_low": 0.0, "random_high": 0.1, "random_sets": 100,
    "percentile": 1.0, "p": 0.0099,
}  # fmt: skip
WORDS = {
    "instruction": ("altered, follow the passage", "altered, own knowledge", "generator"),
    "passage": ("altered, follow the passage", "true, follow the passage", "generator"),
    "candidate": ("right candidate", "wrong candidate", "evaluator"),
    "checked": ("passage agrees", "passage disagrees", "evaluator"),
}
STATES = {"instruction": "too few", "passage": "found", "candidate": "none", "checked": "found"}


def override_results(question: str = "What is the capital of Peru?") -> OverrideResults:
    """Contests of every state. All texts from data hold ``question``."""
    contests = {
        name: _contest(state, question) for name, state in STATES.items() if state != "too few"
    }
    provenance: dict[str, Any] = {
        "title": "made up", "model": {"name": "made-up", "n_layers": LAYERS, "n_heads": HEADS},
        "recipe": {"model": "made-up"}, "seed": 0,
    }  # fmt: skip
    return OverrideResults(provenance, {"model": "made-up"}, _tables(), contests)


def _tables() -> dict[str, pd.DataFrame]:
    conflicts = [
        {"instruction": told, "passage": stated, "expected": "memory", "quantity": quantity,
         **ESTIMATED}
        for told in ("passage", "memory") for stated in ("original", "counterfactual")
        for quantity in ("memory", "counter", "other", "margin")
    ]  # fmt: skip
    conflicts += [
        {"instruction": "", "passage": "", "expected": "", "quantity": q, **ESTIMATED}
        for q in ("known", "usable")
    ]
    verdicts = [
        {"passage": stated, "candidate": side, "right": str(right), "quantity": q, **ESTIMATED}
        for stated, side, right in (("original", "memory", True), ("original", "counter", False))
        for q in ("log_odds", "accepts")
    ]
    verdicts += [
        {"passage": "", "candidate": "", "right": "", "quantity": q, **ESTIMATED}
        for q in ("balanced_accuracy", "auroc")
    ]
    measures = ("shift", "to_other", "damage", "two_token")
    return {
        "conflicts": _frame(TABLES["conflicts"], conflicts),
        "verdicts": _frame(TABLES["verdicts"], verdicts),
        "contests": _frame(TABLES["contests"], [_row(name, s) for name, s in STATES.items()]),
        "fallout": _frame(
            TABLES["fallout"],
            [{"contest": "instruction", "reason": "run b gives the other answer", "conflicts": 102,
              "of": 120}],
        ),
        "crossing": _frame(
            TABLES["crossing"],
            [{"first": "passage", "second": "checked", "first_role": "generator",
              "second_role": "evaluator", "jaccard": 1.0, "expected": 0.05, "p": 0.004,
              "shared": 2, "correlation": 0.4, "low": 0.1, "high": 0.6, "n": 20,
              "method": "bootstrap"}],
        ),
        "across": _frame(
            TABLES["across"],
            [{"heads_of": "passage", "set": which, "pairs_of": "checked", "run": run, "measure": m,
              **AGAINST}
             for which in "ab" for run in "ab" for m in measures],
        ),
        "restored": _frame(
            TABLES["restored"],
            [{"contest": "passage", "moment": moment, "measure": "balanced_accuracy", **AGAINST}
             for moment in ("before", "after", "difference")],
        ),
    }  # fmt: skip


def _row(name: str, state: str) -> dict[str, Any]:
    a, b, role = WORDS[name]
    heads = heads_text(CHOSEN) if state == "found" else ""
    few = state == "too few"
    return {
        "contest": name, "role": role, "run_a": a, "run_b": b, "state": state,
        "why": "18 of 120 conflicts are usable, and 16 are needed on each half" if few else
        "No head passed the test" if state == "none" else "9 heads pass the test",
        "conflicts": 120, "usable": 18 if few else 74, "share": 0.15, "share_low": 0.09,
        "share_high": 0.22, "clusters": 18, "used": 0 if few else 50, "gap": 2.3, "gap_low": 2.0,
        "gap_high": 2.5, "discovery": 25, "held_out": 25, "discovery_clusters": 25,
        "held_out_clusters": 25, "lone_head": True, "candidates": 9, "heads": heads,
        "heads_a": heads, "heads_b": heads, "share_of_heads": 2 / 24 if heads else 0.0,
        "published_share": 0.083, "flip_measure": "to_other",
    }  # fmt: skip


def _contest(state: str, question: str) -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(0)
    found = state == "found"
    heads = []
    for layer, head in np.ndindex(LAYERS, HEADS):
        row: dict[str, Any] = {"layer": layer, "head": head}
        on = (layer, head) in CHOSEN and found
        for way in WAYS:
            value = 1.5 if on else float(rng.normal(0, 0.1))
            row |= {way: value, f"p_{way}": 0.01, f"q_{way}": 0.04, f"held_{way}": value,
                    f"held_{way}_low": value - 0.3, f"held_{way}_high": value + 0.3,
                    f"held_{way}_p": 0.001, f"held_{way}_restoration": 0.4}  # fmt: skip
        published = "promoting" if layer == 3 else ""
        row |= {"tested": on, "candidate": on, "published": published, "score": 0.1, "in_a": on,
                "in_b": False, "half_a": on, "half_b": False, "chosen": on, "mass_a": 0.3,
                "mass_b": 0.2}  # fmt: skip
        heads.append(row)
    curve = [
        {"run": run, "k": k, "layer": CHOSEN[k - 1][0] if k else -1,
         "head": CHOSEN[k - 1][1] if k else -1, "value": 1.2 * k, "low": 1.0 * k, "high": 1.4 * k,
         "n": 25, "discovery": 1.3 * k, "random_mean": 0.05 * k, "random_low": -0.1 * k,
         "random_high": 0.2 * k, "random_sets": 100}
        for run in "ab" for k in range(3 if found else 1)
    ]  # fmt: skip
    tables: dict[str, list[dict[str, Any]]] = {
        "heads": heads,
        "curve": curve,
        "stability": [{"layer": 3, "head": 1, "splits": 9, "of": 10, "share": 0.9,
                       "chosen": found, "chosen_swapped": found}],
        "splits": [{"split": split, "n": 25, "heads": heads_text(CHOSEN) if found else "",
                    "jaccard": 1.0, "expected": 0.08, "lone_head": True}
                   for split in ("discovery", "held_out")],
        "layers": [
            {"direction": way, "site": "resid_post", "layer": layer, **_numbers("layers"),
             "window": layer in (2, 3)}
            for way in WAYS for layer in range(LAYERS)
        ],
    }  # fmt: skip
    if found:
        tables |= _effects(question)
    return {name: _frame(CONTEST_TABLES[name], rows) for name, rows in tables.items()}


def _effects(question: str) -> dict[str, list[dict[str, Any]]]:
    measures = ("shift", "to_other", "damage", "two_token")
    text = {"conflict": "capital-peru", "question": question, "expected": "counter"}
    text |= {"before": f"Lima {question}", "before_says": "memory"}
    return {
        "proof": [
            {"run": run, "set": kind, "heads": heads_text(CHOSEN), "control": control, "how": how,
             "measure": measure, **AGAINST}
            for run in "ab" for kind in ("run", "all") for control in ("layers", "attention")
            for how in ("zero", "mean", "resample") for measure in measures
        ],
        "elsewhere": [{"prompts": "clozes", "measure": m, **AGAINST}
                      for m in ("changed", "divergence")],
        "text": [{"measure": "rise", "clean": 3.2, **AGAINST}],
        "texts": [{**text, "run": run, "after": f"Rome {question}", "after_says": "counter"}
                  for run in "ab"],
        "kinds": [
            {"layer": 3, "head": 1, "kind": "writing", "n": 25, **_numbers("kinds"),
             "looks_context": 0.1, "looks_context_low": 0.05, "looks_context_high": 0.2,
             "p_looks_context": 0.01},
            {"layer": 4, "head": 2, "kind": "routing", "n": 25, **_numbers("kinds"),
             "looks_context": 0.0, "looks_context_low": -0.05, "looks_context_high": 0.05,
             "p_looks_context": 0.9},
        ],
        "knockout": [
            {"run": run, "queries": "decision", "keys": "context", "first": i, "last": i + 3,
             **_numbers("knockout"), "n_asked": 20, "n_two_token": 25}
            for run in "ab" for i in range(3)
        ],
        "backups": [{"run": "a", "layer": 5, "head": 0, "alone": 0.0, "after": 0.9,
                     "p_adjusted": 0.01, "backup": True, "enough": True}],
        "screen": [{"direction": way, "spearman": 0.9, "top": 10, "shared": 8,
                    "largest": 1.5, "estimated": 1.1, "n": 25} for way in WAYS],
    }  # fmt: skip


def _numbers(table: str) -> dict[str, float]:
    """A plausible number for every column that is not named otherwise."""
    names = [c for c in CONTEST_TABLES[table] if c not in _KEYS]
    return {name: (0.2 if name.endswith("low") else 0.6 if name.endswith("high") else 0.4)
            for name in names}  # fmt: skip


_KEYS = {"layer", "head", "kind", "n", "run", "queries", "keys", "first", "last", "direction",
         "site", "window"}  # fmt: skip


def _frame(columns: Sequence[str], rows: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    for column in columns:
        if column not in frame:
            frame[column] = 25 if column == "n" else 0
    return frame
