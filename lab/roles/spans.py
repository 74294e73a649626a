"""From characters to tokens: which base span and which marks each token belongs to."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from lab.roles.layout import Piece

Offsets = Sequence[tuple[int, int]]


def token_pieces(pieces: Sequence[Piece], offsets: Offsets) -> tuple[int, ...]:
    """For each token the index of the piece that it is counted to.

    A token that straddles pieces goes to the span that holds most of its characters, not
    counting white space unless there is nothing else; of equals, to the later one. So " Paris"
    goes to the candidate and not to the space of the heading before it, and ".\\n\\n" to the
    sentence that it ends. A token of no characters goes to the piece in which it stands.
    """
    ends = list(accumulate(len(piece.text) for piece in pieces))
    return tuple(_piece_of(pieces, ends, start, end) for start, end in offsets)


def _piece_of(pieces: Sequence[Piece], ends: Sequence[int], start: int, end: int) -> int:
    first = min(bisect_right(ends, start), len(pieces) - 1)
    if end <= ends[first]:
        return first
    last = min(bisect_left(ends, end), len(pieces) - 1)
    solid: Counter[str] = Counter()
    every: Counter[str] = Counter()
    holder = {}
    for i in range(first, last + 1):
        begin = ends[i] - len(pieces[i].text)
        part = pieces[i].text[max(start - begin, 0) : end - begin]
        solid[pieces[i].span] += sum(not character.isspace() for character in part)
        every[pieces[i].span] += len(part)
        holder[pieces[i].span] = i
    counts = solid if any(solid.values()) else every
    return max((count, holder[span]) for span, count in counts.items())[1]


def tokens_in(offsets: Offsets, start: int, end: int) -> range:
    """The tokens that overlap the characters ``start`` to ``end`` by at least one character.

    ``offsets`` never go backwards, so these tokens stand together, but for empty ones.
    """
    first = bisect_right(offsets, start, key=lambda offset: offset[1])
    return range(first, bisect_left(offsets, end, key=lambda offset: offset[0]))


def mark_tokens(pieces: Sequence[Piece], offsets: Offsets) -> dict[str, tuple[int, ...]]:
    """For each mark that occurs, the tokens that overlap one of its places, ascending."""
    found: dict[str, set[int]] = {}
    begin = 0
    for piece in pieces:
        for name, start, end in piece.marks:
            inside = tokens_in(offsets, begin + start, begin + end)
            solid = (i for i in inside if offsets[i][0] < offsets[i][1])
            found.setdefault(name, set()).update(solid)
        begin += len(piece.text)
    return {name: tuple(sorted(tokens)) for name, tokens in found.items() if tokens}
