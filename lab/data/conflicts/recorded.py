"""Facts of published sets, which have sentences to complete but no passages, made conflicts.

The passage is the set's own sentence with an answer in it, and the words that a handbook says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from lab.data.conflicts.conflict import Conflict
from lab.errors import LabError

_CLOSING = ", the handbook says."


def recorded(
    where: str,
    *,
    id: str,
    dataset: str,
    relation: str,
    subject: str,
    cloze: str,
    memory: str,
    counter: str,
    stated: str = "",
    question: str = "",
    aliases: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Conflict | str:
    """The conflict of a record, or a sentence saying why it gives none.

    ``cloze`` asks the model; ``stated`` begins the passage's sentence (the same unless given).
    Without a ``question`` it is asked how the cloze ends.
    """
    begin = (stated or cloze).strip()
    begin = begin[:1].upper() + begin[1:]
    try:
        return Conflict(
            id=id,
            dataset=dataset,
            relation=relation,
            subject=subject,
            question=question or f'How does this sentence end: "{cloze.strip()} ..."?',
            cloze=cloze.strip(),
            memory=memory,
            counter=counter,
            original=f"{begin} {memory}{_CLOSING}",
            counterfactual=f"{begin} {counter}{_CLOSING}",
            aliases=aliases,
            notes=notes,
        )
    except LabError as error:
        return f"{where}: {error}"


def other_answer(identity: str, answers: Iterable[str], right: Sequence[str]) -> str | None:
    """An answer of the same relation that is wrong here, or None where there is none.

    It begins with another word than any right answer, and has as many words as the first of them
    where one can be had; else the choice is by a hash of identity and answer, so that it is the
    same in every sample.
    """
    firsts = {_first(answer) for answer in right}
    options = {answer for answer in answers if _first(answer) not in firsts}
    length = len(right[0].split())
    far = {answer: abs(len(answer.split()) - length) for answer in options}
    least = min(far.values(), default=0)
    nearest = [answer for answer in options if far[answer] == least]
    return min(nearest, key=lambda answer: _rank(identity, answer), default=None)


def _rank(identity: str, answer: str) -> str:
    return sha256(f"{identity}/{answer}".encode()).hexdigest()


def _first(answer: str) -> str:
    return (answer.casefold().split() or [""])[0]
