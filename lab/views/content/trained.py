"""What training changes: the summaries of several models, and what is said of them in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import xarray as xr

from lab.instruments.statistics import Estimate
from lab.instruments.summaries import behaviour as B
from lab.instruments.summaries import tables as T
from lab.instruments.summaries import transfer
from lab.instruments.summaries.differences import FEWEST
from lab.instruments.summaries.runs import BASE, Run, common
from lab.instruments.summaries.schemes import out_of_scheme
from lab.instruments.summaries.summary import FOR_READERS, Tables
from lab.instruments.summaries.transfer import Claim
from lab.views.content.behaviour import Untrained
from lab.views.format import count, interval, percent
from lab.views.wording import RUNS

ROLES = {"generator": "answering", "evaluator": "judging"}
"""What a role does, in words."""

LEVEL = 0.05

PAIRED = {
    ("own", "ga_f1_50"): ("ga", 1),
    ("own", "acceptance"): ("acceptance", 1),
    ("fair", "balanced_accuracy"): ("balanced_accuracy", 1),
    ("fair", "auroc"): ("auroc", 1),
    ("fair", "accepts_right"): ("tpr", 1),
    ("fair", "accepts_wrong"): ("tnr", -1),
}
"""Lines of the table of behaviour that the matrix has too; -1: as one minus it."""


@dataclass(frozen=True, slots=True)
class Training:
    """The summaries of several models on the same questions, each computed once."""

    runs: list[Run]
    matrix: pd.DataFrame
    claims: list[Claim]
    inside: pd.DataFrame
    heads: pd.DataFrame
    schemes: pd.DataFrame
    unchanged: pd.DataFrame

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Training | None:
        """The summaries; None where there is nothing to compare."""
        light = [replace(run, dataset=_light(run.dataset)) for run in runs]
        light = [run for run in light if run.dataset.sizes.get("example")]
        if len({run.name for run in light}) < 2:
            return None
        light = common(light)
        matrix = transfer.matrix(light)
        return cls(
            light,
            matrix,
            transfer.claims(matrix, light),
            transfer.inside(light),
            transfer.head_changes(light),
            out_of_scheme(light),
            transfer.unchanged(light),
        )

    @property
    def names(self) -> list[str]:
        """The models, the reference first."""
        return list(dict.fromkeys(run.name for run in self.runs))

    def record(
        self, run: str, metric: str, scope: str = "all", name: str = "all"
    ) -> dict[str, Any]:
        """A row of the matrix; empty where it has none."""
        frame = self.matrix
        chosen = frame[
            (frame["run"] == run) & (frame["metric"] == metric)
            & (frame["scope"] == scope) & (frame["name"] == name)
        ]  # fmt: skip
        return {str(key): value for key, value in chosen.iloc[0].items()} if len(chosen) else {}

    def without_meaning(self, run: str, metric: str) -> str:
        """Why a measure of one model says nothing, in words; empty where it does."""
        return transfer.without_meaning([one for one in self.runs if one.name == run], metric)

    def changed(self, run: str, metric: str, scope: str = "all", name: str = "all") -> bool:
        """Whether the difference from the reference may be called a change."""
        clear = bool(self.record(run, metric, scope, name).get("clear"))
        return clear and not transfer.not_comparable(self.runs, run, metric)

    def value(self, run: str, metric: str) -> Estimate:
        """A measure of one model over all questions."""
        return T.find(self.matrix, run=run, metric=metric, scope="all")


def untrained(
    found: Training | None, tables: Tables, balanced: pd.DataFrame, provenance: Mapping[str, Any]
) -> Untrained | None:
    """The untrained model's behaviour beside a trained one's; None where either is not there.

    A difference is given where the matrix holds exactly the two values that the table shows, so
    that it is paired over the same candidates.
    """
    if found is None or found.names[0] != BASE:
        return None
    name = transfer.run_of(found.runs, provenance.get("adapter"))
    if name == BASE:
        return None
    found = _alone(found, name, provenance.get("adapter"))
    base = found.runs[0].dataset.drop_vars(["dataset", "family"], errors="ignore")
    other = {"own": B.agreement(base, tables.rule), "fair": B.balanced(base, tables.rule)}
    this = {"own": tables.agreement, "fair": balanced}
    gaps, clear = {}, set()
    for (part, metric), (measure, sign) in PAIRED.items():
        at = {"scope": "all", "metric": metric} | ({"rung": "hardest"} if part == "fair" else {})
        shown = [T.find(side[part], **at).value for side in (this, other)]
        held = [found.value(run, measure).value for run in (name, BASE)]
        held = [value if sign > 0 else 1 - value for value in held]
        if all(math.isclose(a, b, abs_tol=1e-9) for a, b in zip(shown, held, strict=True)):
            gap = gap_of(found.record(name, measure))
            gaps[part, metric] = gap if sign > 0 else _negated(gap)
            if found.changed(name, measure):
                clear.add((part, metric))
    return Untrained(other["own"], other["fair"], gaps, frozenset(clear))


def _alone(found: Training, name: str, adapter: Mapping[str, Any] | None) -> Training:
    """The same with the matrix of this one training and the reference, without its other seeds."""
    seeds = [run for run in found.runs if run.name == name]
    own = [run for run in seeds if run.adapter == str((adapter or {}).get("name"))]
    if len(seeds) == 1 or len(own) != 1:
        return found
    runs = [run for run in found.runs if run.name == found.names[0]] + own
    return replace(found, runs=runs, matrix=transfer.matrix(runs))


def run_label(name: str) -> str:
    """What a model is called: by what was trained, or by its own name."""
    return RUNS.get(name, name)


def lead(found: Training) -> str:
    """Which models, on which questions, and what the intervals and ranges mean."""
    seeds = {name: sum(run.name == name for run in found.runs) for name in found.names}
    models = [
        run_label(name) + (f" ({count(seeds[name], 'training seed')})" if seeds[name] > 1 else "")
        for name in found.names
    ]
    base = found.runs[0].dataset
    n, passages = base.sizes["example"], T.independent(base)
    judged = found.value(found.names[0], "tpr").n
    lines = [
        f"One model in {len(models)} versions, {', '.join(models[:-1])} and {models[-1]}, on the "
        f"same {count(n, 'question')} in the same prompts.",
        f"These share {count(passages, 'passage')}: with so few, intervals are too narrow."
        if passages < FEWEST
        else "",
        f"Verdicts are compared on {count(judged, 'question')} with a right and a wrong candidate; "
        "the wrong one is the same for all versions." if judged else "",
        f"Differences are from the version \u201c{run_label(found.names[0])}\u201d, paired by "
        "question.",
        "Where there are several training seeds, values are their means; the range of the single "
        "trainings shows how much is luck of the training, which no interval over questions does."
        if max(seeds.values()) > 1
        else "Each was trained once: what another training seed would change is not known.",
        unchanged_lead(found),
    ]  # fmt: skip
    return " ".join(line for line in lines if line)


def unchanged_lead(found: Training) -> str:
    """How many answers are word for word those of the reference."""
    told = []
    for name in found.names[1:]:
        share = T.find(found.unchanged, run=name)
        told.append(f"{run_label(name)}, {percent(share.value)} {interval(share, percent)}".strip())
    reference = run_label(found.names[0])
    return f"Answers that are word for word those of the version \u201c{reference}\u201d: " + (
        "; ".join(told) + "."
    )


def heads_lead(found: Training) -> str:
    """How many heads look at the passage differently after each training."""
    if found.heads.empty:
        return ""
    parts = []
    for name in found.names[1:]:
        of_run = found.heads[found.heads["run"] == name]
        clear = of_run[of_run["p_adjusted"] <= LEVEL]["role"].value_counts()
        if len(of_run):
            each = len(of_run) // of_run["role"].nunique()
            told = " and ".join(f"{clear.get(r, 0)} when {word}" for r, word in ROLES.items())
            parts.append(f"{run_label(name)}, {told} (of {each})")
    return (
        f"Heads whose attention to the passage changed (corrected p of {LEVEL:g} or less): "
        f"{'; '.join(parts)}. For the others no change is shown."
    )


def gap_of(record: Mapping[str, Any]) -> Estimate:
    """The difference from the reference in a row of one of the tables."""
    value, low, high = (float(record[f"difference{end}"]) for end in ("", "_low", "_high"))
    return Estimate(value, low, high, int(record["n"]), "paired bootstrap")


def _negated(gap: Estimate) -> Estimate:
    return Estimate(-gap.value, -gap.high, -gap.low, gap.n, gap.method)


def _light(dataset: xr.Dataset) -> xr.Dataset:
    """Without what no summary needs, in memory."""
    return dataset.drop_vars([name for name in FOR_READERS if name in dataset]).compute()
