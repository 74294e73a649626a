"""Checks that a set of questions keeps to the rules of the built-in set.

``python -m lab.data.validate [FILE ...]`` checks JSON-lines files (by default the built-in ones)
and prints every problem with the line or id it belongs to.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from os import PathLike
from pathlib import Path

from lab.data.example import Example, Metric
from lab.data.fields import Record, parse, read_text
from lab.data.jsonl import example as from_record
from lab.data.metrics import score
from lab.data.metrics.drop import is_number
from lab.data.text import is_closed, occurrences
from lab.errors import LabError

WORDS = (80, 450)
FAMILY_SIZE = 24
MIN_CONTEXTS = 14
MAX_SHARING = 2
OPERATIONS = frozenset({"count", "add", "subtract", "compare", "date", "list"})
NUMERIC = frozenset({"count", "add", "subtract"})


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds for one family: metric, range of the number of passages and of their words."""

    metric: Metric
    passages: tuple[int, int]
    passage_words: tuple[int, int]
    evidence_passages: tuple[int, int]
    titled: bool = False


RULES = {
    "extract": Rule("squad", (1, 1), WORDS, (1, 1)),
    "arithmetic": Rule("drop", (1, 1), WORDS, (1, 1)),
    "bridge": Rule("hotpotqa", (3, 6), (30, 120), (2, 2), titled=True),
    "chain": Rule("musique", (4, 7), (30, 100), (3, 4), titled=True),
}


def validate(example: Example) -> list[str]:
    """What is wrong with one example by the rules of its family, as sentences; [] if nothing.

    Of a family that is not built in, only the general rules are checked.
    """
    rule = RULES.get(example.family)
    found = [*_text_problems(example), *_distractor_problems(example)]
    if rule is not None:
        found += _shape_problems(example, rule) + _evidence_problems(example, rule)
        found += _EXTRA.get(example.family, lambda _: [])(example)
    return found


def validate_all(examples: Iterable[Example]) -> list[str]:
    """What is wrong with a set of examples: each one's problems, then those of the families."""
    examples = list(examples)
    found = [f"{item.id}: {problem}" for item in examples for problem in validate(item)]
    counts = Counter(item.id for item in examples)
    found += [
        f"{name}: the id occurs {count} times." for name, count in counts.items() if count > 1
    ]
    families: dict[str, list[Example]] = defaultdict(list)
    for item in examples:
        families[item.family].append(item)
    for family in RULES.keys() & families.keys():
        found += [f"{family}: {problem}" for problem in _family_problems(families[family])]
    return found


def validate_file(path: str | PathLike[str]) -> tuple[list[Example], list[str]]:
    """The examples of a JSON-lines file that can be read, and all problems of the file."""
    examples: list[Example] = []
    problems: list[str] = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        where = f"{Path(path).name}, line {number}"
        try:
            if line.strip():
                examples.append(from_record(Record.of(parse(line, where), where), "builtin"))
        except LabError as error:
            problems.append(str(error))
    return examples, problems + validate_all(examples)


def words(example: Example) -> int:
    """The number of words of all passages, titles left out."""
    return sum(len(passage.text.split()) for passage in example.passages)


def _text_problems(example: Example) -> list[str]:
    found = []
    if not example.question.endswith("?"):
        found.append("The question does not end with a question mark.")
    for index, passage in enumerate(example.passages):
        if passage.text != passage.text.strip():
            found.append(f"The text of passage {index} has white space at an end.")
    if not WORDS[0] <= words(example) <= WORDS[1]:
        found.append(f"The passages have {words(example)} words; they must have {_range(WORDS)}.")
    return found


def _distractor_problems(example: Example) -> list[str]:
    found = []
    wanted = 1 if _closed(example) else 2
    if len(example.distractors) < wanted:
        found.append(f"There are {len(example.distractors)} distractors; {wanted} are needed.")
    if len(set(example.distractors)) < len(example.distractors):
        found.append("A distractor is repeated.")
    for text in example.distractors if example.answerable else ():
        got = score(example, text)
        if got.em or got.f1 >= 0.5:
            found.append(f"The distractor {text!r} has F1 {got.f1:.2f} against a gold answer.")
    return found


def _shape_problems(example: Example, rule: Rule) -> list[str]:
    found = []
    if not re.fullmatch(rf"{example.family}-\d\d", example.id):
        found.append(f"The id must be {example.family}- and two digits.")
    if example.metric != rule.metric:
        found.append(f"The metric is {example.metric!r}; it must be {rule.metric!r}.")
    if not rule.passages[0] <= len(example.passages) <= rule.passages[1]:
        found.append(f"It has {len(example.passages)} passages, not {_range(rule.passages)}.")
    for index, passage in enumerate(example.passages):
        count = len(passage.text.split())
        if not rule.passage_words[0] <= count <= rule.passage_words[1]:
            found.append(f"Passage {index} has {count} words, not {_range(rule.passage_words)}.")
        if rule.titled and not passage.title:
            found.append(f"Passage {index} has no title.")
    titles = [passage.title for passage in example.passages]
    if rule.titled and len(set(titles)) < len(titles):
        found.append("Two passages have the same title.")
    return found


def _evidence_problems(example: Example, rule: Rule) -> list[str]:
    if not example.answerable:
        return ["Unanswerable, but it has evidence."] if example.evidence else []
    used = {mark.passage for mark in example.evidence}
    if not rule.evidence_passages[0] <= len(used) <= rule.evidence_passages[1]:
        wanted = _range(rule.evidence_passages)
        return [f"The evidence is in {len(used)} passages; it must be in {wanted}."]
    return []


def _extract_problems(example: Example) -> list[str]:
    found = [] if example.answer_marks or not example.answerable else [_NOT_FOUND]
    return found + _absent_distractors(example)


def _arithmetic_problems(example: Example) -> list[str]:
    operation = example.meta.get("operation", "")
    found = []
    if not example.answerable:
        found.append("It must be answerable.")
    if operation not in OPERATIONS:
        found.append(
            f"meta.operation is {operation!r}, not one of {', '.join(sorted(OPERATIONS))}."
        )
    if operation in NUMERIC and not is_number(example.gold.replace(",", "")):
        found.append(f"The answer of a {operation} question must be a number in digits.")
    listed = any(len(spans) > 1 for spans in example.answers)
    if listed != (operation == "list"):
        found.append("Answers of several spans must go with the operation 'list', and only there.")
    return found + (_absent_distractors(example) if operation == "compare" else [])


def _bridge_problems(example: Example) -> list[str]:
    found = []
    if example.meta.get("type") not in {"bridge", "comparison"}:
        found.append("meta.type must be 'bridge' or 'comparison'.")
    if example.meta.get("hops") != "2":
        found.append("meta.hops must be '2'.")
    if _closed(example):
        return found
    return found + ([] if example.answer_marks else [_NOT_FOUND]) + _absent_distractors(example)


def _chain_problems(example: Example) -> list[str]:
    hops = str(len({mark.passage for mark in example.evidence}))
    found = []
    if example.meta.get("hops") != hops:
        found.append(
            f"meta.hops is {example.meta.get('hops')!r}, the evidence has {hops} passages."
        )
    return found + ([] if example.answer_marks else [_NOT_FOUND]) + _absent_distractors(example)


_NOT_FOUND = "No gold answer stands in the evidence as whole words."
_EXTRA = {
    "extract": _extract_problems,
    "arithmetic": _arithmetic_problems,
    "bridge": _bridge_problems,
    "chain": _chain_problems,
}


def _absent_distractors(example: Example) -> list[str]:
    """At least two distractors must stand in the passages; further ones need not."""
    present = [
        text
        for text in example.distractors
        if any(occurrences(passage.text, text) for passage in example.passages)
    ]
    if len(present) >= 2:
        return []
    absent = [text for text in example.distractors if text not in present]
    return [f"Only {len(present)} distractors stand in the passages; not found: {absent}."]


def _family_problems(examples: Sequence[Example]) -> list[str]:
    family = examples[0].family
    found = []
    if len(examples) != FAMILY_SIZE:
        found.append(f"There are {len(examples)} questions; there must be {FAMILY_SIZE}.")
    contexts = {item.passages for item in examples}
    if len(contexts) < MIN_CONTEXTS:
        found.append(f"There are {len(contexts)} contexts; there must be {MIN_CONTEXTS} or more.")
    found += _sharing_problems(examples)
    for name, count, (low, high) in _family_counts(family, examples):
        if not low <= count <= high:
            found.append(f"There are {count} {name}; there must be {_range((low, high))}.")
    return found


def _sharing_problems(examples: Sequence[Example]) -> list[str]:
    by_cluster: dict[str, list[Example]] = defaultdict(list)
    by_passages: dict[object, set[str]] = defaultdict(set)
    for item in examples:
        by_cluster[item.cluster].append(item)
        by_passages[item.passages].add(item.cluster)
    found = []
    for cluster, items in by_cluster.items():
        if len(items) > MAX_SHARING:
            found.append(f"{len(items)} questions share the cluster {cluster!r}.")
        if len({item.passages for item in items}) > 1:
            found.append(f"The cluster {cluster!r} has different passages.")
    found += [
        f"The same passages have the clusters {sorted(clusters)}."
        for clusters in by_passages.values()
        if len(clusters) > 1
    ]
    return found


def _family_counts(
    family: str, examples: Sequence[Example]
) -> list[tuple[str, int, tuple[int, int]]]:
    """For a family: what is counted, how many there are, and how many there must be."""

    def count(key: str, value: str) -> int:
        return sum(item.meta.get(key) == value for item in examples)

    if family == "extract":
        return [("unanswerable questions", sum(not item.answerable for item in examples), (8, 8))]
    if family == "arithmetic":
        return [("questions with a list as the answer", count("operation", "list"), (3, 4))]
    if family == "bridge":
        first_two = sum({m.passage for m in item.evidence} == {0, 1} for item in examples)
        return [
            ("comparison questions", count("type", "comparison"), (7, 9)),
            ("yes/no questions", sum(map(_closed, examples)), (3, 8)),
            ("questions whose evidence comes first", first_two, (0, FAMILY_SIZE // 2)),
        ]
    return [("four-hop questions", count("hops", "4"), (8, 8))]


def _closed(example: Example) -> bool:
    return any(is_closed(span) for spans in example.answers for span in spans)


def _range(bounds: tuple[int, int]) -> str:
    low, high = bounds
    return str(low) if low == high else f"{low} to {high}"


def main(arguments: Sequence[str]) -> int:
    """Check the named files, or the built-in ones; 1 if a problem was found, else 0."""
    shipped = [f"{files('lab.data.builtin') / f'{family}.jsonl'}" for family in RULES]
    failed = False
    for path in arguments or shipped:
        try:
            examples, problems = validate_file(path)
        except LabError as error:
            examples, problems = [], [str(error)]
        failed |= bool(problems)
        print(f"{path}: {_summary(examples)}")
        print("\n".join(f"  - {problem}" for problem in problems) or "  no problem found")
    return int(failed)


def _summary(examples: Sequence[Example]) -> str:
    if not examples:
        return "no readable question"
    sizes = sorted(map(words, examples))
    return (
        f"{len(examples)} questions, {len({item.passages for item in examples})} contexts of "
        f"{sizes[0]} to {sizes[-1]} words (median {sizes[len(sizes) // 2]}), "
        f"{sum(not item.answerable for item in examples)} unanswerable"
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
