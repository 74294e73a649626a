"""A Lens: one loaded model, bridged once, with the fast twin and what the lab must know of it."""

from __future__ import annotations

import contextlib
import copy
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float

from lab.engine import traits
from lab.engine.forward import Keep, Trace, run_packed
from lab.engine.packing import Branch, chunks, trunk_length
from lab.engine.requests import check_request, check_tokens
from lab.engine.trunks import FUSED, TrunkStore, fast_twin
from lab.engine.weights import reason
from lab.errors import LabError

if TYPE_CHECKING:
    from transformer_lens import ActivationCache
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from lab.engine.adapters import Adapter
    from lab.roles import Prompt

MOST_SCORE_BYTES = 150_000_000
"""A packed forward is split so that one layer's attention scores stay below this."""


@dataclass(eq=False)
class Lens:
    """A model seen through TransformerLens, able to run packed branches.

    Make one with `lab.load_lens`, or with `lens_from` from a model that is already in memory.

    Attributes:
        name: what the user called the model.
        bridge: the TransformerLens bridge, for exploring by hand.
        model: the Hugging Face model inside the bridge; its hooks fire.
        tokenizer: the model's own tokenizer (the bridge makes another one, which adds a BOS).
        twin: the same weights without hooks, on the fused attention kernel.
        source: where the weights came from, in words; ``sha256`` their hash.
        adapter: what was merged into them, if anything.
        prompting: how it is asked unless told otherwise, as arguments of a Prompter: as its adapter
            was trained, or as was found to suit the model; empty where nothing is known.
        packed: whether branches run packed; False after a failed self-check, or for a model that
            masks by row; then each branch runs alone, exactly and slowly.
        grow: whether rows are born at the layer of their first change; False after a failed
            self-check, then all run through all layers.
        asked_logits: whether logits of asked tokens alone are those of the whole vocabulary.
        knockouts: whether attention edges can be cut; if not, a `Block` is refused.
        notes: what was found out of the ordinary when it was made, as sentences.
    """

    name: str
    bridge: TransformerBridge
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    twin: PreTrainedModel
    source: str = "in memory"
    sha256: str = ""
    adapter: Adapter | None = None
    prompting: Mapping[str, Any] = field(default_factory=dict)
    packed: bool = True
    grow: bool = True
    asked_logits: bool = True
    knockouts: bool = True
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._borders = traits.borders(self.config)
        self.trunks = TrunkStore(self.twin, self.sliding, self._borders)
        self._grams: dict[int, torch.Tensor] = {}
        # Hooks of two runs at once would fire in each other's passes.
        self.lock = threading.RLock()

    def __repr__(self) -> str:
        changed = self.adapter.name if self.adapter else None
        size = f"{self.n_layers} layers x {self.n_heads} heads"
        return f"Lens({self.name!r}, {size}, adapter={changed!r})"

    # What the model is

    @property
    def config(self) -> Any:
        """The language model's Hugging Face configuration."""
        return self.twin.config.get_text_config()

    @property
    def n_layers(self) -> int:
        return int(self.config.num_hidden_layers)

    @property
    def n_heads(self) -> int:
        """Query heads per layer."""
        return int(self.config.num_attention_heads)

    @property
    def architecture(self) -> str:
        return type(self.twin).__name__

    @property
    def device(self) -> torch.device:
        return self.twin.device

    @property
    def dtype(self) -> torch.dtype:
        return self.twin.dtype

    @property
    def max_tokens(self) -> int:
        """The longest sequence that the model was made for."""
        return int(getattr(self.config, "max_position_embeddings", None) or 1024)

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(p.numel() for p in self.twin.parameters())

    @property
    def sliding(self) -> bool:
        """Whether any layer sees only a sliding window."""
        return any(self.window(layer) is not None for layer in range(self.n_layers))

    def window(self, layer: int) -> int | None:
        """How many last tokens a layer sees, itself included; None for all."""
        return traits.window(self.config, layer)

    # Running

    @torch.no_grad()
    def run(self, branches: Sequence[Branch], keep: Keep | None = None) -> list[Trace]:
        """A trace of each branch, in order: exact results, with nothing common run twice.

        The longest prefix that all branches share and none touches runs once on the fast kernel
        and is remembered; the rest of all branches runs as one packed sequence.

        Raises:
            LabError: a prompt is longer than the model's window, or a token, position, layer or
                head is out of range, or the model lacks an asked site, or cannot be knocked out.
        """
        keep = keep or Keep()
        check_request(self, branches, keep)
        with self.lock:
            if isinstance(keep.logits, bool) or self.asked_logits:
                return self._run(branches, keep)
            whole = self._run(branches, replace(keep, logits=True))
        return [_only(trace, keep.logits) for trace in whole]

    def _run(self, branches: Sequence[Branch], keep: Keep) -> list[Trace]:
        if not self.packed:
            return [run_packed(self, [b], None, keep, grow=False)[0] for b in branches]
        sides: dict[int, list[int]] = defaultdict(list)
        for index, branch in enumerate(branches):
            sides[traits.side(self._borders, len(branch.tokens))].append(index)
        traces: dict[int, Trace] = {}
        for indices in sides.values():
            found = self._run_side([branches[i] for i in indices], keep)
            traces.update(zip(indices, found, strict=True))
        return [traces[i] for i in range(len(branches))]

    def _run_side(self, branches: Sequence[Branch], keep: Keep) -> list[Trace]:
        """Traces of branches that lie on one side of all borders, and so may share keys."""
        length = trunk_length(branches)
        if not self._same_side(length, len(branches[0].tokens)):
            length = 0
        trunk = self.trunks.get(branches[0].tokens[:length]) if length else None
        traces: dict[int, Trace] = {}
        for group in chunks(branches, length, self._most_rows(length), grow=self.grow):
            found = run_packed(self, [branches[i] for i in group], trunk, keep, grow=self.grow)
            traces.update(zip(group, found, strict=True))
        return [traces[i] for i in range(len(branches))]

    def _same_side(self, a: int, b: int) -> bool:
        """Whether sequences of these lengths may share keys."""
        return traits.side(self._borders, a) == traits.side(self._borders, b)

    def _most_rows(self, trunk: int) -> int:
        """Rows B such that heads * B * (trunk + B) scores stay below the limit."""
        cells = MOST_SCORE_BYTES / (4 * self.n_heads)
        return max(1, int(((trunk**2 + 4 * cells) ** 0.5 - trunk) / 2))

    @torch.no_grad()
    def generate(
        self, tokens: Sequence[int], *, max_new_tokens: int = 32, stop: Sequence[str] = ()
    ) -> tuple[int, ...]:
        """The greedy continuation's token ids, without what ends it.

        Ends at the model's end-of-sequence tokens, after ``max_new_tokens``, or with the first
        token after which the new text, white space before it aside, holds a ``stop`` string.

        Raises:
            LabError: the prompt is empty, does not fit with its answer, or holds a token id that is
                out of range.
        """
        check_tokens(self, tokens)
        if len(tokens) + max_new_tokens > self.max_tokens:
            raise LabError(
                f"A prompt of {len(tokens)} tokens and an answer of up to {max_new_tokens} do not "
                f"fit {self.name}, whose window is {self.max_tokens} tokens."
            )
        with self.lock:
            return self._generate(tokens, max_new_tokens, stop)

    def _generate(
        self, tokens: Sequence[int], max_new_tokens: int, stop: Sequence[str]
    ) -> tuple[int, ...]:
        ends = self.end_ids()
        whole, new = list(tokens), list[int]()
        held = len(whole) - 1
        cache = self.trunks.get(whole[:held]).fresh_cache() if held else None
        for _ in range(max_new_tokens):
            if not self._same_side(held, len(whole)):
                held, cache = 0, None
            ids = torch.tensor([whole[held:]], device=self.device)
            output = self.twin(input_ids=ids, past_key_values=cache, use_cache=True)
            held, cache = len(whole), output.past_key_values
            token = int(output.logits[0, -1].argmax())
            if token in ends:
                break
            new.append(token)
            whole.append(token)
            if stop and any(s in self.tokenizer.decode(new).lstrip() for s in stop):
                break
        return tuple(new)

    def end_ids(self) -> set[int]:
        """The tokens that end a text of this model."""
        config = getattr(self.twin, "generation_config", None)
        ends = getattr(config, "eos_token_id", None) or getattr(self.config, "eos_token_id", None)
        listed = ends if isinstance(ends, list | tuple) else [ends]
        return {int(e) for e in (*listed, self.tokenizer.eos_token_id) if e is not None}

    def cache(self, prompt: Prompt | Sequence[int]) -> ActivationCache:
        """TransformerLens's ActivationCache of one prompt, for exploring by hand.

        It holds every activation: hundreds of MB for 200 tokens on the default model.

        Raises:
            LabError: the prompt is empty or too long, or holds a token id that is out of range.
        """
        tokens: Any = getattr(prompt, "token_ids", prompt)
        check_tokens(self, tokens)
        with self.lock, torch.no_grad():
            ids = torch.tensor([list(tokens)], device=self.device)
            return self.bridge.run_with_cache(ids)[1]

    def forget(self) -> None:
        """Drop remembered trunks, so that what follows does not depend on what ran before."""
        self.trunks.forget()

    # What the packed forward needs

    def mask(self, visible: Bool[torch.Tensor, "row key"]) -> Float[torch.Tensor, "1 1 row key"]:
        """An additive attention mask: 0 where visible, the dtype's lowest number elsewhere."""
        mask = torch.zeros(visible.shape, dtype=self.dtype)
        mask.masked_fill_(~visible, torch.finfo(self.dtype).min)
        return mask[None, None].to(self.device)

    def empty_cache(self) -> Any:
        """An empty key/value cache of this model's kind."""
        from transformers import DynamicCache

        return DynamicCache(config=self.config)

    def unembed(
        self, final: Float[torch.Tensor, "row d_model"], ids: tuple[int, ...]
    ) -> Float[torch.Tensor, "row id"]:
        """Logits of some tokens from the last normed residual, without the other tokens'."""
        head = self.twin.get_output_embeddings()
        index = torch.tensor(ids, device=self.device)
        bias = None if head.bias is None else head.bias[index]
        logits = torch.nn.functional.linear(final, head.weight[index], bias)
        logits = logits * traits.logit_scale(self.config)
        cap = getattr(self.config, "final_logit_softcapping", None)
        return cap * torch.tanh(logits / cap) if cap else logits

    def write_norms(
        self, layer: int, values: Float[torch.Tensor, "key kv_head d_head"]
    ) -> Float[Any, "head key"]:
        """Norm of what each head writes per unit of attention: |v W_O|, from v (W_O W_O^T) v."""
        if layer not in self._grams:
            w_o = self.bridge.blocks[layer].attn.W_O.float()
            self._grams[layer] = w_o @ w_o.transpose(-1, -2)
        spread = values.float().repeat_interleave(self.n_heads // values.shape[1], dim=1)
        squares = torch.einsum("khd,hde,khe->hk", spread, self._grams[layer], spread)
        return squares.clamp(min=0).sqrt().cpu().numpy()


def _only(trace: Trace, ids: tuple[int, ...]) -> Trace:
    assert trace.logits is not None
    return replace(trace, logits=trace.logits[:, list(ids)])


def lens_from(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    name: str = "model",
    source: str = "in memory",
    sha256: str = "",
    adapter: Adapter | None = None,
    prompting: Mapping[str, Any] | None = None,
    check: bool = True,
) -> Lens:
    """A Lens around a Hugging Face model in memory. The model is bridged in place: use the Lens.

    Raises:
        LabError: TransformerLens has no adapter for the architecture, or the self-check fails.

    Without ``check`` nothing is known of what TransformerLens's hooks do in this architecture.
    """
    from transformer_lens.model_bridge import TransformerBridge

    from lab.engine.selfcheck import check_lens

    model.eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    if not model.config.architectures:
        model.config.architectures = [type(model).__name__]
    twin = fast_twin(model)
    try:
        with contextlib.redirect_stdout(None):
            bridge = TransformerBridge.boot_transformers(
                name,
                hf_model=model,
                tokenizer=_bridge_tokenizer(tokenizer, name),
                dtype=model.dtype,
                device=model.device,
            )
    except (ValueError, NotImplementedError, KeyError, AttributeError, RuntimeError) as error:
        raise LabError(
            f"TransformerLens cannot wrap {name} ({type(model).__name__}): {reason(error)} "
            "Choose a decoder-only model of an architecture that it supports."
        ) from error
    lens = Lens(
        name, bridge, bridge.original_model, tokenizer, twin, source, sha256, adapter,
        dict(prompting or {}),
    )  # fmt: skip
    if twin.config._attn_implementation != FUSED:
        lens.notes.append(
            f"{lens.architecture}: trunks run on plain attention, because this model cannot be "
            "switched to the fused kernel."
        )
    if traits.masks_by_row(lens.config):
        lens.packed = False
        lens.notes.append(
            f"{lens.architecture}: branches run one by one, because this model masks keys by their "
            "number in the sequence, which packed rows do not keep."
        )
    if check:
        check_lens(lens)
    return lens


def _bridge_tokenizer(tokenizer: PreTrainedTokenizerBase, name: str) -> PreTrainedTokenizerBase:
    """A copy for the bridge, which else loads the tokenizer anew, from the hub if it must.

    It does so in order to add a BOS token to every text; saying that this one does already keeps
    the ids as the model's own tokenizer gives them.
    """
    twin = copy.deepcopy(tokenizer)
    twin.init_kwargs = {**twin.init_kwargs, "name_or_path": name, "add_bos_token": True}
    return twin
