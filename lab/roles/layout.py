"""The text of a prompt as pieces: which part says what, in which order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lab.data.example import Example, Mark
from lab.data.text import whole_words
from lab.roles.roles import HEADINGS, LAYOUTS, Layout, Role, Task
from lab.roles.shield import Shield, Shielded

Ranges = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text that belongs to one base span.

    ``marks`` are (mark, start, end) in the piece's own characters; ``data`` says that the text
    comes from an example or a model, not from us.
    """

    text: str
    span: str
    data: bool = False
    marks: Ranges = ()


@dataclass(frozen=True, slots=True)
class Content:
    """All data that a prompt shows, shielded, as pieces without headings."""

    titles: tuple[Piece, ...]
    passages: tuple[Piece, ...]
    question: Piece
    candidate: Piece
    broken: tuple[str, ...]


def read_content(example: Example, candidate: str | None, shield: Shield) -> Content:
    """What an example and a candidate contribute to every prompt, whatever the role."""
    passages = [shield(passage.text) for passage in example.passages]
    titles = [shield(passage.title) for passage in example.passages]
    question, answer = shield(example.question), shield(candidate or "")
    marks: list[list[tuple[str, int, int]]] = [[] for _ in passages]
    for name, places in (("evidence", example.evidence), ("answer", example.answer_marks)):
        for mark in places:
            marks[mark.passage].append((name, *_shifted(passages[mark.passage], mark)))
    for i, passage in enumerate(example.passages):
        for start, end in mentions(candidate or "", passage.text):
            marks[i].append(("mention", *passages[i].range(start, end)))
    return Content(
        titles=tuple(Piece(t.text, "template", True) for t in titles),
        passages=tuple(
            Piece(p.text, "context", True, tuple(m)) for p, m in zip(passages, marks, strict=True)
        ),
        question=Piece(question.text, "question", True),
        candidate=Piece(answer.text, "candidate", True),
        broken=tuple(s for p in (*titles, *passages, question, answer) for s in p.found),
    )


def _shifted(passage: Shielded, mark: Mark) -> tuple[int, int]:
    return passage.range(mark.start, mark.end)


def mentions(candidate: str, text: str) -> list[tuple[int, int]]:
    """Where a candidate stands in a text as whole words, whatever its case and line breaks.

    As `lab.data.text.whole_words` finds it, so a number is not found inside a longer one. A
    candidate without a letter or a digit stands nowhere.
    """
    if not any(character.isalnum() for character in candidate):
        return []
    return whole_words(text, candidate, ignore_case=True)


def compose(
    content: Content,
    role: Role,
    layout: Layout,
    verdict_words: tuple[str, str],
    tasks: Mapping[str, Task],
    filler: str = "",
) -> tuple[Piece, ...]:
    """The pieces of the user message for a role, in order, none of them empty.

    Parts are set apart by an empty line. The message neither begins nor ends with white space, so
    that a chat template which trims it changes nothing.
    """
    task = tasks[role.task]
    words = verdict_words[::-1] if role.labels_swapped else verdict_words
    instruction = worded(task.instruction, words, "instruction")
    if role.framing:
        instruction = _after(f"{role.framing} ", instruction)
    parts: Mapping[str, Sequence[Piece]] = {
        "instruction": [_heading("instruction"), instruction],
        "context": _context(content),
        "question": [_heading("question"), content.question],
        "candidate": _candidate(content, role, filler),
        "cue": [worded(task.cue, words, "cue")],
    }
    order = list(LAYOUTS[layout])
    if role.candidate == "first":
        order.remove("candidate")
        order.insert(order.index("context"), "candidate")
    pieces: list[Piece] = []
    for name in order:
        if parts[name]:
            pieces += [Piece("\n\n", "template")] if pieces else []
            pieces += parts[name]
    return tuple(piece for piece in pieces if piece.text)


def _heading(part: str) -> Piece:
    return Piece(HEADINGS[part], "template")


def _context(content: Content) -> list[Piece]:
    pieces = [_heading("context")]
    for i, (title, passage) in enumerate(zip(content.titles, content.passages, strict=True)):
        pieces += [Piece("\n\n", "template")] if i else []
        pieces += [title, Piece("\n", "template")] if title.text else []
        pieces.append(passage)
    return pieces


def _candidate(content: Content, role: Role, filler: str) -> list[Piece]:
    if role.candidate == "none" or (role.candidate == "filler" and not filler):
        return []
    if role.candidate == "filler":
        return [Piece(filler, "template")]
    return [_heading("candidate"), content.candidate]


def worded(template: str, verdict_words: tuple[str, str], span: str) -> Piece:
    """A piece of our own words in which the verdict words stand, in this order, and are marked."""
    labels = dict(zip(("{first}", "{second}"), verdict_words, strict=True))
    text, marks = "", []
    for part in re.split(r"(\{first\}|\{second\})", template):
        word = labels.get(part, part)
        if part in labels:
            marks.append(("labels", len(text), len(text) + len(word)))
        text += word
    return Piece(text, span, False, tuple(marks))


def _after(lead: str, piece: Piece) -> Piece:
    """The piece with words of ours before it."""
    marks = tuple((name, a + len(lead), b + len(lead)) for name, a, b in piece.marks)
    return replace(piece, text=lead + piece.text, marks=marks)
