"""Numbers against the truth and against what usual mistakes give."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lab.teach.exercise import describe

Floats = NDArray[np.float64]

ROUNDED = {2: 0.1, 3: 0.01, 4: 0.01}
"""How large a number must be, so that rounded to so many decimals it can be told from others."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A usual mistake: the number or array that it gives, and what to say about it."""

    value: ArrayLike
    words: str


def fault(
    answer: Any,
    truth: ArrayLike,
    mistakes: Iterable[Mistake] = (),
    *,
    rtol: float = 1e-4,
    atol: float = 1e-6,
    axes: Sequence[str] = (),
) -> str | None:
    """What is wrong with a number or an array; None if it is the truth.

    A mistake whose value cannot be told from the truth on these data is no mistake here. A single
    number may also be rounded: to two decimals from 0.1 on, and to three or four from 0.01 on.
    Where the truth is smaller, one that is rounded so is asked for more digits.

    Args:
        answer: anything; what is no number is told so.
        truth: what it should be.
        mistakes: in the order in which they are tried.
        rtol, atol: relative and absolute tolerance.
        axes: names of the truth's axes, for arrays.
    """
    got, wanted = _numbers(answer), np.asarray(truth, dtype=float)
    if got is None:
        return _asked(wanted, axes, describe(answer))
    if _same(got, wanted, rtol, atol):
        return None
    for mistake in mistakes:
        if _same(got, np.asarray(mistake.value, dtype=float), rtol, atol):
            return mistake.words
    if got.shape != wanted.shape:
        return _asked(wanted, axes, _kind(got))
    if not np.isfinite(got).all():
        return f"It holds {int((~np.isfinite(got)).sum())} values that are no finite number."
    if wanted.ndim:
        return _first_difference(got, wanted, rtol, atol, axes)
    fits = _rounded(float(got), float(wanted))
    if any(abs(wanted) >= ROUNDED[digits] for digits in fits):
        return None
    if fits:
        return f"{float(got):.4g} may be right, but is rounded too far to tell: give more digits."
    return f"{float(got):.4g} is too {'large' if got > wanted else 'small'}."


def per_cent(truth: float) -> Mistake:
    """The mistake of giving a share in per cent."""
    return Mistake(100 * truth, "That is in per cent; give the share, a number from 0 to 1.")


def _numbers(answer: Any) -> Floats | None:
    if isinstance(answer, str | bytes | bool):
        return None
    if hasattr(answer, "detach"):
        answer = answer.detach().cpu().float().numpy()
    try:
        found = np.asarray(answer)
        # An array of one number, as indexing often leaves it, is taken for the number.
        found = np.squeeze(found) if found.size == 1 else found
        return found.astype(float) if found.dtype.kind in "fiub" else None
    except (TypeError, ValueError):
        return None


def _same(got: Floats, value: Floats, rtol: float, atol: float) -> bool:
    return got.shape == value.shape and bool(np.allclose(got, value, rtol=rtol, atol=atol))


def _rounded(got: float, wanted: float) -> list[int]:
    """To how many decimals the truth is rounded in a number; none where it is not."""
    # Anything small rounds to 0, so that 0 is no rounded number.
    return [digits for digits in ROUNDED if got and abs(got - round(wanted, digits)) < 1e-9]


def _asked(wanted: Floats, axes: Sequence[str], given: str) -> str:
    asked = _kind(wanted, axes)
    return f"{asked[0].upper()}{asked[1:]} is asked for, and this is {given}."


def _kind(value: Floats, axes: Sequence[str] = ()) -> str:
    if not value.ndim:
        return "a single number"
    named = f" [{', '.join(axes)}]" if axes else ""
    return f"an array{named} of shape {value.shape}"


def _first_difference(
    got: Floats, wanted: Floats, rtol: float, atol: float, axes: Sequence[str]
) -> str:
    off = ~np.isclose(got, wanted, rtol=rtol, atol=atol)
    at = [int(i) for i in np.argwhere(off)[0]]
    place = ", ".join(
        f"{axis} {i}" for axis, i in zip(axes or ("place",) * len(at), at, strict=True)
    )
    where = tuple(at)
    return (
        f"{int(off.sum())} of {off.size} values are off; the first is {got[where]:.4g} at {place}, "
        f"which is too {'large' if got[where] > wanted[where] else 'small'}."
    )


def whole(answer: Any) -> int | None:
    """A whole number, whatever holds it (an array or tensor, too); None for all else."""
    try:
        return None if isinstance(answer, bool) else operator.index(answer)
    except TypeError:
        return None


@dataclass(frozen=True, slots=True)
class HeadMistake:
    """A usual wrong (layer, head), and what to say about it."""

    head: tuple[int, int]
    words: str


def strongest(values: Floats) -> tuple[int, int]:
    """The (layer, head) of the largest value of a map."""
    layer, head = np.unravel_index(int(np.nanargmax(values)), values.shape)
    return int(layer), int(head)


def _indices(answer: Any) -> tuple[int, ...] | None:
    """Whole numbers, in whatever holds several; None for all else."""
    try:
        found = [whole(part) for part in answer]
    except TypeError:  # a single number holds no parts
        return None
    known = tuple(part for part in found if part is not None)
    return known if len(known) == len(found) else None


def head_fault(answer: Any, values: Floats, mistakes: Iterable[HeadMistake] = ()) -> str | None:
    """What is wrong with a (layer, head) that should have the largest of ``values``."""
    truth = strongest(values)
    got = _indices(answer)
    if got is None:
        if whole(answer) == truth[0] * values.shape[1] + truth[1]:
            return (
                "That is its place in the flattened map: np.unravel_index makes a layer and a "
                "head of it."
            )
        return (
            f"A pair (layer, head) of whole numbers is asked for, and this is {describe(answer)}."
        )
    if got == truth:
        return None
    for mistake in mistakes:
        if got == mistake.head:
            return mistake.words
    if got == truth[::-1]:
        return "Layer and head are the other way round: the map's first axis is the layer."
    layers, heads = values.shape
    if len(got) != 2 or not (0 <= got[0] < layers and 0 <= got[1] < heads):
        return f"There is no such head: layers go from 0 to {layers - 1}, heads to {heads - 1}."
    return f"Head {got[0]}.{got[1]} has {values[got]:.1%}; another has more."
