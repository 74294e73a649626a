"""The position map: the same token in another role's prompt, or a refusal."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy_examples import examples, port_amel, sane_river
from toy_tokenizers import FAMILIES, USUAL, toy

from lab.data.example import Example, Passage
from lab.errors import LabError
from lab.roles import LAYOUTS, ROLES, Prompt, Prompter, align

PROPERTY = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
roles = st.sampled_from(tuple(ROLES))


@PROPERTY
@given(examples(), st.sampled_from(FAMILIES), st.sampled_from(tuple(LAYOUTS)), roles, roles)
def test_counterparts_are_the_same_token_of_the_same_span_in_order(case, family, layout, one, two):
    example, candidate = case
    prompter = Prompter(toy(family), layout)
    a, b = (prompter.render(example, role, candidate) for role in (one, two))
    mapped = align(a, b)
    inner = {i: j for i, j in mapped.pairs.items() if i != a.decision}
    for i, j in inner.items():
        assert a.token_ids[i] == b.token_ids[j]
        assert a.spans[i] == b.spans[j] in ("context", "question", "candidate")
    for span in ("context", "question", "candidate"):
        there = [j for i, j in inner.items() if a.spans[i] == span]
        assert there == sorted(set(there))
    assert mapped(a.decision) == b.decision
    assert mapped.inverse().inverse().pairs == mapped.pairs


@pytest.mark.parametrize("family", USUAL)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_shared_data_has_a_counterpart(family, layout):
    prompter = Prompter(toy(family), layout)
    generator = prompter.render(port_amel(), "generator")
    evaluator = prompter.render(port_amel(), "evaluator", "Olaf Renn")
    first = prompter.render(port_amel(), "evaluator_candidate_first", "Olaf Renn")
    shared = (*generator.where("context"), *generator.where("question"))
    assert align(generator, evaluator).of(shared) == (
        *evaluator.where("context"), *evaluator.where("question"),
    )  # fmt: skip
    assert align(evaluator, first).of(evaluator.where("candidate")) == first.where("candidate")


def test_equal_byte_pieces_of_one_character_are_told_apart():
    linear_b = "\U00010000"  # its last two bytes are equal
    example = Example("x", "t", "t", "q", (Passage(f"a {linear_b} b"),), ())
    prompter = Prompter(toy("metaspace_bpe"))
    one = prompter.render(example, "generator")
    two = prompter.render(example, "evaluator", "x")
    assert align(one, two).of(one.where("context")) == two.where("context")


def test_context_first_maps_the_shared_prefix_to_itself():
    prompter = Prompter(toy("chatml_bpe"), "context_first")
    generator = prompter.render(port_amel(), "generator")
    mapped = align(generator, prompter.render(port_amel(), "evaluator", "Olaf Renn"))
    assert all(mapped(i) == i for i in generator.where("context"))


def test_positions_without_a_counterpart_are_refused_by_name():
    prompter = Prompter(toy("chatml_bpe"))
    generator = prompter.render(port_amel(), "generator")
    evaluator = prompter.render(port_amel(), "evaluator", "Olaf Renn")
    back = align(evaluator, generator)
    for span in ("candidate", "instruction", "sink"):
        with pytest.raises(LabError, match=rf"in the {span}\) of the evaluator .* port-1 has no"):
            back(evaluator.where(span)[0])
    with pytest.raises(LabError, match="there is no position 9999"):
        back(9999)
    with pytest.raises(LabError, match="there is no position -1"):
        back(-1)


def test_a_span_with_another_text_is_not_mapped_at_all():
    prompter = Prompter(toy("chatml_bpe"))
    right = prompter.render(port_amel(), "evaluator", "Ida Brandt")
    wrong = prompter.render(port_amel(), "evaluator", "Ida Renn")
    mapped = align(right, wrong)
    assert not set(mapped.pairs) & set(right.where("candidate"))
    assert set(right.where("context")) < set(mapped.pairs)
    swapped = prompter.control(port_amel(), "context_swapped", "Ida Brandt", other=sane_river())
    assert set(align(right, swapped).pairs) & set(right.where("context")) == set()


def _hand_made(role: str, tokens: list[tuple[str, str]]) -> Prompt:
    """A prompt from (text, span) pairs; equal texts have equal ids."""
    ends = [sum(len(text) for text, _ in tokens[: i + 1]) for i in range(len(tokens))]
    return Prompt(
        role=role,
        example_id="hand",
        text="".join(text for text, _ in tokens),
        token_ids=tuple(sum(map(ord, text)) for text, _ in tokens),
        offsets=tuple((end - len(text), end) for (text, _), end in zip(tokens, ends, strict=True)),
        spans=tuple(span for _, span in tokens),
    )


def test_border_tokens_that_are_cut_differently_have_no_counterpart():
    c, t = "candidate", "template"
    a = _hand_made("a", [("<s>", "sink"), (":", t), (" Ida", c), (" Brandt", c), ("\n", "cue")])
    b = _hand_made(
        "b", [("<s>", "sink"), (": ", t), ("Ida", c), (" Bra", c), ("ndt", c), ("\n", "cue")]
    )
    d = _hand_made("d", [("<s>", "sink"), (": ", t), ("Ida", c), (" Brandt", c), ("?", "cue")])
    assert dict(align(a, b).pairs) == {4: 5}
    assert dict(align(a, d).pairs) == {3: 3, 4: 4}
    assert dict(align(b, d).pairs) == {2: 2, 5: 4}
