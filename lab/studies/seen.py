"""Whether a study asks what its adapter was trained on, which shows nothing of new questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lab.data import Example
from lab.data.specs import FILES
from lab.training.lessons import without_folders


def seen_in_training(
    sources: Iterable[str], examples: Sequence[Example], about: Mapping[str, Any]
) -> tuple[str, ...]:
    """A sentence for each source of an adapter's training that a study asks again.

    Args:
        sources: of the study.
        examples: all that it asks.
        about: what the adapter's ``rolelens.json`` says.
    """
    trained = about.get("data") or [
        {"spec": spec} for spec in (about.get("recipe") or {}).get("data") or []
    ]
    asked = [_parts(spec) for spec in sources]
    found = [
        f"The adapter was trained on {part['spec']}, and {what} here too: this does not show what "
        "it does on questions that it never saw."
        for part in trained
        for what in _shared(_parts(str(part["spec"])), part.get("articles") or (), asked, examples)
    ]
    return tuple(dict.fromkeys(found))


def _parts(spec: str) -> tuple[str, str]:
    """Format and name of a source, the same wherever its file lies and whatever is chosen of it."""
    named = without_folders(spec.strip())
    source, _, rest = named.partition(":")
    if source not in FILES and named.endswith(".jsonl"):
        return "jsonl", named
    return source, rest.partition("#")[0] if source in FILES else rest


def _shared(
    trained: tuple[str, str],
    articles: Iterable[str],
    asked: Iterable[tuple[str, str]],
    examples: Sequence[Example],
) -> Iterator[str]:
    """What of one source of a training is asked by a study, if anything, as words."""
    source, name = trained
    known = set(articles)
    for other, rest in asked:
        if other != source:
            continue
        if source == "builtin" and (not name or not rest or name == rest):
            yield "built-in questions are asked"
        elif source == "world" and name.partition("/")[0] == rest.partition("/")[0]:
            yield "worlds with the same names and wordings are asked about"
        elif known:
            titles = {e.meta.get("title", "") for e in examples if e.dataset == source}
            if both := sorted(titles & known):
                yield f"articles of it are asked about ({', '.join(both)})"
        elif source in FILES and name == rest:
            yield "questions from a file of this name are asked"
