"""From what a study stored back to how it was made."""

from __future__ import annotations

from lab.explorer import recall


def test_a_study_is_asked_again_as_it_was_whatever_the_defaults_are_now():
    provenance = {
        "recipe": {"model": "m", "data": ["builtin"], "format": None, "demonstrations": 0},
        "prompting": {"layout": "context_first", "format": "auto", "verdict_words": ["T", "F"]},
    }
    told = {"format": "plain", "demonstrations": 4, "layout": "instruction_first"}
    assert recall.recipe(provenance).prompting(told) == {
        "layout": "context_first", "format": "auto", "verdict_words": ("T", "F"),
        "demonstrations": 0,
    }  # fmt: skip
