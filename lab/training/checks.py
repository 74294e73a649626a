"""What all recipes share: what their fields may hold, and when two name the same files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lab.data.specs import same_place, same_source
from lab.errors import LabError


def sources(data: object, what: str) -> tuple[str, ...]:
    """The sources that a recipe names: several, or one as a plain text.

    Raises:
        LabError: they are no texts, or there is none; ``what`` needs one.
    """
    given = [data] if isinstance(data, str) else data
    if not isinstance(given, list | tuple) or not all(isinstance(spec, str) for spec in given):
        raise LabError(f"data is {data!r}: it must be a source, such as 'builtin', or several.")
    if not given:
        raise LabError(f"{what} needs at least one source of examples (--data).")
    return tuple(given)


def two_verdict_words(words: object) -> tuple[str, str]:
    """The words that accept and reject; LabError unless they are two different ones."""
    given = list(words) if isinstance(words, list | tuple) else [words]
    told = [word.strip().casefold() for word in given if isinstance(word, str)]
    if len(given) != 2 or len(told) != 2 or not all(told) or told[0] == told[1]:
        raise LabError(
            "verdict_words needs two different words, one that accepts and one that rejects, "
            f"not {', '.join(map(repr, given)) or 'none'}."
        )
    return str(given[0]), str(given[1])


def check_texts(recipe: Any, names: Iterable[str]) -> None:
    """Raise LabError for a field that holds neither a text nor None."""
    for name in names:
        value = getattr(recipe, name)
        if not isinstance(value, str | None):
            raise LabError(f"{name} is {value!r}: it must be a text.")


def check_numbers(recipe: Any, names: Iterable[str], kind: type[int] | type[float] = int) -> None:
    """Raise LabError for a field that holds neither a number of a kind nor None."""
    for name in names:
        value = getattr(recipe, name)
        wanted = int if kind is int else (int, float)
        if isinstance(value, bool) or not (value is None or isinstance(value, wanted)):
            whole = "whole " if kind is int else ""
            raise LabError(f"{name} is {value!r}: it must be a {whole}number.")


def placed(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe as data, its files and folders named in one way, to be compared with another."""
    found = dict(recipe)
    for name in ("model", "adapter"):
        if isinstance(found.get(name), str):
            found[name] = same_place(found[name])
    if isinstance(found.get("data"), list):
        found["data"] = [same_source(str(spec)) for spec in found["data"]]
    return found
