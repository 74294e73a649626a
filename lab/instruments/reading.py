"""Reading: where the decision's attention goes, in every head, summed over the prompt's spans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt8

from lab.engine.forward import Keep
from lab.engine.packing import Branch
from lab.errors import LabError
from lab.instruments.case import Case
from lab.roles import MARKS, SPANS, Prompt


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Attention of one prompt's decision.

    Attributes:
        prompt: what was read.
        attention: [layer, head, token], rows of the decision; each sums to one.
        mass: [layer, head, span], raw mass; sums to one over the spans.
        norm_mass: [layer, head, span], mass weighted by the norm of what each token's value would
            write (Kobayashi et al. 2020), renormalised to one.
        mark_mass, norm_mark_mass: [layer, head, mark], the same on sub-spans, which overlap.
        span_tokens, mark_tokens: how many tokens each holds.
        candidate_to_context: [layer, head], attention of the candidate's tokens on the context,
            mean over the candidate's tokens; 0 where the candidate stands before the context, so
            that its tokens cannot see it; NaN without a candidate.
        logits: the decision's logits over the whole vocabulary, from the same pass.
    """

    prompt: Prompt
    attention: Float[np.ndarray, "layer head token"]
    mass: Float[np.ndarray, "layer head span"]
    norm_mass: Float[np.ndarray, "layer head span"]
    mark_mass: Float[np.ndarray, "layer head mark"]
    norm_mark_mass: Float[np.ndarray, "layer head mark"]
    span_tokens: Int[np.ndarray, " span"]
    mark_tokens: Int[np.ndarray, " mark"]
    candidate_to_context: Float[np.ndarray, "layer head"]
    logits: Float[np.ndarray, " vocabulary"]


def measure_reading(case: Case, prompt: Prompt) -> Reading:
    """Where the decision of a prompt looks.

    Attention rows are made from the first asked token on, that is the candidate's where it follows
    the context and else the decision; the tokens before it run as a trunk on the fast kernel.

    Raises:
        LabError: what is given is no prompt, but the name of a role, say.
    """
    if not isinstance(prompt, Prompt):
        raise LabError(
            f"measure_reading takes a prompt, not {prompt!r}: make one with "
            "case.prompt('generator') or case.prompt('evaluator', 'a candidate answer')."
        )
    candidate, context = prompt.where("candidate"), prompt.where("context")
    readers = candidate if candidate and context and candidate[-1] > context[0] else ()
    trace = case.lens.run(
        [Branch(prompt.token_ids, keep=(*readers, prompt.decision))],
        Keep(attention=True, value_norms=True),
    )[0]
    assert trace.attention is not None and trace.value_norms is not None
    assert trace.logits is not None
    attention = trace.attention[:, :, -1]
    to_context = np.full(attention.shape[:2], 0 if candidate else np.nan, np.float32)
    if readers:
        rows = trace.attention[:, :, :-1]
        to_context = rows[..., list(context)].sum(-1).mean(-1)
    weighted = _weighted(attention, trace.value_norms)
    return _summed(prompt, attention, weighted, to_context, trace.logits[-1])


def measure_answering(case: Case, prompt: Prompt, answer_ids: tuple[int, ...]) -> Reading:
    """Where a prompt's reader looks while it says a given answer, mean over the answer's tokens.

    The answer is teacher-forced: positions are the decision and all answer tokens but the last,
    that is, those that predict the answer. Attention on the answer's own earlier tokens belongs to
    no span of the prompt, so masses sum to at most one here.
    """
    tokens = (*prompt.token_ids, *answer_ids[:-1])
    keep = tuple(range(prompt.decision, len(tokens)))
    trace = case.lens.run([Branch(tokens, keep=keep)], Keep(attention=True, value_norms=True))[0]
    assert trace.attention is not None and trace.value_norms is not None
    assert trace.logits is not None
    weighted = _weighted(trace.attention, trace.value_norms[:, :, None])
    length = len(prompt)
    return _summed(
        prompt,
        trace.attention.mean(2)[..., :length],
        weighted.mean(2)[..., :length],
        np.full(trace.attention.shape[:2], np.nan, np.float32),
        trace.logits[0],
    )


def _weighted(
    attention: Float[np.ndarray, "*cell token"], norms: Float[np.ndarray, "*cell token"]
) -> Float[np.ndarray, "*cell token"]:
    """Attention times what each token would write, renormalised to one."""
    weighted = attention * norms
    total = weighted.sum(-1, keepdims=True)
    return np.divide(weighted, total, out=np.zeros_like(weighted), where=total > 0)


def _summed(
    prompt: Prompt,
    attention: Float[np.ndarray, "layer head token"],
    weighted: Float[np.ndarray, "layer head token"],
    candidate_to_context: Float[np.ndarray, "layer head"],
    logits: Float[np.ndarray, " vocabulary"],
) -> Reading:
    spans, marks = membership(prompt)
    return Reading(
        prompt=prompt,
        attention=attention,
        mass=attention @ spans,
        norm_mass=weighted @ spans,
        mark_mass=attention @ marks,
        norm_mark_mass=weighted @ marks,
        span_tokens=spans.sum(0).astype(np.int32),
        mark_tokens=marks.sum(0).astype(np.int32),
        candidate_to_context=candidate_to_context,
        logits=logits,
    )


def membership(
    prompt: Prompt,
) -> tuple[Float[np.ndarray, "token span"], Float[np.ndarray, "token mark"]]:
    """Which token is in which span and in which sub-span, as ones and zeros."""
    spans = np.zeros((len(prompt), len(SPANS)), np.float32)
    spans[range(len(prompt)), [SPANS.index(name) for name in prompt.spans]] = 1
    marks = np.zeros((len(prompt), len(MARKS)), np.float32)
    for column, name in enumerate(MARKS):
        marks[list(prompt.where(name)), column] = 1
    return spans, marks


def quantised(attention: Float[np.ndarray, "*cell token"]) -> UInt8[np.ndarray, "*cell token"]:
    """Attention in steps of 1/255, so off by at most 1/510."""
    return np.round(255 * np.clip(attention, 0, 1)).astype(np.uint8)
