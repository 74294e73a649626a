"""A conflict that fits a tiny model, one whose answers begin alike, and the model."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from tiny import tiny_lens

from lab.data.conflicts import Conflict
from lab.engine.lens import Lens

CONFLICT = Conflict(
    id="harbour", dataset="t", relation="year", subject="Kestrel",
    question="When was the harbour of Kestrel built?", cloze="The harbour of Kestrel was built in",
    memory="1871", counter="2019",
    original="The harbour was built in 1871. It is small.",
    counterfactual="The harbour was built in 2019. It is small.",
)  # fmt: skip
BEGINS_ALIKE = replace(
    CONFLICT, id="alike", memory="9341", counter="9502",
    original="The harbour was built in 9341.", counterfactual="The harbour was built in 9502.",
)  # fmt: skip


@cache
def lens() -> Lens:
    made = tiny_lens("llama")
    # Rotary positions have no weights, so the window of the tests' tiny models can be widened.
    made.config.max_position_embeddings = 2048
    return made
