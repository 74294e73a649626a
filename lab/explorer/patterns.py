"""The full attention pattern of one head on a short prompt, drawn by circuitsvis.

circuitsvis writes tokens into a script unescaped, and asks the network how to show itself (see its
``RenderedHTML``). So it is given a placeholder for the tokens, which is replaced by escaped JSON;
its offline source is taken; and the whole stands in a frame of its own that may run scripts but
reach nothing outside of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float
from markupsafe import Markup

from lab.engine.forward import Keep
from lab.engine.packing import Branch
from lab.errors import LabError
from lab.roles import Prompt
from lab.roles.tokenizer import encode_with_offsets
from lab.views.packing import script_json

if TYPE_CHECKING:
    from lab.engine.lens import Lens

MOST_TOKENS = 200
"""The longest prompt whose pattern is drawn: 40,000 cells."""

LONGEST_TOKEN = 40

_PLACE = "rolelens-tokens-stand-here"

_ROOM = "<style>body { margin: 0; padding: 0 15px; }</style>"


@dataclass(frozen=True, slots=True, eq=False)
class AttentionPattern:
    """A head's pattern, shown by a notebook as circuitsvis draws it.

    Attributes:
        tokens: texts, as they are fed.
        attention: [query, key]; every row sums to one.
        layer, head: whose it is.
        html: the drawing, a frame that needs no network.
    """

    tokens: tuple[str, ...]
    attention: Float[np.ndarray, "query key"]
    layer: int
    head: int
    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.html


def attention_pattern(lens: Lens, prompt: Prompt | str, layer: int, head: int) -> AttentionPattern:
    """The whole attention pattern of one head on a prompt, to look at in a notebook.

    Args:
        lens: the model.
        prompt: a rendered Prompt, or plain text, which is fed as it stands.
        layer, head: of which head.

    Raises:
        LabError: the prompt is empty or longer than MOST_TOKENS, or there is no such head.
    """
    if not (0 <= layer < lens.n_layers and 0 <= head < lens.n_heads):
        raise LabError(
            f"{lens.name} has no head {layer}.{head}: layers are 0 to {lens.n_layers - 1}, heads 0 "
            f"to {lens.n_heads - 1}."
        )
    ids, texts = _tokens(lens, prompt)
    if not 0 < len(ids) <= MOST_TOKENS:
        raise LabError(
            f"A full pattern is drawn for 1 to {MOST_TOKENS} tokens, but this prompt has "
            f"{len(ids)}: take a shorter one. For long prompts, lab.measure_reading tells where "
            "the decision looks."
        )
    branch = Branch(ids, keep=tuple(range(len(ids))))
    (trace,) = lens.run([branch], Keep(logits=False, attention=True))
    assert trace.attention is not None
    pattern = trace.attention[layer, head]
    return AttentionPattern(texts, pattern, layer, head, _drawn(texts, pattern))


def _tokens(lens: Lens, prompt: Prompt | str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    if isinstance(prompt, Prompt):
        return prompt.token_ids, prompt.tokens()
    ids, offsets = encode_with_offsets(lens.tokenizer, prompt)
    return tuple(ids), tuple(prompt[start:end] for start, end in offsets)


def _drawn(tokens: tuple[str, ...], pattern: Float[np.ndarray, "query key"]) -> str:
    from circuitsvis.attention import attention_pattern as drawing

    rounded = [[round(float(x), 4) for x in row] for row in pattern]
    source = drawing(tokens=[_PLACE], attention=rounded).local_src
    shown = [_shown(token) for token in tokens]
    # circuitsvis moves its drawing 15 pixels to the left of the page, which would cut its label.
    page = _ROOM + source.replace(f'["{_PLACE}"]', script_json(shown))
    # The drawing is as wide as its frame, and about as high as it is wide.
    side = min(900, 320 + 20 * len(tokens))
    return str(
        Markup(
            '<iframe sandbox="allow-scripts" title="Attention pattern" height="{}" '
            'style="border:0;background:#fff;width:100%;max-width:{}px" srcdoc="{}"></iframe>'
        ).format(side + 60, side, page)
    )


def _shown(token: str) -> str:
    """A token short enough for an axis, with line breaks and tabs made visible."""
    text = token.replace("\n", "↵").replace("\t", "→")
    return text if len(text) <= LONGEST_TOKEN else f"{text[:LONGEST_TOKEN]}…"
