"""What a saved notebook shows of an explorer where no kernel runs: words, and the chosen texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr
from markupsafe import Markup

from lab.explorer import recall
from lab.explorer.frames import attention
from lab.explorer.selection import ROLES, Choices, Selection
from lab.views.format import decimal
from lab.views.textmap import text_map

_CUT = 400


def static_html(
    title: str,
    example: Mapping[str, Any],
    one: xr.Dataset | None,
    selection: Selection,
    choices: Choices,
) -> str:
    """The chosen example as HTML that needs no script: facts, and both prompts tinted.

    Args:
        title: of the study.
        example: the example as the picker lists it.
        one: its stored arrays; None where it was not read.
        selection: whose attention is shown.
        choices: what there is.
    """
    head = Markup("<p><b>Role Lens</b> · {} · {} examples</p>").format(title, len(choices.examples))
    body = Markup("<p><bdi>{}</bdi><br>{}</p>").format(_short(example["question"]), _facts(example))
    texts = Markup("")
    if one is not None:
        prompts = [recall.prompt(one, role) for role in ROLES]
        rows = [attention(one, role, selection, choices) for role in ROLES]
        words = {
            "head": f"head {selection.layer}.{selection.head}",
            "layer": f"the mean of layer {selection.layer}",
            "set": "the mean of the chosen heads",
            "all": "the mean of all heads",
        }[selection.scope]
        texts = Markup("<p>Attention of the decision, {}:</p>{}").format(
            words, Markup(text_map(*prompts, attention=rows).html)
        )
    foot = Markup(
        "<p><small>This is a still picture. Run the cell to explore, or make a page that needs no "
        "Python with <code>explorer.export(&quot;page.html&quot;)</code>.</small></p>"
    )
    return str(
        Markup('<div style="font:14px/1.5 system-ui,sans-serif">{}</div>').format(
            head + body + texts + foot
        )
    )


def _facts(example: Mapping[str, Any]) -> str:
    gold = _short(example["gold"]) or "none"
    facts = [f"gold answer: {gold}"]
    if example.get("right") is not None:
        facts.append(f"it answered: {_short(example['answer']) or 'nothing'}")
    own = next((r for r in example["rungs"] if r["name"] == "own"), None)
    if own is not None and own["log_odds"] is not None:
        verdict = "accept" if own["log_odds"] > 0 else "reject"
        facts.append(f"its verdict on that: {verdict} (log-odds {decimal(own['log_odds'])})")
    return " · ".join(facts)


def _short(text: str) -> str:
    return text if len(text) <= _CUT else f"{text[:_CUT]}…"
