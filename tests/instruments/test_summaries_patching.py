"""Tables of patching effects: restoration, exclusions, flips, windows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from synthetic_study import CONTRASTS, DIRECTIONS, SITES, synthetic_study

from lab.instruments.summaries import patching

RESIDUAL = np.array([0, 0.05, 0.10, 0.50, 0.90, 1.0])


def patched_study(n: int = 12) -> xr.Dataset:
    """Head (1, 2) restores one half into run b, and a quarter the other way; no other head acts."""
    rng = np.random.default_rng(0)
    clean = np.stack([rng.uniform(2, 4, (n, 3)), rng.uniform(-4, -2, (n, 3))], axis=-1)
    clean[::2, 1] = clean[::2, 1, ::-1]  # in half of the examples the gap has the other sign
    clean[0, 2] = (0.2, 0.1)
    clean[1, 2] = np.nan
    source, target = clean, clean[..., ::-1]
    heads = np.broadcast_to(target[..., None, None], (n, 3, 2, 2, 3)).copy()
    for direction, share in enumerate((0.5, 0.25)):
        gap = (source - target)[:, :, direction]
        heads[:, :, direction, 1, 2] += share * gap
    curve = np.stack([np.zeros(6), RESIDUAL])
    layers = target[..., None, None] + (source - target)[..., None, None] * curve
    flips = (np.abs(heads - target[..., None, None]) > 1).astype(np.int8)
    layer_flips = np.broadcast_to((curve >= 0.5).astype(np.int8), layers.shape)
    by = ("example", "contrast", "direction")
    return xr.Dataset(
        {
            "patch_clean": (("example", "contrast", "run"), clean),
            "patch_head": ((*by, "layer", "head"), heads),
            "patch_head_flip": ((*by, "layer", "head"), flips),
            "patch_layer": ((*by, "site", "depth"), layers),
            "patch_layer_flip": ((*by, "site", "depth"), layer_flips.copy()),
        },
        coords={
            "example": [f"e{i}" for i in range(n)],
            "contrast": list(CONTRASTS),
            "direction": list(DIRECTIONS),
            "run": ["a", "b"],
            "site": list(SITES),
            "layer": [0, 1],
            "head": [0, 1, 2],
        },
    )


def head_row(contrast: str, direction: str, layer: int, head: int):  # type: ignore[no-untyped-def]
    frame = patching.heads(patched_study())
    return frame.set_index(["contrast", "direction", "layer", "head"]).loc[
        (contrast, direction, layer, head)
    ]


@pytest.mark.parametrize("contrast", CONTRASTS)
def test_restoration_by_head_and_direction(contrast: str) -> None:
    into_b, into_a = (head_row(contrast, direction, 1, 2) for direction in DIRECTIONS)
    assert (into_b["value"], into_a["value"]) == pytest.approx((0.5, 0.25))
    assert into_b["ratio_of_means"] == pytest.approx(0.5)
    assert head_row(contrast, "a_into_b", 0, 0)["value"] == 0


def test_a_head_that_carries_what_the_prompts_call_for_passes_the_test() -> None:
    ds = patched_study()
    ds["patch_clean"][:, 1] = [3.0, -3.0]
    ds["patch_head"][:, 1] = ds["patch_clean"][:, 1, ::-1].values[..., None, None]
    ds["patch_head"][:, 1, 0, 1, 2] += 2
    ds["patch_head"][:, 1, 1, 1, 2] -= 1
    frame = patching.heads(ds).set_index(["contrast", "direction", "layer", "head"])
    for direction, shift in (("a_into_b", 2), ("b_into_a", 1)):
        found = frame.loc[("candidate", direction, 1, 2)]
        assert found["shift"] == pytest.approx(shift)
        assert found["p"] == pytest.approx(2 / 2**12)
        assert found["p_adjusted"] == pytest.approx(6 * 2 / 2**12)


def test_a_head_that_follows_a_judge_who_guesses_does_not() -> None:
    """In half of the examples the wrong candidate is preferred: R is high, and nothing is known."""
    found = head_row("candidate", "a_into_b", 1, 2)
    assert found["value"] == pytest.approx(0.5) and found["ratio_of_means"] == pytest.approx(0.5)
    assert abs(found["shift"]) < 1
    assert found["p_adjusted"] > 0.2


def test_in_a_model_of_noise_every_head_restores_and_none_is_significant() -> None:
    noise = np.random.default_rng(7).normal(0, 1, (24, 4, 5))
    clean = np.stack([noise.sum((1, 2)) / 2, -noise.sum((1, 2)) / 2], axis=-1)[:, None]
    heads = clean[..., ::-1, None, None] + np.stack([noise, -noise], axis=1)[:, None]
    for contrast in ("candidate", "role"):
        ds = xr.Dataset(
            {
                "patch_clean": (("example", "contrast", "run"), clean),
                "patch_head": (("example", "contrast", "direction", "layer", "head"), heads),
            },
            coords={
                "example": [f"e{i}" for i in range(24)],
                "contrast": [contrast],
                "direction": list(DIRECTIONS),
                "run": ["a", "b"],
                "layer": range(4),
                "head": range(5),
            },
        )
        frame = patching.heads(ds)
        assert frame.groupby("direction")["ratio_of_means"].sum().to_numpy() == pytest.approx(1)
        assert not patching.top_heads(frame, k=20)["significant"].any()


def test_heads_are_not_tested_by_the_outcome_of_the_roles() -> None:
    found = head_row("role", "a_into_b", 1, 2)
    assert found["shift"] > 1
    assert np.isnan(found["p"]) and np.isnan(found["p_adjusted"])


def test_examples_with_close_or_missing_clean_runs_are_left_out_and_counted() -> None:
    passage, role = (head_row(name, "a_into_b", 1, 2) for name in ("passage", "role"))
    assert (passage["n"], passage["too_close"], passage["missing"]) == (10, 1, 1)
    assert (role["n"], role["too_close"], role["missing"]) == (12, 0, 0)


def test_flip_rate_counts_what_is_known() -> None:
    assert head_row("role", "a_into_b", 1, 2)["flip_rate"] == 1
    assert head_row("role", "a_into_b", 0, 0)["flip_rate"] == 0
    ds = patched_study()
    ds["patch_head_flip"][:6] = -1
    ds["patch_head_flip"][6:9, :, :, 0, 0] = 1
    frame = patching.heads(ds).set_index(["contrast", "direction", "layer", "head"])
    assert frame.loc[("role", "a_into_b", 0, 0), "flip_rate"] == 0.5


def test_top_heads_are_ranked_by_size_and_flagged() -> None:
    ds = patched_study()
    ds["patch_clean"][:, 1:] = np.sort(ds["patch_clean"][:, 1:].values)[..., ::-1]
    target = ds["patch_clean"].values[..., ::-1]
    ds["patch_head"][:] = target[..., None, None]
    ds["patch_head"][..., 1, 2] += 0.5 * (ds["patch_clean"].values - target)
    top = patching.top_heads(patching.heads(ds), k=2)
    first = top[top["rank"] == 1]
    assert set(zip(first["layer"], first["head"], strict=True)) == {(1, 2)}
    assert (first["significant"] == (first["contrast"] != "role")).all()
    assert not top.loc[top["rank"] == 2, "significant"].any()
    assert len(top) == 2 * len(CONTRASTS) * len(DIRECTIONS)


def test_the_window_of_the_residual_curve() -> None:
    ds = patched_study().drop_dims(["layer", "head"]).rename(depth="layer")
    curves = patching.layers(ds.assign_coords(layer=np.arange(6)))
    windows = patching.windows(curves)
    assert len(windows) == len(CONTRASTS) * len(DIRECTIONS)
    assert set(windows["first"]) == {3} and set(windows["last"]) == {4}
    assert set(windows["half_flip_layer"]) == {3}
    assert windows["held"].to_numpy() == pytest.approx(np.full(6, 0.8))


def test_the_layer_of_half_the_flips_is_the_first_whatever_later_ones_do() -> None:
    curve = {"contrast": "role", "direction": "a_into_b", "site": "resid", "layer": range(4)}
    rates = {"value": [0.1, 0.2, 0.3, 1.0], "flip_rate": [0.6, 0.1, 0.1, 0.9]}
    (row,) = patching.windows(pd.DataFrame(curve | rates)).to_dict("records")
    assert row["half_flip_layer"] == 0


def test_a_study_without_patching_gives_empty_tables() -> None:
    ds = synthetic_study(3, 2, 2)[0].drop_vars(["patch_head", "patch_layer"])
    heads, layers = patching.heads(ds), patching.layers(ds)
    assert heads.empty and layers.empty and "p_adjusted" in heads
    assert patching.windows(layers).empty and patching.top_heads(heads).empty
