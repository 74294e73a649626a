"""Heads switched off at one decision: what is said before and after, beside random sets of heads.

The same ablations as `lab.instruments.override.prove` scores over many conflicts, for one decision.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float

from lab.data.conflicts import Conflict
from lab.engine.edits import Change
from lab.engine.forward import Keep, Trace
from lab.engine.packing import Branch
from lab.engine.watching import watched
from lab.errors import LabError
from lab.explorer.continuation import Changes, continuations
from lab.explorer.jobs import Watch
from lab.explorer.selection import Head
from lab.explorer.switch.asking import Decision, decisions
from lab.instruments.override.ablation import replace_heads
from lab.instruments.override.prove import RANDOM_SETS, random_sets
from lab.roles import Prompter

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from lab.engine.lens import Lens

Put = Literal["zero", "mean"]

PUTS: Mapping[Put, str] = {"zero": "nothing (zeros)", "mean": "their mean elsewhere"}
"""What heads that are switched off put out."""

ROUNDING = 1e-3
"""Logits by which runs that do the same may differ."""

DONORS = 6
"""Means are over the decisions of so many other conflicts."""


@dataclass(frozen=True, slots=True)
class Switches:
    """What the switches stand at.

    Attributes:
        conflict: id of the conflict.
        ask: which of its decisions, a key of `lab.explorer.switch.asking.ASKS`: role, and cell of
            its table (``generator/INSTRUCTION/PASSAGE`` or ``evaluator/PASSAGE/CANDIDATE``).
        heads: (layer, head) pairs that are switched off, in ascending order.
        put: what they put out: ``zero``, or their ``mean`` over the decisions of other conflicts
            in the same role.
    """

    conflict: str
    ask: str
    heads: tuple[Head, ...] = ()
    put: Put = "zero"


@dataclass(frozen=True, slots=True)
class Said:
    """What one run says at the decision, and what it goes on to say.

    Attributes:
        probabilities: of the two answers, each summed over all tokens that may begin it.
        log_odds: of the first answer against the second.
        top: the most likely token, and ``p_top`` its probability.
        says: 0 or 1, which answer that token begins; 2 for neither.
        text: the greedy continuation, up to the end of its first line.
    """

    probabilities: tuple[float, float]
    log_odds: float
    top: str
    p_top: float
    says: int
    text: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Switched:
    """What switching heads off changes at one decision.

    Attributes:
        selection: what the switches stood at.
        decision: what was asked.
        before, after: with all heads on, and with the chosen ones off.
        random: shift of the log-odds by each random set of as many heads in the same layers; empty
            where there are no others.
        seconds: how long it took.
    """

    selection: Switches
    decision: Decision
    before: Said
    after: Said
    random: Float[np.ndarray, " set"]
    seconds: float = 0.0

    @property
    def shift(self) -> float:
        """Change of the log-odds of the first answer against the second, in logits."""
        return self.after.log_odds - self.before.log_odds

    @property
    def band(self) -> tuple[float, float]:
        """The middle 95 % of the random sets' shifts; NaN without any."""
        if not self.random.size:
            return (float("nan"), float("nan"))
        low, high = np.percentile(self.random, [2.5, 97.5])
        return float(low), float(high)

    @property
    def beaten(self) -> int:
        """Random sets that move the log-odds less, in any direction; rounding does not count."""
        return int((np.abs(self.random) < abs(self.shift) - ROUNDING).sum())

    @property
    def words(self) -> str:
        """What changed, in a sentence or two."""
        first, second = self.decision.answers
        if not self.selection.heads:
            return "No head is switched off yet: choose a set, or single heads."
        towards = f" towards “{(second, first)[self.shift > 0]}”"
        many = len(self.selection.heads)
        beside = (
            f"further than with {self.beaten} of {self.random.size} random sets of the same layers"
            if self.random.size
            else "with no other heads in these layers to compare with"
        )
        moved = (
            f"With {many} head{'s' * (many > 1)} off the log-odds of “{first}” against “{second}” "
            f"move by {abs(self.shift):.2f} logits{towards}, {beside}."
        )
        told = (
            f"The most likely token stays “{self.before.top}”."
            if self.before.top == self.after.top
            else f"The most likely token changes from “{self.before.top}” to “{self.after.top}”."
        )
        return f"{moved} {told}"

    def to_dataframe(self) -> pd.DataFrame:
        """Two rows, heads on and off.

        Columns: heads ("on", "off"), both answers' probabilities by their names, log_odds (of the
        first against the second), shift (of the log-odds, logits), random_low and random_high
        (middle 95 % of random sets' shifts), top and p_top (the most likely token), text.
        """
        import pandas as pd

        rows = []
        for name, said in (("on", self.before), ("off", self.after)):
            off = name == "off"
            rows.append(
                {
                    "heads": name,
                    **dict(zip(self.decision.answers, said.probabilities, strict=True)),
                    "log_odds": said.log_odds,
                    "shift": self.shift if off else 0.0,
                    "random_low": self.band[0] if off else float("nan"),
                    "random_high": self.band[1] if off else float("nan"),
                    "top": said.top,
                    "p_top": said.p_top,
                    "text": said.text,
                }
            )
        return pd.DataFrame(rows)


@dataclass(eq=False)
class Switchboard:
    """Runs decisions of some conflicts with heads switched off; what was rendered is kept."""

    lens: Lens
    conflicts: Mapping[str, Conflict]
    prompter: Prompter
    begun: bool = True
    n_random: int = RANDOM_SETS
    seed: int = 0
    _decisions: dict[str, dict[str, Decision]] = field(default_factory=dict, repr=False)
    _means: dict[tuple[str, str], torch.Tensor] = field(default_factory=dict, repr=False)

    def decision(self, selection: Switches) -> Decision:
        """The chosen decision, rendered."""
        if selection.conflict not in self._decisions:
            conflict = self.conflicts[selection.conflict]
            self._decisions[selection.conflict] = decisions(self.prompter, conflict, self.begun)
        return self._decisions[selection.conflict][selection.ask]

    def run(self, selection: Switches, watch: Watch | None = None) -> Switched:
        """What the switches change.

        Raises:
            LabError: the answers cannot be told apart, a prompt is too long, or there is no other
                conflict to take means from.
            Stopped: the watch was told to stop.
        """
        start, watch = time.perf_counter(), watch or Watch()
        decision = self.decision(selection)
        with watched(self.lens, lambda layer: watch.layer(layer, self.lens.n_layers)):
            values = self._values(decision, selection, watch)
            rows = self._rows(decision, selection.heads, values, watch)
            texts = self._texts(decision, selection.heads, values, watch)
        said = [self._said(decision, row, text) for row, text in zip(rows, texts, strict=False)]
        odds = np.array([_log_odds(row, decision.tokens) for row in rows])
        return Switched(
            selection,
            decision,
            said[0],
            said[-1],
            odds[2:] - odds[0],
            time.perf_counter() - start,
        )

    def _rows(
        self,
        decision: Decision,
        heads: Sequence[Head],
        values: torch.Tensor | None,
        watch: Watch,
    ) -> list[Float[np.ndarray, " token"]]:
        """Logits with all heads on, with the set off, and with every random set off."""
        sets: list[Sequence[Head]] = [()]
        if heads:
            drawn = random_sets(
                heads, self.lens.n_layers, self.lens.n_heads, self.n_random, self.seed
            )
            sets += [heads, *drawn]
        watch.step(0, 0, "asking, with the heads and with random ones off")
        prompt, at = decision.prompt, [decision.prompt.decision]
        branches = [Branch(prompt.token_ids, replace_heads(chosen, at, values)) for chosen in sets]
        return [_row(trace) for trace in self.lens.run(branches)]

    def _texts(
        self,
        decision: Decision,
        heads: Sequence[Head],
        values: torch.Tensor | None,
        watch: Watch,
    ) -> list[str]:
        def off(places: range) -> tuple[Change, ...]:
            return replace_heads(heads, places, values)

        changes: list[Changes] = [(), off] if heads else [()]
        return continuations(self.lens, decision.prompt.token_ids, changes, watch)

    def _said(self, decision: Decision, row: Float[np.ndarray, " token"], text: str) -> Said:
        chances = np.exp(row.astype(float) - np.logaddexp.reduce(row.astype(float)))
        first, second = (float(chances[list(ids)].sum()) for ids in decision.tokens)
        top = int(row.argmax())
        says = next((i for i, ids in enumerate(decision.tokens) if top in ids), 2)
        name = str(self.lens.tokenizer.decode([top]))
        return Said(
            (first, second),
            _log_odds(row, decision.tokens),
            name.strip() or repr(name)[1:-1],
            float(chances[top]),
            says,
            text,
        )

    # --- means ------------------------------------------------------------------------------

    def _values(
        self, decision: Decision, selection: Switches, watch: Watch
    ) -> Float[torch.Tensor, "layer head d_head"] | None:
        if selection.put == "zero" or not selection.heads:
            return None
        import torch

        own = decision.conflict.cluster
        found: list[torch.Tensor] = []
        for other in self.conflicts.values():
            if other.cluster != own and len(found) < DONORS:
                watch.step(len(found), DONORS, "measuring the heads' means on other conflicts")
                found += self._mean(other, decision.role)
        if not found:
            raise LabError(
                "Means are taken over other conflicts, and there is none about another subject: "
                'give more conflicts, or let the heads put out nothing (put="zero").'
            )
        return torch.stack(found).mean(0)

    def _mean(self, conflict: Conflict, role: str) -> Iterable[torch.Tensor]:
        """A conflict's mean head outputs over its four decisions; nothing if it has none."""
        if (conflict.id, role) not in self._means:
            try:
                asked = decisions(self.prompter, conflict, self.begun)
            except LabError:
                return ()
            prompts = [d.prompt for d in asked.values() if d.role == role]
            branches = [Branch(prompt.token_ids) for prompt in prompts]
            traces = self.lens.run(branches, Keep(False, heads=True))
            outputs = [trace.heads[:, :, 0] for trace in traces if trace.heads is not None]
            self._means[conflict.id, role] = sum(outputs[1:], outputs[0]) / len(outputs)
        return (self._means[conflict.id, role],)


def _log_odds(row: Float[np.ndarray, " token"], tokens: Sequence[Sequence[int]]) -> float:
    first, second = (np.logaddexp.reduce(row[list(ids)].astype(float)) for ids in tokens)
    return float(first - second)


def _row(trace: Trace) -> Float[np.ndarray, " token"]:
    assert trace.logits is not None
    return trace.logits[0]
