"""Row d: the exact head sweep against attribution patching, in time and in what it finds.

Attribution patching (Nanda 2023; Syed et al. 2023, arXiv 2310.10348) estimates the effect of a
patch as (source activation - target activation) . d effect / d activation. Three ways of it are
timed: TransformerLens's own, which scores every position; a minimal one on the same bridge for
the decision alone; and one behind this project's trunk, where only the decision's row has a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch
from prompts import Pair, candidate_pairs, described, role_pairs
from scipy.stats import spearmanr
from timing import Figure, Row, Times, alternate, ratio, timed
from tqdm import tqdm

from lab.engine.edits import HOOKS, set_to
from lab.engine.forward import Keep
from lab.engine.lens import Lens
from lab.engine.packing import Branch, common_prefix
from lab.roles import Prompter, VerdictTokens

LENGTH = 300
TOP = 10

Scores = np.ndarray
"""[layer, head]: the change of the verdict's log-odds when one head is patched."""


@dataclass(frozen=True, slots=True, eq=False)
class Patching:
    """Patching each head at the decision from a pair's source run into its target run.

    Every method starts from two prompts and nothing else, and ends with Scores.
    """

    lens: Lens
    verdict: VerdictTokens
    pair: Pair

    def exact(self) -> Scores:
        """The true effects, from lens.run: both prompts, then all patches."""
        lens, target = self.lens, self.pair.target
        lens.forget()
        source = lens.run([Branch(self.pair.source.token_ids)], Keep(False, heads=True))[0].heads
        assert source is not None
        edits = [
            set_to("head", la, [target.decision], source[la, h, 0], h)
            for la in range(lens.n_layers)
            for h in range(lens.n_heads)
        ]
        branches = [Branch(target.token_ids, (edit,)) for edit in edits]
        asked = (*self.verdict.accept, *self.verdict.reject)
        runs = lens.run([Branch(target.token_ids), *branches], Keep(asked))
        rows = torch.tensor(np.stack([run.logits[0] for run in runs if run.logits is not None]))
        split = len(self.verdict.accept)
        odds = (rows[:, :split].logsumexp(-1) - rows[:, split:].logsumexp(-1)).numpy()
        effects: Scores = (odds[1:] - odds[0]).reshape(lens.n_layers, lens.n_heads)
        return effects

    def gradients(self) -> Scores:
        """The estimate from two forwards and one backward of the whole prompts on the bridge."""
        with torch.no_grad():
            source = self._heads(partial(self.lens.bridge, self._ids(self.pair.source)))
        return self._attribution(source, partial(self.lens.bridge, self._ids(self.pair.target)))

    def behind_trunk(self) -> Scores:
        """The same estimate with all but the decision's row run as a trunk without a graph."""
        self.lens.forget()
        with torch.no_grad():
            source = self._heads(self._last_row(self.pair.source.token_ids))
        return self._attribution(source, self._last_row(self.pair.target.token_ids))

    def transformer_lens(self) -> Scores:
        """TransformerLens's attribution_patch, which scores all nodes at all positions."""
        from transformer_lens.tools.analysis.attribution_patching import attribution_patch

        with _graph_from_embedding(self.lens):
            result = attribution_patch(
                self.lens.bridge,
                self._ids(self.pair.source),
                self._ids(self.pair.target),
                lambda logits: self._effect(logits[0, -1]),
            )
        scores = np.zeros((self.lens.n_layers, self.lens.n_heads))
        for node, score in result.node_scores.items():
            if node.kind == "attn_head_out" and node.position == self.pair.target.decision:
                scores[node.layer, node.head] = score
        return scores

    def plain(self) -> Any:
        with torch.no_grad():
            return self.lens.twin(self._ids(self.pair.target))

    def _effect(self, row: torch.Tensor) -> torch.Tensor:
        accept, reject = list(self.verdict.accept), list(self.verdict.reject)
        return row[accept].logsumexp(-1) - row[reject].logsumexp(-1)

    def _ids(self, prompt: Any) -> torch.Tensor:
        return torch.tensor([prompt.token_ids], device=self.lens.device)

    def _heads(self, forward: Callable[[], Any]) -> list[torch.Tensor]:
        """Each layer's head outputs at the last position, [head, d_head]."""
        found: list[torch.Tensor] = []
        hooks = [_at_z(layer, partial(_take, found)) for layer in range(self.lens.n_layers)]
        with self.lens.bridge.hooks(fwd_hooks=hooks):
            forward()
        return found

    def _attribution(self, source: Sequence[torch.Tensor], forward: Callable[[], Any]) -> Scores:
        """(source - target) . gradient at the last position, from one forward and backward."""
        shifts = [torch.zeros_like(z).requires_grad_() for z in source]
        own: list[torch.Tensor] = []
        hooks = [_at_z(la, partial(_shift, own, shift)) for la, shift in enumerate(shifts)]
        with self.lens.bridge.hooks(fwd_hooks=hooks):
            output = forward()
        logits = getattr(output, "logits", output)
        slopes = torch.autograd.grad(self._effect(logits[0, -1]), shifts)
        return np.stack(
            [
                ((given - z) * slope).sum(-1).numpy()
                for given, z, slope in zip(source, own, slopes, strict=True)
            ]
        )

    def _last_row(self, tokens: tuple[int, ...]) -> Callable[[], Any]:
        trunk = self.lens.trunks.get(tokens[:-1])
        return partial(
            self.lens.model,
            input_ids=torch.tensor([tokens[-1:]], device=self.lens.device),
            past_key_values=trunk.fresh_cache(),
            use_cache=True,
        )


def row_d(lens: Lens, *, quick: bool) -> Row:
    """Time and agreement over pairs of right and wrong candidates."""
    verdict = Prompter(lens.tokenizer).verdict_tokens()
    pairs = candidate_pairs(lens, LENGTH, 2 if quick else 12)
    names = ("exact", "gradients", "behind_trunk", "plain")
    taken: dict[str, list[float]] = {name: [] for name in names}
    rows = []
    for number, pair in enumerate(pairs):
        patching = Patching(lens, verdict, pair)
        seconds = alternate(
            {name: getattr(patching, name) for name in names},
            1,
            label=f"d: pair {number + 1} of {len(pairs)}",
            warm_up=names if number == 0 else (),
        )
        for name in names:
            taken[name] += seconds[name]
        rows.append(_agreement(patching))
    exact, gradients, trunk, plain = (
        Times(title, tuple(taken[name]))
        for title, name in zip(
            (
                "exact, from two prompts to all heads' effects",
                "gradients, minimal, whole prompts",
                "gradients behind a trunk",
                "plain forward, fused kernel",
            ),
            names,
            strict=True,
        )
    )
    first = Patching(lens, verdict, pairs[0])
    roles = [
        _agreement(Patching(lens, verdict, pair))
        for pair in tqdm(role_pairs(lens, LENGTH, len(pairs)), desc="d: roles", leave=False)
    ]
    scores: list[Scores] = []
    own = Times("gradients, TransformerLens's attribution_patch",
                (timed(lambda: scores.append(first.transformer_lens())),))  # fmt: skip
    minimal = first.gradients()
    gaps = [float(np.abs(minimal - other).max()) for other in (scores[0], first.behind_trunk())]
    return Row(
        f"Exact head sweep against attribution patching, {len(pairs)} pairs near {LENGTH} tokens",
        (
            ratio("gradients over exact", gradients, exact, "x the time", note="over pairs"),
            ratio("gradients behind a trunk over exact", trunk, exact, "x the time"),
            ratio("exact", exact, plain, "forwards", note="with the source's run"),
            ratio("gradients", gradients, plain, "forwards"),
            ratio("gradients behind a trunk", trunk, plain, "forwards"),
            Figure("TransformerLens's attribution_patch", own.median, "s",
                   note="run once; scores all positions node by node in Python"),
            Figure("max |difference|, its scores and the minimal", gaps[0], "", ("<=", 1e-3)),
            Figure("max |difference|, behind a trunk and minimal", gaps[1], "", ("<=", 1e-3)),
            *_agreements("right into wrong candidate", rows),
            *_agreements("generator into evaluator", roles),
        ),
        (exact, gradients, trunk, own, plain),
        {
            "candidate_pairs": rows,
            "role_pairs": roles,
            "effect": "change of the verdict's log-odds in the target's run",
        },
    )  # fmt: skip


def _agreement(patching: Patching) -> dict[str, Any]:
    """How the estimate ranks the heads, against the exact effects.

    The estimate behind a trunk stands for both: they differ by rounding, and it
    takes prompts of unequal lengths too.
    """
    exact, estimate = patching.exact().ravel(), patching.behind_trunk().ravel()
    best = [set(np.argsort(-np.abs(scores))[:TOP].tolist()) for scores in (exact, estimate)]
    return {
        "source": described(patching.pair.source),
        "target": described(patching.pair.target),
        "shared_tokens": common_prefix(
            [patching.pair.source.token_ids, patching.pair.target.token_ids]
        ),
        "spearman": float(spearmanr(exact, estimate).statistic),
        "top": float(len(best[0] & best[1])),
        "largest_effect": float(np.abs(exact).max()),
        "largest_error": float(np.abs(exact - estimate).max()),
    }


def _agreements(title: str, rows: Sequence[dict[str, Any]]) -> list[Figure]:
    asked = (
        ("Spearman, all heads", "spearman", ""),
        (f"top-{TOP} overlap by |effect|", "top", f"of {TOP}"),
        ("largest |effect|", "largest_effect", "log-odds"),
        ("largest error of the estimate", "largest_error", "log-odds"),
    )
    return [
        _spread(name, [row[key] for row in rows], unit, f"{title}, {len(rows)} pairs")
        for name, key, unit in asked
    ]


def _spread(name: str, values: Sequence[float], unit: str, note: str) -> Figure:
    return Figure(name, median(values), unit, None, min(values), max(values), note)


def _at_z(layer: int, act: Callable[..., Any]) -> tuple[str, Callable[..., Any]]:
    def hook(z: torch.Tensor, hook: object) -> Any:
        return act(z)

    return HOOKS["head"].format(layer), hook


def _take(found: list[torch.Tensor], z: torch.Tensor) -> None:
    found.append(z[0, -1].clone())


def _shift(own: list[torch.Tensor], shift: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """Keep the value, and add zeros whose gradient is the gradient at the last position."""
    own.append(z[0, -1].detach().clone())
    z = z.clone()
    z[0, -1] += shift
    return z


@contextmanager
def _graph_from_embedding(lens: Lens) -> Iterator[None]:
    """TransformerLens needs a weight with gradients before the first node; a Lens freezes all."""
    weight = lens.model.get_input_embeddings().weight
    weight.requires_grad_(True)
    try:
        yield
    finally:
        weight.requires_grad_(False)
