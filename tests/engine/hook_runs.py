"""What the engine is compared with: single runs of TransformerLens, with hooks written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tiny import VOCAB

from lab.engine.edits import HOOKS, Block, Edit
from lab.engine.lens import Lens

Hook = tuple[str, Callable[..., Any]]


def tokens(length: int = 30, seed: int = 0) -> tuple[int, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(5, VOCAB, (length,), generator=generator).tolist())


def plain(lens: Lens, ids: tuple[int, ...], hooks: list[Hook] | None = None) -> np.ndarray:
    """Logits of all positions from TransformerLens alone."""
    with torch.no_grad():
        out = lens.bridge.run_with_hooks(torch.tensor([ids]), fwd_hooks=hooks or [])
    return out[0].float().numpy()


def as_hook(change: Edit | Block) -> Hook:
    """The same change, written as a TransformerLens hook by hand."""
    if isinstance(change, Block):

        def cut(scores: torch.Tensor, hook: object) -> torch.Tensor:
            scores = scores.clone()
            heads = range(scores.shape[1]) if change.heads is None else change.heads
            for head in heads:
                for query in change.queries:
                    for key in change.keys:
                        if key != query:
                            scores[0, head, query, key] = torch.finfo(scores.dtype).min
            return scores

        return f"blocks.{change.layer}.attn.hook_attn_scores", cut

    def edit(value: torch.Tensor, hook: object) -> torch.Tensor:
        value = value.clone()
        for i, position in enumerate(change.positions):
            place = (0, position) if change.head is None else (0, position, change.head)
            add = change.add
            if add is not None and add.ndim == 2:
                add = add[i]
            value[place] = change.scale * value[place] + (0 if add is None else add)
        return value

    return HOOKS[change.site].format(change.layer), edit
