"""What is checked when a Lens is made: that packed runs mean what plain TransformerLens runs mean.

A wrong mask or a hook that means something else in some architecture gives plausible numbers and
no error. So a short prompt is run both ways. If packing disagrees, the Lens falls back to slower
exact ways, step by step, and says so in its notes. Where attention edges cannot be cut, knockouts
are refused from then on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float

from lab.engine.edits import HOOKS, Edit, knockout
from lab.engine.forward import Keep, Trace
from lab.engine.packing import Branch
from lab.engine.weights import reason
from lab.errors import LabError

if TYPE_CHECKING:
    from lab.engine.lens import Lens

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-8, torch.bfloat16: 3e-2, torch.float16: 1e-2}
"""Largest accepted difference of logits, per unit of the largest logit (at least 1)."""

SHORT = 24
LONGEST = 1_200
"""Check prompts have 24 tokens, or reach past a sliding window if that is below 1,200 tokens."""

MANY = 300
"""Rows of one check pass: beyond windows of 256 rows, and the longest sequence of tiny models."""

ASKED = (1, 3)
"""Token ids whose logits are asked for alone."""

TESTED = "Llama, Qwen2, Qwen3, Gemma 2, Gemma 3, GPT-2, GPT-NeoX, Mistral and Phi-3"


def check_lens(lens: Lens) -> None:
    """Compare packed with plain runs; set the Lens's fall-backs and notes accordingly.

    Raises:
        LabError: the model cannot be run as the engine runs it, or even the plain bridge disagrees
            with the Hugging Face model, or attention rows do not sum to one: nothing measured on
            this model could be trusted.
    """
    try:
        _check(lens)
    except (LabError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        raise _unsupported(lens, reason(error)) from error
    finally:
        lens.forget()


def _unsupported(lens: Lens, why: str) -> LabError:
    return LabError(
        f"The architecture of {lens.name}, {lens.architecture}, is not supported: {why} Choose a "
        f"model of a style that is tested: {TESTED}."
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Plain:
    """What packed runs of a prompt must equal, at its last token: logits of single plain runs."""

    tokens: tuple[int, ...]
    zero: Edit
    clean: Float[np.ndarray, " token"]
    edited: Float[np.ndarray, " token"]
    limit: float

    @property
    def near(self) -> int:
        """A position that many tokens precede and a few follow: no trunk of a check reaches it."""
        return max(0, len(self.tokens) - 4)


def _check(lens: Lens) -> None:
    plain = _run_plainly(lens)
    _choose_way(lens, plain)
    _check_attention(lens, plain)
    _note_post_norm(lens)


def _run_plainly(lens: Lens) -> _Plain:
    tokens = _check_tokens(lens)
    last = len(tokens) - 1
    zero = Edit("head", lens.n_layers // 2, (last,), lens.n_heads - 1)
    name = HOOKS["head"].format(zero.layer)
    ids = torch.tensor([tokens], device=lens.device)
    with torch.no_grad():
        fast = lens.twin(ids).logits[0, -1].float().cpu().numpy()
        clean = lens.bridge(ids)[0, -1].float().cpu().numpy()
        hooked = lens.bridge.run_with_hooks(ids, fwd_hooks=[(name, _zero(last, lens.n_heads - 1))])
    edited = hooked[0, -1].float().cpu().numpy()
    limit = TOLERANCE.get(lens.dtype, 1e-4) * max(1.0, float(np.abs(clean).max()))
    if np.isnan(fast).any() or np.isnan(clean).any():
        raise LabError(
            f"{lens.name} gives logits that are not numbers: its weights are damaged, or too large "
            f"for {str(lens.dtype).removeprefix('torch.')}. Load it anew, or in float32."
        )
    if (gap := _gap(fast, clean)) > limit:
        raise LabError(
            f"TransformerLens's {lens.architecture} differs from the Hugging Face model by "
            f"{gap:.2g} in logits (at most {limit:.2g} would be rounding), so its activations are "
            f"not those of {lens.name}. Try another version of transformer-lens, or float32."
        )
    return _Plain(tokens, zero, clean, edited, limit)


def _choose_way(lens: Lens, plain: _Plain) -> None:
    """The fastest way to run branches that gives the plain runs' logits."""
    ways = [
        (True, True, "branches run packed"),
        (False, True, "branches run through all layers"),
        (False, False, "branches run one by one"),
    ]
    why = ""
    for grow, packed, words in ways if lens.packed else ways[-1:]:
        lens.grow, lens.packed = grow, packed
        gap, failed = _gap_of_way(lens, plain)
        if gap <= plain.limit:
            if why:
                lens.notes.append(f"{lens.architecture}: {words}, because the fastest way {why}.")
            return
        why = why or (f"failed ({reason(failed).rstrip('.')})" if failed else "gave other logits")
    raise _unsupported(
        lens,
        f"the engine cannot run it: {reason(failed)}"
        if failed
        else f"with a head ablated, its runs differ from TransformerLens's own by {gap:.2g} in "
        "logits even one by one.",
    )


def _gap_of_way(lens: Lens, plain: _Plain) -> tuple[float, Exception | None]:
    """Largest difference of logits from plain runs, and the error if there is no result at all.

    Some models' own code takes no mask for each row, or no more rows than it has positions.
    """
    try:
        return _packed_gap(lens, plain), None
    except (LabError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        return float("inf"), error


def _packed_gap(lens: Lens, plain: _Plain) -> float:
    """Largest difference from plain runs: unchanged, patched with itself, ablated, and many rows.

    All share one trunk, since the first keeps a position that the others' trunk may not reach.
    """
    lens.forget()
    tokens, zero, last = plain.tokens, plain.zero, len(plain.tokens) - 1
    keep = (plain.near, last)
    lens.asked_logits = True
    own = lens.run([Branch(tokens, keep=keep)], Keep(ASKED, heads=True))[0]
    assert own.heads is not None and own.logits is not None and zero.head is not None
    lens.asked_logits = _gap(own.logits[-1], plain.clean[list(ASKED)]) <= plain.limit

    def kept(layer: int, head: int) -> Edit:
        """An edit that puts the activation there that is there."""
        assert own.heads is not None
        return Edit("head", layer, (last,), head, 0.0, own.heads[layer, head, -1])

    same = kept(zero.layer, zero.head)
    runs = lens.run(
        [Branch(tokens, keep=keep), Branch(tokens, (same,)), Branch(tokens, (zero,))],
    )
    wanted = (plain.clean, plain.clean, plain.edited)
    gaps = [_gap(_last(run.logits), w) for run, w in zip(runs, wanted, strict=True)]
    if lens.packed:
        # Born near the end, they cost little: the rows of two layers, and two logits each.
        layer = max(0, lens.n_layers - 2)
        rows = [Branch(tokens, (kept(layer, i % lens.n_heads),)) for i in range(MANY)]
        many = lens.run([Branch(tokens, keep=keep), *rows], Keep(ASKED))
        clean = plain.clean[list(ASKED)]
        gaps += [_gap(_last(run.logits), clean) for run in many]
    return float(np.max(gaps))  # not a number if any of them is none


def _check_attention(lens: Lens, plain: _Plain) -> None:
    """Check that attention is read rightly, and find out whether its edges can be cut.

    In every layer the last two tokens are cut off from the two before them. Then attention to these
    must be zero, and other tokens in their place must make no difference.
    """
    tokens = plain.tokens
    keys, queries = _ends(len(tokens))
    size = int(lens.config.vocab_size)
    others = tuple((t + size // 2) % size if i in keys else t for i, t in enumerate(tokens))
    cut = knockout(queries, keys, range(lens.n_layers))
    everything = Keep(attention=True)
    lens.knockouts = True
    try:
        with warnings.catch_warnings():  # TransformerLens warns of what is found out here
            warnings.simplefilter("ignore")
            whole, left, other = lens.run(
                [
                    Branch(tokens, keep=(plain.near, len(tokens) - 1)),
                    Branch(tokens, cut),
                    Branch(others, cut),
                ],
                everything,
            )
        seen = float(_attention(left)[..., list(keys)].max(initial=0.0))
        lens.knockouts = seen == 0 and _gap(_last(left.logits), _last(other.logits)) <= plain.limit
    except LabError:  # it has no scores to change
        whole = lens.run([Branch(tokens)], everything)[0]
        lens.knockouts = False
    off = float(np.abs(_attention(whole).sum(-1) - 1).max())
    if not off <= (1e-3 if lens.dtype == torch.float32 else 2e-2):
        raise LabError(
            f"Attention rows of {lens.name} sum to 1 only within {off:.2g}: its hook_pattern is "
            f"not a distribution over tokens ({lens.architecture}), so reading has no meaning."
        )
    if not lens.knockouts:
        lens.notes.append(
            f"{lens.architecture}: attention edges cannot be cut, because tokens whose attention "
            "scores were set to the lowest number are still seen. Knockouts are refused."
        )


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


def _ends(length: int) -> tuple[range, range]:
    """The two positions before the last two, and the last two."""
    return range(max(0, length - 4), max(0, length - 2)), range(max(0, length - 2), length)


def _zero(position: int, head: int) -> Callable[..., Any]:
    def hook(z: torch.Tensor, hook: object) -> torch.Tensor:
        z = z.clone()
        z[0, position, head] = 0
        return z

    return hook


def _last(logits: Float[np.ndarray, "position token"] | None) -> Float[np.ndarray, " token"]:
    assert logits is not None
    return logits[-1]


def _attention(trace: Trace) -> Float[np.ndarray, "layer head position key"]:
    assert trace.attention is not None
    return trace.attention


def _gap(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max())


def _note_post_norm(lens: Lens) -> None:
    """Say whether head outputs pass a norm on their way to the residual stream."""
    block = lens.bridge.blocks[lens.n_layers // 2]
    if getattr(block, "ln1_post", None) is not None:
        lens.notes.append(
            f"{lens.architecture} normalises the attention output before adding it: what "
            "heads write does not add up in the residual stream; norm-weighted mass is measured "
            "before that norm."
        )
