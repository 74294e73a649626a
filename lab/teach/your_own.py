"""The exercises of notebook 06."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lab.data import Example, is_wrong, load_examples
from lab.data.fields import Record
from lab.data.jsonl import example as read_record
from lab.errors import LabError
from lab.teach.exercise import Exercise, describe

FEWEST_WORDS = 30
"""A passage shorter than this leaves the decision nothing to look for."""


def _mended(answer: Any, broken: Mapping[str, Any]) -> str | None:
    example = _read(answer)
    if isinstance(example, str):
        return example
    if [p.text for p in example.passages] != _texts(broken):
        return "The passage was changed: mend the record around it."
    if example.question != str(broken["question"]).strip():
        return "The question was changed: mend the rest of the record."
    return _first(_flaws(example))


def _own(answer: Any) -> str | None:
    example = _read(answer)
    if isinstance(example, str):
        return example
    words = sum(len(passage.text.split()) for passage in example.passages)
    if words < FEWEST_WORDS:
        return f"The passages have {words} words: write at least {FEWEST_WORDS}."
    if not example.question.endswith("?"):
        return "The question does not end in a question mark."
    return _first(_flaws(example))


def _read(answer: Any) -> Example | str:
    """The Example of a record, or what is wrong with it, in the words of the reader."""
    if not isinstance(answer, Mapping):
        return f"A dictionary is asked for, and this is {describe(answer)}."
    try:
        return read_record(Record(dict(answer), "your record"), "yours")
    except LabError as error:
        return str(error)


def _texts(record: Mapping[str, Any]) -> list[str]:
    passages = record.get("passages", [record.get("context")])
    return [p["text"] if isinstance(p, Mapping) else str(p) for p in passages]


def _flaws(example: Example) -> list[str]:
    """What a reader accepts but an experiment suffers from."""
    text = " ".join(passage.text for passage in example.passages)
    found = []
    if not example.answers:
        return ["It has no answer: for this exercise the passage should answer the question."]
    if not example.answer_marks:
        found.append(
            f"The answer {example.gold!r} does not stand in the evidence (or, without evidence, "
            "in the passage): the lab could not mark it."
        )
    if _stands(example.gold, example.question):
        found.append(f"The question gives the answer {example.gold!r} away.")
    if not example.evidence:
        found.append('There is no "evidence": quote the sentence that proves the answer.')
    if not example.distractors:
        found.append('There are no "distractors": name a wrong answer that the passage tempts to.')
    for text_of in example.distractors:
        if not is_wrong(example, text_of):
            found.append(f"The distractor {text_of!r} would count as right.")
        elif not _stands(text_of, text):
            found.append(f"The distractor {text_of!r} does not stand in the passage.")
    return found


def _stands(words: str, text: str) -> bool:
    """Whether words stand in a text as whole words: "ten" does not stand in "often"."""
    pattern = rf"(?<!\w){re.escape(words.casefold())}(?!\w)"
    return re.search(pattern, text.casefold()) is not None


def _first(flaws: list[str]) -> str | None:
    return flaws[0] if flaws else None


def _recipe(answer: Any, source: str) -> str | None:
    from lab.studies.recipe import Recipe

    if not isinstance(answer, Recipe):
        return (
            f"A recipe is asked for, as lab.Recipe(...) makes one, and this is {describe(answer)}."
        )
    if tuple(answer.data) != (source,):
        return f"Its data are {', '.join(answer.data)}: only {source} is asked for."
    if wrong := _too_few_or_many(answer.n, source):
        return wrong
    words = answer.verdict_words
    if words is None:
        return 'It keeps the usual verdict words: set verdict_words=("Correct", "Incorrect").'
    if tuple(words) == ("Incorrect", "Correct"):
        return "The verdict words are the other way round: the accepting one comes first."
    if tuple(words) != ("Correct", "Incorrect"):
        return f'The verdict words are {words}, not ("Correct", "Incorrect").'
    if answer.patching != 0:
        return "It runs patches: patching=0 leaves them out."
    return None


def _too_few_or_many(n: int | None, source: str) -> str:
    """What is wrong with the number of questions that a recipe takes; nothing for all."""
    if n is None or n == (known := len(load_examples(source))):
        return ""
    if n > known:
        return f"It asks for {n} questions, and there are {known}: leave n out to take all."
    return f"It takes {n} of the {known} questions: leave n out to take all."


EXERCISES = (
    Exercise(
        "06.mended",
        "The record has several faults: mend them, but leave passage and question as they are.",
        ("broken",),
        _mended,
        "The reader refuses what it cannot understand; what it accepts may still be a bad "
        "experiment.",
    ),
    Exercise(
        "06.question",
        "Write a question of your own as a record, with evidence and at least one distractor.",
        (),
        _own,
        "Answer, evidence and a tempting wrong answer all stand in the passage: now the judge has "
        "to read.",
    ),
    Exercise(
        "06.recipe",
        'Write a recipe that asks all your questions with the verdict words "Correct" and '
        '"Incorrect", and runs no patches.',
        ("source",),
        _recipe,
        "A recipe is data: it is stored with the results, and says how to repeat them.",
    ),
)
