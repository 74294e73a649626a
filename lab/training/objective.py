"""What is minimised, and what the learning curves show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float

from lab.roles import VerdictTokens
from lab.training.bundles import Bundle
from lab.training.recipe import TrainedRole
from lab.training.tree import tree_mask

if TYPE_CHECKING:
    from peft import PeftModel

PRECISIONS = {"bfloat16": torch.bfloat16, "float32": torch.float32}


@dataclass(frozen=True, slots=True, eq=False)
class Learner:
    """A model with an adapter, and what its verdicts are made of."""

    model: PeftModel
    verdict: VerdictTokens
    precision: str

    def logits(self, bundle: Bundle) -> list[Float[torch.Tensor, "place vocabulary"]]:
        """For each row of a bundle the logits that predict its target, in float32."""
        dtype = PRECISIONS[self.precision]
        model = self.model.get_base_model()
        places = [place for row in bundle.places for place in row]
        mixed = torch.autocast("cpu", dtype=dtype, enabled=dtype is torch.bfloat16)
        with mixed:
            hidden = model.base_model(
                input_ids=torch.from_numpy(bundle.tokens)[None],
                position_ids=torch.from_numpy(bundle.positions)[None],
                # The kernel has masks of its own; this one keeps transformers from making one.
                attention_mask=torch.zeros(1, 1, 1, 1, dtype=dtype),
                use_cache=False,
                tree=tree_mask(bundle, dtype),
            ).last_hidden_state
            # Only the predicting tokens are unembedded: the vocabulary is the widest matrix.
            found = model.get_output_embeddings()(hidden[0, places]).float()
        return list(found.split([len(row) for row in bundle.places]))


def loss(learner: Learner, bundle: Bundle, role: TrainedRole) -> torch.Tensor:
    """The mean over answer tokens, plus the mean over judged candidates.

    An answer's loss is the cross-entropy of its tokens. A verdict's is the mean cross-entropy of
    the verdict word and the end of the turn; for ``verdict-only`` it is that of the choice between
    the two words, -log sigmoid(+-log-odds). Nothing but target tokens is learned.
    """
    answers: list[torch.Tensor] = []
    verdicts: list[torch.Tensor] = []
    weights: list[float] = []
    for row, logits in zip(bundle.rows, learner.logits(bundle), strict=True):
        if row.kind == "verdict" and role == "verdict-only":
            odds = _log_odds(logits[0], learner.verdict)
            verdicts.append(torch.nn.functional.softplus(-odds if row.accept else odds))
            weights.append(row.weight)
            continue
        each = torch.nn.functional.cross_entropy(logits, torch.tensor(row.target), reduction="none")
        if row.kind == "answer":
            answers.append(each)
        else:
            verdicts.append(each.mean())
            weights.append(row.weight)
    total = torch.zeros(())
    if answers:
        total = total + torch.cat(answers).mean()
    if verdicts:
        share = torch.tensor(weights)
        total = total + (torch.stack(verdicts) * share).sum() / share.sum()
    return total


def _log_odds(row: torch.Tensor, verdict: VerdictTokens) -> torch.Tensor:
    return row[list(verdict.accept)].logsumexp(0) - row[list(verdict.reject)].logsumexp(0)


@torch.no_grad()
def progress_of(learner: Learner, bundles: Iterable[Bundle]) -> dict[str, Any]:
    """How well both roles do on questions that are not trained on: a point of the learning curves.

    Returns:
        ``answers_exact``: share of questions whose gold answer is the greedy answer to the letter;
        ``answer_loss``: mean cross-entropy of its tokens; ``auroc``: of the log-odds, right
        candidates against the hardest wrong one; ``right_above_wrong``: share of questions with
        the right candidate above that wrong one, ties counting half; ``accepted_right``,
        ``accepted_wrong``: shares accepted; ``label_mass``: mean probability of a verdict word.
    """
    exact: list[bool] = []
    nll: list[float] = []
    pairs: list[tuple[float, float]] = []
    mass: list[float] = []
    for bundle in bundles:
        right: float | None = None
        for row, logits in zip(bundle.rows, learner.logits(bundle), strict=True):
            if row.kind == "answer":
                target = torch.tensor(row.target)
                exact.append(bool((logits.argmax(-1) == target).all()))
                nll.append(float(torch.nn.functional.cross_entropy(logits, target)))
                continue
            odds = float(_log_odds(logits[0], learner.verdict))
            labels = [*learner.verdict.accept, *learner.verdict.reject]
            mass.append(float(logits[0].softmax(-1)[labels].sum()))
            if row.accept:
                right = odds
            elif right is not None:
                # Rows come as the right candidate, then the wrong ones, hardest first.
                pairs.append((right, odds))
                right = None
    return {
        "questions": len(exact),
        "answers_exact": _mean(exact),
        "answer_loss": _mean(nll),
        "auroc": _auroc(pairs),
        "right_above_wrong": _mean([(a > b) + 0.5 * (a == b) for a, b in pairs]),
        "accepted_right": _mean([a > 0 for a, _ in pairs]),
        "accepted_wrong": _mean([b > 0 for _, b in pairs]),
        "label_mass": _mean(mass),
    }


def _mean(values: Sequence[float]) -> float | None:
    return round(float(np.mean(values)), 5) if values else None


def _auroc(pairs: Sequence[tuple[float, float]]) -> float | None:
    from sklearn.metrics import roc_auc_score

    if not pairs:
        return None
    labels = [1] * len(pairs) + [0] * len(pairs)
    scores = [a for a, _ in pairs] + [b for _, b in pairs]
    return round(float(roc_auc_score(labels, scores)), 5)
