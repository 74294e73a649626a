"""The exercises of notebook 03."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lab.roles import SPANS
from lab.teach.compare import Floats, Mistake, fault
from lab.teach.exercise import Exercise

if TYPE_CHECKING:
    import xarray as xr

    from lab.instruments.reading import Reading

SINK, CONTEXT = SPANS.index("sink"), SPANS.index("context")


def _other_spans(values: Floats, said: str) -> list[Mistake]:
    """The mistake of taking another span, for one value of each span."""
    return [
        Mistake(values[i], f"{said} the {name}, not the passage: mind the index of the span.")
        for i, name in enumerate(SPANS)
        if i != CONTEXT
    ]


def _sink(answer: Any, answering: Reading, judging: Reading) -> str | None:
    with np.errstate(all="ignore"):
        share = _without_sink(answering)
        context, sink = (answering.mass[..., i].astype(float) for i in (CONTEXT, SINK))
        mistakes = [
            Mistake(context.mean(), "The sink is still in: divide each head by what it leaves."),
            Mistake(
                context.mean() / (1 - sink.mean()),
                "That is a ratio of two means: divide head by head, then take the mean. The heads "
                "that rest count as much as the others.",
            ),
            Mistake(
                (context / (1 - answering.mass[..., SINK])).mean(),
                "Nearly. 1 - sink loses digits where a head leaves the sink almost nothing: sum "
                "the masses of the other spans instead.",
            ),
            Mistake(share[..., CONTEXT].sum(), "That is the sum over the heads: take the mean."),
            Mistake((context - sink).mean(), "Do not subtract the sink: divide by what is left."),
            Mistake(
                (context / sink).mean(), "That is passage over sink: divide by what is not sink."
            ),
            Mistake(
                _without_sink(judging)[..., CONTEXT].mean(),
                "That is when judging: take `answering`.",
            ),
            *_other_spans(share.mean((0, 1)), "That is the share of"),
        ]
    return fault(answer, share[..., CONTEXT].mean(), mistakes)


def _without_sink(reading: Reading) -> Floats:
    mass = reading.mass.astype(float)
    rest = np.delete(mass, SINK, axis=-1).sum(-1, keepdims=True)
    return np.asarray(np.divide(mass, rest, out=np.zeros_like(mass), where=rest > 0))


def _enrichment(answer: Any, answering: Reading, judging: Reading) -> str | None:
    mass = judging.mass.astype(float).mean((0, 1))
    tokens = judging.span_tokens.astype(float)
    share = tokens / tokens.sum()
    others = answering.span_tokens.astype(float)
    with np.errstate(all="ignore"):
        enrichment = mass / share
        context = mass[CONTEXT]
        mistakes = [
            Mistake(context, "That is the mass itself: divide it by the passage's share."),
            Mistake(
                context / tokens[CONTEXT],
                "That is the mass of one token. Divide by the passage's share of the tokens, so "
                "that 1 means what even attention gives.",
            ),
            Mistake(1 / enrichment[CONTEXT], "Upside down: mass over share, not share over mass."),
            Mistake(context * share[CONTEXT], "Divide by the share, do not multiply."),
            Mistake(share[CONTEXT], "That is the share of the tokens: divide the mass by it."),
            Mistake(
                context / (others[CONTEXT] / others.sum()),
                "The tokens are those of the answering prompt: each prompt has its own length.",
            ),
            Mistake(
                answering.mass[..., CONTEXT].mean() / (others[CONTEXT] / others.sum()),
                "That is when answering: take `judging`.",
            ),
            Mistake(
                context * (tokens.sum() - 1) / tokens[CONTEXT],
                "The sink's token is left out of the length: enrichment counts all tokens.",
            ),
            *_other_spans(enrichment, "That is the enrichment of"),
        ]
    return fault(answer, enrichment[CONTEXT], mistakes)


def _ratio(answer: Any, study: xr.Dataset) -> str | None:
    over, under = (_shares(study, role) for role in ("generator", "evaluator"))
    with np.errstate(all="ignore"):
        logs = np.log(over / under)
        heads = np.log(_heads(study, "generator") / _heads(study, "evaluator"))
        biggest = [_heads(study, r).max(2).mean(1) for r in ("generator", "evaluator")]
        filler = _shares(study, "generator_filler")
        mistakes = [
            Mistake(
                (over / under).mean(),
                "That is the arithmetic mean of the ratios, in which a factor of 2 outweighs one "
                "of 1/2. Take the mean of the logarithms, and exp of it.",
            ),
            Mistake(
                over.mean() / under.mean(),
                "That is the ratio of the two means: the pairs are lost. Divide question by "
                "question first.",
            ),
            Mistake(np.exp(-logs.mean()), "Upside down: generator over evaluator."),
            Mistake((under / over).mean(), "Upside down, and an arithmetic mean."),
            Mistake(logs.mean(), "That is the mean of the logarithms: exp makes a ratio of it."),
            Mistake(
                np.exp(heads[np.isfinite(heads)].mean()),
                "That is a ratio for each head, and heads that hardly look anywhere then decide: "
                "take the mean over layers and heads before dividing.",
            ),
            Mistake(
                np.exp(np.log(biggest[0] / biggest[1]).mean()),
                "That takes the largest head of each layer: take the mean over layers and heads.",
            ),
            Mistake(
                np.exp(np.log(filler / under).mean()),
                "That is the length control (generator_filler) over the evaluator: the comparison "
                'to make next. Here take the role "generator".',
            ),
            Mistake(
                np.exp(np.log(over / filler).mean()),
                "That is the generator over its own length control: the role does not change.",
            ),
            *_other_spans(_by_span(study), "That is the ratio of"),
            Mistake(
                np.exp(
                    np.log(
                        _shares(study, "generator", name="norm_mass")
                        / _shares(study, "evaluator", name="norm_mass")
                    ).mean()
                ),
                "That is the norm-weighted ratio: take `mass`.",
            ),
        ]
    return fault(answer, np.exp(logs.mean()), mistakes)


def _heads(study: xr.Dataset, role: str, span: str = "context", name: str = "mass") -> Floats:
    """Attention [example, layer, head] on a span."""
    chosen = study[name].sel(role=role, span=span).transpose("example", "layer", "head")
    return np.asarray(chosen.values, dtype=float)


def _shares(study: xr.Dataset, role: str, span: str = "context", name: str = "mass") -> Floats:
    """Attention of each example on a span, mean over layers and heads."""
    return np.asarray(_heads(study, role, span, name).mean((1, 2)))


def _by_span(study: xr.Dataset) -> Floats:
    return np.array(
        [
            np.exp(
                np.log(_shares(study, "generator", span) / _shares(study, "evaluator", span)).mean()
            )
            for span in SPANS
        ]
    )


EXERCISES = (
    Exercise(
        "03.sink",
        "What share of the attention that is not on the sink goes to the passage when answering, "
        "mean over the heads?",
        ("answering", "judging"),
        _sink,
        "What heads do when they do something is not drowned by what they do at rest.",
    ),
    Exercise(
        "03.enrichment",
        "How many times its share of the tokens does the passage get when judging, mean over the "
        "heads?",
        ("answering", "judging"),
        _enrichment,
        "1 is what even attention gives, whatever the length of the prompt.",
    ),
    Exercise(
        "03.ratio",
        "How many times more attention does the passage get when answering than when judging: "
        "ratio of each question, geometric mean over the questions?",
        ("study",),
        _ratio,
        "Each question is its own control, and 2 and 1/2 cancel.",
    ),
)
