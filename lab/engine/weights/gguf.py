"""GGUF files, converted once to float32 safetensors."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

from lab.engine.weights.cache import cache_folder, new_folder
from lab.engine.weights.folder import is_whole, sha256
from lab.engine.weights.quiet import quiet_transformers, reason
from lab.engine.weights.room import check_disk, check_memory
from lab.errors import LabError

log = logging.getLogger("lab")


def from_gguf(path: Path) -> tuple[Path, str]:
    """The folder into which a GGUF file was converted, now or earlier, and the file's hash."""
    if not path.is_file():
        raise LabError(f"There is no file {path}.")
    try:
        with path.open("rb") as file:
            begins = file.read(4)
        digest = sha256(path)
    except OSError as error:
        raise LabError(f"{path} cannot be read: {error.strerror or error}.") from error
    if begins != b"GGUF":
        raise LabError(
            f"{path.name} does not begin as a GGUF file does: it is broken or something else. "
            "Download it again."
        )
    folder = cache_folder() / "models" / f"{path.stem}-{digest[:12]}"
    if not is_whole(folder):
        with new_folder(folder) as work:
            convert_gguf(path, work / "model")
    return folder, digest


def convert_gguf(path: Path, folder: Path) -> None:
    """Write the model of a GGUF file into a folder as float32 safetensors with its tokenizer.

    Dequantised values fit float32 exactly, not half precision.

    Raises:
        LabError: the file is truncated, transformers cannot read its architecture, or memory or
            disk are too small.
    """
    log.info("Converting %s, once.", path.name)
    try:
        _check_room(path, folder.parent)
        _convert(path, folder)
    except (LabError, MemoryError):
        raise
    except Exception as error:
        raise LabError(
            f"{path.name} could not be converted: {reason(error)} If its architecture is one that "
            "transformers cannot read from GGUF, use the model's hub id or Hugging Face folder."
        ) from error


def _convert(path: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place: dict[str, Any] = {
        "gguf_file": path.name, "local_files_only": True, "trust_remote_code": False
    }  # fmt: skip
    with quiet_transformers(bars=sys.stderr.isatty()):
        tokenizer = AutoTokenizer.from_pretrained(path.parent, **place)
        model = AutoModelForCausalLM.from_pretrained(path.parent, dtype=torch.float32, **place)
        # Marked as quantised, though it is not any more, the model could not be saved.
        for owner in (model, model.config):
            for mark in ("quantization_config", "hf_quantizer", "is_quantized"):
                if hasattr(owner, mark):
                    delattr(owner, mark)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _check_room(path: Path, target: Path) -> None:
    """Refuse a file that is cut off, or that memory or disk cannot hold as float32."""
    from gguf import GGUFReader

    try:
        tensors = GGUFReader(path).tensors
    except Exception as error:  # numpy's, on reading beyond the end, of many kinds
        raise LabError(
            f"{path.name} is cut off or broken: what its header lists is not all there "
            f"({path.stat().st_size:,} bytes). Download it again."
        ) from error
    size = 4 * sum(int(tensor.n_elements) for tensor in tensors)
    check_memory(int(1.3 * size), path.name)
    check_disk(size, path.name, target)
