"""The frame around a message: the model's own chat format, or none for base models."""

from __future__ import annotations

from dataclasses import dataclass, replace
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


@dataclass(frozen=True, slots=True)
class Frame:
    """What stands before and after every message, and what was odd about finding it."""

    format: Literal["chat", "plain"]
    prefix: str
    suffix: str
    notes: tuple[str, ...] = ()


def find_frame(tokenizer: Tokenizer, format: Format = "auto") -> Frame:
    """The frame that the tokenizer's model expects around a user message.

    ``chat`` is the tokenizer's own chat template with one user message; a system prompt is left to
    the template. The template is asked once, with probe messages, and its frame is kept: data
    never goes through it, so it cannot strip or rewrite a passage. A template that fails or
    changes the probes is refused with LabError; with ``auto`` the plain format takes its place,
    and a note says so. ``plain`` has no markup. A BOS token stands first if the tokenizer adds
    one by default, once.
    """
    has_template = bool(getattr(tokenizer, "chat_template", None))
    if format == "plain" or (format == "auto" and not has_template):
        return _with_bos(tokenizer, Frame("plain", "", ""))
    if not has_template:
        raise LabError(
            f"The tokenizer of {model_name(tokenizer)} has no chat template: "
            'use format="plain" or format="auto".'
        )
    try:
        frame = _chat_frame(tokenizer)
    except LabError as error:
        if format == "chat":
            raise
        frame = Frame("plain", "", "", (f"plain format instead of chat: {error}",))
    return _with_bos(tokenizer, frame)


def _chat_frame(tokenizer: Tokenizer) -> Frame:
    frames = {_ask(tokenizer, probe) for probe in _PROBES}
    if len(frames) > 1:
        raise LabError(
            f"The chat template of {model_name(tokenizer)} puts different markup around different "
            'messages: use format="plain".'
        )
    prefix, suffix = frames.pop()
    notes: tuple[str, ...] = ()
    if suffix.rstrip().endswith("<think>"):
        notes = ("the chat format opens a reasoning block right before the decision",)
    return Frame("chat", prefix, suffix, notes)


def _ask(tokenizer: Tokenizer, message: str) -> tuple[str, str]:
    """What the chat template puts before and after a message."""
    try:
        # Templates without a thinking mode ignore the last argument; with it, those that have
        # one (Qwen 3) close an empty reasoning block, so that the decision is the answer's.
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": message}],
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=False,
        )
    except Exception as error:
        raise LabError(
            f"The chat template of {model_name(tokenizer)} fails on a single user message "
            f'({error}): use format="plain".'
        ) from error
    prefix, found, suffix = str(text).partition(message)
    if not found:
        raise LabError(
            f"The chat template of {model_name(tokenizer)} changes the text of the user message: "
            'use format="plain".'
        )
    return prefix, suffix


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
