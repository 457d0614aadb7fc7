"""The trie: put, look up, list and forget keys; chunks are loaded where a walk comes to them, and written together.

What changes stays in memory until :meth:`DiskTrie.checkpoint` writes all changed chunks at once (the seed's way out of seeks,
section 7.3.1: collect, shift in memory, write in chunks). The owner of the trie keeps a log of what came since, and gives it again
after a kill.
"""

from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from gossamer.labs.trie.chunks import ChunkFiles, Mark, Node, decode, divisions, encode, stubs
from gossamer.values.errors import CrawlDirectoryError


class DiskTrie:
    """Keys in chunks on the disk.

    Args:
        home: its directory, made where there is none.
        cache: chunks that stay in memory though nothing in them has changed.
    """

    def __init__(self, home: Path, cache: int = 1_000, *, sync: bool = False) -> None:
        self.files = ChunkFiles(home, sync=sync)
        self._cache = cache
        self.root = Node("")
        self.root.chunk = 0
        if not len(self.files):
            self.files.new()
        self._loaded: OrderedDict[int, Node] = OrderedDict()
        self._changed: set[int] = set()
        self.count = self.files.manifest.urls
        """Keys that are URLs."""
        self.loads = 0
        """Chunks that were read."""
        self.root.to_do = sum(kid.to_do for kid in self.kids_of(self.root).values())

    def __len__(self) -> int:
        return self.count

    @property
    def in_memory(self) -> int:
        return len(self._loaded)

    # -- one key

    def holds(self, key: str) -> bool:
        node, at, end = self.root, 0, len(key)
        while at < end:
            child = self.kids_of(node).get(key[at])
            if child is None or not key.startswith(child.text, at):
                self.trim()
                return False
            at += len(child.text)
            node = child
        self.trim()
        return node.mark != Mark.NONE

    def put(self, key: str, mark: Mark = Mark.URL) -> bool:
        """Make this key a URL; False, and nothing, where it is one already."""
        node, at, home, path = self.root, 0, 0, [self.root]
        while at < len(key):
            if node.chunk >= 0:
                home = node.chunk
            kids = self.kids_of(node)
            child = kids.get(key[at])
            if child is None:
                child = kids[key[at]] = Node(key[at:])
            elif not key.startswith(child.text, at):
                most = min(len(child.text), len(key) - at)
                shared = next((n for n in range(most) if child.text[n] != key[at + n]), most)
                # A branch in the middle of the text that leads to a node, which hangs below it from now on.
                below, child = child, Node(key[at : at + shared])
                below.text = below.text[shared:]
                child.kids, child.to_do = {below.text[0]: below}, below.to_do
                kids[key[at]] = child
            at += len(child.text)
            node = child
            path.append(node)
        if node.mark != Mark.NONE:
            self.trim()
            return False
        node.mark = mark
        self.count += 1
        self._changed.add(home)
        if mark == Mark.TO_DO:
            self.add_to_do(path, 1)
        self.trim()
        return True

    def path_to(self, key: str) -> list[Node] | None:
        """The nodes from the root to this key; None where it is not here."""
        path, at = [self.root], 0
        while at < len(key):
            child = self.kids_of(path[-1]).get(key[at])
            if child is None or not key.startswith(child.text, at):
                return None
            at += len(child.text)
            path.append(child)
        return path

    def add_to_do(self, path: list[Node], number: int) -> None:
        """So many more URLs wait at the end of this path."""
        for node in path:
            node.to_do += number
            if node.chunk >= 0:
                self._changed.add(node.chunk)

    # -- many

    def under(self, prefix: str) -> Iterator[str]:
        """The keys with a prefix, in no order. Change nothing meanwhile."""
        for _, key, node in self._walk(prefix):
            if node.mark != Mark.NONE:
                yield key
        self.trim()

    def forget(self, prefix: str) -> int:
        """Take away all keys with a prefix; returns how many there were."""
        gone, chunks = 0, list[int]()
        for chunk, _, node in self._walk(prefix):
            gone += node.mark != Mark.NONE
            if chunk >= 0:
                chunks.append(chunk)
        path, found = self._first_with(prefix)
        if found is None:
            return 0
        for chunk in chunks:
            self.files.drop(chunk)
            self._loaded.pop(chunk, None)
            self._changed.discard(chunk)
        del self.kids_of(path[-1])[found.text[0]]
        self._changed.add(next(node.chunk for node in reversed(path) if node.chunk >= 0))
        if found.to_do:
            self.add_to_do(path, -found.to_do)
        self.count -= gone
        self.trim()
        return gone

    def _first_with(self, prefix: str) -> tuple[list[Node], Node | None]:
        """The highest node whose key has a prefix, None where there is none, and the nodes above it."""
        path, at = [self.root], 0
        while True:
            child = self.kids_of(path[-1]).get(prefix[at])
            if child is None:
                return path, None
            if child.text.startswith(prefix[at:]):
                return path, child
            if not prefix.startswith(child.text, at):
                return path, None
            at += len(child.text)
            path.append(child)

    def _walk(self, prefix: str) -> Iterator[tuple[int, str, Node]]:
        """All nodes whose keys have a prefix: the chunk that each owns, or -1, its key, itself. One chunk after the other is
        read."""
        owners = [""]
        while owners:
            self.trim()
            above = owners.pop()
            path = self.path_to(above)
            assert path is not None
            stack = [(above, path[-1], True)]
            while stack:
                key, node, is_open = stack.pop()
                if node.chunk >= 0 and not is_open:
                    owners.append(key)
                    continue
                if key.startswith(prefix) and key:
                    yield node.chunk, key, node
                for child in self.kids_of(node).values():
                    name = key + child.text
                    if name.startswith(prefix) or prefix.startswith(name):
                        stack.append((name, child, False))

    # -- chunks

    def kids_of(self, node: Node) -> dict[str, Node]:
        """The children of a node; its chunk is loaded where it is not."""
        kids = node.kids
        if kids is None:
            kids = self._load(node) if node.chunk >= 0 else {}
            node.kids = kids
        elif node.chunk >= 0:
            self._loaded.move_to_end(node.chunk)
        return kids

    def _load(self, owner: Node) -> dict[str, Node]:
        data = self.files.read(owner.chunk)
        try:
            kids = decode(data) if data else {}
        except ValueError as error:
            told = f"chunk {owner.chunk} of the trie in {self.files.home} is damaged: {error}; begin a new crawl"
            raise CrawlDirectoryError(told) from None
        self.loads += 1
        for stub in stubs(kids.values()):
            # Its chunk may have stayed in memory when this one went, and may have changed.
            known = self._loaded.get(stub.chunk)
            if known is not None:
                stub.kids = known.kids
                self._loaded[stub.chunk] = stub
        self._loaded[owner.chunk] = owner
        return kids

    def trim(self) -> None:
        """Give back the chunks that were not used longest, as far as nothing in them has changed. Not within a walk that
        changes."""
        most = self._cache + len(self._changed)
        # An eighth more is let in, so that looking for the oldest is not paid for at each look-up.
        if len(self._loaded) <= most + most // 8:
            return
        oldest: list[int] = []
        passed: list[int] = []
        for chunk in self._loaded:
            if len(self._loaded) - len(oldest) <= most:
                break
            (passed if chunk in self._changed else oldest).append(chunk)
        for chunk in oldest:
            self._loaded.pop(chunk).kids = None
        for chunk in passed:
            self._loaded.move_to_end(chunk)

    def checkpoint(self, log: int = 0, taken: tuple[str, ...] = ()) -> None:
        """Write what has changed, so that the next process begins here: with the log of this number, and with the keys of what
        was handed out and not finished."""
        for chunk in sorted(self._changed):
            owner = self._loaded[chunk]
            for node in divisions(owner):
                node.chunk = self.files.new()
                self._loaded[node.chunk] = node
                self.files.write(node.chunk, encode(node))
            self.files.write(chunk, encode(owner))
        self._changed.clear()
        self.files.commit(self.count, log, taken)
        self.trim()

    def close(self) -> None:
        self.files.close()
