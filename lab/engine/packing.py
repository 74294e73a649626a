"""How branches are laid out in one packed sequence: rows, layers at which rows are born, masks.

A branch is a full token sequence with its changes. Branches that share a prefix run it once, as
the trunk. What remains of all of them is laid side by side as rows of one sequence (tree
attention, as in speculative decoding: Miao et al. 2023, arXiv 2305.09781), where each row sees
the trunk and the earlier rows of its own branch.

Below the first layer that a branch changes, its rows equal those of the unchanged sequence. So
they need not exist there: they are *born* at that layer as copies of the rows of an unchanged
branch with the same tokens. In a sweep over all heads this halves the work.

Nor do they differ before the first position that a branch changes: there it owns no rows, and
sees those of the unchanged branch. So a sweep over the last token of many prompts takes one row a
patch, also where the prompts share no trunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Int

from lab.engine.edits import Block, Change
from lab.errors import LabError


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """One run that is asked for: a token sequence, changes, and where to look.

    Attributes:
        tokens: the whole sequence, trunk included.
        changes: edits and blocks, in any order; edits of one site apply in the order given.
        keep: token indices whose logits and activations come back; None means the decision only.
    """

    tokens: tuple[int, ...]
    changes: tuple[Change, ...] = ()
    keep: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not self.tokens:
            raise LabError("A branch without tokens cannot be run.")
        if not self.kept:
            raise LabError("A branch that keeps no position gives nothing back: name one.")
        for name, positions in self._named():
            if positions and not (min(positions) >= 0 and max(positions) < len(self.tokens)):
                wrong = next(p for p in positions if not 0 <= p < len(self.tokens))
                raise LabError(
                    f"{name} {wrong} is outside of its prompt, whose {len(self.tokens)} tokens "
                    f"are counted from 0 to {len(self.tokens) - 1}."
                )

    def _named(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """All positions that are asked for, with what to call one."""
        yield "Position", self.kept
        for change in self.changes:
            yield "Position", _positions(change)
            if isinstance(change, Block):
                yield "Key position", change.keys

    @property
    def kept(self) -> tuple[int, ...]:
        """Token indices whose results come back, in the order asked."""
        return (len(self.tokens) - 1,) if self.keep is None else self.keep

    @property
    def first_touched(self) -> int:
        """The first position that is changed or kept: no trunk may reach it."""
        return min((*self.kept, *(p for c in self.changes for p in _positions(c))))

    @property
    def born(self) -> int:
        """The first layer whose rows differ from those of the unchanged sequence."""
        return min((c.layer for c in self.changes), default=0)


def _positions(change: Change) -> tuple[int, ...]:
    return change.queries if isinstance(change, Block) else change.positions


def common_prefix(sequences: Sequence[Sequence[int]]) -> int:
    """How many leading tokens all sequences share."""
    ordered = sorted(map(tuple, sequences))
    first, last = ordered[0], ordered[-1]
    for i, (a, b) in enumerate(zip(first, last, strict=False)):
        if a != b:
            return i
    return min(len(first), len(last))


def trunk_length(branches: Sequence[Branch]) -> int:
    """The longest prefix that all branches share and that none changes or keeps."""
    shared = common_prefix([b.tokens for b in branches])
    return min(shared, *(b.first_touched for b in branches))


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """Branches laid out behind a trunk; rows are ordered by the layer at which they are born.

    Attributes:
        trunk: number of trunk tokens.
        branches: the branches in row order; ``order`` says which asked branch each one is, with
            -1 for an unchanged branch that was added as the copying source of others.
        starts: first row of each branch.
        firsts: the first position of which each branch has a row of its own.
        sources: for each branch, the unchanged branch whose rows it sees before that; itself if
            none.
        base: for each row, the row of an unchanged branch that it is a copy of at birth.
        born: for each row, the layer at which it is born.
        position: for each row, its token index in its branch.
        owner: for each row, the branch it belongs to.
    """

    trunk: int
    branches: tuple[Branch, ...]
    order: tuple[int, ...]
    starts: tuple[int, ...]
    firsts: tuple[int, ...]
    sources: tuple[int, ...]
    base: Int[torch.Tensor, " row"]
    born: Int[torch.Tensor, " row"]
    position: Int[torch.Tensor, " row"]
    owner: Int[torch.Tensor, " row"]
    _rows_at: dict[int, int] = field(default_factory=dict, repr=False)

    def rows_at(self, layer: int) -> int:
        """How many rows exist in a layer: since rows are ordered by birth, the first so many."""
        if layer not in self._rows_at:
            self._rows_at[layer] = int((self.born <= layer).sum())
        return self._rows_at[layer]

    def tokens(self) -> list[int]:
        """Token of every row."""
        pairs = zip(self.branches, self.firsts, strict=True)
        return [t for b, first in pairs for t in b.tokens[first:]]

    def row(self, branch: int, position: int) -> int:
        """The row of a branch's token."""
        if position < self.firsts[branch]:
            return self.row(self.sources[branch], position)
        return self.starts[branch] + position - self.firsts[branch]

    def live_row(self, branch: int, position: int, layer: int) -> int:
        """The row that holds a branch's activation in a layer: before birth, its base's."""
        row = self.row(branch, position)
        return row if layer >= self.branches[branch].born else int(self.base[row])

    def visible(self, rows: int, window: int | None = None) -> Bool[torch.Tensor, "row key"]:
        """Which keys each of the first ``rows`` rows sees: trunk columns first, then the rows.

        With a sliding ``window``, a row sees the last ``window`` positions, itself included, and
        the trunk columns are the last ``window - 1`` trunk tokens: no more are kept as keys.
        """
        position, owner = self.position[:rows], self.owner[:rows]
        own = owner[:, None] == owner[None]
        if max(self.firsts) > self.trunk:
            source, first = torch.tensor(self.sources)[owner], torch.tensor(self.firsts)[owner]
            own |= (source[:, None] == owner[None]) & (position[None] < first[:, None])
        own &= position[None] <= position[:, None]
        if window is None:
            return torch.cat([torch.ones(rows, self.trunk, dtype=torch.bool), own], 1)
        own &= position[:, None] - position[None] < window
        first = max(0, self.trunk - (window - 1))
        trunk = position[:, None] - torch.arange(first, self.trunk)[None] < window
        return torch.cat([trunk, own], 1)


_Placed = tuple[int, Branch, int, int]
"""What `Packing.order` calls a branch, the branch, its layer of birth, its first own position."""


def pack(
    branches: Sequence[Branch],
    trunk: int,
    *,
    grow: bool = True,
    indices: Sequence[int] | None = None,
) -> Packing:
    """Lay branches out behind a trunk of ``trunk`` tokens.

    Args:
        grow: whether changed rows are born at the layer of their first change; else all exist
            from the first layer on.
        indices: what ``order`` calls the branches; by default 0, 1, 2, ...
    """
    roots: list[_Placed] = []
    others: list[_Placed] = []
    unchanged: dict[tuple[int, ...], int] = {}
    for index, branch in zip(indices or range(len(branches)), branches, strict=True):
        layer, begin = (branch.born, own_from(branch, trunk)) if grow else (0, trunk)
        if layer or begin > trunk:
            others.append((index, branch, layer, begin))
        elif grow and not branch.changes and branch.tokens in unchanged:
            # The same sequence, unchanged, is there: this one sees all of its rows, and owns none.
            others.append((index, branch, 0, len(branch.tokens)))
        else:
            if not branch.changes:
                unchanged.setdefault(branch.tokens, len(roots))
            roots.append((index, branch, 0, trunk))
    for _, branch, _, _ in others:
        if branch.tokens not in unchanged:
            unchanged[branch.tokens] = len(roots)
            roots.append((-1, Branch(branch.tokens), 0, trunk))
    listed = roots + sorted(others, key=lambda placed: placed[2])

    starts: list[int] = []
    firsts: list[int] = []
    sources: list[int] = []
    rows = 0
    base: list[int] = []
    born: list[int] = []
    position: list[int] = []
    owner: list[int] = []
    for number, (_, branch, layer, begin) in enumerate(listed):
        source = unchanged[branch.tokens] if number >= len(roots) else number
        count = len(branch.tokens) - begin
        starts.append(rows)
        firsts.append(begin)
        sources.append(source)
        copied = starts[source] + begin - trunk if layer else rows
        base += range(copied, copied + count)
        born += [layer] * count
        position += range(begin, begin + count)
        owner += [number] * count
        rows += count
    return Packing(
        trunk,
        tuple(branch for _, branch, _, _ in listed),
        tuple(index for index, _, _, _ in listed),
        tuple(starts),
        tuple(firsts),
        tuple(sources),
        torch.tensor(base),
        torch.tensor(born),
        torch.tensor(position),
        torch.tensor(owner),
    )


def own_from(branch: Branch, trunk: int) -> int:
    """The first position of which a branch needs a row of its own, if an unchanged one runs too."""
    return max(trunk, branch.first_touched) if branch.changes else trunk


def chunks(
    branches: Sequence[Branch], trunk: int, most_rows: int, *, grow: bool = True
) -> list[list[int]]:
    """Branch indices grouped so that each group has at most ``most_rows`` rows (or one branch).

    The unchanged sequence that changed branches lean on is counted once a group, as it runs once.
    So are asked unchanged branches of the same tokens, whatever their number.
    """
    places: dict[tuple[int, ...], int] = {}
    for branch in branches:
        places.setdefault(branch.tokens, len(places))
    keys = [(places[b.tokens], b.born) for b in branches]
    groups: list[list[int]] = []
    there: set[tuple[int, ...]] = set()
    rows = most_rows + 1
    for index in sorted(range(len(branches)), key=keys.__getitem__):
        branch = branches[index]
        if rows + _added_rows(branch, trunk, there, grow) > most_rows:
            groups.append([])
            rows, there = 0, set()
        groups[-1].append(index)
        rows += _added_rows(branch, trunk, there, grow)
        if grow:
            there.add(branch.tokens)
    return groups


def _added_rows(branch: Branch, trunk: int, there: set[tuple[int, ...]], grow: bool) -> int:
    """How many rows a branch adds where the unchanged sequences ``there`` run already."""
    whole = len(branch.tokens) - trunk
    shared = 0 if branch.tokens in there else whole
    if not grow or not branch.changes:
        return shared
    return shared + len(branch.tokens) - own_from(branch, trunk)
