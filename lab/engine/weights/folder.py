"""Model folders in the Hugging Face layout: what makes one whole, and its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

from lab.errors import LabError


def check_folder(folder: Path) -> list[Path]:
    """The safetensors files of a model folder; LabError if it lacks something or is damaged."""
    if not (folder / "config.json").is_file():
        raise LabError(f"{folder} has no config.json, so it is not a Hugging Face model folder.")
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        pickles = [p.name for p in (*folder.glob("*.bin"), *folder.glob("*.pt"))]
        found = f"only {pickles[0]}, a pickle, which is never loaded" if pickles else "no weights"
        raise LabError(
            f"{folder} has no .safetensors file ({found}). Save the model once with "
            "save_pretrained(..., safe_serialization=True)."
        )
    for file in files:
        _check_safetensors(file)
    _check_shards(folder, files)
    return files


def is_whole(folder: Path) -> bool:
    """Whether a cached folder holds a model whose weights can be opened."""
    files = list(folder.glob("*.safetensors"))
    if not files or not (folder / "config.json").is_file():
        return False
    try:
        for file in files:
            _check_safetensors(file)
    except LabError:
        return False
    return True


def _check_safetensors(file: Path) -> None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy"):
            pass
    except (SafetensorError, OSError) as error:
        raise LabError(
            f"{file} is broken or cut off ({error}). Copy or download it again."
        ) from error


def _check_shards(folder: Path, files: Sequence[Path]) -> None:
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return
    wanted = set(read_config(index).get("weight_map", {}).values())
    missing = sorted(wanted - {file.name for file in files})
    if missing:
        raise LabError(
            f"{folder} lacks {missing[0]}{f' and {len(missing) - 1} more' * (len(missing) > 1)}, "
            "which its index names. Copy or download the missing files."
        )


def read_config(file: Path) -> dict[str, Any]:
    """The JSON object in a model folder's file, or a LabError that names it."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(
            f"{file} is not readable JSON ({error}). Copy or download it again."
        ) from error
    if not isinstance(data, dict):
        raise LabError(f"{file} does not hold a JSON object. Copy or download it again.")
    return data


def count_parameters(folder: Path) -> int:
    """How many weights the safetensors files of a folder hold, from their headers."""
    from safetensors import safe_open

    count = 0
    for file in folder.glob("*.safetensors"):
        with safe_open(file, framework="numpy") as tensors:
            names = list(tensors.keys())
            count += sum(prod(tensors.get_slice(name).get_shape()) for name in names)
    return count


def folder_hash(files: Sequence[Path]) -> str:
    """SHA-256 of a model's weights: of its one file, or of its files' names and hashes."""
    if len(files) == 1:
        return sha256(files[0])
    total = hashlib.sha256()
    for file in files:
        total.update(f"{file.name} {sha256(file)}\n".encode())
    return total.hexdigest()


def sha256(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
