"""Verdicts: which tokens count, and how their probabilities add up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from toy_examples import port_amel
from toy_tokenizers import FAMILIES, toy

from lab.errors import LabError
from lab.roles import Prompter, VerdictTokens, label_mass, log_odds, verdict_tokens

TOKENS = VerdictTokens(("Yes", "No"), accept=(1, 2), reject=(3,))


def test_log_odds_and_label_mass_of_a_worked_example():
    logits = np.log([0.1, 0.3, 0.2, 0.25, 0.15]) + 7.0
    assert log_odds(logits, TOKENS) == pytest.approx(math.log(0.5 / 0.25))
    assert label_mass(logits, TOKENS) == pytest.approx(0.75)


def test_large_logits_do_not_overflow():
    logits = np.array([0.0, 4000.0, 4000.0, 3990.0, 0.0])
    assert log_odds(logits, TOKENS) == pytest.approx(10 + math.log(2))
    assert label_mass(logits, TOKENS) == pytest.approx(1.0)
    assert label_mass([0.0, -4000.0, -4000.0, -4000.0, 0.0], TOKENS) == 0.0


def test_more_than_one_row_is_refused_with_its_shape():
    with pytest.raises(LabError, match=r"\(2, 5\)"):
        log_odds(np.zeros((2, 5)), TOKENS)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("words", [("Yes", "No"), ("Correct", "Incorrect")])
def test_sides_share_no_token_and_hold_what_follows_the_prompt(family, words):
    tokenizer = toy(family)
    prompter = Prompter(tokenizer, verdict_words=words)
    tokens = prompter.verdict_tokens()
    assert not set(tokens.accept) & set(tokens.reject)
    prompt = prompter.render(port_amel(), "evaluator", "x")
    for word, ids in zip(words, (tokens.accept, tokens.reject), strict=True):
        for variant in (word, f" {word}", word.upper()):
            told = tokenizer(prompt.text + variant, add_special_tokens=False)["input_ids"]
            if tuple(told[: len(prompt)]) == prompt.token_ids:
                first = told[len(prompt)]
                other = tokens.reject if ids == tokens.accept else tokens.accept
                assert first not in other
                blank = not tokenizer.decode([first]).strip()
                assert first in ids or blank or first in tokenizer.all_special_ids


def test_spellings_with_and_without_a_space_count():
    tokenizer = toy("chatml_bpe")
    texts = {tokenizer.decode([i]) for i in verdict_tokens(tokenizer, ("yes", "no")).accept}
    assert {"yes", "Yes", " YES"} <= texts
    assert all("y".startswith(text.strip().lower()[0]) for text in texts)


def test_first_tokens_that_begin_both_words_are_left_out():
    tokenizer = toy("chatml_bpe")
    tokens = verdict_tokens(tokenizer, ("Zq", "No"))
    with pytest.raises(LabError, match='"Zq" and "Zx"'):
        verdict_tokens(tokenizer, ("Zq", "Zx"))
    assert "Z" in {tokenizer.decode([i]) for i in tokens.accept}


def test_a_blank_verdict_word_is_refused():
    with pytest.raises(LabError, match="two words"):
        Prompter(toy("chatml_bpe"), verdict_words=("Yes", " "))
