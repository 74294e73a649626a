"""One row, or one memory figure, in this process; the outcome goes to a JSON file.

Called by bench.py, so that no row inherits another's memory, caches or threads.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from discovery import row_e
from gradients import row_d
from reading import peak_of, row_c
from sweep import row_a, row_b

from lab.engine.loading import load_lens


def main() -> None:
    """Run what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("a", "b", "c", "d", "e", "memory"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--memory", nargs=3, metavar=("NAME", "LENGTH", "ROLE"))
    args = parser.parse_args()
    lens = load_lens(args.model)
    if args.what == "memory":
        name, length, role = args.memory
        record: Any = peak_of(lens, name, int(length), role)
    else:
        record = _row(args.what, lens, args.model, args.quick)
    args.out.write_text(json.dumps(record), encoding="utf-8")


def _row(what: str, lens: Any, model: str, quick: bool) -> dict[str, Any]:
    def memory(name: str, length: int, role: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = run(
            "memory", model, extra=["--memory", name, str(length), role]
        )
        return found

    start, load = datetime.now(UTC), psutil.getloadavg()
    rows = {
        "a": lambda: row_a(lens, quick=quick),
        "b": lambda: row_b(lens, quick=quick),
        "c": lambda: row_c(lens, memory, quick=quick),
        "d": lambda: row_d(lens, quick=quick),
        "e": lambda: row_e(lens, quick=quick),
    }
    record = rows[what]().record()
    return {
        **record,
        "started": start.isoformat(timespec="seconds"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "load_average_before": load[0],
        "load_average_after": psutil.getloadavg()[0],
        "model": {"name": lens.name, "source": lens.source, "sha256": lens.sha256,
                  "dtype": str(lens.dtype), "notes": list(lens.notes)},
    }  # fmt: skip


def run(what: str, model: str, *, quick: bool = False, extra: list[str] | None = None) -> Any:
    """What a new process of this file finds out; raises CalledProcessError if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        command = [sys.executable, str(Path(__file__).resolve()), what, str(out), "--model", model]
        subprocess.run([*command, *(["--quick"] if quick else []), *(extra or [])], check=True)
        return json.loads(out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
