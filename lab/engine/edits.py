"""Interventions as data: what is changed, where, in which layer and at which positions.

Positions are token indices of the whole prompt, as `lab.roles.Prompt` counts them.
An edit says nothing of how it is run; `lab.engine.forward` applies it to its branch's rows only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lab.errors import LabError

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float

Site = Literal["head", "mlp", "resid_pre", "resid_mid", "resid_post"]

HOOKS: dict[Site, str] = {
    "head": "blocks.{}.attn.hook_z",
    "mlp": "blocks.{}.hook_mlp_out",
    "resid_pre": "blocks.{}.hook_resid_pre",
    "resid_mid": "blocks.{}.hook_resid_mid",
    "resid_post": "blocks.{}.hook_resid_post",
}
"""TransformerLens's hook of each site. ``head`` is the head's output before W_O."""


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """One activation, changed at some positions of one layer: ``new = scale * old + add``.

    Setting is ``scale=0, add=value``; zero ablation is ``scale=0`` alone. Use `set_to`, `scaled`
    and `ablated`, which read better than the fields.

    Attributes:
        site: which activation; see `HOOKS`.
        layer: block index.
        positions: token indices of the prompt at which it is changed.
        head: query head, for the site ``head`` only.
        scale: factor on the old value.
        add: what is added, shape [d] or [position, d], where d is d_head for heads and d_model
            otherwise; None adds nothing.
    """

    site: Site
    layer: int
    positions: tuple[int, ...]
    head: int | None = None
    scale: float = 0.0
    add: Float[torch.Tensor, "*position d"] | None = None

    def __post_init__(self) -> None:
        if self.site not in HOOKS:
            raise LabError(f"Unknown site {self.site!r}: use one of {', '.join(HOOKS)}.")
        if (self.site == "head") != (self.head is not None):
            raise LabError(
                f"An edit of {self.site!r} in layer {self.layer} has head={self.head}: "
                "name a head for the site 'head', and only there."
            )
        if not self.positions:
            raise LabError(f"An edit of {self.site!r} in layer {self.layer} names no position.")
        self._check_add()

    def _check_add(self) -> None:
        if self.add is None:
            return
        shape = tuple(getattr(self.add, "shape", ()))
        if len(shape) not in (1, 2) or (len(shape) == 2 and shape[0] != len(self.positions)):
            raise LabError(
                f"An edit of {self.site!r} in layer {self.layer} adds values of the shape "
                f"{list(shape)} at {len(self.positions)} position(s): give one vector, [d], or one "
                f"for each position, [{len(self.positions)}, d]."
            )


@dataclass(frozen=True, slots=True)
class Block:
    """Attention edges cut before the softmax, so that the rest of each row renormalises.

    Attributes:
        layer: block index.
        queries: token indices that may no longer look ...
        keys: ... at these token indices; none cuts nothing. A query always keeps itself, since a
            row without any key has no meaning.
        heads: query heads concerned; None means all of the layer.

    The knockout of Geva et al. 2023 (arXiv 2304.14767) is a list of these over a window of layers.
    """

    layer: int
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    heads: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not self.queries:
            raise LabError(f"A block of attention in layer {self.layer} names no query position.")
        if self.heads is not None and not self.heads:
            raise LabError(
                f"A block of attention in layer {self.layer} names no head: heads=None means all."
            )


Change = Edit | Block


def set_to(
    site: Site,
    layer: int,
    positions: Sequence[int],
    value: Float[torch.Tensor, "*position d"],
    head: int | None = None,
) -> Edit:
    """An edit that puts ``value`` in place of the activation (activation patching)."""
    return Edit(site, layer, tuple(positions), head, 0.0, value)


def scaled(
    site: Site, layer: int, positions: Sequence[int], factor: float, head: int | None = None
) -> Edit:
    """An edit that multiplies the activation by ``factor``."""
    return Edit(site, layer, tuple(positions), head, factor)


def ablated(
    site: Site,
    layer: int,
    positions: Sequence[int],
    head: int | None = None,
    *,
    how: Literal["zero", "mean", "resample"] = "zero",
    reference: Float[torch.Tensor, "sample d"] | None = None,
    pick: int = 0,
) -> Edit:
    """An edit that takes the activation's information away.

    Args:
        how: ``zero`` puts zeros; ``mean`` the mean of the reference values; ``resample`` the
            reference value number ``pick`` (modulo their number).
        reference: values of the same activation on other prompts of the same kind.

    Raises:
        LabError: mean or resample without a reference, or no such way.
    """
    if how not in ("zero", "mean", "resample"):
        raise LabError(f"Unknown ablation {how!r}: use 'zero', 'mean' or 'resample'.")
    if how == "zero":
        return Edit(site, layer, tuple(positions), head)
    if reference is None or reference.ndim != 2 or not len(reference):
        raise LabError(f"Ablation with {how!r} needs reference values of shape [sample, d].")
    value = reference.mean(0) if how == "mean" else reference[pick % len(reference)]
    return Edit(site, layer, tuple(positions), head, 0.0, value)


def knockout(
    queries: Iterable[int],
    keys: Iterable[int],
    layers: Iterable[int],
    heads: Sequence[int] | None = None,
) -> tuple[Block, ...]:
    """Blocks that cut the edges from ``queries`` to ``keys`` in each of ``layers``."""
    q, k = tuple(queries), tuple(keys)
    return tuple(Block(layer, q, k, None if heads is None else tuple(heads)) for layer in layers)
