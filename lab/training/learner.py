"""A model made ready to learn: weights frozen, an adapter put in, its tree attention checked."""

from __future__ import annotations

import warnings

import torch
from jaxtyping import Float

from lab.engine.loading import Outline, open_model
from lab.engine.weights import reason
from lab.errors import LabError
from lab.roles import VerdictTokens
from lab.training.bundles import bundle
from lab.training.objective import Learner
from lab.training.recipe import TrainingRecipe
from lab.training.rows import Row
from lab.training.tree import KERNEL, register_kernel

TOLERANCE = 1e-3
"""Largest accepted difference of logits between tree and plain attention, in float32, per unit of
the largest logit."""


def open_learner(recipe: TrainingRecipe, model: Outline, verdict: VerdictTokens) -> Learner:
    """The model of a recipe with a fresh adapter, which changes nothing yet.

    Raises:
        LabError: peft cannot adapt this architecture, or its attention is not what the tree
            kernel computes (sliding windows, for one).
    """
    from peft import LoraConfig, get_peft_model

    register_kernel()
    _check_kernel(model, recipe.max_tokens // 2)
    plain = open_model(model, dtype=recipe.precision, attention=KERNEL)
    torch.manual_seed(recipe.seed)
    config = LoraConfig(
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        lora_dropout=0.0,  # so that a step depends on nothing but the weights and the plan
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    try:
        with warnings.catch_warnings():
            # peft asks transformers for a property that is about to get another name.
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
            adapted = get_peft_model(plain, config)  # its own weights stay in float32
    except (ValueError, NotImplementedError) as error:
        raise LabError(f"peft cannot put LoRA into {model.weights.title}: {error}") from error
    adapted.eval()  # gradients flow, but nothing is dropped out at random
    return Learner(adapted, verdict, recipe.precision)


@torch.no_grad()
def _check_kernel(model: Outline, longest: int) -> None:
    """Compare three rows run as a tree with the same rows run alone.

    One of them is as long as the longest prompt, so that a window which is shorter shows.
    """
    tree = open_model(model, dtype="float32", attention=KERNEL).eval()
    ends = model.tokenizer.encode("One two three four five six seven", add_special_tokens=False)
    long = (ends * longest)[: min(longest, model.max_tokens - 2)]
    rows = [
        Row("answer", tuple(start), tuple(ends[-2:]))
        for start in (long, [*ends[:3], *ends], [*ends[:3], *ends[:1]])
    ]
    learner = Learner(_Bare(tree), VerdictTokens(("", ""), (), ()), "float32")  # type: ignore[arg-type]
    try:
        packed = learner.logits(bundle(rows))
    except (RuntimeError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise LabError(
            f"{model.weights.title} cannot be trained in bundles: {reason(error)} Models with full "
            "causal attention, such as those of the Llama style, can."
        ) from error
    tree.set_attn_implementation("eager")
    for row, logits in zip(rows, packed, strict=True):
        alone = _alone(tree, row)
        gap = float((logits - alone).abs().max() / alone.abs().max().clamp(min=1))
        if gap > TOLERANCE:
            raise LabError(
                f"{model.weights.title} cannot be trained in bundles: run along a tree its logits "
                f"differ by {gap:.2g} of the largest. Models with full causal attention can."
            )


def _alone(plain: torch.nn.Module, row: Row) -> Float[torch.Tensor, "place vocabulary"]:
    logits: torch.Tensor = plain(input_ids=torch.tensor([row.fed])).logits[0]
    return logits[len(row.prompt) - 1 :].float()


class _Bare:
    """A model without an adapter, in the place of one that has it."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model

    def get_base_model(self) -> torch.nn.Module:
        return self._model
