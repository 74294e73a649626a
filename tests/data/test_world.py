"""The invented world: what its examples promise, and that its two splits share nothing."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from statistics import median

import pytest

from lab.data import Example, is_wrong, licence, load_examples, make_examples, write_jsonl
from lab.data.text import is_closed, occurrences
from lab.data.world import Split
from lab.data.world.facts import Phrase, of_split, pool_of_split
from lab.data.world.kinds import DOMAINS, kinds
from lab.data.world.names import MONTHS, in_split
from lab.data.world.wordings import rows
from lab.data.world.words import number_words
from lab.errors import LabError

METRICS = {
    "extract": "squad", "arithmetic": "drop", "bridge": "hotpotqa", "chain": "musique",
}  # fmt: skip
SPLITS: tuple[Split, Split] = ("train", "test")


@pytest.fixture(scope="module")
def train() -> list[Example]:
    return make_examples(3000, seed=7)


@pytest.fixture(scope="module")
def both(train: list[Example]) -> list[Example]:
    return [*train, *make_examples(1000, seed=7, split="test")]


def text(example: Example) -> str:
    return " ".join(f"{passage.title} {passage.text}" for passage in example.passages)


def names(examples: list[Example]) -> set[str]:
    """Words with a capital that is not due to the beginning of a sentence."""
    found = re.findall(r"(?<=[a-z,] )[A-Z]\w+", " ".join({text(item) for item in examples}))
    return set(found)


class TestMaking:
    def test_is_the_same_for_the_same_arguments_and_another_for_others(self) -> None:
        first = make_examples(40, seed=3)
        assert first == make_examples(40, seed=3)
        assert first[:25] == make_examples(25, seed=3)
        assert {item.question for item in first}.isdisjoint(
            item.question for item in make_examples(40, seed=4)
        )

    def test_ids_tell_split_seed_world_and_question(self) -> None:
        assert make_examples(1, seed=4, split="test")[0].id == "world-test-4-00000-0"

    @pytest.mark.parametrize("n", [1, 6, 101])
    def test_gives_exactly_as_many_as_asked_for(self, n: int) -> None:
        assert len({item.id for item in make_examples(n, split="test")}) == n

    def test_refuses_what_it_cannot_make(self) -> None:
        with pytest.raises(LabError, match="at least 1, not 0"):
            make_examples(0)
        with pytest.raises(LabError, match="no split 'dev'; use train or test"):
            make_examples(1, split="dev")  # type: ignore[arg-type]


class TestShares:
    def test_of_families_and_of_unanswered_questions(self, train: list[Example]) -> None:
        share = {name: n / len(train) for name, n in Counter(e.family for e in train).items()}
        wanted = {"extract": 0.40, "arithmetic": 0.25, "bridge": 0.20, "chain": 0.15}
        assert share == pytest.approx(wanted, abs=0.04)
        unanswered = [item for item in train if not item.answerable]
        assert len(unanswered) / len(train) == pytest.approx(0.15, abs=0.03)
        assert {item.family for item in unanswered} == {"extract", "bridge", "chain"}

    def test_every_domain_and_every_relation_is_asked_about(self, train: list[Example]) -> None:
        assert {item.meta["domain"] for item in train} == set(DOMAINS)
        relations = {r.name for kind in kinds().values() for r in kind.relations}
        assert len(relations) > 100
        assert relations - {item.meta["relation"] for item in train} == set()

    def test_passages_are_short_and_of_many_lengths(self, both: list[Example]) -> None:
        worlds = {item.cluster: item for item in both}.values()
        sizes = [sum(len(p.text.split()) for p in item.passages) for item in worlds]
        assert min(sizes) >= 40
        assert max(sizes) <= 400
        assert 110 <= median(sizes) <= 170
        assert {len(item.passages) for item in worlds} == {1, 2, 3, 4, 5}
        for item in worlds:
            assert all(bool(p.title) == (len(item.passages) > 1) for p in item.passages)

    def test_a_world_is_asked_three_to_seven_questions(self, train: list[Example]) -> None:
        asked = Counter(item.cluster for item in train)
        del asked[train[-1].cluster]
        assert set(asked.values()) == {3, 4, 5, 6, 7}

    def test_yes_and_no_are_about_equally_frequent(self, both: list[Example]) -> None:
        told = Counter(item.gold for item in both if is_closed(item.gold))
        assert told["yes"] / told.total() == pytest.approx(0.5, abs=0.1)


class TestAnswers:
    def test_metric_goes_with_the_family(self, both: list[Example]) -> None:
        assert {(item.family, item.metric) for item in both} == set(METRICS.items())

    def test_answers_stand_in_the_evidence_unless_computed(self, both: list[Example]) -> None:
        for item in both:
            if not item.answerable:
                assert (item.evidence, item.answer_marks) == ((), ())
                continue
            assert item.evidence
            golds = {span.casefold() for spans in item.answers for span in spans}
            for mark in item.answer_marks:
                assert item.marked(mark).casefold() in golds
                assert any(
                    e.passage == mark.passage and e.start <= mark.start and mark.end <= e.end
                    for e in item.evidence
                )
            if item.meta.get("operation") in {None, "compare", "list"}:
                assert bool(item.answer_marks) != is_closed(item.gold), item.id

    def test_evidence_is_whole_sentences(self, both: list[Example]) -> None:
        for item in both:
            for mark in item.evidence:
                quote = item.marked(mark)
                assert quote[-1] == "."
                assert not quote[0].islower()

    def test_steps_have_evidence_for_each(self, both: list[Example]) -> None:
        for item in both:
            if item.family == "chain" and item.answerable:
                assert 1 <= len(item.evidence) <= 3
                assert item.meta["hops"] == "3"

    def test_distractors_are_wrong_and_differ(self, both: list[Example]) -> None:
        for item in both:
            least = 1 if is_closed(item.gold) else 2
            assert least <= len(item.distractors) <= 5
            assert len(set(item.distractors)) == len(item.distractors)
            assert all(is_wrong(item, wrong) for wrong in item.distractors)

    def test_distractors_that_are_not_computed_stand_in_the_passages(
        self, both: list[Example]
    ) -> None:
        for item in both:
            if item.meta.get("operation") or is_closed(item.gold):
                continue
            for wrong in item.distractors:
                assert occurrences(text(item), wrong), (item.id, wrong)

    def test_unanswered_questions_are_worded_like_the_others(self, both: list[Example]) -> None:
        """The opening words of most of them also open questions that are answered."""

        def opening(item: Example) -> tuple[str, ...]:
            return tuple(item.question.split()[:2])

        known = {opening(item) for item in both if item.answerable}
        unanswered = [item for item in both if not item.answerable]
        assert sum(opening(item) in known for item in unanswered) > 0.97 * len(unanswered)


class TestOneRightAnswer:
    def test_a_question_has_one_answer_in_its_world(self, both: list[Example]) -> None:
        answers: dict[tuple[str, str], set[object]] = defaultdict(set)
        for item in both:
            answers[item.cluster, item.question].add(item.answers)
        assert all(len(found) == 1 for found in answers.values())

    def test_who_has_a_value_is_asked_only_if_one_has_it(self, both: list[Example]) -> None:
        """The value in such a question is told once: in the sentence that is the evidence."""
        asked = [item for item in both if item.meta.get("asked") == "subject"]
        assert len(asked) > 50
        assert all(len(item.evidence) == 1 for item in asked)

    def test_sums_and_differences_are_those_of_numbers_in_the_evidence(
        self, both: list[Example]
    ) -> None:
        checked = 0
        for item in both:
            told = " ".join(map(item.marked, item.evidence))
            numbers = [int(n.replace(",", "")) for n in re.findall(r"\d+(?:,\d{3})*", told)]
            operation = item.meta.get("operation")
            if operation not in {"add", "subtract"} or _SPELLED.search(told):
                continue
            pairs = list(combinations(numbers, 2))
            sums = (
                {a + b for a, b in pairs} if operation == "add" else {abs(a - b) for a, b in pairs}
            )
            assert int(item.gold.replace(",", "")) in sums, item.id
            checked += 1
        assert checked > 100


_SPELLED = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty)\b", re.I
)


class TestSplits:
    def test_names_of_one_never_occur_in_the_other(self, both: list[Example]) -> None:
        train_names = names([item for item in both if "-train-" in item.id])
        test_names = names([item for item in both if "-test-" in item.id])
        shared = train_names & test_names
        invented = {name for name in shared if not _is_plain(name)}
        assert not invented

    def test_each_wording_belongs_to_one(self) -> None:
        parts = {split: {t.casefold() for row in rows() for t in of_split(row, split)}
                 for split in SPLITS}  # fmt: skip
        assert not parts["train"] & parts["test"]
        assert 0.6 < len(parts["train"]) / sum(map(len, parts.values())) < 0.8

    def test_each_phrase_belongs_to_one(self) -> None:
        for kind in kinds().values():
            for relation in kind.relations:
                if isinstance(relation.value, Phrase) and not relation.value.common:
                    pools = [set(pool_of_split(relation.value.pool, s)) for s in SPLITS]
                    assert min(map(len, pools)) >= 3, relation.name
                    assert not pools[0] & pools[1]

    def test_both_can_tell_and_ask_everything(self) -> None:
        for kind in kinds().values():
            for relation in kind.relations:
                for split in SPLITS:
                    assert of_split(relation.tells, split), relation.name
                    assert of_split(relation.asks, split), relation.name

    def test_there_is_variety_in_every_relation(self) -> None:
        relations = [r for kind in kinds().values() for r in kind.relations]
        ways = [len(r.tells) + len(r.says) + len(r.tags) for r in relations]
        assert min(ways) >= 5
        assert min(len(r.asks) for r in relations) >= 3

    def test_a_name_is_put_into_a_split_by_its_letters(self) -> None:
        assert {in_split(name, "train") for name in ("Anna", "Bert", "Cato", "Dora")} == {
            True,
            False,
        }
        assert in_split("Anna", "train") != in_split("Anna", "test")


def _is_plain(name: str) -> bool:
    """Whether a capitalised word is no invented name: of the tables, a month, a known word."""
    return name.casefold() in _plain_words()


def _plain_words() -> set[str]:
    folder = files("lab.data.world.tables")
    tables = " ".join(t.read_text("utf-8") for t in folder.iterdir() if t.name.endswith(".toml"))
    plain = f"{tables} {' '.join(MONTHS)} {' '.join(map(number_words, range(21)))}"
    return set(re.findall(r"[^\W\d_]+", plain.casefold()))


def test_no_name_of_the_built_in_set_occurs(both: list[Example]) -> None:
    builtin = " ".join(text(item) + item.question for item in load_examples("builtin"))
    known = set(re.findall(r"[^\W\d_]+", builtin.casefold()))
    invented = {name for name in names(both) if not _is_plain(name)}
    assert len(invented) > 2000
    assert not {name for name in invented if name.casefold() in known}


@pytest.mark.parametrize(
    "pattern",
    [
        r"[{}]",
        r"  ",
        r"\b(\w+) \1\b",
        r"\b[Aa] (?:[aeiou](?!ne[ -])|[AEIO])",
        r"\b[Aa]n [^aeiouAEIOUh]",
        r"\.\.| [,.;]|,,",
        r"\b(?:of|to|by|for|from|with|under) (?:she|he)\b",
        r"[.!?] [a-z]",
        r"\b(?:the|a|an) (?:the|a|an)\b",
        r"\b(?:one|1) (?:members|years|metres|votes|points|crowns|children)\b",
    ],
)
def test_the_text_has_no_artefacts(both: list[Example], pattern: str) -> None:
    for item in both:
        for piece in (item.question, *(p.text for p in item.passages)):
            found = re.search(pattern, piece)
            assert found is None, (item.id, found, piece)


def test_questions_are_questions(both: list[Example]) -> None:
    for item in both:
        assert item.question.endswith("?")
        assert not item.question[0].islower()


class TestAsASource:
    def test_is_loaded_by_name(self) -> None:
        examples = load_examples("world:test/5/30")
        assert examples.items == tuple(make_examples(30, seed=5, split="test"))
        assert licence("world:test/5/30").startswith("made by this project")

    @pytest.mark.parametrize("rest", ["", "train", "train/0", "dev/0/10", "train/x/10", "test/0/0"])
    def test_other_names_are_refused(self, rest: str) -> None:
        with pytest.raises(LabError, match="use world:train/SEED/N or world:test/SEED/N"):
            load_examples(f"world:{rest}")

    def test_goes_through_a_file_unchanged(self, both: list[Example], tmp_path: Path) -> None:
        path = write_jsonl(both, tmp_path / "both.jsonl")
        assert [replace(item, dataset="world") for item in load_examples(str(path))] == both

    def test_a_file_that_cannot_be_written_is_told_and_leaves_nothing(self, tmp_path: Path) -> None:
        examples = make_examples(2)
        with pytest.raises(LabError, match="cannot be written"):
            write_jsonl(examples, tmp_path / "no" / "such.jsonl")
        (tmp_path / "folder.jsonl").mkdir()
        with pytest.raises(LabError, match="cannot be written"):
            write_jsonl(examples, tmp_path / "folder.jsonl")
        assert [file.name for file in tmp_path.iterdir()] == ["folder.jsonl"]
