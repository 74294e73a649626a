"""The verdict at the decision: which tokens accept, which reject, and by how much."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lab.errors import LabError
from lab.roles.roles import VERDICT_WORDS
from lab.roles.tokenizer import encode, model_name

if TYPE_CHECKING:
    from lab.roles.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class VerdictTokens:
    """The first tokens with which a model may say its verdict.

    Attributes:
        words: the words for accepting and for rejecting.
        accept, reject: token ids of each side, ascending, none in both.
    """

    words: tuple[str, str]
    accept: tuple[int, ...]
    reject: tuple[int, ...]


def verdict_tokens(
    tokenizer: Tokenizer, words: tuple[str, str] = VERDICT_WORDS, *, after: str = ""
) -> VerdictTokens:
    """The token ids that begin each verdict word, in all its usual spellings.

    Each word is tried as it is, in lower and upper case and capitalised, with and without a space
    before it, standing alone and after ``after`` (the text right before the decision: some
    tokenizers write a word differently at the start of a text). Ids that begin both words, that
    are special, or that are mere white space say nothing and are left out.

    Raises LabError where a side has no id left.
    """
    firsts = [_first_ids(tokenizer, word, after) for word in words]
    shared = firsts[0] & firsts[1]
    accept, reject = (tuple(sorted(ids - shared)) for ids in firsts)
    for word, ids in zip(words, (accept, reject), strict=True):
        if not ids:
            raise LabError(
                f'The tokenizer of {model_name(tokenizer)} gives "{words[0]}" and "{words[1]}" '
                f'no first token that tells them apart ("{word}" has none of its own): choose '
                "other verdict words."
            )
    return VerdictTokens(words, accept, reject)


def _first_ids(tokenizer: Tokenizer, word: str, after: str) -> set[int]:
    spellings = {word, word.lower(), word.upper(), word.capitalize()}
    variants = sorted(space + spelling for spelling in spellings for space in ("", " "))
    before = encode(tokenizer, after)
    found: set[int] = set()
    for variant in variants:
        found.update(encode(tokenizer, variant)[:1])
        whole = encode(tokenizer, after + variant)
        if whole[: len(before)] == before:
            found.update(whole[len(before) :][:1])
    return set(_telling(tokenizer, found))


def _telling(tokenizer: Tokenizer, ids: Iterable[int]) -> Iterable[int]:
    """The ids that show something when they are printed, and are not special."""
    special = set(tokenizer.all_special_ids)
    return (i for i in ids if i not in special and tokenizer.decode([i]).strip())


def log_odds(logits: ArrayLike, tokens: VerdictTokens) -> float:
    """log P(accept) - log P(reject) at one decision; positive means that the judge accepts.

    ``logits`` is one row over the vocabulary, logits or log-probabilities alike. Each side's
    probability is summed over its tokens.
    """
    row = _row(logits)
    accept, reject = (np.logaddexp.reduce(row[list(ids)]) for ids in (tokens.accept, tokens.reject))
    return float(accept - reject)


def label_mass(logits: ArrayLike, tokens: VerdictTokens) -> float:
    """P(accept) + P(reject), from 0 to 1: how much of the model's belief is a verdict at all."""
    row = _row(logits)
    labels = np.logaddexp.reduce(row[[*tokens.accept, *tokens.reject]])
    return float(np.exp(labels - np.logaddexp.reduce(row)))


def _row(logits: ArrayLike) -> NDArray[np.float64]:
    row = np.asarray(logits, dtype=np.float64)
    if row.ndim != 1:
        raise LabError(
            f"A verdict is read from one row of logits, but these have the shape {row.shape}: "
            "pass the row of the decision."
        )
    return row
