"""The full pattern of one head: exact numbers, and nothing from the text becomes markup."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest

import lab
from lab import LabError

ATTACK = "Kestrel </script><script>window.top.hacked=1</script><img src=x onerror=hacked=1>"


def test_it_is_transformer_lens_pattern(made):
    drawn = lab.attention_pattern(made.lens, "The harbour of Kestrel.", 2, 1)
    ids = made.lens.tokenizer("The harbour of Kestrel.", add_special_tokens=False).input_ids
    cache = made.lens.cache(ids)
    np.testing.assert_allclose(
        drawn.attention, cache["blocks.2.attn.hook_pattern"][0, 1].numpy(), atol=1e-5
    )
    assert "".join(drawn.tokens) == "The harbour of Kestrel."


def test_a_prompt_is_drawn_with_its_own_tokens(made):
    prompter = lab.Prompter(made.lens.tokenizer, format="plain")
    short = lab.Example("s", "d", "f", "Who?", (lab.data.Passage("Ida."),), (("Ida",),))
    prompt = prompter.render(short, "generator")
    if len(prompt) > 200:
        pytest.skip("the tiny tokenizer makes too many tokens of the instruction")
    assert lab.attention_pattern(made.lens, prompt, 0, 0).tokens == prompt.tokens()


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("x" * 400, (0, 0), r"1 to 200 tokens, but this prompt has \d+: take a shorter one"),
        ("", (0, 0), "this prompt has 0"),
        ("short", (9, 0), r"no head 9\.0: layers are 0 to 3, heads 0 to 3"),
    ],
)
def test_what_cannot_be_drawn_is_refused(made, text, place, words):
    with pytest.raises(LabError, match=words):
        lab.attention_pattern(made.lens, text, *place)


def test_tokens_cannot_leave_their_script(made):
    drawn = lab.attention_pattern(made.lens, ATTACK, 0, 0)
    assert drawn.html.startswith('<iframe sandbox="allow-scripts"')
    page = unescape(re.search(r'srcdoc="([^"]*)"', drawn.html)[1])
    # circuitsvis's own script element is the only one, and the text is in it as JSON escapes.
    assert page.count("</script>") == 1
    data = page.rsplit("AttentionPattern", 1)[1]
    assert data.count("<") == 1 and "\\u003c" in data


def test_it_asks_no_network(made, monkeypatch):
    from urllib import request

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(request, "urlopen", refuse)
    drawn = lab.attention_pattern(made.lens, "Kestrel", 0, 0)
    assert "unpkg.com" not in drawn._repr_html_()


def test_the_explorer_draws_the_chosen_head(live):
    live.select(head=(3, 2))
    drawn = live.pattern("The harbour of Kestrel.")
    assert (drawn.layer, drawn.head) == (3, 2)
    live.select(example="q0", role="generator")
    frame = live.data("reader")
    assert list(live.pattern().tokens) == list(frame[frame["role"] == "generator"]["token"])


@pytest.mark.browser
def test_it_is_drawn_and_does_nothing_else(made, tmp_path):
    import shutil

    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium on the path")
    page_file = tmp_path / "pattern.html"
    html = lab.attention_pattern(made.lens, ATTACK, 0, 0).html
    page_file.write_text(f"<!doctype html><meta charset=utf-8>{html}", encoding="utf-8")
    with sync.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(offline=True)
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(page_file.as_uri())
        frame = page.frame_locator("iframe")
        frame.locator("canvas, svg, table").first.wait_for(timeout=60_000)
        assert frame.locator("img").count() == 0
        assert page.evaluate("window.hacked") is None
        assert [url for url in asked if not url.startswith(("file:", "about:", "data:"))] == []
        browser.close()
