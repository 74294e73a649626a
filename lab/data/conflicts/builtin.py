"""The built-in conflicts: facts that small models know, with passages written for this project."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from lab.data.conflicts.conflict import Conflict, Conflicts, slug
from lab.data.fields import Record
from lab.errors import LabError

GAP = "{answer}"
"""Where the answer stands in a passage of the table."""

_FIELDS = frozenset({"subject", "question", "cloze", "memory", "aliases", "counter", "passage"})
_HEADER = re.compile(r"\s*\[\[\s*([\w-]+)\s*\]\]")


def read() -> Conflicts:
    """The built-in conflicts, in the order of the table."""
    table = files(__package__) / "facts.toml"
    return read_table(table.read_text("utf-8"), table.name)


def read_table(text: str, name: str) -> Conflicts:
    """The conflicts of a TOML text with one array of tables for each relation.

    Each fact has ``subject``, ``question``, ``cloze``, ``memory``, ``counter``, ``passage`` (with
    ``{answer}`` where the answer stands) and, if need be, ``aliases``. ``name`` is what errors
    call the text.

    Raises:
        LabError: the text is no TOML, or a fact breaks the rules of a Conflict; with the line.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"{name} is not TOML: {error}.") from None
    return Conflicts.gather(
        _conflict(record, relation) for relation, record in _facts(tables, text, name)
    )


def _facts(tables: Mapping[str, Any], text: str, name: str) -> Iterator[tuple[str, Record]]:
    """Each fact with its relation, in the order of the text."""
    seen: Counter[str] = Counter()
    for number, line in enumerate(text.split("\n"), start=1):
        header = _HEADER.match(line)
        if header and isinstance(tables.get(header[1]), list):
            relation = header[1]
            where = f"{name}, line {number} ({relation})"
            yield relation, Record.of(tables[relation][seen[relation]], where)
            seen[relation] += 1


def _conflict(record: Record, relation: str) -> Conflict:
    record.only(_FIELDS)
    subject, memory, counter = map(record.filled, ("subject", "memory", "counter"))
    passage = record.filled("passage")
    if passage.count(GAP) != 1:
        raise LabError(f"{record.where}: field 'passage' must hold {GAP} exactly once.")
    try:
        return Conflict(
            id=f"{slug(relation)}-{slug(subject)}",
            dataset="builtin",
            relation=relation,
            subject=subject,
            question=record.filled("question"),
            cloze=record.filled("cloze"),
            memory=memory,
            counter=counter,
            original=passage.replace(GAP, memory),
            counterfactual=passage.replace(GAP, counter),
            aliases=tuple(record.texts("aliases", [])),
        )
    except LabError as error:
        raise LabError(f"{record.where}: {error}") from None
