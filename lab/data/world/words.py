"""Small matters of English: articles, capitals, pronouns, numbers in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
    "twenty",
)  # fmt: skip
_PRONOUNS = {
    "she": ("her", "her", "herself"),
    "he": ("his", "him", "himself"),
    "it": ("its", "it", "itself"),
}


def number_words(number: int) -> str:
    """A number up to twenty in words; "" for others."""
    return _WORDS[number] if 0 <= number < len(_WORDS) else ""


def bare(phrase: str) -> str:
    """A noun phrase without its article."""
    return re.sub(r"^(?:a|an|the)\s+", "", phrase, flags=re.IGNORECASE)


def capital(text: str) -> str:
    """The text with a capital at its beginning, behind an opening quotation mark if need be."""
    at = 1 if text[:1] == '"' else 0
    return text[:at] + text[at : at + 1].upper() + text[at + 1 :]


def listing(items: Sequence[str]) -> str:
    """Several things in a row, with "and" before the last."""
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else "".join(items)


def possessive(name: str) -> str:
    """The possessive form of a name."""
    return f"{name}'s"


def forms(pronoun: str) -> tuple[str, str, str]:
    """The possessive, object and reflexive forms of a pronoun."""
    return _PRONOUNS[pronoun]
