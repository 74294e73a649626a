"""How a conflict is asked: according to the passage, from the model's own knowledge, or judged.

The two instructions are wordings of the task ``answer`` (see ``Prompter.tasks``), asked in the role
``generator``; so everything else about their prompts is the same, spans and decision included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from lab.data.conflicts import PASSAGES, Conflict, Stated
from lab.data.folding import ARTICLES
from lab.errors import LabError
from lab.roles.prompt import Prompt
from lab.roles.prompter import Prompter
from lab.roles.roles import Task
from lab.roles.tokenizer import encode, encode_with_offsets, wants_bos

if TYPE_CHECKING:
    from lab.roles.tokenizer import Tokenizer

Instruction = Literal["passage", "memory"]
Side = Literal["memory", "counter"]

INSTRUCTIONS: Mapping[Instruction, Task] = MappingProxyType(
    {
        "passage": Task(
            "Answer the question according to the passage. "
            "Reply with the shortest possible answer.",
            "Answer according to the passage:",
        ),
        "memory": Task(
            "Answer the question from your own knowledge. Reply with the shortest possible answer.",
            "Answer from your own knowledge:",
        ),
    }
)
"""The two instructions. They differ in four words, twice, so that most tokenizers give prompts of
the same length; the cue repeats them since the decision is near it."""

OPENINGS: Mapping[Instruction, str] = MappingProxyType(
    {"passage": "According to the passage:", "memory": "From my own knowledge:"}
)
"""What a begun reply says before the cloze; both have four words."""

SIDES: tuple[Side, Side] = ("memory", "counter")
"""The two answers of a conflict: the true one, and the counterfactual passage's."""

CELLS: tuple[tuple[Instruction, Stated], ...] = tuple(product(INSTRUCTIONS, PASSAGES))
"""The four cells of the table: instruction and passage."""

TAIL = 8
"""How many last tokens of a prompt an answer is encoded behind."""


def expected(instruction: Instruction, stated: Stated) -> Side:
    """The answer of a model that does what the instruction says and knows the fact."""
    return "counter" if (instruction, stated) == ("passage", "counterfactual") else "memory"


def instructed(prompter: Prompter, instruction: Instruction) -> Prompter:
    """The prompter with the task ``answer`` worded as one of INSTRUCTIONS.

    Raises LabError for another name, or a prompter with demonstrations, whose targets follow
    passages under any instruction.
    """
    if instruction not in INSTRUCTIONS:
        raise LabError(
            f"There is no instruction {instruction!r}. Choose one of: {', '.join(INSTRUCTIONS)}."
        )
    if prompter.demonstrations:
        raise LabError(
            "Conflicts are asked without demonstrations, since these answer from their passages "
            "whatever the instruction is: use demonstrations=0."
        )
    return replace(prompter, tasks={**prompter.tasks, "answer": INSTRUCTIONS[instruction]})


def conflict_prompts(
    prompter: Prompter, conflict: Conflict, *, begun: bool = False
) -> dict[tuple[Instruction, Stated], Prompt]:
    """The prompts of the 2 x 2 table by instruction and passage, in the order of CELLS.

    Their mark ``answer`` is the place of the passage's answer. Two prompts of one instruction
    differ in that place only. With ``begun`` the reply is begun, with the instruction's words in
    OPENINGS and the conflict's cloze, so that the decision is where the answer must come: untrained
    models like to begin with "The".
    """
    asked = {name: instructed(prompter, name) for name in INSTRUCTIONS}
    prompts = {
        (name, stated): asked[name].render(conflict.example(stated), "generator")
        for name, stated in CELLS
    }
    if not begun:
        return prompts
    return {
        key: _begun(prompter, prompt, _opening(prompt.text, key[0], conflict.cloze))
        for key, prompt in prompts.items()
    }


def conflict_templates(prompter: Prompter, *, begun: bool = False) -> dict[str, str]:
    """The texts of all prompts about conflicts, with {passage}, {question}, {candidate}, {cloze}.

    Keys say in words what is asked. The last is what `closed_book_prompt` asks.
    """
    made: dict[str, str] = {}
    for name, words in _TOLD.items():
        text = instructed(prompter, name).templates()["generator"]
        made[words] = text + (_opening(text, name, "{cloze}") if begun else "")
    made["judging"] = prompter.templates()["evaluator"]
    return made | {"without a passage": _alone(prompter.tokenizer, "{cloze}")}


_TOLD: Mapping[Instruction, str] = MappingProxyType(
    {
        "passage": "answering, told to follow the passage",
        "memory": "answering, told to answer from own knowledge",
    }
)


def _opening(before: str, instruction: Instruction, cloze: str) -> str:
    """The first words of a reply, as they go on behind a prompt."""
    reply = f"{OPENINGS[instruction]} {cloze}"
    return reply if before[-1:].isspace() else f" {reply}"


def _begun(prompter: Prompter, prompt: Prompt, text: str) -> Prompt:
    """The prompt with the first words of the reply behind it, counted to the cue."""
    ids, offsets = encode_with_offsets(prompter.tokenizer, text)
    start = len(prompt.text)
    return replace(
        prompt,
        text=prompt.text + text,
        token_ids=prompt.token_ids + ids,
        offsets=prompt.offsets + tuple((a + start, b + start) for a, b in offsets),
        spans=prompt.spans + ("cue",) * len(ids),
    )


def closed_book_prompt(prompter: Prompter, conflict: Conflict) -> Prompt:
    """The conflict's cloze alone, as plain text: what the model says without any passage.

    There is no chat markup, since the text is to be gone on with, not replied to. All tokens but
    the sink are counted to the question; the role is called ``closed_book``.
    """
    text = _alone(prompter.tokenizer, conflict.cloze)
    ids, offsets = encode_with_offsets(prompter.tokenizer, text)
    if not ids:
        raise LabError(f"The cloze of conflict {conflict.id} has no token: reword it.")
    return Prompt(
        role="closed_book",
        example_id=conflict.id,
        text=text,
        token_ids=ids,
        offsets=offsets,
        spans=("sink", *("question" for _ in ids[1:])),
    )


def _alone(tokenizer: Tokenizer, cloze: str) -> str:
    return (str(tokenizer.bos_token) if wants_bos(tokenizer) else "") + cloze


def judge_prompts(prompter: Prompter, conflict: Conflict) -> dict[tuple[Stated, Side], Prompt]:
    """The evaluator's prompts by passage and candidate.

    The candidate ``memory`` is right of the original passage and wrong of the counterfactual one;
    ``counter`` the other way round.
    """
    candidates = {"memory": conflict.memory, "counter": conflict.counter}
    return {
        (stated, side): prompter.render(conflict.example(stated), "evaluator", candidates[side])
        for stated, side in product(PASSAGES, SIDES)
    }


@dataclass(frozen=True, slots=True)
class JudgePair:
    """Two evaluator prompts of which one should be accepted and the other rejected.

    Attributes:
        right, wrong: the prompts.
        differ: in what they differ, ``candidate`` or ``passage``.
    """

    right: Prompt
    wrong: Prompt
    differ: Literal["candidate", "passage"]


def judge_pairs(prompter: Prompter, conflict: Conflict) -> dict[str, JudgePair]:
    """The contrasts for judges, two of each kind.

    ``candidate_original`` and ``candidate_counterfactual``: same passage and question, right
    against wrong candidate; what tells them apart is who reads the candidate.
    ``passage_memory`` and ``passage_counter``: same question and candidate, and the passage's
    answer swapped, so that the candidate is right of one passage and wrong of the other; what
    tells them apart is who checks the passage.
    """
    made = judge_prompts(prompter, conflict)
    true, false = made["original", "memory"], made["original", "counter"]
    kept, swapped = made["counterfactual", "memory"], made["counterfactual", "counter"]
    return {
        "candidate_original": JudgePair(true, false, "candidate"),
        "candidate_counterfactual": JudgePair(swapped, kept, "candidate"),
        "passage_memory": JudgePair(true, kept, "passage"),
        "passage_counter": JudgePair(swapped, false, "passage"),
    }


def first_tokens(tokenizer: Tokenizer, answers: Iterable[str], prompt: Prompt) -> tuple[int, ...]:
    """The ids with which any of the answers may begin behind a prompt, ascending.

    Each answer is tried as written and with a capital first letter, with and without a space
    before it, alone and behind the prompt's last tokens. Ids that are special, mere white space or
    a lone article are left out. So an answer with its article, "the Netherlands", may have none:
    the first token that tells something is then not at the decision.
    """
    spellings = {text for answer in answers for text in (answer, answer[:1].upper() + answer[1:])}
    tail = prompt.text[prompt.offsets[max(0, len(prompt) - TAIL)][0] :]
    before = encode(tokenizer, tail)
    found: set[int] = set()
    for variant in (space + text for text in spellings for space in ("", " ")):
        found.update(encode(tokenizer, variant)[:1])
        whole = encode(tokenizer, tail + variant)
        if whole[: len(before)] == before:
            found.update(whole[len(before) :][:1])
    silent = set(tokenizer.all_special_ids)
    shown = {i: tokenizer.decode([i]).strip() for i in found - silent}
    return tuple(sorted(i for i, text in shown.items() if text and text.lower() not in ARTICLES))


def answer_tokens(
    tokenizer: Tokenizer, conflict: Conflict, prompts: Sequence[Prompt]
) -> dict[Side, tuple[int, ...]]:
    """For each of the two answers the ids that begin it behind these prompts, and not the other.

    The side of the true answer includes its aliases. Both sides are empty where the two answers
    themselves have no first token that tells them apart.
    """
    tokens = {
        text: {i for prompt in prompts for i in first_tokens(tokenizer, [text], prompt)}
        for text in (conflict.memory, conflict.counter, *conflict.aliases)
    }
    true = set().union(*(tokens[text] for text in (conflict.memory, *conflict.aliases)))
    counter = tokens[conflict.counter]
    shared = true & counter
    if not (tokens[conflict.memory] - shared and counter - shared):
        return {"memory": (), "counter": ()}
    return {"memory": tuple(sorted(true - shared)), "counter": tuple(sorted(counter - shared))}
