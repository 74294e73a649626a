"""What a report opens with: the finding in one sentence, four numbers, and what they mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import xarray as xr

from lab.instruments.statistics import Estimate
from lab.instruments.summaries import tables as T
from lab.instruments.summaries.behaviour import RULE_WORDS
from lab.instruments.summaries.facts import ENOUGH, Facts, gather
from lab.instruments.summaries.sentences import from_passages, meaning, reading_finding
from lab.instruments.summaries.summary import Tables, tabulate


@dataclass(frozen=True, slots=True)
class KeyNumber:
    """One of the numbers at the top of a report.

    Attributes:
        label: what is counted, in a few words.
        estimate: the number with its interval.
        colour: which role or span it belongs to: ``generator``, ``evaluator`` or ``context``.
        explanation: one line on how to read it, with the value that would mean nothing.
    """

    label: str
    estimate: Estimate
    colour: str
    explanation: str


@dataclass(frozen=True, slots=True)
class Headline:
    """The opening of a report.

    Attributes:
        title: the finding in one sentence.
        subtitle: which model, on how many examples of what.
        numbers: four key numbers.
        meaning: three to five plain sentences.
    """

    title: str
    subtitle: str
    numbers: tuple[KeyNumber, ...]
    meaning: tuple[str, ...]


def headline(
    ds: xr.Dataset, provenance: Mapping[str, Any], tables: Tables | None = None
) -> Headline:
    """Title, key numbers and meaning of a study; pass ``tables`` where they are already made."""
    facts = gather(ds, tables or tabulate(ds))
    return Headline(_title(facts), _subtitle(ds, provenance), _numbers(facts), meaning(facts))


# --- the title and the numbers ------------------------------------------------------------------


def _title(facts: Facts) -> str:
    ratio = facts.ratio
    if math.isnan(ratio.value):
        return _title_from_verdicts(facts)
    return reading_finding(ratio, facts.units.attention)


def _title_from_verdicts(facts: Facts) -> str:
    balanced, units = facts.balanced, facts.units.pairs
    start = "Shown a right and a wrong answer, the model"
    if not math.isnan(balanced.value) and units < ENOUGH:
        return (
            "Too few questions to say whether the model judges better than a coin (balanced "
            f"accuracy {balanced.value:.2f}, n = {balanced.n}{from_passages(balanced.n, units)})"
        )
    if balanced.excludes(0.5):
        return f"{start} judges {'better' if balanced.low > 0.5 else 'worse'} than a coin"
    if not math.isnan(balanced.value):
        return f"{start} does not clearly judge better than a coin"
    if not math.isnan(facts.ga.value):
        return f"The model answers {facts.ga.value:.0%} of the questions right"
    return "This study holds no measurement that a headline could state"


def _subtitle(ds: xr.Dataset, provenance: Mapping[str, Any]) -> str:
    model = (provenance.get("model") or {}).get("name") or "unnamed model"
    n, datasets = (
        ds.sizes.get("example", 0),
        [d for d in dict.fromkeys(T.labels(ds, "dataset")) if d],
    )
    of = f" from {', '.join(datasets)}" if datasets else ""
    planned = int(provenance.get("planned") or n)
    count = f"{n}" if planned <= n else f"{n} of {planned}"
    unfinished = "" if planned <= n else "; unfinished"
    return f"{model}, {count} example{'s' if planned != 1 else ''}{of}{unfinished}"


def _numbers(facts: Facts) -> tuple[KeyNumber, ...]:
    line = max(facts.always_accept.value, facts.always_reject.value)
    lazy = "" if math.isnan(line) else f" {facts.lazy.title()} everything would give {line:.2f}."
    return (
        KeyNumber(
            "Answers that are right",
            facts.ga,
            "generator",
            f"Share of its answers that match the gold answer ({RULE_WORDS[facts.tables.rule]}).",
        ),
        KeyNumber(
            "Verdicts on its own answers that are right",
            facts.ea,
            "evaluator",
            f"Share of its verdicts that agree with the gold answer.{lazy}",
        ),
        KeyNumber(
            "Verdicts on a right and a wrong answer",
            facts.balanced,
            "evaluator",
            "Balanced accuracy with one right and one wrong answer a question; 0.50 is a coin.",
        ),
        KeyNumber(
            "Attention on the passage, answering over judging",
            facts.ratio,
            "context",
            "How many times more attention the passage gets when the model answers; 1 is no "
            "difference.",
        ),
    )
