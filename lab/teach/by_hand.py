"""The exercises of notebook 05."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from lab.roles import Prompt, VerdictTokens, log_odds
from lab.teach.compare import Floats, Mistake, fault
from lab.teach.exercise import Exercise

if TYPE_CHECKING:
    from lab.instruments.case import Case
    from lab.instruments.reading import Reading

EXACT = 1e-4


def _mass(answer: Any, cache: Any, reading: Reading) -> str | None:
    from lab.instruments.reading import membership

    spans = membership(reading.prompt)[0].astype(float)
    patterns = [
        cache["pattern", layer][0].float().cpu().numpy() for layer in range(len(reading.mass))
    ]
    truth = reading.mass.astype(float)
    sizes = np.maximum(reading.span_tokens, 1)
    before = np.stack([pattern[:, -2] for pattern in patterns]) @ spans
    column = np.stack([pattern[:, :, -1] for pattern in patterns]) @ spans
    mistakes = [
        Mistake(before, "That is the row of the token before the decision: the decision is last."),
        Mistake(
            column,
            "That is a column: what every token gives to the decision. Take the row of the "
            "decision, [head, query, key] with query = -1.",
        ),
        Mistake(truth / sizes, "That is the mean over a span's tokens: masses are sums."),
        Mistake(truth.transpose(1, 0, 2), "The axes are [head, layer, span]: layers come first."),
        Mistake(truth.transpose(0, 2, 1), "The axes are [layer, span, head]: spans come last."),
        Mistake(truth.mean((0, 1)), "That is the mean over all heads: keep [layer, head, span]."),
        Mistake(truth.mean(1), "That is the mean over each layer's heads: keep them apart."),
        Mistake(truth.sum(1), "That is the sum over each layer's heads: keep them apart."),
        Mistake(truth[0], "That is layer 0 only: stack all layers."),
    ]
    return fault(answer, truth, mistakes, atol=EXACT, rtol=0, axes=("layer", "head", "span"))


def _log_odds(
    answer: Any, logits: Float[np.ndarray, " token"], verdict: VerdictTokens
) -> str | None:
    row = np.asarray(getattr(logits, "tolist", lambda: logits)(), dtype=float)
    yes, no = (row[list(ids)] for ids in (verdict.accept, verdict.reject))
    truth = log_odds(row, verdict)
    total = np.logaddexp.reduce(row)
    accept, reject = (np.exp(np.logaddexp.reduce(side) - total) for side in (yes, no))
    mistakes = [
        Mistake(-truth, "The sign: accept minus reject."),
        Mistake(
            yes.max() - no.max(),
            "That takes the likeliest spelling of each word: sum the probabilities of all of them.",
        ),
        Mistake(yes[0] - no[0], "That takes the first spelling of each word: sum over all."),
        Mistake(yes.mean() - no.mean(), "That is a mean of logits: logits are no probabilities, "
                "and do not average. Use logsumexp over each side."),
        Mistake(yes.sum() - no.sum(), "That is a sum of logits: sum the probabilities, that is, "
                "use logsumexp over each side."),
        Mistake(accept - reject, "That is a difference of probabilities: take their logarithms."),
        Mistake(accept / reject, "Those are the odds: take the logarithm."),
        Mistake(accept / (accept + reject), "That is the probability of accepting."),
        Mistake(np.log(accept), "That is log P(accept): subtract log P(reject)."),
    ]  # fmt: skip
    return fault(answer, truth, mistakes, atol=EXACT, rtol=0)


def _patch(
    answer: Any, case: Case, source: Prompt, target: Prompt, layer: int, head: int
) -> str | None:
    found = _patched_verdicts(case, source, target, layer, head)
    told = {
        "nothing": "Nothing has changed: does the hook return z, and is it given to the run?",
        "same index": "The output stands at the number that the decision has in the other prompt: "
        "it belongs at the last token.",
        "all heads": "All heads of the layer were replaced: index the head, too.",
        "layer above": "That is the next layer: layers count from 0.",
        "layer below": "That is the layer before: layers count from 0.",
        "next head": "That is the next head: heads count from 0.",
        "zero": "The head is silenced: put the other run's output there, not zeros.",
        "reverse": "That is the other direction: run the judging prompt, with the output of the "
        "answering run.",
    }
    mistakes = [Mistake(found[name], words) for name, words in told.items() if name in found]
    mistakes.append(Mistake(-found["right"], "The sign: accept minus reject."))
    return fault(answer, found["right"], mistakes, atol=EXACT, rtol=0)


def _patched_verdicts(
    case: Case, source: Prompt, target: Prompt, layer: int, head: int
) -> dict[str, float]:
    """The verdict's log-odds after the patch that is asked for, and after usual wrong ones."""
    from lab.engine.edits import Edit, ablated, set_to
    from lab.engine.forward import Keep
    from lab.engine.packing import Branch

    lens, end = case.lens, target.decision
    z, back = (lens.run([Branch(p.token_ids)], Keep(heads=True))[0].heads for p in (source, target))
    assert z is not None and back is not None

    def put(at: int, l: int, h: int) -> Edit:  # noqa: E741
        return set_to("head", l, [at], z[l, h, 0], h)

    edits: dict[str, tuple[Edit, ...]] = {
        "right": (put(end, layer, head),),
        "nothing": (),
        "all heads": tuple(put(end, layer, h) for h in range(lens.n_heads)),
        "zero": (ablated("head", layer, [end], head),),
    }
    if source.decision < len(target):
        edits["same index"] = (put(source.decision, layer, head),)
    if layer + 1 < lens.n_layers:
        edits["layer above"] = (put(end, layer + 1, head),)
    if layer > 0:
        edits["layer below"] = (put(end, layer - 1, head),)
    if head + 1 < lens.n_heads:
        edits["next head"] = (put(end, layer, head + 1),)
    runs = lens.run([Branch(target.token_ids, change) for change in edits.values()])
    rows: list[Floats] = [np.asarray(run.logits, dtype=float)[0] for run in runs]
    reverse = set_to("head", layer, [source.decision], back[layer, head, 0], head)
    other = lens.run([Branch(source.token_ids, (reverse,))])[0]
    rows.append(np.asarray(other.logits, dtype=float)[0])
    return {
        name: log_odds(row, case.verdict)
        for name, row in zip((*edits, "reverse"), rows, strict=True)
    }


EXERCISES = (
    Exercise(
        "05.mass",
        "What is the attention of the decision on each span, [layer, head, span], from the "
        "patterns in the cache?",
        ("cache", "reading"),
        _mass,
        "These are the lab's numbers, from every activation of the run instead of one row a head.",
    ),
    Exercise(
        "05.log_odds",
        "What are the log-odds of the verdict, log P(accept) - log P(reject), from one row of "
        "logits?",
        ("logits", "verdict"),
        _log_odds,
        "The softmax's denominator is the same for both words, so it never had to be computed.",
    ),
    Exercise(
        "05.patch",
        "What are the log-odds of the verdict when the head's output at the decision comes from "
        "the answering run?",
        ("case", "generator", "evaluator", "layer", "head"),
        _patch,
        "The lab does the same for all heads at once, as branches of one pass.",
    ),
)
