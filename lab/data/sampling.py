"""Choosing some examples of many: seeded, in step with the families, spread over passages."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha256

from lab.data.example import Example
from lab.errors import LabError


def sample(examples: Sequence[Example], n: int, seed: int = 0) -> list[Example]:
    """``n`` of the examples, in their original order; the same for the same seed.

    Families keep their shares (each gets at least one if there is room). A passage is asked a
    second time only when every passage of the family has been asked once. The choice depends on
    ids and seed, not on the order of the examples.

    Raises:
        LabError: if ``n`` is below one or above the number of examples.
    """
    if n < 1:
        raise LabError(f"The number of examples must be at least 1, not {n}.")
    if n > len(examples):
        raise LabError(f"{n} examples were asked for, but there are only {len(examples)}.")
    queues = _queues(examples, seed)
    wanted = shares({family: len(queue) for family, queue in queues.items()}, n)
    used: Counter[str] = Counter()
    chosen: set[int] = set()
    while len(chosen) < n:
        for family, queue in queues.items():
            if wanted[family]:
                wanted[family] -= 1
                chosen.add(_take(queue, examples, used))
    return [examples[index] for index in sorted(chosen)]


def shares(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """``n`` divided in proportion to the sizes (largest remainder), none left at 0 if n allows."""
    total = sum(sizes.values())
    exact = {family: n * size / total for family, size in sizes.items()}
    least = 1 if n >= len(sizes) else 0
    given = {family: max(least, int(value)) for family, value in exact.items()}
    while sum(given.values()) < n:
        family = max(sizes, key=lambda name: (exact[name] - given[name], name))
        given[family] += 1
    while sum(given.values()) > n:
        spare = [name for name in sizes if given[name] > least]
        family = max(spare, key=lambda name: (given[name] - exact[name], given[name], name))
        given[family] -= 1
    return given


Queue = list[tuple[int, str, int]]
"""A heap of (times its cluster was used, random rank, index of the example)."""


def _queues(examples: Sequence[Example], seed: int) -> dict[str, Queue]:
    found: dict[str, Queue] = defaultdict(list)
    for index, item in enumerate(examples):
        rank = sha256(f"{seed}/{item.id}".encode("utf-8", "surrogatepass")).hexdigest()
        found[item.family].append((0, rank, index))
    for queue in found.values():
        heapq.heapify(queue)
    return dict(sorted(found.items()))


def _take(queue: Queue, examples: Sequence[Example], used: Counter[str]) -> int:
    """The index of the next example of a family: least used cluster first, then by rank."""
    while True:
        uses, rank, index = heapq.heappop(queue)
        cluster = examples[index].cluster
        if used[cluster] == uses:
            used[cluster] += 1
            return index
        heapq.heappush(queue, (used[cluster], rank, index))
