"""Patching at the decision in three granularities, both ways, for pairs of prompts.

Each head's output, each MLP's output and the residual stream behind each block is carried from one
run of a pair into the other. Shifts are measured in log-odds towards the answer that the *giving*
prompt calls for. That direction is fixed by the pair, not by what the model happened to say: where
it is taken from the model's own outcomes, every head of any model restores something on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from lab.engine.edits import Edit, set_to
from lab.engine.lens import Lens
from lab.errors import LabError
from lab.instruments import statistics as S
from lab.instruments.names import DIRECTIONS
from lab.instruments.override.decisions import Captured, Job, capture, decide
from lab.instruments.override.pairs import Pair, clusters_of
from lab.instruments.patching import LAYER_SITES

MIN_GAP = 0.5
"""Pairs whose clean runs differ by less are left out of R, as the ratio explodes there."""


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Outcomes of every patch; differences are log-odds of answer a against answer b.

    Attributes:
        clean, clean_top: [pair, run], the difference and the most likely token, unpatched.
        head, head_top: [pair, direction, layer, head], of the taking run with one head patched;
            directions are a into b, b into a.
        layer, layer_top: [pair, direction, site, layer], sites MLP and residual; None if not run.
        answers: token ids of both answers of each pair.
        clusters: of the pairs.
    """

    clean: Float[np.ndarray, "pair run"]
    clean_top: Int[np.ndarray, "pair run"]
    head: Float[np.ndarray, "pair direction layer head"]
    head_top: Int[np.ndarray, "pair direction layer head"]
    layer: Float[np.ndarray, "pair direction site layer"] | None
    layer_top: Int[np.ndarray, "pair direction site layer"] | None
    answers: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    clusters: tuple[str, ...]

    @property
    def shift(self) -> Float[np.ndarray, "pair direction layer head"]:
        """How far each head's patch moved the log-odds towards the giving prompt's answer."""
        return shift_of(self.head, self.clean)

    @property
    def restoration(self) -> Float[np.ndarray, "pair direction layer head"]:
        """R of each head; NaN for pairs whose clean runs are closer than MIN_GAP."""
        return restoration_of(self.head, self.clean)

    @property
    def too_close(self) -> int:
        """Pairs left out of R."""
        return int((np.abs(self.clean[:, 0] - self.clean[:, 1]) < MIN_GAP).sum())

    def of(self, pairs: Sequence[int] | np.ndarray) -> Sweep:
        """The same of some pairs only, given as indices or as a mask."""
        at = np.arange(len(self.clean))[pairs]
        return Sweep(
            self.clean[at],
            self.clean_top[at],
            self.head[at],
            self.head_top[at],
            None if self.layer is None else self.layer[at],
            None if self.layer_top is None else self.layer_top[at],
            tuple(self.answers[i] for i in at),
            tuple(self.clusters[i] for i in at),
        )

    def to_dataframe(self) -> pd.DataFrame:
        """Effects of all patches, one row each.

        Columns: direction, site, layer, head (-1 for whole layers), value (mean R) with low, high
        and n, too_close (pairs left out of R), shift (mean log-odds towards the giver's answer),
        ratio_of_means (summed shifts over summed gaps, in which small gaps weigh little),
        flip_top (share of pairs whose most likely token became one of the giver's answer),
        damage (share in which it became anything else), flip_two (share in which the sign of the
        log-odds turned to the giver's answer). Shares are of the pairs that could flip: whose
        unpatched run gave its own answer.
        """
        frames = [_table(self, self.head, self.head_top, "head")]
        if self.layer is not None and self.layer_top is not None:
            frames += [
                _table(self, self.layer[:, :, i], self.layer_top[:, :, i], site)
                for i, site in enumerate(LAYER_SITES)
            ]
        return pd.concat(frames, ignore_index=True)


def shift_of(patched: Any, clean: Float[np.ndarray, "pair run"]) -> Any:
    """Shift towards the giving prompt's answer: [pair, direction, ...]."""
    target = clean[:, ::-1].reshape(len(clean), 2, *(1,) * (patched.ndim - 2))
    sign = np.array([1.0, -1.0]).reshape(1, 2, *(1,) * (patched.ndim - 2))
    return sign * (patched - target)


def restoration_of(patched: Any, clean: Float[np.ndarray, "pair run"]) -> Any:
    """R = (patched - target) / (source - target): [pair, direction, ...]."""
    return np.stack(
        [
            S.restoration(patched[:, way], clean[:, way], clean[:, 1 - way], MIN_GAP).value
            for way in (0, 1)
        ],
        axis=1,
    )


def patch_sweep(
    lens: Lens, pairs: Sequence[Pair], *, layers: bool = True, captured: Captured | None = None
) -> Sweep:
    """Every head, and with ``layers`` every MLP and residual, patched at the decision, both ways.

    The method is activation patching at the last token (Zhang and Nanda 2023, arXiv 2309.16042);
    its use on conflicts of two sources follows "Vision-Default, Prior-Override" (arXiv 2606.28273).
    Exact: all patches of a prompt run as branches behind one trunk.
    """
    kept = captured or capture(lens, pairs, layers=layers)
    jobs = [
        Job(number, 1 - source, (edit,))
        for number, pair in enumerate(pairs)
        for source in (0, 1)
        for edit in _edits(kept, number, source, pair.asked(1 - source).decision, layers)
    ]
    found = decide(lens, pairs, jobs)
    n_layers, n_heads = kept.heads.shape[2:4]
    count = n_layers * n_heads
    difference = found.difference.reshape(len(pairs), 2, -1)
    top = found.top.reshape(len(pairs), 2, -1)
    heads, rest = (len(pairs), 2, n_layers, n_heads), (len(pairs), 2, len(LAYER_SITES), n_layers)
    return Sweep(
        kept.difference,
        kept.top,
        difference[..., :count].reshape(heads),
        top[..., :count].reshape(heads),
        difference[..., count:].reshape(rest) if layers else None,
        top[..., count:].reshape(rest) if layers else None,
        tuple(pair.answers for pair in pairs),
        tuple(clusters_of(pairs)),
    )


def _edits(kept: Captured, pair: int, source: int, place: int, layers: bool) -> list[Edit]:
    n_layers, n_heads = kept.heads.shape[2:4]
    edits = [
        set_to("head", layer, [place], kept.heads[pair, source, layer, head], head)
        for layer in range(n_layers)
        for head in range(n_heads)
    ]
    if layers:
        assert kept.mlp is not None and kept.resid is not None
        edits += [
            set_to(site, layer, [place], values[pair, source, layer])
            for site, values in zip(LAYER_SITES, (kept.mlp, kept.resid), strict=True)
            for layer in range(n_layers)
        ]
    return edits


def window_of(sweep: Sweep, direction: int, share: float = 0.8) -> S.Window | None:
    """The shortest run of layers in which ``share`` of the residual's restoration comes about.

    See `critical_window`. None where it does not rise. The curve is the ratio of means over pairs,
    one point a layer.

    Raises:
        LabError: the sweep was run without layers.
    """
    if sweep.layer is None:
        raise LabError("A critical window needs patched residuals: run the sweep with layers=True.")
    shift = shift_of(sweep.layer, sweep.clean)[:, direction, LAYER_SITES.index("resid_post")]
    return S.critical_window(shift.sum(0) / (sweep.clean[:, 0] - sweep.clean[:, 1]).sum(), share)


def _table(sweep: Sweep, patched: np.ndarray, top: np.ndarray, site: str) -> pd.DataFrame:
    clusters = np.asarray(sweep.clusters, dtype=object)
    shift, ratio = shift_of(patched, sweep.clean), restoration_of(patched, sweep.clean)
    means = S.bootstrap_means(ratio, clusters)
    gap = (sweep.clean[:, 0] - sweep.clean[:, 1]).sum()
    flips = flip_shares(sweep, patched, top)
    cells = list(np.ndindex(patched.shape[1:]))
    with np.errstate(all="ignore"):
        together = shift.sum(0) / gap
    return pd.DataFrame(
        {
            "direction": [DIRECTIONS[cell[0]] for cell in cells],
            "site": site,
            "layer": [cell[1] for cell in cells],
            "head": [cell[2] if len(cell) > 2 else -1 for cell in cells],
            "value": means.value.reshape(-1),
            "low": means.low.reshape(-1),
            "high": means.high.reshape(-1),
            "n": means.n.reshape(-1),
            "too_close": sweep.too_close,
            "shift": shift.mean(0).reshape(-1),
            "ratio_of_means": together.reshape(-1),
            **{name: value.reshape(-1) for name, value in flips.items()},
        }
    )


def flip_shares(sweep: Sweep, patched: np.ndarray, top: np.ndarray) -> dict[str, np.ndarray]:
    """Flips of the taking run towards the giver's answer, counted both ways, and damage."""
    toward, damage, two = (np.full(patched.shape, np.nan) for _ in range(3))
    for pair, answers in enumerate(sweep.answers):
        for way in (0, 1):
            run, sign = 1 - way, (1, -1)[way]
            if sweep.clean_top[pair, run] in answers[run]:
                gives = np.isin(top[pair, way], answers[way])
                toward[pair, way] = gives
                damage[pair, way] = ~gives & ~np.isin(top[pair, way], answers[run])
            if sign * sweep.clean[pair, run] < 0:
                two[pair, way] = sign * patched[pair, way] > 0
    known = [(~np.isnan(x)).sum(0) for x in (toward, two)]
    with np.errstate(all="ignore"):
        return {
            "flip_top": np.nansum(toward, 0) / known[0],
            "damage": np.nansum(damage, 0) / known[0],
            "flip_two": np.nansum(two, 0) / known[1],
        }
