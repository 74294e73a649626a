"""Answers without the passage, as hard wrong candidates: what the model would make up.

They are the hard negatives of "Can LLMs Judge Better Than They Generate?" (arXiv 2606.28050).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from lab.data import Example
from lab.engine.weights import cache_folder
from lab.errors import LabError
from lab.roles import Prompter, apply_control

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from lab.engine.loading import Outline

BATCH = 32
NEW_TOKENS = 16

log = logging.getLogger("lab")


def closed_book_answers(
    model: Outline, prompter: Prompter, examples: Sequence[Example]
) -> tuple[str, ...]:
    """The untrained model's greedy answers, up to 16 tokens, when the passages are masked.

    One for each example, in their order. They depend on the model and the prompts alone, and are
    kept in the cache folder, so that adapters trained on the same questions ask for them once.
    """
    names = _names(examples)
    prompts = {
        name: prompter.render(apply_control("context_masked", e, "")[1], "generator").token_ids
        for name, e in zip(names, examples, strict=True)
    }
    asked = hashlib.sha256(repr((model.sha256, sorted(prompts.items()))).encode()).hexdigest()
    kept = cache_folder() / "closed-book" / f"{asked[:16]}.json"
    if not prompts:
        return ()
    found = _kept(kept)
    if found.keys() == prompts.keys():
        return tuple(found[name] for name in names)
    from lab.engine.loading import open_model

    log.info("Asking %d questions without their passages, for wrong candidates.", len(prompts))
    plain = open_model(model, dtype="bfloat16", attention="sdpa")
    answers = dict(_answers(plain, model, prompts))
    _keep(kept, answers)
    return tuple(answers[name] for name in names)


def _names(examples: Sequence[Example]) -> list[str]:
    """The examples' ids, made unique by a number where several sources have the same."""
    seen: Counter[str] = Counter()
    names = []
    for example in examples:
        seen[example.id] += 1
        again = seen[example.id] > 1
        names.append(f"{example.id}\0{seen[example.id]}" if again else example.id)
    return names


@torch.no_grad()
def _answers(
    plain: PreTrainedModel, model: Outline, prompts: Mapping[str, Sequence[int]]
) -> Iterator[tuple[str, str]]:
    pad = model.tokenizer.eos_token_id or 0
    ordered = sorted(prompts.items(), key=lambda item: len(item[1]))
    for first in range(0, len(ordered), BATCH):
        part = ordered[first : first + BATCH]
        width = max(len(ids) for _, ids in part)
        ids = torch.tensor([[pad] * (width - len(row)) + list(row) for _, row in part])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for _, row in part])
        made = plain.generate(
            input_ids=ids, attention_mask=mask, max_new_tokens=NEW_TOKENS, do_sample=False,
            pad_token_id=pad,
        )  # fmt: skip
        for (name, _), row in zip(part, made[:, width:], strict=True):
            text = model.tokenizer.decode(row, skip_special_tokens=True).strip()
            yield name, text.partition("\n")[0].strip()


def _kept(path: Path) -> dict[str, str]:
    """The answers that were kept; none where there is no whole file of them."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _keep(path: Path, answers: Mapping[str, str]) -> None:
    aside = path.with_suffix(f".{os.getpid()}.part")  # two trainings may ask at the same time
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(json.dumps(answers, ensure_ascii=False), encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        raise LabError(
            f"The cache folder {path.parent} cannot be written ({error.strerror or error}): set "
            "ROLELENS_CACHE to one that can."
        ) from error
