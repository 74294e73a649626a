"""Attention by region: worked examples, ratios between roles, single heads."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from synthetic_study import MARKS, SPANS, synthetic_study

from lab.errors import LabError
from lab.instruments.summaries import reading, tables


def one_row_study() -> xr.Dataset:
    """One head of one prompt: sink | context (6) | question (2) | candidate (1) | cue (2)."""
    mass = dict.fromkeys(SPANS, 0.0) | {
        "sink": 0.55, "context": 0.22, "question": 0.08, "candidate": 0.01, "cue": 0.14,
    }  # fmt: skip
    sizes = dict.fromkeys(SPANS, 0) | {
        "sink": 1, "context": 6, "question": 2, "candidate": 1, "cue": 2,
    }  # fmt: skip
    norm = dict.fromkeys(SPANS, 0.0) | {"sink": 0.07, "context": 0.60, "question": 0.20}
    place = ("example", "role", "layer", "head")

    def cell(table: dict[str, float]) -> np.ndarray:
        return np.array(list(table.values()), dtype=float).reshape(1, 1, 1, 1, len(SPANS))

    no_marks = np.zeros((1, 1, 1, 1, len(MARKS)))
    return xr.Dataset(
        {
            "mass": ((*place, "span"), cell(mass)),
            "norm_mass": ((*place, "span"), cell(norm)),
            "mark_mass": ((*place, "mark"), no_marks),
            "norm_mark_mass": ((*place, "mark"), no_marks),
            "span_tokens": (("example", "role", "span"), [[list(sizes.values())]]),
            "mark_tokens": (("example", "role", "mark"), no_marks[0, 0].astype(int)),
        },
        coords={"example": ["e"], "role": ["evaluator"], "layer": [0], "head": [0],
                "span": list(SPANS), "mark": list(MARKS)},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("normalisation", "expected"),
    [
        ("raw", {"sink": 0.55, "context": 0.22, "question": 0.08, "candidate": 0.01, "cue": 0.14}),
        (
            "sink_excluded",
            {"context": 0.4889, "question": 0.1778, "candidate": 0.0222, "cue": 0.3111},
        ),
        (
            "enrichment",
            {"sink": 6.60, "context": 0.44, "question": 0.48, "candidate": 0.12, "cue": 0.84},
        ),
        ("norm_weighted", {"sink": 0.0805, "context": 0.6897, "question": 0.2299}),
    ],
)
def test_normalisations_worked_example(normalisation: str, expected: dict[str, float]) -> None:
    values = reading.regions(one_row_study(), normalisation).squeeze()
    found = {region: float(values.sel(region=region)) for region in expected}
    assert found == pytest.approx(expected, abs=5e-5)


def test_a_region_that_a_prompt_does_not_have_is_missing_not_zero() -> None:
    values = reading.regions(one_row_study()).squeeze()
    assert np.isnan(values.sel(region="instruction"))
    ds, _ = synthetic_study(4, 2, 2)
    assert np.isnan(reading.regions(ds).sel(role="generator", region="candidate")).all()


@pytest.mark.parametrize("normalisation", ["raw", "sink_excluded", "norm_weighted"])
def test_shares_of_all_spans_add_up_to_one(normalisation: str) -> None:
    ds, _ = synthetic_study(5, 2, 3)
    total = reading.regions(ds, normalisation).sel(region=list(SPANS)).sum("region")
    there = ds["span_tokens"].sum("span") > 0
    assert np.allclose(total.where(there, 1.0), 1)


def test_even_attention_has_enrichment_one_everywhere() -> None:
    ds, _ = synthetic_study(3, 1, 2)
    tokens = ds["span_tokens"].where(ds["span_tokens"] >= 0)
    even = (tokens / tokens.sum("span")).broadcast_like(ds["mass"])
    ds["mass"] = even.transpose(*ds["mass"].dims)
    values = reading.regions(ds, "enrichment").sel(region=list(SPANS)).values
    assert np.allclose(values[~np.isnan(values)], 1)


def test_unknown_normalisation_and_aggregate_are_refused() -> None:
    ds, _ = synthetic_study(2, 1, 1)
    with pytest.raises(LabError, match="enrichment"):
        reading.regions(ds, "rescaled")
    with pytest.raises(LabError, match="max"):
        reading.by_layer(ds, aggregate="median")


def test_means_by_region_and_by_layer_match_the_arrays() -> None:
    ds, _ = synthetic_study(6, 3, 2)
    frame = reading.by_region(ds)
    got = tables.find(frame, normalisation="raw", role="evaluator", region="context")
    wanted = ds["mass"].sel(role="evaluator", span="context").mean()
    assert got.value == pytest.approx(float(wanted)) and got.n == 6
    assert got.low < got.value < got.high
    layer = tables.find(reading.by_layer(ds, aggregate="max"), role="generator", region="context",
                        layer=1)  # fmt: skip
    largest = ds["mass"].sel(role="generator", span="context", layer=1).max("head").mean()
    assert layer.value == pytest.approx(float(largest))


def scaled_study(factor: float) -> xr.Dataset:
    """The evaluator's attention is the generator's, but the passage gets ``factor`` times less."""
    ds, _ = synthetic_study(12, 3, 4)
    both = ds["mass"].sel(role="generator").copy()
    both.loc[{"span": "context"}] = both.sel(span="context") / factor
    ds["mass"].loc[{"role": "evaluator"}] = both
    return ds


def test_a_ratio_is_how_many_times_more_the_first_role_reads() -> None:
    frame = reading.ratios(scaled_study(4.4))
    for aggregate in ("mean", "max"):
        ratio = tables.find(frame, numerator="generator", denominator="evaluator",
                            region="context", normalisation="raw", aggregate=aggregate)  # fmt: skip
        assert ratio.value == pytest.approx(4.4)
        assert (ratio.low, ratio.high) == pytest.approx((4.4, 4.4))
        assert ratio.n == 12


def test_ratios_cover_controls_and_leave_out_roles_that_were_not_run() -> None:
    ds, _ = synthetic_study(8, 2, 2)
    assert set(reading.ratios(ds)["numerator"]) == {
        "generator", "generator_filler", "evaluator_repeat",
    }  # fmt: skip
    frame = reading.ratios(ds.isel(role=[0, 1]))
    assert set(frame["numerator"]) == {"generator"}
    assert set(frame["region"]) == {"context", "evidence", "question"}


def test_head_differences_find_the_one_head_that_differs() -> None:
    ds, _ = synthetic_study(16, 3, 4)
    ds["cluster"] = ("example", np.array([f"p{i}" for i in range(16)], dtype=object))
    mass = np.random.default_rng(0).uniform(0.1, 0.2, ds["mass"].shape)
    mass[:, 0, 2, 1] += 0.5
    ds["mass"] = (ds["mass"].dims, mass)
    frame = reading.head_differences(ds)
    found = frame[frame["p_adjusted"] < 0.01]
    assert [tuple(pair) for pair in found[["layer", "head"]].to_numpy()] == [(2, 1)]
    assert found["value"].item() == pytest.approx(0.5, abs=0.05)
    assert found["generator"].item() - found["evaluator"].item() == pytest.approx(
        found["value"].item()
    )


def test_reading_heads_and_their_overlap() -> None:
    ds, _ = synthetic_study(4, 4, 5)
    mass = np.full(ds["mass"].shape, 0.01)
    context = SPANS.index("context")
    for role, heads in ((0, [(0, 0), (1, 1), (2, 2)]), (1, [(1, 1), (2, 2), (3, 3)])):
        for strength, (layer, head) in zip((0.9, 0.8, 0.7), heads, strict=True):
            mass[:, role, layer, head, context] = strength
    ds["mass"] = (ds["mass"].dims, mass)
    overlap = reading.reading_heads(ds, k=3)
    assert overlap.generator == ((0, 0), (1, 1), (2, 2))
    assert overlap.evaluator == ((1, 1), (2, 2), (3, 3))
    assert (overlap.shared, overlap.jaccard) == (2, 0.5)
    assert overlap.expected < 0.15


def test_where_the_passage_readers_look_instead() -> None:
    ds, _ = synthetic_study(4, 2, 2)
    mass, marks = np.full(ds["mass"].shape, 0.01), np.full(ds["mark_mass"].shape, 0.001)
    mass[:, 0, 1, 0, SPANS.index("context")] = 0.8
    mass[:, 1, 1, 0, SPANS.index("instruction")] = 0.6
    marks[:, 1, 1, 0, MARKS.index("labels")] = 0.5
    ds["mass"], ds["mark_mass"] = (ds["mass"].dims, mass), (ds["mark_mass"].dims, marks)
    first = reading.where_instead(ds, k=1).iloc[0]
    assert (first["layer"], first["head"]) == (1, 0)
    assert (first["span"], first["elsewhere"], first["gained"]) == ("instruction",) * 3
    assert first["mark"] == "labels" and first["mark_mass"] == pytest.approx(0.5)
    assert first["gain"] == pytest.approx(0.59)


def test_candidate_tokens_reading_the_passage() -> None:
    ds, _ = synthetic_study(5, 3, 2)
    frame = reading.candidate_to_context(ds)
    got = tables.find(frame, aggregate="mean", layer=2).value
    wanted = ds["candidate_to_context"].sel(role="evaluator", layer=2).mean()
    assert got == pytest.approx(float(wanted))


def test_a_head_that_sees_only_the_sink_has_no_share_of_the_rest():
    ds, _ = synthetic_study()
    only_sink = (ds["span"] == "sink").astype("f4")
    here = (ds["layer"] == 1) & (ds["head"] == 2)
    ds["mass"] = only_sink.where(here, ds["mass"]).transpose(*ds["mass"].dims)
    ds["mark_mass"] = ds["mark_mass"].where(~here, 0.0)
    shares = reading.regions(ds, "sink_excluded")
    assert not np.isinf(shares).any()
    assert np.isnan(shares.sel(region="context").isel(layer=1, head=2)).all()
    assert np.isfinite(reading.head_differences(ds, normalisation="sink_excluded")["value"]).any()
