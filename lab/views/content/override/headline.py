"""What an override study found in one line, for the head of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.views.content.override import rows as R
from lab.views.content.override.box import decides
from lab.views.format import count

if TYPE_CHECKING:
    from lab.studies.override.results import OverrideResults


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
    return _told(known.count(True), known.count(False), known.count(None), len(states))


def _told(deciding: int, mattering: int, unknown: int, contests: int) -> str:
    """The title where heads were found in some contest."""
    parts = []
    if deciding:
        parts.append(f"{_in(deciding, contests)} a few heads decide")
        if mattering:
            parts.append(f"in {mattering} more they matter, but do not decide")
    elif mattering:
        parts.append(f"{_in(mattering, contests)} a few heads matter, but do not decide")
    if unknown and parts:
        parts.append(f"in {unknown} more some were found whose effect is not measured yet")
    elif unknown:
        parts.append(
            f"{_in(unknown, contests)} a few heads were found; what they do is not measured yet"
        )
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
