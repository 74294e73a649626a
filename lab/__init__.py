"""Role Lens: does a language model read, when it judges, what it read when it answered?

The names below are what a notebook needs. Each is loaded when it is first used, so that
``import lab`` is quick and no torch is imported before a Lens is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lab import teach as teach
    from lab.data import Example as Example
    from lab.data import load_examples as load_examples
    from lab.data import make_examples as make_examples
    from lab.engine.edits import ablated as ablated
    from lab.engine.edits import knockout as knockout
    from lab.engine.edits import scaled as scaled
    from lab.engine.edits import set_to as set_to
    from lab.engine.forward import Keep as Keep
    from lab.engine.lens import Lens as Lens
    from lab.engine.loading import load_lens as load_lens
    from lab.engine.packing import Branch as Branch
    from lab.errors import LabError as LabError
    from lab.explorer.entry import explore as explore
    from lab.explorer.explorer import Explorer as Explorer
    from lab.explorer.patterns import attention_pattern as attention_pattern
    from lab.explorer.selection import Selection as Selection
    from lab.explorer.switch.switches import switch_heads as switch_heads
    from lab.instruments.behaviour import answer as answer
    from lab.instruments.behaviour import judge as judge
    from lab.instruments.behaviour import measure_behaviour as measure_behaviour
    from lab.instruments.case import Case as Case
    from lab.instruments.case import open_case as open_case
    from lab.instruments.patching import contrasts as contrasts
    from lab.instruments.patching import measure_patching as measure_patching
    from lab.instruments.reading import measure_reading as measure_reading
    from lab.instruments.schemes import measure_schemes as measure_schemes
    from lab.instruments.summaries import headline as headline
    from lab.instruments.summaries import tabulate as tabulate
    from lab.instruments.summaries import transfer as transfer
    from lab.roles import SPANS as SPANS
    from lab.roles import Prompt as Prompt
    from lab.roles import Prompter as Prompter
    from lab.studies.beside import read_runs as read_runs
    from lab.studies.beside import run_beside as run_beside
    from lab.studies.recipe import Recipe as Recipe
    from lab.studies.store import read_study as read_study
    from lab.studies.study import run_study as run_study
    from lab.training.recipe import TrainingRecipe as TrainingRecipe
    from lab.training.train import train_adapter as train_adapter
    from lab.views import figures as figures
    from lab.views.report import write_report as write_report
    from lab.views.textmap import text_map as text_map

    __version__: str

_HOMES = {
    # What is asked, and how
    "Example": "lab.data",
    "load_examples": "lab.data",
    "make_examples": "lab.data",
    "Prompt": "lab.roles",
    "Prompter": "lab.roles",
    "SPANS": "lab.roles",
    # How it is run
    "Lens": "lab.engine.lens",
    "load_lens": "lab.engine.loading",
    "Branch": "lab.engine.packing",
    "Keep": "lab.engine.forward",
    "ablated": "lab.engine.edits",
    "knockout": "lab.engine.edits",
    "scaled": "lab.engine.edits",
    "set_to": "lab.engine.edits",
    # What is measured
    "Case": "lab.instruments.case",
    "open_case": "lab.instruments.case",
    "answer": "lab.instruments.behaviour",
    "judge": "lab.instruments.behaviour",
    "measure_behaviour": "lab.instruments.behaviour",
    "measure_reading": "lab.instruments.reading",
    "contrasts": "lab.instruments.patching",
    "measure_patching": "lab.instruments.patching",
    "measure_schemes": "lab.instruments.schemes",
    # How a role is trained
    "TrainingRecipe": "lab.training.recipe",
    "train_adapter": "lab.training.train",
    # Many examples
    "Recipe": "lab.studies.recipe",
    "run_study": "lab.studies.study",
    "read_study": "lab.studies.store",
    "run_beside": "lab.studies.beside",
    "read_runs": "lab.studies.beside",
    "transfer": "lab.instruments.summaries",
    "headline": "lab.instruments.summaries",
    "tabulate": "lab.instruments.summaries",
    # What is seen
    "explore": "lab.explorer.entry",
    "Explorer": "lab.explorer.explorer",
    "Selection": "lab.explorer.selection",
    "attention_pattern": "lab.explorer.patterns",
    "switch_heads": "lab.explorer.switch.switches",
    "figures": "lab.views",
    "text_map": "lab.views.textmap",
    "write_report": "lab.views.report",
    "LabError": "lab.errors",
    # What is learned
    "teach": "lab",
}
"""Public name to the module that holds it."""

_MODULES = ("figures", "transfer", "teach")
"""The names that stand for a module of functions."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    """A public name, imported on first use (PEP 562)."""
    if name == "__version__":
        value: Any = _version()
    elif name in _MODULES:
        value = import_module(f"{_HOMES[name]}.{name}")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'lab' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("rolelens")
    except PackageNotFoundError:
        return "not installed as a package"
