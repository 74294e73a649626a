"""What the reader of the page shows: prompts, token by token, with each head's attention."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from lab.instruments.summaries import tables as T
from lab.instruments.summaries.behaviour import right
from lab.views.packing import (
    QUANTISATION_ERROR,
    base64_text,
    pack_rows,
    quantise,
)
from lab.views.wording import RUNGS

READER_ROLES = ("generator", "evaluator")
TEXTS = ("dataset", "family", "question", "gold", "answer", "closed_book_answer")
NUMBERS = ("em", "f1")
MAX_EXAMPLES = 200
MAX_BYTES = 8_800_000

SOMETIMES = ("demonstrations",)
"""Spans that the prompts of a study have only if its recipe asks for them."""


class Vocabulary:
    """Distinct token texts, numbered as they first appear."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def ids(self, tokens: list[str]) -> list[int]:
        """The numbers of these texts; new texts get the next ones."""
        return [self.texts.setdefault(token, len(self.texts)) for token in tokens]


def reader_payload(
    dataset: xr.Dataset, max_examples: int = MAX_EXAMPLES, max_bytes: int = MAX_BYTES
) -> dict[str, Any]:
    """Examples with their prompts and attention rows, as plain JSON data.

    Examples are taken in turn from every kind of question and outcome until ``max_examples`` or
    ``max_bytes`` is reached; ``of`` says how many there are in all, ``read`` for how many of these
    attention was measured. Attention is quantised (``error`` is the largest error) and sparse.
    """
    dataset = _complete(dataset)
    vocabulary = Vocabulary()
    chosen: list[tuple[int, dict[str, Any], list[list[int]]]] = []
    size = 0
    read = _read(dataset)
    for index in _spread(dataset, read):
        record, ids = _example(dataset.isel(example=index), vocabulary)
        size += sum(len(text) for side in record["roles"].values() for text in side.values())
        size += sum(6 * len(side) for side in ids)
        if chosen and (size > max_bytes or len(chosen) >= max_examples):
            break
        chosen.append((index, record, ids))
    kind = np.dtype(np.uint16 if len(vocabulary.texts) <= 0xFFFF else np.uint32)
    for _, record, ids in chosen:
        for role, numbers in zip(READER_ROLES, ids, strict=True):
            record["roles"][role]["tokens"] = base64_text(np.array(numbers, dtype=kind))
    return {
        "of": int(dataset.sizes["example"]),
        "read": int(read.sum()),
        "error": QUANTISATION_ERROR,
        "width": kind.itemsize,
        "vocab": list(vocabulary.texts),
        "examples": [record for _, record, _ in sorted(chosen, key=lambda item: item[0])],
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


def judged_right(dataset: xr.Dataset) -> NDArray[np.floating[Any]]:
    """1 where the verdict on the model's own answer agrees with the oracle, 0 not, NaN unknown."""
    verdict, truth = T.numbers(dataset, "log_odds", rung="own"), right(dataset, "own")
    agrees = ((verdict > 0) == (truth > 0.5)).astype(float)
    return np.where(np.isnan(verdict) | np.isnan(truth), np.nan, agrees)


def _complete(dataset: xr.Dataset) -> xr.Dataset:
    """The dataset with empty values for whatever the study did not measure."""
    n, rungs = dataset.sizes["example"], dataset.sizes.get("rung", 0)
    if "rung" not in dataset.coords:
        dataset = dataset.assign_coords(rung=np.array([], dtype=object))
    texts = {name: ("example", np.full(n, "", dtype=object)) for name in TEXTS}
    numbers = {name: ("example", np.full(n, np.nan)) for name in NUMBERS}
    by_rung = {
        "candidate": (("example", "rung"), np.full((n, rungs), "", dtype=object)),
        "candidate_given": (("example", "rung"), np.zeros((n, rungs), dtype=bool)),
        "candidate_f1": (("example", "rung"), np.full((n, rungs), np.nan)),
        "log_odds": (("example", "rung"), np.full((n, rungs), np.nan)),
    }
    empty = {**texts, **numbers, **by_rung, "answerable": ("example", np.ones(n, dtype=bool))}
    return dataset.assign({name: value for name, value in empty.items() if name not in dataset})


def _read(dataset: xr.Dataset) -> NDArray[np.bool_]:
    """Which examples have their tokens, and so attention, in both roles."""
    if "attention" not in dataset:
        return np.zeros(dataset.sizes["example"], dtype=bool)
    tokens = dataset["tokens"].sel(role2=list(READER_ROLES)).transpose("example", "role2").values
    return np.array([all(json.loads(text or "[]") for text in row) for row in tokens], dtype=bool)


def _spread(dataset: xr.Dataset, read: NDArray[np.bool_]) -> Iterator[int]:
    """Indices of the read ones, in turn from each family and outcome, in the order of the data."""
    groups: dict[tuple[str, bool, float], deque[int]] = defaultdict(deque)
    answered, judged = dataset["f1"].values >= 0.5, np.nan_to_num(judged_right(dataset), nan=-1)
    for i, family in enumerate(dataset["family"].values):
        if read[i]:
            groups[str(family), bool(answered[i]), float(judged[i])].append(i)
    while groups:
        for key in list(groups):
            yield groups[key].popleft()
            if not groups[key]:
                del groups[key]


def _example(one: xr.Dataset, vocabulary: Vocabulary) -> tuple[dict[str, Any], list[list[int]]]:
    sides, ids = {}, []
    for role in READER_ROLES:
        side, tokens = _side(one.sel(role=role, role2=role))
        sides[role] = side
        ids.append(vocabulary.ids(tokens))
    verdict = float(judged_right(one.expand_dims("example"))[0])
    record = {
        "id": _text(one, "example"),
        "dataset": _text(one, "dataset"),
        "family": _text(one, "family"),
        "question": _text(one, "question"),
        "gold": _text(one, "gold"),
        "answerable": bool(one["answerable"]),
        "answer": _text(one, "answer"),
        "right": bool(one["f1"] >= 0.5),
        "judged_right": None if np.isnan(verdict) else bool(verdict),
        "f1": float(one["f1"]),
        "closed_book": _text(one, "closed_book_answer"),
        "rungs": [_rung(one.sel(rung=rung), rung) for rung in map(str, one["rung"].values)],
        "roles": sides,
    }
    return record, ids


def _side(one: xr.Dataset) -> tuple[dict[str, str], list[str]]:
    """One prompt: base64 spans, marks, span masses (layer, head, span) and attention rows."""
    tokens = [str(token) for token in json.loads(_text(one, "tokens") or "[]")]
    n = len(tokens)
    rows = one["attention"].transpose("layer", "head", "token").values[..., :n]
    mass = one["mass"].transpose("layer", "head", "span").values
    return {
        "span": base64_text(one["token_span"].values[:n].astype(np.uint8)),
        "mark": base64_text(one["token_mark"].values[:n].astype(np.uint8)),
        "mass": base64_text(quantise(mass)),
        "rows": base64_text(pack_rows(rows.reshape(-1, n))),
    }, tokens


def _rung(one: xr.Dataset, rung: str) -> dict[str, Any]:
    given = bool(one["candidate_given"])
    return {
        "name": rung,
        "label": "its own answer" if rung == "own" else RUNGS.get(rung, (rung, ""))[0],
        "candidate": _text(one, "candidate"),
        "right": bool(one["candidate_f1"] >= 0.5),
        "log_odds": float(one["log_odds"]) if given else None,
    }


def _text(one: xr.Dataset, name: str) -> str:
    return str(one[name].item())
