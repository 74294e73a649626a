"""Lessons: what is held out, what is wrong, and what is left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tiny_folders import PLACES, question, write_questions
from tiny_training import prompter_of, recipe_of

from lab.data import Example, is_wrong, load_examples
from lab.engine.loading import outline
from lab.errors import LabError
from lab.roles import REFUSAL
from lab.training.closed_book import closed_book_answers
from lab.training.lessons import (
    Lesson,
    Lessons,
    fit,
    lesson_bundle,
    read_lessons,
    without_folders,
)
from lab.training.recipe import TrainingRecipe

Records = list[dict[str, Any]]
Make = Callable[..., TrainingRecipe]


@pytest.fixture
def recipe(model: Path, tmp_path: Path) -> Make:
    """A recipe on given records."""

    def make(records: Records, **changes: Any) -> TrainingRecipe:
        return recipe_of(model, write_questions(tmp_path / "q.jsonl", records), **changes)

    return make


def harbours(count: int, each: int = 2) -> Records:
    """Questions on so many passages, several on each."""
    found = []
    for i in range(count):
        year = 1811 + i
        found.append(question(i))
        for k in range(1, each):
            found.append(
                question(i, id=f"q{i}-{k}", question=f"Which fire was number {k}?",
                         answers=[str(year)], distractors=[], evidence=[])
            )  # fmt: skip
    return found


def two_hops(*numbers: int) -> dict[str, Any]:
    """A question that needs the passages of several harbours."""
    each = [question(number) for number in numbers]
    return question(
        numbers[0],
        id=f"q{'-'.join(map(str, numbers))}",
        passages=[record["passages"][0] for record in each],
        evidence=[{**record["evidence"][0], "passage": i} for i, record in enumerate(each)],
    )


def evidence(groups: Sequence[Sequence[Lesson]]) -> set[str]:
    """The passages that hold evidence."""
    examples = [lesson.example for group in groups for lesson in group]
    return {e.passages[mark.passage].text for e in examples for mark in e.evidence}


def all_of(lessons: Lessons) -> list[Lesson]:
    return [lesson for part in (lessons.train, lessons.dev) for group in part for lesson in group]


def clusters(groups: Sequence[Sequence[Lesson]]) -> set[str]:
    return {lesson.example.cluster for group in groups for lesson in group}


class TestHeldOut:
    def test_no_passage_is_trained_on_and_held_out(self, recipe: Make) -> None:
        lessons = read_lessons(recipe(harbours(60), dev_questions=40))
        assert clusters(lessons.train).isdisjoint(clusters(lessons.dev))
        assert 20 <= sum(map(len, lessons.dev)) <= 60
        assert len(all_of(lessons)) == 120
        assert all(len(clusters([group])) == 1 for group in lessons.train)

    def test_nor_where_two_sources_hold_it(self, model: Path, tmp_path: Path) -> None:
        records = harbours(40)
        files = [write_questions(tmp_path / f"{name}.jsonl", records[half::2])
                 for name, half in (("a", 0), ("b", 1))]  # fmt: skip
        recipe = TrainingRecipe(
            "both", tuple(f"jsonl:{file}" for file in files), str(model), dev_questions=30
        )
        lessons = read_lessons(recipe)
        assert clusters(lessons.dev)
        assert clusters(lessons.train).isdisjoint(clusters(lessons.dev))

    def test_nor_where_questions_share_only_a_part_of_their_evidence(
        self, model: Path, tmp_path: Path
    ) -> None:
        """In a chain: 0 and 1, 1 and 2, then 3 and 4, ...; of two sources."""
        records = [two_hops(i, i + 1) for i in range(90) if i % 3 < 2]
        files = [write_questions(tmp_path / f"{name}.jsonl", records[half::2])
                 for name, half in (("a", 0), ("b", 1))]  # fmt: skip
        specs = tuple(f"jsonl:{file}" for file in files)
        lessons = read_lessons(TrainingRecipe("both", specs, str(model), dev_questions=20))
        train, dev = evidence(lessons.train), evidence(lessons.dev)
        assert train and dev
        assert train.isdisjoint(dev)
        assert all(len(clusters([group])) == 1 for group in lessons.train)

    def test_distracting_passages_do_not_bind_questions_together(self, recipe: Make) -> None:
        noise = {"title": "Noise", "text": "Nothing is known of the river Orn."}
        records = [question(i, cluster=f"c{i}") for i in range(60)]
        records = [{**record, "passages": [*record["passages"], noise]} for record in records]
        lessons = read_lessons(recipe(records, dev_questions=20))
        assert 8 <= sum(map(len, lessons.dev)) <= 32

    def test_which_are_held_out_does_not_depend_on_the_role_or_seed(self, recipe: Make) -> None:
        held = {
            frozenset(clusters(read_lessons(recipe(harbours(20), role=role, seed=seed)).dev))
            for role in ("generator", "evaluator")
            for seed in (0, 1)
        }
        assert len(held) == 1

    def test_nor_on_the_folder_of_the_file(self, model: Path, tmp_path: Path) -> None:
        held = []
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
            file = write_questions(tmp_path / name / "q.jsonl", harbours(30))
            held.append(clusters(read_lessons(recipe_of(model, file, dev_questions=20)).dev))
        assert held[0] == held[1] != set()

    def test_none_need_be(self, recipe: Make) -> None:
        assert read_lessons(recipe(harbours(5), dev_questions=0)).dev == ()

    def test_not_all_can_be(self, recipe: Make) -> None:
        with pytest.raises(LabError, match=r"All 4 questions are held out .* fewer dev_q"):
            read_lessons(recipe(harbours(2), dev_questions=500))


class TestUnanswerable:
    def records(self) -> Records:
        return [question(i, **({"answers": []} if i % 2 else {})) for i in range(40)]

    @pytest.mark.parametrize("most", [0.0, 0.2, 0.4])
    def test_as_many_are_kept_as_the_share_allows(self, recipe: Make, most: float) -> None:
        made = recipe(self.records(), unanswerable=most, dev_questions=0)
        found = [lesson.example.answerable for lesson in all_of(read_lessons(made))]
        assert found.count(True) == 20
        assert found.count(False) / len(found) <= most
        assert (found.count(False) + 1) / (len(found) + 1) > most

    @pytest.mark.parametrize("most", [0.5, 0.9, 1.0])
    def test_all_are_where_they_are_no_more_than_allowed(self, recipe: Make, most: float) -> None:
        made = recipe(self.records(), unanswerable=most, dev_questions=0)
        assert len(all_of(read_lessons(made))) == 40

    def test_their_wrong_candidates_are_plausible_answers(self, recipe: Make) -> None:
        made = recipe(self.records(), unanswerable=1.0, dev_questions=0)
        without = [x for x in all_of(read_lessons(made)) if not x.example.answerable]
        assert all(lesson.wrong and REFUSAL not in lesson.wrong for lesson in without)


class TestWrongCandidates:
    def test_they_are_wrong_differ_and_are_as_many_as_asked_for(self, recipe: Make) -> None:
        lessons = all_of(read_lessons(recipe(harbours(30), wrong_per_question=2)))
        for lesson in lessons:
            assert 1 <= len(lesson.wrong) <= 2
            assert len({text.casefold() for text in lesson.wrong}) == len(lesson.wrong)
            for text in lesson.wrong:
                assert text == REFUSAL or is_wrong(lesson.example, text)

    def test_the_first_is_the_hardest(self, recipe: Make) -> None:
        for lesson in all_of(read_lessons(recipe([question(i) for i in range(20)]))):
            assert lesson.wrong[0] == lesson.example.distractors[0]

    def test_refusing_an_answerable_question_is_wrong_now_and_then(self, recipe: Make) -> None:
        lessons = all_of(read_lessons(recipe(harbours(60))))
        share = sum(REFUSAL in lesson.wrong for lesson in lessons) / len(lessons)
        assert 0.1 < share < 0.3

    def test_answers_without_the_passage_are_asked_for_a_quarter(self, recipe: Make) -> None:
        asked: list[str] = []

        def answers(examples: Sequence[Example]) -> Sequence[str]:
            asked.extend(example.id for example in examples)
            return ["Year of the Lord 1500" for _ in examples]

        lessons = all_of(read_lessons(recipe(harbours(60)), answers))
        assert 0.15 < len(asked) / len(lessons) < 0.35
        shown = {x.example.id for x in lessons if "Year of the Lord 1500" in x.wrong}
        assert shown == set(asked)

    def test_they_are_of_the_question_itself_where_two_sources_share_ids(
        self, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("lab.training.lessons.CLOSED_BOOK_SHARE", 1.0)
        specs = []
        for name, first in (("a.jsonl", 0), ("b.jsonl", 4)):
            records = [question(first + i, id=f"q{i}") for i in range(4)]
            specs.append(f"jsonl:{write_questions(tmp_path / name, records)}")
        recipe = TrainingRecipe("both", tuple(specs), str(model), dev_questions=0)
        lessons = all_of(read_lessons(recipe, lambda asked: [f"To: {e.question}" for e in asked]))
        assert len(lessons) == 8
        for lesson in lessons:
            guesses = [text for text in lesson.wrong if text.startswith("To: ")]
            assert guesses == [f"To: {lesson.example.question}"]

    @pytest.mark.parametrize("guess", ["{gold}", "In {gold}.", "word " * 13, ""])
    def test_they_are_not_shown_if_right_or_long_or_empty(self, recipe: Make, guess: str) -> None:
        def answers(examples: Sequence[Example]) -> Sequence[str]:
            return [guess.format(gold=e.gold) for e in examples]

        made = recipe([question(i) for i in range(40)])
        with_them, without = read_lessons(made, answers), read_lessons(made)
        assert [x.wrong for x in all_of(with_them)] == [x.wrong for x in all_of(without)]

    def test_another_seed_draws_others(self, recipe: Make) -> None:
        one, other = (
            read_lessons(recipe(harbours(20, each=6), seed=seed, wrong_per_question=3))
            for seed in (0, 1)
        )
        assert one.fingerprint != other.fingerprint
        assert (
            one.fingerprint
            == read_lessons(recipe(harbours(20, each=6), wrong_per_question=3)).fingerprint
        )


class TestClosedBook:
    def test_answers_are_given_once_and_do_not_see_the_passage(
        self, recipe: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        records = [question(0), question(8)]
        made = recipe(records, dev_questions=0)  # the same harbour, built in another year
        model = outline(made.model)
        examples = [lesson.example for lesson in all_of(read_lessons(made))]
        prompter = prompter_of(made, model)
        answers = closed_book_answers(model, prompter, examples)
        assert len(answers) == 2
        assert PLACES[0] in examples[0].question
        assert answers[0] == answers[1]  # asked alike, without what tells them apart

        def unwanted(*_: object, **__: object) -> None:
            raise AssertionError("the model was loaded")

        monkeypatch.setattr("lab.engine.loading.open_model", unwanted)
        assert closed_book_answers(model, prompter, examples) == answers
        assert closed_book_answers(model, prompter, []) == ()

    def test_two_sources_with_the_same_ids_get_answers_of_their_own(
        self, recipe: Make, tmp_path: Path
    ) -> None:
        made = recipe([question(0)])
        files = [write_questions(tmp_path / f"{i}.jsonl", [question(i, id="q0")]) for i in range(3)]
        examples = [load_examples(f"jsonl:{file}")[0] for file in files]
        model = outline(made.model)
        prompter = prompter_of(made, model)
        together = closed_book_answers(model, prompter, examples)
        assert len(set(together)) == 3
        assert closed_book_answers(model, prompter, examples) == together
        assert closed_book_answers(model, prompter, examples[::-1]) == together[::-1]

    def test_a_damaged_file_of_them_is_made_anew(self, recipe: Make, tmp_path: Path) -> None:
        made = recipe([question(0)], dev_questions=0)
        model = outline(made.model)
        examples = [lesson.example for lesson in all_of(read_lessons(made))]
        answers = closed_book_answers(model, prompter_of(made, model), examples)
        [file] = (tmp_path / "cache" / "closed-book").iterdir()
        file.write_text('{"q0": ')
        assert closed_book_answers(model, prompter_of(made, model), examples) == answers


class TestFit:
    def test_what_is_too_long_is_left_out_with_a_note(self, recipe: Make) -> None:
        long = question(1, id="long", question="Why " * 900)
        made = recipe([question(0), long], dev_questions=0)
        prompter = prompter_of(made, outline(made.model))
        found = fit(read_lessons(made), made, prompter, 2048)
        assert [lesson.example.id for lesson in all_of(found)] == ["q0"]
        assert found.notes == ("1 questions of more than 700 tokens were left out.",)

    def test_the_model_s_window_counts_too(self, recipe: Make) -> None:
        made = recipe([question(0), question(1, id="long", question="Why " * 70)], dev_questions=0)
        prompter = prompter_of(made, outline(made.model))
        lessons = read_lessons(made)
        kept = [len(all_of(fit(lessons, made, prompter, window))) for window in (2048, 512)]
        assert kept == [2, 1]
        longest = max(
            len(row.fed)
            for lesson in all_of(fit(lessons, made, prompter, 512))
            for row in lesson_bundle([lesson], prompter, "both").rows
        )
        assert longest <= 512

    def test_nothing_left_is_told(self, recipe: Make) -> None:
        made = recipe([question(0)], max_tokens=64, dev_questions=0)
        prompter = prompter_of(made, outline(made.model))
        with pytest.raises(LabError, match="No question fits 32 tokens"):
            fit(read_lessons(made), made, prompter, 2048)


def test_what_a_reader_skipped_and_used_is_told(recipe: Make) -> None:
    records = [question(i, meta={"title": f"Harbour {i % 2}"}) for i in range(6)]
    made = recipe(records, dev_questions=0)
    [(spec, used)] = read_lessons(made).sources.items()
    assert spec == made.data[0]
    assert used == {"questions": 6, "articles": ["Harbour 0", "Harbour 1"]}


@pytest.mark.parametrize(
    ("spec", "short"),
    [
        ("squad2:/home/me/dev-v2.0.json#Huguenot,AC/DC", "squad2:dev-v2.0.json#Huguenot,AC/DC"),
        ("squad2:dev-v2.0.json#Huguenot", "squad2:dev-v2.0.json#Huguenot"),
        ("jsonl:../mine.jsonl", "jsonl:mine.jsonl"),
        ("world:train/0/800", "world:train/0/800"),
        ("squad2:hub/owner/name", "squad2:hub/owner/name"),
        ("builtin", "builtin"),
    ],
)
def test_a_source_is_called_by_its_file_s_name(spec: str, short: str) -> None:
    assert without_folders(spec) == short
