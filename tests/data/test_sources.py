"""Sources by name, filters and sampling."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.data import Example, Mark, Passage, licence, load_examples
from lab.data.sampling import sample, shares
from lab.data.sources import with_fewer_passages
from lab.data.specs import same_source
from lab.errors import LabError

Write = Callable[..., Path]


def many(sizes: dict[str, int], per_cluster: int = 1) -> list[Example]:
    return [
        Example(
            f"{family}-{i}", "t", family, "?", (Passage("x"),), (), cluster=f"{i // per_cluster}"
        )
        for family, size in sizes.items()
        for i in range(size)
    ]


def record(name: str, **more: object) -> dict[str, object]:
    return {"id": name, "question": "Who?", "context": f"Ann {name}.", "answers": ["Ann"], **more}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("squad3", "Unknown source 'squad3'; use builtin"),
        ("", "Unknown source ''"),
        ("builtin:extra", "no family 'extra'; it has extract, arithmetic, bridge, chain"),
        ("jsonl:", "Unknown source 'jsonl:'"),
        ("JSONL:q.jsonl", "no format 'JSONL'. Did you mean jsonl:q.jsonl?"),
        ("json:q.jsonl", "no format 'json'. Did you mean jsonl:q.jsonl?"),
        ("squad:dev.json", "no format 'squad'. Did you mean squad2:dev.json?"),
        ("mine:dev.json", "no format 'mine'. Use builtin"),
    ],
)
def test_unknown_sources(spec: str, said: str) -> None:
    with pytest.raises(LabError) as caught:
        load_examples(spec)
    assert said in str(caught.value)


def test_a_missing_file_tells_what_is_there(write_jsonl: Write, tmp_path: Path) -> None:
    write_jsonl(record("q1"), name="there.jsonl")
    with pytest.raises(LabError, match=r"no file .*her\.jsonl.*holds there\.jsonl"):
        load_examples(f"jsonl:{tmp_path / 'her.jsonl'}")
    with pytest.raises(LabError, match=r"no folder .*nowhere either"):
        load_examples(f"drop:{tmp_path / 'nowhere' / 'x.json'}")


def test_a_folder_and_a_file_without_format_are_refused(write_jsonl: Write, tmp_path: Path) -> None:
    path = write_jsonl(record("q1"), name="mine.json")
    with pytest.raises(LabError, match=r"is a folder.*holds mine\.json"):
        load_examples(f"squad2:{tmp_path}")
    with pytest.raises(LabError, match="say which format it has"):
        load_examples(str(path))


def test_a_bare_path_is_enough_for_the_own_format(write_jsonl: Write) -> None:
    path = write_jsonl(record("q1"))
    assert load_examples(str(path)).items == load_examples(f"jsonl:{path}").items


def test_filters(write_jsonl: Write) -> None:
    path = str(write_jsonl(record("q1", family="a"), record("q2", family="b", answers=[])))
    assert [item.id for item in load_examples(path, families=["b"])] == ["q2"]
    assert [item.id for item in load_examples(path, answerable=True)] == ["q1"]
    assert [item.id for item in load_examples(path, families="a").pool] == ["q1", "q2"]
    with pytest.raises(LabError, match="none of the family b and that is answerable"):
        load_examples(path, families=["b"], answerable=True)
    with pytest.raises(LabError, match="no family 'c'; it has a, b"):
        load_examples(path, families=["c"])


def test_too_many_or_too_few_are_refused_with_both_numbers(write_jsonl: Write) -> None:
    path = str(write_jsonl(record("q1"), record("q2")))
    with pytest.raises(LabError, match="3 examples were asked for, but there are only 2"):
        load_examples(path, n=3)
    with pytest.raises(LabError, match="at least 1, not 0"):
        load_examples(path, n=0)


def test_repeated_ids_are_refused(write_jsonl: Write) -> None:
    path = str(write_jsonl(record("q1"), record("q2"), record("q1")))
    with pytest.raises(LabError, match=r"1 ids occur more than once \(q1\)"):
        load_examples(path)


def test_a_sample_is_seeded_and_keeps_the_order() -> None:
    examples = many({"a": 50, "b": 50})
    first = sample(examples, 20, seed=1)
    assert first == sample(examples, 20, seed=1)
    assert first != sample(examples, 20, seed=2)
    assert first == sorted(first, key=examples.index)
    assert sample(examples, 100) == examples


def test_a_sample_does_not_depend_on_the_order_of_the_file() -> None:
    examples = many({"a": 30, "b": 12})
    assert set(map(id, sample(examples, 9))) == set(map(id, sample(examples[::-1], 9)))


def test_families_keep_their_shares_and_small_ones_are_not_lost() -> None:
    chosen = sample(many({"a": 80, "b": 19, "c": 1}), 10)
    assert Counter(item.family for item in chosen) == {"a": 8, "b": 1, "c": 1}
    assert sorted(shares({"a": 5, "b": 5, "c": 5}, 2).values()) == [0, 1, 1]
    assert sum(shares({"a": 7, "b": 2, "c": 1}, 10).values()) == 10
    sizes = {name: 1 + (name == "t") for name in "abcdefghijklmnopqrst"}
    assert set(shares(sizes, 20).values()) == {1}


def test_a_passage_is_asked_twice_only_when_all_were_asked_once() -> None:
    examples = many({"a": 60}, per_cluster=6)
    assert set(Counter(item.cluster for item in sample(examples, 10)).values()) == {1}
    assert set(Counter(item.cluster for item in sample(examples, 20)).values()) == {2}


def test_the_benchmarks_are_sampled_by_passage(shared_data: Path) -> None:
    items = load_examples(f"drop:{shared_data}/drop/sample.json", n=100, seed=3)
    assert len(items) == len({item.cluster for item in items}) == 100
    assert len(items.pool) == 428
    assert Counter(item.family for item in items)["number"] == 62


def test_passages_without_evidence_can_be_left_out(shared_data: Path) -> None:
    spec = f"musique:{shared_data}/musique/sample.jsonl"
    whole, cut = load_examples(spec, n=5), load_examples(spec, n=5, others=0)
    for before, after in zip(whole, cut, strict=True):
        assert len(after.passages) == len(after.evidence)
        assert [*map(before.marked, before.evidence)] == [*map(after.marked, after.evidence)]
        assert [*map(before.marked, before.answer_marks)] == [
            *map(after.marked, after.answer_marks)
        ]
        assert "without evidence were left out" in after.notes[-1]
        assert after.cluster == before.cluster


def test_the_first_other_passages_stay_in_place() -> None:
    passages = tuple(map(Passage, "abcd"))
    example = Example("q", "t", "", "?", passages, (("c",),), evidence=(Mark(2, 0, 1),))
    cut = with_fewer_passages(example, 1)
    assert [passage.text for passage in cut.passages] == ["a", "c"]
    assert cut.marked(cut.evidence[0]) == "c"
    assert with_fewer_passages(example, 3) is example
    with pytest.raises(LabError, match="0 or more"):
        with_fewer_passages(example, -1)


def test_licences() -> None:
    assert licence("squad2:x/y.json") == "CC BY-SA 4.0"
    assert licence("mine.jsonl") == "the user's own"


def test_importing_the_data_room_loads_no_heavy_library() -> None:
    code = "import sys, lab.data; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    heavy = {"torch", "transformers", "scipy", "pandas", "pyarrow", "huggingface_hub"}
    assert not heavy & set(loaded.stdout.split())


def squad(path: Path, *titles: str) -> Path:
    """A file in SQuAD's format with one question on each article."""

    def article(title: str) -> dict[str, object]:
        answer = {"text": "Red", "answer_start": 0}
        asked = {"id": f"{title}-1", "question": "Which?", "answers": [answer]}
        return {"title": title, "paragraphs": [{"context": f"Red {title}.", "qas": [asked]}]}

    path.write_text(json.dumps({"version": "v2.0", "data": [article(title) for title in titles]}))
    return path


def test_a_part_of_a_squad_file_is_chosen_by_article(tmp_path: Path) -> None:
    path = squad(tmp_path / "squad.json", "Ants", "Bees", "Crabs")

    chosen = load_examples(f"squad2:{path}#Bees,Crabs")

    assert [item.id for item in chosen] == ["Bees-1", "Crabs-1"]
    assert {item.id for item in chosen.pool} == {"Bees-1", "Crabs-1"}, "no candidate leaks in"
    with pytest.raises(LabError, match="no article 'Wasps'; its articles are: Ants, Bees, Crabs"):
        load_examples(f"squad2:{path}#Wasps")


@pytest.mark.parametrize(
    ("titles", "chosen"),
    [
        ("Fresno,_California", ["Fresno,_California"]),
        ("Ants,Fresno,_California", ["Ants", "Fresno,_California"]),
        ("Fresno,_California, Ants", ["Ants", "Fresno,_California"]),
        ("Fresno", ["Fresno"]),
        ("Fresno,Ants", ["Ants", "Fresno"]),
    ],
)
def test_titles_may_hold_commas(tmp_path: Path, titles: str, chosen: list[str]) -> None:
    path = squad(tmp_path / "squad.json", "Ants", "Fresno", "Fresno,_California")
    items = load_examples(f"squad2:{path}#{titles}")
    assert [item.meta["title"] for item in items] == chosen


def test_a_file_s_name_may_hold_a_number_sign(tmp_path: Path) -> None:
    path = squad(tmp_path / "sq#1.json", "Ants", "Bees")
    assert len(load_examples(f"squad2:{path}")) == 2
    assert [item.id for item in load_examples(f"squad2:{path}#Bees")] == ["Bees-1"]


def test_a_tilde_is_the_user_s_own_folder(
    write_jsonl: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    write_jsonl(record("q1"), name="mine.jsonl")
    squad(tmp_path / "squad.json", "Ants", "Bees")
    assert len(load_examples("~/mine.jsonl")) == len(load_examples("jsonl:~/mine.jsonl")) == 1
    assert len(load_examples("squad2:~/squad.json#Ants")) == 1


def test_one_family_need_not_stand_in_a_list() -> None:
    chosen = load_examples("builtin", families="extract")
    assert chosen.items == load_examples("builtin", families=["extract"]).items
    assert {item.family for item in chosen} == {"extract"}


LIKE = {
    "drop": {"p1": {"passage": "x", "qa_pairs": []}},
    "hotpotqa": [{"_id": "a", "question": "?", "supporting_facts": [], "context": []}],
    "musique": {"id": "a", "question": "?", "paragraphs": []},
    "jsonl": {"id": "a", "question": "?", "context": "x", "answers": []},
}


@pytest.mark.parametrize("given", ["drop", "jsonl", "hotpotqa", "musique"])
def test_a_squad_file_given_as_another_is_recognised(tmp_path: Path, given: str) -> None:
    path = squad(tmp_path / "dev.json", "Ants")
    with pytest.raises(LabError) as caught:
        load_examples(f"{given}:{path}")
    assert f"looks like squad2: write squad2:{path}." in str(caught.value)


@pytest.mark.parametrize("name", list(LIKE))
def test_so_are_the_others(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(LIKE[name]))
    with pytest.raises(LabError, match=f"looks like {name}: write {name}:"):
        load_examples(f"squad2:{path}")
    with pytest.raises(LabError, match=f"for instance {name}:"):
        load_examples(str(path))


def test_one_file_is_one_source_however_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = (
        "q.jsonl",
        "./q.jsonl",
        "jsonl:q.jsonl",
        "jsonl:./q.jsonl",
        f"jsonl:{tmp_path}/q.jsonl",
    )
    assert len({same_source(name) for name in names}) == 1
    assert same_source("squad2:./a.json#Ants") == same_source("squad2:a.json#Ants")
    others = (
        "squad2:a.json",
        "squad2:a.json#Ants",
        "drop:a.json",
        "squad2",
        "squad2:hub",
        "builtin",
    )
    assert len({same_source(name) for name in others}) == len(others)
