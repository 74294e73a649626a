"""What the reader of the page shows: prompts, token by token, with each head's attention."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from lab.instruments.summaries import tables as T
from lab.studies.tokens import Token, unpack_tokens
from lab.views.example_list import READER_ROLES, columns, list_examples, rung_labels
from lab.views.packing import (
    QUANTISATION_ERROR,
    base64_text,
    pack_rows,
    quantise,
    script_json,
)

MAX_EXAMPLES = 200
MAX_BYTES = 8_800_000

SOMETIMES = ("demonstrations",)
"""Spans that the prompts of a study have only if its recipe asks for them."""

Ids = list[list[int]]


class Vocabulary:
    """Distinct tokens, numbered as they first appear."""

    def __init__(self) -> None:
        self._tokens: dict[Token, int] = {}

    def ids(self, tokens: list[Token]) -> list[int]:
        """The numbers of these tokens; new ones get the next numbers."""
        return [self._tokens.setdefault(token, len(self._tokens)) for token in tokens]

    @property
    def kind(self) -> np.dtype[Any]:
        """The smallest type that holds every number."""
        return np.dtype(np.uint16 if len(self._tokens) <= 0xFFFF else np.uint32)

    def as_data(self) -> dict[str, Any]:
        """Texts in the order of their numbers (``vocab``), the ids that the tokenizer gives them
        (``token_ids``), and the bytes of a number (``width``)."""
        return {
            "vocab": [text for text, _ in self._tokens],
            "token_ids": [number for _, number in self._tokens],
            "width": self.kind.itemsize,
        }


def reader_payload(
    dataset: xr.Dataset, max_examples: int = MAX_EXAMPLES, max_bytes: int = MAX_BYTES
) -> dict[str, Any]:
    """Every example as the picker lists it, and for some their prompts and attention rows.

    All examples are in ``examples``; ``roles`` is None for those without tokens. Tokens are held
    for examples taken in turn from every kind of question and outcome, until there are
    ``max_examples`` of them or the whole is about ``max_bytes`` long. ``held`` says for how many,
    ``read`` for how many of all (``of``) attention was measured. Attention is quantised (``error``
    is the largest error) and sparse.
    """
    examples, read = list_examples(dataset), _read(dataset)
    vocabulary = Vocabulary()
    held: list[tuple[int, dict[str, dict[str, str]], Ids]] = []
    size = len(script_json(examples))
    for index in _spread(examples, read):
        roles, ids = _roles(dataset.isel(example=index), vocabulary)
        size += sum(len(text) for side in roles.values() for text in side.values())
        size += sum(6 * len(side) for side in ids)
        if held and (size > max_bytes or len(held) >= max_examples):
            break
        held.append((index, roles, ids))
    for index, roles, ids in held:
        examples[index]["roles"] = _with_tokens(roles, ids, vocabulary)
    for example, measured in zip(examples, read, strict=True):
        example["measured"] = bool(measured)
    return {
        "of": len(examples),
        "read": int(read.sum()),
        "held": len(held),
        "error": QUANTISATION_ERROR,
        **vocabulary.as_data(),
        "rungs": rung_labels(dataset),
        "measures": columns(examples),
        "examples": examples,
    }


def example_payload(dataset: xr.Dataset, index: int = 0) -> dict[str, Any]:
    """The tokens and attention of one example, with a vocabulary of its own.

    For a view that asks for an example which its page does not hold: ``roles`` as in
    ``reader_payload``, and what `Vocabulary.as_data` gives.
    """
    vocabulary = Vocabulary()
    roles, ids = _roles(dataset.isel(example=index), vocabulary)
    return {
        "roles": _with_tokens(roles, ids, vocabulary),
        **vocabulary.as_data(),
    }


def without_absent_spans(dataset: xr.Dataset) -> xr.Dataset:
    """The dataset without the spans of SOMETIMES that none of its prompts has.

    What no prompt has gets no attention, and a legend that lists it would only puzzle. The spans
    of tokens are renumbered, since they count along the dimension ``span``.
    """
    if "span_tokens" not in dataset:
        return dataset
    names = T.coordinate(dataset, "span")
    others = [dim for dim in dataset["span_tokens"].dims if dim != "span"]
    most = np.asarray(dataset["span_tokens"].max(others).values)
    kept = [i for i, name in enumerate(names) if most[i] > 0 or name not in SOMETIMES]
    if len(kept) == len(names):
        return dataset
    if "token_span" in dataset:
        # The last place is that of -1, which stands for no token and stays.
        place = np.full(len(names) + 1, -1, dtype=dataset["token_span"].dtype)
        place[kept] = np.arange(len(kept))
        renumbered = dataset["token_span"].copy(data=place[dataset["token_span"].values])
        dataset = dataset.assign(token_span=renumbered)
    return dataset.isel(span=kept)


def _read(dataset: xr.Dataset) -> NDArray[np.bool_]:
    """Which examples have their tokens, and so attention, in both roles."""
    if "attention" not in dataset or "mass" not in dataset:
        return np.zeros(dataset.sizes["example"], dtype=bool)
    tokens = dataset["tokens"].sel(role2=list(READER_ROLES)).transpose("example", "role2").values
    return np.array([all(unpack_tokens(text) for text in row) for row in tokens], dtype=bool)


def _spread(examples: list[dict[str, Any]], read: NDArray[np.bool_]) -> Iterator[int]:
    """Indices of the read ones, in turn from each family and outcome, in the order of the data."""
    groups: dict[tuple[Any, ...], deque[int]] = defaultdict(deque)
    for i, example in enumerate(examples):
        if read[i]:
            groups[example["family"], example["right"], example["judged_right"]].append(i)
    while groups:
        for key in list(groups):
            yield groups[key].popleft()
            if not groups[key]:
                del groups[key]


def _roles(one: xr.Dataset, vocabulary: Vocabulary) -> tuple[dict[str, dict[str, str]], Ids]:
    """The two prompts of one example, and the numbers of their tokens."""
    sides, ids = {}, []
    for role in READER_ROLES:
        sides[role], tokens = _side(one.sel(role=role, role2=role))
        ids.append(vocabulary.ids(tokens))
    return sides, ids


def _with_tokens(
    roles: dict[str, dict[str, str]], ids: Ids, vocabulary: Vocabulary
) -> dict[str, dict[str, str]]:
    """The prompts with their tokens, numbered in a type that holds the whole vocabulary."""
    return {
        role: {**side, "tokens": base64_text(np.array(numbers, dtype=vocabulary.kind))}
        for (role, side), numbers in zip(roles.items(), ids, strict=True)
    }


def _side(one: xr.Dataset) -> tuple[dict[str, str], list[Token]]:
    """One prompt as base64: spans, marks, attention rows, and span masses (layer, head, span).

    The masses as they are, without the sink (``beyond``) and norm-weighted: these two are stored
    too, since what a head leaves beside its sink is too little to be told from rounded masses.
    """
    tokens = unpack_tokens(str(one["tokens"].item()))
    n = len(tokens)
    rows = one["attention"].transpose("layer", "head", "token").values[..., :n]
    by_head = ("layer", "head", "span")
    mass = one["mass"].transpose(*by_head).astype(float)
    rest = mass.where(mass["span"] != "sink", 0.0)
    weighted = np.zeros(0, dtype=np.uint8)
    if "norm_mass" in one:
        norms = one["norm_mass"].transpose(*by_head).astype(float)
        weighted = quantise((norms / norms.sum("span")).values)
    return {
        "span": base64_text(one["token_span"].values[:n].astype(np.uint8)),
        "mark": base64_text(one["token_mark"].values[:n].astype(np.uint8)),
        "mass": base64_text(quantise(mass.values)),
        "beyond": base64_text(quantise((rest / rest.sum("span")).values)),
        "norm": base64_text(weighted),
        "rows": base64_text(pack_rows(rows.reshape(-1, n))),
    }, tokens
