"""Row c: reading the decision of a prompt, against a plain forward and against caches."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import torch
from prompts import described, example_near
from timing import Figure, Row, Times, alternate, ratio, timed

from lab.engine.lens import Lens
from lab.instruments.case import Case
from lab.instruments.reading import measure_reading
from lab.roles import Prompt, Prompter

LENGTHS = (300, 1_500)
ROLES = ("generator", "evaluator")
Measure = Callable[[str, int, str], dict[str, Any] | None]
"""From what is run, length and role to a memory record, measured in a process of its own."""


def row_c(lens: Lens, memory: Measure, *, quick: bool) -> Row:
    """Time and memory of reading at both lengths, in both roles."""
    figures: list[Figure] = []
    times: list[Times] = []
    setup: dict[str, Any] = {"memory_method": METHOD, "prompts": [], "memory": []}
    for length in LENGTHS:
        for role in ROLES:
            prompt, actions = _actions(lens, length, role)
            setup["prompts"].append(described(prompt))
            figures += _timed(lens, prompt, actions, times, quick=quick)
            figures += _remembered(memory, prompt, length, role, setup["memory"])
    return Row("Reading the decision against a plain forward on the fused kernel",
               tuple(figures), tuple(times), setup)  # fmt: skip


def _timed(
    lens: Lens,
    prompt: Prompt,
    actions: dict[str, Callable[[], Any]],
    times: list[Times],
    *,
    quick: bool,
) -> list[Figure]:
    where = f"{prompt.role}, {len(prompt)} tokens"
    chosen = {name: actions[name] for name in ("plain", "last", "reading")}
    with torch.no_grad():
        seconds = alternate(chosen, 2 if quick else 5, label=f"c: {where}")
    plain = Times(f"plain forward, {where}", seconds["plain"])
    last = Times(f"plain forward, logits_to_keep=1, {where}", seconds["last"])
    read = Times(f"reading and decision logits, {where}", seconds["reading"])
    times += [plain, last, read]
    figures = [
        ratio(f"reading and logits, {where}", read, plain, "forwards", ("<=", 1.3)),
        ratio(f"reading and logits, {where}", read, last, "forwards", note=LAST),
        Figure(f"plain forward, {where}", plain.median, "s"),
    ]
    if prompt.role != ROLES[0]:
        return figures
    for name, title in (("patterns", "run_with_cache, patterns only"),
                        ("cache", "run_with_cache, all hooks")):  # fmt: skip
        if not has_room(name, lens, len(prompt)):
            figures.append(Figure(f"{title}, {where}", None, "forwards", note=NO_ROOM))
            continue
        with torch.no_grad():
            once = Times(f"{title}, {where}", (timed(actions[name]),))
        gc.collect()
        times.append(once)
        figures.append(
            Figure(f"{title}, {where}", once.median / plain.median, "forwards", note="run once")
        )
    return figures


def _remembered(
    memory: Measure, prompt: Prompt, length: int, role: str, records: list[dict[str, Any]]
) -> list[Figure]:
    where = f"{prompt.role}, {len(prompt)} tokens"
    names = ("plain", "last", "reading", *(("patterns", "cache") if role == ROLES[0] else ()))
    found = {name: memory(name, length, role) for name in names}
    records += [r for r in found.values() if r is not None]
    plain = found["plain"]
    figures = []
    for name in names[1:]:
        record = found[name]
        extra = None
        if record and plain:
            extra = (record["peak_bytes"] - plain["peak_bytes"]) / 1e9
        figures.append(
            Figure(
                f"memory, {TITLES[name]}, {where}", extra, "GB more",
                ("<=", 0.5) if name == "reading" else None,
                note=NO_ROOM if not record else
                f"peak {record['peak_bytes'] / 1e9:.2f} GB; plain forward "
                f"{plain['peak_bytes'] / 1e9:.2f} GB" if plain else "",
            )
        )  # fmt: skip
    return figures


TITLES = {
    "last": "plain forward, logits_to_keep=1",
    "reading": "reading and logits",
    "patterns": "run_with_cache, patterns only",
    "cache": "run_with_cache, all hooks",
}

LAST = "against a plain forward with logits_to_keep=1"

NO_ROOM = "left out: too little free memory"

METHOD = (
    "Each figure comes from a process of its own that loads the model, resets the kernel's "
    "high-water mark of resident memory (/proc/self/clear_refs), runs once, and reads the mark "
    "(VmHWM). Where that file does not exist, the mark is getrusage's ru_maxrss and includes the "
    "loading of the model."
)


def _actions(lens: Lens, length: int, role: str) -> tuple[Prompt, dict[str, Callable[[], Any]]]:
    """The prompt, and what can be run on it by name. Every action starts without a trunk."""
    prompter = Prompter(lens.tokenizer)
    example = example_near(lens, length)
    prompt = prompter.render(example, role, example.gold if role == "evaluator" else None)
    case = Case(lens, prompter, example, None, {}, None, prompter.verdict_tokens())
    ids = torch.tensor([prompt.token_ids], device=lens.device)

    def reading() -> Any:
        lens.forget()
        return measure_reading(case, prompt)

    def patterns() -> Any:
        return lens.bridge.run_with_cache(ids, names_filter=lambda n: n.endswith("hook_pattern"))

    return prompt, {
        "plain": lambda: lens.twin(ids),
        "last": lambda: lens.twin(ids, logits_to_keep=1),
        "reading": reading,
        "patterns": patterns,
        "cache": lambda: lens.bridge.run_with_cache(ids),
    }


def has_room(name: str, lens: Lens, tokens: int) -> bool:
    """Whether the free memory holds what an action keeps, with a third to spare.

    Per layer a full cache holds scores and patterns of every head, and about 1.5 MB a token of
    the rest on a model of 135 million weights (of 30 layers, width 576).
    """
    square = 4 * lens.n_layers * lens.n_heads * tokens**2
    width = 4 * lens.n_layers * lens.config.hidden_size * tokens
    needed = {"patterns": 2 * square, "cache": 2.5 * square + 22 * width}.get(name, 0)
    return bool(psutil.virtual_memory().available > 1.33 * needed)


def peak_of(lens: Lens, name: str, length: int, role: str) -> dict[str, Any] | None:
    """Peak resident memory of one action in this process; None if there is no room for it."""
    prompt, actions = _actions(lens, length, role)
    if not has_room(name, lens, len(prompt)):
        return None
    gc.collect()
    before = psutil.Process().memory_info().rss
    method = _reset_peak()
    with torch.no_grad():
        kept = actions[name]()
    peak = _peak()
    del kept
    return {
        "name": name,
        "prompt": described(prompt),
        "before_bytes": before,
        "peak_bytes": peak,
        "method": method,
    }


def _reset_peak() -> str:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return "ru_maxrss, loading included"
    return "VmHWM after a reset"


def _peak() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    import resource
    import sys

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
