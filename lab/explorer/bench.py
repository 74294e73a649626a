"""The patch bench: one run's activations carried into another, at the decision, on one example.

The same contrasts, edits and effects as `lab.instruments.patching` measures over a study, for one
direction at a time. All patches of a sweep run in one packed pass, which can be stopped at every
layer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from lab.engine.edits import Edit, set_to
from lab.engine.forward import Keep, Trace
from lab.engine.packing import Branch
from lab.engine.watching import watched
from lab.errors import LabError
from lab.explorer.continuation import continuations
from lab.explorer.directions import DIRECTIONS, WHATS, What
from lab.explorer.jobs import Watch
from lab.explorer.results import Outcome, PatchResult
from lab.explorer.selection import Head
from lab.instruments.case import Case
from lab.instruments.patching import Contrast, head_edits, layer_edits
from lab.instruments.statistics import restoration
from lab.instruments.summaries.patching import MIN_GAP
from lab.roles import Prompt, align, log_odds
from lab.views.format import decimal

ABSENT = {
    "role": "answering and judging it begin with the same token, so there is no difference to "
    "carry over between the roles",
    "candidate": "it has no right and wrong candidate to compare (the passages do not answer it, "
    "or hold no wrong answer)",
    "passage": "no altered passage could be made for it whose answer begins with another token",
}
"""Why an example lacks a contrast."""

NOTE_EACH = (
    "Each patch changes one activation at the decision, the last token of the prompt, and nothing "
    "else."
)
NOTE_TEXT = (
    "The heads are carried over at the decision, the last token of the prompt, and the text is "
    "written on with this change in place; at later tokens nothing is changed."
)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of the bench: see `PatchResult` for the fields."""

    direction: str
    what: What
    heads: tuple[Head, ...] = ()

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise LabError(
                f"Unknown direction {self.direction!r}: use one of {', '.join(DIRECTIONS)}."
            )
        if self.what not in WHATS:
            raise LabError(f"Unknown patch {self.what!r}: use one of {', '.join(WHATS)}.")
        if self.what in ("head", "set") and not self.heads:
            raise LabError("No head is selected: select one, or brush a set on the head map.")

    @property
    def contrast(self) -> str:
        return self.direction.split("/")[0]

    @property
    def forward(self) -> bool:
        """Whether run a is carried into run b."""
        return self.direction.endswith("/a_into_b")


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """The two clean runs of a request."""

    contrast: Contrast
    source: Trace
    target: Trace
    prompt: Prompt
    place: int

    @property
    def clean(self) -> tuple[float, float]:
        """Effects of source and target."""
        return self.contrast.effect(_row(self.source)), self.contrast.effect(_row(self.target))


def patch(
    case: Case, request: Request, contrasts: dict[str, Contrast], watch: Watch | None = None
) -> PatchResult:
    """What a patch changes on one example.

    Args:
        case: the example on its model.
        request: what is carried over, and where.
        contrasts: those of the example, from `lab.instruments.patching.contrasts`.
        watch: is told of the progress, and may stop it.

    Raises:
        LabError: the example does not allow this contrast.
        Stopped: the watch was told to stop.
    """
    watch = watch or Watch()
    with watched(case.lens, lambda layer: watch.layer(layer, case.lens.n_layers)):
        return _patch(case, request, contrasts, watch)


def _patch(
    case: Case, request: Request, contrasts: dict[str, Contrast], watch: Watch
) -> PatchResult:
    start = time.perf_counter()
    if request.contrast not in contrasts:
        raise LabError(
            f"Example {case.example.id} cannot be patched {DIRECTIONS[request.direction]}: "
            f"{ABSENT[request.contrast]}. Choose another direction or example."
        )
    runs = _clean_runs(case, request, contrasts[request.contrast], watch)
    kind = _together if request.what in ("head", "set") else _each
    found = kind(case, request, runs, watch)
    source, target = runs.clean
    return PatchResult(
        example=case.example.id,
        direction=request.direction,
        what=request.what,
        heads=request.heads if request.what in ("head", "set") else (),
        title=_title(request),
        measure=_measure(case, request, runs),
        source=source,
        target=target,
        seconds=time.perf_counter() - start,
        **found,
    )


def _clean_runs(case: Case, request: Request, contrast: Contrast, watch: Watch) -> _Runs:
    prompts = (contrast.a, contrast.b) if request.forward else (contrast.b, contrast.a)
    keep = (Keep(heads=True, mlp=True, resid=True), Keep())
    traces = []
    for prompt, kept, which in zip(prompts, keep, ("source", "target"), strict=True):
        watch.step(0, 0, f"running the {which} prompt unchanged")
        traces.append(case.lens.run([Branch(prompt.token_ids)], kept)[0])
    source, target = prompts
    place = align(source, target)(source.decision)
    return _Runs(contrast, traces[0], traces[1], target, place)


# --- each on its own ----------------------------------------------------------------------------


def _each(case: Case, request: Request, runs: _Runs, watch: Watch) -> dict[str, Any]:
    lens = case.lens
    if request.what == "heads":
        edits, shape = head_edits(lens, runs.source, runs.place), (lens.n_layers, lens.n_heads)
    else:
        mlp_first = layer_edits(lens, runs.source, runs.place)
        edits = [*mlp_first[lens.n_layers :], *mlp_first[: lens.n_layers]]
        shape = (2, lens.n_layers)
    effects, flips = _sweep(case, runs, edits, watch)
    patched = effects.reshape(shape)
    restored = _restored(patched, runs)
    return {
        "patched": patched,
        "restoration": restored,
        "before": None,
        "after": None,
        "words": _sweep_words(request, patched, restored, runs, flips),
        "note": NOTE_EACH,
    }


def _sweep(
    case: Case, runs: _Runs, edits: Sequence[Edit], watch: Watch
) -> tuple[Float[np.ndarray, " patch"], int]:
    """The effect of every edit, and how many change the likeliest token."""
    watch.step(0, 0, f"running {len(edits)} patches")
    tokens, usual = runs.prompt.token_ids, int(_row(runs.target).argmax())
    rows = [_row(trace) for trace in case.lens.run([Branch(tokens, (edit,)) for edit in edits])]
    effects = np.array([runs.contrast.effect(row) for row in rows], np.float32)
    return effects, sum(int(row.argmax()) != usual for row in rows)


# --- together -----------------------------------------------------------------------------------


def _together(case: Case, request: Request, runs: _Runs, watch: Watch) -> dict[str, Any]:
    assert runs.source.heads is not None
    edits = tuple(
        set_to("head", layer, [runs.place], runs.source.heads[layer, head, 0], head)
        for layer, head in request.heads
    )
    tokens = runs.prompt.token_ids
    watch.step(0, 0, "running the patch")
    patched = case.lens.run([Branch(tokens, edits)])[0]
    texts = continuations(case.lens, tokens, [(), edits], watch)
    before, after = (
        _outcome(case, runs, _row(trace), text)
        for trace, text in zip((runs.target, patched), texts, strict=True)
    )
    effect = np.array(after.effect, np.float32)
    restored = _restored(effect, runs)
    return {
        "patched": effect,
        "restoration": restored,
        "before": before,
        "after": after,
        "words": _together_words(before, after, float(restored), runs),
        "note": NOTE_TEXT,
    }


def _outcome(case: Case, runs: _Runs, row: Float[np.ndarray, " token"], text: str) -> Outcome:
    chances = np.exp(row.astype(np.float64) - np.logaddexp.reduce(row.astype(np.float64)))
    best = np.argsort(-chances, kind="stable")[:5]
    verdict = None
    if runs.prompt.role.startswith("evaluator"):
        odds = log_odds(row, case.verdict)
        verdict = (odds, float(1 / (1 + np.exp(-odds))))
    top = tuple((_token(case, int(i)), float(chances[i])) for i in best)
    return Outcome(runs.contrast.effect(row), top, verdict, text)


# --- words --------------------------------------------------------------------------------------


def _title(request: Request) -> str:
    way = DIRECTIONS[request.direction]
    names = [f"{layer}.{head}" for layer, head in request.heads]
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    what = {
        "heads": "Every head, one at a time",
        "layers": "Every layer's residual stream and MLP output, one at a time",
        "head": f"Head {listed}",
        "set": f"{len(names)} heads together ({listed})" if len(names) > 1 else f"Head {listed}",
    }[request.what]
    return f"{what}, {way}"


def _measure(case: Case, request: Request, runs: _Runs) -> str:
    if request.contrast == "candidate":
        return "log-odds of accepting"
    if request.contrast == "passage":
        return "logit of the gold answer's first token minus that of the altered answer's"
    traces = (runs.source, runs.target) if request.forward else (runs.target, runs.source)
    first, second = (_token(case, int(_row(trace).argmax())) for trace in traces)
    return f"logit of “{first}” minus logit of “{second}”"


def _sweep_words(
    request: Request,
    patched: Float[np.ndarray, "*cell"],
    restored: Float[np.ndarray, "*cell"],
    runs: _Runs,
    flips: int,
) -> str:
    source, target = runs.clean
    shift = np.abs(patched - target)
    place = np.unravel_index(int(shift.argmax()), shift.shape)
    if request.what == "heads":
        name, kind = f"Head {place[0]}.{place[1]}", "heads"
    else:
        part = ("The residual stream after", "The MLP of")[int(place[0])]
        name, kind = f"{part} layer {place[1]}", "patches"
    moved = (
        f"{name} moves the decision most, from {decimal(target)} to "
        f"{decimal(float(patched[place]))} logits (the source run has {decimal(source)}"
        f"{_as_share(float(restored[place]))})."
    )
    return (
        f"{moved} {flips} of {patched.size} {kind} change the likeliest next token."
        f"{_too_close(runs)}"
    )


def _together_words(before: Outcome, after: Outcome, restored: float, runs: _Runs) -> str:
    moved = (
        f"The decision moves from {decimal(before.effect)} to {decimal(after.effect)} logits (the "
        f"source run has {decimal(runs.clean[0])}{_as_share(restored)})."
    )
    first, second = before.top[0][0], after.top[0][0]
    said = (
        f"The likeliest next token stays “{first}”."
        if first == second
        else f"The likeliest next token changes from “{first}” to “{second}”."
    )
    return f"{moved} {said}{_too_close(runs)}"


def _as_share(restored: float) -> str:
    return f"; R = {decimal(restored)}" if np.isfinite(restored) else ""


def _too_close(runs: _Runs) -> str:
    source, target = runs.clean
    if abs(source - target) >= MIN_GAP:
        return ""
    return (
        f" The two clean runs differ by less than {MIN_GAP} logits, so no share of the difference "
        "(R) is given."
    )


# --- pieces -------------------------------------------------------------------------------------


def _restored(patched: Float[np.ndarray, "*cell"], runs: _Runs) -> Float[np.ndarray, "*cell"]:
    source, target = runs.clean
    value = restoration(patched[None], np.array([source]), np.array([target]), MIN_GAP).value
    return np.asarray(value[0], dtype=float)


def _row(trace: Trace) -> Float[np.ndarray, " token"]:
    assert trace.logits is not None
    return trace.logits[0]


def _token(case: Case, token: int) -> str:
    """A token as it is shown, its white space made visible where it is nothing else."""
    text = str(case.lens.tokenizer.decode([token]))
    return text.strip() or repr(text)[1:-1]
