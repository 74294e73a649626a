"""Data kept from acting as markup: strings of control tokens inside data are broken up."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Shielded:
    """A text in which no control token is left, and where spaces were put in to that end.

    Attributes:
        text: the text with the spaces.
        breaks: positions in the original text before which a space was put in, ascending.
        found: the strings that were broken up, in order.
    """

    text: str
    breaks: tuple[int, ...] = ()
    found: tuple[str, ...] = ()

    def range(self, start: int, end: int) -> tuple[int, int]:
        """The place in ``text`` of the original text's characters ``start`` to ``end``."""
        first = start + bisect_right(self.breaks, start)
        return first, max(first, end + bisect_right(self.breaks, end - 1))


class Shield:
    """Breaks up control strings by a space after their first character.

    The whole prompt is then tokenised in one go, as the model would see it in use, and offsets
    stay exact. To encode data apart with ``split_special_tokens`` would cut the text where no
    tokenizer cuts it, and would not hold back added tokens that are not marked as special.
    """

    def __init__(self, strings: Sequence[str]) -> None:
        self._pattern = re.compile("|".join(map(re.escape, strings))) if strings else None

    def __call__(self, text: str) -> Shielded:
        """The text without control tokens. Text that holds none comes back as it is."""
        if self._pattern is None:
            return Shielded(text)
        breaks: list[int] = []
        found: list[str] = []
        match = self._pattern.search(text)
        while match:
            breaks.append(match.start() + 1)
            found.append(match.group())
            match = self._pattern.search(text, match.start() + 1)
        if not breaks:
            return Shielded(text)
        edges = [0, *breaks, len(text)]
        parts = (text[a:b] for a, b in pairwise(edges))
        return Shielded(" ".join(parts), tuple(breaks), tuple(found))
