"""What a change of the residual stream does to the logits directly, past all later layers."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float

from lab.engine.lens import Lens
from lab.engine.traits import logit_scale, write_scale
from lab.errors import LabError

LARGE = 1e4
"""Vectors are normed at this length, where a norm's epsilon does not matter."""


@torch.no_grad()
def head_writes(
    lens: Lens, layer: int, head: int, z: Float[torch.Tensor, "*run d_head"]
) -> Float[torch.Tensor, "*run d_model"]:
    """What a head's output writes into the residual stream: z W_O, scaled as the model adds it.

    Raises:
        LabError: the architecture norms attention outputs before adding them, so that no head has
            a write of its own.
    """
    block = lens.bridge.blocks[layer]
    if getattr(block, "ln1_post", None) is not None:
        raise LabError(
            f"{lens.architecture} norms the attention output before it is added, so that a single "
            "head's contribution to the logits is not defined. Use ablation and patching instead."
        )
    return z.float() @ block.attn.W_O[head].float() * write_scale(lens.config)


@torch.no_grad()
def direct_logits(
    lens: Lens,
    write: Float[torch.Tensor, "run d_model"],
    final: Float[torch.Tensor, "run d_model"],
) -> Float[np.ndarray, "run token"]:
    """The contribution of a part of the residual stream to the logits, the final norm held fixed.

    This is direct logit attribution (as in Elhage et al. 2021, "A Mathematical Framework for
    Transformer Circuits"): with the norm's scale taken from the whole stream, logits are linear in
    its parts. A scale of the logits is theirs too; a softcap on them is left out.

    Args:
        lens: the model.
        write: the part, such as what one head writes.
        final: the whole residual stream behind the last block.

    Raises:
        LabError: the model makes its logits in a way that is not known here.
    """
    if not lens.asked_logits:
        raise LabError(
            f"{lens.architecture} makes its logits from the residual stream in a way of its own, "
            "so that the contribution of a part of it is not known. Use ablation and patching "
            "instead."
        )
    part, scale = _normed(lens, write)
    whole = _normed(lens, final)[1]
    weight = lens.twin.get_output_embeddings().weight.float()
    logits = (part * (scale / whole)[:, None]) @ weight.T * logit_scale(lens.config)
    return logits.cpu().numpy()


def _normed(
    lens: Lens, vectors: Float[torch.Tensor, "run d_model"]
) -> tuple[Float[torch.Tensor, "run d_model"], Float[torch.Tensor, " run"]]:
    """The final norm of some vectors without its bias, and the scale that it divided them by."""
    norm = lens.bridge.ln_final
    wide = vectors.float()
    length = wide.norm(dim=-1, keepdim=True).clamp(min=1e-20)
    zero = torch.zeros_like(wide[:1])

    def apply(v: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = norm(v.to(lens.dtype)[None])[0].float()
        return out

    normed = apply(wide / length * LARGE) - apply(zero)
    # A layer norm takes the mean away first; a constant vector shows whether this one does.
    centres = (apply(zero + LARGE) - apply(zero)).abs().max() < 1e-3
    centred = wide - wide.mean(-1, keepdim=True) if centres else wide
    return normed, centred.pow(2).mean(-1).sqrt()
