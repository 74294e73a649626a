"""Which token of one prompt is the same token of another: the position map between roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

from lab.errors import LabError
from lab.roles.prompt import Prompt

ALIGNED = ("context", "question", "candidate")
"""Base spans whose tokens can be the same in two prompts: they hold data, not wording."""


@dataclass(frozen=True, slots=True)
class PositionMap:
    """Positions of ``source`` and their counterparts in ``target``; see ``align``."""

    source: Prompt
    target: Prompt
    pairs: Mapping[int, int]

    def __call__(self, position: int) -> int:
        """The counterpart of a position; LabError where it has none."""
        if position in self.pairs:
            return self.pairs[position]
        length = len(self.source)
        if not 0 <= position < length:
            raise LabError(
                f"{_name(self.source)} has {length} tokens: there is no position {position}."
            )
        start, end = self.source.offsets[position]
        raise LabError(
            f"Position {position} ({self.source.text[start:end]!r}, in the "
            f"{self.source.spans[position]}) of {_name(self.source)} has no counterpart in "
            f"{_name(self.target)}: choose positions of the context, the question or the "
            "candidate that both prompts show, or the decision."
        )

    def of(self, positions: Iterable[int]) -> tuple[int, ...]:
        """The counterparts of several positions, in the same order."""
        return tuple(self(position) for position in positions)

    def inverse(self) -> PositionMap:
        """The map from ``target`` back to ``source``."""
        pairs = {there: here for here, there in self.pairs.items()}
        return PositionMap(self.target, self.source, MappingProxyType(pairs))


def align(source: Prompt, target: Prompt) -> PositionMap:
    """The position map from one prompt to another of the same model.

    The decision goes to the decision. A token of the context, the question or the candidate goes
    to the token with the same id and the same characters of that span, if the span's text is the
    same in both prompts. Everything else (wording, markup, demonstrations, a candidate that only
    one of them shows, tokens at a border that are cut differently) has no counterpart.
    Demonstrations have none even between prompts of one role, where their tokens are the same:
    they are asked like the prompt they stand in, so between roles their targets differ.
    """
    pairs = {}
    for span in ALIGNED:
        here, there = _places(source, span), _places(target, span)
        if here is not None and there is not None and here[0] == there[0]:
            pairs.update({i: there[1][key] for key, i in here[1].items() if key in there[1]})
    pairs.pop(source.decision, None)
    pairs = {i: j for i, j in pairs.items() if j != target.decision}
    pairs[source.decision] = target.decision
    return PositionMap(source, target, MappingProxyType(dict(sorted(pairs.items()))))


Place = tuple[int, int, int, int, int]
"""Run, characters from and to within the run, token id, how often that was seen before."""


def _places(prompt: Prompt, span: str) -> tuple[tuple[str, ...], dict[Place, int]] | None:
    """The text of a span, run by run, and the tokens in it by their place; None without it.

    Places count from a run's first character that is not white space, since a token may begin
    with white space that belongs to a heading.
    """
    texts: list[str] = []
    places: dict[Place, int] = {}
    seen: Counter[tuple[int, int, int, int]] = Counter()
    for name, group in groupby(range(len(prompt)), key=prompt.spans.__getitem__):
        if name != span:
            continue
        tokens = list(group)
        text = prompt.text[prompt.offsets[tokens[0]][0] : prompt.offsets[tokens[-1]][1]]
        zero = prompt.offsets[tokens[0]][0] + len(text) - len(text.lstrip())
        for i in tokens:
            start, end = prompt.offsets[i]
            key = (len(texts), start - zero, end - zero, prompt.token_ids[i])
            places[(*key, seen[key])] = i
            seen[key] += 1
        texts.append(text.strip())
    return (tuple(texts), places) if texts else None


def _name(prompt: Prompt) -> str:
    return f"the {prompt.role} prompt of example {prompt.example_id}"
