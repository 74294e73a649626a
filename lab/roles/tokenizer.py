"""What the roles need of a tokenizer: ids, exact character ranges, and its control tokens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Container
    from typing import TypeAlias

    from transformers import PreTrainedTokenizerBase

    Tokenizer: TypeAlias = PreTrainedTokenizerBase

_MARKUP = re.compile(r"<\|.*\|>", re.DOTALL)


def model_name(tokenizer: Tokenizer) -> str:
    """The name of the model that the tokenizer belongs to, for messages."""
    return str(getattr(tokenizer, "name_or_path", "") or type(tokenizer).__name__)


def encode(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """The token ids of a text as it stands: nothing is put before or after it."""
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def encode_with_offsets(
    tokenizer: Tokenizer, text: str
) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    """The token ids of a text and, for each token, its half-open character range.

    The ranges never go backwards and leave no gap: a character that the tokenizer gives to no
    token (a trimmed space, a character that its normaliser removes) goes to the token after it,
    at the end of the text to the last token. Tokens that are pieces of one character, such as
    the bytes of an emoji, all carry that character's range. A token that stands for no
    character, such as a space that the tokenizer puts first, has an empty range.
    """
    encoding = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, raw = encoding["input_ids"], encoding["offset_mapping"]
    offsets: list[tuple[int, int]] = []
    begun = reached = 0
    for first, last in raw:
        begun = max(begun, min(first, reached))
        reached = max(reached, last)
        offsets.append((begun if last > begun else reached, reached))
        begun = offsets[-1][0]
    if offsets:
        offsets[-1] = (offsets[-1][0], len(text))
    return tuple(ids), tuple(offsets)


def wants_bos(tokenizer: Tokenizer) -> bool:
    """Whether the tokenizer begins a text with its BOS token unless told otherwise."""
    if tokenizer.bos_token is None:
        return False
    ids = tokenizer("a")["input_ids"]
    return bool(ids) and ids[0] == tokenizer.bos_token_id


def control_strings(tokenizer: Tokenizer, markup: str) -> tuple[str, ...]:
    """Strings that data must not hold as they are, since the tokenizer would obey them.

    These are the special tokens, and those of its other added tokens that the chat format's own
    ``markup`` uses or that have the shape ``<|...|>``. Other added tokens (runs of spaces, HTML
    tags in some vocabularies) are ordinary words and stay. Longest first.
    """
    found = set(tokenizer.all_special_tokens)
    for token in tokenizer.added_tokens_decoder.values():
        if token.special or token.content in markup or _MARKUP.fullmatch(token.content):
            found.add(token.content)
    return tuple(sorted((s for s in found if len(s.strip()) > 1), key=lambda s: (-len(s), s)))


def control_ids(tokenizer: Tokenizer, strings: Container[str]) -> frozenset[int]:
    """The ids of control strings, but for the one that stands for unknown characters."""
    added = tokenizer.added_tokens_decoder.items()
    ids = {i for i, token in added if token.content in strings}
    return frozenset((ids | set(tokenizer.all_special_ids)) - {tokenizer.unk_token_id})


def check_encodable(text: str, what: str) -> None:
    """Raise LabError where a text holds half of a surrogate pair, which no tokenizer takes."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise LabError(
            f"{what} holds a lone surrogate (U+{ord(text[error.start]):04X}) at character "
            f"{error.start}, which is not valid text: remove the character, or read the file anew "
            "as UTF-8."
        ) from error
