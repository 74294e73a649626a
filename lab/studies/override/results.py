"""What an override study found, as tables: their columns, and how they are read. No torch.

Everything lies in the folder ``override`` inside a study's folder, which may hold an ordinary study
besides. Heads are chosen on the discovery pairs of a contest; every effect is of held-out pairs
unless its column says ``discovery``. Intervals are 95 %, over subjects where several conflicts
share one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from lab.errors import LabError
from lab.studies.store import PROVENANCE, RECIPE, read_json

FOLDER = "override"
"""The folder inside a study's folder that holds its override study."""

FEWEST_SETS = 19
"""With fewer random sets p, at least 1 / (1 + sets), cannot be .05, whatever the heads do."""

ESTIMATE = ("value", "low", "high", "n", "method")
"""A number, its interval (empty where there is none), on how many units it rests, and how."""

AGAINST = (
    *ESTIMATE,
    "random_mean",  # mean over random sets
    "random_low",  # the middle 95 % of random sets
    "random_high",
    "random_sets",  # how many, all different: fewer than were asked for where no more exist
    "percentile",  # share of random sets below the value, from 0 to 1
    "p",  # (1 + random sets with at least as much) / (1 + random sets)
)
"""A number of a set of heads, beside the same number of random sets of as many heads a layer."""

TABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # The 2 x 2 table. One row for each cell and quantity: "memory", "counter" and "other" are
        # shares of decisions, "margin" is in logits. Where instruction and passage are empty:
        # "known" (share known closed-book) and "usable" (see lab.instruments.conflicts.unusable).
        "conflicts": ("instruction", "passage", "expected", "quantity", *ESTIMATE),
        # The judge. "log_odds" and "accepts" for each passage and candidate; where these are
        # empty "balanced_accuracy" and "auroc", over all conflicts. right: whether the candidate
        # is what the passage says.
        "verdicts": ("passage", "candidate", "right", "quantity", *ESTIMATE),
        # One row a contest; see CONTEST_COLUMNS.
        "contests": (
            "contest",  # instruction, passage, candidate or checked
            "role",  # generator or evaluator: who is asked
            "run_a",  # what the prompts of run a are, in words, and those of run b
            "run_b",
            # "found"; "none" (enough pairs, no heads); or, where none are looked for, "too few"
            # (pairs), "no gap" (over all conflicts the runs do not differ for sure)
            "state",
            "why",  # a sentence about the state
            "conflicts",  # measured
            "usable",  # of them: both runs decided as asked
            "share",  # usable / conflicts, with its interval
            "share_low",
            "share_high",
            "clusters",  # subjects of the usable ones
            "used",  # pairs drawn from the usable ones
            "gap",  # mean log-odds of run a less run b, over ALL conflicts
            "gap_low",
            "gap_high",
            "discovery",  # pairs that heads were chosen on, and those held out
            "held_out",
            "discovery_clusters",
            "held_out_clusters",
            "lone_head",  # whether a lone head could pass the test on the discovery pairs
            "candidates",  # heads that passed the test and move the answer enough
            "heads",  # chosen, as "L12H3 L14H0": in the 90 % set of either run
            "heads_a",  # the 90 % set of run a, and of run b
            "heads_b",
            "share_of_heads",  # chosen heads / all heads
            "published_share",  # share of all heads that the published rule labels
            "flip_measure",  # the measure of proof.csv by which pairs were kept as decided
        ),
        # Conflicts that a contest cannot use, each counted at its first reason.
        "fallout": ("contest", "reason", "conflicts", "of"),
        # Each two contests: shared heads, their number for random sets, and the rank correlation
        # of all heads' mean effects over the used pairs (with low, high, n, method).
        "crossing": (
            "first", "second", "first_role", "second_role", "jaccard", "expected", "p", "shared",
            "correlation", "low", "high", "n", "method",
        ),
        # The heads of one contest zero-ablated in the runs of another, on pairs whose subjects
        # these heads were not chosen on; measures as in proof.csv. set: the 90 % set of which run
        # of heads_of, "a" or "b"; run: of pairs_of. heads_of == pairs_of: itself.
        "across": ("heads_of", "set", "pairs_of", "run", "measure", *AGAINST),
        # The outputs of a generator contest's heads, from the generator's run on the same passage
        # and question, put into the judge's runs. Conflicts whose subjects the heads were not
        # chosen on. moment: "before", "after", "difference" (paired); measure:
        # "balanced_accuracy", "auroc", "log_odds" (mean: a constant shift shows here and in the
        # balanced accuracy, not in the AUROC). Random sets: in "after" and "difference".
        "restored": ("contest", "moment", "measure", *AGAINST),
    }
)  # fmt: skip
"""Tables over all contests, each a CSV file of that name."""

_WAYS = ("a_into_b", "b_into_a")

CONTEST_TABLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # Every head of the model. For both directions (run a's output into run b: a_into_b):
        # mean shift towards the giving run's answer in log-odds, its p and the adjusted p (q) on
        # the discovery pairs; the shift with interval and p on the held-out ones, and mean R there.
        "heads": (
            "layer",
            "head",
            *(f"{what}{way}" for way in _WAYS for what in ("", "p_", "q_")),
            *(
                f"held_{way}{what}"
                for way in _WAYS
                for what in ("", "_low", "_high", "_p", "_restoration")
            ),
            "tested",  # significant on the discovery pairs, in either direction
            "candidate",  # and strong enough to be looked at further
            "published",  # "promoting", "suppressing" or "": the published rule, for comparison
            "score",  # of that rule
            "in_a",  # in the 90 % set of run a, of run b
            "in_b",
            "half_a",  # in the 50 % sets
            "half_b",
            "chosen",  # in_a or in_b: the heads that decide
            "mass_a",  # attention from the decision to the passage (discovery pairs), by run
            "mass_b",
        ),
        # MLPs and the residual stream patched, held-out pairs: `Sweep.to_dataframe`, and whether
        # the layer is in the critical window of its direction (chosen on discovery).
        "layers": (
            "direction", "site", "layer", "value", "low", "high", "n", "too_close", "shift",
            "ratio_of_means", "flip_top", "damage", "flip_two", "window",
        ),
        # Ablating the first k of the ranking, in each run; layer and head: which was added last
        # (-1 for k = 0). value: mean shift towards the competing answer on held-out pairs;
        # discovery: the same where the ranking was made. random_*: empty where no random sets
        # were run for this k.
        "curve": (
            "run", "k", "layer", "head", "value", "low", "high", "n", "discovery", "random_mean",
            "random_low", "random_high", "random_sets",
        ),
        # Ablations in each run. set: "run" (that run's 90 % set, the main effect) or "all" (both
        # runs' sets, without random sets; a head that writes one answer and one that writes the
        # other are then gone together, so that neither is said).
        # control: random sets "layers" (as many heads in each layer) or "attention" (of the same
        # layers, with nearly the same attention to the passage). how: zero, mean, resample.
        # measure: shift (log-odds towards the competing answer, all pairs), to_other and damage
        # (of those first answered as asked: share that turns to the competing answer, or to
        # anything else), two_token (sign of the log-odds turns).
        "proof": ("run", "set", "heads", "control", "how", "measure", *AGAINST),
        # Unrelated prompts, chosen heads zero-ablated. prompts: "questions" or "clozes". measure:
        # changed (share whose most likely token changes) or divergence (nats).
        "elsewhere": ("prompts", "measure", *AGAINST),
        # Plain text with the chosen heads zero-ablated at every position. measure: "rise", the
        # loss in nats a token less that of the whole model; clean: the latter.
        "text": ("measure", "clean", *AGAINST),
        # Greedy texts of held-out pairs, before and after zero ablation; *_says: "memory",
        # "counter" or "other" for a generator, "accept", "reject" or "other" for a judge.
        "texts": (
            "conflict", "run", "question", "expected", "before", "before_says", "after",
            "after_says",
        ),
        # Routing or writing, `Kinds.to_dataframe`; further columns looks_SPAN, looks_SPAN_low,
        # looks_SPAN_high and p_looks_SPAN for each span.
        "kinds": (
            "layer", "head", "kind", "n",
            *(f"{what}{end}" for what in ("hits", "direct", "total", "indirect")
              for end in ("", "_low", "_high")),
            "p_indirect",
        ),
        # Attention from the span queries to the span keys cut in layers first to last, in each
        # run: `Knockout.to_dataframe`.
        "knockout": (
            "run", "queries", "keys", "first", "last", "value", "low", "high", "n", "to_other",
            "damage", "n_asked", "two_token", "n_two_token",
        ),
        # Backup heads: `Backups.to_dataframe` in each run, every head.
        "backups": ("run", "layer", "head", "alone", "after", "p_adjusted", "backup", "enough"),
        # In how many of other random splits a head is among the candidates (splits of so many;
        # no model is run for these), and whether it was chosen on the discovery pairs, and on the
        # held-out pairs in their place (the whole search, on pairs that share nothing).
        "stability": ("layer", "head", "splits", "of", "share", "chosen", "chosen_swapped"),
        # What both searches chose; split: "discovery" or "held_out". jaccard: of the two; n: pairs;
        # lone_head: whether a lone head could pass the test on the pairs of this split.
        "splits": ("split", "n", "heads", "jaccard", "expected", "lone_head"),
        # Attribution patching beside the exact sweep, `Screen.agreement` (n pairs of discovery).
        "screen": ("direction", "spearman", "top", "shared", "largest", "estimated", "n"),
    }
)  # fmt: skip
"""Tables of each contest in which heads were found, in a folder of the contest's name.

Where the state is "none", there are only heads, layers, curve (k = 0), stability and splits.
"""

LATER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "knockout": ("n_asked", "two_token", "n_two_token"),
        "backups": ("enough",),
        "splits": ("lone_head",),
    }
)
"""Columns that tables of earlier versions lack: they are read as empty."""

WORDS = frozenset(
    {
        "instruction", "passage", "expected", "quantity", "method", "candidate", "contest", "role",
        "state", "why", "run_a", "run_b", "heads", "heads_a", "heads_b", "flip_measure", "reason",
        "first_role", "second_role", "split", "heads_of", "pairs_of", "run", "measure", "moment",
        "published", "direction", "site", "set", "control", "how", "prompts", "conflict",
        "question", "before", "before_says", "after_says", "kind", "queries", "keys",
    }
)  # fmt: skip
"""Columns that hold words wherever they occur, so that a text "None" stays a text."""

_WORDS_HERE = {"crossing": {"first", "second"}, "texts": {"after"}}
_NUMBERS_HERE = {"crossing": {"expected"}, "splits": {"expected"}, "heads": {"candidate"}}


@dataclass(frozen=True, slots=True, eq=False)
class OverrideResults:
    """An override study as far as it is finished.

    Attributes:
        provenance: how it was made, as of an ordinary study; ``finished`` is empty until it is.
        recipe: what was run.
        tables: those of TABLES that are finished.
        contests: for each contest those of CONTEST_TABLES that are finished.
    """

    provenance: Mapping[str, Any]
    recipe: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame]
    contests: Mapping[str, Mapping[str, pd.DataFrame]]


def holds_override(folder: str | Path) -> bool:
    """Whether a study's folder holds an override study, finished or not."""
    return (Path(folder) / FOLDER / RECIPE).exists()


def read_override(folder: str | Path) -> OverrideResults:
    """The tables of an override study; those that are not finished yet are absent.

    Args:
        folder: the study's folder, which holds a folder ``override``.

    Raises:
        LabError: there is no override study, or a file is damaged.
    """
    root = Path(folder) / FOLDER
    if not holds_override(folder):
        raise LabError(f"{folder} holds no override study. Make one with `lab override`.")
    path = root / PROVENANCE
    contests = {}
    for place in sorted(p for p in root.iterdir() if p.is_dir()):
        if found := _read_all(place, CONTEST_TABLES):
            contests[place.name] = found
    return OverrideResults(
        read_json(path) if path.exists() else {},
        read_json(root / RECIPE).get("recipe") or {},
        _read_all(root, TABLES),
        contests,
    )


def _read_all(folder: Path, tables: Mapping[str, tuple[str, ...]]) -> Mapping[str, pd.DataFrame]:
    return {
        name: read_table(folder / f"{name}.csv", columns)
        for name, columns in tables.items()
        if (folder / f"{name}.csv").exists()
    }


def read_table(path: Path, columns: Iterable[str]) -> pd.DataFrame:
    """One table; words stay words, and an empty number, or a column of LATER, is NaN.

    Raises:
        LabError: the file cannot be read or lacks a column.
    """
    name = path.stem
    try:
        header = list(pd.read_csv(path, nrows=0).columns)
        words = (WORDS | _WORDS_HERE.get(name, set())) - _NUMBERS_HERE.get(name, set())
        texts = [column for column in header if column in words]
        frame = pd.read_csv(
            path,
            keep_default_na=False,
            na_values={column: [""] for column in header if column not in texts},
            dtype=dict.fromkeys(texts, str),
        )
    except (OSError, ValueError) as error:
        raise LabError(
            f"{path} cannot be read ({error}). Bring back a copy of it, or delete it and run "
            "`lab override` again to make it anew."
        ) from error
    later = [column for column in LATER.get(name, ()) if column not in frame]
    frame = frame.assign(**dict.fromkeys(later, math.nan))
    if lacking := [column for column in columns if column not in frame]:
        raise LabError(
            f"{path} lacks the column {lacking[0]!r}: it was made by another version, or is "
            "damaged. Delete it and run `lab override` again to make it anew."
        )
    return frame


def heads_text(heads: Iterable[tuple[int, int]]) -> str:
    """Heads as in the tables: "L12H3 L14H0"."""
    return " ".join(f"L{layer}H{head}" for layer, head in sorted(heads))


def heads_of(text: str) -> tuple[tuple[int, int], ...]:
    """The heads that `heads_text` wrote: (layer, head) each."""
    return tuple((int(la), int(h)) for la, h in re.findall(r"L(\d+)H(\d+)", text))
