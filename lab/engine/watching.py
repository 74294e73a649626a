"""Watching a model run layer by layer, so that progress can be shown and a run can be ended."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from lab.engine.lens import Lens


@contextlib.contextmanager
def watched(lens: Lens, entering: Callable[[int], None]) -> Iterator[None]:
    """Call ``entering(layer)`` before each layer of every pass, packed or of a trunk.

    What ``entering`` raises ends the pass and comes out of `Lens.run`; the lens stays usable.
    Meanwhile no other thread can run this lens.
    """

    def hook(layer: int) -> Callable[..., None]:
        def enter(*_: Any) -> None:
            entering(layer)

        return enter

    with lens.lock, contextlib.ExitStack() as stack:
        for layers in (lens.bridge.blocks, _layers(lens)):
            for layer, block in enumerate(layers):
                stack.callback(block.register_forward_pre_hook(hook(layer)).remove)
        yield


def _layers(lens: Lens) -> torch.nn.ModuleList | tuple[()]:
    """The layers of the twin, which runs the trunks."""
    lists = (m for m in lens.twin.modules() if isinstance(m, torch.nn.ModuleList))
    return next((m for m in lists if len(m) == lens.n_layers), ())
