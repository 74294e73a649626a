"""Conflicts on a tiny model: prompts that differ where they should, numbers equal to plain runs,
and a filter that says why."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from tiny import tiny_tokenizer
from tiny_conflict import BEGINS_ALIKE, CONFLICT, lens

from lab.data.conflicts import PASSAGES, Conflict
from lab.errors import LabError
from lab.instruments.behaviour import answer
from lab.instruments.conflicts import (
    REASONS,
    Cell,
    Measured,
    conflict_prompter,
    conflict_table,
    measure_conflict,
    measure_verdicts,
    text_says,
    unusable,
)
from lab.roles import Prompt, Prompter, log_odds
from lab.roles.conflicts import (
    CELLS,
    INSTRUCTIONS,
    OPENINGS,
    answer_tokens,
    closed_book_prompt,
    conflict_prompts,
    expected,
    first_tokens,
    judge_pairs,
)


@cache
def measured(begun: bool = False) -> Measured:
    return measure_conflict(lens(), CONFLICT, begun=begun)


def prompters() -> list[Prompter]:
    tokenizer = tiny_tokenizer()
    return [
        Prompter(tokenizer, layout=layout, format=format)  # type: ignore[arg-type]
        for layout in ("context_first", "instruction_first")
        for format in ("chat", "plain")
    ]


def plain(prompt: Prompt) -> np.ndarray:
    """The decision's logits from TransformerLens alone."""
    with torch.no_grad():
        return lens().bridge(torch.tensor([prompt.token_ids]))[0, -1].float().numpy()


# --- prompts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompter", prompters())
@pytest.mark.parametrize("begun", [False, True])
def test_prompts_of_one_instruction_differ_in_the_answer_alone(
    prompter: Prompter, begun: bool
) -> None:
    prompts = conflict_prompts(prompter, CONFLICT, begun=begun)
    assert tuple(prompts) == CELLS
    for name in INSTRUCTIONS:
        for stated in PASSAGES:
            prompt = prompts[name, stated]
            shown = "".join(prompt.tokens()[i] for i in prompt.where("answer"))
            assert shown.strip(" .") == CONFLICT.answer(stated)
            assert {prompt.spans[i] for i in prompt.where("answer")} == {"context"}
        texts = [prompts[name, stated].text for stated in PASSAGES]
        assert texts[0].replace("1871", "2019") == texts[1]


@pytest.mark.parametrize("prompter", prompters())
def test_instructions_differ_in_instruction_and_cue_alone(prompter: Prompter) -> None:
    a, b = (conflict_prompts(prompter, CONFLICT)[name, "original"] for name in INSTRUCTIONS)
    assert "according to the passage" in a.text and "from your own knowledge" not in a.text
    assert "from your own knowledge" in b.text and "according to the passage" not in b.text
    for span in ("context", "question", "candidate"):
        assert [a.tokens()[i] for i in a.where(span)] == [b.tokens()[i] for i in b.where(span)]
    if prompter.layout == "context_first":
        end = max(a.where("question")) + 1
        assert a.token_ids[:end] == b.token_ids[:end]


@pytest.mark.parametrize("prompter", prompters())
def test_a_begun_reply_stands_at_the_decision_and_is_cue(prompter: Prompter) -> None:
    usual = conflict_prompts(prompter, CONFLICT)
    for key, prompt in conflict_prompts(prompter, CONFLICT, begun=True).items():
        assert prompt.text.endswith(CONFLICT.cloze)
        assert prompt.token_ids[: len(usual[key])] == usual[key].token_ids
        added = range(len(usual[key]), len(prompt))
        assert {prompt.spans[i] for i in added} == {"cue"}
        reply = f"{OPENINGS[key[0]]} {CONFLICT.cloze}"
        assert "".join(prompt.tokens()[i] for i in added).strip() == reply
        assert len(prompt.token_ids) == len(prompt.offsets) == len(prompt.spans)


def test_the_closed_book_prompt_is_the_cloze_and_nothing_else() -> None:
    prompter = Prompter(tiny_tokenizer())
    prompt = closed_book_prompt(prompter, CONFLICT)
    assert prompt.text == CONFLICT.cloze
    assert prompt.token_ids == tuple(tiny_tokenizer()(CONFLICT.cloze).input_ids)
    assert set(prompt.spans[1:]) == {"question"}


def test_other_instructions_and_demonstrations_are_refused() -> None:
    with pytest.raises(LabError, match="without demonstrations"):
        conflict_prompts(Prompter(tiny_tokenizer(), demonstrations=1), CONFLICT)


def test_an_obedient_model_follows_the_passage_only_where_told() -> None:
    told = {key: expected(*key) for key in CELLS}
    assert [key for key, side in told.items() if side == "counter"] == [
        ("passage", "counterfactual")
    ]


def test_judges_get_pairs_that_differ_in_the_candidate_or_in_the_passage() -> None:
    pairs = judge_pairs(Prompter(tiny_tokenizer()), CONFLICT)
    assert len(pairs) == 4
    for name, pair in pairs.items():
        assert name.startswith(pair.differ)
        right, wrong = pair.right, pair.wrong
        passages = [
            "".join(p.tokens()[i] for i in p.where("context")).strip() for p in (right, wrong)
        ]
        assert (right.candidate == wrong.candidate) == (pair.differ == "passage")
        assert (passages[0] == passages[1]) == (pair.differ == "candidate")
        # The mark "mention" says where a candidate stands in the passage.
        assert right.where("mention") and not wrong.where("mention")


# --- answers ------------------------------------------------------------------------------------


def test_first_tokens_cover_spellings_and_leave_out_white_space() -> None:
    tokenizer = tiny_tokenizer()
    prompt = closed_book_prompt(Prompter(tokenizer), CONFLICT)
    shown = {tokenizer.decode([i]) for i in first_tokens(tokenizer, ["built"], prompt)}
    assert any(text.strip().startswith("b") for text in shown)
    assert any(text.strip().startswith("B") for text in shown)
    assert all(text.strip() for text in shown)


def test_no_token_is_on_both_sides_and_aliases_count_as_true() -> None:
    tokenizer = tiny_tokenizer()
    prompt = closed_book_prompt(Prompter(tokenizer), CONFLICT)
    sides = answer_tokens(tokenizer, CONFLICT, [prompt])
    assert sides["memory"] and sides["counter"]
    assert not set(sides["memory"]) & set(sides["counter"])
    more = answer_tokens(tokenizer, replace(CONFLICT, aliases=("Xenon",)), [prompt])
    assert set(more["memory"]) > set(sides["memory"])
    alias = replace(CONFLICT, aliases=("20 years ago",))
    assert answer_tokens(tokenizer, alias, [prompt])["counter"] == ()


@pytest.mark.parametrize(
    ("memory", "counter"),
    [("the Netherlands", "Belgium"), ("Belgium", "The Hague"), ("a pear", "an apple")],
)
def test_an_article_tells_no_answer(memory: str, counter: str) -> None:
    """Else every reply that begins with "The" would say "the Netherlands"."""
    tokenizer = tiny_tokenizer()
    prompter = Prompter(tokenizer)
    prompts = [
        closed_book_prompt(prompter, CONFLICT),
        *conflict_prompts(prompter, CONFLICT).values(),
    ]

    def asked(memory: str, counter: str) -> Conflict:
        texts = {"original": f"It lies in {memory}.", "counterfactual": f"It lies in {counter}."}
        return replace(CONFLICT, memory=memory, counter=counter, **texts)

    told = answer_tokens(tokenizer, asked(memory, counter), prompts)
    assert told == {"memory": (), "counter": ()}
    bare = answer_tokens(tokenizer, asked("Netherlands", "Belgium"), prompts)
    assert all(bare.values())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("It was 1871.", "memory"),
        ("2019", "counter"),
        ("1871 or 2019", "other"),
        ("18710", "other"),
        ("", "other"),
    ],
)
def test_what_a_text_says(text: str, says: str) -> None:
    assert text_says(CONFLICT, text) == says


# --- the table of one conflict ------------------------------------------------------------------


@pytest.mark.parametrize("begun", [False, True])
def test_numbers_equal_plain_runs(begun: bool) -> None:
    got = measured(begun)
    assert got.pair is not None and got.closed_book is not None
    for cell in (*got.cells.values(), got.closed_book):
        row = plain(cell.prompt)
        assert cell.top == lens().tokenizer.decode([int(row.argmax())])
        if cell is not got.closed_book:
            assert np.allclose(cell.logits, row[list(got.pair)], atol=1e-3)
            assert cell.margin == pytest.approx(got.effect()(row), abs=1e-3)
        shares = np.exp(row - np.logaddexp.reduce(row))
        if cell is not got.closed_book:
            by_hand = [shares[list(got.tokens[side])].sum() for side in ("memory", "counter")]
            assert np.allclose(cell.probabilities, by_hand, atol=1e-4)


def test_the_margin_takes_the_spellings_that_the_passages_call_for() -> None:
    got = measured()
    assert got.pair is not None
    for place, side in ((0, "memory"), (1, "counter")):
        row = plain(got.cells["passage", PASSAGES[place]].prompt)
        assert got.pair[place] in got.tokens[side]  # type: ignore[index]
        assert row[got.pair[place]] == max(row[list(got.tokens[side])])  # type: ignore[index]


def test_generated_answers_are_those_of_the_model() -> None:
    for cell in measured().cells.values():
        assert answer(lens(), cell.prompt).startswith(cell.text)
        assert cell.text_says == text_says(CONFLICT, cell.text)
    quick = measure_conflict(lens(), CONFLICT, generate=False)
    assert {cell.text for cell in quick.cells.values()} == {""}
    with pytest.raises(LabError, match="generate=True"):
        conflict_table([quick], "generated")


def test_answers_that_begin_alike_have_no_table() -> None:
    got = measure_conflict(lens(), BEGINS_ALIKE)
    assert not got.cells and got.closed_book is None and not got.known
    assert unusable(got) == ("no first token tells the answers apart",)
    with pytest.raises(LabError, match="Conflict alike has no margin: no first token tells"):
        got.effect()


def test_verdicts_are_the_judges_log_odds() -> None:
    prompter = conflict_prompter(lens())
    verdicts = measure_verdicts(lens(), CONFLICT)
    pairs = judge_pairs(prompter, CONFLICT)
    by_hand = {
        ("original", "memory"): pairs["candidate_original"].right,
        ("original", "counter"): pairs["candidate_original"].wrong,
        ("counterfactual", "counter"): pairs["candidate_counterfactual"].right,
        ("counterfactual", "memory"): pairs["candidate_counterfactual"].wrong,
    }
    assert verdicts.keys() == by_hand.keys()
    for key, prompt in by_hand.items():
        wanted = log_odds(plain(prompt), prompter.verdict_tokens())
        assert verdicts[key] == pytest.approx(wanted, abs=1e-3)


# --- many conflicts -----------------------------------------------------------------------------


def made(name: str, known: bool, passage: Any, memory: Any, cluster: str = "") -> Measured:
    """A conflict with these counterfactual decisions; margins are 2 towards what is said."""
    conflict = replace(CONFLICT, id=name, cluster=cluster or name)
    prompt = measured().cells["passage", "original"].prompt

    def cell(says: Any) -> Cell:
        logits = {"memory": (2.0, 0.0), "counter": (0.0, 2.0)}.get(says, (1.0, 0.0))
        return Cell(prompt, logits, (0.5, 0.25), "x", says, "x", says)

    cells = {key: cell("memory") for key in CELLS}
    cells["passage", "counterfactual"] = cell(passage)
    cells["memory", "counterfactual"] = cell(memory)
    alone = cell("memory" if known else "other")
    return Measured(conflict, measured().tokens, (1, 2), alone, cells, generated=True)


def several() -> list[Measured]:
    return [
        made("good", True, "counter", "memory"),
        made("again", True, "counter", "memory"),
        made("unknown", False, "counter", "memory"),
        made("stubborn", True, "memory", "memory"),
        made("led", True, "counter", "counter"),
        made("mute", True, "other", "other"),
        made("lost", False, "memory", "counter"),
        Measured(BEGINS_ALIKE, {"memory": (), "counter": ()}, None, None, {}, generated=True),
    ]


def test_the_filter_says_why() -> None:
    why = {m.conflict.id: unusable(m) for m in several()}
    assert why["good"] == why["again"] == ()
    assert why["unknown"] == REASONS[1:2]
    assert why["stubborn"] == REASONS[2:3]
    assert why["led"] == REASONS[3:]
    assert why["mute"] == REASONS[2:]
    assert why["lost"] == REASONS[1:]
    assert why["alike"] == REASONS[:1]


def test_the_sign_of_the_margin_has_no_other() -> None:
    mute = made("mute", True, "other", "other")  # its margin is positive
    assert unusable(mute, "pair") == ("does not follow the passage",)
    with pytest.raises(LabError, match="no rule 'guess'"):
        unusable(mute, "guess")  # type: ignore[arg-type]


def test_the_table_counts_each_conflict_once() -> None:
    table = conflict_table(several())
    assert table.n == 8
    assert table.usable.value == 2 / 8
    assert dict(zip(REASONS, (1, 2, 2, 1), strict=True)) == table.dropped
    assert dict(zip(REASONS, (1, 2, 3, 3), strict=True)) == table.reasons
    assert table.known.value == pytest.approx(5 / 7)
    followed = table.says["passage", "counterfactual"]
    assert followed["counter"].value == pytest.approx(4 / 7)
    assert sum(estimate.value for estimate in followed.values()) == pytest.approx(1)
    assert table.says["passage", "original"]["memory"].value == 1
    assert table.margin["passage", "counterfactual"].value == pytest.approx((4 * -2 + 4 + 1) / 7)
    assert table.margin["passage", "counterfactual"].low < -3 / 7
    out = "1 no first token tells the answers apart, 2 unknown"
    assert f"2 of 8 conflicts are usable; out: {out}" in table.sentence()
    frame = table.frame()
    assert list(frame["expected"]) == ["memory", "counter", "memory", "memory"]
    assert set(frame["n"]) == {7}


def test_intervals_are_over_subjects() -> None:
    alone = conflict_table([made(f"{i}", i % 2 == 0, "counter", "memory") for i in range(20)])
    shared = conflict_table(
        [made(f"{i}", i % 2 == 0, "counter", "memory", f"{i % 4}") for i in range(20)]
    )
    assert alone.known.value == shared.known.value == 0.5
    assert "Wilson" in alone.known.method
    assert "4 clusters" in shared.known.method
    assert shared.known.high - shared.known.low > alone.known.high - alone.known.low
