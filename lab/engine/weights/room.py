"""Whether memory and disk are large enough."""

from __future__ import annotations

import shutil
from pathlib import Path

from lab.errors import LabError

DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2}
"""The types that weights may have in memory, and their bytes."""


def check_memory(needed: int, name: str) -> None:
    """Raise LabError if ``needed`` bytes are more than the memory that is free."""
    import psutil

    free = psutil.virtual_memory().available
    if needed > free:
        raise LabError(
            f"{name} needs about {needed / 1e9:.1f} GB of memory, but only {free / 1e9:.1f} GB is "
            "free. Close other programs, load it with dtype='bfloat16', or take a smaller model."
        )


def check_disk(needed: int, name: str, folder: Path) -> None:
    """Raise LabError if ``needed`` bytes do not fit on the disk of ``folder``."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise LabError(
            f"{name} needs {needed / 1e9:.1f} GB of disk once converted, but {folder} has only "
            f"{free / 1e9:.1f} GB. Make room, or set ROLELENS_CACHE to another disk."
        )
