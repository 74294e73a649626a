"""Fixtures for the tests of examples, readers and metrics."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SHARED_DATA = Path(
    os.environ.get("ROLELENS_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data")
)


@pytest.fixture
def shared_data() -> Path:
    """The folder with samples of the real benchmarks, which are not part of the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip("no benchmark samples; set ROLELENS_SHARED_DATA to a folder that holds them")
    return SHARED_DATA


@pytest.fixture
def write_json(tmp_path: Path) -> Callable[[Any], Path]:
    """Writes a value as a JSON file and gives its path."""

    def write(value: Any) -> Path:
        path = tmp_path / "file.json"
        path.write_text(json.dumps(value), encoding="utf-8")
        return path

    return write


@pytest.fixture
def write_jsonl(tmp_path: Path) -> Callable[..., Path]:
    """Writes values as a JSON-lines file and gives its path."""

    def write(*records: Any, name: str = "mine.jsonl") -> Path:
        path = tmp_path / name
        lines = [json.dumps(record, ensure_ascii=False) for record in records]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write
