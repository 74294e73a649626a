"""Content controls: masks really mask, swaps really swap, and nothing else changes."""

from __future__ import annotations

import pytest
from toy_examples import FOUNDED, TOLD, port_amel, sane_river
from toy_tokenizers import toy

from lab.errors import LabError
from lab.roles import CONTROLS, MASK, Prompt, Prompter, apply_control

STORED = (
    "candidate_masked", "candidate_swapped", "context_masked", "context_swapped",
    "question_masked", "candidate_first", "filler", "labels_swapped",
)  # fmt: skip


def controlled(name: str) -> Prompt:
    prompter = Prompter(toy("chatml_bpe"))
    return prompter.control(port_amel(), name, "Ida Brandt", wrong="Olaf Renn", other=sane_river())


def shown(prompt: Prompt, name: str) -> str:
    return "".join(prompt.tokens()[i] for i in prompt.where(name)).strip()


def test_the_controls_are_the_ones_that_a_study_stores():
    assert tuple(CONTROLS) == STORED


def test_a_masked_candidate_is_gone_from_the_candidate_and_from_the_marks():
    prompt = controlled("candidate_masked")
    assert shown(prompt, "candidate") == MASK
    assert not prompt.where("mention")
    assert FOUNDED in prompt.text and prompt.candidate == MASK


def test_a_masked_context_is_one_placeholder_without_titles_or_marks():
    prompt = controlled("context_masked")
    assert shown(prompt, "context") == MASK
    assert "harbour" not in prompt.text and prompt.text.count("Port Amel") == 1
    assert not prompt.where("evidence") and not prompt.where("answer")


def test_a_masked_question_leaves_passage_and_candidate():
    prompt = controlled("question_masked")
    assert shown(prompt, "question") == MASK
    assert "Who founded" not in prompt.text
    assert FOUNDED in prompt.text and shown(prompt, "candidate") == "Ida Brandt"


def test_swaps_show_the_other_content_in_the_same_place():
    assert shown(controlled("candidate_swapped"), "candidate") == "Olaf Renn"
    prompt = controlled("context_swapped")
    assert shown(prompt, "context") == "The Sane is 70 km long."
    assert TOLD not in prompt.text and shown(prompt, "question") == "Who founded Port Amel?"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("candidate_first", "evaluator_candidate_first"),
        ("filler", "generator_filler"),
        ("labels_swapped", "evaluator_labels_swapped"),
    ],
)
def test_controls_of_form_are_roles_with_unchanged_content(name, role):
    example = port_amel()
    assert apply_control(name, example, "x") == (role, example, "x")
    assert controlled(name).role == role


def test_a_changed_context_no_longer_answers_the_question():
    for name in ("context_masked", "context_swapped"):
        _, example, _ = apply_control(name, port_amel(), "x", other=sane_river())
        assert not example.answerable and example.id == "port-1"


def test_missing_or_equal_content_for_a_swap_is_refused():
    example = port_amel()
    with pytest.raises(LabError, match=r'"candidate_swapped" of example port-1 .*wrong='):
        apply_control("candidate_swapped", example, "x")
    with pytest.raises(LabError, match="differs"):
        apply_control("candidate_swapped", example, "x", wrong="x")
    with pytest.raises(LabError, match=r"port-1 .*other="):
        apply_control("context_swapped", example, "x", other=example)
    with pytest.raises(LabError, match=r'no control "c_mask".*candidate_masked'):
        apply_control("c_mask", example, "x")
