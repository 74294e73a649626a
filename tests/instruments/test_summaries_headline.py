"""The opening of a report: right direction, honest wording, and no crash on thin data."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from synthetic_study import RUNGS, SPANS, synthetic_study

from lab.instruments.summaries import Headline, headline, tabulate
from lab.instruments.summaries.facts import Units, count_units


def opening(ds: xr.Dataset) -> Headline:
    return headline(ds, {"model": {"name": "toy"}})


def with_ratio(factor: float, noise: float = 0.0, n: int = 24) -> xr.Dataset:
    """The evaluator reads the passage ``factor`` times less than the generator does."""
    ds, _ = synthetic_study(n, 3, 4)
    both = ds["mass"].sel(role="generator").copy()
    jitter = np.exp(np.random.default_rng(0).normal(0, noise, (n, 1, 1)))
    both.loc[{"span": "context"}] = both.sel(span="context") / factor * jitter
    ds["mass"].loc[{"role": "evaluator"}] = both
    return ds.drop_vars(["log_odds", "patch_clean", "control_log_odds"])


def with_verdicts(own: float, shift: float = 0.0, n: int = 60) -> xr.Dataset:
    """Every candidate gets the same log-odds, but right ones ``shift`` more."""
    ds, _ = synthetic_study(n, 2, 2)
    given = ds["candidate_given"].values
    right = ds["candidate_f1"].values >= 0.5
    noise = np.random.default_rng(1).normal(0, 0.01, given.shape)
    ds["log_odds"] = (("example", "rung"), np.where(given, own + shift * right + noise, np.nan))
    return ds.drop_vars(["mass", "patch_clean", "control_log_odds"])


def alone(n: int = 30, layers: int = 3, heads: int = 3) -> xr.Dataset:
    """A study in which every example has a passage of its own."""
    ds, _ = synthetic_study(n, layers, heads)
    return ds.assign_coords(cluster=("example", np.array([f"p{i}" for i in range(n)], object)))


def only_first(ds: xr.Dataset, n: int, *names: str) -> xr.Dataset:
    """The study with these variables measured on its first ``n`` examples only."""
    first = xr.DataArray(np.arange(ds.sizes["example"]) < n, dims="example")
    return ds.assign({name: ds[name].where(first) for name in names})


ATTENTION = ("mass", "mark_mass", "norm_mass", "norm_mark_mass", "candidate_to_context")
PATCHING = ("patch_clean", "patch_head", "patch_layer")


def with_pairs(pairs: int, n: int = 30) -> xr.Dataset:
    """The judge tells all pairs apart, but only some questions are answerable and make one."""
    ds = alone(n)
    ds = ds.assign_coords(answerable=("example", np.arange(n) < pairs))
    wrong = ds["rung"].isin(["same_type", "same_passage", "other_passage", "closed_book"])
    log_odds = ds["log_odds"].where(~wrong, -2.0).where(ds["rung"] != "gold", 2.0)
    return ds.assign(log_odds=log_odds.where(ds["candidate_given"]))


def with_own(truth: list[int], accepts: list[int]) -> xr.Dataset:
    """Which own answers are right, and which the judge accepts; nothing else was measured."""
    ds = alone(len(truth), 1, 1)
    right = xr.DataArray(np.array(truth, float), dims="example")
    own = ds["rung"] == "own"
    score = xr.DataArray(np.where(np.array(accepts) > 0, 1.0, -1.0), dims="example")
    scored = {name: ds[name].where(~own, right) for name in ("candidate_em", "candidate_f1")}
    return ds.assign(log_odds=ds["log_odds"].where(~own, score), **scored)[
        ["em", "f1", "candidate_given", "log_odds", *scored]
    ]


def with_effects(share: np.ndarray) -> xr.Dataset:
    """Patching a head from the answering into the judging run restores this share of the gap.

    ``share`` is example x layer x head; the other direction has no effect at all.
    """
    n, layers, heads = share.shape
    ds = alone(n, layers, heads)
    clean, patched = ds["patch_clean"].copy(), ds["patch_head"].copy()
    clean.loc[{"contrast": "role"}] = np.broadcast_to([4.0, -4.0], (n, 2))
    patched.loc[{"contrast": "role", "direction": "a_into_b"}] = -4 + 8 * share
    patched.loc[{"contrast": "role", "direction": "b_into_a"}] = 4.0
    return ds.assign(patch_clean=clean, patch_head=patched).drop_vars(["mass", "log_odds"])


# --- the title ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "title"),
    [
        (4.4, "When it judges, the model puts 4.4 times less attention on the passage than when "
              "it answers"),
        (1 / 3, "When it judges, the model puts 3.0 times more attention on the passage than when "
                "it answers"),
        (1.1, "When it judges, the model puts 9% less attention on the passage than when it "
              "answers"),
    ],
)  # fmt: skip
def test_the_title_names_direction_and_size(factor: float, title: str) -> None:
    assert opening(with_ratio(factor)).title == title


def test_the_title_is_honest_where_the_interval_covers_one() -> None:
    title = opening(with_ratio(1.0, noise=0.5)).title
    assert title.startswith("No clear difference between answering and judging")
    assert "[0." in title


@pytest.mark.parametrize("n", [1, 5])
def test_few_examples_never_give_a_direction(n: int) -> None:
    found = opening(with_ratio(4.4, n=n))
    assert found.title.startswith("Too few examples to say")
    assert f"n = {n}" in found.title
    assert 3 <= len(found.meaning) <= 5


def test_without_attention_the_title_speaks_of_verdicts() -> None:
    ds = with_verdicts(-1.0, shift=3.0)
    assert (
        opening(ds).title == "Shown a right and a wrong answer, the model judges better than a coin"
    )


def test_attention_on_two_of_thirty_examples_gives_no_direction() -> None:
    found = opening(only_first(alone(), 2, *ATTENTION))
    assert found.title.startswith("Too few examples to say") and "n = 2" in found.title
    assert not any("longer prompt" in text for text in found.meaning)
    assert opening(only_first(alone(), 10, *ATTENTION)).title.startswith("When it judges")


def test_examples_of_few_passages_give_no_direction_however_many_they_are() -> None:
    ds = alone().assign_coords(cluster=("example", np.repeat(["a", "b", "c"], 10).astype(object)))
    title = opening(ds).title
    assert title.startswith("Too few examples to say") and "n = 30 from 3 passages" in title


def test_two_pairs_of_thirty_questions_give_no_direction() -> None:
    few, many = with_pairs(2), with_pairs(20)
    assert not any("coin" in text for text in opening(few).meaning)
    assert any("better than a coin" in text for text in opening(many).meaning)
    few, many = (ds.drop_vars(["mass", "patch_clean"]) for ds in (few, many))
    assert opening(few).title.startswith("Too few questions to say whether the model judges better")
    assert opening(many).title.endswith("the model judges better than a coin")


def test_units_are_the_examples_that_the_tables_count() -> None:
    ds = only_first(only_first(alone(), 17, *ATTENTION), 9, *PATCHING)
    ds["log_odds"][:4, RUNGS.index("own")] = np.nan
    tables = tabulate(ds)

    def n(table: str, **at: str) -> int:
        rows = getattr(tables, table)
        return int(rows[np.all([rows[key] == value for key, value in at.items()], axis=0)].n.max())

    context = {"region": "context", "normalisation": "raw", "aggregate": "mean"}
    assert count_units(ds) == Units(
        study=30,
        own=n("agreement", scope="all", metric="ea"),
        pairs=n("balanced", scope="all", rung="hardest", metric="auroc"),
        attention=n("ratios", numerator="generator", denominator="evaluator", **context),
        filler=n("ratios", numerator="generator_filler", denominator="evaluator", **context),
        patched=n("head_effects", contrast="role"),
    )
    assert count_units(ds).own == 26 and count_units(ds).patched == 9


# --- the numbers --------------------------------------------------------------------------------


def test_four_key_numbers_with_label_colour_and_reading_aid() -> None:
    found = opening(synthetic_study(24, 3, 3)[0])
    assert [number.colour for number in found.numbers] == [
        "generator", "evaluator", "evaluator", "context",
    ]  # fmt: skip
    assert all(number.label and number.explanation for number in found.numbers)
    assert found.numbers[3].estimate.excludes(1)
    assert found.subtitle == "toy, 24 examples from builtin, squad2, drop"


# --- what it means ------------------------------------------------------------------------------


def test_a_judge_that_rejects_everything_is_told_from_a_good_one() -> None:
    text = " ".join(opening(with_verdicts(-5.0)).meaning)
    assert "It rejects all of its own answers." in text
    assert "is exactly what rejecting everything would give" in text
    assert "cannot be told from a coin" in text


def test_a_judge_that_accepts_everything_too() -> None:
    text = " ".join(opening(with_verdicts(5.0)).meaning)
    assert "is exactly what accepting everything would give" in text


def test_a_judge_that_a_lazy_one_outdoes_is_told_so_first() -> None:
    ds = with_verdicts(0.0)
    truth = ds["candidate_f1"].sel(rung="own").values >= 0.5
    own = np.where(truth, -1.0, 1.0)  # wrong each time
    own[:20] = 0.5
    ds["log_odds"].loc[{"rung": "own"}] = own
    text = " ".join(opening(ds).meaning)
    assert "A judge that reads nothing does better" in text
    assert "right more often" not in text and "right less often" not in text


def test_a_lazy_judge_does_better_only_where_the_difference_is_clear() -> None:
    truth = [1] * 10 + [0] * 20
    unclear = " ".join(opening(with_own(truth, [1] * 5 + [0] * 5 + [1] * 7 + [0] * 13)).meaning)
    assert "no clear difference from a judge that reads nothing" in unclear
    assert "right for 0.60 of them" in unclear and "rejecting everything would give 0.67" in unclear
    clear = " ".join(opening(with_own(truth, [0] * 10 + [1] * 10 + [0] * 10)).meaning)
    assert "does better: rejecting everything would give 0.67" in clear
    few = " ".join(opening(with_own([1, 0, 0], [0, 1, 0])).meaning)
    assert "right for 0.33 of them; rejecting everything would give 0.67." in few
    assert "does better" not in unclear + few


def test_all_means_all() -> None:
    text = opening(with_own([1] * 67 + [0] * 183, [1] + [0] * 249)).meaning[0]
    assert text.startswith("It rejects nearly all (249 of 250) of its own answers.")


def test_a_judge_that_knows_more_than_it_says() -> None:
    text = " ".join(opening(with_verdicts(-5.0, shift=1.0)).meaning)
    assert "it knows more than its verdict says" in text


def test_the_longer_prompt_is_named_where_it_explains_the_difference() -> None:
    ds = with_ratio(3.0)
    explained = ds["mass"].sel(role="evaluator") * np.exp(
        xr.DataArray(np.random.default_rng(2).normal(0, 0.3, 24), dims="example")
    )
    ds["mass"].loc[{"role": "generator_filler"}] = explained
    text = " ".join(opening(ds).meaning)
    assert "hardly any difference is left" in text and "may explain the title" in text
    untouched = opening(with_ratio(3.0)).meaning
    assert any("does not explain it" in text for text in untouched)


@pytest.mark.parametrize(
    ("factor", "noise", "n", "said"),
    [
        (3.4, 6.0, 24, "cannot be told: against an answering prompt"),
        (3.4, 0.1, 5, "on too few examples (n = 4)"),
        (0.5, 0.1, 24, "the difference turns round: the passage gets 2."),
        (1.03, 0.01, 24, "hardly any difference is left"),
        (1.3, 0.01, 24, "does not explain it"),
    ],
)
def test_a_wide_interval_does_not_show_that_the_longer_prompt_explains_the_title(
    factor: float, noise: float, n: int, said: str
) -> None:
    ds = with_ratio(3.0)
    jitter = np.random.default_rng(4).normal(0, noise, 24)
    jitter = np.where(np.arange(24) < n, jitter - jitter.mean(), np.nan)
    filled = (
        ds["mass"].sel(role="evaluator") * factor * np.exp(xr.DataArray(jitter, dims="example"))
    )
    ds["mass"].loc[{"role": "generator_filler"}] = filled
    assert any(said in text for text in opening(ds).meaning)


@pytest.mark.parametrize(
    ("n", "gained", "said"),
    [
        (30, ["candidate"] * 6 + ["cue"] * 4, "most of them (6 of 10) turn to the candidate"),
        (30, ["candidate"] * 5 + ["cue"] * 5, ""),
        (30, ["sink", "template", "candidate", "cue", "question"] * 2, ""),
        (1, ["candidate"] * 10, ""),
    ],
)
def test_heads_turn_to_a_region_only_where_most_of_them_do(
    n: int, gained: list[str], said: str
) -> None:
    ds = alone(n, 10, 4)[[*ATTENTION, "span_tokens", "mark_tokens"]]
    tables = tabulate(ds)
    moved = tables.where_instead.assign(generator_context=0.5, evaluator_context=0.1, gained=gained)
    text = " ".join(headline(ds, {}, replace(tables, where_instead=moved)).meaning)
    assert "Of the 10 heads" in text
    assert said in text and (said or "turn to" not in text)


def test_unlikely_verdict_words_are_a_caution() -> None:
    ds = with_verdicts(0.0, n=40)
    ds["label_mass"] = (("example", "rung"), np.full((40, len(RUNGS)), 0.05))
    assert any("only 5% of the probability" in text for text in opening(ds).meaning)


def test_the_head_that_moves_the_decision_most_is_named_where_one_is_seen_to() -> None:
    ds = synthetic_study(40, 3, 4)[0].drop_vars(["mass", "log_odds"])
    assert any(text.startswith("Copying one head") for text in opening(ds).meaning)
    target = ds["patch_clean"].values[..., ::-1][..., None, None]
    ds["patch_head"] = (ds["patch_head"].dims, np.broadcast_to(target, ds["patch_head"].shape))
    assert any(text.startswith("No single head") for text in opening(ds).meaning)


def test_a_steady_head_is_found_below_ten_larger_ones_that_are_luck() -> None:
    share = np.zeros((30, 6, 4)).reshape(30, -1)
    share[:3, :12] = np.random.default_rng(5).normal(3, 0.5, (3, 12))  # three examples carry these
    share[:, 20] = np.random.default_rng(6).normal(0.1, 0.01, 30)
    text = " ".join(opening(with_effects(share.reshape(30, 6, 4))).meaning)
    assert "Copying one head (layer 5, head 0) from the answering into the judging run" in text
    assert "10% [10" in text and "of the way towards the other run" in text
    assert "the most of all 24 heads" in text and "correction" not in text


def test_of_few_patched_examples_no_head_is_named() -> None:
    share = np.zeros((30, 3, 4))
    share[:, 2, 1] = np.random.default_rng(8).normal(0.4, 0.01, 30)
    for patched, said in ((5, "on only 5 examples: too few to name"), (12, "Copying one head")):
        ds = only_first(with_effects(share), patched, *PATCHING)
        text = " ".join(opening(ds).meaning)
        assert said in text and "No single head" not in text


def test_intervals_of_few_passages_are_called_too_narrow() -> None:
    few, some = " ".join(opening(with_ratio(2)).meaning), " ".join(opening(alone(24)).meaning)
    assert "Intervals from so few passages are too narrow" in few and "wide" not in few
    assert "so the intervals are wide" in some and "too narrow" not in some


def test_few_examples_are_a_caution_and_many_are_not() -> None:
    assert any("Only 24 examples from 8 passages" in t for t in opening(with_ratio(2)).meaning)
    assert not any("Only" in t for t in opening(with_ratio(2, n=48)).meaning)


@pytest.mark.parametrize(
    ("right", "said"),
    [
        (13, "Accepting everything would give 0.54."),
        (11, "Rejecting everything would give 0.54."),
    ],
)
def test_verdicts_stand_beside_the_better_judge_that_reads_nothing(right: int, said: str) -> None:
    found = opening(with_own([1] * right + [0] * (24 - right), [1, 0] * 12))
    assert found.numbers[1].explanation.endswith(said)


# --- thin and missing data ----------------------------------------------------------------------


def nan_study() -> xr.Dataset:
    ds, _ = synthetic_study(8, 2, 2)
    for name, variable in ds.data_vars.items():
        if variable.dtype.kind == "f":
            ds[name] = variable * np.nan
    return ds


@pytest.mark.parametrize(
    "ds",
    [
        pytest.param(xr.Dataset(), id="nothing"),
        pytest.param(synthetic_study(3, 2, 2)[0].isel(example=[]), id="no example"),
        pytest.param(synthetic_study(1, 1, 1)[0], id="one example, one head"),
        pytest.param(synthetic_study(2, 2, 2)[0], id="two examples of one passage"),
        pytest.param(nan_study(), id="all missing"),
        pytest.param(synthetic_study(9, 2, 2)[0][["em", "f1", "log_odds"]], id="verdicts only"),
        pytest.param(
            synthetic_study(9, 2, 2)[0].drop_vars(["em", "f1", "log_odds", "patch_clean"]),
            id="attention only",
        ),
        pytest.param(
            synthetic_study(9, 2, 2)[0].drop_vars(["cluster", "family", "dataset"]),
            id="no groups",
        ),
    ],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_thin_studies_still_open_with_something_true(ds: xr.Dataset) -> None:
    found = headline(ds, {})
    assert found.title and len(found.numbers) == 4
    assert 3 <= len(found.meaning) <= 5
    text = " ".join([found.title, found.subtitle, *found.meaning])
    assert "nan" not in text.lower().split()


def test_a_stored_study_gives_the_same_tables(tmp_path: Path) -> None:
    ds, _ = synthetic_study(10, 2, 3)
    ds.to_zarr(tmp_path / "study.zarr", consolidated=False)
    again = xr.open_zarr(tmp_path / "study.zarr", consolidated=False)
    fresh, stored = tabulate(ds), tabulate(again)
    for name in ("agreement", "balanced", "ratios", "top_heads", "where_instead"):
        a, b = getattr(fresh, name), getattr(stored, name)
        assert a.to_csv(float_format="%.9f") == b.to_csv(float_format="%.9f"), name


def test_a_study_of_a_hundred_examples_is_summed_up_in_seconds() -> None:
    ds, _ = synthetic_study(100, 30, 9)
    start = time.process_time()
    headline(ds, {})
    assert time.process_time() - start < 20  # about 2 on one idle core


def test_summaries_need_no_torch() -> None:
    code = "import sys, lab.instruments.summaries; sys.exit('torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


def test_masses_of_the_made_up_study_are_a_partition() -> None:
    ds, _ = synthetic_study(6, 2, 2)
    for role in ("generator", "evaluator"):
        mass = ds["mass"].sel(role=role)
        assert np.allclose(mass.sum("span"), 1)
        tokens = ds["attention"].sel(role2=role).astype(float) / 255
        where = ds["token_span"].sel(role2=role)
        for i, span in enumerate(SPANS):
            shown = tokens.where(where == i, 0).sum("token")
            assert np.allclose(shown, mass.sel(span=span), atol=0.06)
