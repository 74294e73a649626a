"""What a Lens refuses: requests that it could not answer, or only with something else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lab.engine.edits import Block
from lab.errors import LabError

if TYPE_CHECKING:
    from lab.engine.edits import Change
    from lab.engine.forward import Keep
    from lab.engine.lens import Lens
    from lab.engine.packing import Branch


def check_request(lens: Lens, branches: Sequence[Branch], keep: Keep) -> None:
    """Refuse branches or asked logits that this model cannot have.

    Raises:
        LabError: a prompt is too long, or a token, layer or head is out of range, or attention
            edges are to be cut in a model in which that does nothing.
    """
    if not isinstance(keep.logits, bool):
        check_ids(lens, keep.logits, "asked logits")
    # Sweeps share one sequence between many branches: it is looked at once.
    for tokens in {id(b.tokens): b.tokens for b in branches}.values():
        check_tokens(lens, tokens)
    for branch in branches:
        for change in branch.changes:
            _check_change(lens, change)


def check_tokens(lens: Lens, tokens: Sequence[int]) -> None:
    """Refuse a prompt that is empty, too long, or holds a token that this model lacks.

    Raises:
        LabError: which of these it is.
    """
    if not len(tokens):
        raise LabError(f"A prompt without tokens cannot be run on {lens.name}.")
    if len(tokens) > lens.max_tokens:
        raise LabError(
            f"A prompt of {len(tokens)} tokens does not fit {lens.name}, whose window is "
            f"{lens.max_tokens} tokens."
        )
    check_ids(lens, tokens, "the prompt")


def check_ids(lens: Lens, ids: Sequence[int], where: str) -> None:
    """Refuse token ids outside of the model's vocabulary.

    Raises:
        LabError: the first such id.
    """
    size = int(lens.config.vocab_size)
    if len(ids) and not (min(ids) >= 0 and max(ids) < size):
        wrong = next(i for i in ids if not 0 <= i < size)
        raise LabError(f"{lens.name} has tokens 0 to {size - 1}, not {wrong} (in {where}).")


def _check_change(lens: Lens, change: Change) -> None:
    if not 0 <= change.layer < lens.n_layers:
        raise LabError(f"{lens.name} has layers 0 to {lens.n_layers - 1}, not {change.layer}.")
    heads: Iterable[int]
    if isinstance(change, Block):
        if not lens.knockouts:
            raise LabError(
                f"Attention edges of {lens.name} cannot be cut: TransformerLens's "
                f"{lens.architecture} still sees tokens whose attention scores were set to the "
                "lowest number. Ablate or patch heads instead."
            )
        heads = change.heads or ()
    else:
        heads = () if change.head is None else (change.head,)
    for head in heads:
        if not 0 <= head < lens.n_heads:
            raise LabError(f"{lens.name} has heads 0 to {lens.n_heads - 1}, not {head}.")
