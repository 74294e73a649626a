"""Reading the tables: what kinds of things there are, and what can be told and asked of each."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from lab.data.world.facts import (
    Date,
    Kind,
    Link,
    Listing,
    Number,
    Phrase,
    Relation,
    Scale,
    Sum,
    ValueSpec,
    Year,
)

DOMAINS = (
    "person", "town", "river", "ship", "expedition", "ware", "machine", "bridge", "festival",
    "book", "play", "school", "species", "storm", "dish", "club", "council", "railway",
    "observatory",
)  # fmt: skip
"""The kinds that a world can be about; of the others there are only names."""
NAMES_ONLY = ("lake",)

Pools = Mapping[str, Phrase]


@cache
def kinds() -> Mapping[str, Kind]:
    """All kinds by name, as the tables in ``lab/data/world/tables`` describe them."""
    shared = read_table("shared")
    pools = {
        sort: Phrase(sort, tuple(pool), common=part == "common")
        for part in ("split", "common")
        for sort, pool in shared[part].items()
    }
    return {name: _kind(name, read_table(name), pools) for name in (*DOMAINS, *NAMES_ONLY)}


def read_table(name: str) -> dict[str, Any]:
    """One of the tables in ``lab/data/world/tables``."""
    table = files("lab.data.world.tables") / f"{name}.toml"
    return tomllib.loads(table.read_text("utf-8"))


def _kind(name: str, table: dict[str, Any], shared: Pools) -> Kind:
    own = {sort: Phrase(sort, tuple(pool)) for sort, pool in table.get("pools", {}).items()}
    pools = {**shared, **own}
    return Kind(
        name=name,
        noun=table["noun"],
        plural=table["plural"],
        namer=table["namer"],
        pronoun=table["pronoun"],
        be=table["be"],
        nouns=_texts(table, "nouns"),
        is_a=_texts(table, "is_a"),
        relations=tuple(_relation(name, row, pools) for row in table.get("relations", ())),
        fillers=_texts(table, "fillers"),
        headings=_texts(table, "headings"),
        sums=tuple(_sum(name, row) for row in table.get("sums", ())),
    )


def _relation(kind: str, row: dict[str, Any], pools: Pools) -> Relation:
    return Relation(
        name=f"{kind}.{row['name']}",
        value=_value(row["value"], pools),
        tells=_texts(row, "tells"),
        says=_texts(row, "says"),
        asks=_texts(row, "asks"),
        tags=_texts(row, "tags"),
        backs=_texts(row, "backs"),
        refs=_texts(row, "refs"),
        same=_texts(row, "same"),
        event=_texts(row, "event"),
        when=_texts(row, "when"),
        scale=_scale(row["scale"]) if "scale" in row else None,
        counts=_texts(row, "counts"),
        mutual=row.get("mutual", False),
        guessable=row.get("guessable", False),
    )


def _value(text: str, pools: Pools) -> ValueSpec:
    """A value as the tables write it, such as ``number 14 420 1 metres`` or ``year 0 0``."""
    sort, *rest = text.split()
    match sort, rest:
        case "link", [kind, low, high]:
            return Link(kind, int(low), int(high))
        case "year", [low, high]:
            return Year(int(low), int(high))
        case "number", [low, high, step, unit]:
            return Number(int(low), int(high), unit, int(step))
        case "phrase", [name]:
            return pools[name]
        case "list", [name, low, high, unit]:
            return Listing(name, pools[name].pool, int(low), int(high), unit)
        case "date", []:
            return Date()
    raise ValueError(f"no such value: {text}")


def _scale(row: dict[str, Any]) -> Scale:
    return Scale(
        more=row["more"],
        less=row["less"],
        most=row["most"],
        least=row["least"],
        over=row["over"],
        gap=_texts(row, "gap"),
        yesno=_texts(row, "yesno"),
        total=_texts(row, "total"),
    )


def _sum(kind: str, row: dict[str, Any]) -> Sum:
    return Sum(
        one=f"{kind}.{row['one']}",
        two=f"{kind}.{row['two']}",
        unit=row["unit"],
        total=_texts(row, "total"),
        more=_texts(row, "more"),
        less=_texts(row, "less"),
    )


def _texts(table: dict[str, Any], name: str) -> tuple[str, ...]:
    return tuple(table.get(name, ()))
