"""What the name of a source says: which file, which articles of it, and which other name is meant.

Nothing is read here but whether a file is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path

FILES = ("squad2", "drop", "hotpotqa", "musique", "jsonl")
"""Formats of files."""


def split_titles(rest: str) -> tuple[str, str]:
    """The file and the titles of ``FILE#TITLE,TITLE``.

    A file that is there is taken with all of its name, which may hold a #.
    """
    cuts = [len(rest), *(i for i in range(len(rest) - 1, 0, -1) if rest[i] == "#")]
    for cut in cuts:
        if Path(rest[:cut]).expanduser().is_file():
            return rest[:cut], rest[cut + 1 :]
    path, _, titles = rest.partition("#")
    return path, titles


def match_titles(text: str, present: Collection[str]) -> tuple[list[str], list[str]]:
    """The titles that a list with commas names, and what of it names none.

    A title may hold commas itself: the longest one that is there is taken.
    """
    parts, found, unknown = text.split(","), [], []
    while parts:
        for size in range(len(parts), 0, -1):
            title = ",".join(parts[:size]).strip()
            if title in present:
                found.append(title)
                break
        else:
            size = 1
            unknown.append(parts[0].strip())
        parts = parts[size:]
    return found, unknown


def same_source(spec: str) -> str:
    """A source in one spelling, whichever way its file is named."""
    source, _, rest = spec.strip().partition(":")
    if source in FILES and rest and rest != "hub" and not rest.startswith("hub/"):
        path, titles = (rest, "") if source == "jsonl" else split_titles(rest)
        return f"{source}:{os.path.realpath(Path(path).expanduser())}#{titles}"
    if source not in FILES and spec.endswith(".jsonl"):
        return same_source(f"jsonl:{spec.strip()}")
    return spec.strip()


def same_place(name: str) -> str:
    """A file or folder in one spelling; what is no file (a hub id, a plain name) as it is."""
    place = Path(name).expanduser()
    return os.path.realpath(place) if place.exists() else name


def misspelt(spec: str, known: Collection[str]) -> str:
    """A sentence on the format that a source's name begins with, if that is none; else empty."""
    source, colon, rest = spec.partition(":")
    # A single letter is a drive, and what holds a slash is a path.
    if not colon or not re.fullmatch(r"\w{2,}", source) or source in known or Path(spec).exists():
        return ""
    near = get_close_matches(source.lower(), known, n=1)
    meant = f" Did you mean {near[0]}:{rest}?" if near else ""
    return f"There is no format {source!r}.{meant}"
