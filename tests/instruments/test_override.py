"""The override instruments one by one: patches, rules, sets, ablation, knockout, kinds, overlap."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from lab.engine.direct import direct_logits, head_writes
from lab.engine.forward import Keep
from lab.engine.packing import Branch
from lab.engine.planted import Planted, planted_model
from lab.errors import LabError
from lab.instruments.override.ablation import Values, ablate_sets
from lab.instruments.override.backup import backups
from lab.instruments.override.classify import classify
from lab.instruments.override.decisions import capture
from lab.instruments.override.find import Found, Search, open_search, stability
from lab.instruments.override.generation import generate_ablated
from lab.instruments.override.knockout import Knockout, knock_out, layer_windows
from lab.instruments.override.overlap import overlap
from lab.instruments.override.pairs import (
    Asked,
    Pair,
    clusters_of,
    make_pair,
    planted_pairs,
    split_by_cluster,
)
from lab.instruments.override.prove import prove, prove_elsewhere, random_sets, text_loss
from lab.instruments.override.screen import attribution_screen
from lab.instruments.override.sweep import window_of
from lab.instruments.override.testing import published_rule, significant_heads


@cache
def planted() -> Planted:
    return planted_model(4, 5, 1)


@cache
def pairs() -> list[Pair]:
    return planted_pairs(planted(), 24, 1)


@cache
def search() -> Search:
    return open_search(planted().lens, pairs())


@cache
def found() -> Found:
    return search().choose(1)


def held() -> list[Pair]:
    return [pairs()[i] for i in found().held_out]


class TestPairs:
    def test_the_effect_is_the_log_odds_of_all_spellings(self) -> None:
        pair = make_pair([1, 2], [1, 3], (0, 1), 2)
        logits = np.log([0.1, 0.2, 0.6, 0.1])
        assert pair.difference(logits) == pytest.approx(np.log(0.3 / 0.6))
        assert [pair.said(1, token) for token in (2, 0, 3)] == [0, 1, 2]

    def test_answers_must_differ(self) -> None:
        with pytest.raises(LabError, match="no token to both"):
            make_pair([1], [2], (3, 4), (4,))

    def test_a_missing_span_is_named(self) -> None:
        with pytest.raises(LabError, match="it has decision, context"):
            Asked((1, 2), {"context": (0,)}).where("candidate")

    def test_a_split_cuts_no_cluster(self) -> None:
        clusters = [f"p{i // 3}" for i in range(30)]
        for seed in range(5):
            discovery = split_by_cluster(clusters, seed)
            inside = {c for c, d in zip(clusters, discovery, strict=True) if d}
            assert not inside & {c for c, d in zip(clusters, discovery, strict=True) if not d}
            assert 3 <= len(inside) <= 7
        with pytest.raises(LabError, match="cannot be split"):
            split_by_cluster(["p"] * 4)


class TestSweep:
    def test_the_last_residual_carries_everything_over(self) -> None:
        table = search().sweep.to_dataframe()
        last = table[(table["site"] == "resid_post") & (table["layer"] == 3)]
        assert last["value"].to_numpy() == pytest.approx(1, abs=1e-4)
        assert (last[["flip_top", "flip_two"]] == 1).all(axis=None)
        assert (last["damage"] == 0).all()

    def test_a_run_patched_with_itself_does_not_change(self) -> None:
        same = [Pair(p.a, p.a, p.answers) for p in pairs()[:3]]
        sweep = open_search(planted().lens, same).sweep
        assert np.abs(sweep.shift).max() < 1e-4
        assert sweep.too_close == 3 and np.isnan(sweep.restoration).all()
        nothing = open_search(planted().lens, same, layers=False).choose()
        assert nothing.heads == nothing.published.promoting == ()

    def test_the_router_restores_all_and_the_writers_a_part(self) -> None:
        table = search().sweep.to_dataframe().set_index(["site", "direction", "layer", "head"])
        heads = table.loc["head"]
        p = planted()
        for way in ("a_into_b", "b_into_a"):
            assert heads.loc[way, *p.router]["value"] == pytest.approx(1, abs=0.05)
            assert heads.loc[way, *p.router]["flip_top"] == 1
        assert 0.08 < heads.loc["a_into_b", *p.memory]["value"] < 0.2
        assert heads.loc["b_into_a", *p.copier]["value"] > 0.7

    def test_the_critical_window_begins_where_the_router_stands(self) -> None:
        window = window_of(search().sweep, 0)
        assert window is not None and window.first >= planted().router[0]
        with pytest.raises(LabError, match="layers=True"):
            window_of(open_search(planted().lens, pairs()[:2], layers=False).sweep, 0)


class TestScreen:
    def test_is_right_where_effects_are_linear_and_wrong_where_attention_saturates(self) -> None:
        p = planted()
        screen = attribution_screen(p.lens, pairs()[:8])
        exact = search().sweep.of(range(8)).shift
        assert screen.shift[:, :, -1] == pytest.approx(exact[:, :, -1], abs=0.1)
        router = exact.mean(0)[:, *p.router]
        assert np.abs(screen.shift.mean(0)[:, *p.router] - router).max() > 0.5 * router.max()

    def test_says_how_well_it_ranks(self) -> None:
        table = attribution_screen(planted().lens, pairs()[:8]).agreement(
            search().sweep.of(range(8)), top=5
        )
        assert table["direction"].tolist() == ["a_into_b", "b_into_a"]
        assert table["spearman"].between(0, 1).all() and table["shared"].between(1, 5).all()


class TestRules:
    def test_the_published_rule_on_a_known_cloud(self) -> None:
        points = [(0, 0), (.01, 0), (0, .01), (-.01, 0), (0, -.01), (.01, .01), (-.01, -.01),
                  (0, .02), (.02, 0), (.3, .4), (0, 0), (-.02, 0)]  # fmt: skip
        rule = published_rule(np.array(points).T.reshape(2, 3, 4))
        assert rule.promoting == ((2, 1),) and rule.suppressing == ()
        assert rule.score[2, 1] == pytest.approx(0.457, abs=0.001)
        assert rule.share == pytest.approx(1 / 12)
        assert rule.to_dataframe()["label"].tolist().count("promoting") == 1

    def test_too_few_clusters_are_said_to_be_too_few(self) -> None:
        shift = np.ones((6, 2, 4, 5))
        assert not significant_heads(shift, [""] * 6).enough
        assert significant_heads(np.ones((14, 2, 4, 5)), [""] * 14).enough


class TestSets:
    def test_curves_are_scored_on_held_out_pairs(self) -> None:
        table = found().chosen[0].to_dataframe()
        assert (table["n"] == len(held())).all()
        assert table["value"][0] == 0 and (table["low"] <= table["value"]).all()

    def test_the_table_of_heads_names_both_rules(self) -> None:
        table = found().to_dataframe().set_index(["layer", "head"])
        assert table.loc[planted().memory, "tested"] and table.loc[planted().memory, "in_a"]
        assert table.loc[planted().memory, "published"] == ""
        assert table.loc[planted().router, "published"] == "promoting"

    def test_a_pair_is_no_donor_of_its_own(self) -> None:
        some = [replace(pair, cluster="") for pair in pairs()[:4]]
        donors = capture(planted().lens, some)
        for seed in range(40):
            values = Values("resample", donors, ("",) * 4, seed, tuple(range(4)))
            for number in range(4):
                put = values.of(number, 0, "")
                assert not any(torch.equal(put, donors.heads[number, run]) for run in (0, 1))
        mean = Values("mean", donors, ("",) * 4, 0, tuple(range(4))).of(1, 0, "")
        others = donors.heads[[0, 2, 3]].flatten(0, 1).mean(0)
        assert torch.allclose(mean, others)

    def test_means_for_the_choice_come_from_the_discovery_pairs(self) -> None:
        """What the held-out pairs are makes no difference to what is chosen."""
        discovery = np.arange(16) < 10
        chosen = []
        for held_out in (pairs()[10:16], pairs()[18:24]):
            some = open_search(planted().lens, [*pairs()[:10], *held_out], how="mean", layers=False)
            chosen.append(some.choose(discovery=discovery).chosen)
        for one, other in zip(*chosen, strict=True):
            assert one.sets == other.sets and one.ranking == other.ranking
            assert one.curve[:, discovery] == pytest.approx(other.curve[:, discovery], abs=1e-4)

    def test_the_finding_is_stable_over_splits(self) -> None:
        result = stability(search(), range(5))
        assert result.mean == 1
        assert (result.to_dataframe()["splits"] == 5).all()

    def test_patching_a_whole_set_restores_the_other_run(self) -> None:
        """With the other run's values, the two writers alone do all that the router does."""
        p, values = planted(), Values("other", capture(planted().lens, pairs()[:6]))
        own = ablate_sets(p.lens, pairs()[:6], 0, [(), (p.router,), (p.copier, p.memory)], values)
        assert (own.said[1:] == 1).all()
        assert own.own[1] == pytest.approx(own.own[2], abs=1.5)

    def test_random_sets_match_the_layers(self) -> None:
        sets = random_sets([(0, 1), (2, 0), (2, 3)], 4, 9, 50)
        assert len({*sets}) == 50
        for heads in sets:
            assert [layer for layer, _ in heads] == [0, 2, 2]
            assert not {(0, 1), (2, 0), (2, 3)} & {*heads}
        with pytest.raises(LabError, match="outside of 4 x 5"):
            random_sets([(4, 0)], 4, 5)

    def test_no_random_set_comes_twice(self) -> None:
        alone = random_sets([(3, 4)], 8, 9)
        assert len({*alone}) == len(alone) == 8 and ((3, 4),) not in alone
        assert len(random_sets([(3, 4)], 8, 9, 5)) == len({*random_sets([(3, 4)], 8, 9, 5)}) == 5
        most = {*random_sets([(1, 0), (1, 2), (1, 3)], 2, 4)}
        assert len(most) == 3, "where others are too few its own come, but never all of them"
        assert random_sets([(1, 0), (1, 1)], 2, 2) == []
        many = random_sets([(0, h) for h in range(8)], 1, 32)
        assert len({*many}) == 100, "of 735,471, which are not listed"

    def test_larger_sets_are_those_that_were_drawn_before(self) -> None:
        """By this seed, so that a study begun earlier goes on with the same sets."""
        heads, rng = [(0, 1), (2, 0), (2, 3)], np.random.default_rng([7, 3])
        pools = {0: [h for h in range(30) if h != 1], 2: [h for h in range(30) if h not in (0, 3)]}
        drawn = [
            ((0, *rng.choice(pools[0], 1, replace=False)),
             *((2, h) for h in sorted(rng.choice(pools[2], 2, replace=False))))
            for _ in range(20)
        ]  # fmt: skip
        assert random_sets(heads, 3, 30, 20, 7) == drawn


class TestProof:
    def test_the_set_flips_to_the_other_answer_and_random_sets_do_not(self) -> None:
        donors = capture(planted().lens, [pairs()[i] for i in found().chosen_on])
        proof = prove(planted().lens, held(), 0, found().set_of(0), donors)
        table = proof.to_dataframe().set_index(["how", "measure"])
        zero = table.loc["zero"]
        assert zero.loc["to_other", "value"] == 1 and zero.loc["damage", "value"] == 0
        assert zero.loc["to_other", "random_high"] == 0
        assert zero.loc["shift", "p"] == pytest.approx(1 / (1 + zero.loc["shift", "random_sets"]))
        assert zero.loc["shift", "percentile"] == 1
        assert zero.loc["shift", "low"] < zero.loc["shift", "value"] < zero.loc["shift", "high"]
        # Donors come from both runs, so about half of them carry no mark.
        assert 0.1 < table.loc[("resample", "to_other"), "value"] < 0.9
        per_layer = {layer for layer, _ in found().set_of(0)}
        assert len(per_layer) == 2 and (table["random_sets"] == 4 * 4).all()

    def test_p_is_no_smaller_than_the_number_of_other_sets_allows(self) -> None:
        p = planted_model(3, 4, 1)
        some = planted_pairs(p, 4, 1)
        proof = prove(p.lens, some, 0, [p.router], None, ablations=("zero",))
        table = proof.to_dataframe()
        assert (table["random_sets"] == 3).all() and (table["p"].dropna() >= 0.25).all()
        given = [[(0, 0), (1, 1)], [(1, 1), (0, 0)], [(0, 2)]]
        own = prove(p.lens, some, 0, [p.router], None, ablations=("zero",), random=given)
        assert own.random == (((0, 0), (1, 1)), ((0, 2),))

    def test_damage_is_told_from_flips(self) -> None:
        """Without both memory heads the model says "unknown", which is no sign of an override."""
        heads = (planted().memory, planted().backup)
        proof = prove(
            planted().lens, held(), 0, heads, capture(planted().lens, held()),
            ablations=("zero",), n_random=10,
        )  # fmt: skip
        assert proof.found["zero", "damage"].estimate.value == 1
        assert proof.found["zero", "to_other"].estimate.value == 0

    def test_where_no_pair_can_flip_nothing_is_claimed(self) -> None:
        """The wrong labels: no run gives its own answer, so no share is defined, nor a p."""
        wrong = [Pair(p.a, p.b, (p.answers[1], p.answers[0])) for p in held()]
        donors = capture(planted().lens, wrong)
        proof = prove(
            planted().lens, wrong, 0, [planted().router], donors, ablations=("zero",), n_random=5
        )
        flips = proof.to_dataframe().set_index("measure").loc["to_other"]
        assert flips["n"] == 0 and flips[["value", "p", "percentile"]].isna().all()

    def test_other_prompts_are_left_alone(self) -> None:
        """In prompts that do not ask for memory, the router has nothing to say."""
        prompts = [p.b.tokens for p in held()]
        here = prove_elsewhere(planted().lens, prompts, [planted().router], n_random=30)
        assert here.changed.estimate.value == 0
        assert here.divergence.estimate.value < 1e-3
        there = prove_elsewhere(planted().lens, prompts, [planted().copier], n_random=30)
        assert there.changed.estimate.value == 1
        assert there.changed.p == pytest.approx(1 / 5), "the layer has four other heads"
        assert list(there.to_dataframe()["measure"]) == ["changed", "divergence"]

    def test_text_loss_of_no_set_is_the_models_own(self) -> None:
        tokens = pairs()[0].a.tokens
        every = [(layer, head) for layer in range(4) for head in range(5)]
        loss = text_loss(planted().lens, [tokens], [(), every])
        places = tuple(range(len(tokens) - 1))
        logits = planted().lens.run([Branch(tokens, keep=places)])[0].logits.astype(float)
        told = [logits[i, tokens[i + 1]] - np.logaddexp.reduce(logits[i]) for i in places]
        assert loss[0, 0] == pytest.approx(-np.mean(told), abs=1e-4)
        assert loss[1, 0] != pytest.approx(loss[0, 0], abs=1e-3)

    def test_a_flip_can_be_read(self) -> None:
        lens, pair = planted().lens, pairs()[0]
        own = generate_ablated(lens, pair.a.tokens, (), max_new_tokens=4)
        assert own == lens.generate(pair.a.tokens, max_new_tokens=4)
        flipped = generate_ablated(lens, pair.a.tokens, [planted().router], max_new_tokens=4)
        assert (own[0], flipped[0]) == (pair.answers[0][0], pair.answers[1][0])

    def test_no_heads_and_no_donors_are_refused(self) -> None:
        with pytest.raises(LabError, match="no heads to ablate"):
            prove(planted().lens, held(), 0, (), capture(planted().lens, held()))
        with pytest.raises(LabError, match="donors"):
            Values("mean")
        one = capture(planted().lens, pairs()[:1])
        values = Values("mean", one, (pairs()[0].cluster,))
        with pytest.raises(LabError, match="belong to the cluster"):
            ablate_sets(planted().lens, pairs()[:1], 0, [()], values)


class TestKnockout:
    def test_only_the_used_edge_in_its_layer_counts(self) -> None:
        p = planted()
        edges = [("decision", "context"), ("decision", "instruction"), ("question", "context")]
        windows = [(layer, layer) for layer in range(4)]
        table = knock_out(p.lens, held(), 1, edges, windows).to_dataframe()
        table = table.set_index(["queries", "keys", "first"])
        assert table.loc[("decision", "context", p.copier[0]), "to_other"] == 1
        others = table.drop(index=("decision", "context", p.copier[0]))
        assert (others["to_other"] == 0).all() and (others["value"].abs() < 3).all()

    def test_cutting_the_instruction_switches_memory_off(self) -> None:
        p = planted()
        cut = knock_out(p.lens, held(), 0, [("decision", "instruction")]).to_dataframe()
        assert len(cut) == 4 and (cut["to_other"] == 1).all()

    def test_a_turned_verdict_is_counted_though_a_third_word_is_on_top(self) -> None:
        log_odds, third = np.ones(8), np.full(8, 2)
        cut = Knockout(
            0, (("decision", "context"),), ((0, 1),), log_odds, -log_odds[None, None],
            third[None, None], third, tuple("abcdefgh"),
        )  # fmt: skip
        row = cut.to_dataframe().iloc[0]
        assert (row["two_token"], row["n_two_token"], row["n_asked"]) == (1, 8, 0)
        assert np.isnan(row["to_other"])

    def test_windows_are_cut_off_at_both_ends(self) -> None:
        assert layer_windows(5, 3) == ((0, 1), (0, 2), (1, 3), (2, 4), (3, 4))
        with pytest.raises(LabError, match="not within 0 to 3"):
            knock_out(planted().lens, held(), 0, [("decision", "context")], [(2, 4)])


class TestKinds:
    def test_rates_have_intervals_and_effects_add_up(self) -> None:
        p, sweep = planted(), found().sweep.of(found().held_out)
        kinds = classify(p.lens, held(), found().heads, sweep, top=1)
        table = kinds.to_dataframe().set_index(["layer", "head"])
        router, copier = table.loc[p.router], table.loc[p.copier]
        assert router["kind"] == "routing" and copier["kind"] == "writing"
        assert copier["hits_low"] > 0.5 and router["hits_high"] < 0.5
        assert router["direct"] == pytest.approx(0, abs=0.1)
        assert router["indirect"] == pytest.approx(router["total"], abs=0.1)
        assert copier["direct"] == pytest.approx(copier["total"], rel=0.05)
        # The copier looks at the passage when it is asked to read.
        assert copier["looks_context"] < -0.9 and copier["p_looks_context"] < 0.01
        assert router["looks_instruction"] > 0.9

    def test_direct_contributions_add_up_to_the_logits(self) -> None:
        lens, tokens = planted().lens, pairs()[0].b.tokens
        trace = lens.run([Branch(tokens)], Keep(True, heads=True, mlp=True, resid=True))[0]
        start = lens.twin.get_input_embeddings().weight[tokens[-1]][None]
        parts = [start, *trace.mlp, *(
            head_writes(lens, layer, head, trace.heads[layer, head])
            for layer in range(lens.n_layers) for head in range(lens.n_heads)
        )]  # fmt: skip
        total = sum(direct_logits(lens, part.detach(), trace.resid[-1]) for part in parts)
        assert total[0] == pytest.approx(trace.logits[0], abs=1e-2)


class TestBackups:
    def test_the_backup_is_seen_only_once_the_main_head_is_gone(self) -> None:
        p = planted()
        assert p.backup not in found().heads
        result = backups(p.lens, held(), 0, found().heads)
        assert result.heads == (p.backup,)
        assert result.alone[p.backup] == pytest.approx(0, abs=0.2)
        assert result.after[p.backup] == pytest.approx(3.5, abs=0.5)
        assert result.to_dataframe()["backup"].sum() == 1

    def test_too_few_clusters_are_said_to_be_too_few(self) -> None:
        """Of 20 heads at 5 %: ten clusters give p = 1/512, eight only 1/128."""
        p = planted()
        by_name = list({pair.cluster: pair for pair in planted_pairs(p, 40, 3)}.values())
        assert backups(p.lens, by_name[:10], 0, [p.memory]).enough
        short = backups(p.lens, by_name[:8], 0, [p.memory])
        assert not short.enough and short.heads == ()
        assert not short.to_dataframe()["enough"].any()

    def test_nothing_stands_in_where_nothing_is_missing(self) -> None:
        p = planted()
        assert backups(p.lens, held(), 0, [p.attends]).heads == ()


class TestOverlap:
    def test_a_finding_agrees_with_itself(self) -> None:
        effects = search().sweep.shift.mean(1)
        heads, names = found().heads, clusters_of(pairs())
        same = overlap(heads, heads, effects, effects, names, names)
        assert same.jaccard == 1 and same.correlation.value == pytest.approx(1)
        assert same.expected < 0.15 and same.p < 0.01
        assert same.correlation.low == pytest.approx(1)

    def test_unrelated_effects_do_not(self) -> None:
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(2, 20, 4, 5))
        result = overlap([(0, 0)], [(1, 1)], x, y, [""] * 20, [""] * 20)
        assert result.jaccard == 0 and result.shared == ()
        assert result.correlation.low < 0 < result.correlation.high
        assert result.to_dataframe().shape == (1, 9)
        with pytest.raises(LabError, match="head by head"):
            overlap([], [], x, y[:, :3], [""] * 20, [""] * 20)
