"""What an unbroken study of a tiny model stores, to compare others with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lab.engine.lens import Lens
from lab.studies.recipe import Recipe
from lab.studies.store import ARRAYS


@dataclass(frozen=True)
class Unbroken:
    """A recipe, its model, and the folder of its finished study (not to be changed)."""

    recipe: Recipe
    lens: Lens
    folder: Path

    def same_arrays(self, folder: Path) -> bool:
        """Whether a folder's arrays have the same files with the same bytes."""
        return stored_bytes(folder) == stored_bytes(self.folder)


def stored_bytes(folder: Path) -> dict[str, bytes]:
    root = folder / ARRAYS
    return {str(f.relative_to(root)): f.read_bytes() for f in root.rglob("*") if f.is_file()}
