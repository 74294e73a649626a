"""Small tokenizers of the families in use, trained on a few lines, with their chat templates."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

CORPUS = [
    "Task: Answer the question from the passage only, as briefly as possible.",
    "Judge whether the proposed answer is correct according to the passage, Yes or No.",
    "The words in this line stand here only to fill the space of another part of the page.",
    "Passage:\nPort Amel was founded in 1834 by Ida Brandt. It lies on the river Sane.\n\n",
    "Question: Who founded Port Amel?\n\nProposed answer: Ida Brandt\n\nVerdict (Yes or No):",
    "yes no YES NO Correct Incorrect correct incorrect 0123456789 unanswerable Answer: Repeat",
] * 4

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LLAMA2 = "{% for m in messages %}{{ bos_token }}[INST] {{ m.content.strip() }} [/INST]{% endfor %}"
GEMMA = (
    "{{ bos_token }}{% for m in messages %}<start_of_turn>{{ m.role }}\n"
    "{{ m.content | trim }}<end_of_turn>\n{% endfor %}<start_of_turn>model\n"
)
_BYTES = [f"<0x{i:02X}>" for i in range(256)]


def _byte_level(special: list[str], *, trim: bool = False, digits: bool = False) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    split = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level]) if digits else byte_level
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim)
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def _add_bos(tokenizer: Tokenizer, bos: str, *others: Any) -> None:
    template = processors.TemplateProcessing(
        single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
    )
    tokenizer.post_processor = processors.Sequence([*others, template]) if others else template


def _plain_bytes(tokenizer: Tokenizer) -> Tokenizer:
    """Byte pieces as ordinary pieces, which is what they are in published vocabularies."""
    spec = json.loads(tokenizer.to_str())
    spec["added_tokens"] = [t for t in spec["added_tokens"] if t["content"] not in _BYTES]
    return Tokenizer.from_str(json.dumps(spec))


def chatml_bpe() -> PreTrainedTokenizerFast:
    """Like Qwen and SmolLM: byte-level BPE, no BOS token."""
    inner = _byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
        chat_template=CHATML,
    )


def trimmed_bpe() -> PreTrainedTokenizerFast:
    """Like Llama 3: byte-level BPE whose offsets leave out spaces, a BOS token by default."""
    inner = _byte_level(["<|begin|>", "<|end|>"], trim=True)
    _add_bos(inner, "<|begin|>", processors.ByteLevel(trim_offsets=True))
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<|begin|>", eos_token="<|end|>"
    )


def digit_bpe() -> PreTrainedTokenizerFast:
    """Like many base models: byte-level BPE that takes digits one by one, no chat template."""
    inner = _byte_level(["<eos>"], digits=True)
    return PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<eos>")


def _by_words(prepend: str) -> pre_tokenizers.PreTokenizer:
    """Words begin with the space before them; a line break is a word of its own."""
    lines = pre_tokenizers.Split("\n", "isolated")
    return pre_tokenizers.Sequence([pre_tokenizers.Metaspace(prepend_scheme=prepend), lines])


def metaspace_bpe() -> PreTrainedTokenizerFast:
    """Like Llama 2: SentencePiece BPE that puts a space first and falls back to bytes."""
    return _metaspace(_by_words("first"))


def merging_bpe() -> PreTrainedTokenizerFast:
    """Worse than any in use: tokens may hold a word, a line break and the next heading."""
    return _metaspace(pre_tokenizers.Metaspace(prepend_scheme="always"))


def _metaspace(words: pre_tokenizers.PreTokenizer) -> PreTrainedTokenizerFast:
    inner = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    inner.pre_tokenizer = words
    inner.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    special = ["<unk>", "<s>", "</s>", *_BYTES]
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=special, show_progress=False)
    inner.train_from_iterator(CORPUS, trainer)
    inner = _plain_bytes(inner)
    _add_bos(inner, "<s>")
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        chat_template=LLAMA2,
    )


def unigram() -> PreTrainedTokenizerFast:
    """Like Gemma, with a normaliser like T5's: pieces over normalised text, no byte fallback."""
    inner = Tokenizer(models.Unigram())
    inner.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("\u200b", "")])
    inner.pre_tokenizer = _by_words("never")
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    inner.train_from_iterator(CORPUS, trainer)
    _add_bos(inner, "<bos>")
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        pad_token="<pad>",
        additional_special_tokens=["<start_of_turn>", "<end_of_turn>"],
        chat_template=GEMMA,
    )


_BUILDERS = (chatml_bpe, trimmed_bpe, digit_bpe, metaspace_bpe, unigram, merging_bpe)
FAMILIES = tuple(builder.__name__ for builder in _BUILDERS)
USUAL = FAMILIES[:-1]


@cache
def toy(family: str) -> PreTrainedTokenizerFast:
    """The toy tokenizer of a family, made once."""
    return {builder.__name__: builder for builder in _BUILDERS}[family]()


def with_template(family: str, template: str) -> PreTrainedTokenizerFast:
    """A new tokenizer of a family with another chat template."""
    tokenizer = {builder.__name__: builder for builder in _BUILDERS}[family]()
    tokenizer.chat_template = template
    tokenizer.name_or_path = "toy/model"
    return tokenizer
