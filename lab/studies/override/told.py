"""Which pairs a contest uses, and what is told of every contest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from lab.instruments.conflicts import text_says
from lab.instruments.override.contests import CONTESTS, Contest, Outcome, contest_pair, draw
from lab.instruments.override.find import Found, candidate_heads
from lab.instruments.statistics import Estimate, mean_estimate, proportion
from lab.studies.override.measured import Answered
from lab.studies.override.plan import OverridePlan
from lab.studies.override.recipe import OverrideRecipe
from lab.studies.override.results import TABLES, heads_text
from lab.studies.override.search import Drawn


@dataclass(frozen=True, eq=False)
class Told:
    """A contest over all conflicts, before any head is looked for.

    Attributes:
        contest: which.
        outcomes: of every conflict.
        clusters: of every conflict.
        usable, used: indices of the usable conflicts, and of those drawn from them.
        recipe: says how many are needed.
    """

    contest: Contest
    outcomes: tuple[Outcome, ...]
    clusters: tuple[str, ...]
    usable: tuple[int, ...]
    used: tuple[int, ...]
    recipe: OverrideRecipe

    @property
    def used_clusters(self) -> int:
        """How many subjects the used pairs have."""
        return len({self.clusters[i] for i in self.used})

    @cached_property
    def gap(self) -> Estimate:
        """How far the two runs are apart, over all conflicts, used or not."""
        return mean_estimate([o.gap for o in self.outcomes], list(self.clusters))

    @property
    def lacks(self) -> str:
        """Why no heads are looked for, "too few" or "no gap"; empty where they are."""
        if (
            len(self.used) < self.recipe.least_pairs
            or self.used_clusters < self.recipe.least_clusters
        ):
            return "too few"
        # Usable pairs are picked by their outcome. Of a model that does not tell the runs apart
        # chance picks some too, and on these alone, heads that do nothing would pass the test.
        return "" if self.gap.low > 0 else "no gap"

    @property
    def enough(self) -> bool:
        """Whether heads are looked for."""
        return not self.lacks

    def sentence(self) -> str:
        """How many conflicts can be used, and whether heads are looked for."""
        if self.lacks:
            return self._why_not()
        return (
            f"{len(self.usable)} of {len(self.outcomes)} conflicts are decided as asked in both "
            f"runs; {len(self.used)} are used."
        )

    def row(self, drawn: Drawn | None, found: Found | None) -> dict[str, Any]:
        """The contest's row of the table "contests"."""
        usable = proportion([not o.reasons for o in self.outcomes], list(self.clusters))
        row: dict[str, Any] = {
            "contest": self.contest.name,
            "role": self.contest.role,
            "run_a": self.contest.words[0],
            "run_b": self.contest.words[1],
            "state": self.lacks,
            "why": self._why_not(),
            "conflicts": len(self.outcomes),
            "usable": len(self.usable),
            "share": usable.value,
            "share_low": usable.low,
            "share_high": usable.high,
            "clusters": len({self.clusters[i] for i in self.usable}),
            "used": len(self.used) if found else 0,
            "gap": self.gap.value,
            "gap_low": self.gap.low,
            "gap_high": self.gap.high,
            "heads": "",
            "heads_a": "",
            "heads_b": "",
            "flip_measure": self.contest.flip_measure,
        }
        return row if drawn is None or found is None else row | _found(drawn, found)

    def _why_not(self) -> str:
        if self.lacks == "no gap":
            return (
                f"Over all {len(self.outcomes)} conflicts the two runs do not differ for sure "
                f"({self.gap} logits), so that the {len(self.usable)} pairs that are decided as "
                "asked may be chance: no heads are looked for."
            )
        subjects = len({self.clusters[i] for i in self.usable})
        return (
            f"{len(self.usable)} of {len(self.outcomes)} conflicts are decided as asked in both "
            f"runs (subjects: {subjects}); at least {self.recipe.least_pairs} with "
            f"{self.recipe.least_clusters} subjects are needed to look for heads."
        )


def _found(drawn: Drawn, found: Found) -> dict[str, Any]:
    clusters = np.asarray(drawn.clusters, dtype=object)
    units = [len(set(clusters[part])) for part in (found.discovery, ~found.discovery)]
    candidates = candidate_heads(found.sweep.of(found.discovery))[1]
    every = found.tested.p[0].size
    return {
        "state": "found" if found.heads else "none",
        "why": _why(found, len(candidates)),
        "discovery": len(found.chosen_on),
        "held_out": len(found.held_out),
        "discovery_clusters": units[0],
        "held_out_clusters": units[1],
        "lone_head": found.tested.enough,
        "candidates": len(candidates),
        "heads": heads_text(found.heads),
        "heads_a": heads_text(found.set_of(0)),
        "heads_b": heads_text(found.set_of(1)),
        "share_of_heads": len(found.heads) / every,
        "published_share": found.published.share,
    }


def _why(found: Found, candidates: int) -> str:
    units = found.tested.units
    weak = (
        ""
        if found.tested.enough
        else f" On {units} subjects a lone head could not have passed the test: only many heads "
        "at once can."
    )
    if found.heads:
        return f"{candidates} heads pass the test on {units} subjects.{weak}"
    if candidates:
        return (
            f"{candidates} heads pass the test, but ablating them does not move the answer.{weak}"
        )
    return f"No head passes the test on {units} subjects.{weak}"


def contests_frame(
    told: Mapping[str, Told], drawn: Mapping[str, Drawn], found: Mapping[str, Found]
) -> pd.DataFrame:
    """The table "contests" of `lab.studies.override.results`."""
    rows = [one.row(drawn.get(name), found.get(name)) for name, one in told.items()]
    return pd.DataFrame(rows, columns=TABLES["contests"])


def draw_contests(
    recipe: OverrideRecipe, plan: OverridePlan, all_answered: Sequence[Answered]
) -> tuple[dict[str, Told], dict[str, Drawn]]:
    """What is told of each contest, and the pairs of those that have enough."""
    told: dict[str, Told] = {}
    drawn: dict[str, Drawn] = {}
    for name, contest in CONTESTS.items():
        outcomes = tuple(a.outcome(name) for a in all_answered)
        usable = tuple(i for i, found in enumerate(outcomes) if not found.reasons)
        used = tuple(draw(usable, plan.clusters, recipe.pairs, recipe.seed))
        told[name] = Told(contest, outcomes, tuple(plan.clusters), usable, used, recipe)
        if told[name].enough:
            drawn[name] = _drawn(contest, plan, used)
    return told, drawn


def _drawn(contest: Contest, plan: OverridePlan, used: Sequence[int]) -> Drawn:
    conflicts = [plan.conflicts[i] for i in used]

    def says(number: int, text: str) -> str:
        if contest.role == "evaluator":
            return verdict_said(text, plan.verdict.words)
        return text_says(conflicts[number], text)

    return Drawn(
        contest,
        tuple(contest_pair(contest, plan.rendered[i]) for i in used),
        tuple(c.id for c in conflicts),
        tuple(c.question for c in conflicts),
        says,
    )


def verdict_said(text: str, words: tuple[str, str]) -> str:
    """Which verdict a text begins with: "accept", "reject" or "other"."""
    first = next(iter(re.findall(r"\w+", text.casefold())), "")
    says = [first == word.strip().casefold() for word in words]
    return "other" if says[0] == says[1] else ("accept", "reject")[says.index(True)]
