"""What moves when activations are copied from one run into another, head by head.

Restoration R = (patched - target) / (source - target): 0 where a patch changes nothing, 1 where it
makes the target run like the source run. Examples whose clean runs differ by less than ``MIN_GAP``
logits are left out and counted, since R explodes there.

R is signed by the outcome, so that any head restores a little on average: its share of the gap is
one of those that add up to the whole. So it is not tested. What is tested is the shift signed by
the pair: towards what the giving run's prompt calls for, whatever the model made of it. If a head
does not know the difference, its shifts are as often negative. In the contrast ``role`` the two
tokens are themselves the two outcomes: there is nothing else to sign by, and no test.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from lab.instruments import statistics as S
from lab.instruments.summaries import tables as T
from lab.instruments.summaries.tables import Floats

MIN_GAP = 0.5

SOURCE_AND_TARGET = {"a_into_b": ("a", "b"), "b_into_a": ("b", "a")}

UNTESTED = "role"
"""The contrast whose tokens are the outcomes."""

HEAD_EXTRA = ("ratio_of_means", "shift", "p", "p_adjusted", "flip_rate", "too_close", "missing")


@dataclass(frozen=True, slots=True)
class Sweep:
    """One contrast in one direction: patched outcomes of the examples that can be used.

    Attributes:
        restored: R, examples x patches.
        shift: patched - target in logits, signed towards what the source's prompt calls for,
            examples x patches.
        towards: the same signed towards what the source run gave.
        gap: |source - target|, examples.
        flips: 1, 0 or NaN, examples x patches.
        clusters: cluster of each example.
        too_close, missing: examples left out, see Restoration.
    """

    restored: Floats
    shift: Floats
    towards: Floats
    gap: Floats
    flips: Floats
    clusters: NDArray[np.object_]
    too_close: int
    missing: int


def heads(ds: xr.Dataset) -> pd.DataFrame:
    """Effect of patching each head at the decision, by contrast and direction.

    Columns: contrast, direction, layer, head, value (mean R), low, high, n (examples), method,
    ratio_of_means (R from summed shifts and gaps, in which small gaps weigh little), shift (mean
    logits towards what the source's prompt calls for), p (sign-flip test of that shift; NaN for
    ``role``, see above), p_adjusted (Benjamini-Hochberg over the heads of the sweep), flip_rate
    (share whose first token changed), too_close and missing (examples left out).
    """
    names = ["contrast", "direction", "layer", "head"]
    frames = []
    for contrast, direction in _sweeps(ds, "patch_head"):
        sweep = _sweep(ds, "patch_head", contrast, direction)
        frame = _effects(ds, sweep, ["layer", "head"])
        p = np.full(sweep.shift.shape[1], np.nan)
        if contrast != UNTESTED:
            p = S.sign_flip_test(sweep.shift, sweep.clusters).p
        with np.errstate(all="ignore"):
            together = np.nansum(sweep.towards, axis=0) / sweep.gap.sum()
        frames.append(
            frame.assign(
                contrast=contrast,
                direction=direction,
                ratio_of_means=together,
                shift=_mean(sweep.shift),
                p=p,
                p_adjusted=S.benjamini_hochberg(p),
                too_close=sweep.too_close,
                missing=sweep.missing,
            )
        )
    return _stack(frames, names, HEAD_EXTRA)


def layers(ds: xr.Dataset) -> pd.DataFrame:
    """Effect of patching whole layers (MLP output, residual stream) at the decision.

    Columns: contrast, direction, site, layer, value (mean R), low, high, n, method, flip_rate.
    """
    frames = []
    for contrast, direction in _sweeps(ds, "patch_layer"):
        for site in T.coordinate(ds, "site"):
            sweep = _sweep(ds, "patch_layer", contrast, direction, site=site)
            frame = _effects(ds, sweep, ["layer"])
            frames.append(frame.assign(contrast=contrast, direction=direction, site=site))
    return _stack(frames, ["contrast", "direction", "site", "layer"], ["flip_rate"])


def windows(curves: pd.DataFrame, share: float = 0.8) -> pd.DataFrame:
    """The layers in which the residual curve rises, from the table of :func:`layers`.

    Columns: contrast, direction, first, last (the shortest run of layers in which it rises by
    ``share`` of its last value; -1 where it does not rise), held (the part of all its rises that
    falls into them, see `critical_window`), half_flip_layer (the first layer whose patch flips at
    least half of the examples, whatever later ones do; -1 where none does), n_layers.
    """
    rows = []
    residual = curves[curves["site"] == "resid"]
    for (contrast, direction), curve in residual.groupby(["contrast", "direction"], sort=False):
        curve = curve.sort_values("layer")
        window = S.critical_window(curve["value"].to_numpy(dtype=float), share)
        flipped = curve.loc[curve["flip_rate"] >= 0.5, "layer"]
        rows.append(
            {
                "contrast": contrast,
                "direction": direction,
                "first": window.first if window else -1,
                "last": window.last if window else -1,
                "held": window.share if window else np.nan,
                "half_flip_layer": int(flipped.iloc[0]) if len(flipped) else -1,
                "n_layers": len(curve),
            }
        )
    columns = ["contrast", "direction", "first", "last", "held", "half_flip_layer", "n_layers"]
    return pd.DataFrame(rows, columns=columns)


def top_heads(effects: pd.DataFrame, k: int = 10, level: float = 0.05) -> pd.DataFrame:
    """The ``k`` heads of each sweep with the largest |mean R|, from the table of :func:`heads`.

    Adds the columns rank (from 1) and significant (adjusted p at most ``level``; never so in
    ``role``, which is not tested).
    """
    frame = effects.assign(size=effects["value"].abs()).dropna(subset=["size"])
    frame = frame.sort_values("size", ascending=False, kind="stable").drop(columns="size")
    by = ["contrast", "direction"]
    frame = frame.assign(rank=frame.groupby(by).cumcount() + 1)
    frame = frame[frame["rank"] <= k].sort_values([*by, "rank"])
    return frame.assign(significant=frame["p_adjusted"] <= level).reset_index(drop=True)


def _sweeps(ds: xr.Dataset, name: str) -> Iterator[tuple[str, str]]:
    if not T.has(ds, name, "patch_clean"):
        return iter(())
    return product(T.coordinate(ds, "contrast"), T.coordinate(ds, "direction"))


def _sweep(ds: xr.Dataset, name: str, contrast: str, direction: str, **at: str) -> Sweep:
    source, target = (
        T.numbers(ds, "patch_clean", contrast=contrast, run=run)
        for run in SOURCE_AND_TARGET[direction]
    )
    where = {"contrast": contrast, "direction": direction, **at}
    patched = T.numbers(ds, name, **where)
    patched = patched.reshape(source.size, math.prod(patched.shape[1:]))
    flips = np.full(patched.shape, np.nan)
    if f"{name}_flip" in ds:
        flips = T.numbers(ds, f"{name}_flip", **where).reshape(patched.shape)
    result = S.restoration(patched, source, target, MIN_GAP)
    kept = np.abs(source - target) >= MIN_GAP
    # Effects are higher in run a than in run b wherever the model does what the prompts call for.
    called_for = 1.0 if direction == "a_into_b" else -1.0
    moved = patched - target[:, None]
    return Sweep(
        restored=result.value[kept],
        shift=(moved * called_for)[kept],
        towards=(moved * np.sign(source - target)[:, None])[kept],
        gap=np.abs(source - target)[kept],
        flips=np.where(flips < 0, np.nan, flips)[kept],
        clusters=T.labels(ds, "cluster")[kept],
        too_close=result.too_close,
        missing=result.missing,
    )


def _effects(ds: xr.Dataset, sweep: Sweep, dims: list[str]) -> pd.DataFrame:
    cells = list(product(*(ds[dim].values.tolist() for dim in dims)))
    frame = T.means_table(sweep.restored, cells, dims, sweep.clusters)
    return frame.assign(flip_rate=_mean(sweep.flips))


def _mean(values: Floats) -> Floats:
    """Mean over examples; NaN, without a warning, where there is none."""
    known = (~np.isnan(values)).sum(axis=0)
    with np.errstate(all="ignore"):
        return np.asarray(np.nansum(values, axis=0) / known)


def _stack(frames: list[pd.DataFrame], names: list[str], extra: Sequence[str]) -> pd.DataFrame:
    columns = [*names, *T.NUMBERS, *extra]
    if not frames:
        return pd.DataFrame(columns=columns)
    return pd.concat(frames)[columns].reset_index(drop=True)
