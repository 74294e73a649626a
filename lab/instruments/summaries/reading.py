"""Where the decision looks: attention by region of the prompt, role by role and head by head.

A region is a span (sink, context, question, ...) or a mark inside one (evidence, labels, ...).
Each measure is given in four normalisations, since none is fair alone:

- ``raw``: the attention mass on the region;
- ``sink_excluded``: mass without the sink, rescaled to one;
- ``enrichment``: mass over the region's share of the tokens; 1 is what even attention gives;
- ``norm_weighted``: attention times the length of what the head would write from that token,
  rescaled to one (Kobayashi et al. 2020).

A region that a prompt does not have is NaN, not zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from lab.errors import LabError
from lab.instruments import statistics as S
from lab.instruments.summaries import tables as T

NORMALISATIONS = ("raw", "sink_excluded", "enrichment", "norm_weighted")

COMPARISONS = (
    ("generator", "evaluator"),
    ("generator_filler", "evaluator"),
    ("generator", "evaluator_candidate_first"),
    ("evaluator_repeat", "evaluator"),
)
"""Roles whose attention is compared, numerator first. The second has the evaluator's length, the
third its candidate before the passage; the last shows that a prompt can make the model read its
candidate, and so it is compared on the candidate only."""

Head = tuple[int, int]


def regions(ds: xr.Dataset, normalisation: str = "raw") -> xr.DataArray:
    """The decision's attention (example, role, layer, head, region) in one normalisation."""
    if normalisation not in NORMALISATIONS:
        known = ", ".join(NORMALISATIONS)
        raise LabError(f"Unknown normalisation {normalisation!r}: use one of {known}.")
    weighted = normalisation == "norm_weighted"
    mass = ds["norm_mass" if weighted else "mass"].astype(float)
    marks = ds["norm_mark_mass" if weighted else "mark_mass"].astype(float)
    sizes = _join(ds["span_tokens"], ds["mark_tokens"]).astype(float)
    length = ds["span_tokens"].astype(float).sum("span")
    both = _join(mass, marks).where(sizes > 0)
    if normalisation == "sink_excluded":
        # Summed, not one minus the sink: a head may leave the sink less than rounding shows.
        rest = mass.where(mass["span"] != "sink").sum("span")
        both = both / rest.where(rest > 0)
        both = both.where(both["region"] != "sink")
    elif normalisation == "enrichment":
        both = both / (sizes / length)
    elif weighted:
        both = both / mass.sum("span")
    return both.transpose("example", "role", "layer", "head", "region")


def _join(spans: xr.DataArray, marks: xr.DataArray) -> xr.DataArray:
    parts = [spans.rename(span="region"), marks.rename(mark="region")]
    return xr.concat([part.reset_coords(drop=True) for part in parts], dim="region")


def measured(ds: xr.Dataset) -> bool:
    """Whether the study holds attention, of one example at least."""
    names = ("mass", "mark_mass", "norm_mass", "norm_mark_mass", "span_tokens")
    return T.has(ds, *names) and bool(np.isfinite(ds["mass"].values).any())


def by_region(ds: xr.Dataset) -> pd.DataFrame:
    """Mean attention by normalisation, role and region, over examples, heads and layers.

    Columns: normalisation, role, region, value, low, high, n (examples), method.
    """
    names = ["normalisation", "role", "region"]
    if not measured(ds):
        return T.table([], names)
    frames = []
    for normalisation in NORMALISATIONS:
        item = regions(ds, normalisation).mean(["layer", "head"])
        frames.append(_means(ds, item, ["role", "region"]).assign(normalisation=normalisation))
    return pd.concat(frames)[[*names, *T.NUMBERS]].reset_index(drop=True)


def by_layer(ds: xr.Dataset, normalisation: str = "raw", aggregate: str = "mean") -> pd.DataFrame:
    """Attention by role, region and layer: ``mean`` over the heads of a layer, or their ``max``.

    Columns: role, region, layer, value, low, high, n (examples), method.
    """
    names = ["role", "region", "layer"]
    if not measured(ds):
        return T.table([], names)
    return _means(ds, _over_heads(regions(ds, normalisation), aggregate), names)


def _over_heads(values: xr.DataArray, aggregate: str) -> xr.DataArray:
    if aggregate not in ("mean", "max"):
        raise LabError(f'aggregate must be "mean" or "max", not {aggregate!r}.')
    return values.mean("head") if aggregate == "mean" else values.max("head")


def _means(ds: xr.Dataset, item: xr.DataArray, dims: list[str]) -> pd.DataFrame:
    """A table of means over examples, one row for each cell of the other dimensions."""
    array = item.transpose("example", *dims)
    cells = list(product(*(array[dim].values.tolist() for dim in dims)))
    return T.means_table(array.values, cells, dims, T.labels(ds, "cluster"))


def ratios(ds: xr.Dataset) -> pd.DataFrame:
    """How many times more attention a region gets in one role than in another, paired by example.

    Columns: numerator, denominator (roles), region, normalisation, aggregate, value (geometric mean
    of the ratios), low, high, n (examples), method. An example's attention is the mean over layers
    of the mean (or the largest) head. Compared on context, evidence and question; the candidate
    only where both roles show one. See COMPARISONS for the roles and why.
    """
    names = ["numerator", "denominator", "region", "normalisation", "aggregate"]
    if not measured(ds):
        return T.table([], names)
    clusters, roles = T.labels(ds, "cluster"), T.coordinate(ds, "role")
    rows = []
    measures = {name: regions(ds, name) for name in NORMALISATIONS}
    for normalisation, aggregate in product(NORMALISATIONS, ("mean", "max")):
        item = _over_heads(measures[normalisation], aggregate).mean("layer")
        for first, second in COMPARISONS:
            if first not in roles or second not in roles:
                continue
            repeat = first == "evaluator_repeat"
            for region in ("candidate",) if repeat else ("context", "evidence", "question"):
                over, under = (
                    item.sel(role=role, region=region).values for role in (first, second)
                )
                ratio = S.geometric_mean_ratio(over, under, clusters)
                place = (first, second, region, normalisation, aggregate)
                rows.append(T.row(ratio, **dict(zip(names, place, strict=True))))
    return T.table(rows, names)


def candidate_to_context(ds: xr.Dataset) -> pd.DataFrame:
    """How much the candidate's own tokens attend to the passage when the model judges, by layer.

    What they read there may reach the decision without the decision looking at the passage.
    Columns: aggregate (mean over heads, or max), layer, value, low, high, n (examples), method.
    """
    names = ["aggregate", "layer"]
    if not T.has(ds, "candidate_to_context"):
        return T.table([], names)
    values = ds["candidate_to_context"].sel(role="evaluator").astype(float)
    frames = [
        _means(ds, _over_heads(values, aggregate), ["layer"]).assign(aggregate=aggregate)
        for aggregate in ("mean", "max")
    ]
    return pd.concat(frames)[[*names, *T.NUMBERS]].reset_index(drop=True)


# --- single heads -------------------------------------------------------------------------------


def head_differences(
    ds: xr.Dataset, region: str = "context", normalisation: str = "raw"
) -> pd.DataFrame:
    """For each head, its attention on a region in both roles and the paired difference.

    Columns: layer, head, generator, evaluator (means), value (generator - evaluator), low, high, n,
    method, p (sign-flip test), p_adjusted (Benjamini-Hochberg over all heads).
    """
    extra = ["p", "p_adjusted", "generator", "evaluator"]
    if not measured(ds):
        return T.table([], ["layer", "head"], extra)
    values = regions(ds, normalisation).sel(region=region)
    answering, judging = values.sel(role="generator"), values.sel(role="evaluator")
    difference = answering.reset_coords(drop=True) - judging.reset_coords(drop=True)
    frame = _means(ds, difference, ["layer", "head"])
    p = S.sign_flip_test(difference.values, T.labels(ds, "cluster")).p
    return frame.assign(
        p=p.reshape(-1),
        p_adjusted=S.benjamini_hochberg(p).reshape(-1),
        generator=answering.mean("example").values.reshape(-1),
        evaluator=judging.mean("example").values.reshape(-1),
    )


@dataclass(frozen=True, slots=True)
class HeadOverlap:
    """The heads that read a region most in each role, and how far they are the same.

    Attributes:
        generator, evaluator: (layer, head), the strongest reader first.
        shared: heads in both lists.
        jaccard: shared heads over all heads listed.
        expected: what two random lists of this length would give.
    """

    generator: tuple[Head, ...]
    evaluator: tuple[Head, ...]
    shared: int
    jaccard: float
    expected: float


def reading_heads(ds: xr.Dataset, k: int = 10, region: str = "context") -> HeadOverlap:
    """The ``k`` heads that attend to the region most in each role, and their overlap.

    Ranked by mean enrichment, so that long passages do not decide. ``k`` is at most the number of
    heads; the lists are empty where attention was not measured.
    """
    if not measured(ds):
        return HeadOverlap((), (), 0, float("nan"), float("nan"))
    values = regions(ds, "enrichment").sel(region=region)
    generator, evaluator = (
        _strongest(values.sel(role=role).mean("example").values, k)
        for role in ("generator", "evaluator")
    )
    total = values.sizes["layer"] * values.sizes["head"]
    return HeadOverlap(
        generator,
        evaluator,
        len(set(generator) & set(evaluator)),
        S.jaccard(generator, evaluator),
        S.expected_jaccard(total, len(generator), len(evaluator)),
    )


def _strongest(by_head: T.Floats, k: int) -> tuple[Head, ...]:
    flat = by_head.reshape(-1)
    order = np.argsort(-np.where(np.isnan(flat), -np.inf, flat), kind="stable")
    heads = by_head.shape[1]
    return tuple((int(i) // heads, int(i) % heads) for i in order[:k] if not np.isnan(flat[i]))


def where_instead(ds: xr.Dataset, k: int = 10) -> pd.DataFrame:
    """Where the generator's strongest passage readers look when the model judges.

    Columns: layer, head, generator_context, evaluator_context (raw mass), span and span_mass (the
    evaluator's largest span), elsewhere and elsewhere_mass (the largest apart from the sink and the
    passage), mark and mark_mass (the largest mark; ``labels`` are the verdict words), gained and
    gain (the region that gained most mass against the generator). Strongest reader first.
    """
    columns = ["layer", "head", "generator_context", "evaluator_context", "span", "span_mass",
               "elsewhere", "elsewhere_mass", "mark", "mark_mass", "gained", "gain"]  # fmt: skip
    if not measured(ds):
        return pd.DataFrame(columns=columns)
    mean = regions(ds, "raw").mean("example")
    spans, marks = T.coordinate(ds, "span"), T.coordinate(ds, "mark")
    outside = [span for span in spans if span not in ("sink", "context")]
    rows: list[dict[str, Any]] = []
    for layer, head in reading_heads(ds, k).generator:
        cell = mean.isel(layer=layer, head=head)
        answering, judging = cell.sel(role="generator"), cell.sel(role="evaluator")
        gained = judging.fillna(0) - answering.fillna(0)
        found: dict[str, Any] = {"layer": layer, "head": head}
        found["generator_context"] = float(answering.sel(region="context"))
        found["evaluator_context"] = float(judging.sel(region="context"))
        for what, value, among, source in (
            ("span", "span_mass", spans, judging),
            ("elsewhere", "elsewhere_mass", outside, judging),
            ("mark", "mark_mass", marks, judging),
            ("gained", "gain", spans, gained),
        ):
            found[what], found[value] = _largest(source, among)
        rows.append(found)
    return pd.DataFrame(rows, columns=columns)


def _largest(values: xr.DataArray, among: list[str]) -> tuple[str, float]:
    chosen = values.sel(region=among).values
    if np.isnan(chosen).all():
        return "", float("nan")
    best = int(np.nanargmax(chosen))
    return among[best], float(chosen[best])
