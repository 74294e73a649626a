"""Where each role looks, layer by layer and head by head: tables and figure data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import xarray as xr

from lab.instruments.statistics import Estimate, bootstrap_means
from lab.instruments.summaries import Tables, reading
from lab.instruments.summaries import tables as T
from lab.views.format import Format, interval, percent, points, q_value, ratio
from lab.views.packing import rounded
from lab.views.palette import MARK_LABELS, SPAN_LABELS
from lab.views.table import Cell, Row, Table, cell, table, words
from lab.views.wording import COMPARISONS, NORMS

ROLES = ("generator", "evaluator")
REGIONS = {**SPAN_LABELS, **MARK_LABELS}
SHOWN = (
    "context", "evidence", "answer", "question", "candidate", "instruction", "labels",
    "demonstrations", "sink",
)  # fmt: skip
FORMS: dict[str, Format] = {"share": percent, "times": ratio}


@dataclass(frozen=True, slots=True)
class Reading:
    """The summaries of attention, each computed once."""

    by_region: pd.DataFrame
    ratios: pd.DataFrame
    heads: pd.DataFrame
    overlap: reading.HeadOverlap
    instead: pd.DataFrame

    @classmethod
    def of(cls, tables: Tables) -> Reading:
        """The summaries of a study's attention, from all its tables."""
        return cls(
            tables.by_region,
            tables.ratios,
            tables.head_differences,
            tables.overlap,
            tables.where_instead,
        )


# --- tables -------------------------------------------------------------------------------------


def span_table(found: Reading, norms: Sequence[str]) -> Table:
    """Attention on each part of the prompt in both roles, and the ratios where they are paired."""
    rows = []
    for norm in norms:
        names = NORMS[norm]
        if len(norms) > 1:
            rows.append(Row(names["label"], group=True))
        form = FORMS[names["unit"]]
        for region in SHOWN:
            means = [
                T.find(found.by_region, normalisation=norm, role=role, region=region)
                for role in ROLES
            ]
            if all(math.isnan(mean.value) for mean in means):
                continue
            both = [_ratio(found, region, norm, aggregate) for aggregate in ("mean", "max")]
            n = max(mean.n for mean in means)
            cells = (*(cell(x, form) for x in means), *(cell(x, ratio) for x in both))
            rows.append(Row(REGIONS[region], (*cells, Cell(str(n)))))
    columns = ("", "answering", "judging", "ratio, mean head", "ratio, strongest head", "n")
    return table("Attention by part of the prompt, answering and judging", columns, rows)


def comparison_table(found: Reading) -> Table:
    """The ratios against control roles: same length, other order, and a prompt that must read."""
    rows = []
    for (first, second), (label, note) in COMPARISONS.items():
        region = "candidate" if first == "evaluator_repeat" else "context"
        cells = [
            cell(_ratio(found, region, norm, "mean", first, second), ratio, norm == "raw")
            for norm in NORMS
        ]
        if any(c.small for c in cells):
            rows.append(Row(f"{label}: {REGIONS[region]}", (*cells, words(note, "what"))))
    columns = ("", *(names["label"] for names in NORMS.values()), "why")
    return table("Attention ratios against control prompts", columns, rows)


def changed_table(found: Reading, k: int = 10) -> Table:
    """The heads whose attention to the passage differs most between the roles."""
    frame = found.heads
    order = frame["value"].abs().sort_values(ascending=False, kind="stable").index
    rows = []
    for record in frame.loc[order[:k]].to_dict("records"):
        difference = Estimate(record["value"], record["low"], record["high"], int(record["n"]))
        small = f"{interval(difference, points)} n\u00a0=\u00a0{difference.n}".strip()
        rows.append(
            Row(
                "",
                (
                    Cell(percent(record["generator"])),
                    Cell(percent(record["evaluator"])),
                    Cell(f"{points(difference.value)} points", small),
                    Cell(q_value(record["p_adjusted"])),
                ),
                head=f"{int(record['layer'])}.{int(record['head'])}",
            )
        )
    columns = ("head", "answering", "judging", "difference", "corrected p")
    return table("Heads whose attention to the passage changes most", columns, rows)


def readers_table(found: Reading) -> Table:
    """The generator's strongest passage readers, and where they look when the model judges."""
    rows = []
    shared = set(found.overlap.evaluator)
    examples = found.heads.set_index(["layer", "head"])["n"]
    for record in found.instead.to_dict("records"):
        head = (int(record["layer"]), int(record["head"]))
        rows.append(
            Row(
                "",
                (
                    Cell(percent(record["generator_context"])),
                    Cell(percent(record["evaluator_context"])),
                    words(_place(record["elsewhere"], record["elsewhere_mass"])),
                    words(_place(record["mark"], record["mark_mass"])),
                    words(_place(record["gained"], record["gain"], points, " points")),
                    words("yes" if head in shared else "no"),
                    Cell(str(int(examples[head]))),
                ),
                head=f"{head[0]}.{head[1]}",
            )
        )
    columns = (
        "head",
        "passage, answering",
        "passage, judging",
        "most elsewhere, judging",
        "marked words, judging",
        "gains most when judging",
        "also a top reader when judging",
        "n",
    )
    return table(
        "Strongest readers of the passage, and where they look when judging", columns, rows
    )


def _ratio(
    found: Reading,
    region: str,
    norm: str,
    aggregate: str,
    first: str = "generator",
    second: str = "evaluator",
) -> Estimate:
    return T.find(
        found.ratios,
        numerator=first,
        denominator=second,
        region=region,
        normalisation=norm,
        aggregate=aggregate,
    )


def _place(region: str, mass: float, form: Format = percent, unit: str = "") -> str:
    return f"{REGIONS.get(region, region)} {form(mass)}{unit}" if region else ""


# --- figure data --------------------------------------------------------------------------------

Frames = dict[str, pd.DataFrame]
"""A table for each normalisation."""


def by_norm(dataset: xr.Dataset, tables: Tables | None = None) -> tuple[Frames, Frames]:
    """Heads (`head_differences`) and layers (`by_layer`) in every normalisation.

    ``tables`` saves computing the raw ones again.
    """
    heads = {"raw": tables.head_differences} if tables else {}
    layers = {"raw": tables.by_layer} if tables else {}
    for norm in NORMS:
        if norm not in heads:
            heads[norm] = reading.head_differences(dataset, normalisation=norm)
            layers[norm] = reading.by_layer(dataset, norm)
    return heads, layers


def look_data(layers: Frames, spans: list[str]) -> dict[str, dict[str, list[list[float | None]]]]:
    """Mean attention by normalisation and role: a list of spans for each layer."""
    data = {}
    for norm, frame in layers.items():
        data[norm] = {role: _grid(frame[frame["role"] == role], spans) for role in ROLES}
    return data


def _grid(frame: pd.DataFrame, spans: list[str]) -> list[list[float | None]]:
    wide = frame.pivot(index="layer", columns="region", values="value").sort_index()
    return [rounded(row) for row in wide.reindex(columns=spans).to_numpy()]


Map = dict[str, list[float | None]]
"""By head: value, low, high, and q where something was tested."""


def map_data(dataset: xr.Dataset, heads: Frames) -> dict[str, dict[str, Map]]:
    """By normalisation: attention to the passage in each role, and the difference; by head."""
    data: dict[str, dict[str, Map]] = {}
    for norm, frame in heads.items():
        difference = {"value": "value", "low": "low", "high": "high", "q": "p_adjusted"}
        data[norm] = {"difference": {k: rounded(frame[c]) for k, c in difference.items()}}
        for role in ROLES:
            data[norm][role] = _role_map(dataset, norm, role)
    return data


def _role_map(dataset: xr.Dataset, norm: str, role: str) -> Map:
    """Mean attention of every head on the passage in one role, with bootstrap intervals."""
    if not reading.measured(dataset):
        return {"value": [], "low": [], "high": []}
    values = reading.regions(dataset, norm).sel(region="context", role=role)
    by_head = values.transpose("example", "layer", "head").values
    means = bootstrap_means(by_head, T.labels(dataset, "cluster"))
    return {name: rounded(getattr(means, name)) for name in ("value", "low", "high")}


def where_data(dataset: xr.Dataset, spans: list[str]) -> dict[str, list[float | None]]:
    """Mean raw attention of every head on every span, by role: layer, head, span in one list."""
    if not reading.measured(dataset):
        return {role: [] for role in ROLES}
    mean = reading.regions(dataset, "raw").mean("example").sel(region=spans)
    order = ("layer", "head", "region")
    return {role: rounded(mean.sel(role=role).transpose(*order).values, 3) for role in ROLES}


def start_head(heads: pd.DataFrame) -> dict[str, int]:
    """The head that the page shows first: the one that changes most."""
    values = heads["value"].abs()
    if values.isna().all():
        return {"layer": 0, "head": 0}
    record = heads.iloc[int(values.argmax())]
    return {"layer": int(record["layer"]), "head": int(record["head"])}
