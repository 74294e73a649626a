"""The plain data that the front end draws, from whatever an explorer looks at."""

from __future__ import annotations

import json
from typing import Any

from lab.explorer.sources import Source
from lab.views.example_list import list_examples
from lab.views.explorer_payload import explorer_payload
from lab.views.packing import script_json
from lab.views.reading_payload import MAX_BYTES, example_payload, without_absent_spans


def payload(source: Source, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Everything that the views show, as JSON data; see `lab.views.explorer_payload`.

    All examples are listed. Those whose tokens do not fit, or that were not read yet, have no
    ``roles``: the views ask for them one by one, and `one_example` answers.
    """
    measured = source.measured
    data = explorer_payload(measured, max_bytes=max_bytes)
    ids = source.ids
    if measured.sizes["example"] < len(ids):
        known = {example["id"]: example for example in data["reader"]["examples"]}
        bare = ({**example, "measured": False} for example in list_examples(source.asked))
        data["reader"]["examples"] = [known.get(example["id"], example) for example in bare]
        data["reader"]["of"] = len(ids)
    return _as_json(data)


def one_example(source: Source, example: str) -> dict[str, Any]:
    """The tokens and attention of one example that was read: ``roles``, ``vocab`` and ``width``."""
    dataset = without_absent_spans(source.measured)
    ids = [str(name) for name in dataset["example"].values]
    return _as_json(example_payload(dataset, ids.index(example)))


def _as_json(value: dict[str, Any]) -> dict[str, Any]:
    """Plain data that any JSON reader takes: no NaN, no NumPy numbers, no lone surrogates."""
    return dict(json.loads(script_json(value)))
