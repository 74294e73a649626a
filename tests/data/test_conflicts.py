"""Knowledge conflicts: the built-in facts keep to their rules, and published sets are read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.data.conflicts import PASSAGES, Conflict, Conflicts, load_conflicts
from lab.data.conflicts.builtin import read_table
from lab.data.text import sentences, whole_words
from lab.errors import LabError

Write = Callable[..., Path]

FIELDS: dict[str, Any] = {
    "id": "capital-france",
    "dataset": "t",
    "relation": "capital",
    "subject": "France",
    "question": "What is the capital of France?",
    "cloze": "The capital of France is",
    "memory": "Paris",
    "counter": "Rome",
    "original": "They met in Paris, the capital. It rained.",
    "counterfactual": "They met in Rome, the capital. It rained.",
}

FACT = """
[[capital]]
subject = "France"
question = "What is the capital of France?"
cloze = "The capital of France is"
memory = "Paris"
counter = "Rome"
passage = "They met in {answer}."
"""

RELATION = {
    "name": "country capital",
    "prompt_templates": ["The capital city of {} is", "The capital of {} is"],
    "prompt_templates_zs": ["{}'s capital is", "What is the capital of {}? It is"],
    "properties": {"relation_type": "factual"},
    "samples": [
        {"subject": "France", "object": "Paris"},
        {"subject": "Colombia", "object": "Bogot\\u00e1"},
        {"subject": "Bolivia", "object": "Sucre"},
        {"subject": "Bolivia", "object": "La Paz"},
        {"subject": "Mexico", "object": "Mexico City"},
    ],
}

KNOWN = {
    "known_id": 7,
    "subject": "Pelé",
    "attribute": "football",
    "template": "{} plays",
    "prediction": " the game of football",
    "prompt": "Pelé plays the game of",
    "relation_id": "P641",
}

PAIR = {
    "base_prompt": "Skansen is in",
    "subject": '"Skansen"',
    "target_true": " Sweden",
    "target_new": " India",
    "template": "{}: Skansen is in{}. Skansen is in",
    "prompt": "Redefine: Skansen is in India. Skansen is in",
}


@pytest.fixture(scope="module")
def shipped() -> Conflicts:
    return load_conflicts()


# --- the built-in facts -------------------------------------------------------------------------


def test_there_are_120_facts_about_many_subjects(shipped: Conflicts) -> None:
    assert len(shipped) == 120
    assert not shipped.skipped
    assert len({c.id for c in shipped}) == 120
    assert len({c.cluster for c in shipped}) > 100
    sizes = Counter(c.relation for c in shipped)
    assert len(sizes) == 20
    assert min(sizes.values()) >= 3


def test_every_passage_states_its_answer_once_and_differs_in_it_alone(shipped: Conflicts) -> None:
    for c in shipped:
        for stated in PASSAGES:
            text, answer = c.passage(stated), c.answer(stated)
            [(start, end)] = whole_words(text, answer, ignore_case=True)
            assert text[start:end] == answer
            other = c.counter if stated == "original" else c.memory
            swapped = text[:start] + other + text[end:]
            assert swapped == c.passage("counterfactual" if stated == "original" else "original")


def test_every_passage_is_short_prose_in_words_of_its_own(shipped: Conflicts) -> None:
    for c in shipped:
        assert 2 <= len(sentences(c.original)) <= 5, c.id
        assert 20 <= len(c.original.split()) <= 50, c.id
    openings = Counter(tuple(c.original.split()[:4]) for c in shipped)
    assert max(openings.values()) == 1
    clauses = Counter(
        " ".join(words[i : i + 5])
        for c in shipped
        for words in [c.original.replace(c.memory, "_").casefold().split()]
        for i in range(len(words) - 4)
        if "_" in words[i : i + 5]
    )
    assert max(clauses.values()) <= 3  # no sentence pattern around the answers is used much


def test_answers_are_single_words_that_begin_differently(shipped: Conflicts) -> None:
    for c in shipped:
        assert len(c.memory.split()) == len(c.counter.split()) == 1
        assert c.memory[0].isupper() == c.counter[0].isupper()
        assert c.memory[:2].casefold() != c.counter[:2].casefold()


def test_no_question_or_cloze_gives_an_answer_away(shipped: Conflicts) -> None:
    for c in shipped:
        assert c.question.endswith("?")
        assert not c.cloze.endswith((".", "?", "!"))
        for answer in (c.memory, c.counter, *c.aliases):
            assert not whole_words(c.question, answer, ignore_case=True)
            assert answer.casefold() not in c.subject.casefold()


def test_an_example_is_right_on_its_passage(shipped: Conflicts) -> None:
    for c in shipped:
        for stated in PASSAGES:
            example = c.example(stated)
            assert example.gold == c.answer(stated)
            [mark] = example.answer_marks
            assert example.marked(mark) == c.answer(stated)
            [evidence] = example.evidence
            assert evidence.start <= mark.start < mark.end <= evidence.end
            assert example.distractors == (c.answer(PASSAGES[stated == "original"]),)
            assert example.cluster == c.cluster


# --- what a conflict must be --------------------------------------------------------------------


def broken(**changes: Any) -> str:
    with pytest.raises(LabError) as caught:
        Conflict(**{**FIELDS, **changes})
    return str(caught.value)


def test_what_breaks_a_conflict_is_named() -> None:
    Conflict(**FIELDS)
    assert "Conflict capital-france: cloze is ''" in broken(cloze="")
    assert "question is 'Which? '" in broken(question="Which? ")
    assert "also a true answer" in broken(counter="paris")
    assert "also a true answer" in broken(aliases=("ROME",))
    assert "question names the answer 'Paris'" in broken(question="Is it Paris?")
    assert "cloze names the answer 'Rome'" in broken(cloze="Not Rome but")
    twice = {
        s: FIELDS[s] + f" {a}!" for s, a in (("original", "Paris"), ("counterfactual", "Rome"))
    }
    assert "original holds the answer 'Paris' 2 times" in broken(**twice)
    assert "holds the answer 'Paris' 0 times" in broken(original="They met in Parisian streets.")
    assert "no other change" in broken(counterfactual="They met in Rome, the capital. It snowed.")
    both = {s: FIELDS[s] + " Not in Rome." for s in PASSAGES}
    assert "must hold 'Rome' once" in broken(**both)
    assert "still holds a true answer, 'the capital'" in broken(aliases=("the capital",))


def test_subjects_are_clusters_unless_told_otherwise() -> None:
    assert Conflict(**FIELDS).cluster == "france"
    assert Conflict(**FIELDS, cluster="europe").cluster == "europe"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('counter = "Rome"', ""), "own, line 2 (capital) has no field 'counter'"),
        (('memory = "Paris"', "memory = 3"), "line 2 (capital): field 'memory' must be a string"),
        (("{answer}", "Paris"), "field 'passage' must hold {answer} exactly once"),
        (('"Rome"', '"Paris"'), "line 2 (capital): Conflict capital-france: counter is 'Paris'"),
        (("cloze =", "clause ="), "unknown field 'clause'"),
        (("[[capital]]", "[[capital"), "own is not TOML: "),
    ],
)
def test_errors_of_a_table_name_line_and_field(change: tuple[str, str], said: str) -> None:
    assert len(read_table(FACT, "own")) == 1
    with pytest.raises(LabError) as caught:
        read_table(FACT.replace(*change), "own")
    assert said in str(caught.value)


# --- published sets -----------------------------------------------------------------------------


def lre(tmp_path: Path, **changes: Any) -> str:
    folder = tmp_path / "lre" / "factual"
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**RELATION, **changes}, indent=1)
    (folder / "capital.json").write_text(text, encoding="utf-8")
    return f"lre:{tmp_path / 'lre'}"


def test_lre_relations_become_conflicts(tmp_path: Path) -> None:
    read = load_conflicts(lre(tmp_path))
    by_subject = {c.subject: c for c in read}
    assert list(by_subject) == ["France", "Colombia", "Bolivia"]
    france = by_subject["France"]
    assert france.question == "What is the capital of France?"
    assert france.cloze == "France's capital is"
    assert france.original == "The capital of France is Paris, the handbook says."
    assert by_subject["Colombia"].memory == "Bogotá"
    assert by_subject["Bolivia"].aliases == ("La Paz",)
    assert by_subject["Bolivia"].notes
    for c in read:
        assert c.counter in {"Paris", "Bogotá", "Sucre"} - {c.memory}
    repeated, copied = read.skipped
    lines = (tmp_path / "lre/factual/capital.json").read_text().split("\n")
    first = lines.index('   "object": "La Paz"') - 1  # lines are counted from 1
    assert f"line {first}, samples[3]: the subject 'Bolivia' stood before" in repeated
    assert "question names the answer 'Mexico City', which could be copied" in copied


def test_known_prompts_become_conflicts(write_json: Write) -> None:
    other = {**KNOWN, "known_id": 8, "subject": "Ruth", "attribute": "baseball"}
    other["prompt"] = "Ruth plays the game of"
    alone = {**KNOWN, "known_id": 9, "relation_id": "P1"}
    read = load_conflicts(f"known:{write_json([KNOWN, other, alone])}")
    assert [(c.memory, c.counter) for c in read] == [
        ("football", "baseball"),
        ("baseball", "football"),
    ]
    assert read[0].cloze == "Pelé plays the game of"
    assert "Pelé plays the game of ..." in read[0].question
    assert "record 2: the property P1 has no other answer" in read.skipped[0]


def test_competing_facts_keep_their_own_answers(write_json: Write) -> None:
    copied = {**PAIR, "base_prompt": "IBM 704, made by", "target_true": " IBM"}
    read = load_conflicts(f"compmech:{write_json([PAIR, copied])}")
    [conflict] = read
    assert (conflict.memory, conflict.counter) == ("Sweden", "India")
    assert (conflict.relation, conflict.cluster) == ("{} is in", "skansen")
    assert conflict.counterfactual == "Skansen is in India, the handbook says."
    assert "names the answer 'IBM'" in read.skipped[0]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            "builtin:capital",
            "Unknown source of conflicts 'builtin:capital'; use builtin, lre:FOLDER",
        ),
        ("known:", "Unknown source"),
        ("squad2:x.json", "Unknown source"),
        ("known:nowhere.json", "There is no file nowhere.json"),
        ("lre:nowhere", "no file or folder nowhere"),
    ],
)
def test_unknown_sources(spec: str, said: str) -> None:
    with pytest.raises(LabError) as caught:
        load_conflicts(spec)
    assert said in str(caught.value)


def test_errors_of_files_name_line_and_field(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    lacking = {name: value for name, value in KNOWN.items() if name != "attribute"}
    path.write_text("[\n" + json.dumps(KNOWN) + ",\n\n" + json.dumps(lacking) + "\n]")
    with pytest.raises(LabError, match=r"known\.json, line 4, record 1 has no field 'attribute'"):
        load_conflicts(f"known:{path}")
    path.write_text('[\n{"base_prompt": 3}]')
    with pytest.raises(LabError, match=r"line 2, record 0: field 'base_prompt' must be a string"):
        load_conflicts(f"compmech:{path}")
    path.write_text("[]")
    with pytest.raises(LabError, match="holds no conflict"):
        load_conflicts(f"known:{path}")
    with pytest.raises(LabError, match=r"prompt_templates\[0\] has no \{\} for the subject"):
        load_conflicts(lre(tmp_path, prompt_templates=["The capital is"]))
    with pytest.raises(LabError, match=r"samples\[0\] has no field 'object'"):
        load_conflicts(lre(tmp_path, samples=[{"subject": "France"}]))


def test_a_sample_is_seeded_and_spread_over_relations(shipped: Conflicts) -> None:
    some = load_conflicts(n=20, seed=3)
    assert some.items == load_conflicts(n=20, seed=3).items
    assert some.items != load_conflicts(n=20, seed=4).items
    assert len({c.relation for c in some}) >= 19
    assert set(some) <= set(shipped)
    with pytest.raises(LabError, match="builtin: 121 examples were asked for"):
        load_conflicts(n=121)


@pytest.mark.parametrize(
    ("spec", "usable", "skipped"),
    [
        ("lre:{}/facts/lre/commonsense", 231, 15),
        ("lre:{}/facts/lre/factual/country_capital_city.json", 15, 1),
        ("known:{}/facts/known_1000.json", 806, 1),
        ("compmech:{}/facts/comp_mech_gpt2.json", 601, 528),
        ("compmech:{}/facts/comp_mech_pythia.json", 956, 225),
    ],
)
def test_the_published_files(shared_data: Path, spec: str, usable: int, skipped: int) -> None:
    found = load_conflicts(spec.format(shared_data))
    assert (len(found), len(found.skipped)) == (usable, skipped)
    for c in found:
        assert c.memory.split()[0].casefold() != c.counter.split()[0].casefold()
    assert not any("\\u" in c.memory for c in found)
