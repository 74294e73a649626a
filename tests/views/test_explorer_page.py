"""The linked views as data and as text: what is listed, what is held, how the page is written."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pytest
import xarray as xr
from synthetic_study import synthetic_study

from lab.errors import LabError
from lab.views.example_list import example_measures, list_examples
from lab.views.explorer_payload import explorer_page, explorer_payload
from lab.views.packing import script_json, unpack_rows
from lab.views.page import SCRIPTS, STATIC, module, widget_stylesheet, write_page
from lab.views.reading_payload import example_payload, reader_payload, without_absent_spans


@pytest.fixture(scope="module")
def payload(study):
    return explorer_payload(study[0], max_examples=8)


# --- what the picker lists ----------------------------------------------------------------------


def test_every_example_is_listed_and_some_hold_their_tokens(study, payload):
    examples = payload["reader"]["examples"]
    assert [e["id"] for e in examples] == list(study[0]["example"].values)
    assert sum(e["roles"] is not None for e in examples) == payload["reader"]["held"] == 8
    assert all(e["measured"] for e in examples)


def test_measures_are_those_of_the_arrays(study):
    dataset = study[0]
    found = example_measures(dataset)
    own = dataset["log_odds"].sel(rung="own").values
    np.testing.assert_allclose(found["log_odds"], own)
    right = dataset["candidate_f1"].sel(rung="own").values >= 0.5
    mistaken = (own > 0) != right
    assert ((found["disagreement"] > 0.5) == mistaken).all()
    mass = dataset["mass"].sel(span="context").mean(["layer", "head"])
    ratio = mass.sel(role="generator").values / mass.sel(role="evaluator").values
    np.testing.assert_allclose(found["ratio"], ratio)
    same_type = dataset.isel(example=[0])
    gap = same_type["log_odds"].sel(rung="gold") - same_type["log_odds"].sel(rung="same_type")
    np.testing.assert_allclose(found["gap"][:1], gap.values)


def test_what_was_not_measured_is_not_called_wrong(study):
    dataset = study[0].drop_vars(["log_odds", "mass"]).copy(deep=True)
    dataset["f1"] = ("example", np.full(dataset.sizes["example"], np.nan))
    first = list_examples(dataset)[0]
    assert first["right"] is None and first["judged_right"] is None
    assert first["rungs"] == []
    assert set(first["measures"].values()) == {None}


def test_a_column_that_no_example_has_is_left_out(study):
    reader = reader_payload(study[0].drop_vars("log_odds"))
    assert [m["name"] for m in reader["measures"]] == ["ratio", "f1"]


def test_thousands_of_examples_are_listed_in_a_moment(study):
    """A study of 3,000 questions must not take minutes: the listing is made of whole arrays."""
    dataset = study[0].drop_vars(["attention", "token_span", "token_mark", "tokens"])
    many = xr.concat([dataset] * 250, "example")
    reader = reader_payload(many)
    assert (reader["of"], reader["held"]) == (3000, 0)
    assert len(script_json(reader)) / 3000 < 1200


# --- what an example holds ----------------------------------------------------------------------


def test_one_example_comes_with_a_vocabulary_of_its_own(study):
    dataset = without_absent_spans(study[0])
    one = example_payload(dataset, 5)
    kind = np.uint16 if one["width"] == 2 else np.uint32
    for role, side in one["roles"].items():
        expected = json.loads(dataset["tokens"].sel(role2=role).values[5])
        ids = np.frombuffer(base64.b64decode(side["tokens"]), kind)
        assert [one["vocab"][i] for i in ids] == expected
        rows = unpack_rows(base64.b64decode(side["rows"]), 20, len(expected))
        stored = dataset["attention"].sel(role2=role).isel(example=5).values
        assert (rows == stored[..., : len(expected)].reshape(20, -1)).all()


def test_quantities_are_named_for_python(payload):
    names = [q["name"] for q in payload["quantities"]]
    assert names[:3] == ["generator", "evaluator", "difference"]
    assert "role/a_into_b" in names and len(names) == 9


@pytest.mark.parametrize(
    "gone",
    [
        ["mass", "norm_mass", "mark_mass", "norm_mark_mass", "span_tokens", "attention"],
        ["patch_clean", "patch_head", "patch_layer"],
        ["attention"],
    ],
)
def test_parts_that_are_not_there_are_empty(study, gone):
    payload = explorer_payload(study[0].isel(example=slice(3)).drop_vars(gone))
    assert bool(payload["patching"]) == ("patch_head" not in gone)
    assert payload["reader"]["held"] == (0 if "attention" in gone else 3)
    assert "</html>" in explorer_page(payload, "A title")


def test_maps_carry_intervals_for_each_role_and_the_difference(payload):
    maps = payload["maps"]["raw"]
    for name in ("generator", "evaluator", "difference"):
        value, low, high = (np.array(maps[name][k]) for k in ("value", "low", "high"))
        assert (low <= value).all() and (value <= high).all()
    assert len(maps["difference"]["q"]) == 20
    assert "q" not in maps["generator"]  # there is nothing to test


# --- the page -----------------------------------------------------------------------------------


def test_the_page_states_the_error_of_its_data_and_asks_for_nothing(payload):
    html = explorer_page(payload, "Two roles", "Twelve questions.")
    assert "off by at most 0.2 percentage points" in html
    assert "the texts of 8 are here" in html
    assert re.findall(r"""(?:src|href)=["'](?!#|data:,)([^"']*)""", html) == []
    assert "@import" not in html and "url(" not in html


def test_a_hostile_title_stays_text(payload):
    html = explorer_page(payload, "</title><script>window.hacked=1</script>", "<img src=x>")
    assert "<img" not in html and html.count("<script") == 2


def test_a_page_in_a_folder_that_is_not_there_is_a_clear_error(tmp_path):
    with pytest.raises(LabError, match=r"cannot be written to .*nowhere"):
        write_page(tmp_path / "nowhere" / "page.html", "text")


def test_no_template_literal_stands_inside_another():
    """The minifier takes the inner one for code, and would change the spaces of its text."""
    for name in SCRIPTS:
        assert nested_literals((STATIC / name).read_text(encoding="utf-8")) == [], name


def test_the_scanner_for_nested_literals_finds_them():
    assert nested_literals("a = `x ${b ? `y` : 1}`;") == [1]
    assert nested_literals("a = `x ${f({ b: 1 })}`; // `${`\nb = '`' + `z`;") == []


def nested_literals(text: str) -> list[int]:
    """Lines with a template literal inside a template literal."""
    found, open_, line, i = [], [], 1, 0
    while i < len(text):
        c = text[i]
        line += c == "\n"
        if open_ and open_[-1] in "`\"'":
            if c == "\\":
                i += 1
            elif c == open_[-1]:
                open_.pop()
            elif open_[-1] == "`" and text.startswith("${", i):
                open_.append("{")
                i += 1
        elif text.startswith(("//", "/*"), i):
            end = text.index("\n" if text[i + 1] == "/" else "*/", i)
            line += text.count("\n", i, end)
            i = end - 1 if text[i + 1] == "/" else end + 1
        elif c in "`\"'{":
            if c == "`" and "`" in open_:
                found.append(line)
            open_.append(c)
        elif c == "}" and open_:
            open_.pop()
        i += 1
    return found


def test_a_notebook_is_sent_one_module_and_its_rules():
    assert "export default" in module()
    assert "export function render(" not in module()  # anywidget would take it for the default
    rules = widget_stylesheet()
    assert ":root" not in rules and "body{" not in rules  # the notebook's own are left alone


def test_one_example_alone_has_no_intervals():
    dataset, _ = synthetic_study(n=1, layers=2, heads=2)
    payload = explorer_payload(dataset)
    assert payload["reader"]["of"] == 1
    assert all(x is None for x in payload["maps"]["raw"]["difference"]["low"])
