"""Exercises of notebook 07 on data: the right answer passes, each usual mistake is named."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from lab import teach
from lab.instruments.override.ablation import Outcomes

CELLS = (
    ("passage", "counterfactual"),
    ("passage", "original"),
    ("memory", "counterfactual"),
)


def measured(*said: tuple[str, str, str], margins=(-1.0, 1.0)):
    """Conflicts by what is said in CELLS; an empty one has answers that begin alike."""
    return [
        SimpleNamespace(
            cells={
                key: SimpleNamespace(says=says, margin=margin)
                for key, says, margin in zip(CELLS, row, (*margins, 1.0), strict=bool(row))
            }
        )
        for row in said
    ]


ALL = measured(
    ("counter", "memory", "memory"),
    ("counter", "memory", "counter"),
    ("counter", "memory", "counter"),
    ("counter", "other", "counter"),
    ("memory", "memory", "memory"),
    ("memory", "memory", "other"),
    ("memory", "memory", "other"),
    (),
)


def said(name: str, answer, *given) -> str:
    return teach.assess(name, answer, *given).removeprefix(f"{name}: ")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (3, "right. "),
        (1, "for the two instructions"),
        (4, "altered passage only"),
        (6, "memory alone would do"),
        (7, "sign of the margin"),
        (3 / 8, "the number is asked for"),
        (8, "how many were measured"),
        (5, "too large"),
        ([1, 2], "A single number"),
    ],
)
def test_usable(answer, words):
    assert words in said("07.usable", answer, ALL)


SAID = np.array(
    [
        [0, 0, 0, 0, 0, 0, 0, 0, 1, 2],  # nothing off: 8 of 10 as asked
        [1, 1, 1, 2, 2, 0, 0, 0, 1, 1],  # the set: 3 flip, 2 are damaged
        [1, 0, 0, 0, 0, 0, 0, 0, 1, 2],
        [1, 1, 0, 0, 0, 0, 0, 0, 1, 2],
    ]
)
OWN = np.array(
    [[2.0] * 10, [-1.0] * 4 + [1.0] * 6, [1.9] * 10, [-3.0] * 10],
)
OUTCOMES = Outcomes(OWN, SAID)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (3 / 8, "right. "),
        (2 / 8, "That is damage"),
        (5 / 8, "counts damage as a flip"),
        (0.4, "sign of the log-odds"),
        (1 / 8, "first random set"),
        (3 / 16, "mean over the random sets"),
        (0.5, "first answered as asked"),
        (3, "the share is asked for"),
        (37.5, "per cent"),
    ],
)
def test_flips(answer, words):
    assert words in said("07.flips", answer, OUTCOMES)


def test_flips_need_a_pair_that_was_answered_as_asked():
    assert "none can flip" in said("07.flips", 0.5, Outcomes(OWN, np.ones_like(SAID)))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        # The set moves 1.8, the random ones 0.1 and 5: one of two does at least as much.
        (2 / 3, "right. "),
        (0.67, "right. "),
        (1 / 2, "counts as one of them"),
        (1.0, "below the line"),
        (1 / 3, "above the line"),
        (1, "below the line"),
        (0.9, "too large"),
    ],
)
def test_chance(answer, words):
    assert words in said("07.chance", answer, OUTCOMES)


def test_chance_without_random_sets_says_so():
    assert "no random sets" in said("07.chance", 0.5, Outcomes(OWN[:2], SAID[:2]))
