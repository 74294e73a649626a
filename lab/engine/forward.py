"""One packed forward pass: a trunk, all branches behind it, their changes, and what is kept."""

from __future__ import annotations

import contextlib
import inspect
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float

from lab.engine.edits import HOOKS, Block, Change, Edit
from lab.engine.packing import Branch, Packing, pack
from lab.engine.trunks import Trunk
from lab.errors import LabError

if TYPE_CHECKING:
    from lab.engine.lens import Lens

Hook = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Keep:
    """What comes back from each branch at its kept positions.

    Attributes:
        logits: True for the whole vocabulary, False for none, or the token ids asked for. Asked
            ids alone spare most of the unembedding.
        attention: attention rows of every head.
        value_norms: with ``attention``, the length of what each head would write for each key.
        heads: head outputs before W_O.
        mlp, resid: MLP outputs; the residual stream after each block.
    """

    logits: bool | tuple[int, ...] = True
    attention: bool = False
    value_norms: bool = False
    heads: bool = False
    mlp: bool = False
    resid: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What one branch gave back. The first axis of positions follows the branch's ``keep``.

    Attributes:
        logits: [position, vocabulary], or [position, asked id]; None if not asked for.
        attention: [layer, head, position, key], key = token index of the whole prompt.
        value_norms: [layer, head, key], the norm of (x_j W_V + b_V) W_O of each head
            (Kobayashi et al. 2020, arXiv 2004.10102); 0 outside of a sliding window.
        heads: [layer, head, position, d_head], head outputs before W_O.
        mlp, resid: [layer, position, d_model].
    """

    logits: Float[np.ndarray, "position token"] | None = None
    attention: Float[np.ndarray, "layer head position key"] | None = None
    value_norms: Float[np.ndarray, "layer head key"] | None = None
    heads: Float[torch.Tensor, "layer head position d_head"] | None = None
    mlp: Float[torch.Tensor, "layer position d_model"] | None = None
    resid: Float[torch.Tensor, "layer position d_model"] | None = None


@torch.no_grad()
def run_packed(
    lens: Lens, branches: Sequence[Branch], trunk: Trunk | None, keep: Keep, *, grow: bool = True
) -> list[Trace]:
    """Traces of the branches, in their order, from one forward pass behind ``trunk``.

    Every branch must begin with the trunk's tokens. ``grow=False`` runs all rows through all
    layers, the slower and simpler way to the same numbers.

    Raises:
        LabError: an asked hook did not fire (this model lacks it).
    """
    length = len(trunk.tokens) if trunk else 0
    plan = pack(branches, length, grow=grow)
    capture = _Capture(lens, plan, trunk, keep)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(lens.bridge.hooks(fwd_hooks=capture.hooks()))
        except KeyError as error:
            raise LabError(
                f"{lens.name} ({lens.architecture}) lacks an asked site: {error.args[0]}"
            ) from None
        stack.enter_context(_Rows(lens, plan, keep, capture))
        output = lens.model(
            input_ids=torch.tensor([plan.tokens()[: plan.rows_at(0)]], device=lens.device),
            position_ids=plan.position[: plan.rows_at(0)][None].to(lens.device),
            attention_mask=lens.mask(plan.visible(plan.rows_at(0))),
            past_key_values=trunk.fresh_cache() if trunk else lens.empty_cache(),
            use_cache=True,
        )
    if keep.logits is True:
        capture.logits = output.logits[0]
    elif keep.logits and capture.final is not None:
        capture.logits = lens.unembed(capture.final[0], keep.logits)
    return capture.traces(len(branches))


class _Rows:
    """Makes rows be born: rewrites each block's input rows, mask and position embeddings.

    It works on torch's own forward pre-hooks, before TransformerLens's hooks fire, so that those
    see all rows of their layer. The mask is set here for each layer, since models differ in how
    they take masks for layers with and without a sliding window.
    """

    def __init__(self, lens: Lens, plan: Packing, keep: Keep, capture: _Capture) -> None:
        self._lens, self._plan, self._keep, self._capture = lens, plan, keep, capture
        self._masks: dict[tuple[int, int | None], torch.Tensor] = {}
        self._handles: list[Any] = []

    def __enter__(self) -> None:
        for layer, block in enumerate(self._lens.bridge.blocks):
            self._handles.append(
                block.register_forward_pre_hook(self._enter_block(layer), with_kwargs=True)
            )
        for name, enter in (("ln_final", self._enter_final), ("unembed", self._enter_unembed)):
            module = getattr(self._lens.bridge, name)
            self._handles.append(module.register_forward_pre_hook(enter))

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _enter_block(self, layer: int) -> Hook:
        def enter(block: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            plan = self._plan
            rows, before = plan.rows_at(layer), plan.rows_at(max(layer - 1, 0))
            hidden, kwargs = _by_name(block, args, kwargs)
            if rows > before:
                source = plan.base[before:rows].to(self._lens.device)
                hidden = torch.cat([hidden, hidden[:, source]], 1)
            if rows > plan.rows_at(0):
                index = plan.base[:rows].to(self._lens.device)
                kwargs = {
                    k: _gather(v, index, plan.rows_at(0)) if k in _BY_ROW else v
                    for k, v in kwargs.items()
                }
            kwargs["attention_mask"] = self._mask(layer, rows)
            return (hidden,), kwargs

        return enter

    def _mask(self, layer: int, rows: int) -> torch.Tensor:
        key = (rows, self._lens.window(layer))
        if key not in self._masks:
            self._masks = {k: m for k, m in self._masks.items() if k[0] == rows}
            self._masks[key] = self._lens.mask(self._plan.visible(*key))
        return self._masks[key]

    def _enter_final(self, _: Any, args: tuple[Any, ...]) -> Any:
        # Only asked rows go on. GPT-2 then views the result in the shape of its input, so their
        # number is filled up to a multiple of the input's.
        rows = self._capture.kept_rows()
        rows += [rows[0]] * (-len(rows) % self._plan.rows_at(0))
        return (args[0][:, rows], *args[1:])

    def _enter_unembed(self, _: Any, args: tuple[Any, ...]) -> Any:
        kept = len(self._capture.kept_rows())
        final = args[0].reshape(1, -1, args[0].shape[-1])[:, :kept]
        self._capture.final = final
        # Where ids are asked for, the model's own unembedding runs on one row only, to be ignored.
        return (final if self._keep.logits is True else final[:, :1], *args[1:])


_BY_ROW = ("position_embeddings", "position_ids", "cache_position")


def _by_name(
    block: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, dict[str, Any]]:
    """A block's hidden states and its other arguments by name: GPT-2 passes them by place."""
    names = list(inspect.signature(block.original_component.forward).parameters)
    named = {**dict(zip(names, args, strict=False)), **kwargs}
    return named.pop("hidden_states" if "hidden_states" in named else names[0]), named


def _gather(value: Any, index: torch.Tensor, rows: int) -> Any:
    """Row-wise values (position embeddings, position ids) of all rows from those of the first."""
    if isinstance(value, tuple):
        return tuple(_gather(v, index, rows) for v in value)
    if not isinstance(value, torch.Tensor):
        return value
    axis = 0 if value.ndim == 1 else 1
    return value.index_select(axis, index) if value.shape[axis] == rows else value


@dataclass(eq=False)
class _Capture:
    """Hooks that apply the branches' changes and collect what is kept."""

    lens: Lens
    plan: Packing
    trunk: Trunk | None
    keep: Keep
    final: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    seen: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    fired: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)

    def hooks(self) -> list[tuple[str, Hook]]:
        """(hook name, function) pairs; per hook, changes come before captures."""
        by_name: dict[str, list[Hook]] = defaultdict(list)
        changes: dict[str, list[tuple[int, Change]]] = defaultdict(list)
        for number, branch in enumerate(self.plan.branches):
            for change in branch.changes:
                changes[_hook_of(change)].append((number, change))
        for name, listed in changes.items():
            by_name[name].append(self._change(listed))
        for layer in range(self.lens.n_layers):
            for name, attribute in self._captured():
                by_name[name.format(layer)].append(self._take(attribute, layer))
        self.asked = set(by_name)
        return [(name, self._chain(name, fns)) for name, fns in by_name.items()]

    def _captured(self) -> list[tuple[str, str]]:
        wanted = {
            "attention": ("blocks.{}.attn.hook_pattern", self.keep.attention),
            "value": ("blocks.{}.attn.hook_v", self.keep.value_norms),
            "heads": (HOOKS["head"], self.keep.heads),
            "mlp": (HOOKS["mlp"], self.keep.mlp),
            "resid": (HOOKS["resid_post"], self.keep.resid),
        }
        return [(name, attribute) for attribute, (name, asked) in wanted.items() if asked]

    def _chain(self, name: str, functions: list[Hook]) -> Hook:
        def run(tensor: torch.Tensor, hook: Any = None) -> torch.Tensor:
            self.fired.add(name)
            for function in functions:
                tensor = function(tensor)
            return tensor

        return run

    def _change(self, listed: list[tuple[int, Change]]) -> Hook:
        def apply(tensor: torch.Tensor) -> torch.Tensor:
            tensor = tensor.clone()  # cached activations are views of the live ones
            for number, change in listed:
                if isinstance(change, Block):
                    self._cut(tensor, number, change)
                else:
                    self._edit(tensor, number, change)
            return tensor

        return apply

    def _edit(self, tensor: torch.Tensor, number: int, edit: Edit) -> None:
        rows = [self.plan.row(number, p) for p in edit.positions]
        place: Any = (0, rows) if edit.head is None else (0, rows, edit.head)
        old = tensor[place]
        add = 0.0 if edit.add is None else edit.add.to(old)
        if isinstance(add, torch.Tensor) and add.shape[-1] != old.shape[-1]:
            raise LabError(
                f"An edit of {edit.site!r} in layer {edit.layer} brings vectors of size "
                f"{add.shape[-1]}, but this model's have {old.shape[-1]}."
            )
        # Multiplying by zero would keep NaN and infinite values alive.
        tensor[place] = (torch.zeros_like(old) if edit.scale == 0 else edit.scale * old) + add

    def _cut(self, scores: torch.Tensor, number: int, block: Block) -> None:
        heads = list(range(scores.shape[1])) if block.heads is None else list(block.heads)
        floor = torch.finfo(scores.dtype).min
        for query in block.queries:
            columns = [
                c
                for key in block.keys
                if key < query and (c := self._column(number, key, block.layer)) is not None
            ]
            if columns:
                row = self.plan.row(number, query)
                scores[0, torch.tensor(heads)[:, None], row, torch.tensor(columns)] = floor

    def _column(self, number: int, key: int, layer: int) -> int | None:
        """Where a token stands among the keys of a layer; None if the layer has forgotten it."""
        held = self._held(layer)
        if key >= self.plan.trunk:
            return held + self.plan.row(number, key)
        column = key - (self.plan.trunk - held)
        return column if column >= 0 else None

    def _held(self, layer: int) -> int:
        """How many trunk keys a layer holds."""
        window = self.lens.window(layer)
        return self.plan.trunk if window is None else min(self.plan.trunk, window - 1)

    def kept_rows(self) -> list[int]:
        """Rows whose results come back, branch by branch."""
        return [self.plan.row(b, p) for b, branch in self._asked_branches() for p in branch.kept]

    def _asked_branches(self) -> list[tuple[int, Branch]]:
        return [(n, b) for n, b in enumerate(self.plan.branches) if self.plan.order[n] >= 0]

    def _take(self, attribute: str, layer: int) -> Hook:
        def take(tensor: torch.Tensor) -> torch.Tensor:
            if attribute == "attention":
                self.seen[attribute].append(self._rows_of_attention(tensor, layer))
            elif attribute == "value":
                self.seen[attribute].append(tensor[0].clone())
            else:
                rows = [
                    self.plan.live_row(number, p, layer)
                    for number, branch in self._asked_branches()
                    for p in branch.kept
                ]
                self.seen[attribute].append(tensor[0, rows])
            return tensor

        return take

    def _rows_of_attention(self, pattern: torch.Tensor, layer: int) -> list[np.ndarray]:
        held, trunk = self._held(layer), self.plan.trunk
        out = []
        for number, branch in self._asked_branches():
            rows = [self.plan.live_row(number, p, layer) for p in branch.kept]
            own = [
                held + self.plan.live_row(number, p, layer)
                for p in range(trunk, len(branch.tokens))
            ]
            row = torch.zeros(pattern.shape[1], len(rows), len(branch.tokens))
            picked = pattern[0, :, rows].float()
            row[:, :, trunk - held : trunk] = picked[..., :held]
            row[:, :, trunk:] = picked[..., own]
            out.append(row.numpy())
        return out

    def traces(self, count: int) -> list[Trace]:
        """One trace for each asked branch, in the order asked."""
        silent = sorted(self.asked - self.fired)
        if silent:
            raise LabError(
                f"{self.lens.name} has no {silent[0]} ({len(silent)} asked hooks did not fire): "
                "this site cannot be read or changed in this architecture."
            )
        found: list[Trace | None] = [None] * count
        start = 0
        for place, (number, branch) in enumerate(self._asked_branches()):
            rows = slice(start, start + len(branch.kept))
            start = rows.stop
            found[self.plan.order[number]] = Trace(
                logits=None if self.logits is None else self.logits[rows].float().cpu().numpy(),
                attention=np.stack([layer[place] for layer in self.seen["attention"]])
                if self.keep.attention
                else None,
                value_norms=self._value_norms(number, branch) if self.keep.value_norms else None,
                heads=torch.stack([t[rows].transpose(0, 1) for t in self.seen["heads"]])
                if self.keep.heads
                else None,
                mlp=torch.stack([t[rows] for t in self.seen["mlp"]]) if self.keep.mlp else None,
                resid=torch.stack([t[rows] for t in self.seen["resid"]])
                if self.keep.resid
                else None,
            )
        return [trace for trace in found if trace is not None]

    def _value_norms(self, number: int, branch: Branch) -> np.ndarray:
        norms = np.zeros((self.lens.n_layers, self.lens.n_heads, len(branch.tokens)), np.float32)
        for layer, own in enumerate(self.seen["value"]):
            rows = [
                self.plan.live_row(number, p, layer)
                for p in range(self.plan.trunk, len(branch.tokens))
            ]
            values = own[rows]
            held = self._held(layer) if self.trunk else 0
            if held and self.trunk:
                values = torch.cat([self.trunk.values(layer)[-held:].to(values), values])
            norms[layer, :, len(branch.tokens) - len(values) :] = self.lens.write_norms(
                layer, values
            )
        return norms


def _hook_of(change: Change) -> str:
    if isinstance(change, Block):
        return f"blocks.{change.layer}.attn.hook_attn_scores"
    return HOOKS[change.site].format(change.layer)
