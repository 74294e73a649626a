"""Numbers as text, the same way everywhere: 61 %, 0.71, 7.4 \u00d7, with a true minus sign."""

from __future__ import annotations

import math
from typing import Protocol

from lab.instruments.statistics import Estimate


class Format(Protocol):
    """A number as text, with ``least`` decimals or more."""

    def __call__(self, x: float, least: int = 0) -> str: ...


MISSING = "\u2013"
_SPACE = "\u00a0"
_MOST = 3  # decimals of a number that would otherwise look like none


def percent(x: float, least: int = 0) -> str:
    """A share as per cent: whole above ten, one decimal below."""
    if not math.isfinite(x):
        return MISSING
    value = 100 * x
    digits = 0 if abs(value) >= 9.95 or abs(value) < 0.005 else 1
    return f"{_text(value, max(digits, least))}{_SPACE}%"


def points(x: float, least: int = 0) -> str:
    """A difference of shares in percentage points, without the unit; 0.03 rather than 0.0."""
    if not math.isfinite(x):
        return MISSING
    return _apart(100 * x, max(0 if abs(x) >= 0.0995 else 1, least), 0)


def decimal(x: float, least: int = 0) -> str:
    """A number with two decimals; 0.004 rather than 0.00."""
    return _apart(x, max(2, least), 0) if math.isfinite(x) else MISSING


def signed(x: float, form: Format = decimal) -> str:
    """A difference with its sign; none where it is rounded to zero."""
    text = form(x)
    return f"+{text}" if x > 0 and any(digit in text for digit in "123456789") else text


def ratio(x: float, least: int = 0) -> str:
    """A factor such as ``7.4 \u00d7``: two decimals below 2, none above ten; 1.003, not 1."""
    if not math.isfinite(x):
        return MISSING
    digits = 2 if x < 1.995 else 1 if x < 9.95 else 0
    return f"{_apart(x, max(digits, least), 1)}{_SPACE}\u00d7"


def q_value(q: float) -> str:
    """A corrected p-value: ``< .001`` or three decimals."""
    if not math.isfinite(q):
        return MISSING
    return "< .001" if q < 0.001 else f"{q:.3f}".replace("0.", ".", 1)


def interval(estimate: Estimate, form: Format) -> str:
    """The interval as ``[low, high]``, without the unit; empty where there is none.

    Both ends have the decimals of the one that needs more, and more where they would look alike.
    An interval without any width is none: nothing varied that could have been resampled.
    """
    ends = (estimate.low, estimate.high)
    if not all(math.isfinite(end) for end in ends) or math.isclose(*ends, abs_tol=1e-12):
        return ""
    least = max(len(_bare(form(end)).partition(".")[2]) for end in ends)
    while least < _MOST and form(ends[0], least) == form(ends[1], least):
        least += 1
    return f"[{', '.join(_bare(form(end, least)) for end in ends)}]"


def count(n: int, noun: str) -> str:
    """``1 example``, ``24 examples``, ``135,000,000 parameters``."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _bare(text: str) -> str:
    return text.split(_SPACE)[0]


def _apart(x: float, digits: int, none: float) -> str:
    """``x`` with more decimals where it would round onto ``none``, no difference, and is not."""
    enough = (d for d in range(digits, _MOST + 1) if x == none or float(f"{x:.{d}f}") != none)
    return _text(x, next(enough, digits))


def _text(x: float, digits: int) -> str:
    text = f"{x:.{digits}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", "\u2212")
