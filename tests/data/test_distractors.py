"""Wrong candidates from hard to easy, and altered passages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lab.data import (
    Example,
    Examples,
    Passage,
    altered,
    candidate_rungs,
    hard_wrongs,
    load_examples,
    score,
)
from lab.data.folding import fold
from lab.data.spans import answer_kind, find_spans
from lab.data.text import cluster_key, find_answers, occurrences, sentences_with, whole_words

MILL = "The mill was built by Ann Lee in 1850. It had 12 sails. In 1871 Bo Hart sold it to Cy Dow."
SHIP = "The ship Petrel was launched by Di Moor in 1902 with 40 men."


def asked(name: str, question: str, answer: str, text: str = MILL, **changes: object) -> Example:
    passages = (Passage(text),)
    answers = ((answer,),) if answer else ()
    marks = find_answers(passages, answers)
    example = Example(
        name, "t", "", question, passages, answers, sentences_with(passages, marks), marks,
        cluster=cluster_key(passages),
    )  # fmt: skip
    return replace(example, **changes)


WHO = asked("who", "Who built the mill?", "Ann Lee")
WHEN = asked("when", "When was it sold?", "1871")
SAILS = asked("sails", "How many sails had it?", "12")
LAUNCH = asked("launch", "Who launched the Petrel?", "Di Moor", SHIP)
MEN = asked("men", "How many men?", "40", SHIP)
POOL = [WHO, WHEN, SAILS, LAUNCH, MEN]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Yes.", "yes/no"),
        ("1850", "date"),
        ("5 March", "date"),
        ("12", "number"),
        ("4,000 men", "number"),
        ("twenty-one", "number"),
        ("Ann Lee", "name"),
        ("the old mill", "phrase"),
        ("", "phrase"),
    ],
)
def test_kinds_of_answers(text: str, kind: str) -> None:
    assert answer_kind(text) == kind


def test_spans_of_a_kind_nearest_to_the_evidence_first() -> None:
    assert find_spans(WHEN.passages, "name", WHEN.evidence) == ["Bo Hart", "Cy Dow", "Ann Lee"]
    assert find_spans(WHO.passages, "date", WHO.evidence) == ["1850", "1871"]
    assert find_spans(WHO.passages, "number") == ["12"]
    assert find_spans(WHO.passages, "phrase") == []


def test_a_word_that_only_opens_a_sentence_is_no_name() -> None:
    text = "Sails turned. The River Ouse rose. In May it fell; the Bank of England paid Ann."
    assert find_spans((Passage(text),), "name") == ["River Ouse", "Bank of England", "Ann"]


def test_the_ladder_of_a_name() -> None:
    rungs = candidate_rungs(WHO, POOL)
    assert rungs == {
        "gold": "Ann Lee",
        "same_type": "Bo Hart",
        "same_passage": "1871",
        "other_passage": "Di Moor",
        "empty": "",
    }


def test_the_examples_own_distractor_comes_first() -> None:
    own = replace(WHO, distractors=("Ann Lee's", "Cy Dow"))
    assert candidate_rungs(own, POOL)["same_type"] == "Cy Dow"


def test_an_answer_to_another_question_on_the_passage_serves_if_it_looks_alike() -> None:
    assert candidate_rungs(WHEN, [asked("b", "Built?", "1850")])["same_type"] == "1850"


def test_a_comparison_gets_the_other_thing_that_it_names() -> None:
    text = "Ann Lee met Ed Poe. Ann Lee won 3 and Bo Hart won 2."
    compare = asked("c", "Who won more, Ann Lee or Bo Hart?", "Ann Lee", text)
    assert candidate_rungs(compare, [])["same_type"] == "Bo Hart"
    plain = asked("p", "Who won more than Bo Hart?", "Ann Lee", text)
    assert candidate_rungs(plain, [])["same_type"] == "Ed Poe"


def test_yes_and_no_are_each_others_wrong_answer() -> None:
    example = asked("y", "Was it sold?", "yes", metric="hotpotqa")
    assert candidate_rungs(example, POOL)["same_type"] == "no"


def test_an_unanswerable_question_has_the_empty_answer_as_gold_only() -> None:
    example = asked("u", "When did it burn?", "")
    rungs = candidate_rungs(example, POOL)
    assert rungs["gold"] == ""
    assert "empty" not in rungs
    assert rungs["same_type"] in {"1850", "1871"}


def test_candidates_depend_on_the_seed_but_not_on_chance() -> None:
    pool = [asked(f"o{i}", "Who?", f"Name Nr{i} X{i}", f"Name Nr{i} X{i} ran.") for i in range(30)]
    chosen = [candidate_rungs(WHO, pool, seed)["other_passage"] for seed in range(6)]
    assert chosen == [candidate_rungs(WHO, pool, seed)["other_passage"] for seed in range(6)]
    assert len(set(chosen)) > 1


def test_a_rung_that_cannot_be_filled_is_left_out() -> None:
    lonely = asked("l", "What?", "the mill", "It was the mill.")
    assert candidate_rungs(lonely, [lonely]) == {"gold": "the mill", "empty": ""}


def test_no_wrong_candidate_is_nearly_right() -> None:
    text = "Ann Lee and Mrs Ann Lee Hart came. Ann left with Lee. Then Bo stayed."
    rungs = candidate_rungs(asked("n", "Who came?", "Ann Lee", text), [])
    assert rungs["same_type"] == "Bo"


@pytest.mark.parametrize(
    ("gold", "text"),
    [
        ("2", "Ann had 2 mills. There were two of them, and 5 barns."),
        ("two", "Ann had two mills. There were 2 of them, and 5 barns."),
        ("twenty-one", "Ann had twenty-one mills; 21 sailed, and 5 burned."),
        ("Norman", "A Norman came. The Normans stayed. Bo Hart left."),
    ],
)
def test_no_wrong_candidate_is_right_in_other_words(gold: str, text: str) -> None:
    example = asked("o", "What came?", gold, text)
    others = [asked("p", "How many?", word, f"{word} ran.") for word in ("two", "21", "Norman's")]
    rungs = candidate_rungs(example, others)
    wrong = [fold(text) for name, text in rungs.items() if name not in ("gold", "empty")]
    assert len(wrong) >= 2
    assert fold(gold) not in wrong
    new = altered(example, others)
    assert new is None or fold(new.gold) != fold(gold)


@pytest.mark.parametrize(
    ("gold", "same"),
    [("2", "two"), ("1st", "First"), ("twenty-one", "21"), ("Norman", "the Normans")],
)
def test_an_examples_own_distractor_that_is_right_in_other_words_is_passed_over(
    gold: str, same: str
) -> None:
    own = asked("d", "What came?", gold, f"It was {gold}, {same} or 5.", distractors=(same, "5"))
    assert candidate_rungs(own, [])["same_type"] == "5"


@pytest.mark.parametrize(
    "ways",
    [
        ("2", "two", "Two.", "the second", "2nd"),
        ("21", "twenty-one", "Twenty One", "21st", "twenty-first"),
        ("2,000", "2000", "two thousand"),
        ("100", "one hundred", "a hundred"),
        ("5 million", "five million", "5,000,000"),
        ("4 July", "4th of July", "fourth of July"),
        ("the Norman", "Normans", "Norman's", "NORMANS\u2019"),
        ("city walls", "the city's wall"),
        ("churches", "church"),
        ("parties", "party"),
    ],
)
def test_ways_of_writing_the_same_thing_fold_alike(ways: tuple[str, ...]) -> None:
    assert len({tuple(w for w in fold(way) if w != "of") for way in ways}) == 1


def test_other_things_do_not_fold_alike() -> None:
    texts = (
        "2",
        "12",
        "20",
        "21",
        "20 1",
        "2.1",
        "210",
        "1990",
        "1990s",
        "glass",
        "gla",
        "",
        "one",
    )
    texts += ("twenty ten", "thirty", "Norman", "Normandy", "bus", "two hundred", "2 men")
    assert len({fold(text) for text in texts}) == len(texts)


def check_ladders(items: Examples) -> None:
    for item in items:
        rungs = candidate_rungs(item, items.pool)
        wrong = [text for name, text in rungs.items() if name != "gold"]
        assert all(score(item, text).f1 < 0.5 and not score(item, text).em for text in wrong)
        texts = [passage.text for passage in item.passages]
        inside, outside = rungs.get("same_passage"), rungs["other_passage"]
        assert inside is None or any(occurrences(text, inside) for text in texts)
        assert not any(occurrences(text, outside) for text in texts)
        assert rungs.get("same_type") != inside


def check_altered(items: Examples) -> int:
    made = 0
    for item in items:
        new = altered(item, items.pool)
        if new is None:
            continue
        made += 1
        assert {new.marked(mark) for mark in new.answer_marks} == {new.meta["replacement"]}
        for span in (span for spans in item.answers for span in spans):
            assert not any(whole_words(passage.text, span) for passage in new.passages)
        assert len(new.evidence) == len(item.evidence)
        assert score(new, new.meta["original"]).f1 < 0.5
    return made


def test_ladders_and_alterations_of_the_built_in_set() -> None:
    items = load_examples("builtin")
    check_ladders(items)
    assert all("same_type" in candidate_rungs(item, items.pool) for item in items)
    assert check_altered(items) >= 55


@pytest.mark.parametrize("name", ["squad2", "drop", "hotpotqa", "musique"])
def test_ladders_and_alterations_of_the_benchmarks(name: str, shared_data: Path) -> None:
    ending = "jsonl" if name == "musique" else "json"
    items = load_examples(f"{name}:{shared_data}/{name}/sample.{ending}", n=60, seed=5)
    check_ladders(items)
    given = [candidate_rungs(item, items.pool) for item in items]
    assert sum("same_type" in rungs for rungs in given) >= 50
    assert check_altered(items) >= (15 if name == "drop" else 20)


def test_an_altered_passage_holds_the_wrong_answer_everywhere() -> None:
    text = "Ann Lee came. MRS ANN LEE, or Ann\nLee-Hart; then Ann Leeds and Ann Lee left Bo Hart."
    new = altered(asked("a", "Who came?", "Ann Lee", text, distractors=("Kit Dow",)))
    assert new is not None
    assert new.passages[0].text == (
        "Kit Dow came. MRS Kit Dow, or Kit Dow-Hart; then Ann Leeds and Kit Dow left Bo Hart."
    )


def test_a_name_that_is_also_a_word_is_replaced_only_as_written() -> None:
    new = altered(asked("w", "Who?", "Will", "Will ran. It will rain.", distractors=("Bo",)))
    assert new is not None
    assert new.passages[0].text == "Bo ran. It will rain."


def test_marks_move_with_the_text() -> None:
    new = altered(replace(WHEN, distractors=("the spring of 1899",)))
    assert new is not None
    assert new.id == "when~altered"
    assert new.answers == (("the spring of 1899",),)
    assert new.distractors == ("1871",)
    assert [new.marked(mark) for mark in new.answer_marks] == ["the spring of 1899"]
    assert [new.marked(mark) for mark in new.evidence] == [
        "In the spring of 1899 Bo Hart sold it to Cy Dow."
    ]
    assert (new.meta["original"], new.meta["replacement"]) == ("1871", "the spring of 1899")


def test_several_ways_of_writing_the_answer_are_all_replaced() -> None:
    text = "William the Great ruled. William died. Ann wept."
    example = asked("w", "Who ruled?", "William the Great", text, distractors=("Bo",))
    example = replace(example, answers=(("William the Great",), ("William",)))
    new = altered(example)
    assert new is not None
    assert new.passages[0].text == "Bo ruled. Bo died. Ann wept."


def test_what_cannot_be_altered() -> None:
    assert altered(asked("y", "Was it sold?", "yes")) is None
    assert altered(asked("u", "Why?", "")) is None
    assert altered(asked("l", "What?", "the mill", "It was the mill.")) is None
    assert altered(replace(WHO, answers=(("Ann Lee", "Bo Hart"),), metric="drop")) is None
    assert (
        altered(asked("c", "Who?", "Ann", "Ann ran.", distractors=("the late lamented Ann",)))
        is None
    )


def test_markup_passes_through_an_alteration() -> None:
    text = "<b>Ann Lee</b> & <script>x</script>"
    new = altered(asked("m", "Who?", "Ann Lee", text, distractors=("<i>Bo</i>",)))
    assert new is not None
    assert new.passages[0].text == "<b><i>Bo</i></b> & <script>x</script>"


def test_hard_wrong_answers_come_from_the_passage_hardest_first_and_once() -> None:
    found = list(hard_wrongs(replace(WHO, distractors=("Cy Dow", "cy dow")), POOL))
    assert found[:2] == ["Cy Dow", "Bo Hart"], "its own distractor first, then the same kind"
    assert {"1871", "12"} <= set(found[2:]), "other kinds follow"
    assert "Ann Lee" not in found
    assert "Di Moor" not in found, "from another passage"
    assert len({text.casefold() for text in found}) == len(found)
