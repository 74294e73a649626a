"""The linked views in a real browser, as a person uses them, on a page without a network."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from synthetic_study import synthetic_study

from lab.instruments.summaries import reading
from lab.views.explorer_payload import explorer_page, explorer_payload
from lab.views.packing import script_json
from lab.views.page import module, widget_stylesheet, write_page

pytestmark = pytest.mark.browser

ATTACK = "</script><img src=x onerror='window.hacked=1'>{{7*7}}"
LONG = "x" * 10_000


@pytest.fixture(scope="module")
def payload(study):
    return explorer_payload(study[0], max_examples=8)


@pytest.fixture(scope="module")
def explorer(payload, tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    return write_page(path, explorer_page(payload, "Two roles", state={"layer": 1, "head": 2}))


def reader_state(page) -> tuple[str, list[str]]:
    """Which scope is pressed, and the values of the layer and head menus."""
    pressed = page.locator("[data-view=reader] .rl-choice button[aria-pressed=true]").first
    menus = page.locator(".rl-selects select")
    return pressed.inner_text(), menus.evaluate_all("(all) => all.map((menu) => menu.value)")


def rows(page) -> list[str]:
    return page.locator(".rl-option .rl-q").all_inner_texts()


def question(page) -> str:
    return page.locator(".rl-question").inner_text()


# --- picker -------------------------------------------------------------------------------------


def test_the_page_opens_with_the_selection_it_was_given(explorer, open_page):
    opened = open_page(explorer)
    assert opened.requests == [explorer.as_uri()]
    assert opened.complaints == []
    assert reader_state(opened.page) == ("one head", ["1", "2"])


def test_search_and_filters_narrow_the_table_and_leave_the_reader_alone(explorer, open_page):
    page = open_page(explorer).page
    before = question(page)
    page.get_by_label("Search examples").fill("ferries")
    assert rows(page) == ["How many ferries cross every morning?"]
    assert question(page) == before
    assert "the chosen one is not among them" in page.locator("[data-view=picker]").inner_text()
    page.get_by_label("Search examples").press("Enter")
    assert "ferries" in question(page)
    page.get_by_label("Search examples").fill("")
    page.get_by_label("Outcome").select_option("true,true")
    outcomes = page.locator(".rl-option .generator, .rl-option .evaluator").all_inner_texts()
    assert outcomes and all("right" in text for text in outcomes)
    page.get_by_label("Dataset").select_option("squad2")
    page.get_by_label("Search examples").fill("no such question")
    assert "No example fits" in page.locator("[data-view=picker]").inner_text()


def test_a_column_head_sorts_down_then_up_then_not(explorer, payload, open_page):
    page = open_page(explorer).page
    column = page.get_by_role("grid").get_by_role("columnheader", name="log-odds")
    expected = sorted(e["measures"]["log_odds"] for e in payload["reader"]["examples"])
    places = [m["name"] for m in payload["reader"]["measures"]].index("log_odds")
    first = page.locator(".rl-option").first.locator(".num").nth(places)
    order = rows(page)
    column.get_by_role("button").click()
    assert column.get_attribute("aria-sort") == "descending"
    assert first.inner_text() == f"{expected[-1]:+.1f}".replace("-", "\u2212")
    column.get_by_role("button").click()
    assert column.get_attribute("aria-sort") == "ascending"
    assert first.inner_text() == f"{expected[0]:+.1f}".replace("-", "\u2212")
    column.get_by_role("button").click()
    assert column.get_attribute("aria-sort") == "none"
    assert rows(page) == order


def test_keys_choose_examples(explorer, payload, open_page):
    page = open_page(explorer).page
    questions = [e["question"] for e in payload["reader"]["examples"]]
    grid = page.get_by_role("grid", name="Examples")
    grid.focus()
    for key, place in (("Home", 0), ("ArrowDown", 1), ("PageDown", 9), ("End", 11), ("PageUp", 3)):
        page.keyboard.press(key)
        assert question(page) == questions[place], key
        active = grid.get_attribute("aria-activedescendant")
        assert page.locator(f"[id='{active}'] .rl-q").inner_text() == questions[place]


def test_an_example_that_the_page_does_not_hold_says_so(explorer, payload, open_page):
    page = open_page(explorer).page
    page.get_by_label("Texts").select_option("false")
    assert len(rows(page)) == 4
    page.locator(".rl-option").first.click()
    assert "does not hold its tokens" in page.locator("[data-view=reader]").inner_text()
    assert page.locator(".rl-prompt:visible").count() == 0
    assert page.get_by_role("button", name="Read it now").count() == 0
    page.get_by_label("Texts").select_option("true")
    page.locator(".rl-option").first.click()
    assert page.locator(".rl-prompt:visible").count() == 2


def test_five_thousand_examples_stay_fluid(payload, open_page, tmp_path):
    many = copy.copy(payload)
    base = payload["reader"]["examples"]
    listed = [
        {**base[i % 12], "id": f"e{i}", "question": f"Question {i}: {base[i % 12]['question']}"}
        for i in range(5000)
    ]
    for example in listed[8:]:
        example["roles"] = None
    many["reader"] = {**payload["reader"], "examples": listed, "of": 5000}
    page = open_page(write_page(tmp_path / "many.html", explorer_page(many, "Many"))).page
    assert len(rows(page)) < 40
    spent = page.evaluate(
        """() => {
            const box = document.querySelector("[aria-label='Search examples']");
            const times = ["4", "49", "499", "4999", "499", "49", ""].map((text) => {
                box.value = text;
                const start = performance.now();
                box.dispatchEvent(new Event("input"));
                return performance.now() - start;
            });
            const sort = document.querySelector(".rl-head button");
            const start = performance.now();
            sort.click();
            return [...times, performance.now() - start];
        }"""
    )
    assert np.median(spent) < 50, spent  # the median: tests share their machine with others
    page.get_by_label("Search examples").fill("4999:")
    assert rows(page) == [listed[4999]["question"]]
    page.get_by_label("Search examples").fill("")
    page.locator(".rl-head button").first.click()
    page.locator(".rl-head button").first.click()
    page.get_by_role("grid", name="Examples").focus()
    page.keyboard.press("End")
    assert question(page) == listed[4999]["question"]
    assert listed[4999]["question"] in rows(page)


# --- head maps, sets, layers --------------------------------------------------------------------


def cell(page, layer: int, head: int) -> tuple[float, float]:
    """Where a head of the single map is in the window: 5 layers of 15 pixels, 4 heads."""
    page.locator("[data-view=heads] .rl-map").scroll_into_view_if_needed()
    box = page.locator("[data-view=heads] .rl-map svg").bounding_box()
    step = (box["width"] - 38) / 4
    return box["x"] + 36 + (head + 0.5) * step, box["y"] + (4 - layer + 0.5) * 15


def drag(page, start: tuple[int, int], end: tuple[int, int]) -> None:
    page.mouse.move(*cell(page, *start))
    page.mouse.down()
    page.mouse.move(*cell(page, *end), steps=5)
    page.mouse.up()


def test_dragging_over_the_map_chooses_a_set_that_the_texts_show(explorer, study, open_page):
    page = open_page(explorer).page
    drag(page, (1, 1), (2, 2))
    assert reader_state(page)[0] == "set of heads"
    assert "4 heads in the set: 1.1, 1.2, 2.1, 2.2" in page.locator(".rl-setbar").inner_text()
    assert page.locator("[data-view=heads] .rl-set rect").count() == 4
    stored = study[0]["attention"].sel(role2="evaluator").isel(example=0).values / 255
    mean = np.mean([stored[1, 1], stored[1, 2], stored[2, 1], stored[2, 2]], axis=0)
    index = int(np.argmax(mean[1:])) + 1
    page.locator(f".r-evaluator .t[data-i='{index}']").hover()
    percent = 100 * mean[index]
    shown = f"{percent:.0f}" if percent >= 9.95 else f"{percent:.1f}"
    assert (
        f"{shown}\u00a0% of the attention"
        in page.locator("[data-view=reader] > .rl-readout").inner_text()
    )


def test_shift_and_keys_change_the_set(explorer, open_page):
    page = open_page(explorer).page
    said = page.locator(".rl-setbar")
    page.locator("[data-view=heads] .rl-map").focus()
    page.keyboard.press("s")
    assert "1 head in the set: 1.2" in said.inner_text()
    page.keyboard.press("Shift+ArrowUp")
    page.keyboard.press("Shift+ArrowRight")
    assert "4 heads in the set: 1.2, 1.3, 2.2, 2.3" in said.inner_text()
    page.keyboard.down("Shift")
    page.mouse.click(*cell(page, 0, 0))
    page.mouse.click(*cell(page, 1, 2))
    page.keyboard.up("Shift")
    assert "4 heads in the set: 1.3, 2.2, 2.3, 0.0" in said.inner_text()
    page.get_by_role("button", name="take 1.2 out").or_(
        page.get_by_role("button", name="add 1.2 to a set")
    ).click()
    assert "5 heads" in said.inner_text()
    page.locator("[data-view=heads] .rl-map").focus()
    page.keyboard.press("Escape")
    assert "drag over a map" in said.inner_text()
    assert reader_state(page)[0] == "one head"


def test_the_map_shows_what_is_asked_for_with_its_ten_largest(explorer, payload, open_page):
    page = open_page(explorer).page
    view = page.locator("[data-view=heads]")
    for name in ("generator", "difference", "role/a_into_b"):
        view.get_by_label("Show", exact=True).select_option(name)
        map_ = payload["maps"]["raw"].get(name) or next(
            p["head"] for p in payload["patching"] if p["key"] == name
        )
        top = sorted(range(20), key=lambda i: -abs(map_["value"][i]))[:10]
        buttons = view.locator(".rl-ten button").all_inner_texts()
        assert buttons == [f"{i // 4}.{i % 4}" for i in top]
        cells = view.locator(".rl-ten tbody tr").first.locator("td").all_inner_texts()
        assert len(cells) == (3 if "q" in map_ else 2) and "[" in cells[1]
    assert "R = \u2212" in view.locator(".rl-scale").inner_text()
    view.locator(".rl-ten button").nth(4).click()
    assert reader_state(page)[1] == buttons[4].split(".")
    assert view.locator(".rl-ten button").nth(4).get_attribute("aria-pressed") == "true"


def test_layers_of_one_example_are_its_own_and_choose_a_layer(explorer, study, open_page):
    page = open_page(explorer).page
    flow = page.locator("[data-view=flow]")
    mass = study[0]["mass"].isel(example=0).sel(role="generator", span="context").mean("head")
    label = flow.locator("svg").first.get_attribute("aria-label")
    assert f"most in layer {int(mass.argmax())}" in label
    flow.locator(".rl-layers").first.focus()
    page.keyboard.press("ArrowUp")
    assert reader_state(page) == ("layer mean", ["2", "2"])
    page.get_by_role("button", name="next ›").click()
    assert flow.locator("svg").first.get_attribute("aria-label") != label


@pytest.mark.parametrize("norm", ["raw", "sink_excluded", "enrichment", "norm_weighted"])
def test_layers_of_one_example_agree_with_the_lab_in_every_measure(
    norm, explorer, payload, study, open_page
):
    page = open_page(explorer).page
    names = [n["name"] for n in payload["norms"]]
    page.locator("[data-view=norm] button").nth(names.index(norm)).click()
    one = study[0].isel(example=[0]).drop_vars(["attention", "token_span", "token_mark", "tokens"])
    by_layer = reading.regions(one, norm).sel(role="evaluator", region="context").mean("head")
    label = page.locator("[data-view=flow] svg").nth(1).get_attribute("aria-label")
    said = float(label.split(": ")[1].split("\u00a0")[0])
    mean = float(by_layer.mean())
    assert said == pytest.approx(mean if norm == "enrichment" else 100 * mean, rel=0.03, abs=0.6)


# --- normalisations -----------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["sink_excluded", "enrichment", "norm_weighted"])
def test_the_texts_and_bars_follow_the_measure(norm, explorer, payload, study, open_page):
    page = open_page(explorer).page
    names = [n["name"] for n in payload["norms"]]
    page.locator("[data-view=norm] button").nth(names.index(norm)).click()
    row = study[0]["attention"].isel(example=0, layer=1, head=2).sel(role2="generator").values / 255
    mass = study[0]["mass"].isel(example=0, layer=1, head=2).sel(role="generator")
    weighted = study[0]["norm_mass"].isel(example=0, layer=1, head=2).sel(role="generator")
    n = int(study[0]["span_tokens"].isel(example=0).sel(role="generator").sum())
    rest = float(mass.sum() - mass.sel(span="sink"))
    index = int(np.argmax(row[1:])) + 1
    tops = page.locator(".rl-tops button").first.inner_text().split()
    shown = float(tops[-2].replace("\u00a0", ""))
    tokens = float(study[0]["span_tokens"].isel(example=0).sel(role="generator", span="context"))
    expected = {
        "sink_excluded": (100 * row[index] / rest, 100 * float(mass.sel(span="context")) / rest),
        "enrichment": (row[index] * n, float(mass.sel(span="context")) * n / tokens),
        "norm_weighted": (
            100 * row[index],
            100 * float(weighted.sel(span="context") / weighted.sum()),
        ),
    }[norm]
    assert shown == pytest.approx(expected[0], abs=0.51 if expected[0] >= 9.95 else 0.06)
    label = page.locator("[data-view=reader] .rl-spanbar").first.get_attribute("aria-label")
    said = float(label.split("passage ")[1].split("\u00a0")[0])
    assert said == pytest.approx(expected[1], rel=0.03, abs=0.6)
    assert "Colour:" in page.locator("[data-view=reader] > .rl-legend").inner_text()


def test_pointing_at_a_token_tells_its_text_id_mass_and_enrichment(study, open_page, tmp_path):
    dataset = study[0].isel(example=[0]).copy()
    stored = dataset["tokens"].values
    pairs = [[[text, 7000 + k] for k, text in enumerate(json.loads(s))] for s in stored[0]]
    texts = np.array([[json.dumps(role) for role in pairs]], dtype=object)
    dataset["tokens"] = (("example", "role2"), texts)
    html = explorer_page(explorer_payload(dataset), "Ids", state={"layer": 1, "head": 2})
    page = open_page(write_page(tmp_path / "ids.html", html)).page
    row = dataset["attention"].isel(example=0, layer=1, head=2).sel(role2="evaluator").values / 255
    index, n = int(np.argmax(row[1:])) + 1, len(pairs[1])
    page.locator(f".r-evaluator .t[data-i='{index}']").hover()
    text = pairs[1][index][0].replace("\n", "\u21b5")
    said = page.locator("[data-view=reader] > .rl-readout").inner_text()
    assert f"\u201c{text}\u201d (token {index} of {n}, id {7000 + index}, " in said
    assert "\u00a0% of the attention" in said and "\u00a0\u00d7 its even share" in said
    assert page.locator(".rl-tip").inner_text() in said


# --- as a notebook draws them -------------------------------------------------------------------

HOST = """<!doctype html><html lang="en"><meta charset="utf-8"><title>host</title>
<style>%s</style><body><div id="one"></div><div id="two"></div>
<script type="application/json" id="data">%s</script>
<script>
class Model {
  constructor(values) { Object.assign(this, { values, calls: {}, sent: [] }); }
  get(name) { return this.values[name]; }
  set(name, value) { this.values[name] = value; this.fire("change:" + name); }
  save_changes() {}
  send(message) { this.sent.push(structuredClone(message)); }
  on(name, call) { (this.calls[name] = this.calls[name] || []).push(call); }
  off(name, call) { this.calls[name] = (this.calls[name] || []).filter((one) => one !== call); }
  fire(name, ...more) { for (const call of [...(this.calls[name] || [])]) call(...more); }
  listeners() { return Object.values(this.calls).flat().length; }
}
const data = JSON.parse(document.getElementById("data").textContent);
async function show(id, values) {
  const model = new Model({ data, state: {}, ...values });
  window[id] = model;
  model.leave = await lens.default.render({ model, el: document.getElementById(id) });
}
</script></body></html>"""

BENCH = {
    "live": True,
    "options": {
        "direction": [
            ["g2e", "from answering into judging"],
            ["e2g", "from judging into answering"],
        ],
        "what": [["heads", "every head"], ["layers", "every layer"], ["set", "the chosen set"]],
    },
    "running": False,
    "done": 0,
    "total": 0,
    "step": "",
    "error": "",
    "result": None,
}


@pytest.fixture
def host(payload, open_page, tmp_path):
    """A page that stands for a notebook: no views yet, the module loaded, a stand-in for models."""
    html = HOST % (widget_stylesheet(), script_json(payload))
    opened = open_page(write_page(tmp_path / "host.html", html))
    opened.page.evaluate(
        """async (source) => {
            const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
            window.lens = await import(url);
        }""",
        module(),
    )
    yield opened
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith("blob:")] == opened.requests[:1]


def show(page, name: str = "one", **values) -> None:
    page.evaluate("([name, values]) => show(name, values)", [name, values])


def in_model(page, expression: str, name: str = "one"):
    return page.evaluate(f"() => window.{name}.{expression}")


def test_a_selection_reaches_python_and_comes_back(host):
    page = host.page
    show(page, state={"layer": 3, "head": 1, "unknown": 5}, views=["heads", "reader", "nonsense"])
    assert reader_state(page)[1] == ["3", "1"]
    page.locator(".rl-ten button").nth(2).click()
    layer, head = page.locator(".rl-ten button").nth(2).inner_text().split(".")
    state = in_model(page, "get('state')")
    assert (state["layer"], state["head"], state["scope"]) == (int(layer), int(head), "head")
    assert set(state) == {
        "example", "layer", "head", "heads", "scope", "role", "norm", "quantity",
    }  # fmt: skip
    page.evaluate("one.set('state', { heads: [[0, 1], [4, 3]], scope: 'set', norm: 'enrichment' })")
    assert reader_state(page)[0] == "set of heads"
    assert "0.1, 4.3" in page.locator(".rl-setbar").inner_text()


def test_two_widgets_on_one_page_do_not_disturb_each_other(host):
    page = host.page
    show(page, "one", views=["picker", "reader"])
    show(page, "two", views=["picker", "reader"])
    page.locator("#two").get_by_role("button", name="next ›").click()
    assert in_model(page, "get('state').example", "two") == 1
    assert page.locator("#one .rl-question").inner_text() != question_in(page, "#two")
    ids = page.locator("[id]").evaluate_all("(all) => all.map((node) => node.id)")
    assert len(ids) == len(set(ids))


def question_in(page, where: str) -> str:
    return page.locator(f"{where} .rl-question").inner_text()


@pytest.mark.parametrize("dark", ["jpThemeLight = 'false'", "vscodeThemeKind = 'vscode-dark'"])
def test_a_widget_takes_the_theme_and_keeps_the_keys_of_its_notebook(host, dark):
    page = host.page
    show(page, views=["heads"])
    ground = "getComputedStyle(document.getElementById('one')).backgroundColor"
    before = page.evaluate(ground)
    page.evaluate(f"document.body.dataset.{dark}")
    assert page.evaluate(ground) != before
    # JupyterLab would take the arrow keys to move between cells.
    assert page.locator("#one").get_attribute("data-lm-suppress-shortcuts") == "true"


def test_a_widget_can_be_drawn_again_and_let_go(host):
    page = host.page
    show(page, views=["heads", "reader"], bench=BENCH)
    page.evaluate("one.set('views', ['reader'])")
    assert page.locator("#one [data-view]").count() == 1
    before = in_model(page, "listeners()")
    page.evaluate("one.set('data', structuredClone(data))")
    assert in_model(page, "listeners()") == before
    page.evaluate("one.leave()")
    assert in_model(page, "listeners()") == 0
    assert page.locator("#one").inner_text() == ""
    show(page, views=["reader"])
    assert page.locator("#one .rl-prompt").count() == 2


def test_an_example_that_was_not_read_is_read_on_request(host, payload):
    page = host.page
    unread = [i for i, e in enumerate(payload["reader"]["examples"]) if e["roles"] is None]
    show(page, views=["picker", "flow", "reader"], bench=BENCH, state={"example": unread[0]})
    page.get_by_role("button", name="Read it now").click()
    assert in_model(page, "sent.at(-1)") == {"kind": "read", "example": unread[0]}
    assert page.get_by_role("button", name="Read it now").is_disabled()
    page.evaluate("(i) => one.fire('msg:custom', {kind: 'read', example: i, error: 'Too long.'})",
                  unread[0])  # fmt: skip
    assert "Too long." in page.locator("[data-view=reader]").inner_text()
    held = next(i for i, e in enumerate(payload["reader"]["examples"]) if e["roles"])
    message = {
        "kind": "read",
        "example": unread[0],
        "roles": payload["reader"]["examples"][held]["roles"],
        "vocab": [f"{text}!" for text in payload["reader"]["vocab"]],
        "width": payload["reader"]["width"],
    }
    page.evaluate("(message) => one.fire('msg:custom', message)", message)
    assert page.locator(".r-generator .t").first.inner_text() == "<s>!"
    assert page.locator("[data-view=flow] svg").count() >= 2


def test_what_is_set_in_a_view_outlasts_new_data(host):
    page = host.page
    show(page, views=["picker", "reader", "bench"], bench=BENCH)
    page.get_by_label("Search examples").fill("Ferries")
    page.get_by_label("Dataset").select_option(index=1)
    dataset = page.get_by_label("Dataset").input_value()
    column = page.get_by_role("grid").get_by_role("columnheader", name="log-odds")
    column.get_by_role("button").click()
    page.get_by_label("white space").check()
    page.get_by_label("Put activations").select_option("e2g")
    before = rows(page)
    page.evaluate("one.set('data', structuredClone(data))")
    assert page.get_by_label("Search examples").input_value() == "Ferries"
    assert page.get_by_label("Dataset").input_value() == dataset
    assert column.get_attribute("aria-sort") == "descending"
    assert rows(page) == before
    assert page.get_by_label("white space").is_checked()
    assert page.get_by_label("Put activations").input_value() == "e2g"
    page.get_by_label("Search examples").fill("")
    assert len(rows(page)) > len(before), "the filter is that of the field"


# --- patch bench --------------------------------------------------------------------------------


def run_of(text: str) -> dict:
    top = [["Yes", 0.61], [ATTACK, 0.3], [" No", 0.09]]
    return {"text": text, "top": top, "verdict": {"log_odds": 0.7, "p_accept": 0.67}}


def result(kind: str, **more) -> dict:
    return {
        "title": "Every head, from answering into judging",
        "request": {},
        "clean": {"source": 2.5, "target": -1.25},
        "words": "Head 3.1 moves the verdict most.",
        "kind": kind,
        "map": None,
        "lines": None,
        "before": run_of("No, it is not."),
        "after": None,
        "seconds": 1.26,
        "note": "",
        **more,
    }


def test_there_is_no_bench_without_a_model(host, explorer, open_page):
    show(host.page, views=["reader", "bench"], bench={**BENCH, "live": False})
    assert host.page.locator("[data-view=bench]").count() == 0


def test_the_bench_asks_for_what_is_chosen(host):
    page = host.page
    show(page, views=["heads", "bench"], bench=BENCH, state={"layer": 2, "head": 3, "example": 1})
    bench = page.locator("[data-view=bench]")
    bench.get_by_label("Put activations").select_option("e2g")
    bench.get_by_role("button", name="the chosen set").click()
    assert "Patched: 2.3." in bench.inner_text()
    bench.get_by_role("button", name="Run the patch").focus()
    page.keyboard.press("Enter")
    request = {"direction": "e2g", "what": "set", "heads": [[2, 3]]}
    assert in_model(page, "sent") == [{"kind": "run", "request": request}]
    assert in_model(page, "get('state').example") == 1
    drag(page, (0, 0), (0, 1))
    bench.get_by_role("button", name="Run the patch").click()
    assert in_model(page, "sent.at(-1).request.heads") == [[0, 0], [0, 1]]


def test_progress_stop_and_errors_are_said_in_the_view(host):
    page = host.page
    show(page, views=["bench"], bench=BENCH)
    bench = page.locator("[data-view=bench]")
    assert bench.get_by_role("button", name="Stop").is_disabled()
    running = {**BENCH, "running": True, "done": 12, "total": 30, "step": "Patching layer 12"}
    page.evaluate("(state) => one.set('bench', state)", running)
    assert bench.get_by_role("status").inner_text() == "Patching layer 12, 12 of 30\u2026"
    assert bench.locator("progress").evaluate("(bar) => [bar.value, bar.max]") == [12, 30]
    assert bench.get_by_role("button", name="Run the patch").is_disabled()
    bench.get_by_role("button", name="Stop").click()
    assert in_model(page, "sent.at(-1)") == {"kind": "stop"}
    failed = {**BENCH, "error": f"The prompts are too long. {ATTACK}"}
    page.evaluate("(state) => one.set('bench', state)", failed)
    assert "The prompts are too long." in bench.get_by_role("alert").inner_text()
    assert page.evaluate("window.hacked") is None and page.locator("img").count() == 0
    assert not bench.locator("progress").is_visible()


def test_a_map_of_heads_is_drawn_and_chooses_heads(host):
    page = host.page
    grid = [[None if layer == 0 else layer * head / 20 for head in range(4)] for layer in range(5)]
    show(page, views=["reader", "bench"], bench={**BENCH, "result": result("heads", map=grid)})
    bench = page.locator("[data-view=bench]")
    assert "Head 3.1 moves the verdict most." in bench.inner_text()
    assert "source 2.50, target \u22121.25 logits" in bench.inner_text()
    assert "layer 4, head 3: R = 0.60" in bench.locator("svg").get_attribute("aria-label").replace(
        "Layer", "layer"
    )
    bench.locator(".rl-map").focus()
    page.keyboard.press("ArrowUp")
    assert bench.locator(".rl-map rect").count() > 20
    assert "accept (log-odds 0.70, accepts with probability 67\u00a0%)" in bench.inner_text()
    assert ATTACK.replace(" ", "\u00b7") in bench.inner_text()
    assert page.evaluate("window.hacked") is None and page.locator("img").count() == 0


def test_lines_over_layers_and_runs_before_and_after_are_drawn(host):
    page = host.page
    lines = [
        {"name": "residual", "values": [0, 0.1, None, 0.8, 1.0]},
        {"name": "MLP", "values": [0, 0, 0.1, -0.2, 0.1]},
    ]
    show(page, views=["bench"], bench={**BENCH, "result": result("layers", lines=lines)})
    bench = page.locator("[data-view=bench]")
    assert "residual first carries half of the difference at layer 3" in bench.locator(
        "svg"
    ).get_attribute("aria-label")
    patched = result("set", after=run_of(LONG))
    page.evaluate("(state) => one.set('bench', state)", {**BENCH, "result": patched})
    titles = bench.locator("h4").all_inner_texts()
    assert titles == ["before", "after the patch"]
    assert "(10000 characters)" in bench.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_a_result_says_so_where_another_example_is_chosen(host, payload):
    page = host.page
    first = payload["reader"]["examples"][0]
    found = result("set", example=first["id"])
    show(page, views=["picker", "bench"], bench={**BENCH, "result": found}, state={"example": 0})
    bench = page.locator("[data-view=bench]")
    said = bench.get_by_text("This result is of another example:")
    assert not said.is_visible()
    page.get_by_role("button", name="next ›").click()
    assert said.is_visible() and f"another example: \u201c{first['question']}" in bench.inner_text()
    page.get_by_role("button", name="previous").click()
    assert not said.is_visible()
    # A patch that ends after one has gone on to another example.
    page.get_by_role("button", name="next ›").click()
    page.evaluate("(state) => one.set('bench', state)", {**BENCH, "result": None})
    assert not said.is_visible()
    page.evaluate("(state) => one.set('bench', state)", {**BENCH, "result": found})
    assert said.is_visible()


@pytest.mark.parametrize(
    "gone",
    [
        ["mass", "norm_mass", "mark_mass", "norm_mark_mass", "span_tokens", "attention"],
        ["patch_clean", "patch_head", "patch_layer"],
        ["attention"],
        ["log_odds", "f1"],
    ],
)
def test_views_of_what_was_not_measured_say_so_quietly(gone, study, open_page, tmp_path):
    payload = explorer_payload(study[0].isel(example=slice(3)).drop_vars(gone))
    opened = open_page(write_page(tmp_path / "less.html", explorer_page(payload, "Less")))
    assert opened.complaints == []
    said = opened.page.locator("main").inner_text()
    assert ("kept no attention on single tokens" in said) == ("attention" in gone)
    opened.page.get_by_role("button", name="next ›").click()
    assert opened.complaints == []


# --- hostile data, widths -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile_explorer(tmp_path_factory):
    dataset, _ = synthetic_study(n=6, layers=3, heads=2)
    n = dataset.sizes["example"]
    for name in ("dataset", "family", "question", "gold", "answer", "closed_book_answer"):
        texts = [f"{ATTACK} {name} {LONG if i % 2 else i}" for i in range(n)]
        dataset[name] = ("example", np.array(texts, dtype=object))
    tokens = dataset["tokens"].values.copy()
    for i, r in np.ndindex(tokens.shape):
        tokens[i, r] = json.dumps([ATTACK, LONG, *json.loads(tokens[i, r])[2:]])
    dataset["tokens"] = (("example", "role2"), tokens)
    path = tmp_path_factory.mktemp("hostile") / "explorer.html"
    return write_page(path, explorer_page(explorer_payload(dataset), ATTACK, LONG))


@pytest.mark.parametrize("width", [390, 1280])
def test_hostile_data_stays_text(hostile_explorer, open_page, width):
    opened = open_page(hostile_explorer, width)
    page = opened.page
    page.get_by_label("Search examples").fill("onerror")
    for _ in range(3):
        page.get_by_role("button", name="next ›").click()
    page.locator(".r-generator .t").nth(1).hover()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0 and page.locator("script").count() == 2
    assert opened.complaints == [] and opened.requests == [hostile_explorer.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("width", [390, 768, 1280, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_never_scrolls_sideways(explorer, open_page, width, scheme):
    page = open_page(explorer, width, color_scheme=scheme).page
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
