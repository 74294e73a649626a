"""The tokens of a prompt as a study keeps them: one text, a JSON list of [text, id] pairs."""

from __future__ import annotations

import json

from lab.roles import Prompt

Token = tuple[str, int]
"""The text of a token and its number in the tokenizer's vocabulary; -1 where that is not known."""


def pack_tokens(prompt: Prompt) -> str:
    """A prompt's tokens as one text."""
    pairs = zip(prompt.tokens(), prompt.token_ids, strict=True)
    return json.dumps([[text, int(number)] for text, number in pairs], ensure_ascii=False)


def unpack_tokens(text: str) -> list[Token]:
    """The tokens that `pack_tokens` packed; none of an empty text.

    A list of texts alone is understood, too: the numbers are then -1.
    """
    tokens = json.loads(text or "[]")
    return [(t, -1) if isinstance(t, str) else (str(t[0]), int(t[1])) for t in tokens]
