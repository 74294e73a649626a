"""What the patch bench gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from lab.explorer.directions import What
from lab.explorer.selection import Head

if TYPE_CHECKING:
    import pandas as pd

LINES = ("residual", "MLP")
"""The two curves of a sweep over layers."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run says at its decision, and what it goes on to say.

    Attributes:
        effect: the measured difference, in logits.
        top: the five likeliest next tokens with their probabilities.
        verdict: log-odds of accepting and P(accept) among the verdict words, where a judge was
            asked; None otherwise.
        text: the greedy continuation, up to the end of its first line.
    """

    effect: float
    top: tuple[tuple[str, float], ...]
    verdict: tuple[float, float] | None
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class PatchResult:
    """What carrying activations from one run into another changed, at the decision.

    Attributes:
        example: id.
        direction: contrast and direction, for instance ``role/a_into_b``.
        what: ``heads`` (each head alone), ``layers`` (each layer's residual stream and MLP output
            alone), ``head`` or ``set`` (the given heads together).
        heads: the heads that were carried over, for ``head`` and ``set``.
        title: what was done, in words.
        words: what it changed, in words.
        measure: what the effect is, in words; all effects are in logits.
        source, target: the effect in the two clean runs.
        patched: effects after each patch: [layer, head] for ``heads``, [line, layer] in the order
            of LINES for ``layers``, a single number for ``head`` and ``set``.
        restoration: R = (patched - target) / (source - target), of the same shape; NaN where the
            clean runs differ by less than half a logit.
        before, after: the target run as it is and with the heads carried over; only for ``head``
            and ``set``.
        seconds: how long it took.
        note: what to know when reading it.
    """

    example: str
    direction: str
    what: What
    heads: tuple[Head, ...]
    title: str
    words: str
    measure: str
    source: float
    target: float
    patched: Float[np.ndarray, "*cell"]
    restoration: Float[np.ndarray, "*cell"]
    before: Outcome | None
    after: Outcome | None
    seconds: float
    note: str

    def to_dataframe(self) -> pd.DataFrame:
        """One row a patch: where (``layer`` and ``head``, or ``site`` and ``layer``), its effect
        ``patched`` (logits), ``shift`` from the target run, and ``restoration``."""
        import pandas as pd

        cells: list[dict[str, Any]]
        if self.what == "heads":
            cells = [{"layer": place[0], "head": place[1]} for place in np.ndindex(*self._shape)]
        elif self.what == "layers":
            cells = [{"site": LINES[p[0]], "layer": p[1]} for p in np.ndindex(*self._shape)]
        else:
            names = ", ".join(f"{layer}.{head}" for layer, head in self.heads)
            cells = [{"heads": names}]
        frame = pd.DataFrame(cells)
        patched = np.asarray(self.patched, dtype=float).reshape(-1)
        restored = np.asarray(self.restoration, dtype=float).reshape(-1)
        return frame.assign(patched=patched, shift=patched - self.target, restoration=restored)

    def top(self, k: int = 10) -> pd.DataFrame:
        """The ``k`` patches that move the effect most, as rows of `to_dataframe`."""
        frame = self.to_dataframe()
        order = frame["shift"].abs().sort_values(ascending=False, kind="stable").index
        return frame.loc[order[:k]].reset_index(drop=True)

    @property
    def _shape(self) -> tuple[int, ...]:
        return tuple(np.shape(self.patched))

    def as_state(self) -> dict[str, Any]:
        """The result as the front end draws it."""
        kind = "set" if self.what == "head" else self.what
        state: dict[str, Any] = {
            "title": self.title,
            "request": {
                "direction": self.direction,
                "what": self.what,
                "heads": [list(head) for head in self.heads],
            },
            "example": self.example,
            "clean": {"source": self.source, "target": self.target},
            "words": self.words,
            "kind": kind,
            "map": None,
            "lines": None,
            "before": _told(self.before),
            "after": _told(self.after),
            "seconds": round(self.seconds, 2),
            "note": self.note,
        }
        if kind == "heads":
            state["map"] = [_numbers(row) for row in self.restoration]
        if kind == "layers":
            pairs = zip(LINES, self.restoration, strict=True)
            state["lines"] = [{"name": name, "values": _numbers(line)} for name, line in pairs]
        return state


def _numbers(values: Float[np.ndarray, " cell"]) -> list[float | None]:
    return [round(float(x), 4) if np.isfinite(x) else None for x in values]


def _told(outcome: Outcome | None) -> dict[str, Any] | None:
    if outcome is None:
        return None
    verdict = outcome.verdict
    return {
        "text": outcome.text,
        "top": [[token, round(p, 6)] for token, p in outcome.top],
        "verdict": None if verdict is None else {"log_odds": verdict[0], "p_accept": verdict[1]},
    }
