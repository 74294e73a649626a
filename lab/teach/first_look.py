"""The exercises of notebook 01."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lab.roles import SPANS
from lab.teach.compare import HeadMistake, Mistake, fault, head_fault, per_cent, strongest
from lab.teach.exercise import Exercise

if TYPE_CHECKING:
    from lab.instruments.behaviour import Behaviour
    from lab.instruments.reading import Reading

SINK, CONTEXT = SPANS.index("sink"), SPANS.index("context")


def _probability(answer: Any, behaviour: Behaviour) -> str | None:
    gold = behaviour.verdicts["gold"]
    odds = math.exp(gold.log_odds)
    truth = odds / (1 + odds)
    own = math.exp(behaviour.verdicts["own"].log_odds)
    return fault(
        answer,
        truth,
        [
            Mistake(
                gold.log_odds, "That is the log-odds itself: a probability lies between 0 and 1."
            ),
            Mistake(odds, "Those are the odds, P(Yes) / P(No): divide them by one plus the odds."),
            Mistake(1 / (1 + odds), "That is the probability of No: mind the sign in exp."),
            Mistake(
                truth * gold.label_mass,
                "That is P(Yes) among all words: it is asked for the case that the judge has to "
                "say one of the two.",
            ),
            Mistake(own / (1 + own), 'That is for the model\'s own answer: take the rung "gold".'),
            per_cent(truth),
        ],
    )


def _resting(answer: Any, answering: Reading, judging: Reading) -> str | None:
    sink = answering.mass[..., SINK]
    truth = float((sink > 0.5).mean())
    return fault(
        answer,
        truth,
        [
            Mistake((sink > 0.5).sum(), "That is how many heads; divide by the number of heads."),
            Mistake(
                sink.mean(),
                "That is the mean mass on the sink. Compare each head with one half first, then "
                "take the share of the heads for which it is true.",
            ),
            Mistake(
                (judging.mass[..., SINK] > 0.5).mean(), "That is when judging: take `answering`."
            ),
            Mistake((sink < 0.5).mean(), "Those are the heads with less than half on the sink."),
            Mistake(
                (sink.mean(1) > 0.5).mean(),
                "That is the share of the layers: do not average over a layer's heads first.",
            ),
            per_cent(truth),
        ],
    )


def _reader(answer: Any, answering: Reading, judging: Reading) -> str | None:
    others = [
        HeadMistake(
            strongest(answering.mass[..., i]), f"That head looks at the {name} most: mind the span."
        )
        for i, name in enumerate(SPANS)
        if i != CONTEXT and answering.span_tokens[i]
    ]
    role = HeadMistake(
        strongest(judging.mass[..., CONTEXT]),
        "That head looks at the passage most when judging: take `answering`.",
    )
    lost = HeadMistake(
        strongest(answering.mass[..., CONTEXT] - judging.mass[..., CONTEXT]),
        "That is the head with the largest difference between the roles, not the largest mass.",
    )
    return head_fault(answer, answering.mass[..., CONTEXT], [role, lost, *others])


EXERCISES = (
    Exercise(
        "01.probability",
        "With what probability does the judge accept the gold answer, if it has to say Yes or No?",
        ("behaviour",),
        _probability,
        "Log-odds and this probability say the same; log-odds add up where probabilities saturate.",
    ),
    Exercise(
        "01.resting",
        "What share of the heads puts more than half of its attention on the sink when answering?",
        ("answering", "judging"),
        _resting,
        "Heads at rest pull every mean over heads towards the sink.",
    ),
    Exercise(
        "01.reader",
        "Which head looks at the passage most when answering? Give (layer, head).",
        ("answering", "judging"),
        _reader,
        "It was chosen for being the largest, on this one question: try it on others.",
    ),
)
