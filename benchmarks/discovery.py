"""Row e: the whole search for override heads, against the same by TransformerLens hook loops."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from timing import Figure, Row, Times, ratio
from tqdm import tqdm

from lab.data.conflicts import load_conflicts
from lab.engine.edits import HOOKS
from lab.engine.forward import Keep
from lab.engine.lens import Lens
from lab.engine.packing import Branch
from lab.instruments.override.contests import CONTESTS, contest_pair, render
from lab.instruments.override.decisions import capture
from lab.instruments.override.find import Found, open_search
from lab.instruments.override.pairs import Pair
from lab.roles import Prompter
from lab.studies.override.search import MOST

CONTEST = "passage"
"""Both runs are told to follow the passage, whose answer differs: many heads matter."""


@dataclass(eq=False)
class Counted:
    """Counts the runs that a search asks for: one forward pass each in a hook loop."""

    lens: Lens
    runs: int = 0
    tokens: int = 0
    _plain: Any = field(default=None, repr=False)

    def __enter__(self) -> Counted:
        self._plain = self.lens.run
        self.lens.run = self._run  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        del self.lens.run  # the class's own is behind it

    def _run(self, branches: Sequence[Branch], keep: Keep | None = None) -> Any:
        self.runs += len(branches)
        self.tokens += sum(len(branch.tokens) for branch in branches)
        return self._plain(branches, keep)


def row_e(lens: Lens, *, quick: bool) -> Row:
    """Patches, test and smallest sets on 50 conflicts, and the time of as many hooked forwards."""
    pairs = make_pairs(lens, 4 if quick else 50)
    lengths = [len(pair.asked(run).tokens) for pair in pairs for run in (0, 1)]
    start = time.perf_counter()
    with Counted(lens) as counted:
        lens.forget()
        found = discover(lens, pairs)
    taken = time.perf_counter() - start
    seconds, gap = hooked(lens, pairs, found, 2 if quick else 12)
    loop = tuple(s * counted.runs for s in seconds)
    exact = Times("full discovery", (taken,) * len(loop))
    scaled = (
        f"{len(loop)} hooked forwards were timed, times the {counted.runs:,} runs that the search "
        "asked for"
    )
    loops = Times("TransformerLens hook loops", loop, scaled)
    return Row(
        f"Full discovery on {len(pairs)} conflicts, {np.mean(lengths):.0f} tokens on average, "
        "against TransformerLens hook loops",
        (
            ratio("speed-up", loops, exact, "x", (">=", 50), note=scaled),
            Figure("full discovery", taken / 60, "min"),
            Figure("hook loops", loops.median / 60, "min", note=scaled),
            Figure("runs asked for", counted.runs, "", note="each a forward pass of its own"),
            Figure("max |log-odds difference|", gap, "", ("<=", 1e-3), note="of the timed patches"),
            Figure("heads found", len(found.heads), ""),
        ),
        (exact, loops),
        {
            "contest": CONTEST,
            "pairs": len(pairs),
            "tokens": lengths,
            "layers": "head, MLP and residual patches, both ways",
            "most": MOST,
            "heads": [list(head) for head in found.heads],
        },
    )


def make_pairs(lens: Lens, n: int) -> list[Pair]:
    """The first ``n`` built-in conflicts as pairs, in plain text, decided as asked or not."""
    prompter = Prompter(lens.tokenizer, layout="context_first", format="plain")
    verdict = prompter.verdict_tokens()
    asked = [render(prompter, c, verdict, begun=True) for c in load_conflicts("builtin")]
    return [contest_pair(CONTESTS[CONTEST], one) for one in asked if all(one.tokens.values())][:n]


def discover(lens: Lens, pairs: Sequence[Pair]) -> Found:
    """All patches, the test of every head, and the smallest sets, with no sweep stored before."""
    search = open_search(lens, pairs)
    return search.choose(most=MOST)


def hooked(
    lens: Lens, pairs: Sequence[Pair], found: Found, count: int
) -> tuple[tuple[float, ...], float]:
    """Seconds of some patches by run_with_hooks, and how far they are from the search's."""
    cells = list(np.ndindex(lens.n_layers, lens.n_heads))
    places = np.linspace(0, len(cells) - 1, count).round().astype(int)
    seconds, gaps = [], []
    for number, place in enumerate(tqdm(places, desc="e: hook loop", leave=False)):
        which = number % len(pairs)
        pair, (layer, head) = pairs[which], cells[place]
        value = capture(lens, [pair]).heads[0, 0, layer, head]
        ids = torch.tensor([pair.b.tokens], device=lens.device)
        hook = partial(_put, value=value, head=head)
        start = time.perf_counter()
        with torch.no_grad():
            logits = lens.bridge.run_with_hooks(
                ids, fwd_hooks=[(HOOKS["head"].format(layer), hook)]
            )
        seconds.append(time.perf_counter() - start)
        wanted = pair.difference(logits[0, -1].float().cpu().numpy())
        gaps.append(abs(wanted - found.sweep.head[which, 0, layer, head]))
    return tuple(seconds), float(max(gaps))


def _put(z: torch.Tensor, hook: object, *, value: torch.Tensor, head: int) -> torch.Tensor:
    z[:, -1, head] = value
    return z
