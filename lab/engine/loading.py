"""A Lens from a name."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lab.engine.adapters import Adapter, find_adapter, merge_adapter
from lab.engine.weights import (
    DEFAULT,
    DTYPES,
    Weights,
    check_room,
    find_weights,
    quiet_transformers,
    read_config,
    reason,
)
from lab.errors import LabError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from lab.engine.lens import Lens


TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model")


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """What is known of a model before its weights are loaded: enough to make all prompts.

    Attributes:
        weights: where it lies, and its hash.
        tokenizer: its own.
        max_tokens: the longest sequence that it was made for.
        adapter: what will be merged into the weights, or None.
    """

    weights: Weights
    tokenizer: PreTrainedTokenizerBase
    max_tokens: int
    adapter: Adapter | None = None

    @property
    def sha256(self) -> str:
        """Hash of the weights; with an adapter, of its hash and theirs."""
        if self.adapter is None:
            return self.weights.sha256
        both = f"{self.weights.sha256} {self.adapter.sha256}"
        return hashlib.sha256(both.encode()).hexdigest()

    @property
    def prompting(self) -> Mapping[str, Any]:
        """How it is asked unless told otherwise; see `Lens.prompting`."""
        return self.weights.prompting if self.adapter is None else self.adapter.prompting

    @property
    def title(self) -> str:
        """What reports call the model: its name, and that of its adapter."""
        name = self.weights.title
        return name if self.adapter is None else f"{name} + {self.adapter.name}"


def load_lens(
    name: str = DEFAULT,
    *,
    adapter: str | None = None,
    device: str = "cpu",
    dtype: str = "float32",
    check: bool = True,
) -> Lens:
    """A Lens around a model, ready to run.

    Args:
        name: ``smollm2-135m-instruct`` (the default, fetched and converted once), a hub id, a
            local Hugging Face folder, or a local ``.gguf`` file.
        adapter: ``both``, ``generator`` or ``evaluator`` for the default model, trained for these
            roles, or the folder of a LoRA adapter. It is merged into the weights.
        device: a torch device, such as ``cpu`` or ``cuda``.
        dtype: ``float32``, or to save memory ``bfloat16`` or ``float16``. Small effects of single
            heads drown in the rounding of the last two.
        check: whether to compare packed with plain runs first (about a second); see
            `lab.engine.selfcheck`.

    Raises:
        LabError: one sentence on what is wrong (no such model or adapter, no network, broken or
            pickled file, wrong hash, unsupported architecture, too little memory) and what to do.

    Code from model repositories is never run.
    """
    if dtype not in DTYPES:
        raise LabError(f"Unknown dtype {dtype!r}: use one of {', '.join(DTYPES)}.")
    _device(device)
    return open_lens(outline(name, adapter), device=device, dtype=dtype, check=check)


def outline(name: str, adapter: str | None = None) -> Outline:
    """The Outline of a model, fetched and converted if need be, and of an adapter for it.

    Raises:
        LabError: as `load_lens` does, but for what only the weights can show.
    """
    from transformers import AutoTokenizer

    change = find_adapter(adapter, name) if adapter else None
    weights = find_weights(name)
    config = _config(weights)
    if not any((weights.folder / name).is_file() for name in TOKENIZER_FILES):
        raise LabError(
            f"{weights.folder} has no tokenizer (none of {', '.join(TOKENIZER_FILES)}). Save it "
            "there with tokenizer.save_pretrained."
        )
    with _told(weights, "tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(
            weights.folder, local_files_only=True, trust_remote_code=False
        )
    longest = getattr(config.get_text_config(), "max_position_embeddings", None)
    return Outline(weights, tokenizer, int(longest or 1024), change)


def open_lens(
    model: Outline, *, device: str = "cpu", dtype: str = "float32", check: bool = True
) -> Lens:
    """The Lens of an Outline; see `load_lens`."""
    from lab.engine.lens import lens_from

    loaded = open_model(model, dtype=dtype)
    if model.adapter is not None:
        loaded = merge_adapter(loaded, model.adapter)
    return lens_from(
        loaded.to(_device(device)),
        model.tokenizer,
        name=model.title,
        source=model.weights.source,
        sha256=model.sha256,
        adapter=model.adapter,
        prompting=model.prompting,
        check=check,
    )


def open_model(
    model: Outline, *, dtype: str = "float32", attention: str = "eager"
) -> PreTrainedModel:
    """The plain Hugging Face model of an Outline, on the CPU, without its adapter.

    Args:
        model: which one.
        dtype: type of the weights in memory.
        attention: name of the attention kernel, as transformers knows it.

    Raises:
        LabError: the weights cannot be read, or there is too little memory.
    """
    import torch
    from transformers import AutoModelForCausalLM

    check_room(model.weights, dtype)
    with _told(model.weights, "weights"):
        loaded: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            model.weights.folder,
            dtype=getattr(torch, dtype),
            attn_implementation=attention,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
        )
    return loaded


def _config(weights: Weights) -> Any:
    """The configuration of a decoder-only language model, or a LabError that says what it is."""
    from transformers import AutoConfig
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as KNOWN

    stored = read_config(weights.folder / "config.json")
    kind = stored.get("model_type")
    if kind not in CONFIG_MAPPING_NAMES:
        why = (
            "needs Python code from its own folder, which is never run"
            if "auto_map" in stored
            else f"is of the type {kind!r}, which this version of transformers does not know"
        )
        raise LabError(f"{weights.title} {why}: choose another model.")
    with _told(weights, "config.json"):
        config = AutoConfig.from_pretrained(weights.folder, trust_remote_code=False)
    text = config.get_text_config()
    if kind not in KNOWN or config.is_encoder_decoder or not _has_heads(text):
        raise LabError(
            f"{weights.title} is of the type {kind!r}, which is no decoder-only language model "
            "with attention heads in every layer: choose one of a style such as Llama, Qwen2, "
            "Gemma 3, GPT-2 or GPT-NeoX."
        )
    return config


def _has_heads(config: Any) -> bool:
    return all(getattr(config, name, None) for name in ("num_hidden_layers", "num_attention_heads"))


def _device(name: str) -> torch.device:
    import torch

    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise LabError(
            f"The device {name!r} cannot be used here: {reason(error)} Use device='cpu'."
        ) from error
    return device


@contextlib.contextmanager
def _told(weights: Weights, part: str) -> Any:
    """Turn whatever transformers raises about one part of a model into a LabError."""
    import torch

    try:
        with quiet_transformers(), contextlib.redirect_stderr(None):
            yield
    except (MemoryError, torch.OutOfMemoryError) as error:
        raise LabError(
            f"There is too little memory for {weights.title}. Close other programs, load it "
            "with dtype='bfloat16', or take a smaller model."
        ) from error
    except Exception as error:
        why = reason(error)
        if "ignore_mismatched_sizes" in why:
            why = "they have other shapes than its config.json says."
        raise LabError(
            f"transformers cannot read the {part} of {weights.title} in {weights.folder}: {why} "
            "The folder may lack a file, or hold one of another model."
        ) from error
