"""The exercises of notebook 02."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.errors import LabError
from lab.instruments.summaries.behaviour import right
from lab.teach.compare import Floats, Mistake, fault, per_cent
from lab.teach.exercise import Exercise

if TYPE_CHECKING:
    import xarray as xr

    from lab.instruments.summaries.transfer import Run


def _dataset(runs: Sequence[Run], name: str) -> xr.Dataset:
    for run in runs:
        if run.name == name:
            return run.dataset
    raise LabError(f"There is no run {name!r} among {', '.join(run.name for run in runs)}.")


def _log_odds(runs: Sequence[Run], name: str, rung: str) -> Floats:
    return np.asarray(_dataset(runs, name)["log_odds"].sel(rung=rung).values, dtype=float)


def _over_acceptance(answer: Any, runs: Sequence[Run]) -> str | None:
    def found(name: str) -> tuple[float, float]:
        correct = float(np.nanmean(right(_dataset(runs, name), "own")))
        return float((_log_odds(runs, name, "own") > 0).mean()), correct

    accepted, correct = found("generator")
    gold = float((_log_odds(runs, "generator", "gold") > 0).mean())
    base = found("base")
    mistakes = [
        Mistake(
            correct - accepted, "The sign: accepted minus right, so that too much is positive."
        ),
        Mistake(accepted, "That is the share accepted: subtract the share of right answers."),
        Mistake(
            correct, "That is the share of right answers: subtract it from the share accepted."
        ),
        Mistake(
            gold - correct, 'Those are the gold candidates: its own answers are the rung "own".'
        ),
        Mistake(base[0] - base[1], "That is the base: take the version trained to answer."),
        per_cent(accepted - correct),
    ]
    return fault(answer, accepted - correct, mistakes)


def _changed(answer: Any, runs: Sequence[Run]) -> str | None:
    before, after = (_log_odds(runs, name, "gold") > 0 for name in ("base", "evaluator"))
    own = [_log_odds(runs, name, "own") > 0 for name in ("base", "evaluator")]
    truth = int((before != after).sum())
    net = int(after.sum()) - int(before.sum())
    mistakes = [
        Mistake(net, "That is the difference of two counts: verdicts that changed one way and the "
                "other cancel in it. Compare question by question."),
        Mistake(-net, "That is the difference of two counts: verdicts that changed one way and "
                "the other cancel in it. Compare question by question."),
        Mistake((before != after).mean(), "That is the share of the questions: how many are they?"),
        Mistake((before == after).sum(), "Those are the verdicts that stayed."),
        Mistake((own[0] != own[1]).sum(), "Those are verdicts on each version's own answer, which "
                'need not be the same text: take the rung "gold".'),
    ]  # fmt: skip
    return fault(answer, truth, mistakes)


EXERCISES = (
    Exercise(
        "02.over_acceptance",
        "What share of its own answers does the version trained to answer accept, minus the share "
        "that is right?",
        ("runs",),
        _over_acceptance,
        "0 would be honest; it can be 0 for a judge that does not read, by accident of the rates.",
    ),
    Exercise(
        "02.changed",
        "On how many of the gold candidates do the base and the version trained to judge give "
        "different verdicts?",
        ("runs",),
        _changed,
        "Pairs show what two totals hide.",
    ),
)
