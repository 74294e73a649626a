"""Fitting: long prompts are refused, or lose passages, the same ones in all roles."""

from __future__ import annotations

from dataclasses import replace

import pytest
from toy_examples import crowded, port_amel
from toy_tokenizers import FAMILIES, toy

from lab.data.example import Example, Passage
from lab.errors import LabError
from lab.roles import ROLES, Prompter, render


def fitting(limit: int, family: str = "chatml_bpe", **options: str) -> Prompter:
    return Prompter(toy(family), max_tokens=limit, too_long="drop", **options)


def length(family: str, example: Example) -> int:
    prompter = Prompter(toy(family))
    return max(len(prompter.render(example, role, "Ida Brandt")) for role in ROLES)


@pytest.mark.parametrize("family", FAMILIES)
def test_passages_are_dropped_until_all_roles_fit_and_evidence_stays(family):
    example = crowded()
    limit = length(family, example) * 6 // 10
    prompter = fitting(limit, family)
    fitted = prompter.fit(example, candidates=("x", "Ida Brandt"))
    assert 1 < len(fitted.passages) < len(example.passages)
    assert fitted.marked(fitted.evidence[0]) == example.marked(example.evidence[0])
    for role in ROLES:
        prompt = prompter.render(fitted, role, "Ida Brandt")
        assert len(prompt) <= limit
        assert any("dropped passage" in note for note in prompt.notes)


def test_the_longest_passage_goes_first_and_the_note_counts_from_one():
    example = crowded()
    limit = length("chatml_bpe", example) - 1
    fitted = fitting(limit).fit(example, candidates=("Ida Brandt",))
    assert fitted.passages == example.passages[:6] + example.passages[7:]
    assert fitted.notes == ("dropped passage 7 of 12 to fit the model's context",)


def test_fitting_twice_names_passages_by_their_first_place():
    example = crowded()
    once = fitting(length("chatml_bpe", example) - 1).fit(example, candidates=("Ida Brandt",))
    twice = fitting(length("chatml_bpe", once) - 1).fit(once, candidates=("Ida Brandt",))
    assert twice.notes == ("dropped passage 7, 12 of 12 to fit the model's context",)
    assert twice.passages == example.passages[:6] + example.passages[7:11]


def test_an_example_that_fits_comes_back_as_it_is():
    example = port_amel()
    assert fitting(4000).fit(example) is example
    assert Prompter(toy("chatml_bpe")).fit(example) is example


def test_rendering_drops_on_its_own_when_told_to():
    example = crowded()
    full = length("chatml_bpe", example)
    for candidate in ("Ida Brandt", "the people who came over the river Sane in 1834"):
        prompt = fitting(full // 2).render(example, "evaluator", candidate)
        assert full // 4 < len(prompt) <= full // 2
        assert candidate in prompt.text and "dropped passage" in prompt.notes[0]


def test_all_passages_but_one_may_go_where_none_answers():
    example = replace(crowded(), answers=(), evidence=())
    prompter = fitting(230)
    assert len(prompter.fit(example, ("generator", "evaluator")).passages) >= 1
    with pytest.raises(LabError, match="without the passages that may be dropped"):
        fitting(60).fit(example)


def test_nothing_is_dropped_where_the_evidence_is_unknown():
    example = replace(crowded(), evidence=())
    with pytest.raises(LabError, match="crowd-1"):
        fitting(200).fit(example)


def test_too_long_is_refused_with_both_lengths_and_a_way_out():
    example = crowded()
    with pytest.raises(LabError) as problem:
        render(example, "generator", toy("chatml_bpe"), max_tokens=100)
    full = len(render(example, "generator", toy("chatml_bpe")))
    message = str(problem.value)
    for part in ("crowd-1", f"{full:,} tokens", "at most 100", "generator", 'too_long="drop"'):
        assert part in message


def test_a_question_of_ten_thousand_tokens_is_refused():
    example = Example("long-q", "t", "t", "who " * 5000 + "?", (Passage("p"),), (("p",),))
    for policy in ("error", "drop"):
        with pytest.raises(LabError, match=r"long-q needs \d\d,\d{3} tokens .* at most 2,048"):
            render(
                example, "evaluator", toy("digit_bpe"), candidate="p",
                max_tokens=2048, too_long=policy,
            )  # fmt: skip
