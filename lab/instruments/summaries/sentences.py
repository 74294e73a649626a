"""The sentences of a report, each chosen by a rule that a reader can check against the tables.

A direction is named only where the interval excludes "no difference" and there are enough
independent units, and what a judge that reads nothing would score is said next to what this one
scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import xarray as xr

from lab.instruments.statistics import Estimate
from lab.instruments.summaries import tables as T
from lab.instruments.summaries.summary import Tables

FEW = 30
"""Below this many examples a report says that it is a first look."""

ENOUGH = 6
"""Fewer independent units (passages) than this never give a direction: no paired test over five
of them can reach p < 0.05, however clear the numbers look."""

REGION_WORDS = {
    "sink": "the first token, where attention rests",
    "template": "the markup of the prompt",
    "demonstrations": "the worked questions before the real one",
    "instruction": "the instruction",
    "question": "the question",
    "candidate": "the candidate answer",
    "cue": "the last words of the prompt",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """The estimates that the sentences are made of; NaN where something was not measured."""

    tables: Tables
    n: int
    units: int
    ga: Estimate
    ea: Estimate
    delta: Estimate
    acceptance: Estimate
    always_accept: Estimate
    always_reject: Estimate
    balanced: Estimate
    auroc: Estimate
    ratio: Estimate
    filler_ratio: Estimate
    label_mass: Estimate


def gather(ds: xr.Dataset, tables: Tables) -> Facts:
    """The estimates that a headline needs, from the tables of a study."""

    def judged(metric: str) -> Estimate:
        return T.find(tables.agreement, scope="all", metric=metric)

    def retested(metric: str) -> Estimate:
        return T.find(tables.balanced, scope="all", rung="hardest", metric=metric)

    def ratio(numerator: str) -> Estimate:
        return T.find(
            tables.ratios,
            numerator=numerator,
            denominator="evaluator",
            region="context",
            normalisation="raw",
            aggregate="mean",
        )

    n = ds.sizes.get("example", 0)
    return Facts(
        tables=tables,
        n=n,
        units=T.independent(ds),
        ga=judged(f"ga_{tables.rule}"),
        ea=judged("ea"),
        delta=judged("delta"),
        acceptance=judged("acceptance"),
        always_accept=judged("always_accept"),
        always_reject=judged("always_reject"),
        balanced=retested("balanced_accuracy"),
        auroc=retested("auroc"),
        ratio=ratio("generator"),
        filler_ratio=ratio("generator_filler"),
        label_mass=T.find(tables.label_mass, rung="own"),
    )


def less(ratio: float) -> str:
    """How much less the smaller side is, from a ratio above one: "4.4 times less", "9% less"."""
    return f"{ratio:.1f} times less" if ratio >= 1.25 else f"{_percent(1 - 1 / ratio)} less"


def more(ratio: float) -> str:
    return f"{ratio:.1f} times more" if ratio >= 1.25 else f"{_percent(ratio - 1)} more"


def reading_finding(ratio: Estimate, units: int) -> str:
    """What the generator-to-evaluator ratio of attention on the passage says, as a sentence.

    ``units`` is the number of independent clusters: below ENOUGH no direction is named.
    """
    if units < ENOUGH or math.isnan(ratio.low):
        return (
            "Too few examples to say whether the passage gets less attention when the model judges "
            f"(ratio {ratio.value:.1f}, n = {ratio.n})"
        )
    if ratio.excludes(1):
        change = less(ratio.value) if ratio.value > 1 else more(1 / ratio.value)
        return (
            f"When it judges, the model puts {change} attention on the passage than when it answers"
        )
    return (
        "No clear difference between answering and judging in the attention on the passage "
        f"(ratio {ratio.format()})"
    )


def are(count: int) -> str:
    """A number with its verb: "none is", "1 is", "8 are"."""
    return {0: "none is", 1: "1 is"}.get(count, f"{count} are")


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "less than 1%"


# --- findings -----------------------------------------------------------------------------------


def _base_rate(facts: Facts) -> str:
    accepted, ea = facts.acceptance.value, facts.ea.value
    if math.isnan(accepted):
        return ""
    if accepted <= 0.1:
        return _one_sided("rejects", 1 - accepted, "rejecting", ea, facts.always_reject.value)
    if accepted >= 0.9:
        return _one_sided("accepts", accepted, "accepting", ea, facts.always_accept.value)
    lazy = max(
        ("accepting", facts.always_accept.value), ("rejecting", facts.always_reject.value),
        key=lambda judge: judge[1],
    )  # fmt: skip
    if ea < lazy[1] - 0.03:
        return (
            f"Its verdicts on its own answers are right for {ea:.2f} of them. A judge that reads "
            f"nothing does better: {lazy[0]} everything would give {lazy[1]:.2f}."
        )
    lines = f"{facts.always_accept.value:.2f} and {facts.always_reject.value:.2f}"
    both = f"Accepting everything and rejecting everything would give {lines}."
    if facts.units >= ENOUGH and facts.delta.excludes(0):
        more = "more" if facts.delta.value > 0 else "less"
        return (
            f"Its verdicts on its own answers are right {more} often than the answers are "
            f"({ea:.2f} against {facts.always_accept.value:.2f}). {both}"
        )
    return (
        f"Its verdicts on its own answers are right about as often as the answers are ({ea:.2f} "
        f"against {facts.always_accept.value:.2f}; no clear difference). {both}"
    )


def _one_sided(verb: str, share: float, doing: str, ea: float, line: float) -> str:
    gap = abs(ea - line)
    start = f"It {verb} {'all' if share == 1 else f'{share:.0%}'} of its own answers. "
    if gap < 1e-9:
        return start + f"Its agreement of {ea:.2f} is exactly what {doing} everything would give."
    if gap <= 0.03:
        return (
            start + f"Its agreement of {ea:.2f} is close to the {line:.2f} that {doing} everything "
            "would give."
        )
    return start + f"Its agreement is {ea:.2f}; {doing} everything would give {line:.2f}."


def _retest(facts: Facts) -> str:
    balanced = facts.balanced
    if math.isnan(balanced.low) or facts.units < ENOUGH:
        return ""
    start = "Shown the right answer and the hardest wrong one to the same question, "
    score = f"balanced accuracy {balanced.format()}"
    if balanced.low > 0.5:
        return f"{start}it tells them apart better than a coin ({score})."
    if balanced.high < 0.5:
        return f"{start}its verdicts are worse than a coin ({score})."
    knows = ""
    if facts.auroc.low > 0.5:
        knows = (
            " Yet its log-odds rank right above wrong answers more often than not (AUROC "
            f"{facts.auroc.format()}): it knows more than its verdict says."
        )
    return f"{start}its verdicts cannot be told from a coin ({score}).{knows}"


def _length_control(facts: Facts) -> str:
    ratio, filler = facts.ratio, facts.filler_ratio
    if facts.units < ENOUGH or not ratio.excludes(1) or math.isnan(filler.low):
        return ""
    against = "gainst an answering prompt filled up to the same length"
    if filler.excludes(1) and (filler.value > 1) == (ratio.value > 1):
        change = less(filler.value) if filler.value > 1 else more(1 / filler.value)
        return (
            f"The longer prompt alone does not explain it: a{against}, the passage still gets "
            f"{change} attention when it judges."
        )
    return (
        f"A{against} there is no such difference (ratio {filler.format()}): the longer prompt may "
        "explain the title."
    )


def _shared_heads(facts: Facts) -> str:
    overlap, instead = facts.tables.overlap, facts.tables.where_instead
    k, total = len(overlap.generator), len(facts.tables.head_differences)
    if k < 2 or total < 3 * k:
        return ""
    text = (
        f"Of the {k} heads that read the passage most when it answers, {are(overlap.shared)} also "
        f"among the {k} that read it most when it judges (chance: {k * k / total:.1f})."
    )
    moved = instead[instead["evaluator_context"] < instead["generator_context"]]
    gained = moved.loc[moved["gained"].isin(list(REGION_WORDS)), "gained"]
    if len(gained) > k / 2:
        names, counts = np.unique(gained.to_numpy(dtype=str), return_counts=True)
        text += f" When it judges, they turn most to {REGION_WORDS[names[int(counts.argmax())]]}."
    return text


def _patched_head(facts: Facts) -> str:
    effects = facts.tables.top_heads
    effects = effects[effects["contrast"] == "role"]
    if effects.empty or facts.units < ENOUGH:
        return ""
    found = effects[effects["significant"]]
    if found.empty:
        return (
            "No single head, copied from one run into the other, has an effect that survives "
            "correction for the number of heads."
        )
    best = found.iloc[int(found["value"].abs().to_numpy().argmax())]
    runs = ("answering", "judging") if best["direction"] == "a_into_b" else ("judging", "answering")
    place = f"layer {best['layer']}, head {best['head']}"
    way = "towards" if best["value"] > 0 else "away from"
    return (
        f"Copying one head ({place}) from the {runs[0]} into the "
        f"{runs[1]} run moves the choice of its first word {abs(best['value']):.0%} of the way "
        f"{way} the other run's: no other head does more."
    )


# --- cautions -----------------------------------------------------------------------------------


def _few_examples(facts: Facts) -> str:
    if facts.n == 0:
        return "The study holds no example."
    if facts.n == 1:
        return "This is a single example: it has no intervals, and nothing follows for others."
    if facts.n >= FEW and facts.units >= ENOUGH:
        return ""
    passages = f" from {facts.units} passages" if 1 < facts.units < facts.n else ""
    passages = " from a single passage" if facts.units == 1 else passages
    only = f"Only {facts.n} examples{passages} were run"
    if facts.units < ENOUGH:
        return f"{only}: too few to name a direction, so the numbers only show what was measured."
    return f"{only}, so the intervals are wide: take it as a first look."


def _unlikely_words(facts: Facts) -> str:
    mass = facts.label_mass.value
    if math.isnan(mass) or mass >= 0.5:
        return ""
    return (
        f"The verdict words get only {mass:.0%} of the probability: the model would rather say "
        "something else, so its verdicts are weak evidence."
    )


FINDINGS: tuple[Callable[[Facts], str], ...] = (
    _base_rate,
    _retest,
    _length_control,
    _patched_head,
    _shared_heads,
)
CAUTIONS: tuple[Callable[[Facts], str], ...] = (_unlikely_words, _few_examples)
LOOKING = "Attention shows where the model looks, not what it uses; patching shows what it uses."
"""Said where attention was measured."""

ALWAYS = (
    "Agreement on its own answers depends on how many of them are right; the re-test with one "
    "right and one wrong answer does not.",
    "Intervals cover 95% and resample examples, or passages where several examples share one.",
)


def meaning(facts: Facts, least: int = 3, most: int = 5) -> tuple[str, ...]:
    """Between ``least`` and ``most`` plain sentences: findings, then cautions, then what is true
    of every study."""
    cautions = [text for rule in CAUTIONS if (text := rule(facts))]
    findings = [text for rule in FINDINGS if (text := rule(facts))][: most - len(cautions)]
    said = findings + cautions
    known = [LOOKING, *ALWAYS] if facts.ratio.n else list(ALWAYS)
    return tuple(said + known[: max(0, least - len(said))])
