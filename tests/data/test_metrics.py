"""The official metrics, on worked examples and by their invariants."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.data import Example, Passage, score
from lab.data.example import Answer, Metric
from lab.data.metrics import drop, hotpotqa, musique, squad

words = st.text(alphabet="ab cé-1.5,the$", max_size=25)
METRICS: tuple[Metric, ...] = ("squad", "drop", "hotpotqa", "musique")


def asked(metric: Metric, *answers: str | Answer) -> Example:
    golds = tuple((gold,) if isinstance(gold, str) else gold for gold in answers)
    return Example("q", "test", "", "What?", (Passage("Text."),), golds, metric=metric)


def scored(metric: Metric, prediction: str | list[str], *golds: str | Answer) -> tuple:
    result = score(asked(metric, *golds), prediction)
    return result.em, pytest.approx(result.f1, abs=1e-9)


@pytest.mark.parametrize(
    ("golds", "prediction", "em", "f1"),
    [
        (["the 10th century", "10th century"], "In the 10th Century.", 0, 0.8),
        ([], "", 1, 1),
        ([], "unanswerable", 0, 0),
        ([], "The", 1, 1),
        (["U.S.A."], "USA", 1, 1),
        (["twenty-one"], "twenty one", 0, 0),
        (["$5.50"], "5.50", 1, 1),
        (["café"], "cafe", 0, 0),
        (["a b c", "a b c d"], "b c", 1, 1),
        (["the"], "", 1, 1),
        (["the", "cat"], "", 0, 0),
        (["cat cat"], "cat", 0, 2 / 3),
        (["Paris"], "", 0, 0),
    ],
)
def test_squad(golds: list[str], prediction: str, em: float, f1: float) -> None:
    assert scored("squad", prediction, *golds) == (em, f1)


def test_squad_takes_the_best_em_and_the_best_f1_separately() -> None:
    assert squad.score("red fox", ["red fox den", "fox"]) == (0, pytest.approx(0.8))


@pytest.mark.parametrize(
    ("prediction", "gold", "em", "f1"),
    [
        ("4 yards", "4", 0, 0.67),
        ("5", "4", 0, 0),
        ("4.0", "4", 1, 1),
        ("4,000", "4000", 1, 1),
        (["Smith", "Jones"], ("Jones", "Smith"), 1, 1),
        (["Smith"], ("Jones", "Smith"), 0, 0.5),
        (["Smith", "Jones", "Lee"], ("Smith", "Jones"), 0, 0.67),
        ("twenty-one", "twenty one", 1, 1),
        ("50%", "50", 1, 1),
        ("3rd", "3", 0, 0),
        ("-5", "5", 1, 1),
        ("5 March 1990", "5 March 1991", 0, 0.67),
        ([], "4", 0, 0),
        ("", "4", 0, 0),
        (["the"], "a", 1, 1),
        (["Smith", "Smith"], ("Smith", "Jones"), 0, 0.5),
    ],
)
def test_drop(prediction: str | list[str], gold: str | Answer, em: float, f1: float) -> None:
    assert scored("drop", prediction, gold) == (em, f1)


def test_drop_em_can_hold_while_spans_repeat_differently() -> None:
    assert drop.score_spans(["x", "x", "y"], ["x", "y", "y"]) == (1, pytest.approx(0.67))


def test_drop_pairs_spans_one_to_one_for_the_greatest_sum() -> None:
    # Taken greedily, "x y" would claim "x y z" (0.8) and leave nothing for "z": mean 0.4.
    assert drop.score_spans(["x y", "z"], ["x y z", "x"]) == (0, pytest.approx(0.58))


def test_drop_scores_the_best_of_disagreeing_annotators_and_ignores_blank_ones() -> None:
    assert scored("drop", "two", "2", "two") == (1, 1)
    assert drop.score("", [("",), ("4",)]) == (0, 0)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("Smith and Jones", ["Smith", "Jones"]),
        ("Smith, Jones, and Lee", ["Smith", "Jones", "Lee"]),
        ("Smith & Jones", ["Smith", "Jones"]),
        ("- Smith\n- Jones", ["Smith", "Jones"]),
        ("1. Smith\n2) Jones", ["Smith", "Jones"]),
        ("York, England; Lyon, France", ["York, England", "Lyon, France"]),
        ("4,000, 5,000", ["4,000", "5,000"]),
        ("Anderson", ["Anderson"]),
        ("", [""]),
    ],
)
def test_drop_splits_free_text_into_spans(text: str, spans: list[str]) -> None:
    assert drop.split_spans(text) == spans


def test_a_string_is_split_only_for_a_gold_of_several_spans() -> None:
    assert scored("drop", "Jones and Smith", ("Smith", "Jones")) == (1, 1)
    assert scored("drop", "July 4, 1990", "July 4, 1990") == (1, 1)
    assert scored("drop", "Smith and Jones", "Smith and Jones") == (1, 1)


def test_a_gold_list_as_one_text_scores_as_right_though_its_spans_hold_separators() -> None:
    for gold in (("Paris, France", "Rome, Italy"), ("Smith and Wesson", "Jones")):
        assert scored("drop", ", ".join(gold), gold) == (1, 1)
    assert scored("drop", "Rome, Italy", ("Paris, France", "Rome, Italy"))[0] == 0


@pytest.mark.parametrize(
    ("prediction", "gold", "em", "f1"),
    [
        ("yes, it is", "yes", 0, 0),
        ("Yes.", "yes", 1, 1),
        ("no answer", "noanswer", 0, 0),
        ("Barack Hussein Obama", "Barack Obama", 0, 0.8),
        ("the", "a", 1, 0),
        ("yes", "no", 0, 0),
        ("Yes Minister", "Yes Prime Minister", 0, 0.8),
    ],
)
def test_hotpotqa(prediction: str, gold: str, em: float, f1: float) -> None:
    assert scored("hotpotqa", prediction, gold) == (em, f1)


def test_hotpotqa_support_and_joint() -> None:
    support = hotpotqa.supporting_facts([("A", 0), ("B", 1), ("B", 2)], [("A", 0), ("B", 1)])
    assert support == (0, pytest.approx(0.8), pytest.approx(2 / 3), 1)
    answer = hotpotqa.answer("Barack Hussein Obama", "Barack Obama")
    joint = hotpotqa.joint(answer, support)
    assert (joint.em, joint.precision, joint.recall) == (0, pytest.approx(4 / 9), 1)
    assert joint.f1 == pytest.approx(2 * (4 / 9) / (4 / 9 + 1))
    assert hotpotqa.supporting_facts([], [("A", 0)]) == (0, 0, 0, 0)


def test_musique_answers_match_the_answer_or_an_alias() -> None:
    assert scored("musique", "The Pirates!", "Pittsburgh Pirates", "Pirates") == (1, 1)


def test_musique_support() -> None:
    assert musique.support_f1([1, 2, 3], [2, 3]) == pytest.approx(0.8)
    assert musique.support_f1([], []) == 1
    assert musique.support_f1([], [1]) == 0


def test_musique_group_counts_only_if_sufficiency_is_right_for_both_twins() -> None:
    assert musique.group_score(0.8, [True, False], [True, False]) == 0.8
    assert musique.group_score(0.8, [True, True], [True, False]) == 0
    assert musique.group_score(0.8, [1, 0], [1, 0]) == 0.8


@pytest.mark.parametrize("metric", METRICS)
def test_without_gold_answer_only_an_empty_prediction_scores(metric: Metric) -> None:
    assert scored(metric, "") == (1, 1)
    assert scored(metric, "4") == (0, 0)


@pytest.mark.parametrize("metric", METRICS)
@given(prediction=words, gold=words)
def test_scores_stay_in_range(metric: Metric, prediction: str, gold: str) -> None:
    result = score(asked(metric, gold), prediction)
    assert result.em in (0, 1)
    assert 0 <= result.f1 <= 1
    if result.em and metric != "hotpotqa":
        assert result.f1 == 1


@pytest.mark.parametrize("metric", METRICS)
@given(text=words.filter(lambda text: squad.normalise(text) and text.strip()))
def test_an_answer_matches_itself(metric: Metric, text: str) -> None:
    assert scored(metric, text, text) == (1, 1)


@given(prediction=words, gold=words)
def test_f1_is_symmetric(prediction: str, gold: str) -> None:
    assert squad.f1(prediction, gold) == squad.f1(gold, prediction)
    assert hotpotqa.answer(prediction, gold).f1 == pytest.approx(
        hotpotqa.answer(gold, prediction).f1
    )


@given(st.lists(words, min_size=1, max_size=4), st.lists(words, min_size=1, max_size=4), st.data())
def test_drop_ignores_the_order_of_spans(
    predicted: list[str], gold: list[str], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(predicted))
    assert drop.score_spans(predicted, gold) == drop.score_spans(shuffled, gold)


@given(words, words, st.sampled_from(string.punctuation))
def test_squad_ignores_case_articles_and_punctuation(text: str, gold: str, mark: str) -> None:
    dressed = f"{mark}The {text.upper()} a{mark}"
    assert squad.score(dressed, [gold]) == squad.score(text, [gold])


@given(st.lists(words, max_size=4), words)
def test_more_golds_never_lower_a_score(golds: list[str], prediction: str) -> None:
    fewer, more = asked("drop", "x", *golds[:1]), asked("drop", "x", *golds)
    assert score(more, prediction).f1 >= score(fewer, prediction).f1
