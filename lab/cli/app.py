"""The commands, their options and their help."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from lab.errors import LabError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Role Lens: does a model read, when it judges an answer, what it read when it answered?",
)

SOURCES = "builtin, squad2:FILE, drop:FILE, hotpotqa:FILE, musique:FILE or jsonl:FILE"

STOPPED = "stopped."
STOPPED_RUN = "stopped. Finished examples are stored; run the same command again to go on."


@contextmanager
def _plain_errors(stopped: str = STOPPED) -> Iterator[None]:
    """Turn what a user can mend into one message and an exit code, without a traceback."""
    try:
        yield
    except LabError as error:
        typer.secho(f"lab: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    except MemoryError:
        typer.secho("lab: there is too little memory for this.", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(f"\nlab: {stopped}", err=True)
        raise typer.Exit(130) from None


@app.command()
def run(
    out: Annotated[Path, typer.Option(help="Folder of the study; an unfinished one goes on.")],
    model: Annotated[
        str, typer.Option(help="The default's name, a hub id, a model folder or a .gguf file.")
    ] = "smollm2-135m-instruct",
    data: Annotated[
        list[str] | None,
        typer.Option(help=f"{SOURCES}; may be repeated. [default: builtin]", show_default=False),
    ] = None,
    n: Annotated[
        int | None, typer.Option("--n", "-n", help="Examples per source; all if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the choice of examples.")] = 0,
    layout: Annotated[
        Literal["instruction_first", "context_first"],
        typer.Option(help="What the prompts begin with."),
    ] = "instruction_first",
    format: Annotated[
        Literal["auto", "chat", "plain"], typer.Option(help="Chat markup or plain text.")
    ] = "auto",
    verdict_words: Annotated[
        str, typer.Option(help="The words that accept and reject, with a comma.")
    ] = "Yes,No",
    max_tokens: Annotated[
        int | None, typer.Option(help="Longest prompt; the model's window if not given.")
    ] = None,
    too_long: Annotated[
        Literal["drop", "error"],
        typer.Option(help="Longer ones: drop passages without evidence, or stop."),
    ] = "drop",
    patching: Annotated[
        int | None, typer.Option(help="Patch only so many examples per source; all if not given.")
    ] = None,
    dtype: Annotated[
        Literal["float32", "bfloat16", "float16"], typer.Option(help="Precision of the weights.")
    ] = "float32",
    demonstrations: Annotated[
        int, typer.Option(help="Worked questions shown before each question, 0 to 4.")
    ] = 0,
) -> None:
    """Run a model in both roles and store what is measured."""
    with _plain_errors(STOPPED_RUN), _messages():
        from lab.cli.headline import print_headline
        from lab.cli.progress import show_progress
        from lab.studies.recipe import Recipe
        from lab.studies.study import run_study

        words = tuple(word.strip() for word in verdict_words.split(","))
        recipe = Recipe(
            model, tuple(data or ["builtin"]), n, seed, layout, format,
            cast("tuple[str, str]", words), max_tokens, too_long, patching, dtype,
            demonstrations,
        )  # fmt: skip
        with show_progress() as progress:
            dataset, provenance = run_study(recipe, out, progress=progress)
        print_headline(dataset, provenance)
        typer.echo(f"Stored in {out}. Next: lab report {out}")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a study.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="HTML file; FOLDER/report.html if not given."),
    ] = None,
) -> None:
    """Write a study's report as one HTML file; print its headline."""
    with _plain_errors(), _messages():
        from lab.cli.headline import print_headline
        from lab.studies.store import read_study
        from lab.views.report import write_report

        dataset, provenance = read_study(folder)
        path = write_report(dataset, provenance, output or folder / "report.html")
        print_headline(dataset, provenance)
        typer.echo(f"Report: {path}")


@app.command()
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
    with _plain_errors():
        from lab.cli.examples import print_counts, print_example, print_list
        from lab.data import load_examples

        chosen = load_examples(source, n=n, seed=seed)
        if show is not None:
            print_example(chosen, show, source)
            return
        print_counts(chosen, source)
        if list_:
            print_list(chosen)


@app.command("make-examples")
def make_examples(
    out: Annotated[Path, typer.Option(help="JSON-lines file to write.")],
    n: Annotated[int, typer.Option("--n", "-n", help="How many questions.")] = 1000,
    seed: Annotated[int, typer.Option(help="Another seed gives other worlds.")] = 0,
    split: Annotated[
        Literal["train", "test"],
        typer.Option(help="Names and wordings of one split never occur in the other."),
    ] = "train",
) -> None:
    """Invent passages with questions, to train on or to test with, and write them to a file."""
    with _plain_errors():
        from lab.cli.make import make

        make(out, n, seed, split)


@app.command()
def doctor() -> None:
    """Check what is installed, and say what to do."""
    with _plain_errors():
        from lab.cli.doctor import examine

        if not examine():
            raise typer.Exit(1)


@contextmanager
def _messages() -> Iterator[None]:
    """Let the lab's log lines through to standard error, as plain sentences."""
    log = logging.getLogger("lab")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("lab: %(message)s"))
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def main() -> None:
    """Entry point of the ``lab`` command."""
    app()
