"""The keys of the trie, its nodes, and the files that its chunks lie in.

Chains without branches are one node (the seed's compression at branches): a node holds the text that leads to it from its parent.
What hangs below a node may be a chunk of its own; the node then is that chunk's *owner*, and its children are in memory only
while the chunk is loaded.
"""

import os
from array import array
from collections.abc import Iterable, Iterator
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from gossamer.engine.files import replace_file
from gossamer.values.errors import CrawlDirectoryError

# Chunks in files: written at the end of one, found by number, and put in order when half of it is old.
#
# A *table* says where each chunk lies, the *manifest* which table and file hold. The manifest is replaced last and as a whole, so a
# kill leaves the state before or the state after.


MANIFEST = "manifest.json"

#: The form of the files. A newer one is refused.
VERSION = 1

#: Below these bytes a file is not put in order.
SMALL = 4 << 20


class TrieManifest(msgspec.Struct, frozen=True):
    data: int = 0
    """Number of the file of chunks."""
    end: int = 0
    """Where the chunks end in it; bytes behind them were left by a kill."""
    table: int = 0
    urls: int = 0
    log: int = 0
    """The number of the log that goes on from here."""
    taken: tuple[str, ...] = ()
    """Keys of what was handed out and not finished."""
    version: int = VERSION


class ChunkFiles:
    """The chunks of one trie."""

    def __init__(self, home: Path, *, sync: bool) -> None:
        self.home = home
        self.manifest = TrieManifest()
        self._sync = sync
        home.mkdir(parents=True, exist_ok=True)
        self._starts, self._lengths = array("Q"), array("L")
        self._live = 0
        if (home / MANIFEST).exists():
            self._read()
        self._data = os.open(self._data_path(self.manifest.data), os.O_RDWR | os.O_CREAT, 0o666)
        os.ftruncate(self._data, self.manifest.end)
        self._end = self.manifest.end
        self._clear()

    def __len__(self) -> int:
        return len(self._starts)

    def _read(self) -> None:
        path = self.home / MANIFEST
        try:
            self.manifest = msgspec.json.decode(path.read_bytes(), type=TrieManifest)
            if self.manifest.version > VERSION:
                told = f"{path} is of version {self.manifest.version}, this program knows {VERSION}; use a newer one"
                raise CrawlDirectoryError(told)
            table = self._table_path(self.manifest.table).read_bytes()
            half = len(table) // 2
            self._starts.frombytes(table[:half])
            self._lengths.frombytes(table[half:])
            if self._data_path(self.manifest.data).stat().st_size < self.manifest.end:
                raise ValueError("chunks are missing")
        except (OSError, ValueError) as error:
            raise CrawlDirectoryError(f"{path} or what it names is damaged: {error}; begin a new crawl") from None
        self._live = sum(self._lengths)

    def _clear(self) -> None:
        """Take away what a kill left beside what stands."""
        standing = {self._data_path(self.manifest.data), self._table_path(self.manifest.table)}
        for path in (*self.home.glob("chunks-*"), *self.home.glob("table-*"), *self.home.glob("*.new")):
            if path not in standing:
                path.unlink()

    def _data_path(self, number: int) -> Path:
        return self.home / f"chunks-{number}"

    def _table_path(self, number: int) -> Path:
        return self.home / f"table-{number}"

    def new(self) -> int:
        """The number of a chunk that is still to be written."""
        self._starts.append(0)
        self._lengths.append(0)
        return len(self._starts) - 1

    def read(self, number: int) -> bytes:
        return os.pread(self._data, self._lengths[number], self._starts[number])

    def write(self, number: int, data: bytes) -> None:
        """Put a chunk behind all others; its older version is not read any more."""
        at = self._end
        view = memoryview(data)
        while view:
            at += (written := os.pwrite(self._data, view, at))
            view = view[written:]
        self._live += len(data) - self._lengths[number]
        self._starts[number], self._lengths[number] = self._end, len(data)
        self._end = at

    def drop(self, number: int) -> None:
        """Nothing points to this chunk any more."""
        self._live -= self._lengths[number]
        self._lengths[number] = 0

    def commit(self, urls: int, log: int, taken: tuple[str, ...]) -> None:
        """Everything that was written stands from now on."""
        before = self.manifest
        number = before.data
        if self._end > SMALL and self._live * 2 < self._end:
            number += 1
            self._put_in_order(number)
        if self._sync:
            os.fsync(self._data)
        table = before.table + 1
        replace_file(self._table_path(table), self._starts.tobytes() + self._lengths.tobytes(), sync=self._sync)
        self.manifest = TrieManifest(number, self._end, table, urls, log, taken)
        replace_file(self.home / MANIFEST, msgspec.json.encode(self.manifest), sync=self._sync)
        self._clear()

    def _put_in_order(self, number: int) -> None:
        """Copy what is read still into a new file."""
        old = self._data
        data = os.open(self._data_path(number), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
        end = 0
        with os.fdopen(os.dup(data), "wb") as out:
            for chunk, length in enumerate(self._lengths):
                if length:
                    out.write(os.pread(old, length, self._starts[chunk]))
                    self._starts[chunk] = end
                    end += length
        self._data, self._end, self._live = data, end, end
        os.close(old)

    def size(self) -> int:
        return sum(path.stat().st_size for path in self.home.iterdir())

    def close(self) -> None:
        os.close(self._data)


# Keys of the trie: URLs with the labels of their hosts from the root, so that what belongs together lies under one prefix.
#
# `https://www.example.org/docs/a.html` has the key `org.example.www https:/docs/a.html`. No part of a URL has a space, so
# that the one in a key ends the host's name.

#: Beginnings of URLs whose keys are remembered, 180 bytes each.
REMEMBERED = 65_536


def _reversed_name(host: str) -> str:
    """A host name from its root; an address has its root in front already, and an IPv6 address is one label."""
    labels = host.split(".")
    if not labels[-1].isdigit():
        labels.reverse()
    return ".".join(labels)


@lru_cache(REMEMBERED)
def _beginning_of(scheme_and_authority: str) -> str:
    scheme, _, authority = scheme_and_authority.partition("://")
    host, colon, port = authority.rpartition(":")
    if not colon or not port.isdigit():
        host, port = authority, ""
    return f"{_reversed_name(host)} {scheme}:{port}"


def key_of(url: str) -> str:
    """The key of a canonical URL. Different URLs have different keys, and :func:`url_of` is the inverse."""
    slash = url.find("/", url.find("://") + 3)
    return _beginning_of(url) if slash < 0 else _beginning_of(url[:slash]) + url[slash:]


def url_of(key: str) -> str:
    name, _, rest = key.partition(" ")
    ends, slash, path = rest.partition("/")
    scheme, _, port = ends.partition(":")
    labels = name.split(".")
    if not labels[-1].isdigit() or not labels[0].isdigit():
        labels.reverse()
    return f"{scheme}://{'.'.join(labels)}{f':{port}' if port else ''}{slash}{path}"


def prefixes_of(host: str) -> tuple[str, str]:
    """The beginnings of the keys of a host or domain, and of the hosts below it."""
    name = _reversed_name(host)
    return f"{name} ", f"{name}."


#: Nodes of a chunk, at most, where they can be divided: 8 KB of URLs on the disk, read and decoded in 0.2 ms.
CHUNK_NODES = 400


class Mark(IntEnum):
    """The marks of a node beside that of a branch."""

    NONE = 0
    URL = 1
    TO_DO = 2
    """A URL that waits in the queue."""


class Node:
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


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[str, int, str, int, int, int]]).decode


def encode(owner: Node) -> bytes:
    """The nodes below an owner, without recursion: a server may make paths as deep as it likes."""
    rows: list[tuple[str, int, str, int, int, int]] = []
    stack = list(reversed(list((owner.kids or {}).values())))
    while stack:
        node = stack.pop()
        kids = node.kids if node.chunk < 0 and node.kids else {}
        rows.append((node.text, node.mark, node.turn, len(kids), node.chunk, node.to_do))
        stack.extend(reversed(kids.values()))
    return _encode(rows)


def decode(data: bytes) -> dict[str, Node]:
    """The children of an owner. Raises ValueError: these bytes are no chunk."""
    top: dict[str, Node] = {}
    open_: list[tuple[dict[str, Node], int]] = []
    for text, mark, turn, count, chunk, to_do in _decode(data):
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
    first."""
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
