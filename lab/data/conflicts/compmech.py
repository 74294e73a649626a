"""Facts and counterfacts of "Competition of Mechanisms" (Ortu et al. 2024, arXiv 2402.11655).

Both answers are the set's own. Its prompts restate the fact behind the word "Redefine:"; here the
restated sentence is the passage and the instruction is the lab's. Facts whose answer is a part of
the prompt ("IBM 704, created by") are skipped: they can be copied without a memory.
"""

from __future__ import annotations

from os import PathLike

from lab.data.conflicts.conflict import Conflict, Conflicts
from lab.data.conflicts.lines import records
from lab.data.conflicts.recorded import recorded
from lab.data.fields import Record


def read(path: str | PathLike[str]) -> Conflicts:
    """The conflicts of a file of fact and counterfact pairs."""
    return Conflicts.gather(
        _conflict(record, index) for index, record in enumerate(records(path, "list"))
    )


def _conflict(record: Record, index: int) -> Conflict | str:
    cloze, subject = record.filled("base_prompt"), record.filled("subject").strip('"')
    # The set names no relation: the prompt without its subject is the nearest thing to one.
    relation = cloze.replace(subject, "{}") if subject in cloze else "other"
    return recorded(
        record.where,
        id=f"compmech-{index}",
        dataset="compmech",
        relation=relation,
        subject=subject,
        cloze=cloze,
        memory=record.filled("target_true"),
        counter=record.filled("target_new"),
    )
