"""Making invented examples from the command line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import typer

from lab.cli.shared import command
from lab.data import make_examples, write_jsonl
from lab.data.world import Split
from lab.errors import LabError


def make(out: Path, n: int, seed: int, split: Split, *, force: bool = False) -> None:
    """Write ``n`` invented examples to a file; print how many of each family, and where it is.

    Raises:
        LabError: the file is there already, unless with ``force``, or cannot be written.
    """
    if out.exists() and not force:
        raise LabError(f"{out} is there already: choose another name, or write over it by --force.")
    examples = make_examples(n, seed, split)
    path = write_jsonl(examples, out)
    counts = Counter(example.family for example in examples)
    unanswered = sum(not example.answerable for example in examples)
    for family, count in sorted(counts.items()):
        typer.echo(f"{family:<12}{count:>7}")
    typer.echo(f"{'all':<12}{len(examples):>7}, of which {unanswered} are not answered")
    look = command("lab", "examples", f"jsonl:{path}", "--list")
    typer.echo(f"Stored in {path}. To look: {look}")
