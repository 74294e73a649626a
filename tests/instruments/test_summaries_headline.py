"""The opening of a report: right direction, honest wording, and no crash on thin data."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from synthetic_study import RUNGS, SPANS, synthetic_study

from lab.instruments.summaries import Headline, headline, tabulate


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


def test_a_judge_that_knows_more_than_it_says() -> None:
    text = " ".join(opening(with_verdicts(-5.0, shift=1.0)).meaning)
    assert "it knows more than its verdict says" in text


def test_the_longer_prompt_is_named_where_it_explains_the_difference() -> None:
    ds = with_ratio(3.0)
    explained = ds["mass"].sel(role="evaluator") * np.exp(
        xr.DataArray(np.random.default_rng(2).normal(0, 0.3, 24), dims="example")
    )
    ds["mass"].loc[{"role": "generator_filler"}] = explained
    assert any("longer prompt may explain the title" in text for text in opening(ds).meaning)
    untouched = opening(with_ratio(3.0)).meaning
    assert any("does not explain it" in text for text in untouched)


def test_unlikely_verdict_words_are_a_caution() -> None:
    ds = with_verdicts(0.0, n=40)
    ds["label_mass"] = (("example", "rung"), np.full((40, len(RUNGS)), 0.05))
    assert any("only 5% of the probability" in text for text in opening(ds).meaning)


def test_the_strongest_patched_head_is_named_only_if_it_survives_correction() -> None:
    ds = synthetic_study(40, 3, 4)[0].drop_vars(["mass", "log_odds"])
    assert any(text.startswith("Copying one head") for text in opening(ds).meaning)
    noise = np.random.default_rng(3).normal(0, 0.5, ds["patch_head"].shape)
    target = ds["patch_clean"].values[..., ::-1][..., None, None]
    ds["patch_head"] = (ds["patch_head"].dims, target + noise)
    assert any(text.startswith("No single head") for text in opening(ds).meaning)


def test_few_examples_are_a_caution_and_many_are_not() -> None:
    assert any("Only 24 examples from 8 passages" in t for t in opening(with_ratio(2)).meaning)
    assert not any("Only" in t for t in opening(with_ratio(2, n=48)).meaning)


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
