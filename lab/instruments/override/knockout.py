"""Is what is attended also used? Attention between two parts of a prompt, cut layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

from lab.engine.edits import knockout
from lab.engine.lens import Lens
from lab.errors import LabError
from lab.instruments import statistics as S
from lab.instruments.override.decisions import Job, decide
from lab.instruments.override.pairs import RUNS, Pair, clusters_of

Edge = tuple[str, str]
"""From the span that looks to the span that is looked at, such as ("decision", "context")."""

WINDOW = 9


@dataclass(frozen=True, slots=True, eq=False)
class Knockout:
    """Effects of cutting edges in windows of layers, in one run of every pair.

    Attributes:
        run: which run, 0 for a.
        edges: what was cut; ``windows``: first and last layer, both included.
        clean: [pair], log-odds of the run's own answer, uncut.
        own: [edge, window, pair], the same with the edge cut in the window.
        said: [edge, window, pair], 0 own answer, 1 the competing one, 2 neither.
        clean_said: [pair].
        clusters: of the pairs.
    """

    run: int
    edges: tuple[Edge, ...]
    windows: tuple[tuple[int, int], ...]
    clean: Float[np.ndarray, " pair"]
    own: Float[np.ndarray, "edge window pair"]
    said: Float[np.ndarray, "edge window pair"]
    clean_said: Float[np.ndarray, " pair"]
    clusters: tuple[str, ...]

    def to_dataframe(self) -> pd.DataFrame:
        """One row an edge and window.

        Columns: run, queries, keys, first, last, value (mean shift of the log-odds towards the
        competing answer) with low, high and n, to_other and damage (shares of the n_asked pairs
        first answered as asked that turn to the competing answer, or to anything else), two_token
        (share of the n_two_token pairs with log-odds for the own answer that turn). As in `prove`.
        """
        means = S.bootstrap_means(
            np.moveaxis(self.clean - self.own, -1, 0), np.asarray(self.clusters, dtype=object)
        )
        asked, favours = self.clean_said == 0, self.clean > 0
        turned = self.own[..., favours] < 0
        with np.errstate(all="ignore"):
            flips = {
                "to_other": (self.said[..., asked] == 1).sum(-1) / asked.sum(),
                "damage": (self.said[..., asked] == 2).sum(-1) / asked.sum(),
                "n_asked": np.full(turned.shape[:-1], asked.sum()),
                "two_token": turned.sum(-1) / favours.sum(),
                "n_two_token": np.full(turned.shape[:-1], favours.sum()),
            }
        rows = [
            {
                "run": RUNS[self.run], "queries": edge[0], "keys": edge[1],
                "first": window[0], "last": window[1], "value": means.value[i, j],
                "low": means.low[i, j], "high": means.high[i, j], "n": means.n[i, j],
                **{name: share[i, j] for name, share in flips.items()},
            }
            for i, edge in enumerate(self.edges)
            for j, window in enumerate(self.windows)
        ]  # fmt: skip
        return pd.DataFrame(rows)


def layer_windows(n_layers: int, width: int = WINDOW) -> tuple[tuple[int, int], ...]:
    """A window of ``width`` layers around every layer, cut off at both ends."""
    before, after = (width - 1) // 2, width // 2
    return tuple((max(0, la - before), min(n_layers - 1, la + after)) for la in range(n_layers))


def knock_out(
    lens: Lens,
    pairs: Sequence[Pair],
    run: int,
    edges: Sequence[Edge],
    windows: Sequence[tuple[int, int]] | None = None,
) -> Knockout:
    """Cut attention from one span to another in every window of layers.

    Scores of the cut edges are set to the lowest number before the softmax, so that each row goes
    on to sum to one (Geva et al. 2023, arXiv 2304.14767, with windows of nine layers). Information
    may still take a way around: from the passage to the question to the decision, for one.

    Args:
        lens: the model.
        pairs: with spans (see `make_pair`).
        run: which prompt of each pair, a (0) or b (1).
        edges: spans that look and are looked at; "decision" is the last token.
        windows: first and last layer of each; by default nine layers around each layer.

    Raises:
        LabError: a prompt lacks a span, or a window is outside of the model.
    """
    windows = tuple(windows or layer_windows(lens.n_layers))
    for first, last in windows:
        if not 0 <= first <= last < lens.n_layers:
            raise LabError(
                f"The window of layers {first} to {last} is not within 0 to {lens.n_layers - 1}."
            )
    jobs = []
    for number, pair in enumerate(pairs):
        asked = pair.asked(run)
        jobs.append(Job(number, run))
        jobs += [
            Job(
                number,
                run,
                knockout(asked.where(queries), asked.where(keys), range(first, last + 1)),
            )
            for queries, keys in edges
            for first, last in windows
        ]
    found = decide(lens, pairs, jobs)
    own = ((1, -1)[run] * found.difference).reshape(len(pairs), -1).T
    said = np.array(
        [pairs[job.pair].said(run, int(top)) for job, top in zip(jobs, found.top, strict=True)]
    )
    said = said.reshape(len(pairs), -1).T
    shape = (len(edges), len(windows), len(pairs))
    return Knockout(
        run,
        tuple(edges),
        windows,
        own[0],
        own[1:].reshape(shape),
        said[1:].reshape(shape),
        said[0],
        tuple(clusters_of(pairs)),
    )
