"""A Lens from a name."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

from lab.engine.lens import Lens, lens_from
from lab.engine.weights import DEFAULT, check_room, find_weights, quiet_transformers, reason
from lab.errors import LabError

if TYPE_CHECKING:
    from pathlib import Path

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def load_lens(
    name: str = DEFAULT, *, device: str = "cpu", dtype: str = "float32", check: bool = True
) -> Lens:
    """A Lens around a model, ready to run.

    Args:
        name: ``smollm2-135m-instruct`` (the default, fetched and converted once), a hub id, a
            local Hugging Face folder, or a local ``.gguf`` file.
        device: a torch device, such as ``cpu`` or ``cuda``.
        dtype: ``float32``, or to save memory ``bfloat16`` or ``float16``. Small effects of single
            heads drown in the rounding of the last two.
        check: whether to compare packed with plain runs first (about a second); see
            `lab.engine.selfcheck`.

    Raises:
        LabError: one sentence on what is wrong (no such model, no network, broken or pickled
            file, wrong hash, unsupported architecture, too little memory) and what to do.

    Code from model repositories is never run.
    """
    if dtype not in DTYPES:
        raise LabError(f"Unknown dtype {dtype!r}: use one of {', '.join(DTYPES)}.")
    place = _device(device)
    weights = find_weights(name)
    check_room(weights.folder)
    model, tokenizer = _read(weights.folder, weights.title, DTYPES[dtype])
    lens = lens_from(
        model.to(place),
        tokenizer,
        name=weights.title,
        source=weights.source,
        sha256=weights.sha256,
        check=check,
    )
    return lens


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise LabError(
            f"The device {name!r} cannot be used here: {reason(error)} Use device='cpu'."
        ) from error
    return device


def _read(folder: Path, title: str, dtype: torch.dtype) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        with quiet_transformers(), contextlib.redirect_stderr(None):
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            model = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=dtype,
                attn_implementation="eager",
                use_safetensors=True,
                local_files_only=True,
            )
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise LabError(
            f"There is too little memory for {title}. Close other programs, load it "
            "with dtype='bfloat16', or take a smaller model."
        ) from error
    except Exception as error:
        raise LabError(
            f"transformers cannot load {title} from {folder}: {reason(error)} Models that need "
            "code of their own are not supported; otherwise the folder may lack a file."
        ) from error
    return model, tokenizer
