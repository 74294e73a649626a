"""Attention rows as bytes small enough for a page, and back.

A row holds the attention of one head's decision on every token, as ``round(255 * attention)``.
Zeros are not stored. Each row is a little-endian 16-bit count and then, per token kept, the gap to
the token before it and its value; a gap byte of 255 means 255 tokens further and no value yet.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEVELS = 255
QUANTISATION_ERROR = 0.5 / LEVELS
"""How far a stored attention can be from the measured one: half a step."""

_ESCAPE = 255
_HEADER = 2


def quantise(attention: NDArray[np.floating[Any]]) -> NDArray[np.uint8]:
    """Attention in [0, 1] as bytes, off by at most QUANTISATION_ERROR; missing values become 0."""
    steps = np.round(LEVELS * np.clip(np.nan_to_num(attention), 0, 1))
    return np.asarray(steps, dtype=np.uint8)


def pack_rows(rows: NDArray[np.uint8]) -> bytes:
    """The non-zero entries of a (row, token) table as one string of bytes."""
    row, token = np.nonzero(rows)
    first = np.r_[True, row[1:] != row[:-1]] if row.size else np.zeros(0, dtype=bool)
    previous = np.where(first, -1, np.r_[-1, token[:-1]][: token.size])
    gap = token - previous - 1
    escapes = gap // _ESCAPE
    size = escapes + 2
    counts = np.bincount(row, minlength=len(rows))
    bytes_before = np.cumsum(np.r_[0, np.bincount(row, weights=size, minlength=len(rows))])
    header = bytes_before[:-1].astype(int) + _HEADER * np.arange(len(rows))
    out = np.full(int(bytes_before[-1]) + _HEADER * len(rows), _ESCAPE, dtype=np.uint8)
    out[header], out[header + 1] = counts & 0xFF, counts >> 8
    end = np.cumsum(size) + _HEADER * (row + 1)
    out[end - 2], out[end - 1] = gap % _ESCAPE, rows[row, token]
    return out.tobytes()


def unpack_rows(data: bytes, n_rows: int, n_tokens: int) -> NDArray[np.uint8]:
    """The (row, token) table that ``pack_rows`` packed."""
    rows = np.zeros((n_rows, n_tokens), dtype=np.uint8)
    at = 0
    for row in range(n_rows):
        count = data[at] | data[at + 1] << 8
        at += _HEADER
        token = -1
        for _ in range(count):
            while data[at] == _ESCAPE:
                token, at = token + _ESCAPE, at + 1
            token += data[at] + 1
            rows[row, token] = data[at + 1]
            at += 2
    return rows


def base64_text(data: bytes | NDArray[Any]) -> str:
    """Bytes, or an array's little-endian bytes, as base64 text."""
    if isinstance(data, np.ndarray):
        data = data.astype(data.dtype.newbyteorder("<")).tobytes()
    return base64.b64encode(data).decode("ascii")


_ESCAPED = {character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def script_json(value: object) -> str:
    """JSON that can stand inside a script element, whatever text it holds.

    Markup characters and line separators are written as escapes, numbers that JSON lacks (NaN,
    infinities) as null, and lone surrogates as replacement characters.
    """
    text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPED.items():
        text = text.replace(character, escape)
    return text.encode("utf-8", "replace").decode("utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def rounded(values: Any, digits: int = 4) -> list[float | None]:
    """A flat list of numbers, rounded, with null for what is missing."""
    flat = np.asarray(values, dtype=float).reshape(-1)
    return [round(x, digits) if math.isfinite(x) else None for x in flat.tolist()]
