"""What the override instruments run on: two prompts of one conflict, and the answers they call for.

The effect is always the log-odds of the two answers: log of the summed probability of answer a's
tokens minus that of answer b's. For one token each it is the difference of two logits (Zhang and
Nanda 2023, arXiv 2309.16042); for the spellings of two verdicts it is the verdict's log-odds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from lab.engine.planted import SPANS as PLANTED_SPANS
from lab.engine.planted import Planted
from lab.errors import LabError
from lab.instruments.statistics.resampling import cluster_codes
from lab.roles import MARKS, SPANS, Prompt

Head = tuple[int, int]
"""Layer and head."""

RUNS = ("a", "b")


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One prompt: its tokens, of which the last is the decision, and named parts of it."""

    tokens: tuple[int, ...]
    spans: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def decision(self) -> int:
        """Index of the last token."""
        return len(self.tokens) - 1

    def where(self, span: str) -> tuple[int, ...]:
        """Positions of a span; ``decision`` is the last token.

        Raises:
            LabError: the prompt has no such span.
        """
        if span == "decision":
            return (self.decision,)
        if span not in self.spans:
            known = ", ".join(["decision", *self.spans])
            raise LabError(f"A prompt has no span {span!r}: it has {known}.")
        return self.spans[span]


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two prompts of one conflict.

    Attributes:
        a, b: the prompts, for instance the same passage and question under two instructions.
        answers: token ids of a's answer and of b's, each in as many spellings as should count.
            They say what each prompt calls for, not what the model says.
        cluster: units that share a passage or fact share a name; "" stands alone.
    """

    a: Asked
    b: Asked
    answers: tuple[tuple[int, ...], tuple[int, ...]]
    cluster: str = ""

    def __post_init__(self) -> None:
        if not all(self.answers) or set(self.answers[0]) & set(self.answers[1]):
            raise LabError(
                f"The answers of a pair are {self.answers}: give each at least one token, and no "
                "token to both."
            )

    def asked(self, run: int) -> Asked:
        """Prompt a (0) or b (1)."""
        return (self.a, self.b)[run]

    def difference(self, logits: Float[np.ndarray, " token"]) -> float:
        """The log-odds of answer a against answer b in one row of logits."""
        a, b = (np.logaddexp.reduce(logits[list(ids)].astype(float)) for ids in self.answers)
        return float(a - b)

    def said(self, run: int, token: int) -> int:
        """0 if the token is of the run's own answer, 1 if of the competing one, 2 if of neither."""
        if token in self.answers[run]:
            return 0
        return 1 if token in self.answers[1 - run] else 2


def make_pair(
    a: Prompt | Sequence[int],
    b: Prompt | Sequence[int],
    answer_a: int | Sequence[int],
    answer_b: int | Sequence[int],
    cluster: str = "",
) -> Pair:
    """A Pair from two prompts, or from two sequences of token ids, and their answers' first tokens.

    Prompts bring their spans; sequences of ids have none.
    """
    answers = tuple(
        (int(ids),) if isinstance(ids, int | np.integer) else tuple(int(i) for i in ids)
        for ids in (answer_a, answer_b)
    )
    return Pair(_asked(a), _asked(b), (answers[0], answers[1]), cluster)


def _asked(prompt: Prompt | Sequence[int]) -> Asked:
    if not isinstance(prompt, Prompt):
        return Asked(tuple(int(token) for token in prompt))
    spans = {name: where for name in (*SPANS, *MARKS) if (where := prompt.where(name))}
    return Asked(prompt.token_ids, spans)


def planted_pairs(planted: Planted, n: int, seed: int = 0) -> list[Pair]:
    """Pairs for a planted model: asked from memory (a) and from the passage (b)."""
    return [
        Pair(
            Asked(c.from_memory, PLANTED_SPANS),
            Asked(c.from_passage, PLANTED_SPANS),
            ((c.remembered,), (c.read,)),
            f"subject{c.subject}",
        )
        for c in planted.conflicts(n, seed)
    ]


def clusters_of(pairs: Sequence[Pair]) -> list[str]:
    """The cluster of each pair."""
    return [pair.cluster for pair in pairs]


def split_by_cluster(
    clusters: Sequence[str], seed: int = 0, share: float = 0.5
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which units are for discovery; the others are held out. No cluster is in both parts.

    Raises:
        LabError: there are fewer than two clusters.
    """
    codes = cluster_codes(len(clusters), np.asarray(clusters, dtype=object))
    n = int(codes.max(initial=-1)) + 1
    if n < 2:
        raise LabError(
            f"{len(clusters)} examples in {n} cluster(s) cannot be split into a part for "
            "discovery and one held out: give examples of more facts or passages."
        )
    chosen = np.random.default_rng([seed, 31]).permutation(n) < min(n - 1, max(1, round(share * n)))
    return np.asarray(chosen[codes])
