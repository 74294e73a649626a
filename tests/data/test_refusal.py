"""Which answers count as saying that the passage does not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.data import Example, Passage, is_refusal, load_examples, map_refusal, score

REFUSALS = """
unanswerable|Unanswerable.|"Unanswerable"|**Unanswerable**|Answer: unanswerable|not answerable
This question is unanswerable.|No answer|N/A|none of the above|I don't know|I don\u2019t know.
I do not know the answer.|I cannot determine|Sorry, but I cannot answer that.
I'm sorry, I can't answer this question.|Unable to determine.|Not mentioned.|not specified
not mentioned in the passage|It is not stated in the passage.|It isn't mentioned in the passage.
The answer is not given in the text.|The name is not mentioned in the passage.
The year is not given.|The information is not in the passage.|unknown from the passage
The passage does not say.|the passage doesn't say|The passage does not mention who won.
The text above does not provide this information.|The provided context does not contain the answer.
The passage gives no answer.|The passage provides no information on it.
There is no information in the passage about the mayor.|No information is given.
Not enough information|It cannot be determined.|Cannot be determined from the passage.
The answer cannot be found in the passage.|It is impossible to say
Based on the passage, it is not possible to determine the answer.
The passage does not say. The question cannot be answered.
No mention of this in the passage.|No mention of it in the text
no mention of the mayor in the passage
No details about who won in the given text.|No information on the king's wife in this paragraph.
The information is not available.|That information isn't available in the text.
The answer is not available.|The details are not provided|This information is not included.
"""
REAL_ANSWERS = """
no|No.|none|nothing|nobody|no one|never|zero|0|unknown|NA|know|...|-|text|information
not guilty|not included|not available|not a number|no evidence|no details|insufficient evidence
Nothing is known|Unknown Soldier|The Answer|the Northwest Passage|The passage of the bill
Not mentioned again until 1920|No answer was received from the king|I cannot tell a lie
no mention of God in the text|no mention of slavery|no mention of his wife in the story of Ruth
no mention of Rome in the passage of 1801|no mention of it|no evidence of fraud|no answer to that
the pills are not available|not available in Europe|the list of names is not available
The information is not available, but it was Paris.|the details were not provided to the court
the information was not available|the answer was not found until 1920
The passage does not say, but it was Paris.|I don't know. Paris|it was impossible to tell
"""


def cases(block: str) -> list[str]:
    return [case for line in block.strip().splitlines() for case in line.split("|")]


@pytest.mark.parametrize("text", [*cases(REFUSALS), "", "   ", "Unanswerable.\n"])
def test_refusals_are_mapped_to_the_empty_answer(text: str) -> None:
    assert map_refusal(text) == ""


@pytest.mark.parametrize("text", cases(REAL_ANSWERS))
def test_what_may_be_a_real_answer_is_kept(text: str) -> None:
    assert map_refusal(f" {text}\n") == text


def test_a_mapped_refusal_is_right_where_the_passage_does_not_answer() -> None:
    example = Example("q", "test", "", "Who?", (Passage("Text."),), ())
    assert score(example, "unanswerable").em == 0
    assert score(example, map_refusal("unanswerable")).em == 1


def test_no_answer_of_the_built_in_set_is_a_refusal() -> None:
    texts = [t for item in load_examples("builtin") for a in item.answers for t in a]
    assert texts
    assert not list(filter(is_refusal, texts))


def test_no_answer_of_the_benchmarks_is_a_refusal(shared_data: Path) -> None:
    specs = ("squad2:squad2/", "drop:drop/", "hotpotqa:hotpotqa/")
    paths = [spec.replace(":", f":{shared_data}/") + "sample.json" for spec in specs]
    paths.append(f"musique:{shared_data}/musique/sample.jsonl")
    items = [item for path in paths for item in load_examples(path)]
    texts = [
        t for item in items for t in [*(s for a in item.answers for s in a), *item.distractors]
    ]
    assert len(texts) > 4000
    assert not list(filter(is_refusal, texts))
