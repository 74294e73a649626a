"""Contests: measured conflicts as pairs of prompts that call for different answers.

Two are the generator's and two the evaluator's. Whether a pair can be used is told by what the
model decides in both runs; how strongly the runs differ is told of all conflicts, used or not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from lab.data.conflicts import Conflict, Stated
from lab.instruments.conflicts import ALIKE, Measured
from lab.instruments.override.pairs import Pair, make_pair
from lab.roles import Prompt, Prompter, VerdictTokens
from lab.roles.conflicts import (
    Instruction,
    Side,
    answer_tokens,
    conflict_prompts,
    expected,
    judge_prompts,
)

ContestRole = Literal["generator", "evaluator"]
Verdicts = Mapping[tuple[Stated, Side], float]
"""A judge's log-odds of accepting, by passage and candidate."""


@dataclass(frozen=True, slots=True)
class Contest:
    """Two prompts of a conflict that are set against each other.

    Attributes:
        name: what the contest is called.
        role: who is asked.
        a, b: the prompts: (instruction, passage) for a generator, (passage, candidate) for an
            evaluator, whose run a is to accept and run b to reject.
        words: what runs a and b are, for tables.
    """

    name: str
    role: ContestRole
    a: tuple[str, str]
    b: tuple[str, str]
    words: tuple[str, str]

    @property
    def expected(self) -> tuple[str, str]:
        """What runs a and b are to say: "memory" or "counter", or "accept" and "reject"."""
        if self.role == "evaluator":
            return ("accept", "reject")
        return (expected(*_told(self.a)), expected(*_told(self.b)))

    @property
    def flip_measure(self) -> str:
        """The measure of `prove` that counts flips as the pairs were chosen: by the most likely
        token for generators, by the sign of the verdict's log-odds for judges."""
        return "to_other" if self.role == "generator" else "two_token"


CONTESTS: Mapping[str, Contest] = MappingProxyType(
    {
        contest.name: contest
        for contest in (
            Contest(
                "instruction",
                "generator",
                ("passage", "counterfactual"),
                ("memory", "counterfactual"),
                (
                    "counterfactual passage, told to follow the passage",
                    "counterfactual passage, told to answer from own knowledge",
                ),
            ),
            Contest(
                "passage",
                "generator",
                ("passage", "counterfactual"),
                ("passage", "original"),
                (
                    "counterfactual passage, told to follow the passage",
                    "original passage, told to follow the passage",
                ),
            ),
            Contest(
                "candidate",
                "evaluator",
                ("original", "memory"),
                ("original", "counter"),
                (
                    "original passage, right candidate",
                    "original passage, wrong candidate",
                ),
            ),
            Contest(
                "checked",
                "evaluator",
                ("original", "memory"),
                ("counterfactual", "memory"),
                (
                    "original passage, its answer as candidate",
                    "counterfactual passage, the same candidate",
                ),
            ),
        )
    }
)
"""``instruction`` and ``passage`` ask who decides between passage and memory, and who reads the
passage's answer; ``candidate`` and ``checked`` who reads the candidate, and who checks the
passage."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What both runs of one conflict gave, unchanged.

    Attributes:
        difference: log-odds of answer a against answer b in run a and in run b; NaN where no
            first token tells the answers apart.
        reasons: why the pair cannot be used; empty where both runs decided as asked.
    """

    difference: tuple[float, float]
    reasons: tuple[str, ...]

    @property
    def gap(self) -> float:
        """How far the runs are apart, in log-odds."""
        return self.difference[0] - self.difference[1]


def outcome(contest: Contest, measured: Measured, verdicts: Verdicts) -> Outcome:
    """How a measured conflict came out in a contest.

    A generator decided as asked where the most likely token begins the asked answer, a judge
    where the verdict's log-odds have the asked sign. No closed-book knowledge is asked for: a
    model that answers from memory against the passage has it.
    """
    if contest.role == "evaluator":
        a, b = (verdicts[_judged(key)] for key in (contest.a, contest.b))
        return Outcome((a, b), _reasons(((0, a <= 0, True), (1, b >= 0, True))))
    if not measured.cells:
        return Outcome((math.nan, math.nan), (ALIKE,))
    keys = _told(contest.a), _told(contest.b)
    cells = [measured.cells[key] for key in keys]
    sides = [expected(*key) for key in keys]
    first = {"memory": 0, "counter": 1}[sides[0]]
    odds = [
        math.log(max(p[first], 1e-300)) - math.log(max(p[1 - first], 1e-300))
        for p in (cell.probabilities for cell in cells)
    ]
    wrong = tuple(
        (run, cell.says != side, cell.says == sides[1 - run])
        for run, (cell, side) in enumerate(zip(cells, sides, strict=True))
    )
    return Outcome((odds[0], odds[1]), _reasons(wrong))


def _reasons(wrong: Sequence[tuple[int, bool, bool]]) -> tuple[str, ...]:
    return tuple(
        f"run {'ab'[run]} gives {'the other' if other else 'neither'} answer"
        for run, failed, other in wrong
        if failed
    )


@dataclass(frozen=True, slots=True, eq=False)
class Rendered:
    """All prompts of one conflict, and the tokens that tell its answers apart.

    Attributes:
        generator: by instruction and passage.
        judge: by passage and candidate.
        tokens: for each answer the ids that may begin it; empty where none tells them apart.
        verdict: the ids that accept and reject.
        cluster: of the conflict.
    """

    generator: Mapping[tuple[Instruction, Stated], Prompt]
    judge: Mapping[tuple[Stated, Side], Prompt]
    tokens: Mapping[Side, tuple[int, ...]]
    verdict: VerdictTokens
    cluster: str


def render(
    prompter: Prompter, conflict: Conflict, verdict: VerdictTokens, *, begun: bool
) -> Rendered:
    """The prompts of a conflict in both roles, as `measure_conflict` asks them.

    Raises:
        LabError: a prompt does not fit the prompter's length.
    """
    asked = conflict_prompts(prompter, conflict, begun=begun)
    tokens = answer_tokens(prompter.tokenizer, conflict, list(asked.values()))
    return Rendered(asked, judge_prompts(prompter, conflict), tokens, verdict, conflict.cluster)


def contest_pair(contest: Contest, rendered: Rendered) -> Pair:
    """The pair of a contest; a first token must tell its answers apart (see `outcome`)."""
    if contest.role == "evaluator":
        a, b = (rendered.judge[_judged(key)] for key in (contest.a, contest.b))
        return make_pair(a, b, rendered.verdict.accept, rendered.verdict.reject, rendered.cluster)
    keys = _told(contest.a), _told(contest.b)
    prompts = [rendered.generator[key] for key in keys]
    answers = [rendered.tokens[expected(*key)] for key in keys]
    return make_pair(prompts[0], prompts[1], answers[0], answers[1], rendered.cluster)


def _told(key: tuple[str, str]) -> tuple[Instruction, Stated]:
    return key  # type: ignore[return-value]


def _judged(key: tuple[str, str]) -> tuple[Stated, Side]:
    return key  # type: ignore[return-value]


# --- which of them are used ---------------------------------------------------------------------


def draw(usable: Sequence[int], clusters: Sequence[str], n: int, seed: int = 0) -> list[int]:
    """At most ``n`` of the usable units, in their order: one of each cluster, then a second ...

    Args:
        usable: indices of the units that may be drawn.
        clusters: of all units.
        n: how many at most.
        seed: of the order in which clusters, and units within them, have their turn.
    """
    rng = np.random.default_rng([seed, 47])
    members: dict[str, list[int]] = {}
    for unit in rng.permutation(list(usable)).astype(int).tolist():
        members.setdefault(clusters[unit] or f"\0{unit}", []).append(unit)
    turns = sorted(
        (turn, place, unit)
        for place, units in enumerate(members.values())
        for turn, unit in enumerate(units)
    )
    return sorted(unit for *_, unit in turns[:n])


def discovery_share(clusters: int, enough: int = 15, held_out: int = 8) -> float:
    """Which share of the clusters heads are chosen on.

    Half; but where half is fewer than ``enough`` (below which a lone head among some hundreds
    cannot pass the test), more, as long as ``held_out`` remain to report on.
    """
    if clusters < 2:
        return 0.5
    return max(0.5, min(enough, clusters - held_out) / clusters)
