"""The forward pass of a bundle: attention along a token tree, block by block.

Registered with transformers as an attention kernel, so that any of its decoder models with full
attention runs it. The mask of a tree is mostly empty: a token sees the trunk and its own branch.
So scores are computed for these alone. On two cores, in half precision, plain matrix products with
a softmax are faster here, backward, than the fused kernel with a mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float

from lab.training.bundles import Bundle

KERNEL = "rolelens_tree"


@dataclass(frozen=True, slots=True, eq=False)
class TreeMask:
    """Additive masks of a bundle: of the trunk among itself, and of each block.

    ``blocks`` holds (start, end, mask over the trunk's and the block's tokens).
    """

    trunk: Float[torch.Tensor, "trunk trunk"]
    blocks: tuple[tuple[int, int, Float[torch.Tensor, "row key"]], ...]


def tree_mask(bundle: Bundle, dtype: torch.dtype) -> TreeMask:
    """The masks of a bundle."""
    least = torch.finfo(dtype).min
    size = bundle.trunk
    causal = torch.full((size, size), least, dtype=dtype).triu(1)
    blocks = []
    for block in bundle.blocks:
        rows = block.end - block.start
        mask = torch.zeros(rows, size + rows, dtype=dtype)
        mask[:, size:].masked_fill_(~torch.from_numpy(block.sees), least)
        blocks.append((block.start, block.end, mask))
    return TreeMask(causal, tuple(blocks))


def tree_attention(
    module: torch.nn.Module,
    query: Float[torch.Tensor, "batch head token d_head"],
    key: Float[torch.Tensor, "batch kv_head token d_head"],
    value: Float[torch.Tensor, "batch kv_head token d_head"],
    attention_mask: object,
    scaling: float | None = None,
    dropout: float = 0.0,
    tree: TreeMask | None = None,
    **_: Any,
) -> tuple[Float[torch.Tensor, "batch token head d_head"], None]:
    """Attention in which each token sees its ancestors in the tree; one bundle at a time."""
    del attention_mask, dropout
    if tree is None:
        raise RuntimeError("the tree kernel was called without its masks")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    shared = query.shape[1] // key.shape[1]
    dtype = tree.trunk.dtype
    q = (query * scale).to(dtype).unflatten(1, (key.shape[1], shared))
    k, v = key.to(dtype), value.to(dtype)
    size = tree.trunk.shape[0]
    k_trunk, v_trunk = k[..., :size, :], v[..., :size, :]
    out = [_attend(q[..., :size, :], k_trunk, v_trunk, tree.trunk)] if size else []
    for start, end, mask in tree.blocks:
        keys = torch.cat([k_trunk, k[..., start:end, :]], dim=-2)
        values = torch.cat([v_trunk, v[..., start:end, :]], dim=-2)
        out.append(_attend(q[..., start:end, :], keys, values, mask))
    mixed = torch.cat(out, dim=-2).flatten(1, 2)
    return mixed.transpose(1, 2).contiguous(), None


def _attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Attention of ``[batch kv_head shared row d_head]`` queries on their group's keys."""
    shared = query.shape[2]
    # Query heads that share keys become rows of one product, so that keys need not be repeated.
    scores = (query.flatten(2, 3) @ key.transpose(-1, -2)).unflatten(2, (shared, -1)) + mask
    pattern = torch.softmax(scores, dim=-1)
    return (pattern.flatten(2, 3) @ value).unflatten(2, (shared, -1))


def register_kernel() -> None:
    """Make the kernel known to transformers, under KERNEL."""
    from transformers import AttentionInterface

    AttentionInterface.register(KERNEL, tree_attention)
