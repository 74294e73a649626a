"""The "known" prompts of ROME (Meng et al. 2022, arXiv 2202.05262).

The cloze is the record's ``prompt``, which goes on with the attribute; the counter answer is the
attribute of another record of the same Wikidata property.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from os import PathLike

from lab.data.conflicts.conflict import Conflict, Conflicts
from lab.data.conflicts.lines import records
from lab.data.conflicts.recorded import other_answer, recorded
from lab.data.fields import Record


def read(path: str | PathLike[str]) -> Conflicts:
    """The conflicts of a file of known prompts."""
    found = list(records(path, "list"))
    answers: Mapping[str, list[str]] = defaultdict(list)
    for record in found:
        answers[record.filled("relation_id")].append(record.filled("attribute"))
    return Conflicts.gather(_conflict(record, answers) for record in found)


def _conflict(record: Record, answers: Mapping[str, Sequence[str]]) -> Conflict | str:
    relation, memory = record.filled("relation_id"), record.filled("attribute")
    identity = f"known-{record.get('known_id', int)}"
    counter = other_answer(identity, answers[relation], [memory])
    if counter is None:
        return f"{record.where}: the property {relation} has no other answer."
    return recorded(
        record.where,
        id=identity,
        dataset="known",
        relation=relation,
        subject=record.filled("subject"),
        cloze=record.filled("prompt"),
        memory=memory,
        counter=counter,
    )
