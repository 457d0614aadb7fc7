"""A node of the trie, and a chunk of nodes as it lies on the disk.

Chains without branches are one node (the seed's compression at branches): a node holds the text that leads to it from its parent.
What hangs below a node may be a chunk of its own; the node then is that chunk's *owner*, and its children are in memory only
while the chunk is loaded.
"""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Any

import msgspec

#: Nodes of a chunk, at most, where they can be divided: 8 KB of URLs on the disk, read and decoded in 0.2 ms.
CHUNK_NODES = 400


class Mark(IntEnum):
    """What a node is beside a branch."""

    NONE = 0
    URL = 1
    TO_DO = 2
    """A URL that waits in the queue."""


class Node:
    """One node."""

    __slots__ = ("chunk", "kids", "mark", "text", "to_do", "turn")

    def __init__(self, text: str, mark: int = Mark.NONE) -> None:
        self.text = text
        self.mark = mark
        self.kids: dict[str, Node] | None = None
        """By the first character of their texts; None for a leaf, and where the chunk below is not loaded."""
        self.chunk = -1
        """The number of the chunk that holds what is below; -1 where it lies in the chunk of the node itself."""
        self.to_do = int(mark == Mark.TO_DO)
        """How many URLs wait here and below: the inherited mark of the seed, as a number, so that clearing one asks no peer."""
        self.turn = ""
        """First character of the child whose turn was last."""

    def __repr__(self) -> str:
        below = f"chunk {self.chunk}" if self.chunk >= 0 else f"{len(self.kids or ())} kids"
        return f"<Node {self.text!r} {Mark(self.mark).name} {below}, {self.to_do} to do>"


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[str, int, str, int, int, int]]).decode


def encode(owner: Node) -> bytes:
    """What hangs below an owner, without recursion: a server may make paths as deep as it likes."""
    rows: list[tuple[str, int, str, int, int, int]] = []
    stack = list(reversed(list((owner.kids or {}).values())))
    while stack:
        node = stack.pop()
        kids = node.kids if node.chunk < 0 and node.kids else {}
        rows.append((node.text, node.mark, node.turn, len(kids), node.chunk, node.to_do))
        stack.extend(reversed(kids.values()))
    return _encode(rows)


def decode(data: bytes) -> dict[str, Node]:
    """The children of an owner.

    Raises:
        ValueError: these bytes are no chunk.
    """
    top: dict[str, Node] = {}
    open_: list[tuple[dict[str, Node], int]] = []
    try:
        rows: list[tuple[str, int, str, int, int, int]] = _decode(data)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None
    for text, mark, turn, count, chunk, to_do in rows:
        node = Node(text, mark)
        node.turn, node.chunk, node.to_do = turn, chunk, to_do
        while open_ and open_[-1][1] == 0:
            open_.pop()
        if open_:
            kids, left = open_[-1]
            open_[-1] = kids, left - 1
        else:
            kids = top
        kids[text[0]] = node
        if count:
            node.kids = {}
            open_.append((node.kids, count))
    return top


def stubs(kids: Iterable[Node]) -> Iterator[Node]:
    """The owners of other chunks within one that was just decoded."""
    stack = list(kids)
    while stack:
        node = stack.pop()
        if node.chunk >= 0:
            yield node
        elif node.kids:
            stack.extend(node.kids.values())


def divisions(owner: Node) -> list[Node]:
    """Nodes below an owner that are to own chunks of their own, so that none has more than :data:`CHUNK_NODES`: deeper ones
    first.
    """
    found: list[Node] = []
    sizes: dict[int, int] = {}
    order: list[Node] = []
    stack = [owner]
    while stack:
        node = stack.pop()
        order.append(node)
        if node is owner or node.chunk < 0:
            stack.extend((node.kids or {}).values())
    for node in reversed(order):
        kids: list[Any] = list((node.kids or {}).values()) if node is owner or node.chunk < 0 else []
        total = 1 + sum(sizes[id(kid)] for kid in kids)
        if total > CHUNK_NODES:
            for kid in sorted(kids, key=lambda one: -sizes[id(one)]):
                if total <= CHUNK_NODES or sizes[id(kid)] == 1:
                    break
                found.append(kid)
                total -= sizes[id(kid)] - 1
                sizes[id(kid)] = 1
        sizes[id(node)] = total
    return found
