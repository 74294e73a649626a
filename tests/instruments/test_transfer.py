"""What training changes: values, paired differences, seeds, claims, and attention inside."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr
from synthetic_study import synthetic_study

from lab.errors import LabError
from lab.instruments.summaries import reading
from lab.instruments.summaries.transfer import (
    TRANSFER_METRICS,
    Run,
    claims,
    common,
    head_changes,
    inside,
    matrix,
    run_of,
    unchanged,
)

LN3 = math.log(3)


def tiny(own_right, own, gold, wrong) -> xr.Dataset:
    """A study of one passage a question: whether its own answers are right, and log-odds."""
    n = len(own)
    right = np.stack([own_right, np.ones(n), np.zeros(n)], axis=1).astype(float)
    table = ("example", "rung")
    return xr.Dataset(
        {
            "candidate_f1": (table, right),
            "candidate_em": (table, right),
            "candidate_given": (table, np.ones((n, 3), dtype=bool)),
            "log_odds": (table, np.stack([own, gold, wrong], axis=1).astype(float)),
        },
        coords={
            "example": [f"q{i}" for i in range(n)],
            "rung": ["own", "gold", "same_type"],
            "answerable": ("example", np.ones(n, dtype=bool)),
            "cluster": ("example", [f"p{i}" for i in range(n)]),
        },
    )


BASE = tiny([1, 0, 1, 0], [1, 1, -1, 1], [1, -1, 2, 3], [-1, -2, 1, -3])


def study(seed: int = 0, shift: float = 0.0) -> xr.Dataset:
    """The same questions for every seed; verdicts differ."""
    dataset, _ = synthetic_study(n=24, layers=2, heads=3)
    noise = np.random.default_rng(seed).normal(shift, 0.7, dataset["log_odds"].shape)
    return dataset.assign(log_odds=dataset["log_odds"] + noise) if seed else dataset


def cell(table, run, metric, scope="all", name="all"):
    names = {"run": run, "metric": metric, "scope": scope, "name": name}
    chosen = table
    for column, wanted in names.items():
        chosen = chosen[chosen[column] == wanted]
    assert len(chosen) == 1
    return chosen.iloc[0]


# --- the matrix ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("ga", 2 / 4),
        ("acceptance", 3 / 4),
        ("over_acceptance", 1 / 4),
        ("tpr", 3 / 4),
        ("tnr", 3 / 4),
        ("balanced_accuracy", 3 / 4),
        ("auroc", (3.5 + 2.5 + 4 + 4) / 16),
    ],
)
def test_a_small_case_by_hand(metric, value):
    found = cell(matrix([Run("base", BASE)]), "base", metric)
    assert found["value"] == pytest.approx(value)
    assert found["n"] == 4
    assert math.isnan(found["difference"])


def test_brier_and_calibration_by_hand():
    # Chances of .75 for the right and .25 for the wrong one: each is off by .25.
    sure = tiny([1, 1], [1, 1], [LN3, LN3], [-LN3, -LN3])
    table = matrix([Run("base", sure)])
    assert cell(table, "base", "brier")["value"] == pytest.approx(1 / 16)
    assert cell(table, "base", "ece")["value"] == pytest.approx(1 / 4)
    assert cell(table, "base", "ece")["n"] == 2


def slowly(ds: xr.Dataset, keep: list[int]) -> dict[str, float]:
    """All measures, one question after the other."""
    own, right, pairs = [], [], []
    for i in keep:
        one = ds.isel(example=i)
        odds = {str(r): float(one["log_odds"].sel(rung=r)) for r in ds["rung"].values}
        f1 = {str(r): float(one["candidate_f1"].sel(rung=r)) for r in ds["rung"].values}
        own.append(odds["own"] > 0)
        right.append(f1["own"] >= 0.5)
        if not bool(one["answerable"]):
            continue
        for rung in ("same_type", "same_passage", "other_passage"):
            if bool(one["candidate_given"].sel(rung=rung)) and f1[rung] < 0.5:
                pairs.append((odds["gold"], odds[rung]))
                break
    chances = [
        (1 / (1 + math.exp(-x)), truth) for p in pairs for x, truth in zip(p, (1, 0), strict=True)
    ]
    bins: dict[int, list[float]] = {}
    for chance, truth in chances:
        bins.setdefault(int(chance * 10), []).append(chance - truth)
    wins = [(g > w) + 0.5 * (g == w) for g, _ in pairs for _, w in pairs]
    found = {
        "ga": np.mean(right),
        "acceptance": np.mean(own),
        "over_acceptance": np.mean(own) - np.mean(right),
        "tpr": np.mean([g > 0 for g, _ in pairs]),
        "tnr": np.mean([w <= 0 for _, w in pairs]),
        "auroc": np.mean(wins),
        "brier": np.mean([(chance - truth) ** 2 for chance, truth in chances]),
        "ece": sum(abs(sum(gaps)) for gaps in bins.values()) / len(chances),
    }
    return found | {"balanced_accuracy": (found["tpr"] + found["tnr"]) / 2}


def test_the_matrix_equals_a_slow_computation_in_every_group():
    base, first, second = study(), study(1, 0.5), study(2, 0.5)
    runs = [Run("base", base), Run("generator", first, 0), Run("generator", second, 1)]
    table = matrix(runs)
    datasets = base["dataset"].values.astype(str)
    for dataset in ("all", "builtin", "squad2", "drop"):
        keep = [i for i, name in enumerate(datasets) if dataset in ("all", name)]
        scope = "all" if dataset == "all" else "dataset"
        before, *after = [slowly(run.dataset, keep) for run in runs]
        for metric in TRANSFER_METRICS:
            untrained = cell(table, "base", metric, scope, dataset)
            trained = cell(table, "generator", metric, scope, dataset)
            mean = (after[0][metric] + after[1][metric]) / 2
            assert untrained["value"] == pytest.approx(before[metric])
            assert trained["value"] == pytest.approx(mean)
            assert trained["difference"] == pytest.approx(mean - before[metric])
            assert trained["seeds"] == 2
            assert trained["seed_low"] == pytest.approx(min(a[metric] for a in after))
            assert trained["seed_high"] == pytest.approx(max(a[metric] for a in after))


def test_a_difference_that_single_trainings_contradict_is_not_said_to_be_seen():
    base, more, less = (
        ds.assign(cluster=ds["cluster"].copy(data=ds["example"].values))
        for ds in (study(), study(1, 4.0), study(2, -0.8))
    )
    alike = matrix([Run("base", base), Run("generator", more, 0), Run("generator", more, 1)])
    divided = matrix([Run("base", base), Run("generator", more, 0), Run("generator", less, 1)])
    for table, agree in ((alike, True), (divided, False)):
        row = cell(table, "generator", "over_acceptance")
        assert row["difference_low"] > 0  # the means alone would say that it rises
        assert row["seeds_agree"] == row["clear"] == agree
    claim, other = (claims(table)[0] for table in (alike, divided))
    assert (claim.seen, claim.caveat) == ("seen", "")
    assert other.seen == "cannot be said"
    assert "single trainings do not all change it in this direction" in other.caveat


def test_a_model_like_the_base_differs_by_exactly_nothing():
    table = matrix([Run("base", study()), Run("copy", study())])
    copy = table[(table["run"] == "copy") & (table["scope"] == "all")]
    assert (copy[["difference", "difference_low", "difference_high"]] == 0).all(axis=None)
    means = copy[~copy["metric"].isin(["auroc", "ece"])]
    assert (means["p"] == 1).all()


def test_differences_are_paired_by_question():
    """Every question moves by the same amount: certain, though the values themselves are not."""
    n = 12
    odds = np.where(np.arange(n) % 2, 2.0, -2.0)
    base = tiny(np.arange(n) % 2, odds, np.full(n, -1), np.full(n, -1))
    shifted = tiny(np.arange(n) % 2, odds, np.full(n, 1), np.full(n, -1))
    found = cell(matrix([Run("base", base), Run("evaluator", shifted)]), "evaluator", "tpr")
    assert (found["difference_low"], found["difference_high"]) == (1, 1)
    own = cell(matrix([Run("base", base)]), "base", "acceptance")
    assert own["low"] < own["value"] < own["high"]


def test_only_common_examples_count_whatever_their_order():
    base, other = study(), study(1)
    part = other.isel(example=[7, 3, 11, 5, 0, 20])
    kept = common([Run("base", base), Run("evaluator", part)])
    assert [run.dataset.sizes["example"] for run in kept] == [6, 6]
    ids = [str(i) for i in base["example"].values[[0, 3, 5, 7, 11, 20]]]
    assert [str(i) for i in kept[1].dataset["example"].values] == ids
    table = matrix([Run("base", base), Run("evaluator", part)])
    assert cell(table, "base", "acceptance")["value"] == pytest.approx(
        slowly(base, [0, 3, 5, 7, 11, 20])["acceptance"]
    )


def test_what_one_run_lacks_counts_in_none():
    base, other = study(), study(1)
    other["log_odds"].loc[{"rung": "own", "example": other["example"][2]}] = np.nan
    table = matrix([Run("base", base), Run("evaluator", other)])
    keep = [i for i in range(24) if i != 2]
    before, after = (slowly(ds, keep)["acceptance"] for ds in (base, other))
    for run, value in (("base", before), ("evaluator", after)):
        assert cell(table, run, "acceptance")["n"] == 23
        assert cell(table, run, "acceptance")["value"] == pytest.approx(value)
    assert cell(table, "evaluator", "acceptance")["difference"] == pytest.approx(after - before)
    assert cell(table, "evaluator", "ga")["n"] == 24


def test_runs_that_share_nothing_are_refused():
    elsewhere = BASE.assign_coords(example=["a", "b", "c", "d"])
    with pytest.raises(LabError, match="no example in common"):
        matrix([Run("base", BASE), Run("evaluator", elsewhere)])
    with pytest.raises(LabError, match="no run"):
        matrix([])


# --- claims -------------------------------------------------------------------------------------


def claimed(base: xr.Dataset, name: str, trained: xr.Dataset, first: str = "base"):
    return {c.text: c for c in claims(matrix([Run(first, base), Run(name, trained)]))}


@pytest.mark.parametrize(
    ("before", "after", "seen"), [(-1, 1, "seen"), (1, -1, "opposite"), (1, 1, "not seen")]
)
def test_a_claim_is_seen_on_its_side_of_zero_only(before, after, seen):
    n = 10
    rest = (np.ones(n), -np.ones(n))
    base = tiny(np.zeros(n), np.full(n, before), *rest)
    trained = tiny(np.zeros(n), np.full(n, after), *rest)
    claim = claimed(base, "generator", trained)["Training to answer makes the judge over-accept"]
    assert claim.seen == seen
    assert claim.difference.value == (after > 0) - (before > 0)
    assert claim.difference.n == n


def test_a_claim_of_less_is_seen_below_zero():
    n = 10
    rest = (np.full(n, -1), np.ones(n), -np.ones(n))
    found = claimed(tiny(np.ones(n), *rest), "evaluator", tiny(np.zeros(n), *rest))
    assert found["Training to judge makes answers worse"].seen == "seen"
    assert found["Training to judge makes the judge over-conservative"].seen == "opposite"
    assert not any("Training to answer" in text for text in found)


def test_nothing_is_said_of_few_questions():
    n = 9
    rest = (np.full(n, -1), np.ones(n), -np.ones(n))
    found = claimed(tiny(np.ones(n), *rest), "evaluator", tiny(np.zeros(n), *rest))
    claim = found["Training to judge makes answers worse"]
    assert (claim.seen, claim.caveat) == ("cannot be said", "9 questions are too few")


@pytest.mark.parametrize(("right", "seen"), [(9, "cannot be said"), (10, "not seen")])
def test_who_has_next_to_nothing_to_lose_cannot_be_seen_to_lose_it(right, seen):
    answers = np.repeat([1.0, 0.0], [right, 40 - right])
    rest = (np.full(40, -1), np.ones(40), -np.ones(40))
    found = claimed(tiny(answers, *rest), "evaluator", tiny(answers, *rest))
    claim = found["Training to judge makes answers worse"]
    assert claim.seen == seen
    assert ("only 9 of 40 right" in claim.caveat) == (right == 9)


def test_a_judge_that_hardly_says_a_verdict_tells_nothing_of_verdicts():
    n = 10
    base = tiny(np.ones(n), np.full(n, -1), np.ones(n), -np.ones(n))
    trained = tiny(np.zeros(n), np.ones(n), np.ones(n), np.ones(n))
    for mass, seen in ((0.04, "cannot be said"), (0.9, "seen")):
        label = (("example", "rung"), np.full((n, 3), mass))
        runs = [Run("base", base), Run("generator", trained.assign(label_mass=label))]
        found = claims(matrix(runs), runs)
        assert {claim.seen for claim in found} == {seen}
        assert all(("4% probability" in claim.caveat) == (mass < 0.5) for claim in found)


def test_a_model_with_one_answer_tells_nothing_of_how_it_judges_its_own():
    n = 10
    rest = (np.ones(n), -np.ones(n))
    base, trained = tiny(np.ones(n), np.full(n, -1), *rest), tiny(np.zeros(n), np.ones(n), *rest)
    says = trained.assign(answer=("example", np.array(["No"] * 6 + list("abcd"), dtype=object)))
    runs = [Run("base", base), Run("evaluator", says)]
    worse, conservative = claims(matrix(runs), runs)
    assert worse.seen == "seen"  # that its answers are worse can be said all the same
    assert conservative.seen == "cannot be said"
    assert "\u201cNo\u201d to 60%" in conservative.caveat
    others = trained.assign(answer=("example", np.array(list("abcdefghij"), dtype=object)))
    runs[1] = Run("evaluator", others)
    assert claims(matrix(runs), runs)[1].seen == "opposite"


def test_no_claim_is_decided_without_the_untrained_model():
    assert claimed(BASE, "evaluator", BASE, first="generator") == {}


def test_the_run_of_an_adapter_is_found_by_its_own_name_or_by_what_was_trained():
    runs = [Run("base", study()), Run("evaluator", study(), 0, "evaluator"),
            Run("mine", study(), 0, "mine")]  # fmt: skip
    assert run_of(runs, None) == "base"
    assert run_of(runs, {"name": "mine", "recipe": {"role": "evaluator"}}) == "mine"
    assert run_of(runs, {"name": "other", "recipe": {"role": "evaluator"}}) == "evaluator"
    assert run_of(runs, {"name": "other"}) == "other"


# --- inside -------------------------------------------------------------------------------------


def with_context(ds: xr.Dataset, factor: float, head: tuple[int, int] | None = None) -> xr.Dataset:
    """The evaluator's attention on the passage times a factor, in all heads or in one."""
    changed = ds.copy(deep=True)
    at = {"role": "evaluator", "span": "context"}
    if head:
        at |= {"layer": head[0], "head": head[1]}
    changed["mass"].loc[at] = changed["mass"].loc[at] * factor
    return changed


def test_the_reading_ratio_doubles_where_the_judge_reads_half():
    base = study()
    table = inside([Run("base", base), Run("generator", with_context(base, 0.5))])
    ratio = table[table["measure"] == "ratio"].set_index("run")
    assert ratio.loc["generator", "difference"] == pytest.approx(2)
    assert ratio.loc["generator", "value"] == pytest.approx(2 * ratio.loc["base", "value"])
    mass = table[table["measure"] == "evaluator/context"].set_index("run")
    half = mass.loc["base", "value"] / 2
    assert mass.loc["generator", "difference"] == pytest.approx(-half)
    expected = reading.regions(base).sel(role="evaluator", region="context").mean()
    assert mass.loc["base", "value"] == pytest.approx(float(expected))


def test_the_one_head_that_changed_is_found_and_no_other():
    base = study()
    runs = [Run("base", base)]
    runs += [Run("both", with_context(base, f, (1, 2)), i) for i, f in enumerate((2.0, 4.0))]
    table = head_changes(runs).set_index(["role", "layer", "head"])
    found = table.loc[("evaluator", 1, 2)]
    assert found["value"] == pytest.approx(2 * found["base"])  # the mean of once and three times
    assert found["p_adjusted"] < 0.05
    rest = table.drop(index=[("evaluator", 1, 2)])
    assert (rest["value"] == 0).all() and (rest["p_adjusted"] == 1).all()


def test_nothing_is_compared_inside_without_the_bases_attention():
    base = study()
    runs = [Run("base", base.drop_vars("mass")), Run("generator", base), Run("both", base)]
    assert inside(runs).empty
    assert head_changes(runs).empty


def test_a_share_of_none_or_all_keeps_an_interval():
    ds = study()
    never = ds.assign(log_odds=ds["log_odds"] * 0 - 5)
    table = matrix([Run("base", ds), Run("never", never)])
    chosen = table[(table["run"] == "never") & (table["scope"] == "all")].set_index("metric")
    assert chosen.loc["tpr", "value"] == 0 and chosen.loc["tnr", "value"] == 1
    assert chosen.loc["tpr", "high"] > 0.01
    assert chosen.loc["tnr", "low"] < 0.99


def test_unchanged_answers_are_counted_word_for_word():
    def said(*texts):
        return BASE.assign_coords(answer_raw=("example", np.array(texts, dtype=object)))

    runs = [
        Run("base", said("a", "b", "c", "d")),
        Run("generator", said("a", "B", "c", "x"), 0),
        Run("generator", said("y", "B", "c", "x"), 1),
        Run("verdict-only", said("a", "b", "c", "d"), 0),
    ]
    table = unchanged(runs).set_index("run")
    assert list(table.index) == ["generator", "verdict-only"]
    assert table.loc["generator", "value"] == pytest.approx((0.5 + 0.25) / 2)
    assert table.loc["verdict-only", "value"] == 1
    # Four equal answers do not show that all would be: Wilson's interval.
    assert table.loc["verdict-only", "low"] == pytest.approx(0.51, abs=0.01)


def test_attention_that_was_never_measured_is_not_there():
    runs = [Run("base", study()), Run("both", study(1), 0)]
    assert not inside(runs).empty
    blind = [
        Run(run.name, run.dataset.assign(mass=run.dataset["mass"] * np.nan), run.seed)
        for run in runs
    ]
    assert inside(blind).empty
    assert head_changes(blind).empty
