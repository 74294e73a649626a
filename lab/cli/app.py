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

SOURCES = (
    "builtin, squad2:FILE, drop:FILE, hotpotqa:FILE, musique:FILE, jsonl:FILE or world:test/SEED/N"
)

DEFAULT_MODEL = "smollm2-135m-instruct"

ADAPTERS = "both, generator or evaluator for the default model, or an adapter's folder."

STOPPED = "stopped."
STOPPED_RUN = "stopped. Finished examples are stored; run the same command again to go on."
STOPPED_TRAINING = "stopped. Run the same command again to go on from the last checkpoint."


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
    ] = DEFAULT_MODEL,
    data: Annotated[
        list[str] | None,
        typer.Option(help=f"{SOURCES}; may be repeated. [default: builtin]", show_default=False),
    ] = None,
    n: Annotated[
        int | None, typer.Option("--n", "-n", help="Examples per source; all if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the choice of examples.")] = 0,
    layout: Annotated[
        Literal["instruction_first", "context_first"] | None,
        typer.Option(help="What the prompts begin with. [default: as the adapter was trained]"),
    ] = None,
    format: Annotated[
        Literal["auto", "chat", "plain"] | None,
        typer.Option(help="Chat markup or plain text. [default: as the adapter was trained]"),
    ] = None,
    verdict_words: Annotated[
        str | None,
        typer.Option(help="The words that accept and reject, with a comma. [default: Yes,No]"),
    ] = None,
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
    adapter: Annotated[str | None, typer.Option(help=ADAPTERS)] = None,
    reading: Annotated[
        int | None, typer.Option(help="Measure attention on only so many examples per source.")
    ] = None,
    controls: Annotated[
        int | None, typer.Option(help="Run control prompts on only so many examples per source.")
    ] = None,
    schemes: Annotated[
        int, typer.Option(help="Try the judge out of its scheme on so many examples per source.")
    ] = 0,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            help="Ask the same of another version, to compare: base for the model without an "
            "adapter, or as --adapter; may be repeated.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a model in both roles and store what is measured."""
    with _plain_errors(STOPPED_RUN), _messages():
        from lab.cli.headline import print_headline
        from lab.cli.progress import show_progress
        from lab.cli.transfer import run_each_beside
        from lab.studies.recipe import Recipe
        from lab.studies.study import run_study

        recipe = Recipe(
            model, tuple(data or ["builtin"]), n, seed, layout, format, _words(verdict_words),
            max_tokens, too_long, patching, dtype, demonstrations, adapter, reading, controls,
            schemes,
        )  # fmt: skip
        with show_progress() as progress:
            dataset, provenance = run_study(recipe, out, progress=progress)
        run_each_beside(recipe, out, beside or [])
        print_headline(dataset, provenance)
        typer.echo(f"Stored in {out}. Next: lab report {out}")


@app.command()
def transfer(
    out: Annotated[Path, typer.Option(help="Folder of the runs; unfinished ones go on.")],
    adapter: Annotated[
        list[str] | None,
        typer.Option(
            help="base for the model alone, or as for lab run; may be repeated. "
            "[default: base, generator, evaluator and both]",
            show_default=False,
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="The model that the adapters change.")] = DEFAULT_MODEL,
    data: Annotated[
        list[str] | None,
        typer.Option(help=f"{SOURCES}; may be repeated. [default: builtin]", show_default=False),
    ] = None,
    n: Annotated[
        int | None, typer.Option("--n", "-n", help="Examples per source; all if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the choice of examples.")] = 0,
    reading: Annotated[
        int, typer.Option(help="Measure attention on so many examples per source.")
    ] = 24,
    max_tokens: Annotated[
        int | None, typer.Option(help="Longest prompt; the model's window if not given.")
    ] = None,
) -> None:
    """Compare what training one role does to the other, on the same questions."""
    with _plain_errors(STOPPED_RUN), _messages():
        from lab.cli.transfer import main_adapter, print_matrix, run_transfer, store_matrix
        from lab.studies.beside import BASE
        from lab.studies.recipe import Recipe

        adapters = adapter or ["base", "generator", "evaluator", "both"]
        main = main_adapter(adapters)
        recipe = Recipe(
            model, tuple(data or ["builtin"]), n, seed, max_tokens=max_tokens, patching=0,
            adapter=None if main == BASE else main, reading=reading, controls=0, schemes=reading,
        )  # fmt: skip
        runs = run_transfer(recipe, out, adapters)
        print_matrix(store_matrix(runs, out), runs)
        typer.echo(f"Stored in {out}. Next: lab report {out}")


def _words(text: str | None) -> tuple[str, str] | None:
    """The verdict words of an option; the recipe checks them."""
    if text is None:
        return None
    return cast("tuple[str, str]", tuple(word.strip() for word in text.split(",")))


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
        from lab.studies.beside import read_runs
        from lab.studies.store import read_study
        from lab.views.report import write_report

        dataset, provenance = read_study(folder)
        runs = read_runs(folder)
        path = write_report(dataset, provenance, output or folder / "report.html", runs)
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


@app.command("train-adapter")
def train_adapter(
    role: Annotated[
        Literal["generator", "evaluator", "both", "verdict-only"],
        typer.Option(
            help="What is learned: answers, verdicts, both, or (a control) only the choice "
            "between the verdict words."
        ),
    ],
    data: Annotated[list[str], typer.Option(help=f"{SOURCES}; may be repeated.")],
    out: Annotated[Path, typer.Option(help="Folder of the adapter; an unfinished one goes on.")],
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
        typer.Option(help="Longer prompts than half of it are left out. [default: 1400]"),
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
    options = {**locals(), "data": tuple(data), "verdict_words": _words(verdict_words)}
    del options["out"]
    with _plain_errors(STOPPED_TRAINING), _messages():
        from lab.cli.train import train

        train(out, options)


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
