"""The recipe of an override study, as plain data."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.training.checks import check_numbers, check_texts, placed, sources

FORMAT = 1
"""Version of the stored results; a store of another version cannot be gone on with."""

LEAST_PAIRS, LEAST_CLUSTERS = 16, 15
"""Below so many usable pairs, or subjects, no heads are looked for: docs/override.md, on power."""


@dataclass(frozen=True, slots=True)
class OverrideRecipe:
    """What is run.

    Attributes:
        model: name, folder, GGUF file or hub id, see `lab.load_lens`.
        data: sources of conflicts, see `lab.data.conflicts.load_conflicts`; one or several.
        n: conflicts per source; None for all.
        pairs: how many usable pairs a contest uses at most; half of them are held out.
        random_sets: with how many random sets of heads the main effect is compared.
        seed: of the choice of conflicts, of pairs, of the split and of random sets.
        adapter: what is merged into the model, see `lab.load_lens`; None for nothing.
        begun: whether the generator's reply is begun, up to where the answer must come.
        least_pairs: a contest with fewer usable pairs gets no heads.
    """

    model: str
    data: Sequence[str] = ("builtin",)
    n: int | None = None
    pairs: int = 50
    random_sets: int = 100
    seed: int = 0
    adapter: str | None = None
    begun: bool = True
    least_pairs: int = LEAST_PAIRS

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", sources(self.data, "An override study"))
        check_texts(self, ("model", "adapter"))
        check_numbers(self, ("n", "pairs", "random_sets", "seed", "least_pairs"))
        if self.n is not None and self.n < 1:
            raise LabError(f"n is {self.n}: it must be at least 1.")
        if self.least_pairs < 4:
            raise LabError(
                f"least_pairs is {self.least_pairs}: it must be at least 4, half of them to choose "
                "heads on and half to report on."
            )
        if self.pairs < self.least_pairs:
            raise LabError(
                f"pairs is {self.pairs}, but a contest needs at least {self.least_pairs} to be "
                "searched for heads (least_pairs): raise the one or lower the other."
            )
        if self.random_sets < 1:
            raise LabError(f"random_sets is {self.random_sets}: it must be at least 1.")

    @property
    def least_clusters(self) -> int:
        """Below so many subjects a contest gets no heads."""
        return min(LEAST_CLUSTERS, self.least_pairs)

    def as_dict(self) -> dict[str, Any]:
        """The recipe as JSON-ready data."""
        return {"version": FORMAT, **json.loads(json.dumps(asdict(self)))}

    def command(self, folder: Path) -> str:
        """The shell command that runs this recipe into a folder."""
        parts = ["lab", "override", "--out", str(folder), "--model", self.model]
        for field in fields(self):
            value = getattr(self, field.name)
            name = f"--{field.name.replace('_', '-')}"
            if field.name == "data":
                parts += [part for spec in value for part in (name, spec)]
            elif field.name == "begun":
                parts += [] if value else ["--no-begun"]
            elif field.default is not MISSING and value != field.default:
                parts += [name, str(value)]
        return shlex.join(parts)

    def check_same(self, stored: Mapping[str, Any], folder: Path) -> None:
        """Raise LabError if a store was made by another recipe, naming what differs."""
        mine = self.as_dict()
        differ = [
            f"{name} was {stored.get(name)!r}, now {mine.get(name)!r}"
            for name in dict.fromkeys([*mine, *stored])
            if placed(stored).get(name) != placed(mine).get(name)
        ]
        if differ:
            raise LabError(
                f"{folder} holds an override study with another recipe: {'; '.join(differ)}. Run "
                "with the recipe that it was begun with, or choose another --out folder."
            )
