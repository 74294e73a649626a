"""Numbers as text, the same way everywhere: 61 %, 0.71, 7.4 \u00d7, with a true minus sign."""

from __future__ import annotations

import math
from collections.abc import Callable

from lab.instruments.statistics import Estimate

Format = Callable[[float], str]

MISSING = "\u2013"
_SPACE = "\u00a0"


def percent(x: float) -> str:
    """A share as per cent: whole above ten, one decimal below."""
    if not math.isfinite(x):
        return MISSING
    value = 100 * x
    digits = 0 if abs(value) >= 9.95 or abs(value) < 0.005 else 1
    return f"{_signed(value, digits)}{_SPACE}%"


def points(x: float) -> str:
    """A difference of shares in percentage points, without the unit."""
    if not math.isfinite(x):
        return MISSING
    return _signed(100 * x, 0 if abs(x) >= 0.0995 else 1)


def decimal(x: float) -> str:
    """A number with two decimals."""
    return _signed(x, 2) if math.isfinite(x) else MISSING


def signed(x: float, form: Format = decimal) -> str:
    """A difference with its sign; none where it is rounded to zero."""
    text = form(x)
    return f"+{text}" if x > 0 and any(digit in text for digit in "123456789") else text


def ratio(x: float) -> str:
    """A factor such as ``7.4 \u00d7``: two decimals below one, none above ten."""
    if not math.isfinite(x):
        return MISSING
    digits = 2 if x < 0.995 else 1 if x < 9.95 else 0
    return f"{_signed(x, digits)}{_SPACE}\u00d7"


def q_value(q: float) -> str:
    """A corrected p-value: ``< .001`` or three decimals."""
    if not math.isfinite(q):
        return MISSING
    return "< .001" if q < 0.001 else f"{q:.3f}".replace("0.", ".", 1)


def interval(estimate: Estimate, form: Format) -> str:
    """The interval as ``[low, high]``, without the unit; empty where there is none."""
    if not (math.isfinite(estimate.low) and math.isfinite(estimate.high)):
        return ""
    low, high = (form(end).split(_SPACE)[0] for end in (estimate.low, estimate.high))
    return f"[{low}, {high}]"


def count(n: int, noun: str) -> str:
    """``1 example``, ``24 examples``, ``135,000,000 parameters``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _signed(x: float, digits: int) -> str:
    text = f"{x:.{digits}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", "\u2212")
