"""Answers folded so that ways of writing the same thing are equal: "21" and "twenty-one", plurals.

This is for telling whether a candidate that is meant to be wrong may be right after all. No score
uses it: the official metrics take number words and plurals for other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# Numbers with digits, in groups or as ordinals, else runs of letters and digits.
_TOKEN = re.compile(r"(\d+(?:,\d{3})*(?:\.\d+)?)(?:st|nd|rd|th)?(?![^\W_])|([^\W_]+)")
_APOSTROPHE = re.compile(r"['\u2019]")

ARTICLES = frozenset({"a", "an", "the"})
"""Words that are no part of what an answer says."""

_UNITS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
"""
_VALUES = {
    **{word: value for value, word in enumerate(_UNITS.split())},
    **{word: 10 * value for value, word in enumerate(_TENS.split(), 2)},
    **{word: value for value, word in enumerate(_ORDINALS.split(), 1)},
    "thirtieth": 30,
}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}


def fold(text: str) -> tuple[str, ...]:
    """The words of a text without capitals, punctuation, articles and the s of plurals.

    Numbers are written in digits: "twenty-one", "2,000" and "two thousand"; so are ordinals to the
    31st, without their ending, so that "July 4th" is "July 4".
    """
    bare = _APOSTROPHE.sub("", text.casefold())
    words = (match.groups() for match in _TOKEN.finditer(bare))
    kept = ((digits, word) for digits, word in words if word not in ARTICLES)
    return tuple(_joined(kept))


def _joined(words: Iterable[tuple[str | None, str | None]]) -> Iterator[str]:
    """The words, with those that make up one number put together."""
    number: int | None = None
    open_to = 0  # the next word is added to the number if its value is from 1 to below this
    for digits, word in words:
        value = _VALUES.get(word or "")
        scale = _SCALES.get(word or "")
        if number is not None and value is not None and 0 < value < open_to:
            number += value
            open_to = 10 if value in range(20, 100, 10) else 0
            continue
        if scale is not None:
            number = (1 if number is None else number) * scale
            open_to = min(scale, 100)
            continue
        if number is not None:
            yield str(number)
        number, open_to = value, 10 if value in range(20, 100, 10) else 0
        if digits is not None and "." not in digits:
            number = int(digits.replace(",", ""))
        elif value is None:
            yield digits or _singular(word or "")
    if number is not None:
        yield str(number)


def _singular(word: str) -> str:
    """The word without the s of a plural; names that end in s lose it too."""
    if len(word) < 4 or not word.isalpha() or not word.endswith("s") or word.endswith("ss"):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("ches", "shes", "sses", "xes", "zes")) else word[:-1]
