"""What runs go on to say when activations at their decision were changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lab.engine.edits import Change
from lab.engine.packing import Branch
from lab.explorer.jobs import Watch
from lab.instruments.case import ANSWER_TOKENS

if TYPE_CHECKING:
    from lab.engine.lens import Lens

Changes = tuple[Change, ...] | Callable[[range], tuple[Change, ...]]
"""Changes at fixed positions, or those at the positions from the decision to the newest token."""


def continuations(
    lens: Lens,
    tokens: tuple[int, ...],
    changes: Sequence[Changes],
    watch: Watch | None = None,
) -> list[str]:
    """The greedy continuation of one prompt under each set of changes, up to its first line's end.

    Changes stay at the positions that they name. So a change at the decision alters the first new
    token, and later ones by what the changed decision has written for them to read. A function
    makes the changes anew at every token, and so can follow the text as it grows.

    At every new token all continuations run together behind the prompt as their trunk: exact, at
    the price of running their few new tokens again.
    """
    room = min(ANSWER_TOKENS, lens.max_tokens - len(tokens))
    new: list[tuple[int, ...]] = [() for _ in changes]
    going = list(range(len(changes)))
    ends = lens.end_ids()
    for count in range(room):
        if watch is not None:
            watch.step(0, 0, f"writing on, token {count + 1} of up to {room}")
        found = _next_tokens(lens, tokens, [(new[i], changes[i]) for i in going])
        for i, token in zip(list(going), found, strict=True):
            if token not in ends:
                new[i] = (*new[i], token)
            if token in ends or "\n" in lens.tokenizer.decode(new[i]).lstrip():
                going.remove(i)
        if not going:
            break
    return [_first_line(lens.tokenizer.decode(ids, skip_special_tokens=True)) for ids in new]


def _next_tokens(
    lens: Lens,
    tokens: tuple[int, ...],
    runs: Sequence[tuple[tuple[int, ...], Changes]],
) -> list[int]:
    decision = len(tokens) - 1
    branches = [
        # The decision is kept too, so that the trunk ends before it, the same at every step.
        Branch(
            (*tokens, *new),
            change(range(decision, len(tokens) + len(new))) if callable(change) else change,
            keep=(decision, decision + len(new)),
        )
        for new, change in runs
    ]
    rows = [trace.logits for trace in lens.run(branches)]
    return [int(row[-1].argmax()) for row in rows if row is not None]


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""
