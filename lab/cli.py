"""The command line: run studies, write reports, look at examples, check an installation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from lab.errors import LabError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Role Lens: does a model read, when it judges an answer, what it read when it answered?",
)


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn what a user can mend into one message and exit code 1, without a traceback."""
    try:
        yield
    except LabError as error:
        typer.secho(f"lab: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.secho(
            "\nlab: stopped. Finished examples are stored; the same command goes on from there.",
            err=True,
        )
        raise typer.Exit(130) from None


@app.command()
def run(
    out: Annotated[Path, typer.Option(help="Folder of the study; an unfinished one goes on.")],
    model: Annotated[
        str, typer.Option(help="smollm2-135m-instruct, a hub id, a folder or a .gguf file.")
    ] = "smollm2-135m-instruct",
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="builtin, squad2:FILE, drop:FILE, hotpotqa:FILE, musique:FILE, "
            "jsonl:FILE. May be given several times."
        ),
    ] = None,
    n: Annotated[int | None, typer.Option(help="Examples per source; all if not given.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the choice of examples.")] = 0,
    layout: Annotated[str, typer.Option(help="instruction_first or context_first.")] = (
        "instruction_first"
    ),
    format: Annotated[str, typer.Option(help="auto, chat or plain.")] = "auto",
    verdict_words: Annotated[str, typer.Option(help="Words for accepting and rejecting.")] = (
        "Yes,No"
    ),
    max_tokens: Annotated[
        int | None, typer.Option(help="Longest prompt; the model's window if not given.")
    ] = None,
    too_long: Annotated[
        str, typer.Option(help="drop: leave passages without evidence out; error: stop.")
    ] = "drop",
    patching: Annotated[
        int | None, typer.Option(help="Patch only so many examples per source; all if not given.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "float32",
) -> None:
    """Run a model in both roles over examples, and store what was measured."""
    with _plain_errors():
        from lab.studies.recipe import Recipe
        from lab.studies.study import run_study

        words = tuple(word.strip() for word in verdict_words.split(","))
        if len(words) != 2:
            raise LabError(f"--verdict-words takes two words with a comma, not {verdict_words!r}.")
        recipe = Recipe(
            model, tuple(data or ["builtin"]), n, seed, layout, format, words, max_tokens,  # type: ignore[arg-type]
            too_long, patching, dtype,  # type: ignore[arg-type]
        )  # fmt: skip
        with _progress() as progress:
            dataset, _ = run_study(recipe, out, progress=progress)
        typer.echo(f"{dataset.sizes['example']} examples are stored in {out}.")


@contextmanager
def _progress():  # type: ignore[no-untyped-def]
    from tqdm import tqdm

    bar = tqdm(desc="loading the model", unit="example", file=sys.stderr, dynamic_ncols=True)

    def tell(done: int, total: int, name: str) -> None:
        bar.total = total
        bar.set_description_str(name or "done", refresh=False)
        bar.update(done - bar.n)
        bar.refresh()

    with bar:
        yield tell


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a study.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="HTML file; FOLDER/report.html if not given."),
    ] = None,
) -> None:
    """Write the report of a study: one HTML file that opens anywhere. Prints the headline."""
    with _plain_errors():
        from lab.studies.store import read_study
        from lab.views.report import write_report

        dataset, provenance = read_study(folder)
        path = write_report(dataset, provenance, output or folder / "report.html")
        typer.echo(path)


def main() -> None:
    """Entry point of the ``lab`` command."""
    app()


if __name__ == "__main__":
    main()
