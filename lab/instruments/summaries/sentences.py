"""The sentences of a report, each chosen by a rule that a reader can check against the tables.

A direction is named only where the interval excludes "no difference" and there are enough
independent units, counted among the examples in which that very thing was measured; that there is
no difference is said only where the interval is narrow. What a judge that reads nothing would
score is said next to what this one scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from lab.instruments.statistics import Estimate
from lab.instruments.summaries.facts import ENOUGH, Facts

FEW = 30
"""Below this many examples a report says that it is a first look."""

NARROW = 10
"""A bootstrap over fewer independent units than this gives intervals that are too narrow."""

HARDLY = 1.2
"""An interval of a ratio within 1/1.2 and 1.2 may count as hardly any difference."""

REGION_WORDS = {
    "sink": "the first token, where attention rests",
    "template": "the markup of the prompt",
    "demonstrations": "the worked questions before the real one",
    "instruction": "the instruction",
    "question": "the question",
    "candidate": "the candidate answer",
    "cue": "the last words of the prompt",
}


def less(ratio: float) -> str:
    """How much less the smaller side is, from a ratio above one: "4.4 times less", "9% less"."""
    return f"{ratio:.1f} times less" if ratio >= 1.25 else f"{_percent(1 - 1 / ratio)} less"


def more(ratio: float) -> str:
    return f"{ratio:.1f} times more" if ratio >= 1.25 else f"{_percent(ratio - 1)} more"


def reading_finding(ratio: Estimate, units: int) -> str:
    """What the generator-to-evaluator ratio of attention on the passage says, as a sentence.

    ``units`` is the number of independent clusters that the ratio rests on (never more than its
    examples): below ENOUGH no direction is named.
    """
    if min(units, ratio.n) < ENOUGH or math.isnan(ratio.low):
        return (
            "Too few examples to say whether the passage gets less attention when the model judges "
            f"(ratio {ratio.value:.2f}, n = {ratio.n}{from_passages(ratio.n, units)})"
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


def from_passages(n: int, units: int) -> str:
    """Words to add to ``n`` examples where they share passages: " from 8 passages", or nothing."""
    if not 0 < units < n:
        return ""
    return " from a single passage" if units == 1 else f" from {units} passages"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "less than 1%"


# --- findings -----------------------------------------------------------------------------------


def _base_rate(facts: Facts) -> str:
    accepted, ea = facts.acceptance, facts.ea.value
    if math.isnan(accepted.value):
        return ""
    if accepted.value <= 0.1:
        share = _share("rejects", 1 - accepted.value, accepted.n)
        return share + _one_sided("rejecting", ea, facts.always_reject.value)
    if accepted.value >= 0.9:
        share = _share("accepts", accepted.value, accepted.n)
        return share + _one_sided("accepting", ea, facts.always_accept.value)
    return _two_sided(facts)


def _share(verb: str, share: float, n: int) -> str:
    count = round(share * n)
    text = "all" if count == n else f"nearly all ({count} of {n})"
    return f"It {verb} {text if share >= 0.95 else f'{share:.0%}'} of its own answers. "


def _one_sided(doing: str, ea: float, line: float) -> str:
    gap = abs(ea - line)
    if gap < 1e-9:
        return f"Its agreement of {ea:.2f} is exactly what {doing} everything would give."
    if gap <= 0.03:
        return (
            f"Its agreement of {ea:.2f} is close to the {line:.2f} that {doing} everything would "
            "give."
        )
    return f"Its agreement is {ea:.2f}; {doing} everything would give {line:.2f}."


def _two_sided(facts: Facts) -> str:
    """For a judge that accepts some and rejects some, its score next to those of lazy judges."""
    ea, accept, reject = (e.value for e in (facts.ea, facts.always_accept, facts.always_reject))
    start = "Its verdicts on its own answers are right"
    scores = f"{start} for {ea:.2f} of them"
    lazy = f"{facts.lazy} everything would give {max(accept, reject):.2f}"
    if facts.units.own < ENOUGH or math.isnan(facts.against_lazy.low):
        return f"{scores}; {lazy}."
    if facts.against_lazy.high < 0:
        return f"{scores}. A judge that reads nothing does better: {lazy}."
    if facts.delta.excludes(0):
        often = "more" if facts.delta.value > 0 else "less"
        return (
            f"{start} {often} often than the answers are ({ea:.2f} against {accept:.2f}). "
            "Accepting everything and rejecting everything would give "
            f"{accept:.2f} and {reject:.2f}."
        )
    if facts.against_lazy.excludes(0):
        return f"{scores}; {lazy}."
    return f"{scores}: no clear difference from a judge that reads nothing ({lazy})."


def _retest(facts: Facts) -> str:
    balanced = facts.balanced
    if math.isnan(balanced.low) or facts.units.pairs < ENOUGH:
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
    """Whether the difference of the title is there against a prompt of the same length too."""
    ratio, filler = facts.ratio, facts.filler_ratio
    if facts.units.attention < ENOUGH or not ratio.excludes(1) or math.isnan(filler.value):
        return ""
    against = "gainst an answering prompt filled up to the same length"
    if facts.units.filler < ENOUGH or math.isnan(filler.low):
        return (
            "Whether the longer prompt explains the title cannot be told: it was compared with an "
            f"answering prompt of the same length on too few examples (n = {filler.n})."
        )
    if _hardly_any_left(filler, ratio):
        return (
            f"A{against}, hardly any difference is left (ratio {filler.format()}): the longer "
            "prompt may explain the title."
        )
    if not filler.excludes(1):
        return (
            f"Whether the longer prompt explains the title cannot be told: a{against}, the ratio "
            f"is {filler.format()}."
        )
    change = less(filler.value) if filler.value > 1 else more(1 / filler.value)
    if (filler.value > 1) == (ratio.value > 1):
        return (
            f"The longer prompt alone does not explain it: a{against}, the passage still gets "
            f"{change} attention when it judges."
        )
    return (
        f"A{against}, the difference turns round: the passage gets {change} attention when it "
        "judges, so the longer prompt may explain the title."
    )


def _hardly_any_left(filler: Estimate, ratio: Estimate) -> bool:
    """Whether the whole interval is near 1, and leaves at most a quarter of the title's difference
    (in logarithms, so that half and double are alike)."""
    most = min(abs(math.log(ratio.value)) / 4, math.log(HARDLY))
    return filler.low > 0 and max(-math.log(filler.low), math.log(filler.high)) <= most


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
    counts = moved.loc[moved["gained"].isin(list(REGION_WORDS)), "gained"].value_counts()
    if facts.units.attention < ENOUGH or counts.empty or 2 * counts.iloc[0] <= k:
        return text
    where = REGION_WORDS[str(counts.index[0])]
    return f"{text} When it judges, most of them ({counts.iloc[0]} of {k}) turn to {where}."


def _patched_head(facts: Facts) -> str:
    """The head that moves the role's decision most; without a test, see `patching`."""
    effects = facts.tables.head_effects
    effects = effects[(effects["contrast"] == "role") & effects["value"].notna()]
    if effects.empty or facts.units.study < ENOUGH:
        return ""
    if facts.units.patched < NARROW:
        some = _examples(int(effects["n"].max()), facts.units.patched)
        return f"Heads were patched on only {some}: too few to name one that moves the decision."
    # A few examples can carry a large mean: what is named is seen in the interval too.
    steady = effects[(effects["low"] > 0) | (effects["high"] < 0)]
    if steady.empty:
        return "No single head, copied from one run into the other, is seen to move the decision."
    best = steady.iloc[int(steady["value"].abs().to_numpy().argmax())]
    runs = ("answering", "judging") if best["direction"] == "a_into_b" else ("judging", "answering")
    way = "towards" if best["value"] > 0 else "away from"
    low, high = sorted(abs(100 * best[end]) for end in ("low", "high"))
    heads = len(effects) // effects["direction"].nunique()
    return (
        f"Copying one head (layer {best['layer']}, head {best['head']}) from the {runs[0]} into "
        f"the {runs[1]} run moves the choice of its first word {abs(best['value']):.0%} "
        f"[{low:.0f}, {high:.0f}] of the way {way} the other run's: the most of all {heads} heads, "
        "tried one by one."
    )


# --- cautions -----------------------------------------------------------------------------------


def _few_examples(facts: Facts) -> str:
    n, units = facts.n, facts.units.study
    if n == 0:
        return "The study holds no example."
    if n == 1:
        return "This is a single example: it has no intervals, and nothing follows for others."
    if n >= FEW and units >= NARROW:
        return ""
    only = f"Only {_examples(n, units)} were run"
    if units < ENOUGH:
        return f"{only}: too few to name a direction, so the numbers only show what was measured."
    if units < NARROW:
        of = "passages" if units < n else "examples"
        return (
            f"{only}. Intervals from so few {of} are too narrow: they miss the truth more often "
            "than they should. Take it as a first look."
        )
    return f"{only}, so the intervals are wide: take it as a first look."


def _examples(n: int, units: int) -> str:
    """A number of examples, and of the passages that they share: "24 examples from 8 passages"."""
    return f"{n} example{'s' if n != 1 else ''}{from_passages(n, units)}"


def _unlikely_words(facts: Facts) -> str:
    mass = facts.label_mass.value
    if math.isnan(mass) or mass >= 0.5:
        return ""
    # What would round onto the limit is not given in figures.
    share = f"only {mass:.0%}" if mass < 0.495 else "just under half"
    return (
        f"The verdict words get {share} of the probability: the model would rather say "
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
