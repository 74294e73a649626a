"""The commands that run studies and report on them, their options and their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lab.cli.shared import (
    ADAPTERS,
    CONFLICTS,
    DEFAULT_MODEL,
    SOURCES,
    STOPPED_OVERRIDE,
    STOPPED_RUN,
    command,
    messages,
    place,
    plain_errors,
    two_words,
)
from lab.errors import LabError


def run(
    out: Annotated[
        Path,
        typer.Option(
            parser=place, metavar="<path>", help="Folder of the study; an unfinished one goes on."
        ),
    ],
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
        typer.Option(help="What the prompts begin with. [default: as suits the model or adapter]"),
    ] = None,
    format: Annotated[
        Literal["auto", "chat", "plain"] | None,
        typer.Option(help="Chat markup or plain text. [default: as suits the model or adapter]"),
    ] = None,
    verdict_words: Annotated[
        str | None,
        typer.Option(
            help="The words that accept and reject, with a comma. [default: as the adapter was "
            "trained, or Yes,No]"
        ),
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
        int | None,
        typer.Option(
            help="Worked questions shown before each question, 0 to 4. [default: as suits the "
            "model or adapter]",
            show_default=False,
        ),
    ] = None,
    adapter: Annotated[str | None, typer.Option(help=ADAPTERS)] = None,
    reading: Annotated[
        int | None,
        typer.Option(
            help="Measure attention on only so many examples per source; all if not given."
        ),
    ] = None,
    controls: Annotated[
        int | None,
        typer.Option(
            help="Run control prompts on only so many examples per source; all if not given."
        ),
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
    with plain_errors(STOPPED_RUN), messages():
        from lab.cli.headline import print_headline
        from lab.cli.progress import show_progress
        from lab.cli.transfer import run_each_beside
        from lab.studies.beside import BASE, find_versions
        from lab.studies.recipe import Recipe
        from lab.studies.study import run_study

        recipe = Recipe(
            model, tuple(data or ["builtin"]), n, seed, layout, format, two_words(verdict_words),
            max_tokens, too_long, patching, dtype, demonstrations, adapter, reading, controls,
            schemes,
        )  # fmt: skip
        find_versions(model, beside or [], adapter or BASE)
        with show_progress() as progress:
            dataset, provenance = run_study(recipe, out, progress=progress)
        run_each_beside(recipe, out, beside or [])
        print_headline(dataset, provenance)
        typer.echo(f"Stored in {out}. Next: {command('lab', 'report', out)}")


def transfer(
    out: Annotated[
        Path,
        typer.Option(
            parser=place, metavar="<path>", help="Folder of the runs; unfinished ones go on."
        ),
    ],
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
        int,
        typer.Option(
            help="Measure attention, and try other ways of asking the judge, on so many examples "
            "per source."
        ),
    ] = 24,
    max_tokens: Annotated[
        int | None, typer.Option(help="Longest prompt; the model's window if not given.")
    ] = None,
) -> None:
    """Compare what training one role does to the other, on the same questions."""
    with plain_errors(STOPPED_RUN), messages():
        from lab.cli.transfer import main_adapter, print_matrix, run_transfer, store_matrix
        from lab.studies.beside import BASE, find_versions
        from lab.studies.recipe import Recipe

        adapters = adapter or ["base", "generator", "evaluator", "both"]
        if len(find_versions(model, adapters)) < 2:
            other = BASE if set(adapters) != {BASE} else "both"
            raise LabError(
                f"There is nothing to compare {adapters[0]} with: give at least two versions, for "
                f"instance also --adapter {other}."
            )
        main = main_adapter(adapters)
        recipe = Recipe(
            model, tuple(data or ["builtin"]), n, seed, max_tokens=max_tokens, patching=0,
            adapter=None if main == BASE else main, reading=reading, controls=0, schemes=reading,
        )  # fmt: skip
        runs = run_transfer(recipe, out, adapters)
        print_matrix(store_matrix(runs, out), runs)
        typer.echo(f"Stored in {out}. Next: {command('lab', 'report', out)}")


def override(
    out: Annotated[
        Path,
        typer.Option(
            parser=place, metavar="<path>", help="Folder of the study; an unfinished one goes on."
        ),
    ],
    model: Annotated[str, typer.Option(help="As for lab run.")] = DEFAULT_MODEL,
    adapter: Annotated[str | None, typer.Option(help=ADAPTERS)] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help=f"{CONFLICTS}; may be repeated. [default: builtin]", show_default=False),
    ] = None,
    n: Annotated[int | None, typer.Option("--n", "-n", help="Conflicts per source.")] = None,
    pairs: Annotated[
        int, typer.Option(help="Most pairs of a contest; about half are held out.")
    ] = 50,
    random_sets: Annotated[int, typer.Option(help="Random sets beside the found heads.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of all choices.")] = 0,
    begun: Annotated[bool, typer.Option(help="Begin the generator's reply for it.")] = True,
    least_pairs: Annotated[int, typer.Option(help="With fewer usable pairs, no search.")] = 16,
) -> None:
    """Find the few heads that decide between passage and memory, and between verdicts."""
    with plain_errors(STOPPED_OVERRIDE), messages():
        from lab.cli.override import find_override
        from lab.studies.override.recipe import OverrideRecipe

        sources = tuple(data or ["builtin"])
        recipe = OverrideRecipe(
            model, sources, n, pairs, random_sets, seed, adapter, begun, least_pairs
        )
        find_override(recipe, out)
        typer.echo(f"Stored in {out}. Next: {command('lab', 'report', out)}")


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a study.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="HTML file; FOLDER/report.html if not given."),
    ] = None,
) -> None:
    """Write a study's report as one HTML file; print its headline."""
    with plain_errors(), messages():
        from lab.cli.headline import print_headline
        from lab.studies.beside import read_runs
        from lab.studies.override.results import holds_override, read_override
        from lab.studies.store import is_study, read_study
        from lab.views.override_report import write_override
        from lab.views.report import write_report

        target = output or folder / "report.html"
        if target.suffix.lower() not in (".html", ".htm"):
            raise LabError(f"The report is an HTML page: {target} must end in .html.")
        deciding = read_override(folder) if holds_override(folder) else None
        if deciding is not None and not is_study(folder):
            typer.echo(f"Report: {write_override(deciding, target)}")
            return
        dataset, provenance = read_study(folder)
        runs = read_runs(folder)
        path = write_report(dataset, provenance, target, runs, deciding=deciding)
        print_headline(dataset, provenance)
        typer.echo(f"Report: {path}")
