"""Routing or writing: does a head put an answer into the stream, or does it steer heads that do?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from lab.engine.direct import direct_logits, head_writes
from lab.engine.forward import Keep, Trace
from lab.engine.lens import Lens
from lab.engine.packing import Branch
from lab.instruments import statistics as S
from lab.instruments.override.decisions import Captured, capture, run_reduced
from lab.instruments.override.find import LEAST
from lab.instruments.override.pairs import Head, Pair, clusters_of
from lab.instruments.override.sweep import Sweep

if TYPE_CHECKING:
    import torch

Kind = Literal["writing", "routing", "unassigned"]

TOP = 20
"""How far up a vocabulary an answer must stand to count as written."""
WRITES_AT_LEAST, ROUTES_BELOW = 0.5, 0.1


@dataclass(frozen=True, slots=True, eq=False)
class HeadKind:
    """What one head does, on held-out pairs.

    Attributes:
        head: which.
        kind: by the rule of `classify`.
        hits: share of pairs in which the difference of what it writes in both runs has an answer
            among its top tokens, a's upwards or b's downwards, to some effect.
        direct: mean shift of the log-odds towards the giving run's answer that a patch of this
            head causes directly, past all later layers; mean over both directions.
        total: the same with everything later responding, as in the sweep.
        indirect: total less direct; ``p_indirect`` its sign-flip test over pairs, adjusted over
            the heads.
        looks: for each span the mean attention from the decision in run a less that in run b, and
            ``p_looks`` its adjusted test.
    """

    head: Head
    kind: Kind
    hits: S.Estimate
    direct: S.Estimate
    total: S.Estimate
    indirect: S.Estimate
    p_indirect: float
    looks: dict[str, S.Estimate]
    p_looks: dict[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """What every head of a set does."""

    heads: tuple[HeadKind, ...]
    top: int

    def kind_of(self, head: Head) -> Kind:
        """The kind of one of the heads."""
        return next(h.kind for h in self.heads if h.head == head)

    def to_dataframe(self) -> pd.DataFrame:
        """One row a head.

        Columns: layer, head, kind, n, then hits, direct, total and indirect, each with _low and
        _high, p_indirect, and for each span looks_SPAN with _low, _high and p_looks_SPAN.
        """
        rows = []
        for h in self.heads:
            row: dict[str, Any] = {"layer": h.head[0], "head": h.head[1], "kind": h.kind}
            row["n"] = h.hits.n
            named = {"hits": h.hits, "direct": h.direct, "total": h.total, "indirect": h.indirect}
            named |= {f"looks_{span}": e for span, e in h.looks.items()}
            for name, e in named.items():
                row |= {name: e.value, f"{name}_low": e.low, f"{name}_high": e.high}
            row["p_indirect"] = h.p_indirect
            rows.append(row | {f"p_looks_{span}": p for span, p in h.p_looks.items()})
        return pd.DataFrame(rows)


def classify(
    lens: Lens,
    pairs: Sequence[Pair],
    heads: Sequence[Head],
    sweep: Sweep,
    *,
    spans: Sequence[str] = ("context", "question", "instruction"),
    top: int = TOP,
    least: float = LEAST,
    level: float = 0.05,
) -> Kinds:
    """Tell heads that write an answer from heads that route, on pairs they were not chosen on.

    The rule: a head is *writing* if in at least half of the pairs the difference of its writes in
    both runs, read through the final norm and the unembedding ("difference logit lens", arXiv
    2606.28273, there without the norm), has a's answer among the ``top`` risen tokens or b's among
    the ``top`` fallen ones, and moves the log-odds directly by at least ``least`` of the gap
    between both runs. (A rank alone means nothing where a head writes next to nothing: some token
    is always first.) It is *routing* if that share is below a tenth, and the part of its effect
    that goes through later layers is significant (sign flips over pairs, Benjamini-Hochberg over
    the heads), or its attention to a span differs between the runs. All else is unassigned.

    Args:
        lens: the model.
        pairs: held-out pairs.
        heads: which heads.
        sweep: patches of the same pairs, in the same order (`Sweep.of`).
        spans: parts of the prompts; those that some prompt lacks are left out.
        top: how many tokens count as written.
        least: see above.
        level: of the tests.

    Raises:
        LabError: the architecture norms attention outputs, so that no head has a write of its own.
    """
    kept = capture(lens, pairs, layers=True)
    gap = np.abs(kept.difference[:, 0] - kept.difference[:, 1])
    clusters = clusters_of(pairs)
    direct, hits = np.zeros((len(pairs), len(heads))), np.zeros((len(pairs), len(heads)))
    for column, head in enumerate(heads):
        direct[:, column], ranked = _writes(lens, pairs, kept, head, top)
        hits[:, column] = ranked & (direct[:, column] >= least * gap)
    index = tuple(np.array(heads, dtype=int).reshape(-1, 2).T)
    total = sweep.shift.mean(1)[:, index[0], index[1]]
    names = [s for s in spans if all(s in p.asked(run).spans for p in pairs for run in (0, 1))]
    looks = _looks(lens, pairs, heads, names)
    p_indirect = _adjusted(total - direct, clusters)
    p_looks = _adjusted(looks, clusters)
    found = []
    for i, head in enumerate(heads):
        share = S.proportion(hits[:, i], clusters)
        steers = p_indirect[i] <= level or bool((p_looks[i] <= level).any())
        kind: Kind = "unassigned"
        if share.value >= WRITES_AT_LEAST:
            kind = "writing"
        elif share.value < ROUTES_BELOW and steers:
            kind = "routing"
        found.append(
            HeadKind(
                head,
                kind,
                share,
                S.mean_estimate(direct[:, i], clusters),
                S.mean_estimate(total[:, i], clusters),
                S.mean_estimate(total[:, i] - direct[:, i], clusters),
                float(p_indirect[i]),
                {s: S.mean_estimate(looks[:, i, j], clusters) for j, s in enumerate(names)},
                {s: float(p_looks[i, j]) for j, s in enumerate(names)},
            )
        )
    return Kinds(tuple(found), top)


def _adjusted(values: np.ndarray, clusters: Sequence[str]) -> np.ndarray:
    test = S.sign_flip_test(values, np.asarray(clusters, dtype=object))
    return np.asarray(S.benjamini_hochberg(test.p))


def _writes(
    lens: Lens, pairs: Sequence[Pair], kept: Captured, head: Head, top: int
) -> tuple[np.ndarray, np.ndarray]:
    """For each pair: the direct shift of a patch, mean of both directions, and hit or not."""
    assert kept.resid is not None
    z: torch.Tensor = kept.heads[:, :, head[0], head[1]]
    write = head_writes(lens, *head, z[:, 0] - z[:, 1])
    shifts = []
    for taking in (1, 0):  # the write of the giving run replaces that of the taking one
        moved = direct_logits(lens, write, kept.resid[:, taking, -1])
        shifts.append([_log_odds(p, row) for p, row in zip(pairs, moved, strict=True)])
    rows = direct_logits(lens, write, kept.resid[:, 1, -1])
    hits = [_hit(pair, row, top) for pair, row in zip(pairs, rows, strict=True)]
    return np.mean(shifts, axis=0), np.array(hits)


def _log_odds(pair: Pair, change: np.ndarray) -> float:
    """Change of the log-odds when each answer's spellings change by their mean."""
    a, b = (float(change[list(ids)].mean()) for ids in pair.answers)
    return a - b


def _hit(pair: Pair, change: np.ndarray, top: int) -> bool:
    order = np.argpartition(change, (top, len(change) - top - 1))
    fallen, risen = set(order[:top].tolist()), set(order[-top:].tolist())
    return bool(risen & set(pair.answers[0])) or bool(fallen & set(pair.answers[1]))


def _looks(
    lens: Lens, pairs: Sequence[Pair], heads: Sequence[Head], spans: Sequence[str]
) -> np.ndarray:
    """[pair, head, span], attention from the decision in run a less that in run b."""

    def reduce(number: int, trace: Trace) -> np.ndarray:
        assert trace.attention is not None
        asked = pairs[number // 2].asked(number % 2)
        rows = np.array([trace.attention[la, h, -1] for la, h in heads]).reshape(len(heads), -1)
        return np.array([rows[:, list(asked.spans[s])].sum(1) for s in spans]).T.reshape(
            len(heads), len(spans)
        )

    branches = [Branch(pair.asked(run).tokens) for pair in pairs for run in (0, 1)]
    mass = np.array(run_reduced(lens, branches, Keep(False, attention=True), reduce))
    mass = mass.reshape(len(pairs), 2, len(heads), len(spans))
    return np.asarray(mass[:, 0] - mass[:, 1])
