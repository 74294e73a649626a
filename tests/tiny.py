"""Tiny models with random weights, one for each architecture style, and a tokenizer for them."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from lab.engine.lens import Lens, lens_from

VOCAB = 320

_SHAPE = {
    "vocab_size": VOCAB, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4,
    "num_attention_heads": 4, "max_position_embeddings": 512,
}  # fmt: skip
_GROUPED = {**_SHAPE, "num_key_value_heads": 2}

CONFIGS: dict[str, Any] = {
    "llama": lambda: transformers.LlamaConfig(**_GROUPED),
    "qwen2": lambda: transformers.Qwen2Config(**_GROUPED),
    "qwen3": lambda: transformers.Qwen3Config(**_GROUPED, head_dim=8),
    "mistral": lambda: transformers.MistralConfig(**_GROUPED, sliding_window=10),
    "phi3": lambda: transformers.Phi3Config(**_GROUPED, pad_token_id=0),
    # Gemma 3: windowed and full layers mixed, one key/value head, norms behind attention and MLP.
    "gemma3": lambda: transformers.Gemma3TextConfig(
        **_SHAPE, num_key_value_heads=1, head_dim=8, sliding_window=10,
        layer_types=["sliding_attention", "sliding_attention", "full_attention",
                     "sliding_attention"],
    ),
    # Gemma 2: every other layer windowed, scores and logits capped, which SDPA cannot.
    "gemma2": lambda: transformers.Gemma2Config(
        **_GROUPED, head_dim=8, sliding_window=10, query_pre_attn_scalar=8,
        attn_logit_softcapping=5.0, final_logit_softcapping=3.0,
    ),
    "gpt2": lambda: transformers.GPT2Config(
        vocab_size=VOCAB, n_embd=32, n_layer=4, n_head=4, n_positions=512
    ),
    "gpt_neox": lambda: transformers.GPTNeoXConfig(**_SHAPE),
}  # fmt: skip
ARCHITECTURES = (
    "llama", "qwen2", "gemma3", "gpt2", "gpt_neox", "mistral", "qwen3", "phi3", "gemma2",
)  # fmt: skip

BORDER = 40
"""Up to this length "phi3_longrope" has one rotary embedding, beyond it another."""

_GPT = {"vocab_size": VOCAB, "n_embd": 32, "n_layer": 4, "n_head": 4, "n_positions": 512}
UNUSUAL: dict[str, Any] = {
    "gptj": lambda: transformers.GPTJConfig(**_GPT, rotary_dim=4),
    "opt": lambda: transformers.OPTConfig(
        vocab_size=VOCAB, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, ffn_dim=48,
        max_position_embeddings=512, word_embed_proj_dim=32,
    ),
    "gpt_neo": lambda **changed: transformers.GPTNeoConfig(**{
        "vocab_size": VOCAB, "hidden_size": 32, "num_layers": 4, "num_heads": 4,
        "attention_types": [[["global", "local"], 2]], "window_size": 40,
        "max_position_embeddings": 512, "intermediate_size": 48, **changed,
    }),
    "phi3_longrope": lambda: transformers.Phi3Config(
        **_GROUPED, pad_token_id=0, original_max_position_embeddings=BORDER,
        rope_parameters={
            "rope_type": "longrope", "rope_theta": 10000.0, "factor": 12.8,
            "short_factor": [1.0] * 4, "long_factor": [4.0] * 4,
            "original_max_position_embeddings": BORDER,
        },
    ),
    "llama_dynamic": lambda: transformers.LlamaConfig(
        **{**_GROUPED, "max_position_embeddings": 64},
        rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0},
    ),
    "granite": lambda: transformers.GraniteConfig(
        **_GROUPED, logits_scaling=4.0, attention_multiplier=0.3, residual_multiplier=0.7,
        embedding_multiplier=2.0,
    ),
    "cohere": lambda: transformers.CohereConfig(**_GROUPED),  # multiplies logits by 1 / 16
    "gpt_bigcode": lambda: transformers.GPTBigCodeConfig(**_GPT),
    "bloom": lambda: transformers.BloomConfig(
        vocab_size=VOCAB, hidden_size=32, n_layer=4, n_head=4
    ),
    "mpt": lambda: transformers.MptConfig(
        vocab_size=VOCAB, d_model=32, n_heads=4, n_layers=4, max_seq_len=512
    ),
    "gpt_oss": lambda: transformers.GptOssConfig(
        **_GROUPED, head_dim=8, num_local_experts=4, sliding_window=10,
        layer_types=["sliding_attention", "full_attention"] * 2,
    ),
}  # fmt: skip
"""Architectures that the engine runs in a slower way, in part, or not at all."""

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@cache
def tiny_tokenizer(chat: bool = True) -> Any:
    """A byte-level BPE tokenizer of VOCAB tokens, trained on a sentence, with a ChatML template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    text = "Yes No Answer the question from the passage. The harbour of Kestrel was built in 1871."
    tokenizer.train_from_iterator([text] * 4, trainer)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|im_start|>", eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
    )  # fmt: skip
    if chat:
        fast.chat_template = CHATML
    return fast


def tiny_model(
    architecture: str, dtype: torch.dtype = torch.float32, seed: int = 0, config: Any = None
) -> Any:
    """A random model whose attention is far from uniform, so that a wrong mask shows."""
    torch.manual_seed(seed)
    config = config or (CONFIGS | UNUSUAL)[architecture]()
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.5 if "embed" in name or "wte" in name else 0.25)
    return model.to(dtype).eval()


def tiny_lens(
    architecture: str = "llama", dtype: torch.dtype = torch.float32, **kwargs: Any
) -> Lens:
    """A checked Lens around a tiny random model."""
    model = tiny_model(architecture, dtype)
    return lens_from(model, tiny_tokenizer(), name=f"tiny {architecture}", **kwargs)
