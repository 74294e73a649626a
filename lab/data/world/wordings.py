"""The wordings of all tables: those for every kind of thing, and what keeps the splits apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from lab.data.world.facts import Listing, Phrase, Relation, Split, of_split
from lab.data.world.kinds import kinds, read_table

Frame = tuple[str, str]
"""The first and the last sentence of a passage; either may be empty."""


def discourse(name: str, split: Split) -> tuple[str, ...]:
    """A row of the table ``discourse``, as far as it belongs to the split."""
    return of_split(_table()[name], split)


def frames(split: Split) -> tuple[Frame, ...]:
    """The first and last sentences for passages of the split."""
    rows = _table()["frames"]
    kept = of_split([str(index) for index in range(len(rows))], split)
    return tuple((rows[int(index)][0], rows[int(index)][1]) for index in kept)


@cache
def _table() -> dict[str, Any]:
    return read_table("discourse")


def rows() -> Iterator[Sequence[str]]:
    """Every row of wordings of which the last quarter is for the test split."""
    for name, row in _table().items():
        yield [" ".join(frame) for frame in row] if name == "frames" else row
    for kind in kinds().values():
        yield from (kind.is_a, kind.fillers, kind.headings)
        for pair in kind.sums:
            yield from (pair.total, pair.more, pair.less)
        for relation in kind.relations:
            yield from _rows(relation)


def _rows(relation: Relation) -> Iterator[Sequence[str]]:
    yield from (relation.tells, relation.says, relation.tags, relation.asks, relation.backs)
    yield from (relation.refs, relation.same, relation.event, relation.when, relation.counts)
    if relation.scale is not None:
        yield from (relation.scale.gap, relation.scale.yesno, relation.scale.total)


@cache
def vocabulary() -> frozenset[str]:
    """All words of the wordings and pools, in small letters: no invented name may be one."""
    texts = [text for row in rows() for text in row]
    for kind in kinds().values():
        texts += [kind.noun, kind.plural, *kind.nouns]
        for relation in kind.relations:
            if isinstance(relation.value, Phrase | Listing):
                texts += relation.value.pool
    return frozenset(re.findall(r"[^\W\d_]+", " ".join(texts).casefold()))
