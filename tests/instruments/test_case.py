"""An example opened on a model: what is put in its place fits, and comes from what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from tiny import tiny_lens
from tiny_folders import question

from lab.data import Example
from lab.data.fields import Record
from lab.data.jsonl import example
from lab.engine.lens import Lens
from lab.engine.packing import Branch, trunk_length
from lab.errors import LabError
from lab.instruments.behaviour import judge, measure_behaviour
from lab.instruments.case import LONGEST_ANSWERS, Case, open_case
from lab.instruments.reading import measure_reading
from lab.roles import Prompter

WINDOW = 900
FILLER = "The mayor of Dalmore walked along the river Orn. "


@cache
def lens() -> Lens:
    made = tiny_lens("llama")
    # Rotary positions have no weights, so the window of the tests' tiny models can be widened.
    made.config.max_position_embeddings = WINDOW
    return made


def asked(number: int, filler: int = 0, **changes: Any) -> Example:
    """A question whose first passage is as long as asked and holds no evidence."""
    record = question(number)
    long = {"title": "Zed", "text": FILLER * filler + "Old Bramwick stood there in 1700."}
    record["passages"] = [long, *record["passages"]]
    record["evidence"] = [{**record["evidence"][0], "passage": 1}]
    record.pop("distractors")
    return example(Record({**record, **changes}, "test"), "tiny")


def dropping() -> Prompter:
    return Prompter(lens().tokenizer, too_long="drop")


def shown(case: Case) -> str:
    return " ".join(passage.text for passage in case.example.passages)


def test_another_question_s_long_passage_is_not_swapped_in() -> None:
    long, short = asked(1, filler=60), asked(2)
    case = open_case(lens(), asked(0), [long, short])
    assert case.other is not None
    assert case.other.id == short.id
    assert "context_swapped" in measure_behaviour(case).controls
    alone = open_case(lens(), asked(0), [long])
    assert alone.other is None
    assert "context_swapped" not in measure_behaviour(alone).controls


def test_the_swapped_passage_is_that_of_the_next_question_going_round() -> None:
    pool = [asked(i) for i in range(3)]
    others = [open_case(lens(), item, pool).other for item in pool]
    assert [other and other.id for other in others] == ["q1", "q2", "q0"]


def test_nothing_comes_from_a_passage_that_was_dropped() -> None:
    case = open_case(lens(), asked(0, filler=40), [asked(1), asked(2)], prompter=dropping())
    assert [passage.title for passage in case.example.passages] == ["Kestrel"]
    for rung in ("same_type", "same_passage"):
        assert case.rungs.get(rung, "") in shown(case)
    assert case.changed is not None
    assert len(case.changed.passages) == 1
    assert "Dalmore" not in case.prompter.render(case.changed, "generator").text


def test_what_opens_can_be_measured_whatever_the_model_answers() -> None:
    """There is room for the longest answer, both behind the question and judged."""
    opened = []
    for filler in range(0, 40, 4):
        try:
            case = open_case(lens(), asked(0, filler), [asked(1)])
        except LabError:
            continue
        opened.append(filler)
        prompts = [case.prompt("evaluator", text) for text in LONGEST_ANSWERS]
        prompts.append(case.prompt("evaluator_candidate_first", LONGEST_ANSWERS[0]))
        assert max(map(len, prompts)) <= WINDOW
        assert len(case.prompt("generator")) + 32 <= WINDOW
    assert opened
    assert max(opened) < 36, "the longest must be refused, or the test tells nothing"


def test_a_prompter_s_own_limit_is_kept_and_none_is_the_window() -> None:
    with pytest.raises(LabError, match=r"q0 needs .* but at most 867 are allowed"):
        open_case(lens(), asked(0, filler=40), prompter=Prompter(lens().tokenizer))
    with pytest.raises(LabError, match=r"q0 needs .* but at most 300 are allowed"):
        open_case(lens(), asked(0), prompter=Prompter(lens().tokenizer, max_tokens=300))


@pytest.mark.parametrize("role", ["evaluator", "evaluator_candidate_first"])
def test_rows_are_made_of_a_candidate_only_where_it_can_see_the_passage(
    role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = open_case(lens(), asked(0, filler=2))
    prompt = case.prompt(role, "1811")
    trunks: list[int] = []
    run = Lens.run

    def spy(self: Lens, branches: Sequence[Branch], *rest: Any, **more: Any) -> Any:
        trunks.append(trunk_length(branches))
        return run(self, branches, *rest, **more)

    monkeypatch.setattr(Lens, "run", spy)
    reading = measure_reading(case, prompt)
    context = prompt.where("context")
    assert trunks[0] > context[-1], "the passage is in the trunk"
    follows = role == "evaluator"
    assert (trunks[0] <= prompt.where("candidate")[0]) == follows
    assert bool((reading.candidate_to_context > 0).all()) == follows
    assert follows or bool((reading.candidate_to_context == 0).all())
    assert np.allclose(reading.mass.sum(-1), 1, atol=1e-5)


def test_what_is_no_role_prompt_or_example_is_named_with_what_to_write():
    case = open_case(lens(), asked(0))
    with pytest.raises(LabError, match="no role 'judge': the roles are generator"):
        case.prompt("judge")
    with pytest.raises(LabError, match=r"takes a prompt, not 'generator'.*case\.prompt"):
        measure_reading(case, "generator")  # type: ignore[arg-type]
    with pytest.raises(LabError, match="judge takes prompts, in a list"):
        judge(case, "1871")  # type: ignore[arg-type]
    with pytest.raises(LabError, match="opens one example, not a list"):
        open_case(lens(), [asked(0)])  # type: ignore[arg-type]
