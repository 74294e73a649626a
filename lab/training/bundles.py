"""Bundles: many rows as one token tree, so that what they share runs once.

All questions on a passage share it, all candidates for a question share it as well, and both roles
share the prompt up to the task. The rows become a tree of tokens, laid out depth first as one
sequence; a token sees its ancestors only and has its depth as position (tree attention, as in
speculative decoding). So gradients equal those of running each row alone, at a fraction of the
tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from lab.training.rows import Row


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Tokens ``start`` to ``end`` (half-open), which see the trunk and, masked, each other."""

    start: int
    end: int
    sees: Bool[np.ndarray, "row row"]


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """A token tree, ready to run.

    Attributes:
        tokens: ids in depth-first order.
        positions: depth of each token in the tree.
        trunk: how many first tokens form one chain that all rows share.
        blocks: the subtrees behind the trunk; no token of one sees a token of another.
        rows: what is learned.
        places: for each row the indices of the tokens that predict its target, in order.
    """

    tokens: Int[np.ndarray, " token"]
    positions: Int[np.ndarray, " token"]
    trunk: int
    blocks: tuple[Block, ...]
    rows: tuple[Row, ...]
    places: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.tokens)


class _Node:
    """A token of the tree and what may follow it."""

    __slots__ = ("children", "index", "token")

    def __init__(self, token: int) -> None:
        self.token = token
        self.children: dict[int, _Node] = {}
        self.index = -1


def bundle(rows: Sequence[Row]) -> Bundle:
    """The token tree of some rows; without rows an empty one, which cannot be run."""
    root = _Node(-1)
    paths = [_insert(root, row.fed) for row in rows]
    tokens: list[int] = []
    parents: list[int] = []
    stack = [(child, -1) for child in reversed(root.children.values())]
    while stack:
        node, parent = stack.pop()
        node.index = len(tokens)
        tokens.append(node.token)
        parents.append(parent)
        stack += [(child, node.index) for child in reversed(node.children.values())]
    positions = np.zeros(len(tokens), dtype=np.int64)
    for index, parent in enumerate(parents):
        positions[index] = 0 if parent < 0 else positions[parent] + 1
    trunk = _chain(root)
    places = tuple(
        tuple(node.index for node in path[len(row.prompt) - 1 :])
        for row, path in zip(rows, paths, strict=True)
    )
    ids = np.array(tokens, dtype=np.int64)
    return Bundle(ids, positions, trunk, _blocks(parents, trunk), tuple(rows), places)


def _insert(root: _Node, tokens: Sequence[int]) -> list[_Node]:
    path = []
    for token in tokens:
        root = root.children.setdefault(token, _Node(token))
        path.append(root)
    return path


def _chain(root: _Node) -> int:
    """Length of the chain from the root to the first token that has not exactly one child."""
    length = 0
    while len(root.children) == 1:
        (root,) = root.children.values()
        length += 1
    return length


def _blocks(parents: Sequence[int], trunk: int) -> tuple[Block, ...]:
    starts = [i for i in range(trunk, len(parents)) if parents[i] == trunk - 1]
    ends = [*starts[1:], len(parents)] if starts else []  # a single chain has no branches
    return tuple(
        Block(start, end, _ancestors(parents, start, end))
        for start, end in zip(starts, ends, strict=True)
    )


def _ancestors(parents: Sequence[int], start: int, end: int) -> Bool[np.ndarray, "row row"]:
    """Who sees whom in a subtree: each token its ancestors and itself."""
    sees = np.eye(end - start, dtype=bool)
    for index in range(start + 1, end):
        sees[index - start] |= sees[parents[index] - start]
    return sees
