"""What an explorer looks at: a stored study, or examples that are read when they are chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import xarray as xr

from lab.data import Example, Examples
from lab.errors import LabError
from lab.explorer import recall
from lab.explorer.rows import as_dataset, put
from lab.instruments.behaviour import Behaviour
from lab.instruments.case import Case, open_case
from lab.instruments.summaries import tables as T
from lab.studies.plan import Plan, Planned, make_plan
from lab.studies.provenance import model_facts, versions
from lab.studies.schema import OPTIONAL, SHOWN_ROLES

if TYPE_CHECKING:
    from lab.engine.lens import Lens
    from lab.roles import Prompter

READING = frozenset({"reading"})
"""What is measured of an example that is read on its own, besides its behaviour."""


class Source(Protocol):
    """Examples, what is stored of them, and how to run them again.

    Attributes:
        lens: the model, or None where nothing can be run.
        provenance: how it was made, as a study says it.
    """

    lens: Lens | None
    provenance: Mapping[str, Any]

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all examples, in order."""

    @property
    def measured(self) -> xr.Dataset:
        """The arrays of the examples that were measured, one or more."""

    @property
    def asked(self) -> xr.Dataset:
        """What was asked of all examples, and what is known of each without its attention."""

    def is_read(self, example: str) -> bool:
        """Whether the tokens and attention of an example are there."""

    def read(self, example: str) -> None:
        """Measure an example's attention and keep it; LabError where that is not possible."""

    def case(self, example: str) -> Case:
        """An example opened on the model; LabError where that is not possible."""

    def behaviour(self, example: str) -> Behaviour:
        """What an example's runs showed; LabError where it was never run."""

    def use(self, lens: Lens) -> None:
        """Run on this model from now on; LabError if it is another one than the examples'."""


class StudySource:
    """A study's arrays, and its model if there is one."""

    def __init__(
        self, dataset: xr.Dataset, provenance: Mapping[str, Any], lens: Lens | None = None
    ) -> None:
        if not dataset.sizes.get("example"):
            raise LabError("This study holds no example, so there is nothing to explore.")
        self._dataset = dataset
        self._own = False
        self._plan: Plan | None = None
        self.provenance = provenance
        self.lens: Lens | None = None
        if lens is not None:
            self.use(lens)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(T.labels(self._dataset, "example"))

    @property
    def measured(self) -> xr.Dataset:
        return self._dataset

    @property
    def asked(self) -> xr.Dataset:
        return self._dataset

    def is_read(self, example: str) -> bool:
        one = self._one(example)
        return "attention" in one and all(recall.tokens(one, role) for role in SHOWN_ROLES)

    def read(self, example: str) -> None:
        if self.is_read(example):
            return
        case = self.case(example)
        lacking = [name for name in OPTIONAL["reading"] if name not in self._dataset]
        if lacking:
            raise LabError(
                f"The arrays of this study have no {lacking[0]}, so what is read now cannot be "
                "put beside them: explore the examples themselves, lab.explore(lens, examples)."
            )
        item = Planned(case.example, case.other, dict(case.rungs), case.changed, READING)
        values = _measure(case, item)
        if not self._own:
            # The user's arrays stay as they are.
            copied = {name: self._dataset[name].copy(deep=True) for name in OPTIONAL["reading"]}
            self._dataset, self._own = self._dataset.assign(copied), True
        index = self.ids.index(example)
        put(self._dataset, index, {name: values[name] for name in OPTIONAL["reading"]})

    def case(self, example: str) -> Case:
        lens = _live(self.lens)
        if self._plan is None:
            self._plan = make_plan(recall.recipe(self.provenance), lens)
        if example not in self._plan.ids:
            raise LabError(
                f"The recipe of this study no longer gives the example {example!r}: its data has "
                "changed. Bring the old files back, or run the study anew."
            )
        case = self._plan.case(self._plan.ids.index(example), lens)
        self._check_same(example, case)
        return case

    def behaviour(self, example: str) -> Behaviour:
        one = self._one(example)
        if "answer_raw" not in one or "candidate_given" not in one:
            raise LabError("The arrays of this study do not hold the model's answers.")
        return recall.behaviour(one)

    def use(self, lens: Lens) -> None:
        stored = (self.provenance.get("model") or {}).get("sha256", lens.sha256)
        if stored != lens.sha256:
            name = (self.provenance.get("model") or {}).get("name", "another model")
            raise LabError(
                f"This study was made with {name} (weights {stored[:12]}), but the lens holds "
                f"{lens.name} (weights {lens.sha256[:12] or 'unknown'}). Load the study's own "
                "model with explorer.load()."
            )
        self.lens, self._plan = lens, None

    def _one(self, example: str) -> xr.Dataset:
        return self._dataset.isel(example=self.ids.index(example))

    def _check_same(self, example: str, case: Case) -> None:
        """A prompt that reads otherwise than the stored one would be patched unnoticed."""
        one = self._one(example)
        stored = recall.tokens(one, "generator")
        same = (
            tuple(text for text, _ in stored) == case.prompt("generator").tokens()
            if stored
            else str(one["question"].item()) == case.example.question
        )
        if not same:
            raise LabError(
                f"The example {example!r} is asked otherwise now than when the study was run: its "
                "data, or the prompts of this version, have changed. Run the study anew."
            )


class LiveSource:
    """Examples on a model, each measured when it is first read."""

    def __init__(
        self, lens: Lens, examples: Sequence[Example], prompter: Prompter | None = None
    ) -> None:
        if not examples:
            raise LabError("There is no example to explore: give at least one.")
        self._examples = {example.id: example for example in examples}
        if len(self._examples) < len(examples):
            ids = [example.id for example in examples]
            doubled = next(name for name in ids if ids.count(name) > 1)
            raise LabError(f"The id {doubled!r} occurs twice: give each example an id of its own.")
        self._pool = examples.pool if isinstance(examples, Examples) else tuple(examples)
        self._prompter = prompter
        self._cases: dict[str, Case] = {}
        self._rows: dict[str, dict[str, Any]] = {}
        self._measured: xr.Dataset | None = None
        self.lens: Lens | None = lens
        self.provenance: Mapping[str, Any] = _made_here(lens, tuple(self._examples.values()))

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._examples)

    @property
    def measured(self) -> xr.Dataset:
        if self._measured is None:
            if not self._rows:
                raise LabError("No example has been read yet: choose one with explorer.select.")
            self._measured = as_dataset({i: self._rows[i] for i in self.ids if i in self._rows})
        return self._measured

    @property
    def asked(self) -> xr.Dataset:
        names = ("dataset", "family", "cluster", "question", "gold", "answerable")
        examples = self._examples.values()
        columns = {
            name: ("example", np.array([getattr(e, name) for e in examples], dtype=object))
            for name in names
        }
        return xr.Dataset(columns, {"example": np.array(self.ids, dtype=object)})

    def is_read(self, example: str) -> bool:
        return example in self._rows

    def read(self, example: str) -> None:
        if not self.is_read(example):
            case = self.case(example)
            item = Planned(case.example, case.other, dict(case.rungs), case.changed, READING)
            self._rows[example] = _measure(case, item, SHOWN_ROLES)
            self._measured = None

    def case(self, example: str) -> Case:
        if example not in self._cases:
            self._cases[example] = open_case(
                _live(self.lens), self._examples[example], self._pool, prompter=self._prompter
            )
        return self._cases[example]

    def behaviour(self, example: str) -> Behaviour:
        self.read(example)
        return recall.behaviour(self.measured.sel(example=example))

    def use(self, lens: Lens) -> None:
        if lens is not self.lens:
            raise LabError("These examples are explored on another lens: call lab.explore anew.")


def _live(lens: Lens | None) -> Lens:
    if lens is None:
        raise LabError(
            "No model is loaded, so nothing can be run: call explorer.load(), or give a lens to "
            "lab.explore(study, lens=lens)."
        )
    return lens


def _measure(case: Case, item: Planned, *roles: Sequence[str]) -> dict[str, Any]:
    from lab.studies.study import measure  # which loads torch: stored studies need none

    return measure(case, item, *roles)


def _made_here(lens: Lens, examples: Sequence[Example]) -> dict[str, Any]:
    """What an exported page says of how it was made."""
    sources = list(dict.fromkeys(example.dataset for example in examples))
    return {
        "title": f"{lens.name} on {', '.join(sources)}",
        "model": model_facts(lens),
        "notes": list(lens.notes),
        "versions": versions(),
    }
