"""Training an adapter: from a recipe to a folder that peft and `lab.load_lens` can open."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lab.engine.adapters import ABOUT, WEIGHTS, adapter_hash
from lab.engine.alone import alone
from lab.engine.loading import outline
from lab.errors import LabError
from lab.roles import Prompter
from lab.training.about import about, write_about
from lab.training.bundles import Bundle
from lab.training.card import CARD, write_card
from lab.training.checkpoint import (
    begun,
    drop_checkpoint,
    load_checkpoint,
    save_checkpoint,
    trainable,
)
from lab.training.closed_book import closed_book_answers
from lab.training.learner import open_learner
from lab.training.lessons import Lesson, Lessons, fit, lesson_bundle, plan, read_lessons
from lab.training.objective import Learner, loss, progress_of
from lab.training.recipe import TrainingRecipe

if TYPE_CHECKING:
    from lab.engine.loading import Outline

Progress = Callable[[int, int, str], None]
"""Called with steps done, steps in all, and a word on how it goes."""

RECIPE = "recipe.json"
CURVE_POINTS = 5
"""How often, besides the start, the questions kept out of training are tried."""

CHECKPOINT_SECONDS = 60.0
WARM_UP = 0.05
LOWEST_RATE = 0.1

log = logging.getLogger("lab")


def train_adapter(
    recipe: TrainingRecipe,
    folder: str | Path,
    *,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train an adapter as far as it is not trained yet; what is known of it afterwards.

    Checkpoints are written every minute, and on Ctrl-C. Stopped and called again with the same
    recipe and folder, it goes on and, with the same number of threads, ends with the same weights
    as an unbroken run. The folder then holds ``adapter_config.json`` and
    ``adapter_model.safetensors`` as peft writes them, ``rolelens.json``: how it was made, and its
    learning curves, and ``README.md``, which says the same in words.

    Args:
        recipe: what is trained on what.
        folder: where it is stored.
        progress: told after each step.

    Raises:
        LabError: the model or data cannot be had, or are there to evaluate on; the folder holds
            another training, is being trained into by another process, or cannot be written; or
            the model's attention cannot be run along a tree. Checkpoints stay.
    """
    folder = Path(folder)
    _check_sources(recipe)
    _check_recipe(folder, recipe)
    if (folder / ABOUT).exists():
        log.info("%s holds this adapter already; nothing is left to train.", folder)
        _tidy(folder)
        return _read(folder / ABOUT)
    _make(folder)
    with alone(folder):
        _claim(folder, recipe)
        return _train_here(recipe, folder, progress)


def _train_here(recipe: TrainingRecipe, folder: Path, progress: Progress | None) -> dict[str, Any]:
    """Train into a folder that is held."""
    torch.manual_seed(recipe.seed)
    model = outline(recipe.model)
    prompter = Prompter(
        model.tokenizer,
        layout=recipe.layout,
        format=recipe.format,
        verdict_words=recipe.verdict_words,
    )
    lessons = _lessons(recipe, model, prompter)
    learner = open_learner(recipe, model, prompter.verdict_tokens())
    made = _train(recipe, folder, learner, lessons, prompter, model.sha256, progress)
    _save(folder, learner, model)
    facts = about(recipe, model, lessons, prompter, made, adapter_hash(folder))
    write_about(folder, facts)
    _tidy(folder)
    return facts


def _tidy(folder: Path) -> None:
    """What is left to do, or to be done after a kill, once an adapter is stored."""
    if not (folder / CARD).exists():
        write_card(folder)
    drop_checkpoint(folder)


def _check_sources(recipe: TrainingRecipe) -> None:
    """Raise LabError where a recipe would learn from what adapters are evaluated on."""
    for spec in recipe.data:
        source, _, rest = spec.strip().partition(":")
        if source == "builtin" or (source == "world" and rest.partition("/")[0] == "test"):
            raise LabError(
                f"{spec} is there to evaluate adapters on, not to train them: train on "
                "world:train/SEED/N, a benchmark or questions of your own."
            )


def _check_recipe(folder: Path, recipe: TrainingRecipe) -> None:
    """Raise LabError for a folder in which something was trained by another recipe."""
    stored = _stored(folder)
    differ = [] if stored is None else recipe.differences(stored)
    # Where nothing was trained yet, for instance since the data did not suffice, nothing is lost.
    trained = (folder / ABOUT).exists() or (folder / WEIGHTS).exists() or begun(folder)
    if differ and trained:
        raise LabError(
            f"{folder} holds a training with another recipe: {'; '.join(differ)}. Go on with the "
            "recipe that it was begun with, or choose another --out folder."
        )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"{folder} cannot be written ({error.strerror or error}).") from error


def _claim(folder: Path, recipe: TrainingRecipe) -> None:
    """Note the recipe in a folder that is held, unless another one was trained there."""
    _check_recipe(folder, recipe)
    if _stored(folder) == recipe.as_dict():
        return
    try:
        text = json.dumps(recipe.as_dict(), indent=1)
        (folder / RECIPE).write_text(text, encoding="utf-8")
    except OSError as error:
        raise LabError(f"{folder} cannot be written ({error.strerror or error}).") from error


def _stored(folder: Path) -> dict[str, Any] | None:
    """The recipe that a folder was begun with, or that its adapter was trained by."""
    if (folder / RECIPE).exists():
        return _read(folder / RECIPE)
    if (folder / ABOUT).exists():
        found: dict[str, Any] = _read(folder / ABOUT).get("recipe", {})
        return found
    return None


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(f"{path} is damaged ({error}): choose another --out folder.") from error
    if not isinstance(found, dict):
        raise LabError(f"{path} is damaged (no JSON object): choose another --out folder.")
    return found


def _lessons(recipe: TrainingRecipe, model: Outline, prompter: Prompter) -> Lessons:
    lessons = read_lessons(recipe, lambda asked: closed_book_answers(model, prompter, asked))
    lessons = fit(lessons, recipe, prompter, model.max_tokens)
    counts = [sum(map(len, groups)) for groups in (lessons.train, lessons.dev)]
    log.info("%d questions to learn from, %d to draw the learning curves from.", *counts)
    return lessons


def _train(
    recipe: TrainingRecipe,
    folder: Path,
    learner: Learner,
    lessons: Lessons,
    prompter: Prompter,
    model_sha256: str,
    progress: Progress | None,
) -> dict[str, Any]:
    """Run all steps that are left; the curves, losses and seconds of the whole training."""
    planned = plan(lessons.train, recipe)
    size = recipe.bundles_per_step
    steps = [planned[i : i + size] for i in range(0, len(planned), size)]
    silent = recipe.verdicts_from * len(steps)
    optimizer = torch.optim.AdamW(
        trainable(learner.model).values(), lr=recipe.learning_rate, weight_decay=0.0
    )
    of = {"lessons": lessons.fingerprint, "model": model_sha256}
    state = load_checkpoint(folder, learner.model, optimizer)
    state = state or {"step": 0, "seconds": 0.0, "tokens": 0, "losses": [], "curve": []}
    _check_same(state.setdefault("of", of), of, folder)
    if state["step"]:
        log.info("Going on after step %d of %d.", state["step"], len(steps))
    points = {round(len(steps) * i / CURVE_POINTS) for i in range(CURVE_POINTS + 1)}
    saved, changing = time.monotonic(), False
    try:
        for step in range(state["step"], len(steps) + 1):
            if step in points and not any(point["step"] == step for point in state["curve"]):
                state["curve"].append({"step": step, **_point(learner, lessons, prompter)})
            if step == len(steps):
                break
            start = time.monotonic()
            value, tokens = _gradients(recipe, learner, steps[step], prompter, step >= silent)
            rate = recipe.learning_rate * _schedule(step, len(steps))
            changing = True
            if tokens:
                _update(learner, optimizer, rate)
            state["losses"].append(round(value, 5))
            state["tokens"] += tokens
            state["step"] = step + 1
            state["seconds"] += time.monotonic() - start
            changing = False
            if progress is not None:
                progress(step + 1, len(steps), f"loss {value:.3f}")
            if time.monotonic() - saved > CHECKPOINT_SECONDS:
                save_checkpoint(folder, learner.model, optimizer, state)
                saved = time.monotonic()
    except KeyboardInterrupt:
        # Weights that are half changed are of no step; those of the last checkpoint stay.
        if state["step"] and not changing:
            save_checkpoint(folder, learner.model, optimizer, state)
        raise
    save_checkpoint(folder, learner.model, optimizer, state)
    return state


def _check_same(stored: dict[str, str], now: dict[str, str], folder: Path) -> None:
    """Raise LabError where a training would go on with other questions or weights."""
    differ = [f"the {name}" for name in now if stored.get(name) != now[name]]
    if differ:
        raise LabError(
            f"Since the checkpoint in {folder} was written, {' and '.join(differ)} changed: "
            "restore what was there, or choose another --out folder."
        )


def _schedule(step: int, steps: int) -> float:
    """Share of the highest learning rate: a short rise, then a cosine down to a tenth."""
    rise = max(1, round(WARM_UP * steps))
    if step < rise:
        return (step + 1) / rise
    done = (step - rise) / max(1, steps - rise)
    return LOWEST_RATE + (1 - LOWEST_RATE) * 0.5 * (1 + math.cos(math.pi * done))


def _gradients(
    recipe: TrainingRecipe,
    learner: Learner,
    parts: Sequence[Sequence[Lesson]],
    prompter: Prompter,
    verdicts: bool,
) -> tuple[float, int]:
    """Add up the gradients of one step; its mean loss and the tokens that were run.

    Where there is nothing to learn for this role, no token is run.
    """
    total, tokens = 0.0, 0
    for part in parts:
        bundle = lesson_bundle(part, prompter, recipe.role, verdicts=verdicts)
        if not bundle.rows:
            continue
        value = loss(learner, bundle, recipe.role) / len(parts)
        value.backward()  # type: ignore[no-untyped-call]
        total += value.item()
        tokens += len(bundle)
    return total, tokens


def _update(learner: Learner, optimizer: torch.optim.AdamW, rate: float) -> None:
    """One step of the optimizer along the gradients, which are spent."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    torch.nn.utils.clip_grad_norm_(trainable(learner.model).values(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def _point(learner: Learner, lessons: Lessons, prompter: Prompter) -> dict[str, Any]:
    bundles: list[Bundle] = [
        lesson_bundle(group[:4], prompter, "both") for group in lessons.dev if group
    ]
    point: dict[str, Any] = progress_of(learner, bundles)
    return point


def _save(folder: Path, learner: Learner, model: Outline) -> None:
    """Write the adapter as peft does, in half precision."""
    for parameter in trainable(learner.model).values():
        parameter.data = parameter.data.half()
    # The path of the base model on this machine says nothing to others.
    for config in learner.model.peft_config.values():
        config.base_model_name_or_path = model.weights.title
        # As a set, the order in the file would change from process to process, and its hash too.
        config.target_modules = sorted(config.target_modules)
    try:
        # The embeddings are not trained; asked for them, peft would look for the model's hub page.
        learner.model.save_pretrained(
            str(folder), safe_serialization=True, save_embedding_layers=False
        )
        (folder / CARD).unlink(missing_ok=True)  # peft's empty form; ours follows
    except OSError as error:
        raise LabError(f"{folder} cannot be written ({error.strerror or error}).") from error
