"""Notebooks that run in a process of their own, while other tests use the other cores.

As a script it runs the notebooks that it is given, one after the other and each in a folder of its
own, and leaves each beside its folder when it is done.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest

from lab.engine.weights import DEFAULT, find_weights
from lab.errors import LabError
from lab.teach.gallery import execute, find_lessons

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LESSONS = find_lessons(NOTEBOOKS)
NAMES = [lesson.name for lesson in LESSONS]
EXAMPLES = "3"
"""Questions in the little study of each notebook, which takes eight by itself. With fewer there is
none that the passage answers, and nothing to draw."""

LOG, NO_MODEL = "log.txt", "no-model.txt"


@dataclass(frozen=True)
class Ran:
    """A notebook and its solutions after they ran, and the folder that they ran in."""

    notebook: nbformat.NotebookNode
    solutions: nbformat.NotebookNode
    folder: Path


@dataclass(frozen=True)
class Running:
    """Notebooks that run in the background.

    Attributes:
        folder: where they run and are left.
        process: what runs them.
    """

    folder: Path
    process: subprocess.Popen[bytes]

    def wait(self, name: str) -> Ran:
        """A notebook as soon as it has run; the test fails if it did not run through."""
        file = self.folder / f"{name}.json"
        while self.process.poll() is None and not file.exists():
            time.sleep(0.2)
        if (note := self.folder / NO_MODEL).exists():
            pytest.skip(f"the default model cannot be had: {note.read_text(encoding='utf-8')}")
        assert file.exists(), (self.folder / LOG).read_text(encoding="utf-8")
        done = json.loads(file.read_text(encoding="utf-8"))
        assert not done["error"], done["error"]
        parts = (nbformat.from_dict(done[part]) for part in ("notebook", "solutions"))
        return Ran(*parts, self.folder / name)

    def stop(self) -> None:
        """End them; a kernel ends when it finds that what started it is gone."""
        self.process.kill()
        self.process.wait()


def start(names: Sequence[str], folder: Path) -> Running:
    """Begin to run notebooks, in this order."""
    package = str(NOTEBOOKS.parent)
    environment = {**os.environ, "LAB_NOTEBOOK_N": EXAMPLES, "PYTHONPATH": package}
    with open(folder / LOG, "wb") as log:
        command = [sys.executable, __file__, str(folder), *names]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    return Running(folder, process)


def run_all(folder: Path, names: Sequence[str]) -> None:
    """Run notebooks, each in its folder, and leave each as JSON, or say why there is no model."""
    try:
        find_weights(DEFAULT)
    except LabError as error:
        (folder / NO_MODEL).write_text(str(error), encoding="utf-8")
        return
    for lesson in (lesson for lesson in LESSONS if lesson.name in names):
        place = folder / lesson.name
        place.mkdir()
        done = execute(lesson, place, timeout=600)
        found: dict[str, Any] = {
            "error": done.error, "notebook": done.notebook, "solutions": done.solutions,
        }  # fmt: skip
        partial = place.with_suffix(".partial")
        partial.write_text(json.dumps(found), encoding="utf-8")
        partial.rename(place.with_suffix(".json"))  # whole from the first moment it is seen


if __name__ == "__main__":
    run_all(Path(sys.argv[1]), sys.argv[2:])
