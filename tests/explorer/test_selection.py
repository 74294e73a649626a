"""One selection for all views: set from Python or from the front end, checked in both cases."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from lab import LabError
from lab.explorer.selection import Choices, Selection, changed, from_state, to_state

CHOICES = Choices(("first", "second", "third"), 4, 3, ("raw", "enrichment"), ("difference",))
START = Selection("first", 1, 2)


class TestChoices:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"example": "secnd"}, r"no example 'secnd'.*first, second, third.*mean second"),
            ({"layer": 4}, r"no head 4\.2: layers are 0 to 3, heads 0 to 2"),
            ({"head": -1}, r"no head 1\.-1"),
            ({"head": 1.5}, r"is no head: give two whole numbers"),
            ({"heads": ((0, 0), (9, 9))}, r"no head 9\.9"),
            ({"heads": (3,)}, r"3 is no head"),
            ({"scope": "heads"}, r"head, set, layer, all"),
            ({"scope": "set"}, r'scope "set" needs heads'),
            ({"role": "judge"}, r"generator, evaluator"),
            ({"norm": "softmax"}, r"raw, enrichment"),
            ({"quantity": "fame"}, r"no quantity 'fame'. There are: difference"),
        ],
    )
    def test_what_does_not_exist_is_refused_with_what_does(self, changes, words):
        with pytest.raises(LabError, match=words):
            CHOICES.check(replace(START, **changes))

    def test_a_set_of_heads_is_kept_in_order_and_none_twice(self):
        checked = CHOICES.check(replace(START, heads=((2, 1), (0, 2), (2, 1)), scope="set"))
        assert checked.heads == ((0, 2), (2, 1))

    def test_a_selection_cannot_be_changed_in_place(self):
        with pytest.raises(FrozenInstanceError):
            START.layer = 3


class TestChanged:
    def test_a_head_may_be_given_as_a_pair_and_is_then_what_is_shown(self):
        found = changed(replace(START, scope="all"), head=(3, 0))
        assert (found.layer, found.head, found.scope) == (3, 0, "head")

    def test_brushing_heads_shows_the_set_and_emptying_it_shows_the_head_again(self):
        brushed = changed(START, heads=[(0, 1), (2, 2)])
        assert (brushed.heads, brushed.scope) == (((0, 1), (2, 2)), "set")
        assert changed(brushed, heads=[]).scope == "head"

    def test_a_scope_that_is_given_holds(self):
        assert changed(START, heads=[(0, 1)], scope="layer").scope == "layer"

    def test_an_unknown_field_is_named_with_the_known_ones(self):
        with pytest.raises(LabError, match=r"no field 'exmple'.*Did you mean example"):
            changed(START, exmple="second")


class TestFrontEnd:
    def test_a_selection_survives_the_way_to_the_front_end_and_back(self):
        there = replace(START, example="third", heads=((0, 1), (2, 2)), scope="set")
        state = to_state(there, CHOICES)
        assert state["example"] == 2 and state["heads"] == [[0, 1], [2, 2]]
        assert from_state(state, START, CHOICES) == there

    def test_what_the_front_end_does_not_say_stays(self):
        assert from_state({"layer": 3, "zoom": 2}, START, CHOICES) == replace(START, layer=3)

    @pytest.mark.parametrize(
        "state", [{"example": 3}, {"example": -1}, {"layer": 9}, {"norm": "loud"}]
    )
    def test_what_does_not_exist_is_refused(self, state):
        with pytest.raises(LabError):
            from_state(state, START, CHOICES)
