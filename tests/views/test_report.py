"""The exported page as text: what it holds, how large it is, how it is written."""

from __future__ import annotations

import base64
import json
import os
import re
from html import unescape
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from synthetic_study import synthetic_study

from lab.errors import LabError
from lab.instruments.summaries import behaviour as B
from lab.instruments.summaries import headline
from lab.views.content import behaviour, dots, front, made
from lab.views.packing import LEVELS, QUANTISATION_ERROR, script_json, unpack_rows
from lab.views.page import module, widget_stylesheet
from lab.views.reading_payload import reader_payload, without_absent_spans
from lab.views.report import render_report, write_report

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def html(report):
    return report.read_text(encoding="utf-8")


@pytest.fixture
def quick_page(monkeypatch):
    """For the tests of writing: a page that takes no time to make."""
    monkeypatch.setattr("lab.views.report.render_report", lambda *_: "<h1>page \ud800</h1>")


def data_of(html: str) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL).group(1))


def words_of(html: str) -> str:
    body = re.sub(r"<(script|style).*?</\1>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", body)))


def test_the_page_opens_with_the_finding_and_its_numbers(study, html):
    opening = headline(*study)
    words = words_of(html)
    assert f"<h1>{opening.title}</h1>" in html
    for number in opening.numbers:
        assert number.label in words
        assert f"n\u00a0=\u00a0{number.estimate.n}" in unescape(html)
    for sentence in opening.meaning:
        assert sentence in words


def test_tables_and_words_are_there_without_any_script(study, html):
    _, provenance = study
    words = words_of(html)
    for expected in (
        "balanced accuracy",
        "always reject",
        "wrong, same type",
        "passage hidden",
        "first token (sink)",
        "Attention is not use",
        "SHA-256 " + "0" * 64,
        provenance["excluded"][0]["why"],
        "CC-BY-SA-4.0",
    ):
        assert expected in words


def test_the_stated_quantisation_error_holds_for_every_row(study, html):
    dataset = without_absent_spans(study[0])
    data = data_of(html)
    assert data["reader"]["error"] == QUANTISATION_ERROR
    assert f"{100 * QUANTISATION_ERROR:.1f} percentage points" in words_of(html)
    for i, example in enumerate(data["reader"]["examples"]):
        for role, side in example["roles"].items():
            norms = np.frombuffer(base64.b64decode(side["norm"]), np.uint8).reshape(5, 4, 7)
            weighted = dataset["norm_mass"].sel(role=role).isel(example=i)
            weighted = (weighted / weighted.sum("span")).values
            assert np.abs(norms / LEVELS - weighted).max() <= QUANTISATION_ERROR + 1e-9
            n = len(base64.b64decode(side["span"]))
            rows = unpack_rows(base64.b64decode(side["rows"]), 20, n).reshape(5, 4, n)
            stored = dataset["attention"].sel(role2=role).isel(example=i).values[..., :n]
            assert (rows == stored).all()
            beyond = np.frombuffer(base64.b64decode(side["beyond"]), np.uint8).reshape(5, 4, 7)
            rest = dataset["mass"].sel(role=role).isel(example=i).drop_sel(span="sink")
            rest = (rest / rest.sum("span")).values
            assert np.abs(beyond[..., 1:] / LEVELS - rest).max() <= QUANTISATION_ERROR + 1e-9
            mass = np.frombuffer(base64.b64decode(side["mass"]), np.uint8).reshape(5, 4, 7)
            exact = dataset["mass"].sel(role=role).isel(example=i).values
            assert np.abs(mass / LEVELS - exact).max() <= QUANTISATION_ERROR + 1e-9


def test_demonstrations_are_listed_only_where_prompts_have_them(study, html):
    dataset, provenance = study
    assert "demonstrations" in dataset["span"].values
    assert "demonstrations" not in [span["name"] for span in data_of(html)["spans"]]
    assert "demonstrations" not in words_of(html)
    demonstrated = dataset.copy(deep=True)
    demonstrated["span_tokens"].loc[{"span": "demonstrations"}] = 400
    page = render_report(demonstrated, provenance, max_examples=1)
    assert [span["name"] for span in data_of(page)["spans"]] == list(dataset["span"].values)
    assert "demonstrations" in words_of(page)


def test_leaving_a_span_out_keeps_the_name_of_every_token(study):
    dataset, _ = study
    shown = without_absent_spans(dataset)
    before, after = dataset["token_span"].values, shown["token_span"].values
    assert shown.sizes["span"] == dataset.sizes["span"] - 1
    assert ((before < 0) == (after < 0)).all() and (before < 0).any()
    held = before >= 0
    assert (shown["span"].values[after[held]] == dataset["span"].values[before[held]]).all()
    np.testing.assert_allclose(shown["mass"].sum("span"), dataset["mass"].sum("span"))


def test_tokens_come_back_in_order(study, html):
    dataset, _ = study
    reader = data_of(html)["reader"]
    kind = np.uint16 if reader["width"] == 2 else np.uint32
    side = reader["examples"][2]["roles"]["evaluator"]
    ids = np.frombuffer(base64.b64decode(side["tokens"]), kind)
    expected = json.loads(dataset["tokens"].sel(role2="evaluator").values[2])
    assert [reader["vocab"][i] for i in ids] == expected


def test_nothing_in_the_page_points_to_a_network(html):
    outside = re.findall(r"""(?:src|href)=["'](?!#|data:,)([^"']*)""", html)
    assert outside == []
    assert "@import" not in html and "url(" not in html
    addresses = re.findall(r"https?://[^\s\"'<]+", html)
    assert set(addresses) <= {"http://www.w3.org/2000/svg"}


def test_the_limits_say_on_how_much_a_kind_of_question_rests(study):
    dataset, provenance = study
    families = dataset["family"].values.tolist()
    assert sum(made.kinds(dataset)) == len(families) and len(made.kinds(dataset)) > 1
    first = made.limits(provenance, 1000, 1000, [40, 90])[0]
    assert "1,000 examples; rows for single kinds of question rest on 40 to 90 each." in first
    assert "kinds of question" not in made.limits(provenance, 1000, 1000)[0]
    assert "wide" not in first and "handful" not in first
    assert "share 8 passages; rows" in made.limits(provenance, 24, 8, [3, 3])[0]


@pytest.mark.parametrize("n", [1, 2])
def test_few_examples_are_told_of_in_good_grammar(study, n):
    dataset, provenance = study
    words = words_of(render_report(dataset.isel(example=slice(n)), provenance))
    assert "All 1 example" not in words and "given 1 question, each" not in words
    assert ("The one example is here" if n == 1 else "All 2 examples are here") in words


def test_no_difference_is_not_said_of_no_heads():
    frame = pd.DataFrame({"value": [0.1, 0.2, -0.1], "p_adjusted": 0.01})
    lead = front.changed_lead(SimpleNamespace(heads=frame))
    assert lead.startswith("Of 3 heads, 2 look at the passage less")
    assert "and 1 looks at it more" in lead and "for the other" not in lead
    assert lead.endswith("All differences:")
    unclear = pd.DataFrame({"value": np.linspace(1, 0, 12), "p_adjusted": [0.01] + [0.9] * 11})
    lead = front.changed_lead(SimpleNamespace(heads=unclear))
    assert "for the other 11 no difference is shown. The ten largest differences:" in lead


def test_all_own_answers_are_not_called_wrong_ones(study):
    dataset = study[0]
    shown = behaviour.ladder_table(B.balanced(dataset), B.label_mass(dataset))
    n = int(np.isfinite(dataset["label_mass"].sel(rung="own").values).sum())
    own = next(row for row in shown.rows if row.label == "its own, when wrong")
    assert own.cells[-1].small.endswith(f"n\u00a0=\u00a0{n}") and own.cells[0].text != str(n)
    mass = pd.DataFrame({"rung": ["own", "gold"], "note": ["Rarely said.", ""]})
    assert behaviour.label_notes(mass) == ["its own answer: Rarely said."]


def test_a_figure_and_its_table_show_the_same_intervals(study):
    controls = B.controls(study[0])
    figure = dots.controls(behaviour.controls_data(controls))
    shown = behaviour.controls_table(controls)
    of_figure = [[dot.small for dot in line.dots] for line in figure.lines]
    assert of_figure == [[row.cells[1].small, row.cells[2].small] for row in shown.rows]
    cell = {"value": -0.26, "low": -0.474, "high": -0.0046, "n": 24}
    scale = dots.Scale("shift", "dim", -1, 1, ())
    line = dots.dot_figure("", [scale], [("", "", 24, [cell])]).lines[0]
    assert line.dots[0].small == "[\u22120.474, \u22120.005]"
    none = dots.dot_figure("", [scale], [("", "", 3, [cell | {"low": -0.26, "high": -0.26}])])
    assert (none.lines[0].dots[0].small, none.lines[0].dots[0].low) == ("", "")


def test_an_interval_stays_in_one_line(html):
    inside = re.findall(r'<td class="num">[^<]*<small>(\[[^<]*)</small>', html)
    assert inside and not any(", " in text for text in inside)


def test_our_front_end_stays_small():
    """What a notebook is sent; a page adds its own chrome around it."""
    assert len((module() + widget_stylesheet()).encode()) < 60_000


def test_no_text_becomes_markup_in_our_script():
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", module())


def test_24_examples_of_600_tokens_fit_into_ten_megabytes(long_prompts, html):
    reader = reader_payload(long_prompts(n=24, tokens=600, layers=30, heads=9))
    assert reader["held"] == 24 == sum(e["roles"] is not None for e in reader["examples"])
    assert len(script_json(reader)) + len(html) < 10 * MEGABYTE


def test_many_long_examples_are_thinned_out_evenly(long_prompts):
    dataset = long_prompts(n=160, tokens=3000, layers=2, heads=2)
    reader = reader_payload(dataset, max_bytes=MEGABYTE)
    held = [e for e in reader["examples"] if e["roles"]]
    assert 1 < len(held) < 160 and reader["held"] == len(held)
    assert len(reader["examples"]) == reader["of"] == 160
    assert len(script_json(reader)) < 1.1 * MEGABYTE
    assert {e["family"] for e in held} == set(dataset["family"].values)


def test_the_page_says_when_the_reader_does_not_hold_all(study):
    dataset, provenance = study
    words = words_of(render_report(dataset, provenance, max_examples=5))
    assert "All 12 examples are listed" in words
    assert "the texts of 5 are here, taken in turn from every kind of question" in words


@pytest.fixture(scope="module")
def long_prompts():
    """A study whose prompts are stretched to many tokens with spread-out attention."""

    def make(n, tokens, layers, heads):
        dataset, _ = synthetic_study(n=n, layers=layers, heads=heads)
        rng = np.random.default_rng(1)
        shape = (n, 2, layers, heads, tokens)
        strong = rng.random(shape, dtype=np.float32) < 60 / tokens
        values = np.where(strong, rng.integers(1, 9, shape, dtype=np.uint8), 0).astype(np.uint8)
        texts = np.empty((n, 2), dtype=object)
        for i, r in np.ndindex(n, 2):
            texts[i, r] = json.dumps([f" word{k % 997}" for k in range(tokens)])
        span = np.full((n, 2, tokens), list(dataset["span"].values).index("context"), np.int8)
        old = ["attention", "token_span", "token_mark", "tokens"]
        return dataset.drop_vars(old).assign(
            attention=(("example", "role2", "layer", "head", "token"), values),
            token_span=(("example", "role2", "token"), span),
            token_mark=(("example", "role2", "token"), np.zeros_like(span, dtype=np.uint8)),
            tokens=(("example", "role2"), texts),
        )

    return make


MEASURED = {
    "attention": ["mass", "norm_mass", "mark_mass", "norm_mark_mass", "span_tokens", "attention"],
    "patching": ["patch_clean", "patch_head", "patch_layer"],
    "verdicts": ["log_odds", "label_mass", "control_log_odds"],
    "attention rows": ["attention"],
    "closed book": ["closed_book_answer"],
}


@pytest.mark.parametrize("part", MEASURED)
def test_a_study_without_a_part_still_has_a_report(part, study):
    dataset, provenance = study
    less = dataset.isel(example=slice(3)).drop_vars(MEASURED[part])
    html = render_report(less, provenance)
    assert "What this cannot show" in html


def test_what_was_not_measured_is_left_out_and_the_examples_stay(study):
    dataset, provenance = study
    less = dataset.isel(example=slice(3)).copy(deep=True)
    for name in (*MEASURED["attention"][:4], *MEASURED["patching"], "control_log_odds"):
        less[name] = less[name] * np.nan
    less["tokens"][:] = ""
    html = render_report(less, provenance)
    for part in ("layers", "heads", "patching"):
        assert f'id="{part}"' not in html and f'href="#{part}"' not in html
        assert f'id="{part}"' in render_report(dataset.isel(example=slice(3)), provenance)
    told = words_of(html)
    assert "something is taken away" not in told and "attention heads looks" not in told
    assert "Choose one of 3 examples to see what was asked, answered and judged" in told
    assert len(data_of(html)["reader"]["examples"]) == 3


def test_a_study_that_read_only_some_examples_shows_those(study):
    dataset, provenance = study
    less = dataset.copy(deep=True)
    unread = less["example"].values[4:]
    for name in ("mass", "norm_mass", "mark_mass", "norm_mark_mass"):
        less[name].loc[{"example": unread}] = np.nan
    less["tokens"].loc[{"example": unread}] = ""
    html = render_report(less, provenance)
    listed = data_of(html)["reader"]["examples"]
    assert [e["id"] for e in listed] == list(less["example"].values)
    assert [e["roles"] is not None for e in listed] == [True] * 4 + [False] * 8
    assert [e["measured"] for e in listed] == [True] * 4 + [False] * 8
    assert "measured on 4 of 12 examples; the texts of all of these are here" in words_of(html)


def test_one_example_and_no_provenance_are_enough(study):
    dataset, _ = study
    assert "<h1>" in render_report(dataset.isel(example=[0]), {})


def test_a_study_without_examples_is_refused(study):
    dataset, provenance = study
    with pytest.raises(LabError, match="holds no example"):
        render_report(dataset.isel(example=[]), provenance)


# --- writing ------------------------------------------------------------------------------------


def test_the_report_is_written_whole_and_leaves_nothing_beside_it(study, quick_page, tmp_path):
    path = write_report(*study, tmp_path / "report.html")
    assert path == tmp_path / "report.html"
    assert path.read_text(encoding="utf-8") == "<h1>page ?</h1>"
    assert os.listdir(tmp_path) == ["report.html"]


def test_an_old_report_survives_a_write_that_fails(study, quick_page, tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    target.write_text("old")

    def refuse(self, other):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", refuse)
    with pytest.raises(LabError, match="No space left"):
        write_report(*study, target)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_folder_that_is_not_there_is_a_clear_error(study, quick_page, tmp_path):
    with pytest.raises(LabError, match=r"cannot be written to .*nowhere"):
        write_report(*study, tmp_path / "nowhere" / "report.html")
