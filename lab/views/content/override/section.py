"""Which few heads decide: the section of the report on an override study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from lab.instruments.statistics import Estimate
from lab.views.content.override import rows as R
from lab.views.content.override.box import decides
from lab.views.content.override.contest import Contest, contest
from lab.views.content.override.words import (
    CAPTIONS,
    CONTESTS,
    EFFECTS,
    GLOSSARY,
    HELP,
    LEAD,
    MEASURES,
    MENU,
    PUBLISHED,
    ROLES,
    RUNS,
    SEARCHED,
    STATES,
    TEXTS,
)
from lab.views.format import decimal, interval, percent
from lab.views.table import Cell, Row, Table, cell, table, words

if TYPE_CHECKING:
    from lab.studies.override.results import OverrideResults

_TOLD = {"passage": "follow the passage", "memory": "answer from own knowledge"}
_STATED = {"original": "true", "counterfactual": "altered"}
_ANSWERS = {"memory": "the true one", "counter": "the altered one"}


@dataclass(frozen=True, slots=True)
class Section:
    """What the template shows; see ``static/override.html.j2``."""

    lead: str
    glossary: tuple[tuple[str, str], ...]
    published: tuple[str, str, str]
    conflicts: Table
    conflicts_lead: str
    verdicts: Table
    verdicts_lead: str
    contests: Table
    fallout: Table
    parts: list[Contest]
    crossing: Table
    across: Table
    restored: Table
    texts: Mapping[str, str]
    captions: Mapping[str, str]
    help: tuple[str, ...]


def section(found: OverrideResults) -> Section:
    """The tables, figures and sentences; what is not finished is left out."""
    tables = found.tables
    listed = tables.get("contests")
    rows = R.records(listed)
    parts = [
        contest(record, found.contests.get(str(record["contest"]), {}))
        for record in rows
        if record["state"] in SEARCHED
    ]
    return Section(
        LEAD,
        GLOSSARY,
        PUBLISHED,
        conflicts_table(tables.get("conflicts")),
        conflicts_lead(tables.get("conflicts")),
        verdicts_table(tables.get("verdicts")),
        verdicts_lead(tables.get("verdicts")),
        contests_table(rows, found),
        fallout_table(tables.get("fallout")),
        parts,
        crossing_table(tables.get("crossing")),
        across_table(tables.get("across")),
        restored_table(tables.get("restored")),
        TEXTS,
        CAPTIONS,
        HELP,
    )


def menu(of: Section) -> Iterator[tuple[str, str]]:
    """The parts of a page of its own that are there: (id, label)."""
    yield "override", "Found"
    if of.conflicts.rows:
        yield "obeying", "As told"
    if of.verdicts.rows:
        yield "judging", "As a judge"
    for part in of.parts:
        yield f"contest-{part.name}", MENU.get(part.name, part.name)
    if of.crossing.rows:
        yield "compared", "Compared"
    if of.restored.rows:
        yield "restored", "Put into the judge"
    yield from (("limits", "Limits"), ("made", "About"))


# --- does it do as it is told? ------------------------------------------------------------------


def conflicts_table(frame: pd.DataFrame | None) -> Table:
    """The 2 x 2 table: what is said under each instruction, on each passage."""
    rows = []
    told = None if frame is None else frame[frame["instruction"] != ""]
    for (instruction, passage), part in R.grouped(told, ["instruction", "passage"]):
        of = {name: R.estimate(r) for name, r in R.by_name(part, "quantity").items()}
        asked = str(part["expected"].iloc[0])
        shares = (cell(of.get(name), percent) for name in ("memory", "counter", "other"))
        n = max((e.n for e in of.values()), default=0)
        rows.append(
            Row(
                f"told to {_TOLD.get(instruction, instruction)}; the passage is "
                f"{_STATED.get(passage, passage)}",
                (
                    words(_ANSWERS.get(asked, asked)),
                    *shares,
                    cell(of.get("margin"), decimal),
                    Cell(str(n)),
                ),
            )
        )
    columns = (
        "", "answer asked for", "says the true one", "says the altered one", "neither",
        "margin, logits", "n",
    )  # fmt: skip
    return table("What the model says, by instruction and passage", columns, rows)


def conflicts_lead(frame: pd.DataFrame | None) -> str:
    """How many facts it knows, how many conflicts are usable, what the margin is."""
    if frame is None:
        return ""
    known, usable = (_find(frame, quantity=q, instruction="") for q in ("known", "usable"))
    lines = [
        f"Without any passage it knows {percent(known.value)} {interval(known, percent)} of "
        f"{known.n} facts." if known else "",
        f"Only {percent(usable.value)} {interval(usable, percent)} of the conflicts are obeyed "
        "both ways on the altered passage." if usable else "",
        "Margin: logit of the true answer minus that of the altered one.",
    ]  # fmt: skip
    return " ".join(line for line in lines if line)


def verdicts_table(frame: pd.DataFrame | None) -> Table:
    """The judge's verdicts, by passage and candidate."""
    rows = []
    told = None if frame is None else frame[frame["passage"] != ""]
    for (passage, candidate), part in R.grouped(told, ["passage", "candidate"]):
        of = {name: R.estimate(r) for name, r in R.by_name(part, "quantity").items()}
        right = R.true(part["right"].iloc[0])
        rows.append(
            Row(
                f"the passage is {_STATED.get(passage, passage)}; the candidate is "
                f"{_ANSWERS.get(candidate, candidate).replace(' one', ' answer')}",
                (
                    words("accept" if right else "reject"),
                    cell(of.get("accepts"), percent),
                    cell(of.get("log_odds"), decimal, with_n=True),
                ),
            )
        )
    columns = ("", "verdict asked for", "accepts", "log-odds of accepting")
    return table("What the judge says, by passage and candidate", columns, rows)


def verdicts_lead(frame: pd.DataFrame | None) -> str:
    """How well it tells right from wrong."""
    if frame is None:
        return ""
    parts = []
    for quantity in ("balanced_accuracy", "auroc"):
        found = _find(frame, quantity=quantity, passage="")
        if found:
            label, small = MEASURES[quantity]
            ends = interval(found, decimal)
            parts.append(f"{label} {decimal(found.value)} {ends} ({small})")
    return f"Over all conflicts: {', '.join(parts)}." if parts else ""


# --- contests -----------------------------------------------------------------------------------


def contests_table(listed: list[dict[str, Any]], found: OverrideResults) -> Table:
    """Every contest: what is compared, how many pairs, how far apart, and what came of it."""
    rows = []
    for r in listed:
        name = str(r["contest"])
        title, what = CONTESTS.get(name, (name, ""))
        share, gap = R.estimate(r, "share"), R.estimate(r, "gap")
        rows.append(
            Row(
                title,
                (
                    Cell(
                        f"{ROLES.get(str(r['role']), str(r['role'])).capitalize()}. {what}",
                        kind="what",
                        more=(f"In the tables below: {name}.",),
                    ),
                    Cell(
                        f"{R.whole(r['usable'])} of {R.whole(r['conflicts'])}",
                        f"{percent(share.value)} {interval(share, percent)}",
                    ),
                    Cell(decimal(gap.value), interval(gap, decimal)),
                    _what_came(r, found),
                ),
                link=f"contest-{name}" if r["state"] in SEARCHED else "",
            )
        )
    columns = (
        "contest", "the two runs", "usable conflicts", "runs apart by, logits, all conflicts",
        "what was found",
    )  # fmt: skip
    return table("The contests, and what came of each", columns, rows)


def _what_came(record: dict[str, Any], found: OverrideResults) -> Cell:
    state = str(record["state"])
    said = STATES.get(state, state)
    if state != "found":
        return Cell(said, more=(str(record["why"]),) if record["why"] else (), kind="text")
    proof = found.contests.get(str(record["contest"]), {}).get("proof")
    effect = decides(record, proof)
    if effect is not None:
        said += f": {EFFECTS[effect]}"
    return Cell(said, more=(", ".join(R.names(record["heads"])),), kind="text")


def fallout_table(frame: pd.DataFrame | None) -> Table:
    """Why conflicts cannot be used, each counted at its first reason."""
    rows = []
    for r in R.records(frame):
        title = CONTESTS.get(str(r["contest"]), (str(r["contest"]), ""))[0]
        told = f"{R.whole(r['conflicts'])} of {R.whole(r['of'])}"
        rows.append(Row(title, (words(str(r["reason"])), Cell(told))))
    return table("Conflicts that cannot be used", ("contest", "first reason", "conflicts"), rows)


# --- contests compared --------------------------------------------------------------------------


def crossing_table(frame: pd.DataFrame | None) -> Table:
    """Shared heads and rank correlation of each two contests."""
    rows = []
    for r in R.records(frame):
        rank = Estimate(float(r["correlation"]), float(r["low"]), float(r["high"]))
        roles = [ROLES.get(str(r[f"{which}_role"]), "") for which in ("first", "second")]
        shared = str(R.whole(r["shared"]))
        rows.append(
            Row(
                f"{r['first']} ({roles[0]}) and {r['second']} ({roles[1]})",
                (
                    Cell(shared),
                    Cell(decimal(float(r["jaccard"])), f"chance {decimal(float(r['expected']))}"),
                    Cell(R.p_text(r["p"])),
                    Cell(decimal(rank.value), f"{interval(rank, decimal)} n = {R.whole(r['n'])}"),
                ),
            )
        )
    columns = ("contests", "shared heads", "Jaccard index", "p", "rank correlation of all heads")
    return table("The heads of two contests compared", columns, rows)


def across_table(frame: pd.DataFrame | None) -> Table:
    """The heads of one contest, off in the runs of another."""
    rows = []
    for (heads_of, which, pairs_of), part in R.grouped(frame, ["heads_of", "set", "pairs_of"]):
        own = " (itself)" if heads_of == pairs_of else ""
        of = f"{heads_of}, the set of its {RUNS.get(which, which)}"
        rows.append(Row(f"heads of {of}, in the runs of {pairs_of}{own}", group=True))
        for (run,), lines in R.grouped(part, ["run"], sort=True):
            by = R.by_name(lines, "measure")
            cells = tuple(R.against(by.get(m), m) for m in ("to_other", "damage", "two_token"))
            rows.append(Row(f"run {run}", (*cells, R.against(by.get("shift"), "shift"))))
    columns = ("", "turn to the other answer", "to anything else", "sign turns", "shift, logits")
    return table("The heads of one contest in the runs of another", columns, rows)


def restored_table(frame: pd.DataFrame | None) -> Table:
    """The judge with the generator's head outputs: before, after, and with random sets."""
    rows = []
    for (name, measure), part in R.grouped(frame, ["contest", "measure"]):
        of = R.by_name(part, "moment")
        label, small = MEASURES.get(measure, (measure, ""))
        cells = tuple(R.against(of.get(m), measure) for m in ("before", "after", "difference"))
        rows.append(Row(f"heads of {name}: {label} ({small})", cells))
    columns = ("", "before", "after", "difference")
    return table("The judge with what the heads put out when answering", columns, rows)


# --- pieces -------------------------------------------------------------------------------------


def _find(frame: pd.DataFrame, **at: str) -> Estimate | None:
    for name, value in at.items():
        frame = frame[frame[name].fillna("") == value]
    rows = [record for record in R.records(frame) if R.found(record)]
    return R.estimate(rows[0]) if rows else None
