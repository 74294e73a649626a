"""Estimates, intervals, tests and scores: worked examples, agreement with libraries, properties."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score, matthews_corrcoef, roc_auc_score

from lab.errors import LabError
from lab.instruments import statistics as S

# --- Estimate -----------------------------------------------------------------------------------


def test_an_estimate_reads_as_value_and_interval() -> None:
    assert str(S.Estimate(0.68, 0.588, 0.767, 100)) == "0.68 [0.59, 0.77]"
    assert S.Estimate(-0.0001, -0.2, 0.2, 9).format(1) == "0.0 [-0.2, 0.2]"


def test_an_estimate_without_interval_or_value_says_so() -> None:
    assert str(S.Estimate(0.5, n=1)) == "0.50 (no interval, n = 1)"
    assert str(S.Estimate(0.5, 0.5, 0.5, n=9)) == "0.50 (no interval, n = 9)"
    assert str(S.Estimate(math.nan)) == "n/a"


def test_an_interval_excludes_a_number_only_if_it_exists() -> None:
    assert S.Estimate(2, 1.5, 3, 9).excludes(1)
    assert not S.Estimate(2, 0.5, 3, 9).excludes(1)
    assert not S.Estimate(2, n=1).excludes(1)


# --- resampling ---------------------------------------------------------------------------------


def test_bootstrap_of_68_of_100() -> None:
    hits = np.r_[np.ones(68), np.zeros(32)]
    estimate = S.bootstrap(lambda x: np.nanmean(x, axis=-1), hits)
    assert estimate.format() == "0.68 [0.59, 0.77]"
    assert estimate.n == 100


def test_bootstrap_and_bootstrap_sums_and_bootstrap_means_draw_the_same_resamples() -> None:
    rng = np.random.default_rng(1)
    x, clusters = rng.normal(size=40), rng.integers(0, 9, 40)
    general = S.bootstrap(lambda v: np.nanmean(v, axis=-1), x, clusters=clusters)
    fast = S.mean_estimate(x, clusters)
    many = S.bootstrap_means(x[:, None], clusters, n_resamples=10_000)
    assert (general.value, general.low, general.high) == pytest.approx(
        (fast.value, fast.low, fast.high)
    )
    assert (many.low[0], many.high[0]) == pytest.approx((fast.low, fast.high))


def test_bootstrap_agrees_with_scipy() -> None:
    x = np.random.default_rng(2).gamma(2, size=60)
    ours = S.mean_estimate(x)
    theirs = stats.bootstrap((x,), np.mean, method="percentile", rng=np.random.default_rng(0))
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.03)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.03)


def test_bootstrap_keeps_pairs_together() -> None:
    x = np.arange(20.0)
    same = S.bootstrap(lambda a, b: np.nanmean(a - b, axis=-1), x, x + 1)
    assert (same.value, same.low, same.high) == (-1, -1, -1)


def test_bootstrap_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    samples = rng.exponential(size=(60, 400))  # 400 studies of 60 examples
    hits = 0
    for study in range(400):
        e = S.bootstrap_means(samples[:, study], n_resamples=500, seed=study)
        hits += bool(e.low <= 1 <= e.high)
    assert 0.89 <= hits / 400 <= 0.97


def test_clusters_widen_the_interval_where_examples_of_a_cluster_agree() -> None:
    rng = np.random.default_rng(4)
    clusters = np.repeat(np.arange(10), 10)
    x = rng.normal(size=10)[clusters] + rng.normal(0, 0.1, 100)
    alone, together = S.mean_estimate(x), S.mean_estimate(x, clusters)
    assert together.value == alone.value
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_units_without_a_cluster_name_stand_alone() -> None:
    assert S.cluster_codes(4, ["a", "", "", "a"]).tolist() == [0, 1, 2, 0]


def test_missing_units_are_left_out_of_value_interval_and_count() -> None:
    with_gaps = S.mean_estimate([1, np.nan, 2, 3, np.nan], ["a", "b", "c", "d", "e"])
    without = S.mean_estimate([1, 2, 3])
    assert (with_gaps.value, with_gaps.low, with_gaps.n) == (without.value, without.low, 3)


@pytest.mark.parametrize("function", [S.mean_estimate, S.proportion])
def test_one_unit_gives_a_value_without_interval_and_says_so(
    function: Callable[..., S.Estimate],
) -> None:
    e = function([1.0])
    assert e.value == 1 and e.n == 1
    assert math.isnan(e.low) and math.isnan(e.high)
    assert e.method == "no interval: n = 1"


def test_no_data_gives_nan() -> None:
    for e in (S.mean_estimate([]), S.proportion([np.nan]), S.bootstrap(np.mean, [])):
        assert math.isnan(e.value) and e.n == 0


def test_one_cluster_has_no_interval_and_says_why() -> None:
    e = S.mean_estimate([1, 2, 3], ["a", "a", "a"])
    assert e.value == 2 and math.isnan(e.low)
    assert "one cluster" in e.method


def test_arrays_of_different_length_are_refused() -> None:
    with pytest.raises(LabError, match="3, 2"):
        S.bootstrap(np.mean, [1, 2, 3], [1, 2])
    with pytest.raises(LabError, match="cluster names"):
        S.mean_estimate([1, 2, 3], ["a"])


def test_means_of_many_cells_leave_out_what_is_missing_cell_by_cell() -> None:
    x = np.array([[1.0, np.nan, np.nan], [3.0, 4.0, np.nan]])
    m = S.bootstrap_means(x)
    assert m.n.tolist() == [2, 1, 0]
    assert m.value[:2].tolist() == [2, 4] and np.isnan(m.value[2])
    assert np.isnan(m.low[1:]).all()


# --- proportions and ratios ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(62, 73, 0.750, 0.914), (1, 73, 0.002, 0.074), (116, 121, 0.907, 0.982)],
)
def test_a_share_has_wilsons_interval(hits: int, n: int, low: float, high: float) -> None:
    e = S.proportion(np.r_[np.ones(hits), np.zeros(n - hits)])
    assert (e.low, e.high) == pytest.approx((low, high), abs=5e-4)


def test_a_share_over_clusters_is_bootstrapped_and_never_pretends_to_be_certain() -> None:
    clusters = np.repeat(np.arange(6), 4)
    mixed = S.proportion(np.repeat([1, 1, 0, 0, 1, 0], 4), clusters)
    assert mixed.high - mixed.low > 0.5
    certain = S.proportion(np.ones(24), clusters)
    assert certain.high == 1
    assert certain.low == pytest.approx(S.proportion(np.ones(6)).low)


def test_geometric_mean_ratio_is_paired_and_leaves_zeros_out() -> None:
    e = S.geometric_mean_ratio([2, 8, 1, 5], [1, 1, 0, np.nan])
    assert e.value == pytest.approx(4) and e.n == 2
    assert "1 pairs with a zero left out" in e.method


def test_geometric_mean_ratio_turns_over_with_its_sides() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.gamma(2, size=30), rng.gamma(2, size=30)
    e, turned = S.geometric_mean_ratio(a, b), S.geometric_mean_ratio(b, a)
    assert e.value == pytest.approx(1 / turned.value)
    assert e.low == pytest.approx(1 / turned.high, rel=0.02)


# --- tests --------------------------------------------------------------------------------------


def test_exact_sign_flip_worked_example() -> None:
    result = S.sign_flip_test([1, 1, 1, 0, -1, 1, 1])
    assert result.exact
    assert float(result.mean) == pytest.approx(4 / 7)
    assert float(result.p) == 0.21875


def test_sign_flip_agrees_with_scipy_exact_and_random() -> None:
    rng = np.random.default_rng(6)
    for n, tolerance in ((9, 1e-12), (30, 0.02)):
        d = rng.normal(0.3, 1, n)
        theirs = stats.permutation_test(
            (d,), np.mean, permutation_type="samples", n_resamples=20_000,
            rng=np.random.default_rng(0),
        )  # fmt: skip
        assert float(S.sign_flip_test(d).p) == pytest.approx(theirs.pvalue, abs=tolerance)


def test_sign_flip_of_binary_pairs_is_the_exact_mcnemar_test() -> None:
    a = np.array([1, 1, 1, 0, 0, 1, 1, 0, 1, 1])
    b = np.array([0, 0, 1, 0, 1, 0, 0, 0, 0, 1])
    only_a, only_b = int((a > b).sum()), int((a < b).sum())
    theirs = stats.binomtest(only_a, only_a + only_b).pvalue
    assert float(S.sign_flip_test(a - b).p) == pytest.approx(theirs)


def test_sign_flip_under_the_null_is_uniform_enough() -> None:
    d = np.random.default_rng(7).normal(size=(40, 2000))
    p = S.sign_flip_test(d, n_draws=2000).p
    assert 0.035 < (p <= 0.05).mean() < 0.065


def test_sign_flip_flips_clusters_together() -> None:
    d = np.repeat([1.0, 1.2, 0.9, -0.2], 5)
    clusters = np.repeat(list("abcd"), 5)
    result = S.sign_flip_test(d, clusters)
    assert result.units == 4
    assert float(result.p) == float(S.sign_flip_test([1.0, 1.2, 0.9, -0.2]).p) == 0.25
    assert float(S.sign_flip_test(d).p) < 0.01


def test_sign_flip_smallest_p_and_missing_cells() -> None:
    d = np.ones((30, 3))
    d[:, 2] = np.nan
    p = S.sign_flip_test(d, n_draws=999).p
    assert p[0] == pytest.approx(1 / 1000)
    assert np.isnan(p[2])


def test_sign_flip_of_zeros_finds_nothing() -> None:
    assert S.sign_flip_test(np.zeros((20, 2))).p.tolist() == [1, 1]


def test_max_statistic_is_stricter_than_single_tests() -> None:
    d = np.random.default_rng(8).normal(size=(12, 50))
    d[:, 0] += 3
    single, family = S.sign_flip_test(d).p, S.sign_flip_test(d, max_statistic=True).p
    assert (family >= single - 1e-12).all()
    assert family[0] < 0.05


def test_sign_flip_for_a_thousand_heads_takes_seconds() -> None:
    d = np.random.default_rng(9).normal(size=(100, 1000))
    start = time.perf_counter()
    S.sign_flip_test(d, n_draws=20_000)
    assert time.perf_counter() - start < 10


def test_benjamini_hochberg_worked_example() -> None:
    p = [0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205]
    adjusted = S.benjamini_hochberg(p)
    expected = [0.008, 0.032, 0.0672, 0.0672, 0.0672, 0.08, 0.0846, 0.205]
    assert adjusted == pytest.approx(expected, abs=5e-5)
    assert (adjusted <= 0.05).sum() == 2


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(0, 5))
@settings(deadline=None, max_examples=50)
def test_benjamini_hochberg_agrees_with_scipy_and_ignores_missing(p: list[float], k: int) -> None:
    grid = np.array([*p, *[np.nan] * k]).reshape(1, -1)
    adjusted = S.benjamini_hochberg(grid)
    assert adjusted.shape == grid.shape
    assert adjusted[0, : len(p)] == pytest.approx(stats.false_discovery_control(p))
    assert np.isnan(adjusted[0, len(p) :]).all()


# --- verdicts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (
            (70, 8, 12, 10),
            {"ga": 0.80, "ea": 0.82, "delta": 0.02, "tpr": 0.875, "tnr": 0.600,
             "balanced_accuracy": 0.7375, "precision": 0.8974, "mcc": 0.4587, "kappa": 0.4578},
        ),
        (
            (5, 5, 80, 10),
            {"ga": 0.15, "ea": 0.85, "delta": 0.70, "tpr": 0.3333, "tnr": 0.9412,
             "balanced_accuracy": 0.6373, "precision": 0.5000, "mcc": 0.3267, "kappa": 0.3182},
        ),
    ],
)  # fmt: skip
def test_rates_of_a_judge_worked_examples(
    counts: tuple[int, ...], expected: dict[str, float]
) -> None:
    rates = S.confusion_rates(*counts)
    assert {name: float(rates[name]) for name in expected} == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("right", "reject_ea", "reject_delta"), [(15, 0.85, 0.70), (50, 0.50, 0.0), (81, 0.19, -0.62)]
)
def test_judges_that_read_nothing(right: int, reject_ea: float, reject_delta: float) -> None:
    accept_all = S.confusion_rates(right, 100 - right, 0, 0)
    assert accept_all["delta"] == 0
    assert accept_all["ea"] == accept_all["always_accept"] == right / 100
    reject_all = S.confusion_rates(0, 0, 100 - right, right)
    assert reject_all["ea"] == pytest.approx(reject_ea)
    assert reject_all["always_reject"] == pytest.approx(reject_ea)
    assert reject_all["delta"] == pytest.approx(reject_delta)
    assert reject_all["balanced_accuracy"] == 0.5
    assert reject_all["kappa"] == pytest.approx(0) and reject_all["mcc"] == 0


@given(st.tuples(*[st.integers(1, 40)] * 4))
@settings(deadline=None, max_examples=30)
def test_kappa_and_mcc_agree_with_scikit_learn(counts: tuple[int, int, int, int]) -> None:
    truth, verdict = np.repeat([[1, 1], [0, 1], [0, 0], [1, 0]], counts, axis=0).T
    rates = S.confusion_rates(*counts)
    assert rates["kappa"] == pytest.approx(cohen_kappa_score(truth, verdict))
    assert rates["mcc"] == pytest.approx(matthews_corrcoef(truth, verdict))


def test_rates_without_right_or_wrong_candidates_are_nan() -> None:
    rates = S.confusion_rates(3, 0, 0, 2)
    assert math.isnan(rates["tnr"]) and math.isnan(rates["balanced_accuracy"])
    assert math.isnan(rates["mcc"])


def test_auroc_agrees_with_a_plain_bootstrap_of_scikit_learn() -> None:
    rng = np.random.default_rng(10)
    labels = rng.integers(0, 2, 80)
    scores = np.round(labels + rng.normal(0, 1.2, 80), 1)  # rounded: there are ties
    e = S.auroc(scores, labels)
    assert e.value == pytest.approx(roc_auc_score(labels, scores))
    drawn = [
        roc_auc_score(labels[i], scores[i]) for i in (rng.integers(0, 80, 80) for _ in range(800))
    ]
    assert (e.low, e.high) == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=0.02)


@pytest.mark.parametrize(("right", "told"), [(1, False), (4, False), (8, True)])
def test_few_right_answers_among_many_give_no_interval(right: int, told: bool) -> None:
    scores, labels = np.arange(96.0), np.zeros(96)
    labels[np.linspace(10, 90, right).astype(int)] = 1
    found = S.auroc(scores, labels)
    assert 0 < found.value < 1
    assert math.isnan(found.low) is not told
    assert ("no interval" in found.method) is not told


def test_auroc_of_one_class_is_not_defined() -> None:
    assert math.isnan(S.auroc([0.1, 0.4], [1, 1]).value)
    assert math.isnan(S.auroc([], []).value)


# --- calibration --------------------------------------------------------------------------------

C = np.array([0.95, 0.95, 0.9, 0.9, 0.85, 0.8, 0.7, 0.6, 0.55, 0.3])
Y = np.array([1, 0, 1, 0, 1, 1, 0, 1, 0, 0])


def test_calibration_worked_example() -> None:
    assert S.expected_calibration_error(C, Y) == pytest.approx(0.4000)
    assert S.brier(C, Y) == pytest.approx(0.2830)


def test_risk_coverage_worked_example_with_the_ties_broken_by_order() -> None:
    in_order = C - 1e-6 * np.arange(10)
    assert S.aurc(in_order, Y) == pytest.approx(0.38147, abs=5e-6)
    assert S.aurc(in_order, Y, area="trapezoid") == pytest.approx(0.35647, abs=5e-6)


def test_risk_coverage_with_ties_is_the_mean_over_their_orders() -> None:
    rng = np.random.default_rng(11)
    shuffled = []
    for _ in range(2000):
        i = rng.permutation(10)
        shuffled.append(S.aurc(C[i] - 1e-9 * np.arange(10), Y[i]))
    assert S.aurc(C, Y) == pytest.approx(np.mean(shuffled), abs=0.004)
    assert S.aurc(C[::-1], Y[::-1]) == pytest.approx(S.aurc(C, Y))


def test_calibration_of_perfect_and_of_constant_confidence() -> None:
    assert S.expected_calibration_error(Y, Y) == S.brier(Y, Y) == 0
    constant = np.full(10, 0.5)
    assert S.expected_calibration_error(constant, Y) == pytest.approx(0)
    assert S.aurc(constant, Y) == pytest.approx(0.5)


def test_calibration_bins_are_closed_below_and_the_last_one_above() -> None:
    assert S.calibration_bin([0, 0.1, 0.29999, 0.3, 0.7, 1.0]).tolist() == [0, 1, 2, 3, 7, 9]


def test_unknown_area_is_refused() -> None:
    with pytest.raises(LabError, match="trapezoid"):
        S.aurc(C, Y, area="simpson")


# --- patching -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("patched", "expected"), [(-2, 0), (0.5, 0.5), (3, 1), (4, 1.2)])
def test_restoration_worked_examples(patched: float, expected: float) -> None:
    result = S.restoration([patched], source=[3], target=[-2])
    assert result.value[0] == pytest.approx(expected)


def test_restoration_leaves_out_small_gaps_and_counts_them() -> None:
    patched = np.zeros((4, 2, 3))
    result = S.restoration(patched, source=[2, 0.4, np.nan, -1], target=[-2, 0, 1, 1])
    assert (result.kept, result.too_close, result.missing) == (2, 1, 1)
    assert result.value.shape == (4, 2, 3)
    assert np.isnan(result.value[1:3]).all()
    assert (result.value[[0, 3]] == 0.5).all()


def test_restoration_of_means_signs_each_gap() -> None:
    source, target = np.array([2.0, -1.0, 1.0]), np.array([-2.0, 1.0, 0.9])
    half = (source + target) / 2
    assert S.restoration_of_means(half, source, target).value == pytest.approx(0.5)


def test_critical_window_worked_example() -> None:
    window = S.critical_window([0, 0.05, 0.10, 0.50, 0.90, 1.0])
    assert window is not None
    assert (window.first, window.last) == (3, 4)
    assert window.share == pytest.approx(0.8)


@pytest.mark.parametrize("curve", [[], [0.0, 0.0], [0.2, -0.1], [0.1, np.nan]])
def test_a_curve_that_does_not_rise_has_no_window(curve: list[float]) -> None:
    assert S.critical_window(curve) is None


@pytest.mark.parametrize(
    ("curve", "ends", "share"),
    [
        ([0, 1.5, 1], (1, 1), 1.0),  # all that rises rises there, if too far
        ([0, 1.2, 0, 1], (1, 1), 1.2 / 2.2),  # it rises once more in layer 3
        ([0.3, -0.1, 0.9, 1], (2, 2), 1 / 1.4),
    ],
)
def test_the_share_of_a_window_is_of_all_rises_where_a_curve_also_falls(
    curve: list[float], ends: tuple[int, int], share: float
) -> None:
    window = S.critical_window(curve)
    assert window is not None and (window.first, window.last) == ends
    assert window.share == pytest.approx(share)


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=12))
def test_no_window_holds_more_than_everything(curve: list[float]) -> None:
    window = S.critical_window([*curve, 1.0])
    assert window is not None and 0 < window.share <= 1


def test_a_curve_that_jumps_at_once_has_a_window_of_one_layer() -> None:
    assert S.critical_window([1.0, 1.0, 1.0]) == S.Window(0, 0, 1.0)


# --- attention ----------------------------------------------------------------------------------


def test_jaccard_and_what_chance_gives() -> None:
    assert S.jaccard([1, 2, 3], [2, 3, 4]) == 0.5
    assert math.isnan(S.jaccard([], []))
    rng = np.random.default_rng(12)
    drawn = [
        S.jaccard(rng.choice(30, 6, replace=False), rng.choice(30, 6, replace=False))
        for _ in range(3000)
    ]
    assert S.expected_jaccard(30, 6, 6) == pytest.approx(np.mean(drawn), abs=0.005)
    assert S.expected_jaccard(5, 5, 5) == 1


def test_one_clear_head_of_thousands_survives_the_correction():
    rng = np.random.default_rng(0)
    differences = rng.normal(size=(24, 1_200))
    differences[:, 7] = np.abs(differences[:, 7]) + 3
    adjusted = S.benjamini_hochberg(S.sign_flip_test(differences).p)
    assert np.flatnonzero(adjusted <= 0.05).tolist() == [7]
