"""One way in: examples by the name of their source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from lab.data import builtin, drop, hotpotqa, hub, jsonl, musique, squad2
from lab.data.example import Example, Mark
from lab.data.examples import Examples
from lab.data.likely import likely_format
from lab.data.sampling import sample
from lab.data.specs import match_titles, misspelt, split_titles
from lab.data.world.spec import read_world
from lab.errors import LabError

BENCHMARKS: dict[str, Callable[[str | Path], Examples]] = {
    "squad2": squad2.read,
    "drop": drop.read,
    "hotpotqa": hotpotqa.read,
    "musique": musique.read,
}
READERS: dict[str, Callable[[str | Path], Examples]] = {**BENCHMARKS, "jsonl": jsonl.read}
LICENCES = {
    "builtin": "part of this project, under its licence",
    "world": "made by this project, under its licence",
    "squad2": "CC BY-SA 4.0",
    "drop": "CC BY-SA 4.0",
    "hotpotqa": "CC BY-SA 4.0",
    "musique": "CC BY 4.0",
}
_KNOWN = (
    "builtin, builtin:FAMILY, squad2:FILE, drop:FILE, hotpotqa:FILE, musique:FILE, jsonl:FILE, "
    "world:train/SEED/N, world:test/SEED/N, "
    "or a benchmark's name alone for the Hugging Face hub"
)


def load_examples(
    spec: str,
    *,
    n: int | None = None,
    seed: int = 0,
    families: Collection[str] = (),
    answerable: bool | None = None,
    others: int | None = None,
) -> Examples:
    """The examples of a source, as a sequence that also tells what was skipped.

    Args:
        spec: ``builtin`` or ``builtin:extract`` (arithmetic, bridge, chain); ``squad2:FILE``,
            ``drop:FILE``, ``hotpotqa:FILE``, ``musique:FILE`` in the official format
            (``squad2:FILE#TITLE,TITLE``: only the questions on these articles);
            ``jsonl:FILE`` (or a path that ends in .jsonl) in the lab's own, `lab.data.jsonl`;
            ``squad2`` or ``squad2:hub`` for the validation part from the Hugging Face hub,
            ``squad2:hub/train`` for another part, ``squad2:hub/OWNER/NAME`` for another dataset
            with the same layout; ``world:train/SEED/N`` or ``world:test/SEED/N`` for N questions
            on invented passages, `lab.data.world`.
        n: how many, chosen by `lab.data.sampling.sample`; all if None.
        seed: of that choice.
        families: only examples of these families, or of one; all if empty.
        answerable: only those that the passages answer (True) or do not answer (False).
        others: of the passages without evidence keep only the first so many; all if None. With 0
            a question of HotpotQA or MuSiQue fits a short context. Examples with one passage, or
            without evidence, stay whole.

    Raises:
        LabError: for an unknown source, a file that cannot be read, a record that breaks the
            format, nothing left to choose from, ``n`` above what there is, or an id that occurs
            twice among the chosen.
    """
    families = (families,) if isinstance(families, str) else families
    read = _read(spec.strip())
    _check_families(spec, families, read)
    kept = [
        item
        for item in read
        if (not families or item.family in families)
        and (answerable is None or item.answerable == answerable)
    ]
    if not kept:
        raise LabError(_nothing(spec, read, families, answerable))
    chosen = kept if n is None else _sample(spec, kept, n, seed)
    _check_ids(spec, chosen)
    if others is not None:
        chosen = [with_fewer_passages(item, others) for item in chosen]
    return Examples(tuple(chosen), read.skipped, read.items)


def licence(spec: str) -> str:
    """The licence of a source's texts, as its publishers state it; the user's own for a file."""
    return LICENCES.get(spec.partition(":")[0], "the user's own")


def with_fewer_passages(example: Example, others: int) -> Example:
    """The example with its evidence passages and the first ``others`` of the rest, in order."""
    if others < 0:
        raise LabError(f"The number of other passages must be 0 or more, not {others}.")
    needed = {mark.passage for mark in example.evidence}
    rest = [index for index in range(len(example.passages)) if index not in needed]
    if not needed or len(rest) <= others:
        return example
    kept = sorted(needed | set(rest[:others]))
    place = {old: new for new, old in enumerate(kept)}
    note = f"{len(rest) - others} passages without evidence were left out."
    return replace(
        example,
        passages=tuple(example.passages[index] for index in kept),
        evidence=_moved(example.evidence, place),
        answer_marks=_moved(example.answer_marks, place),
        notes=(*example.notes, note),
    )


def _moved(marks: Sequence[Mark], place: dict[int, int]) -> tuple[Mark, ...]:
    return tuple(
        replace(mark, passage=place[mark.passage]) for mark in marks if mark.passage in place
    )


def _read(spec: str) -> Examples:
    source, _, rest = spec.partition(":")
    if source == "builtin":
        return builtin.read(_builtin_families(rest))
    if source == "world":
        return read_world(rest)
    if source == "jsonl" and rest:
        return _read_file("jsonl", rest)
    if source in BENCHMARKS:
        if rest in ("", "hub") or rest.startswith("hub/"):
            return hub.read(source, rest.partition("/")[2])
        path, titles = split_titles(rest)
        read = _read_file(source, path)
        return _of_articles(spec, read, titles) if titles else read
    if wrong := misspelt(spec, ("builtin", "world", *READERS)):
        raise LabError(f"{wrong} Use {_KNOWN}.")
    if spec.endswith(".jsonl"):
        return _read_file("jsonl", spec)
    hint, place = "", Path(spec).expanduser()
    if place.exists():
        likely = likely_format(place) or "squad2"
        hint = (
            f" {spec} is a file or folder: say which format it has, for instance {likely}:{spec}."
        )
    raise LabError(f"Unknown source {spec!r}; use {_KNOWN}.{hint}")


def _read_file(source: str, name: str) -> Examples:
    """The examples of a file; an error says so if it looks like one of another format."""
    path = Path(name).expanduser()
    try:
        return READERS[source](path)
    except LabError as error:
        likely = likely_format(path)
        if likely in ("", source):
            raise
        raise LabError(f"{error} It looks like {likely}: write {likely}:{name}.") from None


def _of_articles(spec: str, read: Examples, titles: str) -> Examples:
    """The examples of some articles; everything else of the source is as if it were not there."""
    present = {item.meta.get("title", "") for item in read} - {""}
    wanted, unknown = match_titles(titles, present)
    if unknown:
        known = ", ".join(sorted(present)) or "none with a title"
        raise LabError(
            f"{spec} has no article {', '.join(map(repr, unknown))}; its articles are: {known}."
        )
    kept = tuple(item for item in read if item.meta.get("title") in wanted)
    return Examples(kept, read.skipped, kept)


def _builtin_families(name: str) -> tuple[str, ...]:
    if not name:
        return builtin.FAMILIES
    if name not in builtin.FAMILIES:
        raise LabError(
            f"The built-in set has no family {name!r}; it has {', '.join(builtin.FAMILIES)}."
        )
    return (name,)


def _check_families(spec: str, families: Collection[str], read: Examples) -> None:
    present = {item.family for item in read}
    unknown = [family for family in families if family not in present]
    if unknown and present:
        raise LabError(
            f"{spec} has no family {', '.join(map(repr, unknown))}; "
            f"it has {', '.join(sorted(present))}."
        )


def _nothing(spec: str, read: Examples, families: Collection[str], answerable: bool | None) -> str:
    if not read and not read.skipped:
        return f"{spec} holds no question."
    if not read:
        return (
            f"{spec} holds no usable question; {len(read.skipped)} were skipped, the first: "
            + (read.skipped[0])
        )
    which = [f"of the family {' or '.join(families)}"] if families else []
    if answerable is not None:
        which.append("that is answerable" if answerable else "that is unanswerable")
    return f"{spec} holds {len(read)} questions, but none {' and '.join(which)}."


def _sample(spec: str, examples: Sequence[Example], n: int, seed: int) -> list[Example]:
    try:
        return sample(examples, n, seed)
    except LabError as error:
        raise LabError(f"{spec}: {error}") from None


def _check_ids(spec: str, examples: Sequence[Example]) -> None:
    repeated = [name for name, count in Counter(item.id for item in examples).items() if count > 1]
    if repeated:
        shown = ", ".join(repeated[:5]) + (", ..." if len(repeated) > 5 else "")
        raise LabError(
            f"{spec}: {len(repeated)} ids occur more than once ({shown}). Ids must be unique."
        )
