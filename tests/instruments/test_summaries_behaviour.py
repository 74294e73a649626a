"""Accuracy of answers and verdicts, the balanced re-test, controls: hand-made studies."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from synthetic_study import CONTROLS, RUNGS, synthetic_study

from lab.errors import LabError
from lab.instruments.summaries import behaviour, tables


def judged_study(tp: int, fp: int, tn: int, fn: int) -> xr.Dataset:
    """A study of single questions in which the judge's verdicts on its own answers are counted."""
    right, accept = np.repeat([[1, 1], [0, 1], [0, 0], [1, 0]], (tp, fp, tn, fn), axis=0).T
    return behaviour_study(right, {"own": np.where(accept, 1.0, -1.0)}, {"own": right})


def behaviour_study(
    own_f1: np.ndarray, log_odds: dict[str, np.ndarray], f1: dict[str, np.ndarray]
) -> xr.Dataset:
    n = len(own_f1)
    odds, scores = np.full((n, len(RUNGS)), np.nan), np.full((n, len(RUNGS)), np.nan)
    for rung in log_odds:
        odds[:, RUNGS.index(rung)] = log_odds[rung]
        scores[:, RUNGS.index(rung)] = f1[rung]
    pair = ("example", "rung")
    return xr.Dataset(
        {
            "em": ("example", np.asarray(own_f1, dtype=float)),
            "f1": ("example", np.asarray(own_f1, dtype=float)),
            "log_odds": (pair, odds),
            "candidate_f1": (pair, scores),
            "candidate_em": (pair, np.where(np.isnan(scores), np.nan, scores == 1)),
            "candidate_given": (pair, ~np.isnan(scores)),
        },
        coords={
            "example": np.array([f"e{i}" for i in range(n)], dtype=object),
            "cluster": ("example", np.array([f"p{i}" for i in range(n)], dtype=object)),
            "dataset": ("example", np.array(["toy"] * n, dtype=object)),
            "family": ("example", np.array(["one"] * n, dtype=object)),
            "rung": np.array(RUNGS, dtype=object),
        },
    )


def value(frame, **names: str) -> float:  # type: ignore[no-untyped-def]
    return tables.find(frame, **names).value


# --- agreement ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (
            (70, 8, 12, 10),
            {"ga": 0.80, "ea": 0.82, "delta": 0.02, "tpr": 0.875, "tnr": 0.6,
             "balanced_accuracy": 0.7375, "precision": 0.8974, "mcc": 0.4587, "kappa": 0.4578,
             "acceptance": 0.78, "over_acceptance": -0.02, "majority": 0.80,
             "always_accept": 0.80, "always_reject": 0.20},
        ),
        (
            (5, 5, 80, 10),
            {"ga": 0.15, "ea": 0.85, "delta": 0.70, "tpr": 0.3333, "tnr": 0.9412,
             "balanced_accuracy": 0.6373, "precision": 0.5, "mcc": 0.3267, "kappa": 0.3182,
             "acceptance": 0.10, "over_acceptance": -0.05, "majority": 0.85,
             "always_accept": 0.15, "always_reject": 0.85},
        ),
    ],
)  # fmt: skip
def test_worked_examples(counts: tuple[int, ...], expected: dict[str, float]) -> None:
    frame = behaviour.agreement(judged_study(*counts))
    found = {metric: value(frame, scope="all", metric=metric) for metric in expected}
    assert found == pytest.approx(expected, abs=5e-5)


def test_every_metric_has_its_interval_and_count() -> None:
    frame = behaviour.agreement(judged_study(70, 8, 12, 10))
    overall = frame[frame["scope"] == "all"].set_index("metric")
    assert list(overall.index) == list(behaviour.METRICS)
    with_interval = overall.drop(index="aurc")
    assert (with_interval["low"] <= with_interval["value"]).all()
    assert (with_interval["high"] >= with_interval["value"]).all()
    assert overall.loc["tpr", "n"] == 80 and overall.loc["tnr", "n"] == 20
    assert overall.loc["precision", "n"] == 78


def test_delta_has_a_paired_interval() -> None:
    """The judge is wrong exactly where the answer is: EA and GA move together."""
    frame = behaviour.agreement(judged_study(tp=50, fp=50, tn=0, fn=0))
    delta = tables.find(frame, scope="all", metric="delta")
    assert (delta.value, delta.low, delta.high) == (0, 0, 0)


def test_a_judge_that_rejects_everything() -> None:
    frame = behaviour.agreement(judged_study(0, 0, 93, 7))
    assert value(frame, scope="all", metric="ea") == pytest.approx(0.93)
    assert value(frame, scope="all", metric="ea") == value(
        frame, scope="all", metric="always_reject"
    )
    assert value(frame, scope="all", metric="balanced_accuracy") == 0.5
    assert value(frame, scope="all", metric="kappa") == 0
    assert math.isnan(value(frame, scope="all", metric="precision"))


def test_answers_count_as_right_under_three_rules() -> None:
    f1 = np.array([1.0, 0.8, 0.6, 0.5, 0.2])
    ds = behaviour_study(f1, {"own": np.ones(5)}, {"own": f1})
    frame = behaviour.agreement(ds, rule="f1_80")
    shares = [value(frame, scope="all", metric=f"ga_{rule}") for rule in ("em", "f1_50", "f1_80")]
    assert shares == [0.2, 0.8, 0.4]
    assert value(frame, scope="all", metric="ea") == 0.4


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(LabError, match="f1_50"):
        behaviour.agreement(judged_study(1, 1, 1, 1), rule="f1>0.5")


def test_groups_are_all_then_datasets_then_families_where_there_are_several() -> None:
    ds, _ = synthetic_study(24, 2, 2)
    groups = [(group.scope, group.name) for group in tables.groups(ds)]
    assert groups[:4] == [
        ("all", "all"), ("dataset", "builtin"), ("dataset", "squad2"), ("dataset", "drop"),
    ]  # fmt: skip
    assert ("family", "drop/sum") in groups
    assert tables.groups(judged_study(1, 0, 1, 0))[-1].scope == "dataset"


# --- the balanced re-test -----------------------------------------------------------------------


def retest_study() -> xr.Dataset:
    """Six questions: the third has no gold answer, the fourth a wrong candidate that is right."""
    n = 6
    gold = np.array([2.0, 1.0, np.nan, 1.0, -1.0, 0.5])
    same_type = np.array([-1.0, 1.5, 3.0, 3.0, -2.0, 0.5])
    other = np.array([-3.0, -3.0, -3.0, -3.0, np.nan, -3.0])
    f1 = {
        "gold": np.where(np.isnan(gold), np.nan, 1.0),
        "same_type": np.array([0, 0, 0, 1.0, 0, 0.4]),
        "other_passage": np.where(np.isnan(other), np.nan, 0.0),
        "own": np.zeros(n),
    }
    odds = {"gold": gold, "same_type": same_type, "other_passage": other, "own": np.zeros(n)}
    return behaviour_study(np.zeros(n), odds, f1)


def test_retest_on_one_right_and_one_wrong_candidate_a_question() -> None:
    frame = behaviour.balanced(retest_study())
    found = frame[(frame["scope"] == "all") & (frame["rung"] == "same_type")].set_index("metric")
    assert set(found["n"]) == {4}  # questions 0, 1, 4 and 5
    assert found.loc["accepts_right", "value"] == 0.75
    assert found.loc["accepts_wrong", "value"] == 0.5
    assert found.loc["balanced_accuracy", "value"] == pytest.approx((0.75 + 0.5) / 2)
    assert found.loc["pair_share", "value"] == pytest.approx((1 + 0 + 1 + 0.5) / 4)
    # right 2, 1, -1, .5 against wrong -1, 1.5, -2, .5
    assert found.loc["auroc", "value"] == pytest.approx((4 + 3 + 1.5 + 2.5) / 16)


def test_the_hardest_row_takes_the_first_wrong_candidate_that_exists() -> None:
    frame = behaviour.balanced(retest_study())
    hardest = tables.find(frame, scope="all", rung="hardest", metric="accepts_wrong")
    assert hardest.n == 5  # the fourth question falls back on another passage's answer
    assert hardest.value == pytest.approx(2 / 5)


@pytest.mark.parametrize("verdict", [1.0, -1.0])
def test_a_judge_that_always_says_the_same_gets_one_half(verdict: float) -> None:
    constant = np.full(20, verdict)
    f1 = {"own": np.zeros(20), "gold": np.ones(20), "same_type": np.zeros(20)}
    ds = behaviour_study(np.zeros(20), dict.fromkeys(f1, constant), f1)
    frame = behaviour.balanced(ds)
    for metric in ("balanced_accuracy", "auroc", "pair_share"):
        assert value(frame, scope="all", rung="hardest", metric=metric) == 0.5


@pytest.mark.parametrize("rule", ["em", "f1_50", "f1_80"])
def test_a_gold_candidate_is_right_whatever_its_score(rule: str) -> None:
    """A joined list of spans may score as wrong against itself: it is asked all the same."""
    ds = retest_study()
    low = ds.copy(deep=True)
    for score in ("candidate_f1", "candidate_em"):
        low[score].loc[{"rung": "gold", "example": "e0"}] = 0.0
    assert list(behaviour.right(low, "gold", rule)[[0, 1]]) == [1, 1]
    assert math.isnan(behaviour.right(low, "gold", rule)[2])  # none was given
    pd.testing.assert_frame_equal(behaviour.balanced(low, rule), behaviour.balanced(ds, rule))


def test_every_rung_of_the_ladder_has_its_row_even_if_empty() -> None:
    frame = behaviour.balanced(retest_study())
    assert set(frame["rung"]) == {"hardest", *behaviour.WRONG_RUNGS}
    assert math.isnan(value(frame, scope="all", rung="closed_book", metric="auroc"))


# --- controls and verdict words -----------------------------------------------------------------


def test_controls_give_flip_rate_shift_and_corrected_tests() -> None:
    ds = judged_study(10, 0, 10, 0)
    before = ds["log_odds"].sel(rung="own").values
    after = dict.fromkeys(CONTROLS, before) | {"context_masked": before - 2}
    ds = ds.assign_coords(control=np.array(CONTROLS, dtype=object))
    ds["control_log_odds"] = (("example", "control"), np.stack(list(after.values()), axis=1))
    frame = behaviour.controls(ds).set_index(["control", "metric"])
    masked = frame.loc["context_masked"]
    assert masked.loc["flip_rate", "value"] == 0.5
    assert masked.loc["flip_rate", "p"] == pytest.approx(2 * 0.5**10, rel=0.5)
    assert masked.loc["shift", "value"] == -2
    assert masked.loc["shift", "p_adjusted"] == pytest.approx(8 / 20_001)
    assert masked.loc["acceptance", "value"] == 0
    same = frame.loc["filler"]
    assert same.loc["flip_rate", "value"] == 0 and same.loc["shift", "p"] == 1


def test_verdicts_that_flip_in_few_passages_are_few_events() -> None:
    """24 flips are strong evidence in 24 passages, and none in two."""
    ds = judged_study(24, 0, 0, 0).assign_coords(control=np.array(CONTROLS, dtype=object))
    ds["control_log_odds"] = (("example", "control"), -np.ones((24, len(CONTROLS))))
    shared = ds.assign_coords(cluster=("example", np.repeat(["p0", "p1"], 12).astype(object)))
    alone, together = (
        behaviour.controls(study).set_index(["control", "metric"]).loc[(CONTROLS[0], "flip_rate")]
        for study in (ds, shared)
    )
    assert alone["value"] == together["value"] == 1
    assert alone["p"] < 1e-4
    assert together["p"] == 0.5


def test_a_control_that_was_not_run_is_nan() -> None:
    ds, _ = synthetic_study(6, 2, 2)
    ds["control_log_odds"][:, 2] = np.nan
    found = tables.find(behaviour.controls(ds), control=CONTROLS[2], metric="shift")
    assert math.isnan(found.value) and found.n == 0


def test_little_probability_on_the_verdict_words_is_said() -> None:
    ds = judged_study(3, 3, 3, 3)
    ds["label_mass"] = (("example", "rung"), np.full((12, len(RUNGS)), 0.04))
    notes = behaviour.label_mass(ds)["note"]
    assert notes.str.contains("only 4% of the probability").all()
    ds["label_mass"][:] = 0.4976  # must not read as the half that it stays below
    notes = behaviour.label_mass(ds)["note"]
    assert notes.str.contains("get just under half of the probability").all()
    ds["label_mass"][:] = 0.9
    assert (behaviour.label_mass(ds)["note"] == "").all()


def test_the_retest_leaves_out_questions_whose_right_answer_is_a_fixed_word():
    """A judge that dislikes the word "unanswerable" must not look blind to passages for it."""
    ds, _ = synthetic_study()
    ds["answerable"] = ("example", np.arange(ds.sizes["example"]) % 2 == 0)
    kept = ds.isel(example=np.flatnonzero(ds["answerable"].values))
    columns = ["rung", "metric", "value", "n"]
    pd.testing.assert_frame_equal(
        behaviour.balanced(ds).query("scope == 'all'")[columns].reset_index(drop=True),
        behaviour.balanced(kept).query("scope == 'all'")[columns].reset_index(drop=True),
    )
