"""Checking answers: one line, in words, whatever is handed in; guesses; refusals."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from lab import LabError, teach
from lab.teach.compare import HeadMistake, Mistake, fault, head_fault, per_cent

TRUTH = 0.25
MISTAKES = [Mistake(4.0, "Upside down."), per_cent(TRUTH), Mistake([1.0, 2.0], "Take the mean.")]


class TestNumbers:
    @pytest.mark.parametrize(
        "answer", [0.25, np.float32(0.25), np.array([0.25]), torch.tensor(0.25), 0.250001]
    )
    def test_the_truth_is_right_in_any_type_that_holds_it(self, answer):
        assert fault(answer, TRUTH, MISTAKES) is None

    def test_a_rounded_number_is_right_and_a_rough_one_is_not(self):
        assert fault(0.33, 1 / 3) is None
        assert fault(0.3, 1 / 3) == "0.3 is too small."

    @pytest.mark.parametrize("answer", [0.083, 0.0833])
    def test_a_small_number_may_be_rounded_to_three_decimals(self, answer):
        assert fault(answer, 1 / 12) is None
        assert fault(-answer, -1 / 12) is None

    @pytest.mark.parametrize(
        ("answer", "truth"), [(0.08, 1 / 12), (0.003, 1 / 300), (0.0033, 1 / 300)]
    )
    def test_one_that_is_rounded_too_far_to_tell_needs_more_digits(self, answer, truth):
        assert "give more digits" in fault(answer, truth)

    def test_zero_is_no_rounded_small_number(self):
        assert fault(0, 0.003) == "0 is too small."

    def test_a_usual_mistake_is_named(self):
        assert fault(4.0, TRUTH, MISTAKES) == "Upside down."
        assert "per cent" in fault(25, TRUTH, MISTAKES)

    def test_a_mistake_may_have_another_shape_than_the_truth(self):
        assert fault([1.0, 2.0], TRUTH, MISTAKES) == "Take the mean."

    def test_a_mistake_that_gives_the_truth_here_is_none(self):
        assert fault(TRUTH, TRUTH, [Mistake(TRUTH, "never said")]) is None

    def test_otherwise_the_direction_is_told_and_not_the_truth(self):
        said = fault(0.4, TRUTH)
        assert said == "0.4 is too large." and "0.25" not in said

    @pytest.mark.parametrize("answer", ["a quarter", True, object(), {}, [[1], [1, 2]]])
    def test_what_is_no_number_is_told_so(self, answer):
        assert "A single number is asked for" in fault(answer, TRUTH)

    def test_numbers_that_are_not_finite_are_told(self):
        assert "no finite number" in fault(float("nan"), TRUTH)


class TestArrays:
    truth = np.arange(6.0).reshape(2, 3)

    def test_the_truth_is_right_as_array_list_or_tensor(self):
        for answer in (self.truth, self.truth.tolist(), torch.tensor(self.truth)):
            assert fault(answer, self.truth) is None

    def test_the_first_difference_is_located_by_the_names_of_the_axes(self):
        wrong = self.truth.copy()
        wrong[1, 2] = 9
        said = fault(wrong, self.truth, axes=("layer", "head"))
        assert "1 of 6 values are off" in said and "9 at layer 1, head 2" in said
        assert "too large" in said

    def test_another_shape_is_told_with_both(self):
        said = fault(self.truth.T, self.truth, axes=("layer", "head"))
        assert said.startswith("An array [layer, head] of shape (2, 3) is asked for")
        assert "an array of shape (3, 2)" in said

    def test_a_single_number_in_place_of_an_array_is_told(self):
        assert "this is a single number" in fault(3.0, self.truth)


class TestHeads:
    values = np.array([[0.1, 0.2, 0.1], [0.9, 0.3, 0.2]])

    @pytest.mark.parametrize(
        "answer",
        [(1, 0), [1, 0], np.array([1, 0]), torch.tensor([1, 0]), np.unravel_index(3, (2, 3))],
    )
    def test_the_strongest_head_is_right(self, answer):
        assert head_fault(answer, self.values) is None

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            (3, "flattened map"),
            ((0, 1), "the other way round"),
            ((1, 1), "Head 1.1 has 30.0%; another has more."),
            ((1, 3), "layers go from 0 to 1, heads to 2"),
            ((1, 0, 0), "There is no such head"),
            (np.array(3), "flattened map"),
            ("first", r"A pair \(layer, head\) of whole numbers is asked for"),
            # Neither digits nor fractions are whole numbers, even where int() makes the right ones.
            ("10", r"A pair \(layer, head\) of whole numbers is asked for"),
            ((1.9, 0.9), r"A pair \(layer, head\) of whole numbers is asked for"),
            ((True, False), r"A pair \(layer, head\) of whole numbers is asked for"),
        ],
    )  # fmt: skip
    def test_mistakes_are_told_apart(self, answer, words):
        assert re.search(words, head_fault(answer, self.values))

    def test_a_named_mistake_comes_first(self):
        mistakes = [HeadMistake((0, 1), "That is the other role's.")]
        assert head_fault((0, 1), self.values, mistakes) == "That is the other role's."


class TestCheck:
    def test_an_unknown_exercise_is_refused_with_the_known_ones(self):
        with pytest.raises(LabError, match=r"no exercise '03\.ration'.*01\.probability.*03\.ratio"):
            teach.check("03.ration", 1.0)

    def test_missing_objects_are_refused_with_the_call_that_is_meant(self):
        with pytest.raises(LabError, match=r'lab\.teach\.check\("03\.ratio", answer, study\)'):
            teach.check("03.ratio", 1.0)

    @pytest.mark.parametrize("name", teach.EXERCISES)
    @pytest.mark.parametrize("nothing", [..., None])
    def test_unanswered_it_says_what_is_asked_and_needs_nothing_else(self, name, nothing, capsys):
        exercise = teach.EXERCISES[name]
        teach.check(name, nothing, *[None] * len(exercise.given))
        (line,) = capsys.readouterr().out.splitlines()
        assert line == f"{name}: not answered yet. {exercise.asks}"

    def test_every_exercise_is_described(self):
        for name, exercise in teach.EXERCISES.items():
            assert re.fullmatch(r"0\d\.[a-z_]+", name) and exercise.name == name
            assert exercise.asks.endswith((".", "?")) or exercise.asks.endswith(").")
            assert exercise.learned.endswith(".")


class TestPredictions:
    options = ("more", "less")

    def test_without_a_guess_the_question_is_shown_and_the_result_later(self, capsys):
        guess = teach.predict("More or less?", self.options)
        guess.reveal("more", "3 against 2")
        shown = capsys.readouterr().out
        assert "More or less?" in shown and "1  more" in shown and "add guess=1" in shown
        assert "Your guess: none. The result: more (3 against 2)." in shown

    @pytest.mark.parametrize("guess", [2, "less"])
    def test_a_guess_is_shown_beside_the_result(self, guess, capsys):
        made = teach.predict("More or less?", self.options, guess)
        assert made.guess == "less"
        made.reveal("more")
        assert "Your guess: less. The result: more.\nNot as you guessed" in capsys.readouterr().out
        made.reveal("less")
        assert "As you guessed." in capsys.readouterr().out

    @pytest.mark.parametrize("guess", [0, 3, "much", 1.5])
    def test_a_guess_that_is_no_option_is_refused(self, guess):
        with pytest.raises(LabError, match="number from 1 to 2"):
            teach.predict("More or less?", self.options, guess)

    def test_a_number_that_names_one_option_and_is_the_text_of_another_is_refused(self):
        with pytest.raises(LabError, match='guess="3" or guess="9"'):
            teach.predict("How many?", ["1", "3", "9"], 3)

    @pytest.mark.parametrize(("guess", "meant"), [("3", "3"), (2, "3"), (1, "1")])
    def test_options_that_are_numbers_can_be_guessed(self, guess, meant):
        assert teach.predict("How many?", ["1", "3", "9"], guess).guess == meant

    @pytest.mark.parametrize("options", [[], ["one"], "text"])
    def test_a_question_without_a_choice_is_refused(self, options):
        with pytest.raises(LabError, match="at least two options"):
            teach.predict("What?", options)

    def test_a_result_that_is_no_option_is_refused(self):
        with pytest.raises(LabError, match="none of the options: more, less"):
            teach.predict("More or less?", self.options).reveal("equal")


class TestRefused:
    def test_a_refusal_is_shown_as_words(self, capsys):
        with teach.refused():
            raise LabError("No such file: name another.")
        assert capsys.readouterr().out == "Refused: No such file: name another.\n"

    def test_where_nothing_is_refused_that_is_said(self, capsys):
        with teach.refused():
            pass
        assert "Nothing was refused." in capsys.readouterr().out

    def test_other_errors_go_through(self):
        with pytest.raises(ZeroDivisionError), teach.refused():
            _ = 1 / 0
