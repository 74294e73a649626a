"""How the study was made, and what it cannot show."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr

from lab.instruments.summaries import tables as T
from lab.views.format import count
from lab.views.wording import LIMITS

Provenance = Mapping[str, Any]


def kinds(dataset: xr.Dataset) -> list[int]:
    """How many examples each single kind of question has, where there are several kinds."""
    return [int(group.mask.sum()) for group in T.groups(dataset) if group.scope == "family"]


def limits(provenance: Provenance, n: int, clusters: int, by_kind: Sequence[int] = ()) -> list[str]:
    """What the report cannot show: what holds for all, and what this study's size adds.

    ``by_kind``: the examples of each kind of question, see :func:`kinds`.
    """
    shared = f", which share {count(clusters, 'passage')}" if clusters < n else ""
    rest = f"; rows for single kinds of question rest on {_span(by_kind)} each" if by_kind else ""
    model = _part(provenance, "model")
    lines = [
        *filter(None, [unfinished(provenance)]),
        *map(str, provenance.get("seen_in_training", [])),
        f"{count(n, 'example')}{shared}{rest}. Intervals hold for questions like these, not for "
        "all questions.",
        f"One model{_size(model)}. What a small model does need not hold for a larger one, and one "
        "prompt wording stands for many.",
        *LIMITS,
    ]
    dtype = str(model.get("dtype", ""))
    if dtype and dtype != "float32":
        lines.append(f"The model ran in {dtype}: small effects may be rounding.")
    return lines


def unfinished(provenance: Provenance) -> str:
    """How far a study is and how it goes on, in a sentence; empty where it is finished."""
    done, planned = int(provenance.get("done", 0)), int(provenance.get("planned", 0))
    if done >= planned:
        return ""
    told = f"Unfinished: {done} of {count(planned, 'example')} are stored"
    command = str(provenance.get("command", ""))
    return f"{told}; `{command}` goes on." if command else f"{told}."


def provenance_rows(
    provenance: Provenance, reader: Mapping[str, Any]
) -> list[tuple[str, list[str]]]:
    """Terms and lines for the table that says how the report was made."""
    model = _part(provenance, "model")
    shape = f"{model.get('n_layers', '?')} layers, {model.get('n_heads', '?')} heads a layer"
    rows = [
        ("Model", [_join(model.get("name"), model.get("source"))]),
        ("Weights", [f"SHA-256 {model['sha256']}" if model.get("sha256") else ""]),
        (
            "Architecture",
            [_join(model.get("architecture"), shape + _size(model), model.get("dtype"))],
        ),
        ("Training", [_training(_part(provenance, "adapter"))]),
        ("Data", [_join(d.get("spec"), d.get("licence")) for d in provenance.get("data", [])]),
        ("Verdict words", [", ".join(map(str, provenance.get("verdict_words", [])))]),
        ("Recipe", [_plain(_part(provenance, "recipe"))]),
        ("Seed", [str(provenance.get("seed", ""))]),
        (
            "Run",
            [
                _join(provenance.get("started"), provenance.get("finished"), between=" to "),
                *filter(None, [unfinished(provenance)]),
            ],
        ),
        ("Command", [str(provenance.get("command", ""))]),
        ("Versions", [_plain(_part(provenance, "versions"))]),
        ("Left out", [count(len(provenance.get("excluded", [])), "example")]),
        ("Notes", [str(note) for note in provenance.get("notes", [])]),
        (
            "In this page",
            [
                quantisation(reader),
                f"The reader holds {reader['held']} of {reader['of']} examples.",
                "Intervals are 95 %: bootstrap over examples, or over passages where examples "
                "share one; Wilson's for plain shares. A bootstrap without any spread gives none, "
                "which is no certainty. p-values are from sign-flip tests, "
                "corrected over all heads (Benjamini-Hochberg).",
            ],
        ),
    ]
    return [(term, lines) for term, lines in rows if any(lines)]


def _training(adapter: Mapping[str, Any]) -> str:
    """What was trained, on how much, if anything: the rest is in the adapter's card."""
    recipe = adapter.get("recipe") or {}
    if not recipe:
        return ""
    sources = ", ".join(map(str, recipe.get("data", [])))
    told = [
        f"LoRA adapter {adapter.get('name', '')}, rank {recipe.get('rank', '?')}",
        f"trained as {recipe.get('role', '?')}",
        f"on {adapter['questions']} questions" if adapter.get("questions") else "",
        f"from {sources}" if sources else "",
        f"in {adapter['steps']} steps" if adapter.get("steps") else "",
        f"seed {recipe.get('seed', '?')}",
    ]
    return ", ".join(part for part in told if part)


def reader_lead(reader: Mapping[str, Any]) -> str:
    """How to use the reader, and which examples it holds."""
    held, read, total = int(reader["held"]), int(reader["read"]), int(reader["of"])
    if not read:
        return (
            f"Choose one of {count(total, 'example')} to see what was asked, answered and judged. "
            "Attention on single tokens was not kept."
        )
    lead = (
        "Choose an example and a head. Colour shows how much of the decision's attention falls on "
        "each token, in both roles; it grows with the square root, so that faint marks stay "
        "visible."
    )
    if held == total:
        here = "The one example is here" if total == 1 else f"All {total} examples are here"
        return f"{lead} {here}."
    if held == read:
        return (
            f"{lead} Attention was measured on {read} of {count(total, 'example')}; the texts of "
            "all of these are here."
        )
    return (
        f"{lead} All {count(total, 'example')} are listed; to keep this file small, the texts of "
        f"{held} are here, taken in turn from every kind of question and outcome, in the order of "
        "the data. Means are over all that were measured."
    )


def quantisation(reader: Mapping[str, Any]) -> str:
    """How exact the numbers of single examples are."""
    return (
        "Attention on single tokens is rounded to 1/255, so it is off by at most "
        f"{100 * float(reader['error']):.1f} percentage points; what rounds to zero is not stored. "
        "Span shares of single examples are rounded in the same way. All means, ratios and "
        "intervals are from the exact values."
    )


def excluded(provenance: Provenance) -> list[tuple[str, str]]:
    """Examples left out of the study, and why."""
    return [
        (str(e.get("example", "")), str(e.get("why", ""))) for e in provenance.get("excluded", [])
    ]


def templates(provenance: Provenance) -> list[tuple[str, str]]:
    """The prompt template of each role."""
    return [(str(role), str(text)) for role, text in _part(provenance, "templates").items()]


def _span(sizes: Sequence[int]) -> str:
    least, most = min(sizes), max(sizes)
    return str(least) if least == most else f"{least} to {most}"


def _part(provenance: Provenance, name: str) -> Mapping[str, Any]:
    part = provenance.get(name)
    return part if isinstance(part, Mapping) else {}


def _size(model: Mapping[str, Any]) -> str:
    parameters = model.get("parameters")
    if not parameters:
        return ""
    number = int(parameters)
    short = f"{number / 1e9:.1f} billion" if number >= 1e9 else f"{number / 1e6:.0f} million"
    return f" ({short} parameters)"


def _join(*parts: object, between: str = " · ") -> str:
    return between.join(str(part) for part in parts if part)


def _plain(values: Mapping[str, Any]) -> str:
    def text(value: Any) -> str:
        return (
            value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        )

    return "; ".join(f"{name}: {text(value)}" for name, value in values.items())
