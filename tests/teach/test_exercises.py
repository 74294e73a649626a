"""The exercises on data: the right answer passes, and each usual mistake is named."""

from __future__ import annotations

import math
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import xarray as xr
from synthetic_study import synthetic_study
from tiny import tiny_tokenizer
from tiny_folders import question, write_questions

from lab import Prompter, Recipe, teach
from lab.instruments.behaviour import Judgement
from lab.instruments.summaries.transfer import Run, matrix
from lab.roles import SPANS, Prompt, verdict_tokens
from lab.teach.exercise import Exercise

SINK, CONTEXT = SPANS.index("sink"), SPANS.index("context")


def said(name: str, answer, *given) -> str:
    """What the checker says, without the exercise's name."""
    return teach.assess(name, answer, *given).removeprefix(f"{name}: ")


def right(name: str, answer, *given) -> bool:
    return said(name, answer, *given).startswith("right. ")


@cache
def reading(seed: int) -> SimpleNamespace:
    """Random attention [layer, head, span] and token counts, as a Reading has them."""
    rng = np.random.default_rng(seed)
    mass = rng.dirichlet(np.full(len(SPANS), 0.4), (5, 4)).astype(np.float32)
    tokens = rng.integers(1, 40, len(SPANS))
    return SimpleNamespace(mass=mass, span_tokens=tokens)


class TestFirstLook:
    behaviour = SimpleNamespace(
        verdicts={"gold": Judgement(math.log(3), 0.8), "own": Judgement(math.log(9), 0.5)}
    )

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            (0.75, "right"),
            (math.log(3), "log-odds itself"),
            (3.0, "Those are the odds"),
            (0.25, "probability of No"),
            (0.6, "among all words"),
            (0.9, 'take the rung "gold"'),
            (75, "per cent"),
        ],
    )
    def test_probability(self, answer, words):
        assert words in said("01.probability", answer, self.behaviour)

    def test_resting_heads(self):
        both = reading(0), reading(1)
        sink = both[0].mass[..., SINK]
        assert right("01.resting", (sink > 0.5).mean(), *both)
        assert "how many heads" in said("01.resting", (sink > 0.5).sum(), *both)
        assert "mean mass" in said("01.resting", sink.mean(), *both)

    def test_the_strongest_reader(self):
        both = reading(0), reading(2)
        best, other = (np.unravel_index(r.mass[..., CONTEXT].argmax(), (5, 4)) for r in both)
        assert right("01.reader", best, *both)
        assert "when judging" in said("01.reader", other, *both)


def run(name: str, own: list[float], own_right: list[int], gold: list[float]) -> Run:
    """A study of which only verdicts on own and gold candidates are known."""
    n, dims = len(own), ("example", "rung")
    correct = np.stack([own_right, np.ones(n), np.zeros(n)], axis=1).astype(float)
    odds = np.stack([own, gold, np.full(n, -1.0)], axis=1)
    dataset = xr.Dataset(
        {
            "candidate_f1": (dims, correct),
            "candidate_em": (dims, correct),
            "candidate_given": (dims, np.ones((n, 3), dtype=bool)),
            "log_odds": (dims, odds),
        },
        coords={"example": [f"q{i}" for i in range(n)], "rung": ["own", "gold", "same_type"]},
    )
    return Run(name, dataset)


class TestTransfer:
    runs = (
        run("base", [1, -1, -1, 1], [0, 0, 0, 0], [1, 1, -1, -1]),
        run("generator", [1, 1, 1, -1], [1, 1, 0, 0], [1, 1, 1, 1]),
        run("evaluator", [1, 1, -1, -1], [1, 0, 0, 0], [-1, 1, 1, 1]),
    )

    def test_over_acceptance_is_that_of_the_labs_own_table(self):
        table = matrix(self.runs).query("scope == 'all' and metric == 'over_acceptance'")
        value = float(table.set_index("run").loc["generator", "value"])
        assert value == 0.25
        assert right("02.over_acceptance", value, self.runs)

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            (-0.25, "The sign"),
            (0.75, "share accepted"),
            # half of the answers are right, and half is also what gold minus right gives
            (0.5, "share of right answers"),
            (25, "per cent"),
        ],
    )
    def test_mistakes_about_it(self, answer, words):
        assert words in said("02.over_acceptance", answer, self.runs)

    @pytest.mark.parametrize(
        ("answer", "words"),
        [(3, "right"), (1, "cancel"), (0.75, "how many"), (2, "each version's own")],
    )  # fmt: skip
    def test_verdicts_that_changed(self, answer, words):
        assert words in said("02.changed", answer, self.runs)


class TestReading:
    both = property(lambda self: (reading(0), reading(1)))

    def test_without_the_sink(self):
        mass = reading(0).mass.astype(float)
        rest = 1 - mass[..., SINK]
        share = mass[..., CONTEXT] / rest
        assert right("03.sink", share.mean(), *self.both)
        for answer, words in (
            (mass[..., CONTEXT].mean(), "still in"),
            (mass[..., CONTEXT].mean() / rest.mean(), "ratio of two means"),
            (share.sum(), "sum over the heads"),
            (share, "A single number is asked for"),
            ((mass[..., CONTEXT + 1] / rest).mean(), f"share of the {SPANS[CONTEXT + 1]}"),
        ):
            assert words in said("03.sink", answer, *self.both)

    def test_enrichment(self):
        judging = reading(1)
        context, tokens = judging.mass[..., CONTEXT].mean(), judging.span_tokens
        share = tokens[CONTEXT] / tokens.sum()
        assert right("03.enrichment", context / share, *self.both)
        for answer, words in (
            (context, "mass itself"),
            (context / tokens[CONTEXT], "one token"),
            (share / context, "Upside down"),
            (reading(0).mass[..., CONTEXT].mean() / share, "too "),
        ):
            assert words in said("03.enrichment", answer, *self.both)

    def test_the_paired_ratio_is_that_of_the_labs_own_table(self):
        from lab.instruments.summaries.reading import ratios

        study = synthetic_study(8, layers=4, heads=3)[0]
        table = ratios(study).query(
            "numerator == 'generator' and denominator == 'evaluator' and region == 'context' "
            "and normalisation == 'raw' and aggregate == 'mean'"
        )
        assert right("03.ratio", float(table["value"].iloc[0]), study)

    @pytest.mark.parametrize(
        ("mean", "words"),
        [
            (lambda over, under: (over / under).mean(), "arithmetic mean"),
            (lambda over, under: over.mean() / under.mean(), "pairs are lost"),
            (lambda over, under: np.exp(np.log(under / over).mean()), "Upside down"),
            (lambda over, under: np.log(over / under).mean(), "mean of the logarithms"),
            (lambda over, under: over / under, "A single number is asked for"),
        ],
    )
    def test_other_means_are_told_apart(self, mean, words):
        study = synthetic_study(8, layers=4, heads=3)[0]
        share = study["mass"].sel(span="context").mean(["layer", "head"])
        over, under = (share.sel(role=role).values for role in ("generator", "evaluator"))
        assert words in said("03.ratio", mean(over, under), study)

    def test_other_roles_and_spans_are_told_apart(self):
        study = synthetic_study(8, layers=4, heads=3)[0]

        def ratio(first, span="context"):
            share = study["mass"].sel(span=span).mean(["layer", "head"])
            return float(np.exp(np.log(share.sel(role=first).values
                                       / share.sel(role="evaluator").values).mean()))  # fmt: skip

        assert "ratio of the question" in said("03.ratio", ratio("generator", "question"), study)


class TestPatching:
    patched = SimpleNamespace(
        clean=np.array([2.0, -1.0]),
        head=np.array([[[-1.0, 0.5], [2.0, -1.3]], [[2.0, 1.4], [0.2, 1.0]]]),
    )

    def test_restoration(self):
        a, b = self.patched.clean
        into_b, into_a = self.patched.head
        assert right("04.restoration", (into_b - b) / (a - b), self.patched)
        for answer, words in (
            (into_b - b, "shift in logits"),
            ((into_b - b) / (b - a), "sign of the gap"),
            ((into_b - a) / (b - a), "counts from the source"),
            ((into_a - a) / (b - a), "direction 0"),
            (into_b, "patched values"),
            (((into_b - b) / (a - b)).mean(), "An array [layer, head]"),
        ):
            assert words in said("04.restoration", answer, self.patched)

    clean = np.array([[2.0, 0.0], [1.0, 0.9], [-1.0, 1.0], [np.nan, np.nan]])
    moved = np.array([1.0, 0.5, 0.0, np.nan])

    def test_all_questions_together(self):
        gap, shift = self.clean[:3, 0] - self.clean[:3, 1], self.moved[:3] - self.clean[:3, 1]
        turned = (shift * np.sign(gap)).sum()
        given = self.clean, self.moved
        assert right("04.together", turned / np.abs(gap).sum(), *given)
        for answer, words in (
            ((shift / gap).mean(), "smallest gap weighs most"),
            ((shift / gap)[[0, 2]].mean(), "leaves the small gaps out"),
            (shift.sum() / gap.sum(), "cancel others"),
            (turned, "divide by that of the gaps"),
            (np.nan, "no finite number"),
        ):
            assert words in said("04.together", answer, *given)

    def test_without_any_question_it_says_so(self):
        assert "run more questions" in said("04.together", 1.0, self.clean[3:], self.moved[3:])

    def test_the_position_of_the_evidence(self):
        def prompt(words: tuple[str, ...], spans: tuple[str, ...]) -> Prompt:
            ends = np.cumsum([len(word) for word in words]).tolist()
            return Prompt(
                role="generator", example_id="one", text="".join(words),
                token_ids=tuple(map(hash, words)),
                offsets=tuple(zip([0, *ends[:-1]], ends, strict=True)), spans=spans,
                marks={"evidence": (words.index(" in"), words.index(" clay"))},
            )  # fmt: skip

        passage = ("Pots", " in", " clay")
        here = prompt(("<s>", *passage, ":"), ("sink", *["context"] * 3, "cue"))
        there = prompt(
            ("<s>", "Judge", " now", *passage, ":"),
            ("sink", *["instruction"] * 2, *["context"] * 3, "cue"),
        )
        given = here, there
        for answer in (4, np.int64(4), np.array(4), torch.tensor(4)):
            assert right("04.position", answer, *given)
        for answer, words in (
            (2, "its place in the answering prompt. In the judging prompt stands ' now'"),
            (3, "where the passage begins"),
            (5, "Off by one"),
            (-3, "positions count from 0"),
            (99, "nothing: it has 7 tokens"),
            ((4, 5), "several positions"),
            ("four", "A position, a whole number"),
            (4.0, "A position, a whole number"),
            (np.array([4, 5]), "A position, a whole number"),
            (torch.tensor(4.0), "A position, a whole number"),
        ):
            assert words in said("04.position", answer, *given)


class TestVerdict:
    def test_log_odds_by_hand(self):
        verdict = verdict_tokens(tiny_tokenizer())
        logits = np.random.default_rng(0).normal(0, 2, 320)
        yes, no = (logits[list(ids)] for ids in (verdict.accept, verdict.reject))
        total = np.logaddexp.reduce(logits)
        truth = np.logaddexp.reduce(yes) - np.logaddexp.reduce(no)
        p_yes, p_no = (np.exp(np.logaddexp.reduce(side) - total) for side in (yes, no))
        assert right("05.log_odds", truth, logits, verdict)
        for answer, words in (
            (-truth, "The sign"),
            (yes.max() - no.max(), "likeliest spelling"),
            (yes.mean() - no.mean(), "do not average"),
            (p_yes - p_no, "difference of probabilities"),
            (p_yes / p_no, "odds"),
            (logits, "A single number"),
        ):
            assert words in said("05.log_odds", answer, logits, verdict)


class TestYourOwn:
    broken = question(0, answers="1871")

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({}, "right"),
            ({"answers": "1871"}, "must be a list"),
            ({"answers": []}, "no answer"),
            ({"answers": ["in the year 1871"]}, "could not mark it"),
            ({"evidence": [{"passage": 0, "quote": "not there"}]}, "is not in passage 0"),
            ({"evidence": []}, 'no "evidence"'),
            ({"distractors": []}, 'no "distractors"'),
            ({"distractors": ["1871"]}, "would count as right"),
            ({"distractors": ["1700"]}, "does not stand in the passage"),
            ({"context": "Another."}, "not both"),
            ({"question": "When?"}, "question was changed"),
            ({"passages": ["The harbour of Kestrel was built in 1871."]}, "passage was changed"),
            ({"hint": "x"}, "hint"),
        ],
    )
    def test_a_mended_record(self, changes, words):
        assert words in said("06.mended", question(0, **changes), self.broken)

    def test_what_is_no_record_is_told_so(self):
        assert "A dictionary is asked for" in said("06.mended", [1], self.broken)

    def test_a_question_of_ones_own(self):
        text = "The harbour of Kestrel was built in 1871, and burned in 1902. " + "It rains. " * 12
        good = question(0, passages=[text], distractors=["1902"],
                        evidence=[{"passage": 0, "quote": "built in 1871"}])  # fmt: skip
        assert right("06.question", good)
        assert "write at least 30" in said("06.question", question(0))
        assert "gives the answer" in said("06.question", {**good, "question": "Is it 1871?"})

    def test_what_stands_inside_another_word_does_not_stand_there(self):
        text = "Ten ferries left Kestrel in the summer, and there was never a thirteenth. "
        good = question(0, passages=[text + "It rains. " * 12], answers=["Ten"],
                        question="How often did a ferry leave Kestrel?", distractors=["thirteenth"],
                        evidence=[{"passage": 0, "quote": "Ten ferries left Kestrel"}])  # fmt: skip
        assert right("06.question", good), "no ten in often"
        asked = {**good, "question": "Did ten ferries leave Kestrel?"}
        assert "gives the answer" in said("06.question", asked)
        for inside in ("eve", "thirteen"):
            assert "does not stand" in said("06.question", {**good, "distractors": [inside]})

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({}, "right"),
            ({"n": 3}, "right"),
            ({"n": 2}, "It takes 2 of the 3 questions: leave n out"),
            ({"n": 4}, "It asks for 4 questions, and there are 3: leave n out"),
            ({"patching": None}, "patching=0"),
            ({"verdict_words": None}, "usual verdict words"),
            ({"verdict_words": ("Incorrect", "Correct")}, "the other way round"),
            ({"data": ("builtin",)}, "only jsonl:"),
        ],
    )
    def test_a_recipe(self, changes, words, tmp_path):
        records = [question(number) for number in range(3)]
        source = f"jsonl:{write_questions(tmp_path / 'mine.jsonl', records)}"
        fields = {"model": "m", "data": (source,), "verdict_words": ("Correct", "Incorrect"),
                  "patching": 0, **changes}  # fmt: skip
        assert words in said("06.recipe", Recipe(**fields), source)

    def test_no_recipe(self):
        for answer, told in (({"n": 1}, "{'n': 1}"), (Prompter(tiny_tokenizer()), "a Prompter")):
            line = said("06.recipe", answer, "jsonl:mine.jsonl")
            assert "A recipe is asked for, as lab.Recipe(...) makes one" in line and told in line
        assert "A recipe is asked for" in said("06.recipe", Recipe, "jsonl:mine.jsonl")


def test_an_exercise_says_how_it_is_called():
    exercise = Exercise("09.x", "What?", ("study", "lens"), lambda *_: None, "Yes.")
    assert exercise.call() == 'lab.teach.check("09.x", answer, study, lens)'
