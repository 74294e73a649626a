"""Which examples a study runs, fitted to the window, and what it says of those it leaves out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny import tiny_lens, tiny_tokenizer
from tiny_folders import question, write_questions

from lab.data import load_examples
from lab.errors import LabError
from lab.instruments.case import ANSWER_TOKENS, LONGEST_ANSWERS, open_case
from lab.roles import Prompter, apply_control
from lab.studies.plan import Plan, make_plan
from lab.studies.recipe import Recipe

FILLER = "Nothing of note was written down in the years that followed the fire. "


def plan(tmp_path: Path, records: list[dict[str, Any]], window: int = 4096, **recipe: Any) -> Plan:
    file = write_questions(tmp_path / "asked.jsonl", records)
    model = SimpleNamespace(prompting={}, tokenizer=tiny_tokenizer(), max_tokens=window)
    return make_plan(Recipe("tiny", (f"jsonl:{file}",), **recipe), model)


def long_question(number: int, passages: int = 6, **changes: Any) -> dict[str, Any]:
    """A question whose evidence is short and whose other passages are long."""
    record = question(number)
    others = [{"title": f"Other {i}", "text": FILLER * 4} for i in range(passages)]
    return {**record, "passages": [*record["passages"], *others], **changes}


def test_what_does_not_fit_is_left_out_and_listed_with_both_lengths(tmp_path: Path) -> None:
    huge = question(1, question="Why " + "oh why " * 10_000 + "did it burn?")
    made = plan(tmp_path, [question(0), huge, question(2)])
    assert made.ids == ("q0", "q2")
    [(name, why)] = made.excluded
    assert name == "q1"
    assert "4063" in why.replace(",", ""), why
    length = max(int(n) for n in why.replace(",", "").split() if n.isdigit())
    assert length > 10_000


def test_under_error_what_does_not_fit_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"q1 needs .* but at most 1,500 are allowed"):
        plan(tmp_path, [question(0), long_question(1)], max_tokens=1500, too_long="error")


def test_nothing_left_to_run_is_an_error_that_says_why(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"No example is left to run: all 2 were left out\. The fir"):
        plan(tmp_path, [question(0), question(1)], max_tokens=50)


def test_an_empty_file_and_too_large_an_n_are_errors(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"asked\.jsonl"):
        plan(tmp_path, [])
    with pytest.raises(LabError, match="9 examples were asked for, but there are only 2"):
        plan(tmp_path, [question(0), question(1)], n=9)


def test_ids_that_two_sources_share_get_the_source_in_front(tmp_path: Path) -> None:
    model = SimpleNamespace(prompting={}, tokenizer=tiny_tokenizer(), max_tokens=4096)
    files = [
        write_questions(tmp_path / f"{name}.jsonl", [question(i), question(i + 1)])
        for i, name in enumerate(("north", "south"))
    ]
    made = make_plan(Recipe("tiny", tuple(f"jsonl:{f}" for f in files)), model)
    assert made.ids == ("north:q0", "north:q1", "south:q1", "south:q2")
    with pytest.raises(LabError, match=r"'north:q0' occurs twice .* do not name a source twice"):
        make_plan(Recipe("tiny", (f"jsonl:{files[0]}",) * 2), model)


def test_every_prompt_of_a_fitted_study_fits_and_lacks_the_same_passages(tmp_path: Path) -> None:
    """Also those on another example's passages, and those on passages with another answer."""
    longest = 1900
    records = [
        long_question(0, passages=1),
        long_question(1, passages=6),
        long_question(2, passages=9, question="Tell me, " + "please " * 30 + "when was it built?"),
    ]
    made = plan(tmp_path, records, max_tokens=longest)
    assert len(made.items) == 3
    for item in made.items:
        assert item.example.passages[0].title in ("Kestrel", "Orvane", "Tilbeck")
        for answer in LONGEST_ANSWERS:
            assert len(made.prompter.render(item.example, "evaluator", answer)) <= longest
            for control in ("context_swapped", "candidate_masked"):
                role, example, shown = apply_control(
                    control, item.example, answer, other=item.other
                )
                prompt = made.prompter.render(example, role, shown)
                assert len(prompt) <= longest
                assert len(set(example.passages)) == len(example.passages)
        assert item.changed is not None
        assert len(item.changed.passages) == len(item.example.passages)
        assert len(made.prompter.render(item.changed, "generator")) <= longest
        assert made.max_tokens <= longest


def test_swapped_passages_are_fitted_to_the_question_and_keep_their_evidence(
    tmp_path: Path,
) -> None:
    """The second question is so long that the first one's passages must shrink to go with it."""
    wordy = question(1, question="Tell me, " + "if you please, " * 40 + "when was it built?")
    made = plan(tmp_path, [long_question(0, passages=4), wordy], max_tokens=1700)
    first, second = made.items
    assert second.other is not None
    assert second.other.passages[0].title == "Kestrel"
    assert second.other.evidence
    assert len(second.other.passages) < len(first.example.passages) == 5
    assert second.other.question == first.example.question


def test_an_example_opened_on_its_own_is_what_a_study_runs(tmp_path: Path) -> None:
    wordy = question(1, question="Tell me, " + "if you please, " * 40 + "when was it built?")
    records = [long_question(0, passages=4), wordy, long_question(2, passages=6)]
    made = plan(tmp_path, records, window=1733)
    assert any(item.example.notes for item in made.items), "one must lose passages"
    lens = tiny_lens("llama")
    lens.config.max_position_embeddings = 1733
    examples = load_examples(f"jsonl:{tmp_path / 'asked.jsonl'}")
    for example, item in zip(examples, made.items, strict=True):
        prompter = Prompter(lens.tokenizer, too_long="drop")
        case = open_case(lens, example, examples.pool, prompter=prompter)
        assert (case.example, case.other, case.rungs, case.changed) == (
            item.example, item.other, item.rungs, item.changed,
        )  # fmt: skip
        assert case.prompter == made.prompter


def test_without_other_passages_there_is_nothing_to_swap_in(tmp_path: Path) -> None:
    made = plan(tmp_path, [question(0), question(0, id="again")])
    assert [item.other for item in made.items] == [None, None]


def test_room_is_kept_for_the_answer(tmp_path: Path) -> None:
    made = plan(tmp_path, [question(0)], window=1500)
    prompts = [made.prompter.render(made.items[0].example, "generator")]
    assert all(len(p) + ANSWER_TOKENS < 1500 for p in prompts)
    assert made.max_tokens < 1500


def test_only_so_many_examples_of_each_source_are_patched(tmp_path: Path) -> None:
    made = plan(tmp_path, [question(i) for i in range(4)], patching=2)
    patched = ["patching" in item.measured for item in made.items]
    assert patched == [True, True, False, False]


def test_demonstrations_count_in_the_fit_and_in_the_fingerprint(tmp_path: Path) -> None:
    without, one, two = (plan(tmp_path, [question(0)], demonstrations=n) for n in (0, 1, 2))
    assert without.max_tokens < one.max_tokens < two.max_tokens
    assert len({made.fingerprint["prompts"] for made in (without, one, two)}) == 3
    assert without.fingerprint["examples"] == two.fingerprint["examples"]
    room = without.max_tokens + 100
    assert plan(tmp_path, [long_question(0)], max_tokens=4000, demonstrations=1).items
    with pytest.raises(LabError, match=r"all 1 were left out.*show fewer demonstrations"):
        plan(tmp_path, [question(0)], max_tokens=room, demonstrations=2)


def test_a_recipe_takes_no_more_demonstrations_than_there_are() -> None:
    for number in (-1, 5):
        with pytest.raises(LabError, match=f"demonstrations is {number}: it must be from 0 to 4"):
            Recipe("tiny", ("builtin",), demonstrations=number)


def test_the_fingerprint_tells_changed_questions(tmp_path: Path) -> None:
    one = plan(tmp_path, [question(0), question(1)]).fingerprint
    assert one == plan(tmp_path, [question(0), question(1)]).fingerprint
    other = plan(tmp_path, [question(0), question(1, distractors=["1699"])]).fingerprint
    assert one["prompts"] == other["prompts"]
    assert one["examples"] != other["examples"]
