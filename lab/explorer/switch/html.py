"""What switching heads off changes, as HTML without any script. All text from data is escaped."""

from __future__ import annotations

from functools import cache

import rcssmin
from markupsafe import Markup

from lab.data.text import whole_words
from lab.explorer.switch.asking import ASKS, Decision
from lab.explorer.switch.board import PUTS, Said, Switched
from lab.views.format import count, decimal, percent, signed
from lab.views.page import STATIC, widget_stylesheet

COLOURS = ("more", "less")
"""CSS colours of the first and the second answer, as of log-odds above and below zero."""


@cache
def style() -> Markup:
    """The rules that the widget needs, in a style element."""
    own = rcssmin.cssmin((STATIC / "switches.css").read_text(encoding="utf-8"))
    return Markup("<style>{}</style>").format(Markup(widget_stylesheet() + own))


def asked(decision: Decision) -> Markup:
    """What the model reads: question, passage with its answer marked, and what it is told."""
    conflict = decision.conflict
    text = conflict.passage(decision.stated)
    there = conflict.answer(decision.stated)
    (start, end), *_ = whole_words(text, there, ignore_case=True)
    passage = Markup("{}<b>{}</b>{}").format(text[:start], text[start:end], text[end:])
    role = "generator" if decision.role == "generator" else "evaluator"
    told = Markup('As <span class="{}">{}</span>: {}. The true answer is “{}”, {}.').format(
        role,
        role,
        ASKS[decision.ask],
        conflict.memory,
        f"the altered passage says “{conflict.counter}”",
    )
    return Markup(
        '<div class="rl-sw"><p class="rl-question">{}</p><p class="rl-sw-text">{}</p>'
        '<p class="rl-note">{}</p></div>'
    ).format(conflict.question, passage, told)


def changed(result: Switched) -> Markup:
    """The answer before and after, and the shift beside random sets."""
    heads = result.selection.heads
    names = ", ".join(f"{layer}.{head}" for layer, head in heads[:24])
    more = f" and {len(heads) - 24} more" if len(heads) > 24 else ""
    panels = _said(result, result.before, "all heads on")
    if heads:
        put = PUTS[result.selection.put]
        title = f"{len(heads)} head{'s' * (len(heads) > 1)} off: {names}{more}; they put out {put}"
        panels += _said(result, result.after, title)
    return Markup(
        '<div class="rl-sw" data-view="switched"><p class="rl-readout">{}</p>'
        '<div class="rl-two" style="margin-top:16px">{}</div>{}</div>'
    ).format(result.words, panels, _band(result) if result.random.size else "")


def still(result: Switched | None) -> str:
    """What a saved notebook shows where no kernel runs."""
    body = Markup("<p>No heads were switched off here yet.</p>")
    if result is not None:
        body = asked(result.decision) + changed(result)
    foot = Markup(
        "<p><small>This is a still picture. Run the cell to switch heads on and off.</small></p>"
    )
    return str(Markup('{}<div class="rl rl-switches">{}{}</div>').format(style(), body, foot))


def _said(result: Switched, said: Said, title: str) -> Markup:
    rows = Markup("").join(
        Markup(
            "<div><b>{}</b><small>{}</small></div>"
            '<span class="rl-sw-bar"><i style="width:{:.1f}%;background:var(--{})"></i></span>'
            "<span>{}</span>"
        ).format(answer, note, 100 * chance, colour, percent(chance))
        for answer, note, chance, colour in zip(
            result.decision.answers, _notes(result.decision), said.probabilities, COLOURS,
            strict=True,
        )
    )  # fmt: skip
    kind = ("", "", " (neither answer)")[said.says]
    text = Markup("<span>{}</span> {}").format(result.decision.begun, said.text or "(no text)")
    return Markup(
        '<div class="rl-panel"><h4>{}</h4><div class="rl-sw-two">{}</div>'
        '<p class="rl-sw-p">Most likely token: <b>{}</b>{}, {}</p>'
        '<p class="rl-sw-p">It goes on: {}</p></div>'
    ).format(title, rows, said.top, kind, percent(said.p_top), text)


def _notes(decision: Decision) -> tuple[str, str]:
    if decision.role == "evaluator":
        kinds = ("accepts", "rejects")
    else:
        kinds = ("the true answer", "the altered passage's")
    asked_for = [f"{kind}; asked for" if i == decision.asked else kind
                 for i, kind in enumerate(kinds)]  # fmt: skip
    return asked_for[0], asked_for[1]


def _band(result: Switched) -> Markup:
    """The shift on a line about zero, with every random set and the middle 95 % of them."""
    first, second = result.decision.answers
    low, high = result.band
    most: float = 1.05 * max(0.1, abs(result.shift), *abs(result.random))
    sets = count(result.random.size, "random set")

    def place(x: float) -> float:
        return 50 + 50 * x / most

    ticks = Markup("").join(
        Markup('<i class="rl-sw-tick" style="left:{:.2f}%"></i>').format(place(x))
        for x in result.random
    )
    label = (
        f"Shift of the log-odds {signed(result.shift)} logits; the middle 95 % of "
        f"{sets} lie between {signed(low)} and {signed(high)}."
    )
    return Markup(
        '<div class="rl-panel" style="margin-top:18px"><h4>Shift of the log-odds, beside {} of '
        'the same layers</h4><div class="rl-sw-track" role="img" aria-label="{}">'
        '<i class="rl-sw-zero" style="left:50%"></i>'
        '<i class="rl-sw-band" style="left:{:.2f}%;width:{:.2f}%"></i>{}'
        '<i class="rl-sw-dot" style="left:{:.2f}%"></i></div>'
        '<div class="rl-sw-ends" aria-hidden="true"><span>{}<small>towards “{}”</small></span>'
        "<span>0</span><span>{}<small>towards “{}”</small></span></div>"
        '<p class="rl-note">{} Dot: the heads that are off. Ticks: random sets with as many heads '
        "in the same layers; grey band: the middle 95 % of them. One decision: there is no "
        "interval, and heads found on many conflicts can fail on this one. At every new token of "
        "the text the heads stay off.</p></div>"
    ).format(
        sets, label, place(low), place(high) - place(low), ticks,
        place(result.shift), decimal(-most), second, signed(most), first, label,
    )  # fmt: skip
