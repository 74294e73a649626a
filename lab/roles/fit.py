"""Dropping passages that hold no evidence, so that an example fits a model's context."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from lab.data.example import Example, Mark

DROPPED = "dropped_passages"
"""Key of ``Example.meta`` under which a trimmed example lists the passages that it lost, by their
place in the original example, counted from 1."""


def droppable(example: Example, sizes: Sequence[int]) -> tuple[int, ...]:
    """Indices of the passages that may go, in the order in which they go.

    Passages with an evidence or answer mark never go. Where an answerable example has no mark at
    all, nobody knows which passages it needs, and none may go. Largest first (``sizes`` in
    tokens), so that few have to; of equals the later one.
    """
    marked = {mark.passage for mark in (*example.evidence, *example.answer_marks)}
    if example.answerable and not marked:
        return ()
    free = [i for i in range(len(example.passages)) if i not in marked]
    order = sorted(free, key=lambda i: (-sizes[i], -i))
    # At least one passage stays: a prompt without any would be another experiment.
    return tuple(order) if marked else tuple(order[:-1])


def drop(example: Example, indices: Collection[int]) -> Example:
    """The example without these passages, its marks renumbered, and the loss noted."""
    if not indices:
        return example
    lost = {int(number) - 1 for number in example.meta.get(DROPPED, "").split(", ") if number}
    total = len(example.passages) + len(lost)
    originals = [i for i in range(total) if i not in lost]
    lost |= {originals[i] for i in indices}
    numbers = ", ".join(str(i + 1) for i in sorted(lost))
    kept = [i for i in range(len(example.passages)) if i not in indices]
    place = {old: new for new, old in enumerate(kept)}

    def moved(marks: Sequence[Mark]) -> tuple[Mark, ...]:
        return tuple(replace(m, passage=place[m.passage]) for m in marks if m.passage in place)

    trimmed = replace(
        example,
        passages=tuple(example.passages[i] for i in kept),
        evidence=moved(example.evidence),
        answer_marks=moved(example.answer_marks),
        meta={**example.meta, DROPPED: numbers},
    )
    notes = tuple(note for note in example.notes if note != dropped_note(example))
    return replace(trimmed, notes=(*notes, dropped_note(trimmed)))


def dropped_note(example: Example) -> str:
    """The sentence that says which passages an example has lost; empty if none."""
    numbers = example.meta.get(DROPPED, "")
    total = len(example.passages) + len(numbers.split(", "))
    return f"dropped passage {numbers} of {total} to fit the model's context" if numbers else ""
