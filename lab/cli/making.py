"""The commands that show and make questions, train adapters and check the installation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lab.cli.shared import (
    DEFAULT_MODEL,
    SOURCES,
    STOPPED_TRAINING,
    TO_LEARN,
    messages,
    place,
    plain_errors,
    two_words,
)


def examples(
    source: Annotated[str, typer.Argument(help=f"{SOURCES}.")] = "builtin",
    n: Annotated[
        int | None, typer.Option("--n", "-n", help="Choose so many, as lab run would.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of that choice.")] = 0,
    list_: Annotated[bool, typer.Option("--list", help="Also list ids and questions.")] = False,
    show: Annotated[
        str | None, typer.Option(metavar="ID", help="Print one example, its evidence marked.")
    ] = None,
) -> None:
    """Count, list or show the examples of a source."""
    with plain_errors():
        from lab.cli.examples import print_counts, print_example, print_list
        from lab.data import load_examples

        chosen = load_examples(source, n=n, seed=seed)
        if show is not None:
            print_example(chosen, show, source)
            return
        print_counts(chosen, source)
        if list_:
            print_list(chosen)


def make_examples(
    out: Annotated[
        Path, typer.Option(parser=place, metavar="<path>", help="JSON-lines file to write.")
    ],
    n: Annotated[int, typer.Option("--n", "-n", help="How many questions.")] = 1000,
    seed: Annotated[int, typer.Option(help="Another seed gives other worlds.")] = 0,
    split: Annotated[
        Literal["train", "test"],
        typer.Option(help="Names and wordings of one split never occur in the other."),
    ] = "train",
    force: Annotated[bool, typer.Option("--force", help="Write over a file of that name.")] = False,
) -> None:
    """Invent passages with questions, to train on or to test with, and write them to a file."""
    with plain_errors():
        from lab.cli.make import make

        make(out, n, seed, split, force=force)


def train_adapter(
    role: Annotated[
        Literal["generator", "evaluator", "both", "verdict-only"],
        typer.Option(
            help="What is learned: answers, verdicts, both, or (a control) only the choice "
            "between the verdict words."
        ),
    ],
    data: Annotated[list[str], typer.Option(help=f"{TO_LEARN}; may be repeated.")],
    out: Annotated[
        Path,
        typer.Option(
            parser=place,
            metavar="<path>",
            help="Folder of the adapter; an unfinished one goes on.",
        ),
    ],
    model: Annotated[str, typer.Option(help="As for lab run.")] = DEFAULT_MODEL,
    n: Annotated[
        int | None, typer.Option("--n", "-n", help="Questions per source; all if not given.")
    ] = None,
    unanswerable: Annotated[
        float | None,
        typer.Option(help="Largest share of questions without an answer. [default: 0.2]"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Of first weights, order and wrong candidates. [default: 0]"),
    ] = None,
    layout: Annotated[
        Literal["instruction_first", "context_first"] | None,
        typer.Option(help="What the prompts begin with. [default: context_first]"),
    ] = None,
    format: Annotated[
        Literal["auto", "chat", "plain"] | None,
        typer.Option(help="Chat markup or plain text. [default: auto]"),
    ] = None,
    verdict_words: Annotated[
        str | None,
        typer.Option(help="The words that accept and reject, with a comma. [default: Yes,No]"),
    ] = None,
    rank: Annotated[int | None, typer.Option(help="Rank of LoRA. [default: 8]")] = None,
    alpha: Annotated[
        int | None, typer.Option(help="Updates are scaled by alpha / rank. [default: 16]")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="The highest one. [default: 0.002]")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="How often each question is seen. [default: 1]")
    ] = None,
    questions_per_bundle: Annotated[
        int | None, typer.Option(help="Questions on a passage that run together. [default: 4]")
    ] = None,
    verdicts_from: Annotated[
        float | None,
        typer.Option(
            help="Share of the steps before which only answers are taught. [default: 0.0]"
        ),
    ] = None,
    bundles_per_step: Annotated[
        int | None, typer.Option(help="Bundles per step of the optimizer. [default: 2]")
    ] = None,
    wrong_per_question: Annotated[
        int | None, typer.Option(help="Most wrong candidates beside the right one. [default: 3]")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            help="Most tokens that run together; questions with a prompt longer than half of it "
            "are left out. [default: 1400]"
        ),
    ] = None,
    dev_questions: Annotated[
        int | None,
        typer.Option(help="Kept out of training, for the learning curves. [default: 120]"),
    ] = None,
    precision: Annotated[
        Literal["bfloat16", "float32"] | None,
        typer.Option(help="Of all but the adapter itself. [default: bfloat16]"),
    ] = None,
) -> None:
    """Train a LoRA adapter for a role, to be used with lab run --adapter."""
    # All parameters but the folder are fields of the recipe, which holds the defaults.
    options = {**locals(), "data": tuple(data), "verdict_words": two_words(verdict_words)}
    del options["out"]
    with plain_errors(STOPPED_TRAINING), messages():
        from lab.cli.train import train

        train(out, options)


def doctor() -> None:
    """Check what is installed, and say what to do."""
    with plain_errors():
        from lab.cli.doctor import examine

        if not examine():
            raise typer.Exit(1)
