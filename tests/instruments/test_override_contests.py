"""Contests: pairs from conflicts, which of them are used, and controls that look alike."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tiny_conflict import BEGINS_ALIKE, CONFLICT, lens

from lab.data.conflicts import PASSAGES
from lab.engine.planted import planted_model
from lab.instruments.conflicts import ALIKE, conflict_prompter, measure_conflict, measure_verdicts
from lab.instruments.override.backup import backups
from lab.instruments.override.contests import (
    CONTESTS,
    Rendered,
    contest_pair,
    discovery_share,
    draw,
    outcome,
    render,
)
from lab.instruments.override.decisions import capture
from lab.instruments.override.find import candidate_heads, open_search
from lab.instruments.override.matched import attention_mass, matched_sets
from lab.instruments.override.pairs import planted_pairs
from lab.instruments.override.prove import prove
from lab.instruments.override.restored import RIGHT, Restored, restore_verdicts, verdict_table
from lab.roles.conflicts import SIDES


@cache
def rendered() -> Rendered:
    prompter = conflict_prompter(lens())
    return render(prompter, CONFLICT, prompter.verdict_tokens(), begun=True)


class TestContests:
    @pytest.mark.parametrize("name", CONTESTS)
    def test_the_difference_that_is_told_of_all_is_that_of_the_pair(self, name: str) -> None:
        measured = measure_conflict(lens(), CONFLICT, begun=True, generate=False)
        verdicts = measure_verdicts(lens(), CONFLICT)
        told = outcome(CONTESTS[name], measured, verdicts)
        pair = contest_pair(CONTESTS[name], rendered())
        kept = capture(lens(), [pair])
        assert told.difference == pytest.approx(kept.difference[0], abs=1e-3)
        assert told.gap == pytest.approx(kept.difference[0, 0] - kept.difference[0, 1], abs=1e-3)
        if CONTESTS[name].role == "generator":
            own = [pair.said(run, int(kept.top[0, run])) == 0 for run in (0, 1)]
        else:
            own = [told.difference[0] > 0, told.difference[1] < 0]
        assert (not told.reasons) == all(own)

    def test_runs_differ_in_what_the_contest_is_about(self) -> None:
        text = {
            name: [tuple(p.asked(run).tokens) for run in (0, 1)]
            for name, p in ((n, contest_pair(c, rendered())) for n, c in CONTESTS.items())
        }
        assert text["instruction"][0] == text["passage"][0] != text["passage"][1]
        assert text["candidate"][0] == text["checked"][0] != text["checked"][1]
        assert CONTESTS["instruction"].expected == ("counter", "memory")
        assert CONTESTS["checked"].expected == ("accept", "reject")

    def test_answers_that_begin_alike_cannot_be_used(self) -> None:
        measured = measure_conflict(lens(), BEGINS_ALIKE, begun=True, generate=False)
        verdicts = measure_verdicts(lens(), BEGINS_ALIKE)
        told = outcome(CONTESTS["passage"], measured, verdicts)
        assert told.reasons == (ALIKE,) and np.isnan(told.gap)
        assert ALIKE not in outcome(CONTESTS["candidate"], measured, verdicts).reasons


class TestDraw:
    def test_every_cluster_has_a_turn_before_any_has_two(self) -> None:
        clusters = ["a"] * 6 + ["b", "c", "d"]
        for seed in range(5):
            assert {clusters[i] for i in draw(range(9), clusters, 4, seed)} == set("abcd")
        assert draw(range(9), clusters, 20) == list(range(9))
        assert draw([2, 7], clusters, 5) == [2, 7]
        assert len({tuple(draw(range(9), clusters, 4, seed)) for seed in range(10)}) > 1

    def test_discovery_gets_enough_for_a_lone_head_where_that_is_possible(self) -> None:
        sizes = {n: round(n * discovery_share(n)) for n in (2, 15, 18, 23, 30, 50)}
        assert sizes == {2: 1, 15: 8, 18: 10, 23: 15, 30: 15, 50: 25}


class TestMatched:
    def test_mass_is_attention_to_the_passage(self) -> None:
        pair = contest_pair(CONTESTS["passage"], rendered())
        mass = attention_mass(lens(), [pair])
        assert mass.shape == (2, 4, 4) and (mass > 0).all() and (mass < 1).all()
        other = attention_mass(lens(), [pair], "question")
        assert (mass + other < 1.001).all() and not np.allclose(mass, other)

    def test_sets_are_of_the_nearest_other_heads_of_the_layer(self) -> None:
        mass = np.array([[0.1, 0.2, 0.3, 0.9, 0.95], [0.5, 0.1, 0.6, 0.2, 0.7]])
        for chosen in matched_sets([(0, 3), (1, 0)], mass, 40, near=2):
            assert len(set(chosen)) == 2
            assert chosen[0] in {(0, 4), (0, 2)} and chosen[1] in {(1, 2), (1, 4)}
        assert len(matched_sets([(0, 3), (1, 0)], mass, 40, near=2)) == 4

    def test_a_layer_with_too_few_others_gives_its_own_but_not_all_of_them(self) -> None:
        assert matched_sets([(0, 0), (0, 1)], np.array([[0.1, 0.2]]), 3) == []
        two = matched_sets([(0, 0), (0, 1)], np.array([[0.1, 0.2, 0.3]]), 9)
        assert two == [((0, 0), (0, 2)), ((0, 1), (0, 2))]

    def test_no_set_comes_twice(self) -> None:
        mass = np.random.default_rng(0).random((8, 9))
        assert len(matched_sets([(3, 4)], mass, 100)) == 3
        heads = [(0, 1), (3, 4), (3, 5), (5, 0), (6, 2), (7, 7)]
        many = matched_sets(heads, mass, 100)
        assert len({*many}) == 100
        every = {*matched_sets(heads[:3], mass, 1000)}
        assert {*matched_sets(heads[:3], mass, 9, seed=5)} < every and len(every) < 1000


class TestRestored:
    def test_an_empty_set_is_the_unchanged_judge(self) -> None:
        verdicts = measure_verdicts(lens(), CONFLICT)
        odds = restore_verdicts(lens(), [rendered()], [(), [(1, 2), (3, 0)]])
        assert odds.shape == (2, 1, 2, 2)
        for i, stated in enumerate(PASSAGES):
            for j, side in enumerate(SIDES):
                assert odds[0, 0, i, j] == pytest.approx(verdicts[stated, side], abs=1e-3)
        assert np.abs(odds[1] - odds[0]).max() > 1e-3

    def test_a_constant_shift_moves_the_accuracy_but_not_the_auroc(self) -> None:
        rng = np.random.default_rng(0)
        judge = rng.normal(-2, 0.5, (30, 2, 2)) + RIGHT
        table = Restored(np.stack([judge, judge + 2, judge + 1]), tuple(map(str, range(30))))
        frame = table.to_dataframe().set_index(["moment", "measure"])["value"]
        assert frame["before", "balanced_accuracy"] < 0.6 < frame["after", "balanced_accuracy"]
        assert frame["difference", "auroc"] == 0 and frame["after", "auroc"] > 0.85
        assert frame["difference", "log_odds"] == pytest.approx(2)
        alone = verdict_table(judge, list(map(str, range(30))))
        assert alone["auroc"].value == pytest.approx(frame["before", "auroc"])


class TestSmallChanges:
    def test_a_stored_sweep_is_not_run_again(self) -> None:
        planted = planted_model(3, 4, 1)
        pairs = planted_pairs(planted, 20, 1)
        sweep = open_search(planted.lens, pairs).sweep
        again = open_search(planted.lens, pairs, sweep=sweep)
        assert again.sweep is sweep
        assert again.choose(1).heads == planted.heads
        candidates = candidate_heads(sweep)[1]
        assert set(planted.heads) == set(candidates[:3])
        assert len(again.choose(1, most=1).heads) <= 1

    def test_own_random_sets_and_backups_among_some_heads(self) -> None:
        planted = planted_model(3, 4, 1)
        pairs = planted_pairs(planted, 6, 1)
        proof = prove(
            planted.lens, pairs, 0, planted.heads, None, ablations=("zero",), random=[[(0, 0)]]
        )
        assert proof.random == (((0, 0),),)
        bare = prove(planted.lens, pairs, 0, planted.heads, None, ablations=("zero",), random=())
        assert bare.to_dataframe()["p"].isna().all()
        found = backups(planted.lens, pairs, 0, planted.heads, only=[(2, 0), (2, 1)])
        assert np.isfinite(found.alone).sum() == 2
        assert not backups(planted.lens, pairs, 0, planted.heads, only=[]).heads
