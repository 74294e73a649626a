"""Where no head matters, the search reports any head in at most five runs of a hundred."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import binomtest

from lab.engine.planted import FILLERS, planted_model, token_ids
from lab.instruments.override.pairs import Asked, Pair, planted_pairs
from lab.instruments.override.sweep import Sweep, patch_sweep
from lab.instruments.override.testing import published_rule, significant_heads

LEVEL = 0.05
RUNS = 1_000
KINDS = ("noise", "identical", "shuffled")


def share_with_heads(shift: np.ndarray, seed: int, runs: int) -> tuple[float, float]:
    """Share of label shuffles in which the test, and the published rule, report any head."""
    rng = np.random.default_rng(seed)
    names = [""] * len(shift)
    ours = theirs = 0
    for _ in range(runs):
        signs = rng.choice([-1.0, 1.0], len(shift))
        shuffled = shift * signs[:, None, None, None]
        ours += bool(significant_heads(shuffled, names, LEVEL).heads)
        rule = published_rule(shuffled.mean(0))
        theirs += bool(rule.promoting or rule.suppressing)
    return ours / runs, theirs / runs


@cache
def sweep_of(kind: str) -> Sweep:
    planted = planted_model(4, 5, 3, circuit=kind != "noise")
    pairs = planted_pairs(planted, 12, 3)
    if kind == "identical":
        # Both prompts ask the same; they differ in the filler only.
        pairs = [Pair(p.b, _other_filler(p.b), p.answers, p.cluster) for p in pairs]
    return patch_sweep(planted.lens, pairs, layers=False)


def _other_filler(asked: Asked) -> Asked:
    first = token_ids("filler0")[0]
    tokens = list(asked.tokens)
    tokens[2] = first + (tokens[2] - first + 1) % FILLERS
    return Asked(tuple(tokens), asked.spans)


def share_in_noise(n: int) -> float:
    """The same on invented shifts: heavy tails, heads that move together, a few discrete values."""
    rng = np.random.default_rng(n)
    found = 0
    for run in range(RUNS):
        common = rng.standard_t(2, (n, 1, 1, 1))
        shift = rng.standard_t(2, (n, 2, 4, 6)) + 0.5 * common
        if run % 2:
            shift = np.round(shift)
        found += bool(significant_heads(shift, [""] * n, LEVEL).heads)
    return found / RUNS


def by_chance(share: float) -> bool:
    """Whether a share of RUNS runs may be one of a true rate at the level or below."""
    return bool(binomtest(round(share * RUNS), RUNS, LEVEL, "greater").pvalue > 0.01)


class TestNullRate:
    def test_holds(self) -> None:
        """Over 6,000 runs together, and in no case beyond what chance allows around the level.

        Noise heads only; two prompts that ask the same; a real circuit with shuffled labels; and
        invented shifts of 6, 9 and 12 examples.
        """
        shares = [share_with_heads(sweep_of(k).shift, 1, RUNS)[0] for k in KINDS]
        shares += [share_in_noise(n) for n in (6, 9, 12)]
        assert np.mean(shares) <= LEVEL
        assert all(by_chance(share) for share in shares)

    def test_the_published_rule_nearly_always_labels_somebody(self) -> None:
        assert all(share_with_heads(sweep_of(k).shift, 1, 50)[1] > 0.5 for k in KINDS)

    def test_examples_of_one_cluster_flip_together(self) -> None:
        """Four examples of a passage move as one; flipped one by one, they would find anything."""
        rng = np.random.default_rng(0)
        clustered = alone = 0
        names = [f"passage{i // 4}" for i in range(48)]
        for run in range(RUNS):
            shift = np.repeat(rng.normal(size=(12, 2, 3, 4)), 4, axis=0)
            clustered += bool(significant_heads(shift, names, LEVEL).heads)
            if run < 20:
                alone += bool(significant_heads(shift, [""] * 48, LEVEL).heads)
        assert by_chance(clustered / RUNS)
        assert alone / 20 > 0.5

    def test_has_power_where_a_head_matters(self) -> None:
        rng = np.random.default_rng(0)
        shift = rng.normal(size=(14, 2, 4, 6))
        shift[:, 0, 2, 3] += 3
        assert significant_heads(shift, [""] * 14, LEVEL).heads == ((2, 3),)


def test_the_direction_must_not_come_from_the_outcome() -> None:
    """Why shifts are signed by the pair: signed by the model's own gap, noise heads matter."""
    sweep = sweep_of("noise")
    by_outcome = np.sign(sweep.clean[:, 0] - sweep.clean[:, 1])[:, None, None, None]
    signed = (sweep.shift * by_outcome).mean((0, 1)).sum()
    gap = np.abs(sweep.clean[:, 0] - sweep.clean[:, 1]).mean()
    assert signed > 0.5 * gap


def test_the_published_rule_labels_a_twentieth_of_noise() -> None:
    rng = np.random.default_rng(0)
    shares = [published_rule(rng.normal(size=(2, 30, 9))).share for _ in range(200)]
    assert np.mean(shares) == pytest.approx(0.046, abs=0.004)
