"""Checkpoints: an adapter in training, its optimizer and its place in the plan, without pickles."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lab.engine.weights import reason
from lab.errors import LabError

if TYPE_CHECKING:
    from peft import PeftModel

CHECKPOINT = "checkpoint"
_TENSORS = "tensors.safetensors"
_STATE = "state.json"
_KEPT = ("step", "seconds", "tokens", "losses", "curve")
"""What the state of every training says."""


def trainable(model: PeftModel) -> dict[str, torch.nn.Parameter]:
    """The adapter's parameters by name, in a fixed order."""
    return {name: p for name, p in sorted(model.named_parameters()) if p.requires_grad}


def save_checkpoint(
    folder: Path, model: PeftModel, optimizer: torch.optim.AdamW, state: Mapping[str, Any]
) -> None:
    """Write a checkpoint aside and put it in the place of the last one."""
    from safetensors.torch import save_file

    tensors: dict[str, torch.Tensor] = {}
    for name, parameter in trainable(model).items():
        tensors[f"weight/{name}"] = parameter.detach().contiguous()
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{key}/{name}"] = value.detach().contiguous()
    aside, place = folder / f"{CHECKPOINT}.part", folder / CHECKPOINT
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        save_file(tensors, aside / _TENSORS)
        (aside / _STATE).write_text(json.dumps(dict(state), indent=1), encoding="utf-8")
        old = folder / f"{CHECKPOINT}.old"
        shutil.rmtree(old, ignore_errors=True)
        if place.exists():
            place.rename(old)
        aside.rename(place)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise LabError(
            f"The checkpoint could not be written to {folder} ({error.strerror or error}): make "
            "room and run the same command again. The last checkpoint is kept."
        ) from error


def load_checkpoint(
    folder: Path, model: PeftModel, optimizer: torch.optim.AdamW
) -> dict[str, Any] | None:
    """Put the last checkpoint into a model and its optimizer; its state, or None without one.

    Raises:
        LabError: the checkpoint is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    # A kill between two renames leaves the last whole one under its other name.
    place = next(
        (p for p in (folder / CHECKPOINT, folder / f"{CHECKPOINT}.old") if p.exists()), None
    )
    if place is None:
        return None
    try:
        tensors = load_file(place / _TENSORS)
        state: dict[str, Any] = json.loads((place / _STATE).read_text(encoding="utf-8"))
        if not set(_KEPT) <= set(state):
            raise ValueError("its state lacks a part")
        for name, parameter in trainable(model).items():
            parameter.data.copy_(tensors[f"weight/{name}"])
            kept = {
                key.removesuffix(f"/{name}"): value
                for key, value in tensors.items()
                if key.endswith(f"/{name}") and not key.startswith("weight/")
            }
            if kept:
                optimizer.state[parameter] = kept
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise LabError(
            f"The checkpoint in {place} is damaged or of another training: {reason(error)} Delete "
            "it to train from the start."
        ) from error
    return state


def begun(folder: Path) -> bool:
    """Whether a folder holds a checkpoint."""
    return any((folder / name).exists() for name in (CHECKPOINT, f"{CHECKPOINT}.old"))


def drop_checkpoint(folder: Path) -> None:
    """Remove all checkpoints of a training that is finished."""
    for name in (CHECKPOINT, f"{CHECKPOINT}.old", f"{CHECKPOINT}.part"):
        shutil.rmtree(folder / name, ignore_errors=True)
