"""What each view of an explorer shows, as tidy tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from lab.errors import LabError
from lab.explorer import recall
from lab.explorer.selection import ROLES, Choices, Selection
from lab.instruments.summaries import patching, reading
from lab.roles import MARKS

VIEWS = ("examples", "reader", "heads", "flow", "bench")
"""The views that have a table."""


def examples(payload: Mapping[str, Any]) -> pd.DataFrame:
    """All examples as the picker lists them, one row each.

    Columns: id, dataset, family, question, gold, answerable, answer, closed_book, right,
    judged_right (None where unknown), one for each measure that it can be sorted by, and read
    (whether its attention was measured).
    """
    rows = []
    for example in payload["reader"]["examples"]:
        texts = {k: v for k, v in example.items() if k not in ("measures", "rungs", "roles")}
        read = bool(texts.pop("measured", example["roles"] is not None))
        rows.append({**texts, **example["measures"], "read": read})
    return pd.DataFrame(rows)


def heads(dataset: xr.Dataset, selection: Selection) -> pd.DataFrame:
    """The quantity of the head map, one row a head.

    Columns: layer, head, value, low, high, n, p_adjusted, and what belongs to the quantity. For
    ``difference`` and the two roles these are of `lab.instruments.summaries.reading`'s
    ``head_differences`` on the passage in the chosen normalisation (a role's ``value`` is its mean,
    without interval); for a patch those of ``patching.heads``, whose p is of the mean shift towards
    what the giving run's prompt calls for, and NaN for ``role``, which is not tested.
    """
    if "/" in selection.quantity:
        contrast, direction = selection.quantity.split("/")
        frame = patching.heads(dataset)
        chosen = (frame["contrast"] == contrast) & (frame["direction"] == direction)
        return frame[chosen].reset_index(drop=True)
    frame = reading.head_differences(dataset, "context", selection.norm)
    if selection.quantity == "difference":
        return frame
    names = ["layer", "head", "n"]
    return frame[names].assign(value=frame[selection.quantity])


def flow(dataset: xr.Dataset, selection: Selection) -> pd.DataFrame:
    """How much of the decision's attention each region gets, by role and layer, mean over heads.

    Columns: role, region, layer, value, low, high, n, method; in the chosen normalisation.
    """
    frame = reading.by_layer(dataset, selection.norm)
    return frame[frame["role"].isin(ROLES)].reset_index(drop=True)


def reader(one: xr.Dataset, selection: Selection, choices: Choices) -> pd.DataFrame:
    """The chosen example's prompts, one row a token, with the attention of the chosen heads.

    Columns: role, position, token, id (-1 if not known), span, one for each mark (whether the token
    is in it), attention (mean over the heads of the scope; stored in steps of 1/255 for each head),
    enrichment (attention times the number of tokens: 1 is an even share).
    """
    frames = []
    for role in ROLES:
        prompt = recall.prompt(one, role)
        row = attention(one, role, selection, choices)
        inside = {mark: np.isin(np.arange(len(prompt)), prompt.where(mark)) for mark in MARKS}
        frames.append(
            pd.DataFrame(
                {
                    "role": role,
                    "position": np.arange(len(prompt)),
                    "token": prompt.tokens(),
                    "id": prompt.token_ids,
                    "span": prompt.spans,
                    **inside,
                    "attention": row,
                    "enrichment": row * len(prompt),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def attention(
    one: xr.Dataset, role: str, selection: Selection, choices: Choices
) -> Float[np.ndarray, " token"]:
    """The stored attention of the decision on each token, mean over the heads of the scope."""
    length = len(recall.tokens(one, role))
    stored = one["attention"].sel(role2=role).transpose("layer", "head", "token").values
    rows = [stored[layer, head, :length] for layer, head in shown_heads(selection, choices)]
    return np.asarray(np.mean(rows, axis=0) / 255)


def shown_heads(selection: Selection, choices: Choices) -> tuple[tuple[int, int], ...]:
    """The heads whose mean the reader shows."""
    if selection.scope in ("head", "set"):
        return selection.chosen
    layers = [selection.layer] if selection.scope == "layer" else range(choices.layers)
    return tuple((layer, head) for layer in layers for head in range(choices.heads))


def check_view(view: str, known: tuple[str, ...] = VIEWS) -> None:
    """LabError unless the view is one of the known ones."""
    if view not in known:
        raise LabError(f"There is no view {view!r} here: use one of {', '.join(known)}.")
