"""Patching: one run's activations put into another at the decision, head by head.

For each contrast of two runs a and b, every head's output, every MLP's output and the residual
stream after every block is carried over at the decision, in both directions. Both prompts end in
their decision, which is the one position that always has a counterpart, so their lengths may
differ. Effects are differences of two logits (Zhang and Nanda 2023, arXiv 2309.16042), and the
restoration R = (patched - target) / (source - target) is left to the summaries, where examples
with too small a denominator are told apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int8

from lab.engine.edits import Edit, Site, set_to
from lab.engine.forward import Keep, Trace
from lab.engine.lens import Lens
from lab.engine.packing import Branch
from lab.instruments.behaviour import Behaviour
from lab.instruments.case import Case
from lab.roles import Prompt, align, log_odds

LAYER_SITES: tuple[Site, ...] = ("mlp", "resid_post")

Effect = Callable[[Float[np.ndarray, " token"]], float]


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two prompts whose runs are compared, and the number that tells their decisions apart.

    Attributes:
        a, b: the prompts.
        effect: from the decision's logits to a number, higher in run a than in run b.
    """

    a: Prompt
    b: Prompt
    effect: Effect


@dataclass(frozen=True, slots=True, eq=False)
class Patched:
    """Effects of one contrast.

    Attributes:
        clean: [run], the effect in run a and in run b.
        head: [direction, layer, head], the effect in the target run with one head carried over.
        layer: [direction, site, layer], the same for MLP outputs and residuals.
        head_flip, layer_flip: whether the most likely token changed, 1 or 0.
    """

    clean: Float[np.ndarray, " run"]
    head: Float[np.ndarray, "direction layer head"]
    layer: Float[np.ndarray, "direction site layer"]
    head_flip: Int8[np.ndarray, "direction layer head"]
    layer_flip: Int8[np.ndarray, "direction site layer"]


def contrasts(case: Case, behaviour: Behaviour) -> dict[str, Contrast]:
    """The contrasts that this example allows.

    - ``role``: generator (a) against evaluator of the model's own answer (b); the effect is the
      logit of a's most likely token minus that of b's. Left out where the two agree.
    - ``candidate``: the evaluator with a right (a) and a wrong candidate (b); the effect is the
      verdict's log-odds. Right is the gold answer, wrong the hardest rung there is. Left out where
      the passages do not answer, since the right candidate is then always the same word.
    - ``passage``: the generator on the passages (a) and on the same with the gold answer replaced
      (b); the effect is the logit of the gold answer's first token minus the replacement's. Left
      out where both begin with the same token.
    """
    found: dict[str, Contrast] = {}
    own = behaviour.answer_raw
    a, b = case.prompt("generator"), case.prompt("evaluator", own)
    best = [int(row.argmax()) for row in decision_logits(case.lens, a, b)]
    if best[0] != best[1]:
        found["role"] = Contrast(a, b, _difference(best[0], best[1]))

    hard = (r for r in ("same_type", "same_passage", "other_passage", "empty"))
    wrong = next((behaviour.candidates[r] for r in hard if r in behaviour.candidates), None)
    if wrong is not None and case.example.answerable:
        right = case.prompt("evaluator", behaviour.candidates["gold"])
        found["candidate"] = Contrast(
            right, case.prompt("evaluator", wrong), lambda row: log_odds(row, case.verdict)
        )

    if case.changed is not None:
        changed = case.prompter.render(case.changed, "generator")
        first = [_first_token(case, a, text) for text in (case.example.gold, case.changed.gold)]
        if first[0] != first[1]:
            found["passage"] = Contrast(a, changed, _difference(first[0], first[1]))
    return found


def measure_patching(lens: Lens, contrast: Contrast) -> Patched:
    """The effect of carrying each head, MLP and residual over, in both directions, exactly.

    All patches of a direction run as branches behind one trunk, in about the time of one forward
    pass of the prompt.
    """
    prompts = (contrast.a, contrast.b)
    traces = [
        lens.run([Branch(p.token_ids)], Keep(heads=True, mlp=True, resid=True))[0] for p in prompts
    ]
    clean = [contrast.effect(_row(trace)) for trace in traces]
    heads, layers, head_flips, layer_flips = [], [], [], []
    for source, target in ((0, 1), (1, 0)):
        place = align(prompts[source], prompts[target])(prompts[source].decision)
        edits = [
            *head_edits(lens, traces[source], place),
            *layer_edits(lens, traces[source], place),
        ]
        tokens = prompts[target].token_ids
        runs = lens.run([Branch(tokens, (edit,)) for edit in edits])
        effect = np.array([contrast.effect(_row(run)) for run in runs], np.float32)
        usual = int(_row(traces[target]).argmax())
        flip = np.array([_row(run).argmax() != usual for run in runs], np.int8)
        count = lens.n_layers * lens.n_heads
        heads.append(effect[:count].reshape(lens.n_layers, lens.n_heads))
        head_flips.append(flip[:count].reshape(lens.n_layers, lens.n_heads))
        layers.append(effect[count:].reshape(len(LAYER_SITES), lens.n_layers))
        layer_flips.append(flip[count:].reshape(len(LAYER_SITES), lens.n_layers))
    return Patched(
        np.array(clean, np.float32),
        np.stack(heads),
        np.stack(layers),
        np.stack(head_flips),
        np.stack(layer_flips),
    )


def decision_logits(lens: Lens, *prompts: Prompt) -> list[Float[np.ndarray, " token"]]:
    """The logits of the whole vocabulary at the decision of each prompt."""
    return [_row(lens.run([Branch(p.token_ids)])[0]) for p in prompts]


def head_edits(lens: Lens, source: Trace, place: int) -> list[Edit]:
    """One edit for each head, layer by layer: its output in ``source`` put at ``place``."""
    assert source.heads is not None
    return [
        set_to("head", layer, [place], source.heads[layer, head, 0], head)
        for layer in range(lens.n_layers)
        for head in range(lens.n_heads)
    ]


def layer_edits(lens: Lens, source: Trace, place: int) -> list[Edit]:
    """One edit for each of LAYER_SITES and each layer: its value in ``source`` put at ``place``."""
    values: dict[Site, Any] = {"mlp": source.mlp, "resid_post": source.resid}
    return [
        set_to(site, layer, [place], values[site][layer, 0])
        for site in LAYER_SITES
        for layer in range(lens.n_layers)
    ]


def _row(trace: Trace) -> Float[np.ndarray, " token"]:
    assert trace.logits is not None
    return trace.logits[0]


def _difference(a: int, b: int) -> Effect:
    return lambda row: float(row[a] - row[b])


def _first_token(case: Case, prompt: Prompt, text: str) -> int:
    """The token with which an answer begins right behind a prompt.

    Chat prompts end in a line break, plain ones in "Answer:", after which an answer has a space
    before it; so the text is encoded behind the prompt's last words.
    """
    encode = case.lens.tokenizer
    tail = prompt.text[prompt.offsets[max(0, len(prompt) - 8)][0] :]
    before = encode(tail, add_special_tokens=False).input_ids
    space = "" if tail[-1:].isspace() else " "
    whole = encode(tail + space + text, add_special_tokens=False).input_ids
    return int(whole[len(before)] if len(whole) > len(before) else whole[-1])
