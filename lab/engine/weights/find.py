"""One way in: a model by its name, as a local folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.engine.weights.folder import check_folder, count_parameters, folder_hash
from lab.engine.weights.gguf import from_gguf
from lab.engine.weights.hub import from_hub
from lab.engine.weights.room import DTYPES, check_memory
from lab.engine.weights.wheel import PACKAGED, from_wheel
from lab.errors import LabError


@dataclass(frozen=True, slots=True)
class Weights:
    """A model that lies in a local folder in the Hugging Face layout.

    Attributes:
        folder: holds config.json, the tokenizer and safetensors files.
        title: what reports call the model.
        source: where it came from, in words.
        sha256: hash of the weights: of the wheel or the GGUF file where there is one, else of
            the safetensors files together.
        prompting: what is known of how it is best asked, as arguments of a Prompter.
    """

    folder: Path
    title: str
    source: str
    sha256: str
    prompting: Mapping[str, Any] = field(default_factory=dict)


def find_weights(name: str) -> Weights:
    """The local folder of a model, made if need be.

    Args:
        name: a key of PACKAGED, a folder in the Hugging Face layout, a ``.gguf`` file, or the id
            of a repository on the Hugging Face hub (``owner/model``).

    Raises:
        LabError: no such model, no network, a broken file, a wrong hash, or no room.
    """
    if name in PACKAGED:
        model = PACKAGED[name]
        source = f"wheel {model.requirement}"
        return Weights(from_wheel(model), model.title, source, model.sha256, model.prompting)
    path = Path(name).expanduser()
    if path.suffix.lower() == ".gguf":
        folder, digest = from_gguf(path)
        return Weights(folder, path.stem, f"GGUF file {path.name}", digest)
    if path.is_dir():
        return _of_folder(path, path.resolve().name, f"local folder {path.name}")
    if path.exists():
        raise LabError(
            f"{name} is a file, but no .gguf file. Give a .gguf file, a folder with "
            "config.json and safetensors, or a hub id such as owner/model."
        )
    folder = from_hub(name)
    return _of_folder(folder, name, f"hub {name} at {folder.name[:12]}")


def _of_folder(folder: Path, title: str, source: str) -> Weights:
    return Weights(folder, title, source, folder_hash(check_folder(folder)))


def check_room(weights: Weights, dtype: str) -> None:
    """Raise LabError if a model in this dtype will hardly fit into the free memory."""
    size = count_parameters(weights.folder) * DTYPES[dtype]
    check_memory(int(1.2 * size), weights.title)
