"""What is checked when a Lens is made: that packed runs mean what plain TransformerLens runs mean.

A wrong mask or a hook that means something else in some architecture gives plausible numbers and
no error. So a short prompt is run both ways. If packing disagrees, the Lens falls back to slower
exact ways, step by step, and says so in its notes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from lab.engine.edits import Edit
from lab.engine.forward import Keep
from lab.engine.packing import Branch
from lab.errors import LabError

if TYPE_CHECKING:
    from lab.engine.lens import Lens

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-8, torch.bfloat16: 3e-2, torch.float16: 1e-2}
"""Largest accepted difference of logits, per unit of the largest logit (at least 1)."""

SHORT = 24
LONGEST = 1_200
"""Check prompts have 24 tokens, or reach past a sliding window if that is below 1,200 tokens."""


def check_lens(lens: Lens) -> None:
    """Compare packed with plain runs; set the Lens's fall-backs and notes accordingly.

    Raises:
        LabError: even the plain bridge disagrees with the Hugging Face model, or attention rows
            do not sum to one: nothing measured on this model could be trusted.
    """
    tokens = _check_tokens(lens)
    last = len(tokens) - 1
    layer, head = lens.n_layers // 2, lens.n_heads - 1
    name = f"blocks.{layer}.attn.hook_z"

    ids = torch.tensor([tokens], device=lens.device)
    with torch.no_grad():
        fast = lens.twin(ids).logits[0, -1].float().cpu().numpy()
        clean = lens.bridge(ids)[0, -1].float().cpu().numpy()
        ablated = lens.bridge.run_with_hooks(ids, fwd_hooks=[(name, _zero(last, head))])
    edited = ablated[0, -1].float().cpu().numpy()
    limit = TOLERANCE.get(lens.dtype, 1e-4) * max(1.0, float(np.abs(clean).max()))

    if (gap := _gap(fast, clean)) > limit:
        raise LabError(
            f"TransformerLens's {lens.architecture} differs from the Hugging Face model by "
            f"{gap:.2g} in logits (at most {limit:.2g} would be rounding), so its activations are "
            f"not those of {lens.name}. Try another version of transformer-lens, or float32."
        )

    zero = Edit("head", layer, (last,), head)
    for grow, packed, note in (
        (True, True, ""),
        (False, True, "branches run through all layers, because rows born later gave other logits"),
        (False, False, "branches run one by one, because packed runs gave other logits"),
    ):
        lens.grow, lens.packed = grow, packed
        if (gap := _packed_gap(lens, tokens, zero, clean, edited)) <= limit:
            if note:
                lens.notes.append(f"{lens.architecture}: {note}.")
            break
    else:
        raise LabError(
            f"Runs of {lens.name} with a head ablated differ from TransformerLens's own by "
            f"{gap:.2g} in logits even one by one; this architecture ({lens.architecture}) is not "
            "supported."
        )
    _check_reading(lens, tokens)
    _check_asked_logits(lens, tokens, limit)
    _note_post_norm(lens, tokens)
    lens.forget()


def _check_tokens(lens: Lens) -> tuple[int, ...]:
    """A fixed walk through the vocabulary, long enough that a sliding window matters."""
    windows = [w for layer in range(lens.n_layers) if (w := lens.window(layer)) is not None]
    length = SHORT
    if windows and min(windows) + 8 <= min(LONGEST, lens.max_tokens):
        length = max(SHORT, min(windows) + 8)
    elif windows:
        lens.notes.append(
            f"The sliding window of {min(windows)} tokens is longer than the self-check's prompt."
        )
    size = int(lens.config.vocab_size)
    return tuple((7 + 31 * i * i) % size for i in range(min(length, lens.max_tokens)))


def _zero(position: int, head: int):  # type: ignore[no-untyped-def]
    def hook(z: torch.Tensor, hook: object) -> torch.Tensor:
        z = z.clone()
        z[0, position, head] = 0
        return z

    return hook


def _gap(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max())


def _packed_gap(
    lens: Lens, tokens: tuple[int, ...], edit: Edit, clean: np.ndarray, edited: np.ndarray
) -> float:
    """Largest difference from plain runs: unchanged, patched with itself, and ablated."""
    lens.forget()
    own = lens.run([Branch(tokens)], Keep(heads=True))[0]
    assert own.heads is not None and edit.head is not None
    same = Edit(
        "head", edit.layer, edit.positions, edit.head, 0.0, own.heads[edit.layer, edit.head]
    )
    runs = lens.run([Branch(tokens), Branch(tokens, (same,)), Branch(tokens, (edit,))])
    return max(
        _gap(run.logits[0], wanted)
        for run, wanted in zip(runs, (clean, clean, edited), strict=True)
        if run.logits is not None
    )


def _check_reading(lens: Lens, tokens: tuple[int, ...]) -> None:
    attention = lens.run([Branch(tokens)], Keep(False, attention=True))[0].attention
    assert attention is not None
    off = float(np.abs(attention.sum(-1) - 1).max())
    if off > (1e-3 if lens.dtype == torch.float32 else 2e-2):
        raise LabError(
            f"Attention rows of {lens.name} sum to 1 only within {off:.2g}: its hook_pattern is "
            f"not a distribution over tokens ({lens.architecture}), so reading has no meaning."
        )


def _check_asked_logits(lens: Lens, tokens: tuple[int, ...], limit: float) -> None:
    ids = (1, 3)
    lens.asked_logits = True
    asked = lens.run([Branch(tokens)], Keep(ids))[0].logits
    every = lens.run([Branch(tokens)])[0].logits
    assert asked is not None and every is not None
    lens.asked_logits = _gap(asked, every[:, list(ids)]) <= limit


def _note_post_norm(lens: Lens, tokens: tuple[int, ...]) -> None:
    """Say whether head outputs pass a norm on their way to the residual stream."""
    block = lens.bridge.blocks[lens.n_layers // 2]
    if getattr(block, "ln1_post", None) is not None:
        lens.notes.append(
            f"{lens.architecture} normalises the attention output before adding it: what "
            "heads write does not add up in the residual stream; norm-weighted mass is measured "
            "before that norm."
        )
