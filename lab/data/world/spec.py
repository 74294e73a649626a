"""The world as a source of examples, named ``world:SPLIT/SEED/N``."""

from __future__ import annotations

import re

from lab.data.examples import Examples
from lab.data.world import make_examples
from lab.errors import LabError

_SPEC = re.compile(r"(train|test)/(\d{1,9})/([1-9]\d{0,6})")


def read_world(rest: str) -> Examples:
    """The examples that ``SPLIT/SEED/N`` names; LabError for anything else."""
    match = _SPEC.fullmatch(rest)
    if match is None:
        raise LabError(
            f"Unknown world {rest!r}; use world:train/SEED/N or world:test/SEED/N, with whole "
            "numbers for the seed and for how many questions, for instance world:train/0/1000."
        )
    split, seed, n = match.groups()
    return Examples.gather(
        make_examples(int(n), int(seed), "train" if split == "train" else "test")
    )
