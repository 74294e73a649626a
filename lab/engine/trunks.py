"""Trunks: shared prefixes, run once on the fast attention kernel, kept as keys and values."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float

from lab.engine.packing import common_prefix
from lab.engine.traits import side

if TYPE_CHECKING:
    from transformers import PreTrainedModel

FUSED = "sdpa"
"""What transformers calls torch's fused attention kernel."""

MOST_BYTES = 1_500_000_000
"""Trunks beyond this total are forgotten, the longest unused first."""


@dataclass(frozen=True, slots=True, eq=False)
class Trunk:
    """Keys and values of a token prefix in every layer.

    Attributes:
        tokens: the prefix.
        cache: a transformers cache; never handed out, since a forward pass extends it in place.
    """

    tokens: tuple[int, ...]
    cache: Any

    def fresh_cache(self) -> Any:
        """A cache that may be extended; it shares this trunk's tensors until it is."""
        return _shallow(self.cache)

    def values(self, layer: int) -> Float[torch.Tensor, "key kv_head d_head"]:
        """Value vectors of a layer; with a sliding window only the last ``window - 1`` tokens'."""
        values: torch.Tensor = self.cache.layers[layer].values
        return values[0].transpose(0, 1)

    @property
    def bytes(self) -> int:
        """Memory that the keys and values take."""
        return sum(
            t.numel() * t.element_size()
            for layer in self.cache.layers
            for t in (layer.keys, layer.values)
        )


class TrunkStore:
    """Runs trunks on a model and remembers the last ones, whole or as the start of longer ones.

    Of a remembered trunk nothing is used beyond one of the model's ``borders``; see
    `lab.engine.traits.borders`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        sliding: bool,
        borders: Sequence[int] = (),
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._model = model
        self._sliding = sliding
        self._borders = tuple(borders)
        self._most_bytes = most_bytes
        self._trunks: list[Trunk] = []

    def forget(self) -> None:
        """Drop all trunks, so that later results do not depend on what ran before."""
        self._trunks.clear()

    @torch.no_grad()
    def get(self, tokens: Sequence[int]) -> Trunk:
        """The trunk of these tokens; what a remembered trunk shares with it is not run again."""
        wanted = tuple(tokens)
        best, shared = None, 0
        here = side(self._borders, len(wanted))
        for trunk in self._trunks:
            if side(self._borders, len(trunk.tokens)) != here:
                continue
            n = common_prefix([trunk.tokens, wanted])
            # A windowed layer has forgotten old keys, so its trunk can be gone on from, not cut.
            if n > shared and (n == len(trunk.tokens) or not self._sliding):
                best, shared = trunk, n
        if best is not None and shared == len(wanted) == len(best.tokens):
            self._trunks.remove(best)
            self._trunks.append(best)
            return best
        cache = None if best is None else _shallow(best.cache, shared)
        if shared < len(wanted):
            ids = torch.tensor([wanted[shared:]], device=self._model.device)
            body = self._model.base_model  # without the unembedding, which a trunk does not need
            cache = body(input_ids=ids, past_key_values=cache, use_cache=True).past_key_values
        trunk = Trunk(wanted, cache)
        self._trunks.append(trunk)
        while len(self._trunks) > 1 and sum(t.bytes for t in self._trunks) > self._most_bytes:
            del self._trunks[0]
        return trunk


def _shallow(cache: Any, length: int | None = None) -> Any:
    """A cache object of its own over the same tensors, cut to ``length`` tokens.

    Extending a cache concatenates, that is, makes new tensors: the shared ones stay as they are.
    """
    twin = copy.copy(cache)
    twin.layers = [copy.copy(layer) for layer in cache.layers]
    if length is not None:
        for layer in twin.layers:
            if layer.keys.shape[-2] > length:
                layer.keys = layer.keys[..., :length, :]
                layer.values = layer.values[..., :length, :]
    return twin


def fast_twin(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of a model that shares its weights' storage and uses the fused attention kernel.

    Where the model cannot use that kernel (Gemma 2 caps its attention scores, for one), the copy
    uses plain attention, which is slower. Call it before the model is bridged: bridging changes a
    model in place.
    """
    memo = {id(p): p for p in model.parameters()}
    twin = copy.deepcopy(model, memo)
    try:
        twin.set_attn_implementation(FUSED)
    except ValueError:
        twin.set_attn_implementation("eager")
    return twin
