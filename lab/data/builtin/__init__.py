"""The built-in set: 96 invented questions in four families, so that nothing is known by heart."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.resources import as_file, files

from lab.data.examples import Examples
from lab.data.jsonl import read as read_jsonl

FAMILIES = ("extract", "arithmetic", "bridge", "chain")


def read(families: tuple[str, ...] = FAMILIES) -> Examples:
    """The built-in examples of the named families, in order."""
    with ExitStack() as stack:
        paths = [
            stack.enter_context(as_file(files(__name__) / f"{family}.jsonl")) for family in families
        ]
        return Examples.gather(
            item for path in paths for item in read_jsonl(path, dataset="builtin")
        )
