"""Demonstrations: worked questions that stand before the real one, asked in the same role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lab.data.example import Example, Passage
from lab.roles.layout import compose, read_content
from lab.roles.roles import REFUSAL, Layout, Role, Task
from lab.roles.shield import Shield


@dataclass(frozen=True, slots=True)
class Demonstration:
    """An invented passage with a question, and how it is answered and judged.

    Attributes:
        passage: the text; its places and people occur in no set of questions.
        question: what is asked about it.
        right: the right answer; REFUSAL where the passage does not answer the question.
        wrong: a wrong answer of the type that is asked for, which stands in the passage.
        shows_right: whether roles with a candidate show the right answer, or the wrong one.
    """

    passage: str
    question: str
    right: str
    wrong: str
    shows_right: bool

    @property
    def candidate(self) -> str:
        """The answer that is shown where one is to be judged or repeated."""
        return self.right if self.shows_right else self.wrong

    @property
    def example(self) -> Example:
        """What is asked, as an Example without marks."""
        return Example("", "", "", self.question, (Passage(self.passage),), ())


DEMONSTRATIONS = (
    Demonstration(
        "The plans for the lighthouse at Quillmere were drawn by Hanna Voskuil, a shipwright's "
        "daughter, and its tower was built by the mason Teo Marrick in two summers. The lamp was "
        "first lit in October 1871. Marrick later moved inland to repair mills, while Voskuil "
        "kept the lamp for nineteen years.",
        "Who designed the lighthouse at Quillmere?",
        right="Hanna Voskuil",
        wrong="Teo Marrick",
        shows_right=True,
    ),
    Demonstration(
        "Every autumn the village of Velsund holds a race of painted rafts on Lake Durn. In the "
        "first year 14 rafts took part, and four of them sank. Last year 63 rafts started, more "
        "than ever before, and the prize of 250 marks went to a crew of bakers, who crossed the "
        "lake in 38 minutes.",
        "How many rafts took part in the first race?",
        right="14",
        wrong="63",
        shows_right=False,
    ),
    Demonstration(
        "The clockmaker Ansel Tirrow opened a workshop in Merrowby in 1902. He sold most of his "
        "clocks to railway stations, and his apprentice Jorun Okonde repaired them. After a fire "
        "in 1911 the workshop moved across the river to Hathel, where a few clocks are still made "
        "each year.",
        "In what year did Ansel Tirrow die?",
        right=REFUSAL,
        wrong="1911",
        shows_right=False,
    ),
    Demonstration(
        "The botanist Irena Falk spent three winters on the islands of Sorrach, looking for the "
        "blue fern that sailors had described. She saw none there. On her way home she stopped at "
        "Lower Tremmick to have a wheel mended, and there the fern was growing in the ditch "
        "beside the road.",
        "Where did Irena Falk find the blue fern?",
        right="Lower Tremmick",
        wrong="Sorrach",
        shows_right=True,
    ),
)
"""The demonstrations, in the order in which they are shown; a prompt shows the first few.

Candidates are right, wrong, wrong, right, so that two or four demonstrations lean to neither
verdict; one or three do. They ask for a person, a number, a year that the passage does not give,
and a place. The answers of demonstrations are the same in all wordings of the tasks.
"""


def demonstrated(
    turns: Iterable[tuple[str, str]],
    role: Role,
    layout: Layout,
    verdict_words: tuple[str, str],
    tasks: Mapping[str, Task],
) -> str:
    """The text of the first demonstrations, one for each turn, asked in a role.

    Each is worded and laid out as a prompt of that role and followed by its target. ``turns``
    holds, for each, what stands between the message and the target, and what stands behind the
    target (see ``Frame.turns``). Where a role shows filler, demonstrations show nothing: filler
    has a length to match only beside a real candidate.
    """
    text = ""
    for shown, (before, after) in zip(DEMONSTRATIONS, turns, strict=False):
        content = read_content(shown.example, shown.candidate, Shield(()))
        message = compose(content, role, layout, verdict_words, tasks)
        text += "".join(piece.text for piece in message)
        text += before + target(shown, role, verdict_words) + after
    return text


def target(shown: Demonstration, role: Role, verdict_words: tuple[str, str]) -> str:
    """What a model should reply to a demonstration in a role: the answer, verdict or candidate."""
    targets = {
        "answer": shown.right,
        "judge": verdict_words[0 if shown.shows_right else 1].strip(),
        "repeat": shown.candidate,
    }
    return targets[role.task]
