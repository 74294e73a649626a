"""Rows a and b: the exact sweep over all heads, against a hook loop and against plain forwards."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from prompts import described, generators_near
from timing import Figure, Row, Times, alternate, ratio

from lab.engine.edits import HOOKS, set_to
from lab.engine.forward import Keep
from lab.engine.lens import Lens
from lab.engine.packing import Branch
from lab.roles import Prompt

LENGTH = 300


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """Patching each head at the decision of ``target`` with its output at that of ``source``.

    Attributes:
        heads: [layer, head, d_head], what is put in; captured before anything is timed.
        asked: the two most likely tokens of the unpatched target, whose logits are asked for.
    """

    lens: Lens
    source: Prompt
    target: Prompt
    heads: torch.Tensor
    asked: tuple[int, int]

    @property
    def cells(self) -> list[tuple[int, int]]:
        """Every (layer, head)."""
        return [(la, h) for la in range(self.lens.n_layers) for h in range(self.lens.n_heads)]

    def exact(self, keep: Keep | None = None) -> np.ndarray:
        """Logits [layer * head, asked] from lens.run, with no trunk remembered from before."""
        self.lens.forget()
        place = [self.target.decision]
        edits = [set_to("head", la, place, self.heads[la, h], h) for la, h in self.cells]
        runs = self.lens.run(
            [Branch(self.target.token_ids, (edit,)) for edit in edits], keep or Keep(self.asked)
        )
        return np.stack([run.logits[0] for run in runs if run.logits is not None])

    def hooked(self, cells: list[tuple[int, int]]) -> np.ndarray:
        """Logits [cell, vocabulary] from one TransformerLens run_with_hooks per cell."""
        rows = []
        for layer, head in cells:
            hook = partial(_put, value=self.heads[layer, head], head=head)
            logits = self.lens.bridge.run_with_hooks(
                self.ids, fwd_hooks=[(HOOKS["head"].format(layer), hook)]
            )
            rows.append(logits[0, -1].numpy())
        return np.stack(rows)

    @property
    def ids(self) -> torch.Tensor:
        return torch.tensor([self.target.token_ids], device=self.lens.device)

    def setup(self) -> dict[str, Any]:
        return {
            "target": described(self.target),
            "source": described(self.source),
            "heads": len(self.cells),
            "asked_tokens": [self.lens.tokenizer.decode([t]) for t in self.asked],
            "left_out": "the source's head outputs are captured before the timing, on both sides",
        }


def row_a(lens: Lens, *, quick: bool) -> Row:
    """The exact sweep against a TransformerLens loop over heads, timed on a sample of them."""
    sweep = _make(lens)
    count, repeats = (4, 2) if quick else (12, 5)
    every = sweep.cells
    sample = [every[i] for i in np.linspace(0, len(every) - 1, count).round().astype(int)]
    with torch.no_grad():
        sweep.hooked(sample[:1])
        seconds = alternate(
            {"exact": sweep.exact, "hooks": partial(sweep.hooked, sample)},
            repeats,
            label="a: sweep, hook loop",
            warm_up=["exact"],
        )
        wanted = sweep.hooked(sample)
        places = [every.index(cell) for cell in sample]
        asked_gap = np.abs(sweep.exact()[places] - wanted[:, list(sweep.asked)]).max()
        gap = np.abs(sweep.exact(Keep(True))[places] - wanted).max()
        effect = np.abs(wanted - lens.bridge(sweep.ids)[0, -1].numpy()).max()
    exact = Times(f"exact sweep, {len(every)} heads", seconds["exact"])
    factor = len(every) / count
    loop = Times(
        f"TransformerLens hook loop, {len(every)} heads",
        tuple(s * factor for s in seconds["hooks"]),
        f"{count} heads spread over the layers were run in each repeat, times {factor:g}",
    )
    return Row(
        f"Exact sweep over {len(every)} heads against a TransformerLens hook loop, "
        f"{len(sweep.target)} tokens",
        (
            ratio("speed-up", loop, exact, "x", (">=", 100), note=loop.scaled),
            Figure("exact sweep", exact.median, "s"),
            Figure("hook loop, one head", loop.median / len(every), "s"),
            Figure(
                "max |logit difference|, asked tokens", float(asked_gap), "", ("<=", 1e-4),
                note=f"over the {count} sampled heads",
            ),
            Figure(
                "max |logit difference|, whole vocabulary", float(gap), "", ("<=", 1e-4),
                note=f"the patches themselves move logits by up to {effect:.3g}",
            ),
        ),
        (exact, loop),
        {**sweep.setup(), "sampled_heads": [list(cell) for cell in sample]},
    )  # fmt: skip


def row_b(lens: Lens, *, quick: bool) -> Row:
    """The same sweep in units of one plain forward on the fused attention kernel."""
    sweep = _make(lens)
    with torch.no_grad():
        seconds = alternate(
            {
                "exact": sweep.exact,
                "full": lambda: lens.twin(sweep.ids),
                "last": lambda: lens.twin(sweep.ids, logits_to_keep=1),
            },
            2 if quick else 9,
            label="b: sweep, forwards",
        )
    exact = Times(f"exact sweep, {len(sweep.cells)} heads", seconds["exact"])
    full = Times("plain forward, fused kernel, all logits", seconds["full"])
    last = Times("plain forward, fused kernel, logits_to_keep=1", seconds["last"])
    return Row(
        f"Exact sweep over {len(sweep.cells)} heads in plain forwards, {len(sweep.target)} tokens",
        (
            ratio("exact sweep", exact, full, "forwards", ("<=", 2.5), note="aim: 1.7"),
            ratio(
                "exact sweep, against logits_to_keep=1", exact, last, "forwards",
                note="the forward without the unembedding of all but the last token",
            ),
            Figure("exact sweep", exact.median, "s"),
            Figure("plain forward", full.median, "s"),
            Figure("plain forward, logits_to_keep=1", last.median, "s"),
        ),
        (exact, full, last),
        sweep.setup(),
    )  # fmt: skip


def _make(lens: Lens) -> Sweep:
    target, source = generators_near(lens, LENGTH, 2)
    heads = lens.run([Branch(source.token_ids)], Keep(heads=True))[0].heads
    logits = lens.run([Branch(target.token_ids)])[0].logits
    assert heads is not None and logits is not None
    first, second = np.argsort(-logits[0])[:2].tolist()
    return Sweep(lens, source, target, heads[:, :, 0], (first, second))


def _put(z: torch.Tensor, hook: object, *, value: torch.Tensor, head: int) -> torch.Tensor:
    z[:, -1, head] = value  # in place, the fastest way that TransformerLens's users have
    return z
