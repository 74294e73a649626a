"""How fast and how frugal the engine is, measured against what it replaces.

    python benchmarks/bench.py [--quick] [--rows a,b,c,d,e] [--model NAME]

a: exact sweep over all heads against a TransformerLens hook loop; b: against plain forwards;
c: reading against a plain forward, in time and memory; d: exact sweep against attribution
patching; e: the whole search for override heads on 50 conflicts against hook loops. Each row runs
in a process of its own. Prints a table and writes results.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results.json"
PACKAGES = ("rolelens", "torch", "transformers", "transformer-lens", "numpy", "scipy")
ROWS = ("a", "b", "c", "d", "e")


def main() -> int:
    """Run the asked rows; 0 even where a target is missed, 1 where a row could not run."""
    args = _arguments()
    results: dict[str, Any] = {"quick": args.quick, "machine": machine(), "rows": {}}
    from rich.console import Console
    from worker import run

    console = Console()
    if not console.is_terminal:
        console = Console(width=140)
    failed = 0
    for name in args.rows:
        console.print(f"[dim]row {name} ...[/]")
        try:
            results["rows"][name] = run(name, args.model, quick=args.quick)
        except subprocess.CalledProcessError:
            console.print(f"[red]Row {name} could not be run; its messages are above.[/]")
            failed = 1
        # After each row, so that stopping a later one loses nothing.
        args.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    console.print(*tables(results), summary(results), sep="\n")
    console.print(f"All times and the set-up: {args.out}")
    return failed


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few repeats: for development only")
    parser.add_argument("--rows", type=_rows, default=ROWS, help="some of a,b,c,d,e")
    parser.add_argument("--model", default="smollm2-135m-instruct", help="as in lab run --model")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where the JSON file goes")
    return parser.parse_args()


def _rows(text: str) -> tuple[str, ...]:
    rows = tuple(part.strip() for part in text.split(","))
    if wrong := [row for row in rows if row not in ROWS]:
        raise argparse.ArgumentTypeError(
            f"there is no row {wrong[0]!r}: choose from {','.join(ROWS)}"
        )
    return rows


def machine() -> dict[str, Any]:
    """What the numbers depend on besides the code."""
    import psutil
    import torch

    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in PACKAGES},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError

    try:
        return version(name)
    except PackageNotFoundError:
        return "from source"


def tables(results: Mapping[str, Any]) -> list[Any]:
    """One rich table of figures for each row."""
    from rich.table import Table

    made = []
    for name, row in results["rows"].items():
        table = Table(title=f"{name}. {row['title']}", title_justify="left")
        for heading in ("measured", "median", "range", "target", "met", "note"):
            number = heading in ("median", "range")
            table.add_column(
                heading, justify="right" if number else "left", no_wrap=heading != "note"
            )
        for figure in row["figures"]:
            table.add_row(*_cells(figure))
        made.append(table)
    return made


def summary(results: Mapping[str, Any]) -> str:
    """The machine in one line, and how busy it was with other things."""
    facts = results["machine"]
    quick = " Quick: too few repeats to quote." if results["quick"] else ""
    busy = max((row["load_average_before"] for row in results["rows"].values()), default=0.0)
    return (
        f"{facts['processor']}, {facts['cores']} cores, {facts['torch_threads']} threads, torch "
        f"{facts['versions']['torch']}, transformer-lens {facts['versions']['transformer-lens']}; "
        f"load average before the rows up to {busy:.1f} (quiet is below 1).{quick}"
    )


def _cells(figure: Mapping[str, Any]) -> tuple[str, ...]:
    low, high = figure["low"], figure["high"]
    return (
        figure["name"],
        "-" if figure["value"] is None else f"{_number(figure['value'])} {figure['unit']}".strip(),
        "" if low is None else f"{_number(low)} to {_number(high)}",
        figure["target"] or "",
        {True: "yes", False: "[red]no[/]", None: ""}[figure["met"]],
        figure["note"],
    )


def _number(value: float) -> str:
    return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.4g}"


if __name__ == "__main__":
    sys.exit(main())
