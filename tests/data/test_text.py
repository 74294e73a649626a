"""Finding whole words and sentences."""

from __future__ import annotations

import pytest

from lab.data import Mark, Passage
from lab.data.text import clean, cluster_key, find_answers, occurrences, sentences


@pytest.mark.parametrize(
    ("text", "phrase", "found"),
    [
        ("a cat, a caterpillar", "cat", ["cat"]),
        ("14, 4,000 and 4.5 but 4.", "4", ["4"]),
        ("from 3-5 to 5%", "5", ["5", "5"]),
        ("New\n  York", "New York", ["New\n  York"]),
        ("the May fair may", "may", ["may"]),
        ("The Old Mill", "the old mill", ["The Old Mill"]),
        ("cost $5.50 then", "$5.50", ["$5.50"]),
        ("a+b (sic)", "(sic)", ["(sic)"]),
        ("Ca\u00f1ada", "Ca", []),
        ("text", "", []),
    ],
)
def test_occurrences_are_whole_words(text: str, phrase: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in occurrences(text, phrase)] == found


def test_sentences_keep_initials_and_abbreviations_together() -> None:
    text = 'Dr. A. Bell spoke. "Go!" she said. It cost 4.5 m. in 1920. \n\nThe end'
    assert [text[a:b] for a, b in sentences(text)] == [
        "Dr. A. Bell spoke.",
        '"Go!" she said.',
        "It cost 4.5 m. in 1920.",
        "The end",
    ]


def test_invisible_characters_leave_answers_but_joiners_stay() -> None:
    assert clean("\ufeff\u200bP\u200bari\u200es\u00a0 ") == "Paris"
    assert clean("\u0646\u200c\u0645") == "\u0646\u200c\u0645"


def test_answers_are_found_inside_the_evidence_and_the_longest_is_kept() -> None:
    passages = (Passage("Ann Lee came. Ann left."), Passage("Ann"))
    found = find_answers(passages, [("Ann",), ("Ann Lee",)], [Mark(0, 0, 13)])
    assert found == (Mark(0, 0, 7),)


def test_yes_and_no_are_never_looked_for() -> None:
    assert find_answers((Passage("There was no ship."),), [("no",)]) == ()


def test_the_cluster_key_depends_on_the_texts_alone() -> None:
    key = cluster_key([Passage("one", "A"), Passage("two")])
    assert key == cluster_key([Passage("one"), Passage("two", "B")])
    assert key != cluster_key([Passage("onetwo")])
    assert key != cluster_key([Passage("two"), Passage("one")])
