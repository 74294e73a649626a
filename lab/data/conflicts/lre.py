"""LRE (Hernandez et al. 2024, arXiv 2308.09124): relations, one a file, with subjects and objects.

The cloze is the relation's first prompt for use without examples that is no question, the
question its first question, and the passage's sentence the last of its other prompts, so that
cloze and passage are worded differently where the relation allows it. The counter answer is
another object of the relation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from lab.data.conflicts.conflict import Conflict, Conflicts, slug
from lab.data.conflicts.lines import records
from lab.data.conflicts.recorded import other_answer, recorded
from lab.data.fields import Record, read_json
from lab.errors import LabError

_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


@dataclass(frozen=True, slots=True)
class Asked:
    """A subject of a relation: where it stands first, and all objects that it has."""

    where: str
    id: str
    relation: str
    subject: str
    right: tuple[str, ...]


def read(path: str | PathLike[str]) -> Conflicts:
    """The conflicts of a relation's file, or of all ``.json`` files in a folder and below it."""
    place = Path(path)
    if not place.exists():
        raise LabError(
            f"There is no file or folder {place}; name an LRE folder or one of its files."
        )
    found = sorted(place.rglob("*.json")) if place.is_dir() else [place]
    if not found:
        raise LabError(f"{place} holds no .json file; name a folder with LRE relations.")
    return Conflicts.gather(item for file in found for item in _relation(file))


def _relation(file: Path) -> Iterator[Conflict | str]:
    top = Record(read_json(file, "object"), str(file))
    name = top.filled("name")
    templates = _templates(top, "prompt_templates")
    zero_shot = _templates(top, "prompt_templates_zs")
    pairs = [
        (record.where, _text(record, "subject"), _text(record, "object"))
        for record in records(file, "object", "samples")
    ]
    answers: Mapping[str, dict[str, None]] = defaultdict(dict)
    for _, subject, answer in pairs:
        answers[subject][answer] = None
    objects = list(dict.fromkeys(answer for _, _, answer in pairs))
    done: set[str] = set()
    for index, (where, subject, _) in enumerate(pairs):
        if subject in done:
            yield f"{where}: the subject {subject!r} stood before; its answers were put together."
            continue
        done.add(subject)
        asked = Asked(where, f"{slug(name)}-{index}", name, subject, tuple(answers[subject]))
        yield _conflict(asked, objects, templates, zero_shot)


def _conflict(
    asked: Asked, objects: Sequence[str], templates: Sequence[str], zero_shot: Sequence[str]
) -> Conflict | str:
    counter = other_answer(f"{asked.relation}/{asked.subject}", objects, asked.right)
    if counter is None:
        return f"{asked.where}: the relation has no answer that begins otherwise."
    questions = [text for text in zero_shot if "?" in text]
    question = questions[0].partition("?")[0] + "?" if questions else ""
    # Some questions list the answers to choose from, and a question may not name any.
    if any(answer.casefold() in question.casefold() for answer in (*asked.right, counter)):
        question = ""
    plain = [text for text in zero_shot if "?" not in text] or templates
    return recorded(
        asked.where,
        id=asked.id,
        dataset="lre",
        relation=asked.relation,
        subject=asked.subject,
        cloze=plain[0].replace("{}", asked.subject),
        stated=templates[-1].replace("{}", asked.subject),
        question=question.replace("{}", asked.subject),
        memory=asked.right[0],
        counter=counter,
        aliases=asked.right[1:],
        notes=("The source gives several answers.",) if asked.right[1:] else (),
    )


def _templates(record: Record, name: str) -> list[str]:
    found = record.texts(name)
    for index, text in enumerate(found):
        if "{}" not in text:
            raise LabError(f"{record.where}: {name}[{index}] has no {{}} for the subject.")
    if not found:
        raise LabError(f"{record.where}: field {name!r} is empty.")
    return found


def _text(record: Record, name: str) -> str:
    """A field, with the escapes resolved that some files hold as plain text (``Bogot\\u00e1``)."""
    value = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), record.filled(name))
    return record.checked(value, name)
