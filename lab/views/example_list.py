"""What the picker lists of each example: texts, outcomes, verdicts, and measures to sort by."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from lab.instruments.summaries import reading
from lab.instruments.summaries import tables as T
from lab.instruments.summaries.behaviour import HARDEST, right
from lab.views.view_words import PICKER
from lab.views.wording import OWN_ANSWER, RUNGS

Floats = NDArray[np.float64]

READER_ROLES = ("generator", "evaluator")
TEXTS = {
    "id": "example",
    "dataset": "dataset",
    "family": "family",
    "question": "question",
    "gold": "gold",
    "answer": "answer",
    "closed_book": "closed_book_answer",
}
"""Name on the page: variable in the study."""


def list_examples(dataset: xr.Dataset) -> list[dict[str, Any]]:
    """Every example of a study as plain data, without its tokens: ``roles`` is None.

    ``right`` and ``judged_right`` are None where they are not known. ``measures`` has a number or
    None for each name of PICKER.
    """
    n = dataset.sizes["example"]
    texts = {name: T.labels(dataset, variable) for name, variable in TEXTS.items()}
    f1, answerable = T.numbers(dataset, "f1"), T.numbers(dataset, "answerable")
    agrees, found = judged_right(dataset), example_measures(dataset)
    rungs = _rungs(dataset)
    return [
        {
            **{name: str(values[i]) for name, values in texts.items()},
            "answerable": bool(answerable[i] != 0),
            "right": _flag(f1[i] >= 0.5, f1[i]),
            "judged_right": _flag(agrees[i] > 0, agrees[i]),
            "measures": {name: _number(values[i]) for name, values in found.items()},
            "rungs": rungs[i],
            "roles": None,
        }
        for i in range(n)
    ]


def example_measures(dataset: xr.Dataset) -> dict[str, Floats]:
    """One number an example for each name of PICKER; NaN where it was not measured.

    ``disagreement`` is how far the verdict's probability is from the truth about the model's own
    answer: above .5 the verdict is mistaken. ``gap`` is the log-odds of the gold answer minus
    those of the hardest wrong candidate. ``ratio`` is attention on the passage when answering
    over when judging, mean over all heads.
    """
    own, truth = T.numbers(dataset, "log_odds", rung="own"), right(dataset, "own")
    wrong = np.full(own.shape, np.nan)
    for rung in HARDEST:
        known = np.where(
            right(dataset, rung) == 0, T.numbers(dataset, "log_odds", rung=rung), np.nan
        )
        wrong = np.where(np.isnan(wrong), known, wrong)
    chance = 1 / (1 + np.exp(-np.clip(own, -500, 500)))
    found = {
        "log_odds": own,
        "disagreement": np.abs(chance - truth),
        "gap": T.numbers(dataset, "log_odds", rung="gold") - wrong,
        "ratio": _reading_ratio(dataset),
        "f1": T.numbers(dataset, "f1"),
    }
    return {name: found[name] for name in PICKER}


def judged_right(dataset: xr.Dataset) -> Floats:
    """1 where the verdict on the model's own answer agrees with the oracle, 0 not, NaN unknown."""
    verdict, truth = T.numbers(dataset, "log_odds", rung="own"), right(dataset, "own")
    agrees = ((verdict > 0) == (truth > 0.5)).astype(float)
    return np.where(np.isnan(verdict) | np.isnan(truth), np.nan, agrees)


def columns(examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The measures that at least one example has, with label, explanation, digits and sign."""
    return [
        {"name": name, **words}
        for name, words in PICKER.items()
        if any(example["measures"][name] is not None for example in examples)
    ]


def _reading_ratio(dataset: xr.Dataset) -> Floats:
    if not reading.measured(dataset):
        return np.full(dataset.sizes["example"], np.nan)
    on_passage = reading.regions(dataset, "raw").sel(region="context").mean(["layer", "head"])
    over, under = (np.asarray(on_passage.sel(role=role).values) for role in READER_ROLES)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(under > 0, over / under, np.nan)


def _rungs(dataset: xr.Dataset) -> list[list[dict[str, Any]]]:
    """The candidates that were judged, by example; without those that were not given."""
    names = T.coordinate(dataset, "rung")
    texts = {rung: _candidates(dataset, rung) for rung in names}
    log_odds = {rung: T.numbers(dataset, "log_odds", rung=rung) for rung in names}
    is_right = {rung: right(dataset, rung) == 1 for rung in names}
    given = {rung: T.numbers(dataset, "candidate_given", rung=rung) == 1 for rung in names}
    return [
        [
            {
                "name": rung,
                "candidate": str(texts[rung][i]),
                "right": bool(is_right[rung][i]),
                "log_odds": round(float(log_odds[rung][i]), 4),
            }
            for rung in names
            if given[rung][i] and math.isfinite(log_odds[rung][i])
        ]
        for i in range(dataset.sizes["example"])
    ]


def rung_labels(dataset: xr.Dataset) -> dict[str, str]:
    """What each rung is called next to one example."""
    named = {rung: RUNGS.get(rung, (rung, ""))[0] for rung in T.coordinate(dataset, "rung")}
    return named | {"own": OWN_ANSWER}


def _candidates(dataset: xr.Dataset, rung: str) -> NDArray[Any]:
    if "candidate" not in dataset:
        return np.full(dataset.sizes["example"], "", dtype=object)
    return np.asarray(dataset["candidate"].sel(rung=rung).values)


def _flag(value: Any, known: float) -> bool | None:
    return None if np.isnan(known) else bool(value)


def _number(value: float) -> float | None:
    return round(float(value), 4) if math.isfinite(value) else None
