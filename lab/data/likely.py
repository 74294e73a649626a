"""Which format a file is likely to have, for the advice that an error gives."""

from __future__ import annotations

import json
from os import PathLike

from lab.data.fields import read_text
from lab.errors import LabError


def likely_format(path: str | PathLike[str]) -> str:
    """The format that a file begins like, by its name in a source; empty where it is like none."""
    try:
        value, _ = json.JSONDecoder().raw_decode(read_text(path).lstrip())
    except (LabError, ValueError, RecursionError):
        return ""
    if isinstance(value, list):
        return "hotpotqa" if _has(value[:1], "supporting_facts", "context") else ""
    if _has([value], "paragraphs", "question"):
        return "musique"
    if _has([value], "question", "answers"):
        return "jsonl"
    if not isinstance(value, dict):
        return ""
    articles = value.get("data")
    if isinstance(articles, list) and _has(articles[:1], "paragraphs"):
        return "squad2"
    return "drop" if _has(list(value.values())[:1], "passage", "qa_pairs") else ""


def _has(values: list[object], *names: str) -> bool:
    """Whether there is a first value, and it is an object with these fields."""
    return any(isinstance(value, dict) and value.keys() >= set(names) for value in values)
