"""What a reader gives back: the examples of a source, and what was met while reading them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from lab.data.example import Example


@dataclass(frozen=True, slots=True)
class Examples(Sequence[Example]):
    """A sequence of examples that knows what was left out.

    Attributes:
        items: the examples, in the order of their source.
        skipped: one sentence for each record that was left out, saying which and why.
        pool: all examples of the source, of which ``items`` may be a selection: from them come
            the wrong candidates (`lab.data.candidate_rungs`).
    """

    items: tuple[Example, ...]
    skipped: tuple[str, ...] = ()
    pool: tuple[Example, ...] = ()

    @classmethod
    def gather(cls, results: Iterable[Example | str]) -> Examples:
        """What a reader found: examples, and for a record left out the sentence saying why."""
        items: list[Example] = []
        skipped: list[str] = []
        for result in results:
            if isinstance(result, str):
                skipped.append(result)
            else:
                items.append(result)
        return cls(tuple(items), tuple(skipped), tuple(items))

    @property
    def notes(self) -> tuple[str, ...]:
        """The oddities of the examples, each with the id of its example."""
        return tuple(f"{item.id}: {note}" for item in self.items for note in item.notes)

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Example, ...]: ...
    def __getitem__(self, index: int | slice) -> Example | tuple[Example, ...]:
        return self.items[index]

    def __iter__(self) -> Iterator[Example]:
        return iter(self.items)
