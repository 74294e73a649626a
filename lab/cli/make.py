"""Making invented examples from the command line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import typer

from lab.data import make_examples, write_jsonl
from lab.data.world import Split


def make(out: Path, n: int, seed: int, split: Split) -> None:
    """Write ``n`` invented examples to a file; print how many of each family, and where it is."""
    examples = make_examples(n, seed, split)
    path = write_jsonl(examples, out)
    counts = Counter(example.family for example in examples)
    unanswered = sum(not example.answerable for example in examples)
    for family, count in sorted(counts.items()):
        typer.echo(f"{family:<12}{count:>7}")
    typer.echo(f"{'all':<12}{len(examples):>7}, of which {unanswered} are not answered")
    typer.echo(f"Stored in {path}. To look: lab examples {path} --list")
