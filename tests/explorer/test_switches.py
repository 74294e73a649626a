"""Heads switched off for one decision: the engine's own numbers, and the widget around them."""

from __future__ import annotations

import threading
import time

import numpy as np
import pandas as pd
import pytest

import lab
from lab import LabError
from lab.data.conflicts import load_conflicts
from lab.engine.packing import Branch
from lab.explorer.jobs import Stopped
from lab.explorer.switch.asking import ASKS, decisions
from lab.explorer.switch.html import still
from lab.explorer.switch.switches import HeadSwitches, head_list
from lab.instruments.conflicts import conflict_prompter, measure_conflict, measure_verdicts
from lab.instruments.override.ablation import Values, ablate_sets
from lab.instruments.override.decisions import capture
from lab.instruments.override.generation import generate_ablated
from lab.instruments.override.pairs import make_pair

SETS = {"found": [(2, 1), (0, 3)], "other": [(1, 0)]}


@pytest.fixture(scope="module")
def conflicts(lens):
    """Built-in conflicts whose answers the tiny tokenizer tells apart, about several subjects."""
    prompter = conflict_prompter(lens)

    def apart(conflict):
        try:
            return bool(decisions(prompter, conflict))
        except LabError:
            return False

    return [c for c in load_conflicts("builtin")[:30] if apart(c)][:4]


@pytest.fixture
def switches(lens, conflicts) -> HeadSwitches:
    return lab.switch_heads(lens, conflicts, SETS, n_random=12)


class TestExact:
    def test_heads_on_are_the_decisions_of_the_table(self, lens, conflicts, switches):
        measured = measure_conflict(lens, conflicts[0], begun=True, generate=False)
        for (instruction, stated), cell in measured.cells.items():
            switches.select(ask=f"generator/{instruction}/{stated}")
            said = switches.run().before
            assert said.probabilities == pytest.approx(cell.probabilities, abs=1e-5)
            assert said.top == cell.top.strip() or not cell.top.strip()
        for (stated, side), odds in measure_verdicts(lens, conflicts[0]).items():
            switches.select(ask=f"evaluator/{stated}/{side}")
            assert switches.run().before.log_odds == pytest.approx(odds, abs=1e-4)

    def test_heads_off_are_the_ablation_that_is_proved(self, lens, switches):
        switches.select(sets=["found"])
        result = switches.run()
        d = result.decision
        pair = make_pair(d.prompt, d.prompt, d.tokens[0], d.tokens[1])
        wanted = ablate_sets(lens, [pair], 0, [(), result.selection.heads]).own[:, 0]
        assert [result.before.log_odds, result.after.log_odds] == pytest.approx(wanted, abs=1e-4)
        assert result.shift == pytest.approx(wanted[1] - wanted[0], abs=1e-4)

    def test_means_are_those_of_the_other_conflicts_decisions(self, lens, conflicts, switches):
        switches.select(sets="found", put="mean")
        result = switches.run()
        d = result.decision
        pair = make_pair(d.prompt, d.prompt, d.tokens[0], d.tokens[1])
        others = [c for c in conflicts[1:] if c.cluster != conflicts[0].cluster]
        asked = [decisions(conflict_prompter(lens), c) for c in others]
        told = [[a[k].prompt for k in ASKS if k.startswith("generator")] for a in asked]
        donors = [make_pair(p[i], p[i + 1], 5, 6) for p in told for i in (0, 2)]
        values = Values("mean", capture(lens, donors))
        wanted = ablate_sets(lens, [pair], 0, [result.selection.heads], values).own[0, 0]
        assert result.after.log_odds == pytest.approx(wanted, abs=1e-3)

    def test_the_text_is_written_on_with_the_heads_off_at_every_token(self, lens, switches):
        result = switches.run() if switches.select(heads=[(0, 0), (3, 2)]) else None
        tokens = result.decision.prompt.token_ids
        for heads, said in (((), result.before), (result.selection.heads, result.after)):
            ids = generate_ablated(lens, tokens, heads, max_new_tokens=32)
            whole = lens.tokenizer.decode(ids, skip_special_tokens=True)
            lines = [line.strip() for line in whole.splitlines() if line.strip()]
            assert said.text == (lines[0] if lines else "")

    def test_random_sets_have_as_many_heads_in_the_same_layers(self, lens, switches, monkeypatch):
        seen = []
        run = lens.run

        def spied(branches, keep=None):
            seen.append(branches)
            return run(branches, keep)

        monkeypatch.setattr(lens, "run", spied)
        switches.select(sets=["found"])
        result = switches.run()
        # Each of two layers has three other heads, so that there are nine sets, and not twelve.
        asked = next(b for b in seen if len(b) == 11)
        layers = [sorted(change.layer for change in branch.changes) for branch in asked[1:]]
        assert layers == [[0, 2]] * 10 and result.random.shape == (9,)
        assert isinstance(asked[0], Branch) and asked[0].changes == ()
        low, high = result.band
        assert low <= np.median(result.random) <= high and 0 <= result.beaten <= 9

    def test_where_there_are_no_other_heads_it_is_said(self, lens, switches):
        switches.select(heads=[(1, h) for h in range(lens.n_heads)])
        result = switches.run()
        assert result.random.size == 0 and np.isnan(result.band).all()
        assert "with no other heads in these layers to compare with." in result.words
        assert "random" not in still(result) and "nan" not in still(result)


class TestSelection:
    def test_it_is_read_and_set_from_python(self, switches, conflicts):
        switches.select(conflict=conflicts[1].id, ask="evaluator/original/counter", heads=[(3, 3)])
        chosen = switches.selection
        assert (chosen.conflict, chosen.heads) == (conflicts[1].id, ((3, 3),))
        switches.selection = lab.explorer.switch.board.Switches(
            conflicts[0].id, "generator/passage/original"
        )
        assert switches.selection.heads == ()

    def test_a_set_is_its_heads(self, switches):
        assert switches.select(sets=["found", "other"]).heads == ((0, 3), (1, 0), (2, 1))
        assert switches.select(sets=[]).heads == ()

    def test_the_table_has_both_states(self, switches):
        switches.select(sets=["found"])
        frame = switches.data
        assert isinstance(frame, pd.DataFrame) and list(frame["heads"]) == ["on", "off"]
        conflict = switches.board.conflicts[switches.selection.conflict]
        assert {conflict.memory, conflict.counter, "shift", "random_low", "text"} <= set(frame)
        assert frame["shift"][1] == pytest.approx(frame["log_odds"][1] - frame["log_odds"][0])

    def test_the_same_selection_is_not_run_twice(self, switches, lens, monkeypatch):
        first = switches.run()
        monkeypatch.setattr(lens, "run", None)
        assert switches.run() is first

    def test_without_heads_off_there_is_nothing_to_compare(self, switches):
        result = switches.run()
        assert result.before == result.after and result.random.size == 0
        assert "No head is switched off yet" in result.words

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"conflict": "nowhere"}, "There is no conflict 'nowhere'"),
            ({"ask": "generator/original"}, "There is no ask .* Did you mean"),
            ({"put": "noise"}, "There is no put 'noise'. There are: zero, mean"),
            ({"heads": [(9, 9)]}, r"no head 9\.9"),
            ({"heads": "1.2"}, "give a list"),
            ({"sets": ["fond"]}, "no set 'fond'.*found"),
            ({"sets": [], "heads": []}, "not both"),
            ({"layer": 3}, "There is no field 'layer'"),
        ],
    )
    def test_what_does_not_exist_is_refused_with_what_does(self, switches, changes, words):
        before = switches.selection
        with pytest.raises(LabError, match=words):
            switches.select(**changes)
        assert switches.selection == before

    @pytest.mark.parametrize(
        ("sets", "words"), [({"x": [(4, 0)]}, r"no head 4\.0"), ({"x": 3}, "mapping from names")]
    )
    def test_sets_of_other_models_are_refused(self, lens, conflicts, sets, words):
        with pytest.raises(LabError, match=words):
            lab.switch_heads(lens, conflicts, sets)

    def test_heads_are_written_with_a_point(self):
        assert head_list("12.3, 14.0  2.1") == ((12, 3), (14, 0), (2, 1))
        with pytest.raises(LabError, match="'12-3' is no head"):
            head_list("12-3")

    def test_means_need_another_conflict(self, lens, conflicts):
        alone = lab.switch_heads(lens, conflicts[0], SETS)
        alone.select(sets=["found"], put="mean")
        with pytest.raises(LabError, match="there is none about another subject"):
            alone.run()


def settled(switches: HeadSwitches) -> str:
    switches.panel.wait()
    return switches.panel._status.value


class TestWidget:
    def test_a_switch_changes_the_selection_and_the_answer(self, switches):
        panel = switches.panel
        settled(switches)
        before = panel._result.value
        panel._sets["found"].value = True
        assert switches.selection.heads == ((0, 3), (2, 1))
        settled(switches)
        assert panel._result.value != before and "2 heads off" in panel._result.value
        panel._heads.children[0].value = False
        assert switches.selection.heads == ((2, 1),)
        assert panel._sets["found"].value is False
        assert panel._sets["found"].description == "found (1 of 2)"
        settled(switches)
        assert switches.last_result.selection == switches.selection

    def test_heads_can_be_typed_and_all_switched_on_again(self, switches):
        panel = switches.panel
        panel._typed.value = "3.0, 3.1"
        assert switches.selection.heads == ((3, 0), (3, 1))
        assert {"3.0", "3.1"} <= {chip.description for chip in panel._heads.children}
        panel._typed.value = "7.7"
        assert "There is no head 7.7" in panel._status.value
        panel._all_on.click()
        assert switches.selection.heads == ()
        settled(switches)

    def test_python_moves_the_controls(self, switches, conflicts):
        panel = switches.panel
        switches.select(conflict=conflicts[2].id, ask="evaluator/counterfactual/memory", put="mean")
        assert panel._conflict.value == conflicts[2].id
        assert panel._ask.value == "evaluator/counterfactual/memory" and panel._put.value == "mean"
        assert conflicts[2].question.split("'")[0] in panel._asked.value
        settled(switches)

    def test_a_run_can_be_stopped_and_the_next_is_whole(self, switches, monkeypatch):
        panel = switches.panel
        settled(switches)
        begun = threading.Event()

        def endless(selection, watch):
            while True:
                begun.set()
                watch.step(1, 2, "asking")
                time.sleep(0.01)

        monkeypatch.setattr(switches.board, "run", endless)
        panel._sets["other"].value = True
        assert begun.wait(30) and not panel._stop.disabled
        panel._stop.click()
        assert "Stopped." in settled(switches) and panel._stop.disabled
        assert panel._result.value == ""
        monkeypatch.undo()
        panel._sets["other"].value = False
        assert "Took" in settled(switches)

    def test_a_newer_choice_ends_an_older_run(self, switches, monkeypatch):
        panel = switches.panel
        settled(switches)
        whole, begun, ended = switches.board.run, threading.Event(), []

        def slow(selection, watch):
            if selection.heads == ((1, 0),):
                begun.set()
                try:
                    while True:
                        watch.step(0, 0, "asking")
                        time.sleep(0.01)
                except Stopped:
                    ended.append(selection)
                    raise
            return whole(selection, watch)

        monkeypatch.setattr(switches.board, "run", slow)
        panel._sets["other"].value = True
        assert begun.wait(30)
        panel._sets["found"].value = True
        assert "Took" in settled(switches) and len(ended) == 1
        assert switches.last_result.selection.heads == ((0, 3), (1, 0), (2, 1))

    def test_what_nobody_foresaw_is_told_and_kept(self, switches, monkeypatch):
        settled(switches)

        def broken(*_):
            raise KeyError("a bug")

        monkeypatch.setattr(switches.board, "run", broken)
        switches.panel._sets["other"].value = True
        told = settled(switches)
        assert "did not foresee" in told and "switches.last_error" in told
        assert isinstance(switches.last_error, KeyError)

    def test_text_from_data_is_escaped(self, lens, conflicts):
        hostile = lab.data.conflicts.Conflict(
            "h", "own", "x", "x", "<img src=x onerror=alert(1)> which?", "It is",
            conflicts[0].memory, conflicts[0].counter,
            f"<b>It</b> is {conflicts[0].memory} & so.",
            f"<b>It</b> is {conflicts[0].counter} & so.",
        )  # fmt: skip
        switches = lab.switch_heads(lens, hostile, SETS, n_random=3)
        switches.select(sets=["found"])
        shown = switches._repr_mimebundle_()
        settled(switches)
        shown = switches._repr_mimebundle_()
        for html in (shown["text/html"], switches.panel._asked.value):
            assert "<img" not in html and "<b>It" not in html and "&lt;img src=x" in html

    def test_without_a_kernel_a_still_picture_is_left(self, switches):
        settled(switches)
        switches.select(sets=["found"])
        switches.run()
        bundle = switches._repr_mimebundle_()
        assert "still picture" in bundle["text/html"] and "random sets" in bundle["text/html"]
        assert "application/vnd.jupyter.widget-view+json" in bundle
