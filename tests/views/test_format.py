"""Numbers as text: no rounding may make one contradict another."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest

from lab.instruments.statistics import Estimate
from lab.views import format as F
from lab.views.page import STATIC
from lab.views.table import cell, ends


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.97, "0.97"), (1.0, "1.00"), (1.03, "1.03"), (1.994, "1.99"), (1.996, "2.0"),
        (3.44, "3.4"), (9.96, "10"), (1.003, "1.003"), (0.998, "0.998"), (1.00001, "1.00"),
    ],
)  # fmt: skip
def test_a_ratio_has_two_decimals_below_two_and_is_one_only_if_it_is(x: float, text: str) -> None:
    assert F.ratio(x) == f"{text}\u00a0\u00d7"


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.0, "0.0"), (0.0003, "0.03"), (-0.0001, "\u22120.01"), (0.00002, "0.002"),
        (0.012, "1.2"), (0.25, "25"), (1e-9, "0.0"),
    ],
)  # fmt: skip
def test_points_are_none_only_where_nothing_differs(x: float, text: str) -> None:
    assert F.points(x) == text


@pytest.mark.parametrize(
    ("form", "low", "high", "text"),
    [
        (F.ratio, 1.02, 1.04, "[1.02, 1.04]"),
        (F.ratio, 0.97, 1.04, "[0.97, 1.04]"),
        (F.ratio, 1.98, 2.1, "[1.98, 2.10]"),
        (F.ratio, 1.001, 1.2, "[1.001, 1.200]"),
        (F.ratio, 3.44, 3.82, "[3.4, 3.8]"),
        (F.ratio, 9.5, 11.3, "[9.5, 11.3]"),
        (F.points, 0.0001, 0.0004, "[0.01, 0.04]"),
        (F.points, -0.021, 0.0, "[\u22122.1, 0.0]"),
        (F.percent, 0.087, 0.133, "[8.7, 13.3]"),
        (F.percent, 0.51, 0.7, "[51, 70]"),
        (F.decimal, 0.004, 0.31, "[0.004, 0.310]"),
        (F.decimal, math.nan, 1.0, ""),
        (F.ratio, 3.57, 3.63, "[3.57, 3.63]"),
        (F.percent, 0.612, 0.614, "[61.2, 61.4]"),
        (F.decimal, 0.6701, 0.6702, "[0.670, 0.670]"),
    ],
)
def test_both_ends_of_an_interval_have_the_same_decimals(
    form: F.Format, low: float, high: float, text: str
) -> None:
    assert F.interval(Estimate(low, low, high, 9), form) == text


@pytest.mark.parametrize("at", [0.0, 2 / 3, 1.0])
def test_an_interval_without_width_is_none(at: float) -> None:
    """Where all agree a bootstrap has no spread: that is not certainty."""
    assert F.interval(Estimate(at, at, at + 1e-16, 9), F.decimal) == ""
    assert cell(Estimate(at, at, at, 9), F.decimal, with_n=True).small == "n\u00a0=\u00a09"
    assert ends(Estimate(at, at, at, 9), F.decimal) == "no interval"


def test_a_difference_has_a_sign_unless_there_is_none() -> None:
    assert [F.signed(x) for x in (0.25, 0.004, 0.0, -0.1)] == [
        "+0.25", "+0.004", "0.00", "\u22120.10",
    ]  # fmt: skip
    assert F.signed(0.0003, F.points) == "+0.03"


@pytest.mark.parametrize("form", [F.ratio, F.points, F.decimal])
def test_what_lies_on_one_side_of_no_difference_is_shown_there(form: F.Format) -> None:
    none = 1.0 if form is F.ratio else 0.0
    for gap in (0.0007, 0.003, 0.004, 0.0049, 0.02, 0.3):
        for side in (-1, 1):
            assert form(none + side * gap) != form(none)


TWINS = {"decimal": "fixed", "points": "points", "percent": "percent", "ratio": "times"}


@pytest.mark.browser
def test_the_page_writes_numbers_as_python_does(open_page, tmp_path: Path) -> None:
    """The views are drawn by JavaScript, the tables by Python: they show the same numbers."""
    numbers = [
        k * 10.0**e * s
        for k in (1, 1.994, 2.7, 4.6, 9.96)
        for e in (-6, -5, -4, -3, -2, -1, 0, 1)
        for s in (1, -1)
    ]
    numbers += [0.0, 1.0, 0.9951, 0.998, 1.003, 1.0049, 1.996, 0.0995, 0.00005]
    ranges = [pair for pair in itertools.pairwise(sorted(numbers)) if pair[0] != pair[1]]
    ranges += [(0.25, 0.25), (0.6701, 0.6702), (3.57, 3.63)]
    blank = tmp_path / "blank.html"
    blank.write_text("<!doctype html><title>blank</title>", "utf-8")
    source = (STATIC / "base.js").read_text("utf-8")
    page = open_page(blank).page
    for ours, theirs in TWINS.items():
        form = getattr(F, ours)
        script = f"""(() => {{ {source}
          return [{json.dumps(numbers)}.map(x => {theirs}(x)),
                  {json.dumps(ranges)}.map(([a, b]) => range(a, b, {theirs}))]; }})()"""
        singles, intervals = page.evaluate(script)
        assert singles == [form(x) for x in numbers]
        unit = form(5.0).lstrip("0123456789.")
        bare = [text.strip().replace(unit, "") for text in intervals]
        assert bare == [F.interval(Estimate(low, low, high, 9), form) for low, high in ranges]
