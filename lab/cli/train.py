"""Training an adapter from the command line: the recipe of its options, and how it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from lab.cli.progress import show_progress
from lab.cli.shared import command
from lab.engine.adapters import SHIPPED
from lab.engine.weights import DEFAULT
from lab.training.recipe import TrainingRecipe
from lab.training.train import train_adapter


def train(out: Path, options: dict[str, Any]) -> None:
    """Train into a folder; print how far the adapter came, where it is and how it is used.

    Args:
        out: the folder.
        options: fields of a `TrainingRecipe`; those that are None are as usual there.
    """
    recipe = TrainingRecipe(**{name: value for name, value in options.items() if value is not None})
    with show_progress("step") as progress:
        facts = train_adapter(recipe, out, progress=progress)
    typer.echo(in_words(facts))
    base = [] if recipe.model == DEFAULT else ["--model", recipe.model]
    # The plain names stand for the adapters that come with the package.
    named = f"./{out}" if str(out) in SHIPPED else out
    run = command("lab", "run", "--adapter", named, *base, "--out", "FOLDER")
    typer.echo(f"Stored in {out}. Next: {run}")


def in_words(facts: dict[str, Any]) -> str:
    """The last point of an adapter's learning curves as sentences."""
    begin = f"Trained for {facts['steps']} steps on {facts['questions']} questions."
    points = [point for point in facts["curve"] if point["questions"]]
    if not points:
        return f"{begin} None was kept out of training, so there are no learning curves."
    last = points[-1]
    told = [f"{_percent(last['answers_exact'])} of the answers are the gold answer to the letter"]
    if last["auroc"] is not None:
        told += [
            f"the right candidate ranks above the hardest wrong one for "
            f"{_percent(last['right_above_wrong'])} (AUROC {last['auroc']:.2f})",
            f"{_percent(last['accepted_right'])} of the right and "
            f"{_percent(last['accepted_wrong'])} of the wrong candidates are accepted",
        ]
    return (
        f"{begin} On {last['questions']} questions kept out of it: {'; '.join(told)}. These are "
        "points of a learning curve, without intervals; a run has them."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
