"""The frame around messages: the model's own chat format, or none for base models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, cycle
from typing import TYPE_CHECKING, Literal

from lab.errors import LabError
from lab.roles.tokenizer import encode, model_name, wants_bos

if TYPE_CHECKING:
    from lab.roles.tokenizer import Tokenizer

Format = Literal["auto", "chat", "plain"]

_PROBES = (
    "Passage:\nOne  <b>&amp;</b> \"two\" 'three' \\n {{ four }} \u00e9\n\nQuestion: Five?",
    "A longer message.\n\n\nPassage:\nIt has\tother words, <i>1</i> & 2.\n\nVerdict (Yes or No):",
)

DATE = "26 July 2024"
"""The day that chat templates which print the date are told, always at midnight, so that a prompt
is the same on every day. It is the one that Llama 3's own template takes where it has no clock."""

_CLOCK = "strftime_now"
_DIRECTIVES = {
    "%Y": "2024", "%y": "24", "%B": "July", "%b": "Jul", "%m": "07", "%-m": "7", "%d": "26",
    "%-d": "26", "%e": "26", "%A": "Friday", "%a": "Fri", "%w": "5", "%u": "5", "%j": "208",
    "%F": "2024-07-26", "%D": "07/26/24", "%H": "00", "%I": "12", "%p": "AM", "%M": "00",
    "%S": "00", "%T": "00:00:00",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands around every message.

    Attributes:
        format: whether it is the chat format.
        prefix: what stands before the first message.
        suffix: what stands behind the last message, up to the decision.
        notes: what was odd about finding it.
        turns: for each earlier turn, what stands between its message and the reply to it, and
            between that reply and the next message.
    """

    format: Literal["chat", "plain"]
    prefix: str
    suffix: str
    notes: tuple[str, ...] = ()
    turns: tuple[tuple[str, str], ...] = ()

    @property
    def markup(self) -> str:
        """All text that the frame adds."""
        return "".join((self.prefix, *chain.from_iterable(self.turns), self.suffix))


def find_frame(tokenizer: Tokenizer, format: Format = "auto", earlier: int = 0) -> Frame:
    """The frame that the tokenizer's model expects around a user message and ``earlier`` turns.

    ``chat`` is the tokenizer's own chat template with a user message, and before it so many pairs
    of a user message and the assistant's reply; a system prompt is left to the template. The
    template is asked once, with probe messages, and its frame is kept: data never goes through it,
    so it cannot strip or rewrite a passage. A template that fails or changes the probes is refused
    with LabError; with ``auto`` the plain format takes its place, and a note says so. ``plain`` has
    no markup: a space stands before the reply of an earlier turn, and an empty line behind it. A
    BOS token stands first if the tokenizer adds one by default; once, whatever the template says
    (later turns keep those that the template gives them). A template that asks for the date is
    told DATE, and a note says so.
    """
    has_template = bool(getattr(tokenizer, "chat_template", None))
    plain = Frame("plain", "", "", turns=((" ", "\n\n"),) * earlier)
    if format == "plain" or (format == "auto" and not has_template):
        return _with_bos(tokenizer, plain)
    if not has_template:
        raise LabError(
            f"The tokenizer of {model_name(tokenizer)} has no chat template: "
            'use format="plain" or format="auto".'
        )
    try:
        frame = _chat_frame(tokenizer, earlier)
    except LabError as error:
        if format == "chat":
            raise
        frame = replace(plain, notes=(f"plain format instead of chat: {error}",))
    return _with_bos(tokenizer, frame)


def _chat_frame(tokenizer: Tokenizer, earlier: int) -> Frame:
    conversations = [_conversation(probe, earlier) for probe in _PROBES]
    frames = {_ask(tokenizer, messages) for messages in conversations}
    if len(frames) > 1:
        raise LabError(
            f"The chat template of {model_name(tokenizer)} puts different markup around different "
            'messages: use format="plain".'
        )
    found = frames.pop()
    prefix, *between, suffix = found
    turns = tuple(zip(between[::2], between[1::2], strict=True))
    notes: list[str] = []
    if found != _ask(tokenizer, conversations[0], today=True):
        notes.append(f"the chat format prints today's date, in whose place {DATE} stands")
    if suffix.rstrip().endswith("<think>"):
        notes.append("the chat format opens a reasoning block right before the decision")
    return Frame("chat", prefix, suffix, tuple(notes), turns)


def _dated(template: str) -> str:
    """The chat template with a clock of its own, which stands still.

    What is passed to a template cannot be a function, but a macro hides a global of its name.
    """
    filters = "".join(f' | replace("{name}", "{text}")' for name, text in _DIRECTIVES.items())
    # The template's first line begins a line here too, since Jinja takes this line break away.
    return f"{{% macro {_CLOCK}(format) %}}{{{{ format{filters} }}}}{{% endmacro %}}\n{template}"


def _conversation(probe: str, earlier: int) -> tuple[str, ...]:
    """Messages of the user and replies in turn, no two alike; the probe is the last."""
    pairs = ((f"{i}. {probe}", f"Reply {i}: {probe}") for i in range(earlier))
    return (*chain.from_iterable(pairs), probe)


def _ask(tokenizer: Tokenizer, messages: Sequence[str], *, today: bool = False) -> tuple[str, ...]:
    """What the chat template puts before, between and behind the messages of a conversation.

    A template that asks for the date is told DATE, or that of ``today``.
    """
    what = "a single user message" if len(messages) == 1 else f"a conversation of {len(messages)}"
    try:
        template = str(tokenizer.get_chat_template())
        if _CLOCK in template and not today:
            template = _dated(template)
        # Templates without a thinking mode ignore the last argument; with it, those that have
        # one (Qwen 3) close an empty reasoning block, so that the decision is the answer's.
        text = tokenizer.apply_chat_template(
            [
                {"role": role, "content": message}
                for role, message in zip(cycle(("user", "assistant")), messages, strict=False)
            ],
            chat_template=template,
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=False,
        )
    except Exception as error:
        raise LabError(
            f"The chat template of {model_name(tokenizer)} fails on {what} ({error}): "
            'use format="plain".'
        ) from error
    around, rest = [], str(text)
    for message in messages:
        before, found, rest = rest.partition(message)
        if not found:
            raise LabError(
                f"The chat template of {model_name(tokenizer)} changes or leaves out the text of "
                f'{what}: use format="plain".'
            )
        around.append(before)
    return (*around, rest)


def _with_bos(tokenizer: Tokenizer, frame: Frame) -> Frame:
    """The frame with exactly one BOS token first, if the tokenizer adds one by default."""
    if not wants_bos(tokenizer):
        return frame
    bos = str(tokenizer.bos_token)
    bare = frame.prefix
    while bare.startswith(bos):
        bare = bare[len(bos) :]
    if encode(tokenizer, bos + bare)[:1] != (tokenizer.bos_token_id,):
        raise LabError(
            f"The tokenizer of {model_name(tokenizer)} does not read its own BOS token {bos!r} "
            "back as one token."
        )
    return replace(frame, prefix=bos + bare)
