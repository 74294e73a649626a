"""A number with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval.

    Attributes:
        value: the estimate; NaN where it is not defined.
        low, high: ends of the interval (95% unless asked otherwise); NaN where there is none.
        n: how many units (examples, pairs) the value rests on.
        method: how the interval was made, or why there is none.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    method: str = ""

    def format(self, digits: int = 2) -> str:
        """The estimate as text: ``0.68 [0.59, 0.77]``, ``0.68 (no interval, n = 1)`` or ``n/a``.

        An interval of no width, where all values are alike, is none: it would claim certainty.
        """
        if math.isnan(self.value):
            return "n/a"
        if math.isnan(self.low) or math.isnan(self.high) or self.low == self.high:
            return f"{_fixed(self.value, digits)} (no interval, n = {self.n})"
        low, high = _fixed(self.low, digits), _fixed(self.high, digits)
        return f"{_fixed(self.value, digits)} [{low}, {high}]"

    def excludes(self, number: float) -> bool:
        """Whether the interval exists and does not cover the number."""
        return self.low > number or self.high < number

    def __str__(self) -> str:
        return self.format()


def _fixed(number: float, digits: int) -> str:
    text = f"{number:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text
