"""The box of a contest: what was found, what it does and how far to trust it, as sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import pandas as pd

from lab.studies.override.results import FEWEST_SETS
from lab.views.content.override import rows as R
from lab.views.content.override.rows import Record, Tables
from lab.views.content.override.words import RUNS
from lab.views.format import count, decimal, interval, percent

LEVEL = 0.05
"""Above this p a set of heads does no more than random sets."""

HALF = 0.5
"""Heads decide if without them at least this share of a run's answers turns."""

Effect = Literal["decide", "matter", "unclear"]

_SAID = {"generator": "answers", "evaluator": "verdicts"}


def box(record: Record, tables: Tables) -> tuple[str, ...]:
    """Paragraphs on one contest, from its row of contests.csv and its own tables."""
    told = [_first(record), _choice(record), _swapped(record, tables.get("splits"))]
    if record["state"] == "found":
        told += [*_effects(record, tables.get("proof")), _together(record, tables.get("proof"))]
        told.append(_elsewhere(record, tables.get("elsewhere")))
    return tuple(line for line in told if line)


def decides(record: Record, proof: pd.DataFrame | None) -> Effect | None:
    """Whether the heads of a contest decide or only matter; None where that is not measured.

    They decide if in some run at least half of the answers turn once the run's own set puts out
    zeros, more than with random sets (p at most LEVEL), and not with zeros alone. Where as many
    turn, but there are too few random sets for such a p, it is unclear.
    """
    zeros, means = _own(record, proof)
    told = {_decides(row, means.get(row["run"])) for row in zeros}
    order: tuple[Effect, ...] = ("decide", "unclear", "matter")
    return next((effect for effect in order if effect in told), None)


def _decides(zero: Record, mean: Record | None) -> Effect:
    """What the heads of one run do."""
    if zero["value"] < HALF:
        return "matter"
    if _few(zero):
        return "unclear"
    return "decide" if zero["p"] <= LEVEL and not _only_zeros(zero, mean) else "matter"


def _few(row: Record) -> bool:
    """Whether there are so few random sets that p cannot be small, whatever the heads do."""
    return R.whole(row["random_sets"]) < FEWEST_SETS


def main_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Of proof.csv each run's own set against random sets of the same layers."""
    return frame[(frame["set"] == "run") & (frame["control"] == "layers")]


# --- what was found, and how it was chosen ------------------------------------------------------


def _first(record: Record) -> str:
    if record["state"] != "found":
        return _sentence(record["why"])
    heads = R.names(record["heads"])
    return (
        f"{count(len(heads), 'head')} of the model "
        f"({percent(float(record['share_of_heads']))}): {', '.join(heads)}. The published rule "
        f"labels {percent(float(record['published_share']))} of all heads."
    )


def _choice(record: Record) -> str:
    usable, used = R.whole(record["usable"]), R.whole(record["used"])
    drawn = f", drawn from {usable} usable conflicts" if used < usable else ": all usable conflicts"
    pairs = (
        f"Chosen on {count(R.whole(record['discovery']), 'pair')} and scored on "
        f"{count(R.whole(record['held_out']), 'other')}{drawn}."
    )
    why = _sentence(record["why"]) if record["state"] == "found" else ""
    return f"{pairs} {why}".strip()


def _sentence(text: object) -> str:
    said = str(text).strip().rstrip(".")
    return f"{said}." if said else ""


def _swapped(record: Record, splits: pd.DataFrame | None) -> str:
    """What the whole search finds on the pairs that were held out."""
    other = [] if splits is None else R.records(splits[splits["split"] == "held_out"])
    if not other:
        return ""
    row, heads = other[0], R.names(other[0]["heads"])
    if not heads:
        subjects = R.whole(record["held_out_clusters"])
        few = f", but it has too few subjects ({subjects}) to find a lone head"
        why = few if R.false(row["lone_head"]) else ""
        return f"Searched on the other half instead: no heads{why}."
    return (
        f"Searched on the other half instead: {count(len(heads), 'head')}, Jaccard index "
        f"{decimal(float(row['jaccard']))} ({decimal(float(row['expected']))} by chance)."
    )


# --- what they do -------------------------------------------------------------------------------


def _own(
    record: Record, proof: pd.DataFrame | None
) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """What each run's own set turns with zeros, and with its mean by run."""
    if proof is None:
        return [], {}
    part = main_rows(proof)
    part = part[(part["measure"] == str(record["flip_measure"])) & part["value"].notna()]
    means = R.records(part[part["how"] == "mean"])
    return R.records(part[part["how"] == "zero"]), {row["run"]: row for row in means}


def _effects(record: Record, proof: pd.DataFrame | None) -> Iterator[str]:
    """What each run's own heads turn where they put out zeros: both, so that none is picked."""
    zeros, means = _own(record, proof)
    if proof is None or not zeros:
        return
    broken = main_rows(proof)
    broken = broken[(broken["measure"] == "damage") & (broken["how"] == "zero")]
    damage = R.by_name(broken[broken["value"].notna()], "run")
    for row in zeros:
        said = _effect(record, row, damage.get(str(row["run"])))
        yield said + _lean(row, means.get(row["run"]))


def _effect(record: Record, row: Record, damage: Record | None) -> str:
    n = len(R.names(row["heads"]))
    turned = (
        f"Where the {count(n, 'head')} of {_run(row)} put{'s' if n == 1 else ''} out nothing, "
        f"{_share(row)} of its {_said(record)} turn to the other one"
    )
    if damage is not None:
        turned += f", and {_share(damage)} become something else"
    return f"{turned} (n\u00a0=\u00a0{int(row['n'])}); {_beside(row, damage)}."


def _beside(row: Record, damage: Record | None) -> str:
    """What random sets do instead."""
    sets = R.whole(row["random_sets"])
    if not sets:
        return "there are no other heads in these layers to compare with"
    told = (
        f"only {count(sets, 'set')}: too few other heads to compare with"
        if _few(row)
        else f"95 % of the sets between {percent(row['random_low'])} and "
        f"{percent(row['random_high'])}; {R.p_text(row['p'])}"
    )
    beside = f"with random sets of the same layers {percent(row['random_mean'])} turn ({told})"
    if damage is not None:
        beside += f" and {percent(damage['random_mean'])} become something else"
    return beside


def _only_zeros(zero: Record, mean: Record | None) -> bool:
    """Whether the heads beat random sets with zeros and not with their mean."""
    return mean is not None and bool(zero["p"] <= LEVEL < mean["p"])


def _lean(zero: Record, mean: Record | None) -> str:
    """A warning of an effect of zeros only.

    Zeros also take away what a head puts out in all runs alike, which may only lean the answer.
    """
    if mean is None or not _only_zeros(zero, mean):
        return ""
    return (
        f" With their mean in place of zeros it is {_share(mean)}, no more than "
        f"with random sets ({R.p_text(mean['p'])}): they may only lean the answer, whatever "
        "is read."
    )


def _together(record: Record, proof: pd.DataFrame | None) -> str:
    """What all found heads do when they are off together."""
    if proof is None:
        return ""
    measure = str(record["flip_measure"])
    part = proof[(proof["set"] == "all") & (proof["how"] == "zero") & proof["value"].notna()]
    part = part[(part["measure"] == measure) & (part["control"] == "layers")]
    turned = R.records(part)
    if not turned:
        return ""
    shares = _and(f"{_share(row)} of the {_said(record)} of {_run(row)}" for row in turned)
    heads = len(R.names(record["heads"]))
    return f"All {heads} off together turn {shares}{_fewer(turned, *_own(record, proof))}."


def _fewer(
    together: list[dict[str, Any]], zeros: list[dict[str, Any]], means: dict[str, dict[str, Any]]
) -> str:
    """Why all heads together turn less than each run's own, where they do."""
    own = {row["run"]: row for row in zeros}
    if not all(row["run"] in own and row["value"] < own[row["run"]]["value"] for row in together):
        return ""
    fewer = f", fewer than {'its' if len(together) == 1 else 'each run’s'} own heads"
    if any(_only_zeros(row, means.get(row["run"])) for row in zeros):
        return fewer
    # A head that writes one answer and one that writes the other are then off together.
    return f"{fewer}: the heads of both answers are gone then"


_PROMPTS = {
    "clozes": "unrelated facts that the model knows",
    "questions": "unrelated questions with a passage",
}


def _elsewhere(record: Record, frame: pd.DataFrame | None) -> str:
    """How often the heads change the next word where no conflict is."""
    if frame is None:
        return ""
    part = frame[(frame["measure"] == "changed") & frame["value"].notna()]
    of = R.by_name(part, "prompts")
    told = _and(
        f"for {_share(of[name])} of {what} (n\u00a0=\u00a0{int(of[name]['n'])}; "
        f"{_random(of[name])})"
        for name, what in _PROMPTS.items()
        if name in of
    )
    heads = len(R.names(record["heads"]))
    off = "it" if heads == 1 else f"all {heads}"
    return f"Elsewhere: with {off} off the most likely next word changes {told}." if told else ""


# --- pieces -------------------------------------------------------------------------------------


def _random(row: Record) -> str:
    """What random sets do on average, with p where there are enough of them for one."""
    sets = R.whole(row["random_sets"])
    told = f"only {sets} of them" if _few(row) else R.p_text(row["p"])
    return f"random sets {percent(row['random_mean'])}, {told}" if sets else "no random sets"


def _share(row: Record) -> str:
    return f"{percent(row['value'])} {interval(R.estimate(row), percent)}".strip()


def _run(row: Record) -> str:
    return RUNS.get(str(row["run"]), str(row["run"]))


def _said(record: Record) -> str:
    return _SAID.get(str(record["role"]), "answers")


def _and(parts: Iterable[str]) -> str:
    return " and ".join(parts)
