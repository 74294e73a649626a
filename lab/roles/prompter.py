"""Rendering: an example and a role become a prompt, with every token named."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from lab.data.example import Example, Passage
from lab.errors import LabError
from lab.roles.controls import apply_control
from lab.roles.demonstrations import DEMONSTRATIONS, demonstrated
from lab.roles.fit import drop, droppable, dropped_note
from lab.roles.frame import Format, Frame, find_frame
from lab.roles.layout import Content, Piece, compose, read_content, worded
from lab.roles.prompt import Prompt
from lab.roles.roles import (
    FILLER,
    LAYOUTS,
    ROLES,
    TASKS,
    VERDICT_WORDS,
    Layout,
    Role,
    Task,
    check_tasks,
    find_role,
)
from lab.roles.shield import Shield
from lab.roles.spans import mark_tokens, token_pieces
from lab.roles.tokenizer import (
    check_encodable,
    control_ids,
    control_strings,
    encode,
    encode_with_offsets,
    model_name,
)
from lab.roles.verdict import VerdictTokens, verdict_tokens

if TYPE_CHECKING:
    from lab.roles.tokenizer import Tokenizer

TooLong = Literal["error", "drop"]

_FILLER_WORDS = FILLER.split()


@dataclass(frozen=True)
class Prompter:
    """Renders examples for one tokenizer, always in the same way.

    Attributes:
        tokenizer: a fast Hugging Face tokenizer, best the model's own.
        layout: ``instruction_first`` or ``context_first``, see LAYOUTS.
        format: ``chat``, ``plain``, or ``auto``: chat where the tokenizer has a chat template.
        verdict_words: the words for accepting and rejecting, ("Yes", "No") or, for instance,
            ("Correct", "Incorrect").
        max_tokens: the longest prompt allowed; None allows any.
        too_long: what to do with a longer one: refuse it (``error``), or ``drop`` passages that
            hold no evidence.
        demonstrations: how many worked questions stand before each real one, the first of
            DEMONSTRATIONS, asked in the same role: earlier turns in ``chat``, blocks of text in
            ``plain``.
        tasks: the wording of the instructions and cues, by the keys of TASKS. Answers are scored
            and demonstrated with REFUSAL for what the passage does not answer, whatever they say.
    """

    tokenizer: Tokenizer
    layout: Layout = "instruction_first"
    format: Format = "auto"
    verdict_words: tuple[str, str] = VERDICT_WORDS
    max_tokens: int | None = None
    too_long: TooLong = "error"
    demonstrations: int = 0
    # A mapping has no hash; prompters with other wordings are told apart by equality.
    tasks: Mapping[str, Task] = field(default_factory=lambda: TASKS, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tasks", MappingProxyType(dict(self.tasks)))
        check_tasks(self.tasks)
        if self.demonstrations not in range(len(DEMONSTRATIONS) + 1):
            raise LabError(
                f"demonstrations is {self.demonstrations!r}: it must be a number from 0 to "
                f"{len(DEMONSTRATIONS)}."
            )
        for name, value, allowed in (
            ("layout", self.layout, tuple(LAYOUTS)),
            ("format", self.format, ("auto", "chat", "plain")),
            ("too_long", self.too_long, ("error", "drop")),
        ):
            if value not in allowed:
                raise LabError(
                    f'There is no {name} "{value}". Choose one of: {", ".join(allowed)}.'
                )
        if not getattr(self.tokenizer, "is_fast", False):
            raise LabError(
                f"The tokenizer of {model_name(self.tokenizer)} cannot tell which characters a "
                "token stands for. Load the fast tokenizer (AutoTokenizer, use_fast=True)."
            )
        if len(self.verdict_words) != 2 or not all(word.strip() for word in self.verdict_words):
            raise LabError("verdict_words needs two words: one that accepts, one that rejects.")

    def render(self, example: Example, role: str, candidate: str | None = None) -> Prompt:
        """The prompt that asks an example in a role, with spans and marks.

        Args:
            example: what is asked. Its text is data: strings of control tokens in it are broken
                up by a space (see Prompt.notes), nothing else is changed.
            role: a name in ROLES.
            candidate: the answer to be judged. Roles that show none take it for the ``mention``
                mark, and ``generator_filler`` for the length of its filler. May be empty.

        Raises LabError for an unknown role, a missing candidate, or a prompt that is too long.
        With ``too_long="drop"`` passages are dropped for this prompt alone; to keep several
        prompts of an example comparable, render them all from ``fit(example)``.
        """
        kind = find_role(role)
        self._check(example, kind, candidate)
        prompt = self._render(example, kind, candidate)
        if self.max_tokens is not None and len(prompt) > self.max_tokens:
            fitted = self.fit(example, (role,), (candidate or "",))
            prompt = self._render(fitted, kind, candidate)
        return prompt

    def control(
        self,
        example: Example,
        name: str,
        candidate: str,
        *,
        wrong: str | None = None,
        other: Example | None = None,
    ) -> Prompt:
        """The prompt of a control in CONTROLS; see ``apply_control``."""
        role, changed, shown = apply_control(name, example, candidate, wrong=wrong, other=other)
        return self.render(changed, role, shown)

    def fit(
        self,
        example: Example,
        roles: Iterable[str] = tuple(ROLES),
        candidates: Collection[str] = ("",),
    ) -> Example:
        """The example, without as many passages as it takes for all these roles to fit.

        All prompts made from it lack the same passages, so they stay comparable. Passages with
        evidence or answer marks are never dropped, at least one passage stays, and the largest
        go first. The example comes back as it is where it fits, or without ``max_tokens``.

        Args:
            example: what is asked.
            roles: names of the roles that will be rendered; by default all.
            candidates: all candidates that will be shown; the longest one counts.

        Raises LabError with both lengths where it does not fit, or, with ``too_long="error"``,
        where passages would have to go.
        """
        kinds = [find_role(role) for role in roles]
        longest = max(candidates, key=self._count, default="")
        for kind in kinds:
            self._check(example, kind, longest)
        length, role = self._longest(example, kinds, longest)
        if self.max_tokens is None or length <= self.max_tokens:
            return example
        order: tuple[int, ...] = ()
        sizes: list[int] = []
        if self.too_long == "drop":
            sizes = [self._count(f"{p.title}\n{p.text}\n\n") for p in example.passages]
            order = droppable(example, sizes)
        fitted, gone, left = example, 0, length
        while left > self.max_tokens:
            if gone == len(order):
                raise self._too_long(example, role, length, left)
            # Drop by the estimate until it should fit, then measure once.
            while gone < len(order) and left > self.max_tokens:
                left -= sizes[order[gone]]
                gone += 1
            fitted = drop(example, order[:gone])
            left, role = self._longest(fitted, kinds, longest)
        return fitted

    def verdict_tokens(self) -> VerdictTokens:
        """The token ids that begin each verdict word after this prompter's evaluator prompts."""
        cue = worded(self.tasks["judge"].cue, self.verdict_words, "cue").text
        return verdict_tokens(self.tokenizer, self.verdict_words, after=cue + self.frame.suffix)

    def templates(self) -> Mapping[str, str]:
        """For each role the text of its prompts with {passage}, {question} and {candidate}.

        Demonstrations stand in it word for word, since they are a part of how a role is asked.
        """
        skeleton = Example(
            "", "", "", question="{question}", passages=(Passage("{passage}"),), answers=()
        )
        content = read_content(skeleton, "{candidate}", Shield(()))
        return {
            name: self._text(self._compose(content, role, "{filler}"), role)
            for name, role in ROLES.items()
        }

    @cached_property
    def frame(self) -> Frame:
        """What stands around every message."""
        return find_frame(self.tokenizer, self.format, self.demonstrations)

    @cached_property
    def _demonstrated(self) -> Mapping[str, str]:
        """For each role the text of its demonstrations."""
        asked = (self.layout, self.verdict_words, self.tasks)
        return {name: demonstrated(self.frame.turns, role, *asked) for name, role in ROLES.items()}

    @cached_property
    def _strings(self) -> tuple[str, ...]:
        return control_strings(self.tokenizer, self.frame.markup)

    @cached_property
    def _shield(self) -> Shield:
        return Shield(self._strings)

    @cached_property
    def _control_ids(self) -> frozenset[int]:
        return control_ids(self.tokenizer, self._strings)

    def _count(self, text: str) -> int:
        return len(encode(self.tokenizer, text))

    def _check(self, example: Example, role: Role, candidate: str | None) -> None:
        if candidate is None and role.candidate != "none":
            raise LabError(
                f"Role {role.name} of example {example.id} needs a candidate: "
                "pass candidate=... (it may be empty)."
            )
        check_encodable(example.question, f"The question of example {example.id}")
        check_encodable(candidate or "", f"A candidate of example {example.id}")
        for i, passage in enumerate(example.passages):
            check_encodable(passage.title + passage.text, f"Passage {i + 1} of {example.id}")

    def _render(self, example: Example, role: Role, candidate: str | None) -> Prompt:
        content = read_content(example, candidate, self._shield)
        pieces = self._framed(self._pieces(content, role), role)
        text = "".join(piece.text for piece in pieces)
        ids, offsets = encode_with_offsets(self.tokenizer, text)
        owners = token_pieces(pieces, offsets)
        for token, (owner, (start, end)) in enumerate(zip(owners, offsets, strict=True)):
            # A byte or an unknown character may have a special id too; markup is longer.
            if pieces[owner].data and ids[token] in self._control_ids and end - start > 1:
                raise LabError(
                    f"Example {example.id} holds {text[start:end]!r}, which the tokenizer of "
                    f"{model_name(self.tokenizer)} reads as a control token: reword it."
                )
        return Prompt(
            role=role.name,
            example_id=example.id,
            text=text,
            token_ids=ids,
            offsets=offsets,
            spans=("sink", *(pieces[owner].span for owner in owners[1:])),
            marks=mark_tokens(pieces, offsets),
            candidate=None if role.candidate in ("none", "filler") else candidate,
            notes=self._notes(example, content),
        )

    def _notes(self, example: Example, content: Content) -> tuple[str, ...]:
        broken = ", ".join(dict.fromkeys(repr(string) for string in content.broken))
        notes = (
            *self.frame.notes,
            dropped_note(example),
            f"put a space into control tokens that stand in the data: {broken}" if broken else "",
        )
        return tuple(note for note in notes if note)

    def _framed(self, pieces: tuple[Piece, ...], role: Role) -> tuple[Piece, ...]:
        prefix = Piece(self.frame.prefix, "template")
        shown = Piece(self._demonstrated[role.name], "demonstrations")
        suffix = Piece(self.frame.suffix, "cue")
        return tuple(piece for piece in (prefix, shown, *pieces, suffix) if piece.text)

    def _text(self, pieces: tuple[Piece, ...], role: Role) -> str:
        return "".join(piece.text for piece in self._framed(pieces, role))

    def _compose(self, content: Content, role: Role, filler: str = "") -> tuple[Piece, ...]:
        return compose(content, role, self.layout, self.verdict_words, self.tasks, filler)

    def _pieces(self, content: Content, role: Role) -> tuple[Piece, ...]:
        """The message's pieces. Filler is cut so that the decision is as far from the passage's
        end as in the evaluator's prompt, or as near to that as whole words allow."""
        if role.candidate != "filler":
            return self._compose(content, role)
        judged = self._compose(content, ROLES["evaluator"])
        wanted = self._count(_after_context(judged))
        best, error = "", float("inf")
        words: list[str] = []
        while True:
            pieces = self._compose(content, role, " ".join(words))
            excess = self._count(_after_context(pieces)) - wanted
            if abs(excess) < error:
                best, error = " ".join(words), abs(excess)
            if excess >= 0:
                return self._compose(content, role, best)
            # No word of the filler has more than a dozen tokens, so this does not overshoot.
            for _ in range(max(1, -excess // 12)):
                words.append(_FILLER_WORDS[len(words) % len(_FILLER_WORDS)])

    def _longest(self, example: Example, roles: Iterable[Role], candidate: str) -> tuple[int, Role]:
        """The length of the longest prompt of an example, and the role that has it."""
        content = read_content(example, candidate, self._shield)
        lengths = [(self._count(self._text(self._pieces(content, r), r)), r) for r in roles]
        return max(lengths, key=lambda pair: pair[0])

    def _too_long(self, example: Example, role: Role, length: int, left: int) -> LabError:
        shorter = f" ({left:,} without the passages that may be dropped)" if left < length else ""
        advice = "leave it out or allow more tokens"
        if self.demonstrations:
            advice += ", or show fewer demonstrations"
        if self.too_long == "error" and len(example.passages) > 1:
            advice += ', or drop passages without evidence (too_long="drop")'
        return LabError(
            f"Example {example.id} needs {length:,} tokens{shorter} as {role.name}, but at most "
            f"{self.max_tokens:,} are allowed: {advice}."
        )


def _after_context(pieces: tuple[Piece, ...]) -> str:
    """The text of a message after its last passage."""
    last = max((i for i, piece in enumerate(pieces) if piece.span == "context"), default=-1)
    return "".join(piece.text for piece in pieces[last + 1 :])


def render(
    example: Example,
    role: str,
    tokenizer: Tokenizer,
    *,
    candidate: str | None = None,
    layout: Layout = "instruction_first",
    format: Format = "auto",
    verdict_words: tuple[str, str] = VERDICT_WORDS,
    max_tokens: int | None = None,
    too_long: TooLong = "error",
    demonstrations: int = 0,
) -> Prompt:
    """One prompt. For many, make a Prompter: it asks the chat template only once."""
    prompter = Prompter(
        tokenizer, layout, format, verdict_words, max_tokens, too_long, demonstrations
    )
    return prompter.render(example, role, candidate)
