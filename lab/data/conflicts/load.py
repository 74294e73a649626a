"""One way in: conflicts by the name of their source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from lab.data.conflicts import builtin, compmech, known, lre
from lab.data.conflicts.conflict import Conflicts
from lab.data.sampling import sample
from lab.errors import LabError

READERS: dict[str, Callable[[str], Conflicts]] = {
    "lre": lre.read,
    "known": known.read,
    "compmech": compmech.read,
}

LICENCES = {
    "builtin": "part of this project, under its licence",
    "lre": "MIT (of the repository; none is stated for the data)",
    "known": "MIT (of the repository; none is stated for the data)",
    "compmech": "MIT (of the repository; none is stated for the data)",
}


def load_conflicts(spec: str = "builtin", n: int | None = None, seed: int = 0) -> Conflicts:
    """The conflicts of a source.

    Args:
        spec: ``builtin``; ``lre:FOLDER`` (or one of its files), ``known:FILE`` and
            ``compmech:FILE`` in the formats in which they were published.
        n: how many, chosen by `lab.data.sampling.sample`: relations keep their shares, and a
            subject comes twice only when all others of the relation came once. All if None.
        seed: of that choice. The counter answers do not depend on it.

    Raises:
        LabError: an unknown source, a file that cannot be read, a record that breaks the format
            (with file, line and field), no conflict in the source, ``n`` above what there is, or
            an id that occurs twice.
    """
    name, _, rest = spec.strip().partition(":")
    if name == "builtin" and not rest:
        found = builtin.read()
    elif name in READERS and rest:
        found = READERS[name](rest)
    else:
        raise LabError(
            f"Unknown source of conflicts {spec!r}; use builtin, lre:FOLDER, known:FILE or "
            "compmech:FILE."
        )
    if not found:
        first = (
            f"; the first of {len(found.skipped)} skipped: {found.skipped[0]}"
            if found.skipped
            else ""
        )
        raise LabError(f"{spec} holds no conflict{first}")
    _check_ids(spec, found)
    return found if n is None else _sample(spec, found, n, seed)


def _check_ids(spec: str, conflicts: Conflicts) -> None:
    counts = Counter(conflict.id for conflict in conflicts)
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        shown = ", ".join(repeated[:5]) + (", ..." if len(repeated) > 5 else "")
        raise LabError(f"{spec}: {len(repeated)} ids occur more than once ({shown}).")


def _sample(spec: str, conflicts: Conflicts, n: int, seed: int) -> Conflicts:
    by_example = {f"{conflict.id}/original": conflict for conflict in conflicts}
    try:
        chosen = sample([conflict.example("original") for conflict in conflicts], n, seed)
    except LabError as error:
        raise LabError(f"{spec}: {error}") from None
    return Conflicts(tuple(by_example[example.id] for example in chosen), conflicts.skipped)
