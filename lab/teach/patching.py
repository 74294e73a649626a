"""The exercises of notebook 04."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from lab.roles import Prompt, align
from lab.teach.compare import Mistake, fault, whole
from lab.teach.exercise import Exercise, describe

if TYPE_CHECKING:
    from lab.instruments.case import Case
    from lab.instruments.patching import Patched


def _position(answer: Any, generator: Prompt, evaluator: Prompt) -> str | None:
    here = generator.where("evidence")[0]
    there = align(generator, evaluator)(here)
    if isinstance(answer, list | tuple) and len(answer) and answer[0] == there:
        return "Those are several positions: the first one is asked for."
    place = whole(answer)
    if place is None:
        return f"A position, a whole number, is asked for, and this is {describe(answer)}."
    if place == there:
        return None
    if place == there - len(evaluator):
        return "That is counted from the end: positions count from 0."
    known = {
        here: "That is its place in the answering prompt. In the judging prompt",
        evaluator.where("context")[0]: "That is where the passage begins. There",
    }
    said = known.get(place, "Off by one. There" if abs(place - there) == 1 else "There")
    return f"{said} stands {_standing(evaluator, place)}; look for {_standing(evaluator, there)}."


def _standing(prompt: Prompt, place: int) -> str:
    if not -len(prompt) <= place < len(prompt):
        return f"nothing: it has {len(prompt)} tokens"
    return f"{prompt.tokens()[place]!r} of the {prompt.spans[place]}"


def _restoration(answer: Any, patched: Patched) -> str | None:
    a, b = (float(x) for x in patched.clean)
    into_b, into_a = (patched.head[i].astype(float) for i in (0, 1))
    mistakes = [
        Mistake(into_b - b, "That is the shift in logits: divide it by source - target."),
        Mistake((into_b - b) / (b - a), "The sign of the gap: source - target, not the reverse."),
        Mistake(
            (into_b - a) / (b - a),
            "That counts from the source: 0 must be what the target run does without a patch.",
        ),
        Mistake((into_b - a) / (a - b), "Subtract the target run's own value, not the source's."),
        Mistake(into_b / a, "Subtract the target's own value above and below the line."),
        Mistake(into_b / (a - b), "Subtract the target's own value above the line, too."),
        Mistake((into_a - a) / (b - a), "That is from judging into answering: take direction 0."),
        Mistake((into_a - b) / (a - b), "That is direction 1 with the gap of direction 0."),
        Mistake(into_b, "Those are the patched values: subtract, then divide."),
    ]
    return fault(answer, (into_b - b) / (a - b), mistakes, rtol=1e-3, axes=("layer", "head"))


def _together(
    answer: Any,
    clean: Float[np.ndarray, "question run"],
    patched: Float[np.ndarray, " question"],
) -> str | None:
    known = ~(np.isnan(clean).any(1) | np.isnan(patched))
    if not known.any():
        return "None of these questions has this contrast: run more questions."
    source, target = clean[known].astype(float).T
    end = patched[known].astype(float)
    gap, shift = source - target, end - target
    towards = shift * np.sign(gap)
    far = np.abs(gap) >= 0.5
    with np.errstate(all="ignore"):
        truth = towards.sum() / np.abs(gap).sum()
        mistakes = [
            Mistake(
                (shift / gap).mean(),
                "That is the mean of the ratios, in which the smallest gap weighs most: sum the "
                "shifts, sum the gaps, then divide.",
            ),
            Mistake(
                (shift / gap)[far].mean() if far.any() else np.nan,
                "That leaves the small gaps out, which is one way. Here keep all questions: sum "
                "the shifts, sum the gaps, then divide.",
            ),
            Mistake(np.median(shift / gap), "That is the median of the ratios."),
            Mistake(
                shift.sum() / gap.sum(),
                "Where source and target are the other way round, shift and gap change their sign "
                "and cancel others: turn both so that each gap is positive.",
            ),
            Mistake(shift.sum() / np.abs(gap).sum(), "Turn the shifts along with the gaps."),
            Mistake(towards.sum(), "That is the sum of the shifts: divide by that of the gaps."),
            Mistake(towards.mean(), "That is the mean shift in logits: divide by the mean gap."),
            Mistake(1 - truth, "That counts from the source: the shift is patched - target."),
        ]
    return fault(answer, truth, mistakes)


def _cut(answer: Any, case: Case, prompt: Prompt) -> str | None:
    from lab.engine.edits import knockout
    from lab.engine.packing import Branch
    from lab.roles import log_odds

    every = range(case.lens.n_layers)
    decision, evidence = [prompt.decision], prompt.where("evidence")
    later = range(max(evidence) + 1, len(prompt))
    cuts = (
        (),
        knockout(decision, evidence, every),
        knockout(decision, prompt.where("context"), every),
        knockout(later, evidence, every),
        knockout(prompt.where("candidate"), evidence, every) if prompt.candidate else (),
        knockout(decision, prompt.where("answer"), every) if prompt.where("answer") else (),
        knockout(decision, evidence, [case.lens.n_layers - 1]),
    )
    traces = case.lens.run([Branch(prompt.token_ids, cut) for cut in cuts])
    plain, *found = (log_odds(t.logits[0], case.verdict) for t in traces if t.logits is not None)
    change = found[0] - plain
    told = (
        "That is for the whole passage: the evidence is a part of it.",
        "That blinds all tokens behind the evidence: cut the decision's own look only.",
        "That blinds the candidate's tokens: cut the decision's look.",
        "That cuts the tokens of the answer: cut the whole evidence.",
        "That cuts the last layer only: cut in all layers.",
    )
    mistakes = [
        Mistake(found[0], "Those are the log-odds after the cut: subtract those before it."),
        Mistake(plain, "Those are the log-odds before the cut."),
        Mistake(-change, "The sign: after the cut minus before it."),
        *(Mistake(x - plain, words) for x, words in zip(found[1:], told, strict=True)),
    ]
    return fault(answer, change, mistakes, rtol=1e-3, atol=1e-4)


EXERCISES = (
    Exercise(
        "04.position",
        "At which position of the judging prompt stands the first token of the evidence of the "
        "answering prompt?",
        ("here", "there"),
        _position,
        "Patches between prompts of different length need such a map, token by token.",
    ),
    Exercise(
        "04.restoration",
        "What is R of each head, carried from answering (a) into judging (b)?",
        ("patched",),
        _restoration,
        "0: nothing happens; 1: the target decides like the source; R may lie outside of both.",
    ),
    Exercise(
        "04.together",
        "What is R over all questions, as the sum of the shifts over the sum of the gaps, each "
        "turned so that its gap is positive?",
        ("clean", "moved"),
        _together,
        "No question is left out, and none with a small gap decides alone.",
    ),
    Exercise(
        "04.cut",
        "By how much do the log-odds of the verdict change if the decision can no longer look at "
        "the evidence, in any layer?",
        ("case", "evaluator"),
        _cut,
        "That is what the decision's own look at the evidence adds, beside what other tokens "
        "handed on.",
    ),
)
