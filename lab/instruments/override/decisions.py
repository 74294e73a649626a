"""What prompts decide under changes: many branches of many pairs, in few packed forward passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Float, Int

from lab.engine.edits import Change
from lab.engine.forward import Keep, Trace
from lab.engine.lens import Lens
from lab.engine.packing import Branch, common_prefix
from lab.instruments.override.pairs import Pair

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

JOINED_ROWS = 600
"""Short prompts share a forward pass up to so many rows: each pass has a fixed cost."""

LONGEST_JOINED = 64
"""Longer prompts run one by one, each behind a trunk of its own, which is remembered: a search asks
for the same prompts again and again, and joined prompts are run anew each time. Measured on the
default model with 123 tokens: 20 sets of heads take half the time."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run: which pair, its prompt a (0) or b (1), and what is changed in it."""

    pair: int
    run: int
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """What came out at the decision of each job.

    Attributes:
        difference: log-odds of answer a against answer b.
        top: the most likely token.
    """

    difference: Float[np.ndarray, " job"]
    top: Int[np.ndarray, " job"]


def decide(lens: Lens, pairs: Sequence[Pair], jobs: Sequence[Job]) -> Decisions:
    """The decisions of all jobs, exactly, with nothing common run twice."""

    def reduce(number: int, trace: Trace) -> tuple[float, int]:
        row = last_row(trace)
        return pairs[jobs[number].pair].difference(row), int(row.argmax())

    branches = [Branch(pairs[j.pair].asked(j.run).tokens, j.changes) for j in jobs]
    found = run_reduced(lens, branches, Keep(), reduce)
    return Decisions(np.array([d for d, _ in found]), np.array([t for _, t in found], dtype=int))


def run_reduced(
    lens: Lens, branches: Sequence[Branch], keep: Keep, reduce: Callable[[int, Trace], T]
) -> list[T]:
    """``reduce(number, trace)`` of every branch, in order; traces are not held."""
    found: list[T] = []
    for group in _calls(branches):
        traces = lens.run([branches[i] for i in group], keep)
        found += [reduce(i, trace) for i, trace in zip(group, traces, strict=True)]
    return found


def _calls(branches: Sequence[Branch]) -> Iterator[list[int]]:
    """Branches of one prompt run together; several short prompts do, up to JOINED_ROWS.

    Together, prompts share as a trunk only the tokens with which all begin.
    """
    joined: list[int] = []
    prompts: list[tuple[int, ...]] = []
    touched, own = math.inf, 0
    for tokens, same in groupby(range(len(branches)), key=lambda i: branches[i].tokens):
        there = list(same)
        firsts = [branches[i].first_touched for i in there]
        changed = [f for i, f in zip(there, firsts, strict=True) if branches[i].changes]
        rows = sum(len(tokens) - first for first in changed)
        trunk = min(common_prefix([*prompts, tokens]), touched, *firsts)
        shared = sum(len(prompt) - trunk for prompt in {*prompts, tokens})
        long = max(map(len, (*prompts[-1:], tokens))) > LONGEST_JOINED
        if joined and (long or own + rows + shared > JOINED_ROWS):
            yield joined
            joined, prompts, touched, own = [], [], math.inf, 0
        joined = joined + there
        prompts.append(tokens)
        touched, own = min(touched, *firsts), own + rows
    if joined:
        yield joined


@dataclass(frozen=True, slots=True, eq=False)
class Captured:
    """Activations at the decisions of all pairs, in both runs.

    Attributes:
        difference, top: as in Decisions, [pair, run].
        heads: [pair, run, layer, head, d_head], head outputs before W_O.
        mlp, resid: [pair, run, layer, d_model]; None unless asked for.
    """

    difference: Float[np.ndarray, "pair run"]
    top: Int[np.ndarray, "pair run"]
    heads: Float[torch.Tensor, "pair run layer head d_head"]
    mlp: Float[torch.Tensor, "pair run layer d_model"] | None
    resid: Float[torch.Tensor, "pair run layer d_model"] | None

    def of(self, pairs: Sequence[int]) -> Captured:
        """The same of some pairs only."""
        at: Any = list(pairs)
        return Captured(
            self.difference[at],
            self.top[at],
            self.heads[at],
            None if self.mlp is None else self.mlp[at],
            None if self.resid is None else self.resid[at],
        )


def capture(lens: Lens, pairs: Sequence[Pair], *, layers: bool = False) -> Captured:
    """Both runs of every pair, unchanged; with ``layers`` also MLP outputs and residuals."""
    import torch

    def reduce(number: int, trace: Trace) -> tuple[Any, ...]:
        row = last_row(trace)
        assert trace.heads is not None
        sites = [trace.heads[:, :, 0].clone()]
        if layers:
            assert trace.mlp is not None and trace.resid is not None
            sites += [trace.mlp[:, 0].clone(), trace.resid[:, 0].clone()]
        return pairs[number // 2].difference(row), int(row.argmax()), sites

    branches = [Branch(pair.asked(run).tokens) for pair in pairs for run in (0, 1)]
    found = run_reduced(lens, branches, Keep(True, heads=True, mlp=layers, resid=layers), reduce)

    def stacked(site: int) -> Any:
        values = torch.stack([sites[site] for *_, sites in found])
        return values.unflatten(0, (len(pairs), 2))

    return Captured(
        np.array([d for d, *_ in found]).reshape(-1, 2),
        np.array([t for _, t, _ in found], dtype=int).reshape(-1, 2),
        stacked(0),
        stacked(1) if layers else None,
        stacked(2) if layers else None,
    )


def last_row(trace: Trace) -> Float[np.ndarray, " token"]:
    """The logits of a trace's last kept position."""
    assert trace.logits is not None
    return trace.logits[-1]
