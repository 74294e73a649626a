"""A training recipe: everything that decides what an adapter learns, as plain data."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, Literal, get_args

from lab.engine.weights import DEFAULT
from lab.errors import LabError
from lab.roles import LAYOUTS, VERDICT_WORDS
from lab.training.checks import (
    check_numbers,
    check_texts,
    placed,
    sources,
    two_verdict_words,
)

TrainedRole = Literal["generator", "evaluator", "both", "verdict-only"]

TRAINED_ROLES: tuple[TrainedRole, ...] = get_args(TrainedRole)
"""What may be trained.

``generator`` learns answers, ``evaluator`` verdicts and the end of the turn after them, ``both``
all of these. ``verdict-only`` is the control that touches the score channel alone: of the
evaluator's targets only the choice between the two verdict words (their log-odds) is trained, not
how likely a verdict is at all, and nothing after it. All four are taught from the same questions in
the same order at the same steps, so that they differ in their targets only: ``generator`` learns
what ``both`` learns without its verdicts, ``evaluator`` what is left without its answers.
"""

_CHOICES: dict[str, tuple[str, ...]] = {
    "role": TRAINED_ROLES,
    "layout": tuple(LAYOUTS),
    "format": ("auto", "chat", "plain"),
    "precision": ("bfloat16", "float32"),
}

_AT_LEAST = {
    "n": 1, "rank": 1, "alpha": 1, "learning_rate": 1e-7, "epochs": 1, "questions_per_bundle": 1,
    "bundles_per_step": 1, "wrong_per_question": 1, "max_tokens": 64, "dev_questions": 0,
    "unanswerable": 0,
}  # fmt: skip

_REAL = ("learning_rate", "unanswerable", "verdicts_from")
"""Fields that need not be whole numbers."""


@dataclass(frozen=True, slots=True)
class TrainingRecipe:
    """What is trained, on what, and how.

    Attributes:
        role: one of TRAINED_ROLES.
        model: name, folder, GGUF file or hub id, see `lab.load_lens`.
        data: sources, see `lab.data.load_examples`; one as a plain text, or several.
        n: questions per source; None for all.
        unanswerable: largest share of a source's questions that its passages do not answer; what
            is above it is left out.
        seed: of the adapter's first weights, the order of the questions, and the choice of
            wrong candidates.
        layout, format, verdict_words: how the prompts are written; the adapter keeps them, and
            studies of it use them unless told otherwise.
        rank, alpha: of LoRA (Hu et al. 2021, arXiv 2106.09685), on all linear layers but the
            unembedding; updates are scaled by alpha / rank.
        learning_rate: the highest one; it rises over the first twentieth of the steps and falls
            along a cosine to a tenth of itself.
        epochs: how often each question is seen.
        questions_per_bundle: most questions on the same passages that run together.
        bundles_per_step: bundles per step of the optimizer.
        verdicts_from: share of the steps before which no verdict is taught. A model must find an
            answer before it can compare it with a candidate, and answers take fewer tokens.
        wrong_per_question: most wrong candidates judged beside the right one. The right one weighs
            as much as all wrong ones together.
        max_tokens: about how long bundles may become: a question whose prompt needs more than
            half of it is left out.
        dev_questions: about how many questions are kept out of training, to draw the learning
            curves from.
        precision: ``bfloat16`` runs the frozen weights and the activations in half precision; the
            adapter itself is always trained in float32.
    """

    role: TrainedRole
    data: Sequence[str]
    model: str = DEFAULT
    n: int | None = None
    unanswerable: float = 0.2
    seed: int = 0
    layout: Literal["instruction_first", "context_first"] = "context_first"
    format: Literal["auto", "chat", "plain"] = "auto"
    verdict_words: tuple[str, str] = VERDICT_WORDS
    rank: int = 8
    alpha: int = 16
    learning_rate: float = 2e-3
    epochs: int = 1
    questions_per_bundle: int = 4
    bundles_per_step: int = 2
    verdicts_from: float = 0.0
    wrong_per_question: int = 3
    max_tokens: int = 1400
    dev_questions: int = 120
    precision: Literal["bfloat16", "float32"] = "bfloat16"

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", sources(self.data, "Training"))
        check_texts(self, ("model",))
        check_numbers(self, _REAL, float)
        check_numbers(self, [n for n in ("seed", *_AT_LEAST) if n not in _REAL])
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise LabError(
                    f"{name} is {getattr(self, name)!r}: it must be one of {', '.join(allowed)}."
                )
        for name, least in _AT_LEAST.items():
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise LabError(f"{name} is {value}: it must be at least {least:g}.")
        if not 0 <= self.verdicts_from < 1:
            raise LabError(
                f"verdicts_from is {self.verdicts_from}: it must be a share of the steps, at least "
                "0 and below 1."
            )
        object.__setattr__(self, "verdict_words", two_verdict_words(self.verdict_words))

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> TrainingRecipe:
        """The recipe that `as_dict` made this of; what it does not say is as usual.

        Raises:
            LabError: it is no recipe of this version.
        """
        lists = {"data", "verdict_words"}
        try:
            given: dict[str, Any] = {k: tuple(v) if k in lists else v for k, v in stored.items()}
            return cls(**given)
        except (TypeError, AttributeError) as error:
            raise LabError(
                f"This is no training recipe that this version knows ({error}): use the version "
                "that wrote it."
            ) from error

    def as_dict(self) -> dict[str, Any]:
        """The recipe as JSON-ready data."""
        data: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return data

    def differences(self, stored: Mapping[str, Any]) -> list[str]:
        """What a stored recipe has otherwise, in words; empty where it is the same.

        A field that it does not say, since it is older than the field, is as usual.
        """
        mine = self.as_dict()
        usual = type(self)(self.role, self.data).as_dict()
        theirs = {name: stored.get(name, usual[name]) for name in mine}
        here, there = placed(mine), placed(theirs)
        return [
            f"{name} was {theirs[name]!r}, now {mine[name]!r}"
            for name in mine
            if there[name] != here[name]
        ]

    def command(self, folder: str) -> str:
        """The shell command that trains this recipe into a folder."""
        parts = ["lab", "train-adapter", "--role", self.role]
        for spec in self.data:
            parts += ["--data", spec]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.default is not MISSING and value != field.default:
                text = ",".join(value) if isinstance(value, tuple) else str(value)
                parts += [f"--{field.name.replace('_', '-')}", text]
        return shlex.join([*parts, "--out", folder])
