"""What a model's configuration says of masks, positions and scales that differ between models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LONGROPE = "longrope"


def window(config: Any, layer: int) -> int | None:
    """How many last tokens a layer sees, itself included; None for all."""
    width = getattr(config, "sliding_window", None)
    if not width or getattr(config, "use_sliding_window", True) is False:
        return None
    types = getattr(config, "layer_types", None)
    if types is not None and types[layer] != "sliding_attention":
        return None
    return int(width)


def masks_by_row(config: Any) -> bool:
    """Whether the model's own code masks keys by their number in the sequence, not by position.

    GPT-Neo does, in a table of the longest sequence's size. Packed rows, which stand elsewhere
    than at their position, would be masked wrongly there, and without an error.
    """
    return getattr(config, "attention_layers", None) is not None


def borders(config: Any) -> tuple[int, ...]:
    """Sequence lengths beyond which the rotary embedding of *every* token is another one.

    LongRoPE (Ding et al. 2024, arXiv 2402.13753) has one set of factors for sequences of up to the
    original length and one for longer ones. Keys of the one kind mean nothing to queries of the
    other. Dynamic scaling has such a border too, but at the longest sequence, so that no run
    crosses it.
    """
    rope = getattr(config, "rope_parameters", None) or {}
    by_type = [rope, *(v for v in rope.values() if isinstance(v, dict))]
    lengths = (
        r.get("original_max_position_embeddings") for r in by_type if r.get("rope_type") == LONGROPE
    )
    return tuple(sorted({int(length) for length in lengths if length}))


def side(borders: Sequence[int], length: int) -> int:
    """How many borders a sequence of this length is beyond: keys are shared on one side only."""
    return sum(length > border for border in borders)


def logit_scale(config: Any) -> float:
    """What the model multiplies its unembedded residual by: 1 but for Cohere, Granite and kin.

    The self-check compares; where the model does it in another way, `Lens.asked_logits` is False.
    """
    factor = getattr(config, "logit_scale", None)
    divisor = getattr(config, "logits_scaling", None)
    return float(1.0 if factor is None else factor) / float(divisor or 1.0)


def write_scale(config: Any) -> float:
    """What the model multiplies attention outputs by as it adds them: 1 but for Granite and kin."""
    factor = getattr(config, "residual_multiplier", None)
    return float(1.0 if factor is None else factor)
