"""The arrays of a study: which variables there are, along which dimensions, and what is missing.

One table, so that the store, the tests and the documentation cannot drift apart. Missing values
are NaN, -1 or the empty string.
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.instruments.names import CONTRASTS, DIRECTIONS, JUDGED_CONTROLS, READING_ROLES, RUNGS
from lab.instruments.schemes import SCHEMES
from lab.roles import MARKS, SPANS

SHOWN_ROLES = READING_ROLES[:2]
"""The roles whose attention is kept token by token, for the reader."""

LABELS: dict[str, tuple[str, ...]] = {
    "role": READING_ROLES,
    "role2": SHOWN_ROLES,
    "span": SPANS,
    "mark": MARKS,
    "rung": RUNGS,
    "control": JUDGED_CONTROLS,
    "contrast": CONTRASTS,
    "run": ("a", "b"),
    "direction": DIRECTIONS,
    "site": ("mlp", "resid"),
    "scheme": tuple(SCHEMES),
    "pair": ("right", "wrong"),
}
"""Dimensions with names for their positions. ``example``, ``layer``, ``head`` and ``token`` have
their sizes from the study."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One array: its dimensions behind ``example``, its type, and what it means."""

    dims: tuple[str, ...]
    dtype: str
    meaning: str


_HEADS = ("layer", "head")

VARIABLES: dict[str, Variable] = {
    # What was asked; filled for all examples before anything runs.
    "dataset": Variable((), "str", "source of the example"),
    "family": Variable((), "str", "kind of question within the source"),
    "cluster": Variable((), "str", "examples that share passages share this"),
    "question": Variable((), "str", "the question"),
    "gold": Variable((), "str", "first gold answer; empty where unanswerable"),
    "answerable": Variable((), "bool", "whether the passages answer it"),
    # Behaviour
    "answer": Variable((), "str", "greedy answer, refusals mapped to empty"),
    "answer_raw": Variable((), "str", "greedy answer as generated, first line"),
    "em": Variable((), "f4", "official exact match of the answer"),
    "f1": Variable((), "f4", "official F1 of the answer"),
    "closed_book_answer": Variable((), "str", "answer with the passages masked"),
    "closed_book_em": Variable((), "f4", "its exact match"),
    "closed_book_f1": Variable((), "f4", "its F1"),
    "candidate": Variable(("rung",), "str", "the candidate that is judged"),
    "candidate_given": Variable(("rung",), "bool", "whether the rung exists for the example"),
    "candidate_em": Variable(("rung",), "f4", "exact match of the candidate"),
    "candidate_f1": Variable(("rung",), "f4", "F1 of the candidate"),
    "log_odds": Variable(("rung",), "f4", "log P(accept) - log P(reject) at the decision"),
    "label_mass": Variable(("rung",), "f4", "P(accept) + P(reject) at the decision"),
    "control_log_odds": Variable(("control",), "f4", "log-odds of the own answer under a control"),
    "control_label_mass": Variable(("control",), "f4", "P(accept) + P(reject) under a control"),
    "scheme_log_odds": Variable(
        ("scheme", "pair"), "f4", "log-odds of a right and a wrong candidate in other schemes"
    ),
    # Reading
    "mass": Variable(("role", *_HEADS, "span"), "f4", "attention of the decision on each span"),
    "norm_mass": Variable(("role", *_HEADS, "span"), "f4", "the same, norm-weighted"),
    "mark_mass": Variable(("role", *_HEADS, "mark"), "f4", "attention on each sub-span"),
    "norm_mark_mass": Variable(("role", *_HEADS, "mark"), "f4", "the same, norm-weighted"),
    "span_tokens": Variable(("role", "span"), "i4", "tokens in each span"),
    "mark_tokens": Variable(("role", "mark"), "i4", "tokens in each sub-span"),
    "candidate_to_context": Variable(
        ("role", *_HEADS), "f4", "attention of the candidate's tokens on the context, mean"
    ),
    # Patching
    "patch_clean": Variable(("contrast", "run"), "f4", "effect in the two clean runs"),
    "patch_head": Variable(
        ("contrast", "direction", *_HEADS), "f4", "effect after carrying a head's output over"
    ),
    "patch_head_flip": Variable(
        ("contrast", "direction", *_HEADS), "i1", "whether the most likely token changed"
    ),
    "patch_layer": Variable(
        ("contrast", "direction", "site", "layer"), "f4", "effect after carrying a layer over"
    ),
    "patch_layer_flip": Variable(
        ("contrast", "direction", "site", "layer"), "i1", "whether the most likely token changed"
    ),
    # For the reader
    "attention": Variable(
        ("role2", *_HEADS, "token"), "u1", "attention of the decision on each token, times 255"
    ),
    "token_span": Variable(("role2", "token"), "i1", "span of each token; -1 beyond the end"),
    "token_mark": Variable(("role2", "token"), "u1", "sub-spans of each token, one bit each"),
    "tokens": Variable(("role2",), "str", "token texts and ids, a JSON list of pairs"),
    "notes": Variable((), "str", "what was changed to make the example fit or safe, a JSON list"),
}

MISSING: dict[str, object] = {
    "str": "", "bool": False, "f4": float("nan"), "i4": -1, "i1": -1, "u1": 0,
}  # fmt: skip

_READ = (
    "mass", "norm_mass", "mark_mass", "norm_mark_mass", "span_tokens", "mark_tokens",
    "candidate_to_context", "attention", "token_span", "token_mark", "tokens",
)  # fmt: skip

OPTIONAL: dict[str, tuple[str, ...]] = {
    "controls": tuple(name for name in VARIABLES if name.startswith("control_")),
    "schemes": ("scheme_log_odds",),
    "reading": _READ,
    "patching": tuple(name for name in VARIABLES if name.startswith("patch_")),
}
"""Variables that a recipe may leave unmeasured for some examples; each group is there or not."""
