"""One fact with its two passages, and a sequence of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, overload

from lab.data.example import Example, Mark, Passage
from lab.data.folding import ARTICLES
from lab.data.text import sentences_with, whole_words
from lab.errors import LabError

Stated = Literal["original", "counterfactual"]
"""Which of a conflict's two passages."""

PASSAGES: tuple[Stated, Stated] = ("original", "counterfactual")


@dataclass(frozen=True, slots=True)
class Conflict:
    """A fact that a model may know, with a passage that states it and one that states another.

    Attributes:
        id: unique within its source.
        dataset: where it came from: ``builtin``, ``lre``, ``known`` or ``compmech``.
        relation: what kind of fact it is; shares of results are also told by relation.
        subject: what the fact is about.
        question: asks for the answer, without naming either.
        cloze: the beginning of a sentence that the answer would go on with; asks the model
            without any passage.
        memory: the true answer, which the model may have in memory.
        counter: another answer of the same type, which only the counterfactual passage gives.
        original: the passage that states the true answer, exactly once.
        counterfactual: the same passage with ``counter`` in that one place.
        aliases: other true answers and other spellings of ``memory``; none stands in the
            counterfactual passage.
        cluster: conflicts on the same subject share this key; intervals resample clusters. The
            subject itself, in small letters, unless given.
        notes: oddities met while reading, as short sentences.

    Raises:
        LabError: a text is empty, the answers are the same, an answer's first word stands in the
            question or the cloze, or the passages break what is said above.
    """

    id: str
    dataset: str
    relation: str
    subject: str
    question: str
    cloze: str
    memory: str
    counter: str
    original: str
    counterfactual: str
    aliases: tuple[str, ...] = ()
    cluster: str = ""
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.cluster:
            object.__setattr__(self, "cluster", slug(self.subject))
        for problem in _problems(self):
            raise LabError(f"Conflict {self.id or 'without id'}: {problem}")

    def passage(self, stated: Stated) -> str:
        """The text of the original or of the counterfactual passage."""
        return self.original if stated == "original" else self.counterfactual

    def answer(self, stated: Stated) -> str:
        """The answer that a passage gives."""
        return self.memory if stated == "original" else self.counter

    def example(self, stated: Stated) -> Example:
        """The question on one of the passages, as an Example in which that passage is right.

        Its id is the conflict's with ``/original`` or ``/counterfactual`` behind it. Evidence is
        the sentence that gives the answer; the other answer is the distractor.
        """
        answer, text = self.answer(stated), self.passage(stated)
        passages = (Passage(text),)
        marks = tuple(Mark(0, start, end) for start, end in _places(text, answer))
        aliases = self.aliases if stated == "original" else ()
        return Example(
            id=f"{self.id}/{stated}",
            dataset=self.dataset,
            family=self.relation,
            question=self.question,
            passages=passages,
            answers=((answer,), *((alias,) for alias in aliases)),
            evidence=sentences_with(passages, marks),
            answer_marks=marks,
            distractors=(self.counter if stated == "original" else self.memory,),
            cluster=self.cluster,
            notes=self.notes,
            meta={"subject": self.subject, "passage": stated},
        )


@dataclass(frozen=True, slots=True)
class Conflicts(Sequence[Conflict]):
    """A sequence of conflicts that knows what its source held besides.

    Attributes:
        items: the conflicts, in the order of their source.
        skipped: one sentence for each record that gives no conflict, saying which and why.
    """

    items: tuple[Conflict, ...]
    skipped: tuple[str, ...] = ()

    @classmethod
    def gather(cls, results: Iterable[Conflict | str]) -> Conflicts:
        """What a reader found: conflicts, and for a record left out the sentence saying why."""
        found = list(results)
        return cls(
            tuple(item for item in found if isinstance(item, Conflict)),
            tuple(item for item in found if isinstance(item, str)),
        )

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Conflict: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Conflict, ...]: ...
    def __getitem__(self, index: int | slice) -> Conflict | tuple[Conflict, ...]:
        return self.items[index]

    def __iter__(self) -> Iterator[Conflict]:
        return iter(self.items)


def slug(text: str) -> str:
    """A text as a key: small letters and digits, all else a hyphen."""
    return re.sub(r"\W+", "-", text.casefold()).strip("-")


def _problems(conflict: Conflict) -> Iterator[str]:
    """What breaks the rules, as sentences that name the field."""
    for name in ("id", "question", "cloze", "memory", "counter", "original", "counterfactual"):
        text = getattr(conflict, name)
        if not text or text != text.strip():
            yield f"{name} is {text!r}: it must not be empty, nor begin or end with white space."
            return
    right = (conflict.memory, *conflict.aliases)
    if conflict.counter.casefold() in {text.casefold() for text in right}:
        yield f"counter is {conflict.counter!r}, which is also a true answer: choose another."
        return
    for name in ("question", "cloze"):
        for answer in (conflict.memory, conflict.counter):
            first = answer.split()[0]
            if _places(getattr(conflict, name), answer if first.lower() in ARTICLES else first):
                yield f"{name} names the answer {answer!r}, which could be copied from it."
    yield from _passage_problems(conflict, right)


def _passage_problems(conflict: Conflict, right: tuple[str, ...]) -> Iterator[str]:
    places = _places(conflict.original, conflict.memory)
    if len(places) != 1:
        yield (
            f"original holds the answer {conflict.memory!r} {len(places)} times: it must hold it "
            "exactly once, as whole words."
        )
        return
    start, end = places[0]
    wanted = conflict.original[:start] + conflict.counter + conflict.original[end:]
    if conflict.original[start:end] != conflict.memory or wanted != conflict.counterfactual:
        yield (
            f"counterfactual must be the original passage with {conflict.counter!r} in the place "
            f"of {conflict.memory!r} and no other change."
        )
        return
    if len(_places(conflict.counterfactual, conflict.counter)) != 1:
        yield f"counterfactual must hold {conflict.counter!r} once: it stands elsewhere too."
    for answer in right:
        if _places(conflict.counterfactual, answer):
            yield f"counterfactual still holds a true answer, {answer!r}: reword the passage."


def _places(text: str, answer: str) -> list[tuple[int, int]]:
    return whole_words(text, answer, ignore_case=True)
