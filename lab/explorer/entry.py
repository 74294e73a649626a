"""The one way into an explorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from lab.data import Example
from lab.errors import LabError
from lab.explorer.explorer import Explorer
from lab.explorer.sources import LiveSource, Source, StudySource

if TYPE_CHECKING:
    from lab.engine.lens import Lens
    from lab.roles import Prompter

Study = tuple[xr.Dataset, Mapping[str, Any]]


def explore(
    subject: str | Path | xr.Dataset | Study | Lens,
    about: Mapping[str, Any] | Sequence[Example] | Example | None = None,
    prompter: Prompter | None = None,
    *,
    lens: Lens | None = None,
    provenance: Mapping[str, Any] | None = None,
    examples: Sequence[Example] | Example | None = None,
) -> Explorer:
    """An explorer of a study, or of examples on a model.

    Two forms:

    - ``explore(study)``, where ``study`` is a folder, what `lab.read_study` or `lab.run_study`
      gives, or its Dataset with the provenance as second argument. All that is stored is shown.
      With ``lens=``, the model of the study, or after ``explorer.load()``, examples can be
      patched, and those whose attention was not stored can be read.
    - ``explore(lens, examples)``: the examples are listed at once; the first is read now, each
      other one when it is chosen. ``prompter`` says how they are asked, by default as
      `lab.open_case` does.

    As the last line of a notebook's cell the result shows its views.

    Args:
        subject: a study, or a lens.
        about: for a Dataset its provenance, for a lens the example or examples (also as
            ``provenance=`` and ``examples=``).
        prompter: for a lens, how it is asked.
        lens: for a study, its model.

    Raises:
        LabError: nothing to explore, no study in the folder, or another model than the study's.
    """
    about = about if about is not None else examples if examples is not None else provenance
    if isinstance(subject, str | Path | xr.Dataset | tuple):
        if prompter is not None:
            raise LabError(
                "A study's recipe says how it is asked, so it takes no prompter. To ask otherwise, "
                "explore the examples: lab.explore(lens, examples, prompter)."
            )
        return Explorer(_study(subject, about, lens))
    return Explorer(_live(subject, about, prompter, lens))


def _study(subject: str | Path | xr.Dataset | Study, about: Any, lens: Lens | None) -> Source:
    if about is not None and not isinstance(about, Mapping):
        raise LabError(
            "Examples are explored on a model: lab.explore(lens, examples). A study needs no more "
            "than its folder."
        )
    if isinstance(subject, str | Path):
        from lab.studies.store import read_study

        dataset, stored = read_study(subject)
    elif isinstance(subject, xr.Dataset):
        dataset, stored = subject, {}
    else:
        if len(subject) != 2 or not isinstance(subject[0], xr.Dataset):
            raise LabError(
                "A study as a pair is (dataset, provenance), as lab.read_study gives it."
            )
        dataset, stored = subject[0], dict(subject[1] or {})
    return StudySource(dataset, about if about is not None else stored, lens)


def _live(subject: Any, about: Any, prompter: Prompter | None, lens: Lens | None) -> Source:
    from lab.engine.lens import Lens

    if not isinstance(subject, Lens):
        raise LabError(
            f"{type(subject).__name__} cannot be explored: give a study (its folder, or what "
            "lab.read_study gives) or a lens and examples."
        )
    if lens is not None and lens is not subject:
        raise LabError("Two models were given: use lab.explore(lens, examples).")
    if isinstance(about, Example):
        about = [about]
    if not isinstance(about, Sequence) or not all(isinstance(e, Example) for e in about):
        raise LabError(
            "A lens is explored with examples: lab.explore(lens, lab.load_examples('builtin'))."
        )
    return LiveSource(subject, about, prompter)
