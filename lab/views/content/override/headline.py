"""What an override study found in one line, for the head of a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lab.views.content.override import rows as R
from lab.views.content.override.box import Effect, decides
from lab.views.format import count

if TYPE_CHECKING:
    from lab.studies.override.results import OverrideResults


_TOLD: Mapping[Effect | None, tuple[str, str]] = {
    "decide": ("a few heads decide", ""),
    "matter": ("a few heads matter, but do not decide", "they matter, but do not decide"),
    "unclear": (
        "a few heads were found, with too few others to tell whether they decide",
        "some were found, with too few others to tell whether they decide",
    ),
    None: (
        "a few heads were found; what they do is not measured yet",
        "some were found whose effect is not measured yet",
    ),
}
"""What heads do, as the title begins with it, and as it goes on after another."""


def title(found: OverrideResults) -> str:
    """In how many contests heads decide, and in how many they only matter."""
    rows = R.records(found.tables.get("contests"))
    states = [str(record["state"]) for record in rows]
    if not states:
        return "Which few heads decide? No contest is finished yet"
    if "found" not in states:
        return (
            "No heads could be named: there are too few conflicts to tell"
            if "too few" in states
            else "No few heads were found that decide"
        )
    known = [
        decides(record, found.contests.get(str(record["contest"]), {}).get("proof"))
        for record in rows
        if record["state"] == "found"
    ]
    parts: list[str] = []
    for effect, (first, later) in _TOLD.items():
        if n := known.count(effect):
            parts.append(f"in {n} more {later}" if parts else f"{_in(n, len(states))} {first}")
    return "; ".join(parts)


def _in(some: int, contests: int) -> str:
    if some == contests > 1:
        return f"In all {contests} contests"
    return f"In {some} of {count(contests, 'contest')}"


def size(found: OverrideResults) -> str:
    """``120 conflicts`` of an override study, for a page of its own."""
    frame = found.tables.get("contests")
    if frame is None or frame.empty:
        return "no conflicts yet"
    return count(int(frame["conflicts"].max()), "conflict")
