"""How the decision's log-odds change with each head's output there, to first order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float

from lab.engine.edits import HOOKS
from lab.engine.lens import Lens
from lab.engine.requests import check_ids, check_tokens
from lab.errors import LabError


def head_gradients(
    lens: Lens, tokens: Sequence[int], answers: tuple[Sequence[int], Sequence[int]]
) -> Float[torch.Tensor, "layer head d_head"]:
    """Gradient of the log-odds of two answers by every head's output, all at the last token.

    One forward and one backward pass through TransformerLens; nothing is packed.

    Args:
        lens: the model.
        tokens: the prompt.
        answers: token ids of both answers; spellings of one are summed as probabilities.

    Raises:
        LabError: the prompt is empty or too long, an answer has no token, or a token id is out of
            range.
    """
    check_tokens(lens, tokens)
    for listed in answers:
        if not len(listed):
            raise LabError("An answer without tokens has no odds: give at least one token id.")
        check_ids(lens, listed, "the answers")
    # A zero added to each head output is a leaf of its own, whatever the output depends on.
    shape = (lens.n_heads, int(lens.bridge.blocks[0].attn.W_O.shape[1]))
    leaves = [
        torch.zeros(shape, dtype=lens.dtype, device=lens.device, requires_grad=True)
        for _ in range(lens.n_layers)
    ]
    hooks = [(HOOKS["head"].format(layer), _added(leaf)) for layer, leaf in enumerate(leaves)]
    ids = torch.tensor([list(tokens)], device=lens.device)
    with lens.lock, torch.enable_grad():
        row = lens.bridge.run_with_hooks(ids, fwd_hooks=hooks)[0, -1].float()
        a, b = (row[list(listed)].logsumexp(0) for listed in answers)
        gradients = torch.autograd.grad(a - b, leaves)
    return torch.stack(gradients).detach()


def _added(leaf: torch.Tensor) -> Callable[..., Any]:
    def add(z: torch.Tensor, hook: Any = None) -> torch.Tensor:
        return torch.cat([z[:, :-1], z[:, -1:] + leaf], 1)

    return add
