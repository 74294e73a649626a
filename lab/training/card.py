"""The model card of an adapter: ``README.md`` in its folder, written from what is stored there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2

from lab.engine.adapters import ABOUT, SHIPPED
from lab.engine.weights import DEFAULT, PACKAGED, PackagedModel
from lab.errors import LabError
from lab.training.lessons import without_folders
from lab.training.recipe import TrainingRecipe

CARD = "README.md"

RESULTS = "results.json"
"""An optional file in the folder: a list of tables, each ``{"title", "columns", "rows"}``, and,
where something must be said of it, ``"note"``."""

_TEMPLATE = "card.md.j2"

HUB_IDS = {DEFAULT: "HuggingFaceTB/SmolLM2-135M-Instruct"}
"""What packaged models are called on the Hugging Face hub."""

TAUGHT = {
    "generator": "to answer questions from passages, and to say so where a passage does not answer",
    "evaluator": "to judge whether a candidate answer is right, and to end its turn after that",
    "both": "to answer questions from passages, and to judge whether a candidate answer is right",
    "verdict-only": "to choose between the two verdict words, and nothing else: a control that "
    "touches the score channel alone",
}
"""What each role learns, in words that follow "It was trained"."""

CURVES = {
    "step": "step",
    "answers_exact": "exact",
    "answer_loss": "answer loss",
    "auroc": "AUROC",
    "right_above_wrong": "right above wrong",
    "accepted_right": "right accepted",
    "accepted_wrong": "wrong accepted",
    "label_mass": "label mass",
}
"""The columns of the learning curves, and their headings."""


def write_card(folder: Path) -> Path:
    """The path of the card, written anew from ``rolelens.json`` and, if there, ``results.json``.

    Raises:
        LabError: one of the two is missing where it must be, or damaged, or the folder cannot be
            written.
    """
    about = _read(folder / ABOUT)
    results = _read(folder / RESULTS) if (folder / RESULTS).exists() else []
    try:
        text = _render(folder.resolve().name, about, _tables(results))
    except (KeyError, TypeError, AttributeError, ValueError, jinja2.UndefinedError) as error:
        raise LabError(
            f"No model card can be written from {folder}: {ABOUT} or {RESULTS} lacks a part, or is "
            f"damaged ({error}). Train the adapter again, or mend the file."
        ) from error
    try:
        (folder / CARD).write_text(text, encoding="utf-8")
    except OSError as error:
        raise LabError(f"{folder} cannot be written ({error.strerror or error}).") from error
    return folder / CARD


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(
            f"{path} cannot be read ({error}). A card needs the folder of a finished adapter."
        ) from error


def _render(name: str, about: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=False,  # Markdown, not HTML; `cell` guards the tables
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["cell"] = _cell
    recipe = TrainingRecipe.from_dict(about["recipe"])
    packaged = PACKAGED.get(recipe.model)
    return environment.get_template(_TEMPLATE).render(
        name=name,
        about=about,
        recipe=recipe,
        settings=_settings(recipe),
        command=f"OMP_NUM_THREADS={about['threads']} {recipe.command(_own(name))}",
        shipped=SHIPPED,
        taught=TAUGHT[recipe.role],
        packaged=packaged,
        base=_base(recipe, about, packaged),
        sources=[_source(entry) for entry in about["data"]],
        share_alike=any("BY-SA" in entry["licence"] for entry in about["data"]),
        headings=list(CURVES.values()),
        curve=[[point[key] for key in CURVES] for point in about["curve"]],
        tried=about["curve"][-1]["questions"] if about["curve"] else 0,
        losses=_ends(about["losses"]),
        results=results,
    )


def _base(recipe: TrainingRecipe, about: Mapping[str, Any], packaged: PackagedModel | None) -> str:
    """What the base model is called in public: its id on the hub, as far as it has one."""
    return HUB_IDS[recipe.model] if packaged else str(about["model"]["title"])


def _own(name: str) -> str:
    """A folder's name that stands for no adapter of the package."""
    return f"my-{name}" if name in SHIPPED else name


def _settings(recipe: TrainingRecipe) -> dict[str, str]:
    """The recipe without what the card says elsewhere, as words."""
    elsewhere = {"role", "model", "data", "seed"}
    shown = {"n": "n (questions per source)", "dev_questions": "dev questions (aimed at)"}
    return {
        shown.get(key, key.replace("_", " ")): _word(value)
        for key, value in recipe.as_dict().items()
        if key not in elsewhere
    }


def _word(value: object) -> str:
    if value is None:
        return "all"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _source(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What was learned from, without folders of the machine that it was learned on."""
    spec = str(entry["spec"])
    return {**entry, "kind": spec.partition(":")[0], "title": without_folders(spec)}


def _ends(losses: Sequence[float]) -> dict[str, float]:
    """The mean loss of the first and of the last tenth of the steps that taught something."""
    taught = [loss for loss in losses if loss]
    size = max(1, len(taught) // 10)
    return {"first": sum(taught[:size]) / size, "last": sum(taught[-size:]) / size}


def _tables(results: object) -> list[Mapping[str, Any]]:
    """The tables of a results file; ValueError for what is none."""
    if not isinstance(results, list):
        raise ValueError(f"{RESULTS} is no list of tables")
    for table in results:
        if any(len(row) != len(table["columns"]) for row in table["rows"]):
            raise ValueError(f"a row of {table['title']!r} has more or fewer cells than columns")
    return results


def _cell(value: object) -> str:
    """A value as the text of a table's cell."""
    if value is None:
        return "-"
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return " ".join(text.replace("|", "\\|").split())
