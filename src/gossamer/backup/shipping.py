"""The files that an agent has in a checkpoint, and what of them is in its store already.

Place in the flow: :mod:`publisher` asks for them between two groups of the commit, ships them, and publishes the checkpoint that
they make. It is one instant: a snapshot of the ledger, the files of archive and rows up to the ends that this ledger has committed,
and every other file as it is. What grows is shipped by what came since; tables never change.
"""

import contextlib
import mmap
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import msgspec

from gossamer.backup.far_archive import links_of
from gossamer.backup.head import PART_BYTES, AgentInStore, StoredCheckpoint, StoredPart, digest_of, owner_of
from gossamer.backup.options import AGENT
from gossamer.crawls.control.at_rest import standing_of_ledger
from gossamer.engine.unit import Metrics
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.storage.recovery import is_away
from gossamer.storage.rewrite_journals import DELETED
from gossamer.storage.tables.manifest import failure_of
from gossamer.values.agents import at_work, member
from gossamer.values.errors import CrawlDirectoryError

#: Threads that ship at once; of files with more new bytes than this, one is shipped at a time, since its parts are in memory.
_SHIPPERS, _LARGE = 3, 1 << 20

#: Files that are made for this machine alone, or made again of the rest: locks, ledgers but for their snapshot, indexes, leftovers.
_LEFT = re.compile(
    r"(.*/)?\..*|.*\.(lock|new|sock)|.*/lock|quarantine/.*|index/.*|triples/.*|state/control-folder|state/[^/]+/store\.json"
    r"|state/[^/]+/(ledger|checkpoints|making|made|replaced|publishing|damaged[^/]*)/.*"
)

#: Files that the supervisor of several agents, and their masters, make again of those of the agents.
_MADE_AGAIN = re.compile(
    r"logs/crawl\.jsonl|state/((supervisor/(?!moved\.json)|master-[^/]+/)|masters/shared\.sqlite).*"
)

#: The folder of the snapshot of a ledger that is published, in the state of its agent.
SNAPSHOT = "publishing"

#: Bytes of a note: whatever is larger is replaced whole, and stands by itself.
_SMALL = 64 << 10

#: Files that grow by commits: bytes that no ledger has committed do not count.
_GROWING = re.compile(r"warc/.*\.warc\.gz|state/[^/]+/rows/.*\.jsonl|logs/(crawl|agent-\d+)\.jsonl")


class ShippedFile(NamedTuple):
    """A file of a checkpoint that is to be shipped."""

    path: Path
    end: int
    signature: tuple[int, int, int]
    grows: bool
    data: bytes | None = None
    """All of it, where it is small: notes say how far other files are committed, so they are of the same instant."""

    @classmethod
    def seen(cls, path: Path, end: int | None = None) -> "ShippedFile":
        """A file as it is now; a file that grows has an `end`."""
        stat = path.stat()
        signature = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        return cls(path, stat.st_size if end is None else end, signature, end is not None)

    def pieces(self, at: int) -> Iterator[memoryview]:
        """The bytes behind one, in pieces of a part each; of a file that was replaced meanwhile, the new one. Raises OSError: it
        became shorter meanwhile, or is gone."""
        if self.data is not None:
            yield from [memoryview(self.data)] if self.data else []
            return
        with self.path.open("rb", buffering=0) as file:
            end = self.end if self.grows else os.fstat(file.fileno()).st_size
            file.seek(at)
            while at < end:
                # Memory of its own, which the system has back at once: of the allocator's, each thread would keep this much.
                held = mmap.mmap(-1, min(PART_BYTES, end - at))
                if not (size := file.readinto(held)):
                    raise OSError(f"{self.path} became shorter while it was shipped")
                at += size
                yield memoryview(held)[:size]
                del held  # one piece is in memory, and not the next one beside it


class Shipping:
    """The files of one agent, or of a crawl that has no other."""

    def __init__(self, directory: Path, place: AgentInStore, members: Sequence[str], metrics: Metrics) -> None:
        """Look at what the last checkpoint has. `members`: all agents, where several share the directory. Raises
        CrawlDirectoryError: an archive file is in the store alone, and that has no checkpoint of it."""
        self._directory, self._place, self._metrics = directory, place, metrics
        self._among = {member(text).agent for text in members}
        self._of_all = (AGENT, *at_work(members)[:1])
        self.known = place.checkpoint()
        """The last checkpoint."""
        self._signatures: dict[str, tuple[int, int, int]] = {}
        """Of its files, if this life has published it."""
        self._large = threading.Lock()
        self._torn: set[str] = set()
        """Files that were damaged when this life began: their shipped bytes are no beginning of what they become."""
        far = (name for name in links_of(directory) if self._is_ours(name) and name not in self.known.files)
        if lost := next(far, ""):
            raise CrawlDirectoryError(f"{lost} is in the store {place.store.name} alone, which has no checkpoint of it")
        for name, parts in self.known.files.items():
            with contextlib.suppress(OSError):
                if (directory / name).stat().st_size < size_of(parts):
                    self._torn.add(name)

    def keep(self, checkpoint: StoredCheckpoint, files: Mapping[str, ShippedFile]) -> bool:
        """These files were published as this checkpoint; whether it is the first of this life."""
        is_first = not self._signatures
        self.known, self._signatures = checkpoint, {name: file.signature for name, file in files.items()}
        self._torn.clear()
        return is_first

    def forget(self, name: str) -> None:
        """The store has lost a part of a file, so the next checkpoint ships it again."""
        self.known = StoredCheckpoint({other: parts for other, parts in self.known.files.items() if other != name})

    def files(self, snapshot: Path, ends: Mapping[str, int]) -> Iterator[tuple[str, ShippedFile]]:
        """Every file that belongs to the checkpoint, by its name in the crawl directory. It is one instant: nothing waits here."""
        ledger = f"{STATE_DIRECTORY}/{self._place.agent}/ledger"
        for path in snapshot.iterdir():
            yield f"{ledger}/{path.name}", ShippedFile.seen(path)
        for folder, folders, names in os.walk(self._directory):  # folders of others come and go meanwhile
            inside = Path(folder).relative_to(self._directory)
            folders[:] = [one for one in folders if not _LEFT.fullmatch(f"{(inside / one).as_posix()}/")]
            for name in ((inside / one).as_posix() for one in names):
                if _LEFT.fullmatch(name) or not self._is_ours(name):
                    continue
                path = self._directory / name
                try:
                    if name in ends:
                        yield name, ShippedFile.seen(path, ends[name])
                    elif not _GROWING.fullmatch(name):
                        file = ShippedFile.seen(path)
                        is_new = file.end <= _SMALL and file.signature != self._signatures.get(name)
                        yield name, file._replace(data=path.read_bytes()) if is_new else file
                except OSError as error:
                    if not isinstance(error, FileNotFoundError) and not is_away(path):
                        raise

    def _is_ours(self, name: str) -> bool:
        """Whether this agent publishes a file: its own ones and, as the first of those at work, what belongs to the whole crawl."""
        if not self._among or name == DELETED:
            return True
        if (owner := owner_of(name)) in self._among:
            return owner == self._place.agent
        return self._place.agent in self._of_all and not _MADE_AGAIN.fullmatch(name)

    def ship(self, snapshot: Path, files: Mapping[str, ShippedFile]) -> StoredCheckpoint:
        """Ship what is not in the store yet; returns the checkpoint, which is the last one where nothing has changed."""
        before = self.known.files
        made = {name: before[name] for name in links_of(self._directory) if name in before}
        # A disk that is lost takes nothing out of the store.
        made |= {name: parts for name, parts in before.items() if is_away(self._directory / name)}
        # A deletion writes over bytes that were shipped. It notes that it did, and is done at rest.
        note, known = files.get(DELETED), before.get(DELETED, ())
        may_grow = bool(self._signatures) or (
            [digest_of(data) for data in (note.pieces(0) if note else ())] == [part.digest for part in known]
        )
        with ThreadPoolExecutor(_SHIPPERS) as pool:
            waiting = {}
            for name, file in files.items():
                known = before.get(name, ())
                if known and self._signatures.get(name) == file.signature and size_of(known) == file.end:
                    made[name] = known
                else:
                    is_whole = may_grow and name not in self._torn
                    kept = known if is_whole and file.grows and size_of(known) <= file.end else ()
                    waiting[name] = pool.submit(self._parts, file, kept, known)
            for name, future in waiting.items():
                try:
                    made[name] = future.result()
                except FileNotFoundError:
                    if files[name].grows:
                        raise
        if made == before:
            return self.known
        ledger = RocksLedger(LedgerSheet(directory=str(self._directory), agent=self._place.agent))
        now, why = standing_of_ledger(self._directory, ledger, snapshot), failure_of(self._directory)
        standing = msgspec.json.encode(msgspec.structs.replace(now, failure=why, checkpoints=[]))
        return StoredCheckpoint(made, msgspec.Raw(standing))

    def _parts(
        self, file: ShippedFile, kept: Sequence[StoredPart], known: Sequence[StoredPart]
    ) -> tuple[StoredPart, ...]:
        """The parts of a file: those that are `kept`, and what follows them, shipped unless it is among the `known` ones."""
        there, parts = {part.digest: part for part in known}, [*kept]
        with self._large if file.end - size_of(kept) > _LARGE else contextlib.nullcontext():
            for data in file.pieces(size_of(kept)):
                digest = digest_of(data)
                if (part := there.get(digest)) is None:
                    part = StoredPart(self._place.part_key(digest), len(data))
                    self._place.store.put(part.key, data)
                    self._metrics.count("objects")
                    self._metrics.count("bytes", len(data))
                    self._metrics.count("ledger_bytes", len(data) if file.path.parent.name == SNAPSHOT else 0)
                parts.append(part)
                del data
        return tuple(parts)


def size_of(parts: Iterable[StoredPart]) -> int:
    """Bytes of a file that has these parts."""
    return sum(part.size for part in parts)
