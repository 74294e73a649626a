"""A recipe: everything that decides what a study's arrays hold, as plain data."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from lab.engine.weights import DTYPES
from lab.errors import LabError
from lab.roles import DEMONSTRATIONS, LAYOUTS, VERDICT_WORDS
from lab.training.checks import (
    check_numbers,
    check_texts,
    placed,
    sources,
    two_verdict_words,
)

FORMAT = 2
"""Version of the stored arrays; a store of another version cannot be gone on with.

It can still be read and reported, since every store names its own spans. 1 had no span for
demonstrations.
"""

CHOICES = {
    "layout": tuple(LAYOUTS),
    "format": ("auto", "chat", "plain"),
    "too_long": ("drop", "error"),
    "dtype": tuple(DTYPES),
}
"""The fields of a recipe that take one of a few words."""

PROMPTING: dict[str, Any] = {
    "layout": "instruction_first",
    "format": "auto",
    "verdict_words": VERDICT_WORDS,
    "demonstrations": 0,
}
"""How prompts are written where neither the recipe nor what is known of the model says so."""

COUNTED = ("patching", "reading", "controls", "schemes")
"""What may be measured for some of the examples only; the rest always is."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is run.

    Attributes:
        model: name, folder, GGUF file or hub id, see `lab.load_lens`.
        data: sources, see `lab.data.load_examples`; one as a plain text, or several.
        n: examples per source; None for all.
        seed: of the choice of examples and wrong candidates.
        layout: ``instruction_first`` or ``context_first``. This, the next two and demonstrations
            are, where they are None, what the adapter was trained with, or what is known to suit
            the model, or else what PROMPTING says.
        format: ``auto``, ``chat`` or ``plain``.
        verdict_words: the words for accepting and rejecting.
        max_tokens: the longest prompt; None for what the model was made for.
        too_long: ``drop`` leaves passages without evidence out, ``error`` stops.
        patching: for how many examples of each source patches are run; None for all.
        dtype: ``float32``, ``bfloat16`` or ``float16``.
        demonstrations: how many worked questions stand before each question.
        adapter: what is merged into the model, see `lab.load_lens`; None for nothing.
        reading: for how many examples of each source attention is measured; None for all.
        controls: for how many the verdicts under control prompts are; None for all.
        schemes: for how many the judge is tried out of its scheme, see `lab.instruments.schemes`.
    """

    model: str
    data: Sequence[str]
    n: int | None = None
    seed: int = 0
    layout: Literal["instruction_first", "context_first"] | None = None
    format: Literal["auto", "chat", "plain"] | None = None
    verdict_words: tuple[str, str] | None = None
    max_tokens: int | None = None
    too_long: Literal["drop", "error"] = "drop"
    patching: int | None = None
    dtype: str = "float32"
    demonstrations: int | None = None
    adapter: str | None = None
    reading: int | None = None
    controls: int | None = None
    schemes: int | None = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", sources(self.data, "A study"))
        check_texts(self, ("model", "adapter"))
        check_numbers(self, ("n", "seed", "max_tokens", "demonstrations", *COUNTED))
        for name, allowed in CHOICES.items():
            value = getattr(self, name)
            if value not in allowed and not (value is None and name in PROMPTING):
                raise LabError(
                    f"{name} is {getattr(self, name)!r}: it must be one of {', '.join(allowed)}."
                )
        if self.verdict_words is not None:
            object.__setattr__(self, "verdict_words", two_verdict_words(self.verdict_words))
        for name in ("n", "max_tokens"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise LabError(f"{name} is {value}: it must be at least 1.")
        for name in COUNTED:
            value = getattr(self, name)
            if value is not None and value < 0:
                raise LabError(f"{name} is {value}: it must be 0 or more.")
        if self.demonstrations not in (None, *range(len(DEMONSTRATIONS) + 1)):
            raise LabError(
                f"demonstrations is {self.demonstrations}: it must be from 0 to "
                f"{len(DEMONSTRATIONS)}."
            )

    def prompting(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """How prompts are written: as the recipe says, else as ``told``, else as usual."""
        return {
            name: told.get(name, usual) if getattr(self, name) is None else getattr(self, name)
            for name, usual in PROMPTING.items()
        }

    def as_dict(self) -> dict[str, Any]:
        """The recipe as JSON-ready data."""
        return {"version": FORMAT, **json.loads(json.dumps(asdict(self)))}

    def command(self, folder: Path) -> str:
        """The shell command that runs this recipe into a folder."""
        parts = ["lab", "run", "--out", str(folder), "--model", self.model]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "data":
                parts += [part for spec in value for part in ("--data", spec)]
            elif field.default is not MISSING and value != field.default:
                text = ",".join(value) if isinstance(value, tuple) else str(value)
                parts += [f"--{field.name.replace('_', '-')}", text]
        return shlex.join(parts)

    def check_same(self, stored: dict[str, Any], folder: Path) -> None:
        """Raise LabError if a store was made by another recipe, naming what differs."""
        mine = self.as_dict()
        if placed(stored) == placed(mine):
            return
        if not stored:
            raise LabError(
                f"The recipe in {folder} is empty or damaged: choose another --out folder."
            )
        known = ["version", *(f.name for f in fields(self))]
        differ = [
            f"{name} was {stored.get(name)!r}, now {mine.get(name)!r}"
            for name in dict.fromkeys([*known, *stored])
            if placed(stored).get(name) != placed(mine).get(name)
        ]
        raise LabError(
            f"{folder} holds a study with another recipe: {'; '.join(differ)}. Run with the "
            "recipe that it was begun with, or choose another --out folder."
        )
