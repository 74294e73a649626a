"""Prompts as text, tinted: by the span of each token, or by the attention that it gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from jaxtyping import Float
from markupsafe import Markup

from lab.errors import LabError
from lab.roles import SPANS, Prompt
from lab.views import palette
from lab.views.format import percent

MARKED = {"evidence": "solid", "answer": "double"}
"""Marks that are underlined, and how; the later wins where both hold."""

# Fixed colours on a light card: notebooks have themes of their own, which CSS cannot ask for.
_CARD = (
    f"background:{palette.PAGE['card'].light};color:{palette.PAGE['ink'].light};"
    f"border:1px solid {palette.PAGE['line'].light};border-radius:10px;padding:12px 14px;"
    "min-width:0;font:14px/1.65 system-ui,sans-serif"
)
_DIM = f"color:{palette.PAGE['dim'].light};font-size:12px"
_TEXT = "white-space:pre-wrap;overflow-wrap:anywhere;margin-top:8px"


@dataclass(frozen=True, slots=True)
class TextMap:
    """Text that a notebook shows as HTML; ``html`` is the same as a string. All of it escaped."""

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.html


def text_map(
    *prompts: Prompt, attention: Sequence[Float[np.ndarray, " token"]] | None = None
) -> TextMap:
    """Prompts side by side, as HTML for a notebook.

    Without ``attention`` each token is tinted by its base span. With it (one row of weights for
    each prompt) each token is tinted by its weight, relative to the largest that is not the
    sink's. Evidence is underlined, a gold answer doubly.

    Raises:
        LabError: the rows of attention do not fit the prompts.
    """
    if attention is None:
        cards = [_card(p, _span_legend(p), _by_span(p)) for p in prompts]
    else:
        rows = [np.asarray(row, dtype=float) for row in attention]
        if [row.shape for row in rows] != [(len(p),) for p in prompts]:
            raise LabError(
                "A text map needs one row of attention for each prompt, with a weight for each "
                f"token: the prompts have {[len(p) for p in prompts]} tokens, the rows "
                f"{[row.shape for row in rows]}."
            )
        pairs = zip(prompts, rows, strict=True)
        cards = [_card(p, _weight_legend(p, row), _by_weight(p, row)) for p, row in pairs]
    return TextMap(
        str(
            Markup(
                '<div style="display:grid;gap:14px;'
                'grid-template-columns:repeat(auto-fit,minmax(min(100%,340px),1fr))">{}</div>'
            ).format(Markup("").join(cards))
        )
    )


def _card(prompt: Prompt, legend: Markup, pieces: Iterable[Markup]) -> Markup:
    return Markup(
        '<div style="{}"><div style="font-weight:650;color:{}">{}</div>'
        '<div style="{}">{}</div><div dir="auto" style="{}">{}</div></div>'
    ).format(_CARD, _colour(prompt), prompt.role, _DIM, legend, _TEXT, Markup("").join(pieces))


def _colour(prompt: Prompt) -> str:
    tone = palette.ROLES.get(prompt.role.split("_")[0], palette.PAGE["ink"])
    return tone.light


# --- by span ------------------------------------------------------------------------------------


def _by_span(prompt: Prompt) -> Iterator[Markup]:
    """Runs of tokens of one look, so that words are not cut into more pieces than needed."""
    marks = _lines(prompt)
    looks = [(span, marks.get(i, "")) for i, span in enumerate(prompt.spans)]
    tokens = prompt.tokens()
    for (span, line), run in groupby(range(len(tokens)), key=lambda i: looks[i]):
        text = "".join(tokens[i] for i in run)
        yield _piece(text, _tint(palette.SPANS[span].light, 0.34), line, palette.SPAN_LABELS[span])


def _span_legend(prompt: Prompt) -> Markup:
    counts = Counter(prompt.spans)
    chips = Markup(" ").join(
        Markup('<span style="{}padding:0 5px;white-space:nowrap">{} {}</span>').format(
            _tint(palette.SPANS[span].light, 0.34), palette.SPAN_LABELS[span], counts[span]
        )
        for span in SPANS
        if counts[span]
    )
    return Markup("{} tokens: {}").format(len(prompt), chips)


# --- by attention -------------------------------------------------------------------------------


def _by_weight(prompt: Prompt, weights: Float[np.ndarray, " token"]) -> Iterator[Markup]:
    top = _top(weights)
    marks = _lines(prompt)
    tone = palette.HIGHLIGHTS.get(prompt.role.split("_")[0], palette.PAGE["more"])
    for i, (token, weight) in enumerate(zip(prompt.tokens(), weights, strict=True)):
        strength = min(1.0, float(weight) / top)
        yield _piece(token, _tint(tone.light, strength), marks.get(i, ""), percent(float(weight)))


def _weight_legend(prompt: Prompt, weights: Float[np.ndarray, " token"]) -> Markup:
    top, sink = percent(_top(weights)), percent(float(weights[0]))
    return Markup("full colour: {} of the attention; the first token gets {}").format(top, sink)


def _top(weights: Float[np.ndarray, " token"]) -> float:
    """The largest weight behind the sink, which would drown all others."""
    return float(weights[1:].max(initial=0)) or 1.0


# --- pieces -------------------------------------------------------------------------------------


def _lines(prompt: Prompt) -> dict[int, str]:
    """Token index to its kind of underline."""
    return {i: style for mark, style in MARKED.items() for i in prompt.where(mark)}


def _tint(colour: str, strength: float) -> str:
    return f"background:{colour}{round(255 * strength):02x};" if strength > 0.02 else ""


def _piece(text: str, tint: str, line: str, title: str) -> Markup:
    under = f"text-decoration:underline {line} 1.5px;text-underline-offset:3px;" if line else ""
    return Markup('<span style="{}{}" title="{}">{}</span>').format(tint, under, title, text)
