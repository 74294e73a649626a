"""Items of a JSON list with the lines on which they begin, so that an error can name its line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from os import PathLike
from typing import Literal

from lab.data.fields import Record, read_json, read_text

_BLANK = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


def records(
    path: str | PathLike[str], top: Literal["list", "object"], field: str = ""
) -> Iterator[Record]:
    """The objects of a JSON file that is a list, or of one list field of a file that is an object.

    Raises:
        LabError: the file is not such JSON, the field is missing, or an item is no object; with
            the number of the item, counted from 0, and its line.
    """
    whole = read_json(path, top)
    values = whole if isinstance(whole, list) else Record(whole, str(path)).get(field, list)
    lines = _lines(read_text(path), field, len(values))
    for index, (value, line) in enumerate(zip(values, lines, strict=True)):
        name = f"{field}[{index}]" if field else f"record {index}"
        yield Record.of(value, f"{path}, {line}{name}")


def _lines(text: str, field: str, count: int) -> list[str]:
    """The line on which each item of the list begins, in words; empty where it is not found."""
    opening = re.search(rf'"{re.escape(field)}"\s*:\s*\[' if field else r"\[", text)
    position = opening.end() if opening else len(text)
    found, line, counted = [], 1, 0
    for _ in range(count):
        position = _skip(text, position)
        line, counted = line + text.count("\n", counted, position), position
        found.append(f"line {line}, ")
        try:
            position = _DECODER.raw_decode(text, position)[1]
        except json.JSONDecodeError:  # the name stands in another place of the file before
            return [""] * count
    return found


def _skip(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position
