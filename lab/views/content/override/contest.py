"""One contest of an override study: which heads were found, and what they do, as tables."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lab.views.content.dots import Dots, Scale, dot_figure
from lab.views.content.override import checks as checks
from lab.views.content.override import rows as R
from lab.views.content.override.box import box, main_rows
from lab.views.content.override.figures import (
    AblationCurve,
    HeadMap,
    ablation_curve,
    head_maps,
)
from lab.views.content.override.rows import Record, Tables
from lab.views.content.override.words import CONTESTS, HOWS, KINDS, MEASURES, RUNS, SPANS
from lab.views.format import decimal, interval, percent, signed
from lab.views.table import Cell, Row, Table, cell, table, words


@dataclass(frozen=True, slots=True)
class Contest:
    """What the template shows of one contest; empty tables and None are left out."""

    name: str
    title: str
    lead: str
    found: tuple[str, ...]
    maps: list[HeadMap]
    heads: Table
    curves: list[AblationCurve]
    curve_numbers: Table
    flips: Table
    more_flips: Table
    elsewhere: Table
    kinds: Dots | None
    kind_numbers: Table
    knockout: Table
    texts: Table
    splits: Table
    notes: list[str]


def contest(record: Record, tables: Tables) -> Contest:
    """One contest, from its row of contests.csv and its own tables."""
    name = str(record["contest"])
    record = {**record, **{run: _plainly(record[run]) for run in ("run_a", "run_b")}}
    told = f"Run a: {record['run_a']}. Run b: {record['run_b']}."
    title, lead = CONTESTS.get(name, (name, told))
    labels = (
        "from run a into run b",
        "from run b into run a",
    )
    kinds = tables.get("kinds")
    frame = tables.get("heads")
    curves, numbers = _curves(tables.get("curve"), record)
    return Contest(
        name,
        title,
        lead,
        box(record, tables),
        [] if frame is None else head_maps(frame, labels),
        heads_table(frame, kinds),
        curves,
        numbers,
        flips_table(tables.get("proof"), record),
        more_flips_table(tables.get("proof"), record),
        checks.elsewhere_table(tables),
        kinds_figure(kinds),
        kinds_table(kinds),
        checks.knockout_table(tables.get("knockout"), str(record["flip_measure"])),
        checks.texts_table(tables.get("texts")),
        checks.splits_table(tables.get("stability")),
        list(_notes(tables)),
    )


# --- sentences ----------------------------------------------------------------------------------


def _notes(tables: Tables) -> Iterable[str]:
    screen = tables.get("screen")
    if screen is not None and len(screen):
        told = "; ".join(
            f"{_way(r['direction'])}: rank correlation {decimal(r['spearman'])}, "
            f"{int(r['shared'])} of the {int(r['top'])} strongest in common"
            for r in R.records(screen)
        )
        yield (
            "Attribution patching, an estimate of every patch from one gradient, beside the exact "
            f"patches ({told}; no interval, n\u00a0=\u00a0{int(screen['n'].iloc[0])} pairs)."
        )
    backups = tables.get("backups")
    if backups is not None and len(backups):
        marked = backups[R.marked(backups["backup"])]
        listed = ", ".join(dict.fromkeys(R.head(r) for r in R.records(marked)))
        few = any(R.false(r["enough"]) for r in R.records(backups))
        none = "too few held-out subjects to tell" if few else "none"
        yield (
            "Backup heads, which matter more once the found ones are off (test over held-out "
            f"pairs, corrected): {listed or none}."
        )
    layers = tables.get("layers")
    if layers is not None and "window" in layers:
        residual = layers[layers["site"].astype(str).str.startswith("resid")]
        inside = residual[R.marked(residual["window"])]
        told = "; ".join(
            f"{_way(way)} layers {int(part['layer'].min())} to {int(part['layer'].max())}"
            for (way,), part in R.grouped(inside, ["direction"])
        )
        if told:
            yield f"80 % of the residual stream’s effect comes about in few layers: {told}."


# --- tables -------------------------------------------------------------------------------------


def heads_table(frame: pd.DataFrame | None, kinds: pd.DataFrame | None) -> Table:
    """The found heads, with their shifts on held-out pairs."""
    rows = []
    if frame is not None:
        known = {} if kinds is None else {R.head(r): r for r in R.records(kinds)}
        for record in R.records(frame[R.marked(frame["chosen"])]):
            sets = [run for run in "ab" if R.true(record[f"in_{run}"])]
            kind = known.get(R.head(record), {}).get("kind", "")
            rows.append(
                Row(
                    R.head(record),
                    (
                        *(_shift(record, way) for way in ("a_into_b", "b_into_a")),
                        words(" and ".join(f"run {run}" for run in sets), "num"),
                        words(KINDS.get(str(kind), "")),
                        words(str(record["published"]) or "no label"),
                    ),
                )
            )
    columns = (
        "head", "shift, a into b", "shift, b into a", "in the 90 % set of", "what it does",
        "published rule",
    )  # fmt: skip
    return table("The found heads; shifts in logits on held-out pairs", columns, rows)


def _shift(record: Record, way: str) -> Cell:
    value = R.estimate(record, f"held_{way}")
    return Cell(signed(value.value), R.small(record, f"held_{way}", f"held_{way}_p"))


def _curves(frame: pd.DataFrame | None, record: Record) -> tuple[list[AblationCurve], Table]:
    columns = ("run", "k", "head added", "shift", "random sets", "shift where it was ranked")
    if frame is None:
        return [], table("Cumulative ablation", columns, [])
    drawn: list[AblationCurve] = []
    rows = []
    for (run,), part in R.grouped(frame, ["run"], sort=True):
        curve = ablation_curve(part, f"{RUNS.get(str(run), run)}: {record[f'run_{run}']}")
        drawn += [curve] if curve else []
        for r in R.records(part.sort_values("k")):
            random = R.random_of(r)
            rows.append(
                Row(
                    RUNS.get(str(run), str(run)),
                    (
                        Cell(str(int(r["k"]))),
                        Cell(R.head(r) if r["layer"] >= 0 else "none"),
                        cell(R.estimate(r), decimal),
                        Cell(decimal(random.value), interval(random, decimal)),
                        Cell(decimal(float(r["discovery"]))),
                    ),
                )
            )
    return drawn, table("Cumulative ablation, in logits", columns, rows)


def flips_table(frame: pd.DataFrame | None, record: Record) -> Table:
    """What each run's set does with zeros, means and other pairs' values."""
    return _proof_table(None if frame is None else main_rows(frame), record, "Each run’s set")


def more_flips_table(frame: pd.DataFrame | None, record: Record) -> Table:
    """The same of all heads together, and against random sets that look alike."""
    if frame is not None:
        main = (frame["set"] == "run") & (frame["control"] == "layers")
        frame = frame[~main]
    return _proof_table(frame, record, "All found heads, and matched random sets", True)


_SETS = {"run": "its own 90 % set", "all": "all found heads"}
_CONTROLS = {
    "layers": "random sets of the same layers",
    "attention": "random sets that look at the passage as much",
}


def _proof_table(
    frame: pd.DataFrame | None, record: Record, caption: str, told: bool = False
) -> Table:
    """Rows by run and measure, columns by what the heads put out."""
    hows = [] if frame is None else [how for how in HOWS if how in set(frame["how"])]
    rows: list[Row] = []
    if frame is not None:
        for (run, kind, control), part in R.grouped(frame, ["run", "set", "control"], True):
            heads = R.names(part["heads"].iloc[0])
            label = f"{RUNS.get(str(run), run)} ({record[f'run_{run}']}): {', '.join(heads)}"
            if told:
                none = part["random_mean"].isna().all()
                beside = "no random sets" if none else _CONTROLS.get(control, control)
                label += f"; {_SETS.get(kind, kind)}, {beside}"
            rows.append(Row(label, group=True))
            for (measure,), lines in R.grouped(part, ["measure"]):
                of = R.by_name(lines, "how")
                cells = tuple(R.against(of.get(how), measure) for how in hows)
                title, small = MEASURES.get(measure, (measure, ""))
                rows.append(Row(f"{title} ({small})", cells))
    return table(caption, ("", *(HOWS[how] for how in hows)), rows)


def kinds_figure(frame: pd.DataFrame | None) -> Dots | None:
    """Routing or writing: how often a head's write holds an answer, and what it moves."""
    if frame is None or frame.empty:
        return None
    ends = frame[[c for n in ("direct", "indirect") for c in (n, f"{n}_low", f"{n}_high")]]
    known = [abs(x) for x in ends.to_numpy(float).ravel() if math.isfinite(x)]
    most = math.ceil(10 * max(known, default=1.0)) / 10 or 1.0
    around = (decimal(-most), "0", signed(most))
    scales = (
        Scale("writes an answer (share of pairs)", "dim", 0, 1, ("0", "", "1"), (0.1, 0.5)),
        Scale("moved by its write, logits", "dim", -most, most, around, (0,)),
        Scale("moved through later layers, logits", "dim", -most, most, around, (0,)),
    )
    rows = []
    for r in R.records(frame):
        cells = [_ends(r, name) for name in ("hits", "direct", "indirect")]
        rows.append((R.head(r), f"{KINDS.get(str(r['kind']), r['kind'])}.", int(r["n"]), cells))
    return dot_figure("Routing or writing", scales, rows)


def kinds_table(frame: pd.DataFrame | None) -> Table:
    """The numbers behind it, and where attention differs between both runs."""
    spans = [] if frame is None else [
        c.removeprefix("p_looks_") for c in frame.columns if c.startswith("p_looks_")
    ]  # fmt: skip
    rows = []
    for r in R.records(frame):
        looks = [
            Cell(
                signed(float(r[f"looks_{s}"])),
                R.small(r, f"looks_{s}", f"p_looks_{s}"),
            )
            for s in spans
        ]
        rows.append(
            Row(
                R.head(r),
                (
                    words(KINDS.get(str(r["kind"]), str(r["kind"]))),
                    Cell(percent(float(r["hits"])), R.small(r, "hits", form=percent)),
                    Cell(signed(float(r["direct"])), R.small(r, "direct")),
                    Cell(
                        signed(float(r["indirect"])),
                        R.small(r, "indirect", "p_indirect"),
                    ),
                    *looks,
                ),
            )
        )
    named = [f"attention on the {SPANS.get(s, s)}, a less b" for s in spans]
    columns = (
        "head",
        "what it does",
        "writes an answer",
        "by its write",
        "through later layers",
        *named,
    )
    return table("Routing or writing, held-out pairs; effects in logits", columns, rows)


# --- pieces -------------------------------------------------------------------------------------


def _ends(record: Record, name: str) -> dict[str, float]:
    shown = R.estimate(record, name)
    return {"value": shown.value, "low": shown.low, "high": shown.high}


def _way(direction: Any) -> str:
    return {"a_into_b": "a into b", "b_into_a": "b into a"}.get(str(direction), str(direction))


def _plainly(text: Any) -> str:
    """Passages as the page calls them."""
    return str(text).replace("counterfactual", "altered").replace("original", "true")
