"""A LoRA adapter with random weights for a tiny model, as peft writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch


def save_adapter(model: Path, folder: Path, seed: int = 0, **recipe: Any) -> Path:
    """An adapter that changes what the model says; ``recipe`` is what it was trained with."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    plain = AutoModelForCausalLM.from_pretrained(model)
    wrapped = get_peft_model(plain, LoraConfig(r=2, lora_alpha=4, target_modules="all-linear"))
    for name, parameter in wrapped.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    wrapped.save_pretrained(str(folder), save_embedding_layers=False)
    if recipe:
        (folder / "rolelens.json").write_text(
            json.dumps({"recipe": {"seed": seed, **recipe}}), encoding="utf-8"
        )
    return folder
