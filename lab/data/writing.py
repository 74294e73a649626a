"""Writing examples in the lab's own format, `lab.data.jsonl`."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from lab.data.example import Answer, Example, Mark
from lab.errors import LabError


def write_jsonl(examples: Iterable[Example], path: str | PathLike[str]) -> Path:
    """Write examples to a JSON-lines file, which is there whole or not at all; give its path.

    `lab.data.jsonl.read` gives them back, with the file's stem (or a name of choice) for their
    data set. Notes are not kept: reading makes them anew.

    Raises:
        LabError: if the file cannot be written.
    """
    target = Path(path)
    lines = "".join(json.dumps(record(example), ensure_ascii=False) + "\n" for example in examples)
    try:
        _replace(target, lines.encode("utf-8"))
    except UnicodeEncodeError:
        raise LabError(
            f"{target} was not written: an example holds half of a surrogate pair."
        ) from None
    except OSError as error:
        raise LabError(
            f"{target} cannot be written: {error.strerror or error}. "
            "Name a file in a folder that exists and is yours."
        ) from None
    return target


def record(example: Example) -> dict[str, Any]:
    """The JSON object of an example, without the fields that would be empty."""
    fields: dict[str, Any] = {
        "id": example.id,
        "family": example.family,
        "question": example.question,
        "passages": [{"title": p.title, "text": p.text} for p in example.passages],
        "answers": [_answer(answer) for answer in example.answers],
        "evidence": [_place(example, mark) for mark in example.evidence],
        "answer_marks": [_place(example, mark) for mark in example.answer_marks],
        "distractors": list(example.distractors),
        "metric": example.metric,
        "cluster": example.cluster,
        "meta": dict(example.meta),
    }
    kept = {"id", "question", "passages", "answers", "answer_marks", "metric"}
    return {name: value for name, value in fields.items() if value or name in kept}


def _answer(spans: Answer) -> str | list[str]:
    return spans[0] if len(spans) == 1 else list(spans)


def _place(example: Example, mark: Mark) -> dict[str, Any]:
    """A mark as a quote, with its number among the like ones if there are several."""
    text, quote = example.passages[mark.passage].text, example.marked(mark)
    starts = [at for at in range(len(text)) if text.startswith(quote, at)]
    place: dict[str, Any] = {"passage": mark.passage, "quote": quote}
    return place if len(starts) == 1 else place | {"nth": starts.index(mark.start)}


def _replace(target: Path, data: bytes) -> None:
    """Write beside the target and move into its place."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, 0o644)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
