"""From rows of an override study's tables to cells of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lab.instruments.statistics import Estimate
from lab.studies.override.results import heads_of
from lab.views.content.override.words import SHARES
from lab.views.format import MISSING, Format, count, decimal, interval, percent, q_value
from lab.views.table import Cell, cell

Record = Mapping[str, Any]
Tables = Mapping[str, pd.DataFrame]


def records(frame: pd.DataFrame | None) -> list[dict[str, Any]]:
    """The rows of a table; none where there is no table."""
    return (
        []
        if frame is None
        else [{str(k): v for k, v in r.items()} for r in frame.to_dict("records")]
    )


def grouped(
    frame: pd.DataFrame | None, by: Sequence[str], sort: bool = False
) -> list[tuple[list[str], pd.DataFrame]]:
    """The parts of a table that agree in some columns, with what these hold as text."""
    if frame is None:
        return []
    return [([str(k) for k in key], part) for key, part in frame.groupby(list(by), sort=sort)]


def by_name(frame: pd.DataFrame, column: str) -> dict[str, dict[str, Any]]:
    """The rows of a table by what a column holds."""
    return {str(record[column]): record for record in records(frame)}


def estimate(record: Record, name: str = "") -> Estimate:
    """The value of a row and its interval: value, low, high; or NAME, NAME_low, NAME_high."""
    keys = (name, f"{name}_low", f"{name}_high") if name else ("value", "low", "high")
    value, low, high = (float(record[key]) for key in keys)
    return Estimate(value, low, high, whole(record.get("n", 0)))


def random_of(record: Record) -> Estimate:
    """The mean of random sets, and the middle 95 % of them as if it were an interval."""
    mean, low, high = (float(record[f"random_{end}"]) for end in ("mean", "low", "high"))
    return Estimate(mean, low, high)


def found(record: Record | None) -> bool:
    """Whether a row is there and has a value."""
    return record is not None and not math.isnan(float(record["value"]))


def against(record: Record | None, measure: str) -> Cell:
    """A number of a set of heads with its interval and n, and below it that of random sets."""
    if record is None:
        return Cell("")
    form: Format = percent if measure in SHARES else decimal
    shown, random = cell(estimate(record), form, with_n=True), random_of(record)
    if math.isnan(random.value) or shown.text == MISSING:
        return shown
    said = f"random {form(random.value)} {interval(random, form)}".strip()
    if sets := whole(record.get("random_sets", 0)):
        said += f", {count(sets, 'set')}"
    above = f"above {percent(float(record['percentile']))} of these, {p_text(record['p'])}"
    return Cell(shown.text, shown.small, more=(said, above))


def p_text(p: Any) -> str:
    """``p = .010`` or ``p < .001``; nothing where there is none."""
    text = q_value(float(p))
    if text == MISSING:
        return ""
    return "p\u00a0" + (text if text.startswith("<") else f"=\u00a0{text}")


def small(record: Record, name: str, p: str = "", form: Format = decimal) -> str:
    """The interval of an estimate, and a p-value behind it."""
    ends = interval(estimate(record, name), form)
    return f"{ends} {p_text(record[p])}".strip() if p else ends


def head(record: Record) -> str:
    """``12.3``"""
    return f"{int(record['layer'])}.{int(record['head'])}"


def names(text: Any) -> list[str]:
    """Heads as the page writes them, ``12.3``, from ``L12H3 L14H0``."""
    return [f"{layer}.{head}" for layer, head in heads_of(str(text))]


def true(value: Any) -> bool:
    """Whether a stored value stands for yes."""
    return str(value).lower() in ("true", "1", "1.0")


def false(value: Any) -> bool:
    """Whether a stored value stands for no; an empty one, of an earlier version, does not."""
    return str(value).lower() in ("false", "0", "0.0")


def marked(column: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which rows of a column stand for yes."""
    return np.array([true(value) for value in column], dtype=bool)


def whole(value: Any) -> int:
    """A count; zero where it is missing."""
    number = float(value)
    return int(number) if math.isfinite(number) else 0
