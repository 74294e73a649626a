"""An endless supply of invented passages with questions, to train on and to test with.

Each passage, or set of passages, tells of an invented world: a table of facts is drawn first,
then put into sentences; so what is asked, what is answered and what is left out are known
exactly. The names and the wordings of the two splits have nothing in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count, islice
from random import Random
from typing import get_args

from lab.data.example import Example
from lab.data.world.arithmetic import computed
from lab.data.world.asking import Desk, Draft, finish
from lab.data.world.compose import compose
from lab.data.world.facts import Split
from lab.data.world.kinds import DOMAINS, kinds
from lab.data.world.names import Namer
from lab.data.world.questions import direct, stepwise, unanswered
from lab.data.world.scene import invent
from lab.data.world.wordings import vocabulary
from lab.errors import LabError

__all__ = ["Split", "make_examples"]

WORDS = (40, 400)
"""How many words the passages of a world have in all."""
QUESTIONS = (3, 7)
TITLED = 0.5
"""How often a world is told in several passages with titles."""
FAMILIES: Mapping[bool, Mapping[str, float]] = {
    False: {"extract": 0.56, "arithmetic": 0.44},
    True: {"extract": 0.19, "arithmetic": 0.09, "bridge": 0.37, "chain": 0.35},
}
"""The shares of the families in worlds without and with titles, as far as they can be had."""
UNANSWERED = {"extract": 0.24, "bridge": 0.12, "chain": 0.14, "arithmetic": 0.0}
"""How many questions of a family the passages do not answer."""


def make_examples(n: int, seed: int = 0, split: Split = "train") -> list[Example]:
    """``n`` questions on invented passages; the same for the same arguments, on every machine.

    The first questions of a longer list are the shorter list. Of a hundred questions about 40
    ask for a span ("extract"), 25 for something counted or compared ("arithmetic"), 20 take two
    steps ("bridge") and 15 take three ("chain"); about 15 are not answered by the passages.

    Raises:
        LabError: if ``n`` is below one, or there is no such split.
    """
    if n < 1:
        raise LabError(f"The number of questions must be at least 1, not {n}.")
    if split not in get_args(Split):
        raise LabError(f"There is no split {split!r}; use {' or '.join(get_args(Split))}.")
    worlds = (_world(seed, split, index) for index in count())
    return list(islice((example for world in worlds for example in world), n))


def _world(seed: int, split: Split, index: int) -> list[Example]:
    """The questions about one world: those of the first try whose text has a fitting length."""
    name = f"world-{split}-{seed}-{index:05d}"
    for attempt in count():
        rng = Random(f"{seed}/{split}/{index}/{attempt}")
        desk = _desk(rng, split)
        size = sum(len(passage.text.split()) for passage in desk.told.passages)
        if WORDS[0] <= size <= WORDS[1]:
            found = list(_chosen(desk, name))
            if len(found) >= QUESTIONS[0]:
                return found
    return []


def _desk(rng: Random, split: Split) -> Desk:
    """A new world and its text."""
    titled = rng.random() < TITLED
    kind = kinds()[rng.choice(DOMAINS)]
    namer = Namer(rng, split, vocabulary())
    scene = invent(rng, split, kind, namer, titled)
    return Desk(rng, split, scene, compose(rng, split, scene, namer))


def _chosen(desk: Desk, name: str) -> Iterator[Example]:
    """Questions of mixed families about different topics, as many as are wanted."""
    drawers = _drawers(desk)
    topics: set[str] = set()
    questions: set[str] = set()
    made = 0
    for _ in range(desk.rng.randint(*QUESTIONS)):
        key = _drawer(desk)
        while drafts := drawers.get(key, []):
            draft = drafts.pop()
            if draft.topic in topics or draft.question in questions:
                continue
            example = finish(draft, desk, f"{name}-{made}", name)
            if example is not None:
                topics.add(draft.topic)
                questions.add(draft.question)
                made += 1
                yield example
                break


def _drawers(desk: Desk) -> dict[tuple[str, bool], list[Draft]]:
    """All drafts by family and whether they are answered; relations take turns from the end."""
    drafts = [*direct(desk), *stepwise(desk), *computed(desk), *unanswered(desk)]
    desk.rng.shuffle(drafts)
    drawers: dict[tuple[str, bool], list[Draft]] = {}
    turns: Counter[tuple[str, bool, str]] = Counter()
    turn: dict[int, int] = {}
    for draft in drafts:
        key = (draft.family, bool(draft.answers))
        drawers.setdefault(key, []).append(draft)
        turn[id(draft)] = turns[(*key, draft.meta["relation"])]
        turns[(*key, draft.meta["relation"])] += 1
        # Numbers and years are also counted with and compared: the others come first.
        if draft.family == "extract" and draft.path and draft.path[-1].relation.scale:
            turn[id(draft)] += desk.rng.random() < 0.6
    for drawer in drawers.values():
        drawer.sort(key=lambda draft: -turn[id(draft)])
    return drawers


def _drawer(desk: Desk) -> tuple[str, bool]:
    shares = FAMILIES[desk.scene.titled]
    family = desk.rng.choices(list(shares), list(shares.values()))[0]
    return family, desk.rng.random() >= UNANSWERED[family]
