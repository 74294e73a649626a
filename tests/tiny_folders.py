"""Tiny models and questions as files, for what starts from a folder: loading, studies, commands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tiny import tiny_model, tiny_tokenizer


def save_tiny(folder: Path, architecture: str = "llama", *, window: int | None = None) -> Path:
    """A tiny random model and its tokenizer in the Hugging Face layout.

    ``window`` sets the longest prompt (512 tokens if not given): only for models whose positions
    have no weights.
    """
    model = tiny_model(architecture)
    if window is not None:
        model.config.max_position_embeddings = window
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


PLACES = ("Kestrel", "Orvane", "Tilbeck", "Marrow", "Fendale", "Ustwick", "Harle", "Penmoor")


def question(number: int, **changes: Any) -> dict[str, Any]:
    """One short question in the lab's own format."""
    place, year = PLACES[number % len(PLACES)], 1871 + number
    text = f"The harbour of {place} was built in {year}. Its lighthouse burned down in {year - 60}."
    return {
        "id": f"q{number}",
        "question": f"When was the harbour of {place} built?",
        "passages": [{"title": place, "text": text}],
        "answers": [str(year)],
        "evidence": [{"passage": 0, "quote": text.split(". ")[0] + "."}],
        "distractors": [str(year - 60)],
        **changes,
    }


def write_questions(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    """A JSON-lines file of questions."""
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
