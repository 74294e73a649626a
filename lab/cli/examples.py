"""Examples on the terminal: counts, lists, and one example with its evidence marked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lab.cli.shared import command
from lab.data import Example, Examples, Mark, is_wrong
from lab.errors import LabError

EVIDENCE = ("[[", "]]")
ANSWER = ("<<", ">>")

COLUMNS = ("examples", "answerable", "contexts", "passages", "words", "with evidence")


def print_counts(examples: Examples, source: str) -> None:
    """A table of how many examples each family has."""
    families: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        families[example.family or "(none)"].append(example)
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("family")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    for family, items in sorted(families.items()):
        table.add_row(*_counts(family, items))
    if len(families) > 1:
        table.add_row(*_counts("all", list(examples)), style="bold")
    console = _console()
    console.print(table)
    if examples.skipped:
        skipped = f"{len(examples.skipped)} records were left out, the first: {examples.skipped[0]}"
        console.print(_text(skipped))
    show = command("lab", "examples", source, "--show", examples[0].id)
    console.print(_text(f"To see one: {show}"), soft_wrap=True)


def _counts(family: str, items: Sequence[Example]) -> list[str | Text]:
    words = sorted(sum(len(p.text.split()) for p in item.passages) for item in items)
    passages = sorted(len(item.passages) for item in items)
    return [
        _text(family),
        str(len(items)),
        str(sum(item.answerable for item in items)),
        str(len({item.cluster or item.id for item in items})),
        _range(passages),
        _range(words),
        str(sum(bool(item.evidence) for item in items)),
    ]


def _range(values: Sequence[int]) -> str:
    return str(values[0]) if values[0] == values[-1] else f"{values[0]} to {values[-1]}"


def print_list(examples: Examples) -> None:
    """Ids and questions, one to a line."""
    console = _console()
    for example in examples:
        console.print(_text(f"{example.id}  {example.question}"), soft_wrap=True)


def print_example(examples: Examples, name: str, source: str) -> None:
    """One example; its evidence stands in [[ ]] and its answer in << >>."""
    example = next((item for item in examples if item.id == name), None)
    if example is None:
        near = ", ".join(item.id for item in examples[:3])
        raise LabError(f"{source} has no example {name!r}; its ids look like {near}.")
    console = _console()
    for label, value in _facts(example):
        console.print(Text.assemble((f"{label}: ", "bold"), _text(value)))
    for index, passage in enumerate(example.passages):
        console.print()
        if passage.title:
            console.print(_text(passage.title, "bold"))
        console.print(marked(example, index))


def _facts(example: Example) -> list[tuple[str, str]]:
    wrong = [text for text in example.distractors if is_wrong(example, text)]
    rows = [
        ("id", example.id),
        ("from", f"{example.dataset}, {example.family}"),
        ("question", example.question),
        ("answer", " | ".join(", ".join(a) for a in example.answers) or "none in the passages"),
        ("wrong answers", " | ".join(wrong)),
        ("more", ", ".join(f"{k}: {v}" for k, v in example.meta.items())),
        ("notes", " ".join(example.notes)),
    ]
    return [(label, value) for label, value in rows if value]


def marked(example: Example, index: int) -> Text:
    """A passage with evidence in [[ ]] and answers in << >>, coloured where a terminal can."""
    source = example.passages[index].text
    text = Text()
    for position in range(len(source) + 1):
        for mark, (_, closing), style in _marks(example, index):
            if mark.end == position:
                text.append(closing, style)
        for mark, (opening, _), style in reversed(_marks(example, index)):
            if mark.start == position:
                text.append(opening, style)
        text.append_text(_text(source[position : position + 1], _style(example, index, position)))
    return text


def _marks(example: Example, index: int) -> list[tuple[Mark, tuple[str, str], str]]:
    """The marks of a passage, inner ones first."""
    return [
        *((m, ANSWER, "bold green") for m in example.answer_marks if m.passage == index),
        *((m, EVIDENCE, "yellow") for m in example.evidence if m.passage == index),
    ]


def _style(example: Example, index: int, position: int) -> str:
    inside = (style for m, _, style in _marks(example, index) if m.start <= position < m.end)
    return next(inside, "")


def _text(text: str, style: str = "") -> Text:
    """Text from data, without control characters that a terminal would obey."""
    safe = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
    return Text(safe, style=style)


def _console() -> Console:
    return Console(highlight=False)
