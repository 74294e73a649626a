"""The exported page in a real browser, without a network."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lab.views.report import write_report

pytestmark = pytest.mark.browser

ATTACK = (
    "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
    "<svg onload=window.hacked=1>{{7*7}}${window.hacked=1}\"'`\u2028\u2029&lt;b&gt;"
)
LONG = "x" * 10_000


@pytest.fixture(scope="module")
def hostile_report(study, tmp_path_factory):
    """Every text field of the study holds markup, and a token of 10,000 characters."""
    dataset, provenance = study
    dataset = dataset.isel(example=slice(6)).copy(deep=True)
    n = dataset.sizes["example"]
    for name in ("dataset", "family", "question", "gold", "answer", "closed_book_answer"):
        texts = [f"{ATTACK} {name} {LONG if i % 2 else i}" for i in range(n)]
        dataset[name] = ("example", np.array(texts, dtype=object))
    dataset = dataset.assign_coords(
        example=np.array([f"{ATTACK}{i}" for i in range(n)], dtype=object)
    )
    dataset["candidate"] = dataset["candidate"].where(False, f"{ATTACK}{LONG}")
    tokens = dataset["tokens"].values.copy()
    for i, r in np.ndindex(tokens.shape):
        old = json.loads(tokens[i, r])
        tokens[i, r] = json.dumps([ATTACK, LONG, "\ud800", *old[3:]])
    dataset["tokens"] = (("example", "role2"), tokens)
    attacked = _attacked(provenance)
    return write_report(dataset, attacked, tmp_path_factory.mktemp("hostile") / "report.html")


def _attacked(value):
    if isinstance(value, dict):
        return {key: _attacked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_attacked(item) for item in value]
    return f"{value}{ATTACK}{LONG}" if isinstance(value, str) else value


def count(page, selector: str) -> int:
    return page.locator(selector).count()


def overflow(page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def test_the_page_asks_for_nothing_and_complains_of_nothing(report, open_page):
    opened = open_page(report)
    assert opened.requests == [report.as_uri()]
    assert opened.complaints == []
    assert count(opened.page, "[data-view]") >= 7
    assert opened.page.evaluate(
        "[...document.querySelectorAll('[data-view]')].every((el) => el.childElementCount > 0)"
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_hostile_text_stays_text(hostile_report, open_page, width):
    opened = open_page(hostile_report, width)
    page = opened.page
    for _ in range(3):
        page.get_by_role("button", name="next ›").click()
    page.get_by_label("white space").check()
    page.locator(".r-generator .t").nth(1).hover()
    assert page.evaluate("window.hacked") is None
    assert count(page, "img") == 0
    assert count(page, "script") == 2
    assert opened.requests == [hostile_report.as_uri()]
    assert opened.complaints == []
    assert "window.hacked" in page.locator(".r-generator .t").first.inner_text()
    assert overflow(page) <= 0


@pytest.mark.parametrize("width", [390, 768, 1280, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_never_scrolls_sideways(report, open_page, width, scheme):
    opened = open_page(report, width, color_scheme=scheme)
    opened.page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    assert overflow(opened.page) <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_that_does_not_fit_says_so(report, open_page, scheme):
    page = open_page(report, 390, color_scheme=scheme).page
    page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    page.wait_for_timeout(150)
    tables = page.locator(".rl-scroll:has(caption)").evaluate_all(
        """(nodes) => nodes.map((node) => [node.scrollWidth > node.clientWidth + 1,
            getComputedStyle(node, "::before").content.includes("scrolls sideways"),
            getComputedStyle(node).backgroundImage.includes("gradient")])"""
    )
    assert any(hidden for hidden, *_ in tables) and any(not hidden for hidden, *_ in tables)
    assert all(said == hidden and shaded for hidden, said, shaded in tables)


def test_on_a_wide_screen_no_table_is_cut_off(report, open_page):
    page = open_page(report).page
    page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    page.wait_for_timeout(150)
    assert count(page, ".rl-wide") == 0


def test_the_model_and_the_judges_that_read_nothing_fit_beside_each_other_on_a_phone(
    report, open_page
):
    page = open_page(report, 390).page
    beyond = page.locator("#behaviour .rl-scroll").first.evaluate(
        """(node) => [...node.querySelectorAll("tr:not(.group)")].flatMap((row) =>
            [...row.children].slice(0, 5).map((cell) => {
              const words = document.createRange();
              words.selectNodeContents(cell);
              return words.getBoundingClientRect().right - node.getBoundingClientRect().right;
            })).reduce((most, x) => Math.max(most, x))"""
    )
    assert beyond <= 0


def put_before(page, selector: str) -> str:
    """The text that the style puts before the first such element; empty where there is none."""
    return page.locator(selector).first.evaluate(
        """(node) => {
          const content = getComputedStyle(node, "::before").content;
          return content === "none" ? "" : content;
        }"""
    )


def test_paper_shows_all_columns_and_what_is_what(report, open_page):
    page = open_page(report, 680).page
    before = count(page, "details[open]")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    lost = page.locator(".rl-scroll").evaluate_all(
        "(nodes) => nodes.filter((n) => n.scrollWidth > n.clientWidth + 1).map((n) => n.ariaLabel)"
    )
    assert lost == []
    assert page.get_by_text("By kind of question").first.is_visible()
    # What the menu says on the screen.
    assert "from answering into judging" in put_before(page, "[data-view=patching] > p")
    heads = page.locator(".rl-spanbar + p").all_inner_texts()
    layer, head = chosen(page)
    assert all(text.startswith(f"Layer {layer}, head {head}, attention: ") for text in heads)
    page.emulate_media(media="screen")
    assert put_before(page, "[data-view=patching] > p") == ""
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert count(page, "details[open]") == before < count(page, "details")


def test_a_token_can_be_tapped(report, open_page):
    page = open_page(report, 390, has_touch=True, is_mobile=True).page
    page.locator(".r-generator .t").nth(20).tap()
    assert "token 20 of" in page.locator("[data-view=reader] > .rl-readout").inner_text()
    assert not page.locator(".rl-tip").is_visible()


@pytest.mark.parametrize("place", [".rl-prompt", ".rl-examples", ".rl-map", ".rl-layers"])
def test_keys_of_the_browser_stay_its_own(report, open_page, place):
    page = open_page(report).page
    taken = page.locator(place).first.evaluate(
        """(node) => ["altKey", "ctrlKey", "metaKey", ""].map((held) =>
            ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"].some((key) =>
              !node.dispatchEvent(new KeyboardEvent("keydown",
                { key, [held]: true, bubbles: true, cancelable: true }))))"""
    )
    assert taken == [False, False, False, True]


def test_text_from_right_to_left_is_shown_from_right_to_left(study, open_page, tmp_path):
    dataset, provenance = study
    dataset = dataset.isel(example=slice(2)).copy(deep=True)
    words = "من بنى ميناء المدينة عام 1874 (مع أخيه)"
    for name in ("question", "gold", "answer"):
        dataset[name] = ("example", np.array([words] * 2, dtype=object))
    tokens = np.empty((2, 2), dtype=object)
    for i, r in np.ndindex(2, 2):
        tokens[i, r] = json.dumps([" عام"] * len(json.loads(dataset["tokens"].values[i, r])))
    dataset["tokens"] = (("example", "role2"), tokens)
    page = open_page(write_report(dataset, provenance, tmp_path / "rtl.html")).page
    for place in (".rl-text", ".rl-question", ".rl-q", ".rl-facts b", ".rl-tops bdi"):
        at = page.locator(place).first
        assert at.evaluate("(node) => getComputedStyle(node).direction") == "rtl", place


def test_the_picker_says_what_its_columns_say(report, open_page):
    page = open_page(report).page
    page.get_by_text("What the columns say").click()
    notes = page.locator(".rl-picker details").inner_text()
    for head in page.locator(".rl-head button").all_inner_texts():
        assert f"{head}: " in notes


def highlights(page, role: str) -> list[str]:
    return page.evaluate(
        "(role) => [...document.querySelectorAll(`.r-${role} .t`)].map((t) => t.style.background)",
        role,
    )


def chosen(page) -> list[str]:
    return page.locator(".rl-selects select").evaluate_all(
        "(menus) => menus.map((menu) => menu.value)"
    )


def test_clicking_a_head_changes_both_texts(report, open_page):
    page = open_page(report).page
    before = [highlights(page, role) for role in ("generator", "evaluator")]
    picture = page.locator(".rl-map-difference .rl-map svg")
    box = picture.bounding_box()
    start = chosen(page)
    # The cell of layer 0, head 0: the lowest on the left, right of the layer numbers.
    wanted = [0, 0] if start != ["0", "0"] else [0, 1]
    cell_width = (box["width"] - 38) / 4
    picture.click(position={"x": 36 + (wanted[1] + 0.5) * cell_width, "y": 5 * 15 - 7})
    after = [highlights(page, role) for role in ("generator", "evaluator")]
    assert chosen(page) == [str(x) for x in wanted]
    assert before[0] != after[0] and before[1] != after[1]
    assert (
        f"Layer {wanted[0]}, head {wanted[1]}"
        in page.locator("[data-view=maps] .rl-readout").inner_text()
    )


def test_arrow_keys_walk_the_map_with_layers_upwards(report, open_page):
    page = open_page(report).page
    page.locator(".rl-selects select").first.select_option("1")
    page.locator(".rl-selects select").nth(1).select_option("1")
    page.locator(".rl-map-generator .rl-map").focus()
    for key in ("ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    assert chosen(page) == ["2", "2"]
    for key in ("ArrowDown",) * 4 + ("ArrowLeft",) * 4:
        page.keyboard.press(key)
    assert chosen(page) == ["0", "0"]


def test_a_head_in_a_table_is_a_button_that_chooses_it(report, open_page):
    page = open_page(report).page
    button = page.locator("#heads button[data-head]").nth(3)
    button.click()
    layer, head = button.get_attribute("data-head").split(".")
    assert chosen(page) == [layer, head]
    assert button.get_attribute("aria-pressed") == "true"


def test_the_reader_agrees_with_the_stored_attention(study, report, open_page):
    dataset, _ = study
    page = open_page(report).page
    page.locator(".rl-selects select").first.select_option("3")
    page.locator(".rl-selects select").nth(1).select_option("2")
    row = dataset["attention"].isel(example=0, layer=3, head=2).sel(role2="evaluator").values
    index = int(np.argmax(row[1:])) + 1
    page.locator(f".r-evaluator .t[data-i='{index}']").hover()
    said = page.locator("[data-view=reader] > .rl-readout").inner_text()
    percent = 100 * int(row[index]) / 255
    shown = f"{percent:.0f}" if percent >= 9.95 else f"{percent:.1f}"
    assert f"token {index} of" in said
    assert f"{shown}\u00a0% of the attention" in said


def test_tokens_can_be_read_with_the_keyboard(report, open_page):
    page = open_page(report).page
    page.locator(".r-generator").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "token 1 of" in page.locator("[data-view=reader] > .rl-readout").inner_text()
    assert count(page, ".t.on") >= 1


def test_the_measure_is_one_choice_for_the_whole_page(report, open_page):
    page = open_page(report).page
    page.locator("#layers .rl-choice button").nth(2).click()
    pressed = page.locator("#heads .rl-choice button[aria-pressed=true]").inner_text()
    assert pressed == "per token"
    assert "even share" in page.locator("[data-view=maps] .rl-readout").inner_text()


def test_contrast_and_direction_change_the_patching_figure(report, open_page):
    page = open_page(report).page
    figure = page.locator("[data-view=patching]")
    before = figure.locator("svg").first.get_attribute("aria-label")
    figure.get_by_label("Put activations").select_option("passage/b_into_a")
    after = figure.locator("svg").first.get_attribute("aria-label")
    assert before != after and "altered" in after


def test_every_figure_says_what_it_shows(report, open_page):
    page = open_page(report).page
    labels = page.locator("[role=img]").evaluate_all(
        "(nodes) => nodes.map((node) => node.getAttribute('aria-label') || '')"
    )
    assert labels and all(len(label) > 10 for label in labels)


def test_the_theme_button_wins_over_the_system(report, open_page):
    page = open_page(report, color_scheme="light").page
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.locator("#theme").click()
    assert page.evaluate(ground) != before
    page.locator("#theme").click()
    assert page.evaluate(ground) == before


def test_without_scripts_the_finding_and_the_tables_stand(report, open_page):
    page = open_page(report, java_script_enabled=False).page
    assert page.locator("h1").is_visible()
    assert "need JavaScript" in page.locator("noscript").inner_text()
    assert page.locator("#behaviour table").first.is_visible()
    assert page.locator("#behaviour .dots .dot").first.is_visible()


def test_the_same_module_draws_into_any_element(report, open_page):
    """As another page would use it: renderViews(el, data) on a page that has nothing else."""
    from lab.views.page import module

    page = open_page(report).page
    said = page.evaluate(
        """async (source) => {
            const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
            const lens = await import(url);
            const data = JSON.parse(document.getElementById("data").textContent);
            document.body.replaceChildren();
            const el = document.createElement("div");
            document.body.append(el);
            const store = lens.renderViews(el, data, { layer: 1, head: 2 }, ["maps", "reader"]);
            store.set({ layer: 2 });
            return el.querySelector(".rl-readout").textContent;
        }""",
        module(),
    )
    assert said.startswith("Layer 2, head 2")
