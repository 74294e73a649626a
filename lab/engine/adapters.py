"""Adapters: small trained changes of a model, shipped or of one's own, merged into its weights."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.engine.weights import DEFAULT, reason
from lab.errors import LabError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SHIPPED = ("both", "generator", "evaluator")
"""Adapters for the default model that come with the package."""

ABOUT = "rolelens.json"
"""The file in an adapter's folder that says how it was trained."""

_CONFIG = "adapter_config.json"

WEIGHTS = "adapter_model.safetensors"
"""The file in an adapter's folder that holds its weights."""

PROMPTING = ("layout", "format", "verdict_words")
"""What an adapter remembers of the prompts that it was trained on."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter in a local folder, as peft writes it.

    Attributes:
        name: what results call it.
        folder: holds ``adapter_config.json`` and ``adapter_model.safetensors``.
        sha256: hash of both.
        prompting: layout, format and verdict words of the prompts that it was trained on; empty
            where it does not say.
        about: all that its ``rolelens.json`` says.
    """

    name: str
    folder: Path
    sha256: str
    prompting: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)


def find_adapter(name: str, model: str) -> Adapter:
    """An adapter by its name or folder.

    Args:
        name: one of SHIPPED, or a folder as peft writes it.
        model: name of the model that it shall be put into.

    Raises:
        LabError: there is no such adapter, it is damaged, or it was trained for another model.
    """
    if name in SHIPPED:
        if model != DEFAULT:
            raise LabError(
                f'The adapter "{name}" that comes with Role Lens was trained for {DEFAULT}, not '
                f"for {model}. Train one with lab train-adapter --model {model}."
            )
        folder = Path(str(files("lab") / "adapters" / name))
    else:
        folder = Path(name).expanduser()
    if not folder.is_dir():
        raise LabError(
            f"There is no adapter {name!r}: give {', '.join(SHIPPED)}, or the folder of an adapter "
            "(lab train-adapter makes one)."
        )
    missing = [file for file in (_CONFIG, WEIGHTS) if not (folder / file).is_file()]
    if missing:
        raise LabError(
            f"{folder} is no finished adapter: it has no {' and no '.join(missing)}. "
            "If it is still being trained, let lab train-adapter end."
        )
    _check_kind(folder)
    about = _read_json(folder / ABOUT) if (folder / ABOUT).is_file() else {}
    prompting = _prompting(about, folder)
    title = name if name in SHIPPED else folder.resolve().name
    return Adapter(title, folder, adapter_hash(folder), prompting, about)


def check_adapter(has: Adapter | None, name: str | None, model: str) -> None:
    """Raise LabError where a loaded model has another adapter than the one asked for by name.

    Args:
        has: what was merged into the loaded model.
        name: what a recipe asks for, as in `find_adapter`; None for no adapter.
        model: the recipe's.
    """
    asked = None if name is None else find_adapter(name, model)
    if (asked and asked.sha256) != (has and has.sha256):
        wanted, found = (f"the adapter {a.name}" if a else "no adapter" for a in (asked, has))
        raise LabError(
            f"The recipe asks for {wanted}, but the lens has {found}: give the recipe and "
            "lab.load_lens the same adapter."
        )


def _prompting(about: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What a ``rolelens.json`` says of the prompts; LabError where it is damaged."""
    recipe = about.get("recipe", {})
    if not isinstance(recipe, dict):
        raise LabError(f"{folder / ABOUT} is damaged: its recipe is no JSON object.")
    found = {key: recipe[key] for key in PROMPTING if key in recipe}
    words = found.get("verdict_words")
    if words is not None:
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise LabError(f"{folder / ABOUT} is damaged: its verdict words are {words!r}.")
        found["verdict_words"] = tuple(words)
    return found


def _check_kind(folder: Path) -> None:
    kind = _read_json(folder / _CONFIG).get("peft_type")
    if kind != "LORA":
        raise LabError(
            f"{folder} holds an adapter of the kind {kind!r}. Only LoRA adapters, which can be "
            "merged into the weights, can be used."
        )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(
            f"{path} is not readable JSON ({error}): copy or train the adapter again."
        ) from error
    if not isinstance(data, dict):
        raise LabError(f"{path} does not hold a JSON object: copy or train the adapter again.")
    return data


def adapter_hash(folder: Path) -> str:
    """SHA-256 over an adapter's settings and weights."""
    total = hashlib.sha256()
    for name in (_CONFIG, WEIGHTS):
        total.update((folder / name).read_bytes())
    return total.hexdigest()


def merge_adapter(model: PreTrainedModel, adapter: Adapter) -> PreTrainedModel:
    """The model with the adapter's change added to its weights: W + (alpha / r) B A.

    Merging makes a plain model again, on which every instrument works as on any other; its logits
    equal those of peft's own forward up to rounding.

    Raises:
        LabError: the adapter does not fit the model.
    """
    import warnings

    from peft import PeftModel
    from safetensors import SafetensorError

    try:
        with warnings.catch_warnings():
            # peft warns of missing keys; we look at them ourselves.
            warnings.simplefilter("ignore")
            wrapped = PeftModel.from_pretrained(model, str(adapter.folder))
        _check_filled(wrapped, adapter)
        merged: PreTrainedModel = wrapped.merge_and_unload(safe_merge=True)
    except SafetensorError as error:
        raise LabError(
            f"{adapter.folder / WEIGHTS} is broken or cut off ({reason(error)}) Copy or "
            "train the adapter again."
        ) from error
    except (ValueError, LookupError, RuntimeError, OSError, TypeError) as error:
        raise LabError(
            f"The adapter in {adapter.folder} does not fit {model.config.model_type} weights of "
            f"this shape: {reason(error)} It was trained for another model, or is damaged: choose "
            "the model that it was trained for, or train it again."
        ) from error
    return merged


def _check_filled(wrapped: Any, adapter: Adapter) -> None:
    """Raise ValueError where the file's tensors are not those that the model asks for."""
    from peft import get_peft_model_state_dict
    from safetensors import safe_open

    # Embeddings are never merged; asked for them, peft would look for the model's hub page.
    wanted = set(get_peft_model_state_dict(wrapped, save_embedding_layers=False))
    with safe_open(adapter.folder / WEIGHTS, framework="numpy") as file:
        found = set(file.keys())
    if wanted != found:
        raise ValueError(f"{len(wanted ^ found)} of its tensors have no counterpart.")
