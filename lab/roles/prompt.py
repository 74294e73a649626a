"""A rendered prompt: its text, its tokens, and what each token is part of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SPANS = (
    "sink", "template", "demonstrations", "instruction", "context", "question", "candidate", "cue",
)  # fmt: skip
"""The base spans. They partition the tokens of every prompt: each token is in exactly one.

sink: the first token, on which attention rests when it has nothing to do.
template: chat markup, headings such as "Passage:", paragraph titles, line breaks between parts,
and the neutral words that stand in the place of a candidate in ``generator_filler``.
demonstrations: worked questions before the real one, whole: their passages, questions, wording,
candidates, targets, and the markup from the first of their messages to the real one. It is what a
prompt without them lacks, and nothing in it counts to another span or to a mark.
instruction: what the model is told to do, wherever it stands.
context: the text of the passages.
question, candidate: the question; the answer to be judged.
cue: the words between the last of these parts and the decision ("Answer:", and what the chat
format puts after it, up to and including the last token).
"""

MARKS = ("evidence", "answer", "labels", "mention")
"""Sub-spans, which overlap base spans.

evidence: tokens of the gold evidence inside the context.
answer: tokens where a gold answer stands inside the context.
labels: the verdict words inside the instruction or the cue ("Yes", "No").
mention: tokens inside the context where the candidate's text stands as whole words, in any case, a
number not inside a longer one; generator prompts have it too, when they are rendered with a
candidate.

A token is in a mark if it overlaps it by at least one character.
"""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One example, asked in one role: what the model is fed and how it is named.

    Attributes:
        role: name of the role that rendered it, e.g. ``generator`` or ``evaluator``.
        example_id: id of the example it asks.
        text: the whole rendered text, chat markup included.
        token_ids: the ids that are fed, exactly (with a BOS token, if the model wants one).
        offsets: for each token its half-open character range in ``text``.
        spans: for each token the name of its base span (one of SPANS).
        marks: sub-span name (one of MARKS) to the token indices in it, ascending.
        candidate: the candidate it shows, or None where the role shows none.
        notes: what was changed to make it fit or safe, as short sentences.
    """

    role: str
    example_id: str
    text: str
    token_ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]
    spans: tuple[str, ...]
    marks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    candidate: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def decision(self) -> int:
        """Index of the last token: it predicts the first answer token, or the verdict."""
        return len(self.token_ids) - 1

    def __len__(self) -> int:
        return len(self.token_ids)

    def where(self, name: str) -> tuple[int, ...]:
        """Token indices of a base span or a sub-span, ascending."""
        if name in SPANS:
            return tuple(i for i, span in enumerate(self.spans) if span == name)
        return self.marks.get(name, ())

    def tokens(self) -> tuple[str, ...]:
        """The text of each token, as it stands in ``text``."""
        return tuple(self.text[start:end] for start, end in self.offsets)
