"""What is asked: one question, its passages, its gold answers, and what may be wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Metric = Literal["squad", "drop", "hotpotqa", "musique"]

Answer = tuple[str, ...]
"""One gold alternative: a tuple of answer spans. One span for all benchmarks but DROP,
whose answers may be lists ("Smith and Jones")."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text that may hold the answer. ``title`` is empty where a benchmark has none."""

    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters ``start`` to ``end`` (half-open, code points) of ``passages[passage].text``."""

    passage: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Example:
    """One question with all that is known about it, whatever benchmark it came from.

    Attributes:
        id: unique within its source.
        dataset: where it came from: ``builtin``, ``squad2``, ``drop``, ``hotpotqa``, ``musique``,
            or the stem of a user's JSONL file.
        family: kind of question inside the dataset; intervals are also given per family.
        question: the question, white space at the ends removed.
        passages: one or more, in the order in which the model sees them.
        answers: gold alternatives; empty means that the passages do not answer the question.
        evidence: character spans that support the answer, where the source gives them.
        answer_marks: character spans where a gold answer stands in the passages. Empty where the
            answer is counted, computed, yes/no, or absent.
        distractors: plausible wrong answers of the same type, best first.
        metric: which official metric scores an answer to it.
        cluster: key of the passages that an example needs, by their texts: all of them, but for
            HotpotQA and MuSiQue those that hold evidence; a JSON-lines file may give its own.
            Intervals resample clusters. Examples share it only where they need the same set of
            passages: two that have just some of them in common are in two clusters.
        notes: oddities met while reading, as short sentences (they end up in the results).
        meta: whatever else the source says (level, hops, ...), values as strings.
    """

    id: str
    dataset: str
    family: str
    question: str
    passages: tuple[Passage, ...]
    answers: tuple[Answer, ...]
    evidence: tuple[Mark, ...] = ()
    answer_marks: tuple[Mark, ...] = ()
    distractors: tuple[str, ...] = ()
    metric: Metric = "squad"
    cluster: str = ""
    notes: tuple[str, ...] = ()
    meta: Mapping[str, str] = field(default_factory=dict)

    @property
    def answerable(self) -> bool:
        """Whether the passages answer the question."""
        return bool(self.answers)

    @property
    def gold(self) -> str:
        """The first gold answer as one readable string; empty where unanswerable."""
        return ", ".join(self.answers[0]) if self.answers else ""

    def marked(self, mark: Mark) -> str:
        """The text that a mark covers."""
        return self.passages[mark.passage].text[mark.start : mark.end]
