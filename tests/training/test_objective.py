"""What each role learns: target tokens, verdict words, and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from tiny_training import opened, recipe_of

from lab.data import Example, hard_wrongs
from lab.engine.loading import outline
from lab.errors import LabError
from lab.roles import REFUSAL, Prompter
from lab.training.bundles import Bundle, bundle
from lab.training.lessons import Lesson, lesson_bundle, plan, read_lessons
from lab.training.objective import Learner, loss, progress_of
from lab.training.recipe import TRAINED_ROLES, TrainedRole, TrainingRecipe
from lab.training.rows import Row, right_answer, rows, target_ids

Opened = tuple[Learner, Prompter, list[Example]]


@pytest.fixture(scope="module")
def tiny(model: Path, questions: Path) -> Opened:
    return opened(recipe_of(model, questions))


def taught(prompter: Prompter, examples: list[Example], role: TrainedRole) -> Bundle:
    """One bundle of two questions on the same passage."""
    pair = [e for e in examples if e.id in ("q0", "light0")]
    lessons = [Lesson(e, tuple(hard_wrongs(e, pair))[:2]) for e in pair]
    assert all(lesson.wrong for lesson in lessons)
    return lesson_bundle(lessons, prompter, role)


class _Fixed:
    """A learner whose logits at every token of a bundle are given, to be changed at will."""

    def __init__(self, learner: Learner, logits: torch.Tensor) -> None:
        self.verdict = learner.verdict
        self.everywhere = logits

    def logits(self, made: Bundle) -> list[torch.Tensor]:
        return [self.everywhere[list(places)] for places in made.places]


def fixed(learner: Learner, size: int, vocabulary: int) -> Learner:
    torch.manual_seed(0)
    logits = torch.randn(size, vocabulary, requires_grad=True)
    return cast("Learner", _Fixed(learner, logits))


def gradient(learner: Learner, made: Bundle, role: TrainedRole) -> torch.Tensor:
    everywhere = cast("Any", learner).everywhere
    (found,) = torch.autograd.grad(loss(learner, made, role), everywhere)
    return cast("torch.Tensor", found)


def test_a_target_is_the_text_and_the_end_of_the_turn_after_the_very_prompt(tiny: Opened) -> None:
    _, prompter, examples = tiny
    prompt = prompter.render(examples[0], "generator")
    ids = target_ids(prompter, prompt, "1871")
    assert prompter.tokenizer.decode(ids) == "1871<|im_end|>"
    assert ids[-1] == prompter.tokenizer.eos_token_id


def test_in_plain_text_a_target_begins_with_a_space(model: Path, questions: Path) -> None:
    recipe = recipe_of(model, questions, format="plain")
    prompter = Prompter(outline(recipe.model).tokenizer, format="plain")
    _, _, examples = opened(recipe)
    prompt = prompter.render(examples[0], "generator")
    assert prompter.tokenizer.decode(target_ids(prompter, prompt, "1871")) == " 1871<|im_end|>"


def test_a_tokenizer_without_an_end_of_turn_is_refused(tiny: Opened, model: Path) -> None:
    _, _, examples = tiny
    tokenizer = outline(str(model)).tokenizer
    tokenizer.eos_token = None
    prompter = Prompter(tokenizer)
    with pytest.raises(LabError, match="no token that ends a turn"):
        target_ids(prompter, prompter.render(examples[0], "generator"), "1871")


def test_roles_learn_answers_verdicts_or_both(tiny: Opened) -> None:
    _, prompter, examples = tiny
    kinds = {
        role: [row.kind for row in taught(prompter, examples, role).rows] for role in TRAINED_ROLES
    }
    assert kinds["generator"] == ["answer"] * 2
    assert kinds["evaluator"] == kinds["verdict-only"] == ["verdict"] * 6
    assert sorted(kinds["both"]) == ["answer"] * 2 + ["verdict"] * 6


def test_verdicts_follow_the_candidate_and_the_chosen_words(tiny: Opened, model: Path) -> None:
    _, _, examples = tiny
    prompter = Prompter(outline(str(model)).tokenizer, verdict_words=("True", "False"))
    found = rows(prompter, examples[0], "evaluator", "1871", ["1811", REFUSAL])
    said = [(row.accept, prompter.tokenizer.decode(row.target[:-1])) for row in found]
    assert said == [(True, "True"), (False, "False"), (False, "False")]
    for row, text in zip(found, ("1871", "1811", REFUSAL), strict=True):
        assert row.prompt == prompter.render(examples[0], "evaluator", text).token_ids


def test_what_no_passage_answers_is_taught_as_the_refusal(tiny: Opened) -> None:
    _, _, examples = tiny
    assert right_answer(replace(examples[0], answers=())) == REFUSAL
    assert right_answer(replace(examples[0], answers=(("the year 1871",), ("1871",)))) == "1871"


@pytest.mark.parametrize("role", TRAINED_ROLES)
def test_nothing_but_predicting_places_is_learned(tiny: Opened, role: TrainedRole) -> None:
    learner, prompter, examples = tiny
    made = taught(prompter, examples, role)
    found = gradient(fixed(learner, len(made), 320), made, role)
    learned = set(found.abs().sum(-1).nonzero().flatten().tolist())
    predicting = {place for places in made.places for place in places}
    firsts = {places[0] for places in made.places}
    assert learned == (firsts if role == "verdict-only" else predicting)
    assert len(learned) < len(made) / 4


def test_the_whole_model_learns_from_predicting_places_only(tiny: Opened) -> None:
    """The same through the model: the gradient of its hidden states before the unembedding."""
    learner, prompter, examples = tiny
    made = taught(prompter, examples, "both")
    kept: list[torch.Tensor] = []

    def keep(_: object, __: object, output: Any) -> None:
        output.last_hidden_state.retain_grad()
        kept.append(output.last_hidden_state)

    handle = learner.model.get_base_model().base_model.register_forward_hook(keep)
    try:
        loss(learner, made, "both").backward()  # type: ignore[no-untyped-call]
    finally:
        handle.remove()
    (hidden,) = kept
    assert hidden.grad is not None
    learned = hidden.grad[0].abs().sum(-1).nonzero().flatten().tolist()
    assert learned == sorted({place for places in made.places for place in places})


def test_verdict_only_trains_the_choice_between_the_words_alone(tiny: Opened) -> None:
    learner, prompter, examples = tiny
    made = taught(prompter, examples, "verdict-only")
    before = fixed(learner, len(made), 320)
    words = [*learner.verdict.accept, *learner.verdict.reject]
    others = [i for i in range(320) if i not in words]
    assert gradient(before, made, "verdict-only")[:, others].abs().max() == 0
    changed = fixed(learner, len(made), 320)
    with torch.no_grad():
        cast("Any", changed).everywhere[:, others] += 3 * torch.randn(len(others))
        cast("Any", changed).everywhere[:, words] += 7  # as likely as they may be: odds stay
    values = [
        [loss(it, made, role).item() for it in (before, changed)]
        for role in ("verdict-only", "evaluator")
    ]
    assert values[0][0] == pytest.approx(values[0][1], abs=1e-5)
    assert abs(values[1][0] - values[1][1]) > 0.1


@pytest.mark.parametrize("role", ["evaluator", "verdict-only", "both"])
def test_right_and_wrong_candidates_weigh_the_same(tiny: Opened, role: TrainedRole) -> None:
    """With logits that know nothing, acceptance is pulled at as much as rejection."""
    learner, prompter, examples = tiny
    made = taught(prompter, examples, role)
    even = fixed(learner, len(made), 320)
    with torch.no_grad():
        everywhere = cast("Any", even).everywhere.zero_()
        if role == "verdict-only":  # each word has several tokens; both words are equally likely
            for side in (learner.verdict.accept, learner.verdict.reject):
                everywhere[:, list(side)] = -math.log(len(side))
    found = gradient(even, made, role)
    firsts = {True: set[int](), False: set[int]()}
    for row, places in zip(made.rows, made.places, strict=True):
        if row.kind == "verdict":
            firsts[row.accept].add(places[0])
    pulls = [float(found[sorted(places)].abs().sum()) for places in firsts.values()]
    assert len(firsts[False]) == 2 * len(firsts[True])
    assert pulls[0] == pytest.approx(pulls[1], rel=1e-4)


def test_the_loss_is_the_mean_over_answer_tokens_plus_the_mean_over_candidates(
    tiny: Opened,
) -> None:
    learner, prompter, examples = tiny
    made = taught(prompter, examples, "both")
    with torch.no_grad():
        logits = learner.logits(made)
        each = [
            torch.nn.functional.cross_entropy(found, torch.tensor(row.target), reduction="none")
            for row, found in zip(made.rows, logits, strict=True)
        ]
        answers = torch.cat([e for r, e in zip(made.rows, each, strict=True) if r.kind == "answer"])
        judged = [
            (row.accept, float(e.mean()))
            for row, e in zip(made.rows, each, strict=True)
            if row.kind == "verdict"
        ]
        total = loss(learner, made, "both").item()
    right = [value for accept, value in judged if accept]
    wrong = [value for accept, value in judged if not accept]
    verdicts = (sum(right) / len(right) + sum(wrong) / len(wrong)) / 2
    assert total == pytest.approx(float(answers.mean()) + verdicts, abs=1e-5)


def test_all_roles_see_equal_questions_in_equal_order(model: Path, questions: Path) -> None:
    plans = []
    for role in TRAINED_ROLES:
        recipe = recipe_of(model, questions, role)
        planned = plan(read_lessons(recipe).train, recipe)
        plans.append([[(x.example.id, x.wrong) for x in part] for part in planned])
    assert all(found == plans[0] for found in plans)
    other = recipe_of(model, questions, seed=1)
    moved = plan(read_lessons(other).train, other)
    assert [[x.example.id for x in part] for part in moved] != [
        [name for name, _ in part] for part in plans[0]
    ]


def test_every_question_is_seen_once_an_epoch_with_others_on_its_passage(
    model: Path, questions: Path
) -> None:
    recipe = recipe_of(model, questions, epochs=2, dev_questions=0)
    lessons = read_lessons(recipe)
    planned = plan(lessons.train, recipe)
    seen = [lesson.example.id for part in planned for lesson in part]
    half = len(seen) // 2
    assert sorted(seen[:half]) == sorted(seen[half:]) == sorted(set(seen))
    assert seen[:half] != seen[half:]
    assert all(len({lesson.example.cluster for lesson in part}) == 1 for part in planned)
    assert max(map(len, planned)) == 2


class TestLearningCurves:
    """A point of the curves, from logits made by hand."""

    def point(self, tiny: Opened, odds: list[tuple[bool, float]]) -> dict[str, Any]:
        learner, _, _ = tiny
        made = bundle([Row("verdict", (5, 6, 7 + i), (8,), a) for i, (a, _) in enumerate(odds)])
        hand = fixed(learner, len(made), 320)
        accept = list(learner.verdict.accept)
        with torch.no_grad():
            everywhere = cast("Any", hand).everywhere
            everywhere.zero_()
            for places, (_, value) in zip(made.places, odds, strict=True):
                everywhere[places[0], accept] = value
        return progress_of(hand, [made])

    def test_only_the_hardest_wrong_candidate_counts(self, tiny: Opened) -> None:
        judged = [(True, 2.0), (False, 1.0), (False, 50.0), (True, -9.0), (False, 3.0)]
        found = self.point(tiny, judged)
        assert found["right_above_wrong"] == 0.5
        assert found["auroc"] == 0.25  # of 2, -9 against 1, 3: one pair of four
        assert found["accepted_right"] == 0.5
        assert found["accepted_wrong"] == 1.0

    def test_ties_count_half(self, tiny: Opened) -> None:
        assert self.point(tiny, [(True, 1.0), (False, 1.0)])["right_above_wrong"] == 0.5

    def test_what_cannot_be_told_is_none(self, tiny: Opened) -> None:
        found = progress_of(tiny[0], [])
        assert found["questions"] == 0
        assert {v for k, v in found.items() if k != "questions"} == {None}

    def test_answers_are_right_where_the_greedy_ones_are_to_the_letter(self, tiny: Opened) -> None:
        learner, prompter, examples = tiny
        made = taught(prompter, examples, "generator")
        hand = fixed(learner, len(made), 320)
        with torch.no_grad():
            for places, token in zip(made.places[0], made.rows[0].target, strict=True):
                cast("Any", hand).everywhere[places, token] = 50
        found = progress_of(hand, [made])
        assert (found["questions"], found["answers_exact"]) == (2, 0.5)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"role": "judge"}, "role is 'judge': it must be one of generator, evaluator"),
        ({"data": ()}, r"at least one source of examples \(--data\)"),
        ({"rank": 0}, "rank is 0: it must be at least 1"),
        ({"n": 0}, "n is 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"precision": "int8"}, "precision is 'int8'"),
        ({"verdict_words": ("Yes", "yes ")}, "two different words"),
        ({"verdict_words": ("Yes",)}, "two different words"),
    ],
)
def test_a_recipe_that_cannot_be_run_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(LabError, match=told):
        TrainingRecipe(**{"role": "both", "data": ("builtin",), **changes})


def test_a_recipe_comes_back_from_its_data_and_its_command_names_what_is_unusual() -> None:
    recipe = TrainingRecipe("both", ("builtin", "a b.jsonl"), seed=2, verdict_words=("True", "No"))
    assert TrainingRecipe.from_dict(recipe.as_dict()) == recipe
    assert recipe.command("out") == (
        "lab train-adapter --role both --data builtin --data 'a b.jsonl' --seed 2 "
        "--verdict-words True,No --out out"
    )
    with pytest.raises(LabError, match="no training recipe that this version knows"):
        TrainingRecipe.from_dict({**recipe.as_dict(), "colour": 1})


def test_a_stored_recipe_that_is_older_than_a_field_has_its_usual_value() -> None:
    recipe = TrainingRecipe("both", ("builtin",))
    older = {k: v for k, v in recipe.as_dict().items() if k not in ("precision", "verdict_words")}
    assert recipe.differences(older) == []
    assert recipe.differences({**older, "seed": 4}) == ["seed was 4, now 0"]
