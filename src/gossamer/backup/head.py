"""The head of a store: its objects, and the one writer.

    agents/NAME/head.json                     who owns the agent, and which checkpoint counts
    agents/NAME/checkpoints/EPOCH-N-LIFE.json the files of a checkpoint, and the parts that each consists of
    agents/NAME/data/EPOCH/DIGEST             a part: some bytes of a file
    agents/NAME/sent/DIGEST                   a request that may not be sent twice, until a checkpoint has its outcome

The head is the only object that is replaced, and only if it is unchanged. So it is fence and pointer at once: a process that has
claimed the agent has changed it, and what another process publishes then is refused. A checkpoint names only parts that are in
the store. Readers go by checkpoints: what an owner shipped that was fenced lies there too, and counts for nothing. A part bears
the epoch of the owner that shipped it, so that no owner removes what another one names, and its digest, which is checked when it
is read.
"""

import contextlib
import hashlib
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from gossamer.backup.contract import ABSENT, ObjectChanged, ObjectMissing, Store, StoreFailed
from gossamer.backup.opening import CopiedStore, FolderStore
from gossamer.backup.options import JOINED
from gossamer.engine.files import replace_file
from gossamer.engine.sheet import show_seconds
from gossamer.storage.mailbox.retaining import StorePoint, point_path
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.errors import CrawlDirectoryError

#: Bytes of a part at most: so much of a file is in memory at a time, for each thread that ships.
PART_BYTES = 8 << 20

#: Threads that bring parts back at once, and bytes of a digest.
_FETCHERS, _DIGEST = 4, 20

#: Settings and state may hold passwords; the rest is as readable as pages are.
STATE, _PRIVATE, _USUAL = "state/", 0o600, 0o644


class StoredPart(msgspec.Struct, frozen=True, array_like=True):
    """Some bytes of a file."""

    key: str
    size: int

    @property
    def digest(self) -> str:
        """Of its bytes."""
        return self.key.rpartition("/")[2]


def digest_of(data: bytes | memoryview) -> str:
    """A digest that cannot be forged: pages of strangers are in these bytes."""
    return hashlib.blake2b(data, digest_size=_DIGEST).hexdigest()


class StoredCheckpoint(msgspec.Struct, frozen=True):
    """A whole crawl directory at one instant."""

    files: dict[str, tuple[StoredPart, ...]]
    """File, inside the crawl directory -> its parts in order."""
    standing: msgspec.Raw = msgspec.Raw(b"null")
    """How the agent stood (`CrawlStanding`), so that `status` fetches none of these files; null where nothing was published."""

    @property
    def keys(self) -> set[str]:
        return {part.key for parts in self.files.values() for part in parts}

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(part.size for parts in self.files.values() for part in parts)


class StoreHead(msgspec.Struct, frozen=True):
    """The owner of an agent, and its checkpoint."""

    epoch: int
    """One more with each owner."""
    life: str
    """The name of the owner, unlike every other."""
    holder: str
    """The owner as people know it; empty after it has ended."""
    lease: float
    """Seconds after which it may be counted as gone."""
    checkpoint: str = ""
    """The key of the checkpoint that counts."""
    published: float = 0.0
    """When that was, in seconds since the epoch, by the clock of the store."""
    count: int = 0
    """How many checkpoints were published, by all owners."""
    restored: int = 0
    """How often the agent has gone back to a checkpoint, since its folder was lost."""
    members: tuple[str, ...] = ()
    """All agents of the crawl, as the checkpoint has them; none where it has one."""
    store: str = ""
    """The name of the store as its owner has it: it may have copies."""
    division: int = 0
    """The number of their division (:func:`~gossamer.storage.members.division_of`)."""


class Owned(StorePoint, frozen=True, kw_only=True):
    """The place of an agent in its store, as its folder knows it and other agents are told."""

    url: str
    lives: tuple[str, ...]
    """The last names of its owners in this directory: the claim of the last one may not have arrived."""
    has_ended: bool = False
    """The checkpoint has all of it."""


def owned(directory: Path, agent: str) -> Owned | None:
    """The place of an agent in its store, as its folder knows it; None where it has none."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        return msgspec.json.decode(point_path(directory, agent).read_bytes(), type=Owned)
    return None


def note_owned(
    directory: Path,
    agent: str,
    url: str,
    lives: tuple[str, ...],
    head: StoreHead | StorePoint | None,
    *,
    has_ended: bool = False,
) -> None:
    """Note who owns an agent here, and how far it is in its store, by its head: whole, or not at all. Other agents forget by that
    what they have sent."""
    found = head or StorePoint()
    told = {"count": found.count, "restored": found.restored, "division": found.division}
    note = Owned(url=url, lives=lives, has_ended=has_ended, **told)
    path = point_path(directory, agent)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, msgspec.json.encode(note))


#: The agent whose file it is, where several share a crawl directory.
_OWNER = re.compile(r"(?:state/|logs/|tables/[^/]+/|warc/.*-(?=agent-\d+-\d{14}-))(agent-\d+)(?=[-/.]).*")


def owner_of(name: str) -> str:
    """The agent whose file it is, by its name in the crawl directory; empty where it belongs to the whole crawl."""
    return match[1] if (match := _OWNER.fullmatch(name)) else ""


def missing(store: Store, key: str) -> CrawlDirectoryError:
    return CrawlDirectoryError(f"the store {store.name} is damaged: {key} is missing")


def new_life() -> tuple[str, str]:
    """A name for an owner that begins, and how people know it."""
    return secrets.token_hex(8), f"process {os.getpid()} on {socket.gethostname()}"


class AgentInStore:
    """One agent's place in a store. Calls block."""

    def __init__(self, store: Store, agent: str) -> None:
        self.store = store
        self.agent = agent
        self.folder = f"agents/{agent}"
        self._key = f"{self.folder}/head.json"
        self.head: StoreHead | None = None
        """As it was last read or written."""
        self._tag = ABSENT
        self._before: StoreHead | None = None
        """As it was before it was claimed here."""
        self._heard = 0.0
        self.apart = 0.0
        """Seconds by which the clock of the store is before ours."""
        self._number = 0

    def read(self) -> StoreHead | None:
        """Look at the head; None where there is none."""
        try:
            data, seen = self.store.read(self._key)
            self.head, self._tag, self._heard = msgspec.json.decode(data, type=StoreHead), seen.tag, seen.modified
        except ObjectMissing:
            self.head, self._tag = None, ABSENT
        except ValueError as error:
            raise StoreFailed(f"the store {self.store.name}: {self._key} is damaged: {error}") from None
        return self.head

    def level(self) -> None:
        """Bring copies of a store level, where it is one, before its owner begins. Raises StoreFailed."""
        if isinstance(self.store, CopiedStore):
            self.store.level(f"{self.folder}/", self._age_in)

    def refuse_older(self, now: float, *, take_over: bool) -> None:
        """Refuse a copy that was left out while another one was not; `now` is by its clock. Raises CrawlDirectoryError."""
        for name in self.head.store.split(JOINED) if self.head is not None else ():
            if "://" in name or name == self.store.name or not Path(name).is_dir():
                continue
            other = AgentInStore(FolderStore(Path(name)), self.agent)
            if self._age_in(other.store) > self._age_in(self.store):
                raise CrawlDirectoryError(
                    f"the copy in {self.store.name} is older than that in {name}; go on with that: gossamer resume {name} -o DIR"
                )
            if other.read() is not None and not take_over:
                other.refuse_living(now)

    def _age_in(self, store: Store) -> tuple[int, ...]:
        head = AgentInStore(store, self.agent).read()
        return (head.epoch, head.count) if head is not None else ()

    def refuse_living(self, now: float) -> None:
        """Refuse an agent whose owner may be alive; `now` is by the clock of the store. Raises CrawlDirectoryError."""
        if self.head is not None and self.head.holder:
            age = self.age(now)
            if age < self.head.lease:
                raise CrawlDirectoryError(
                    f"the crawl in {self.store.name} is owned by {self.head.holder}, heard of {show_seconds(age)} ago; "
                    f"stop that, or try again in {show_seconds(self.head.lease - age)}, or add --take-over"
                )

    def age(self, now: float) -> float:
        """Seconds since the owner was heard of, as of the last :meth:`read`."""
        return max(0.0, now - self._heard)

    def claim(self, life: str, holder: str, lease: float, *, restores: bool = False, begins: bool = False) -> StoreHead:
        """Become the owner of what :meth:`read` has seen; with `restores`, to go back to its checkpoint, or as one that `begins`,
        to have none. Raises ObjectChanged: another process has become it meanwhile."""
        self._before = self.head
        before = self.head or StoreHead(0, "", "", lease)
        if begins:
            before = msgspec.structs.replace(before, checkpoint="", members=(), division=0)
        self._number = 0
        own = {"epoch": before.epoch + 1, "life": life, "holder": holder, "lease": lease, "store": self.store.name}
        return self._put(msgspec.structs.replace(before, **own, restored=before.restored + restores))

    def renew(self) -> None:
        """Say that the owner is alive. Raises ObjectChanged: it is the owner no more."""
        assert self.head is not None
        self._put(self.head)

    def give_back(self) -> None:
        """Undo the claim of an owner that has done nothing: the one before may go on, and any process may claim the agent. Raises
        ObjectChanged: it is the owner no more."""
        if self._before is not None:
            self._put(msgspec.structs.replace(self._before, holder=""))

    def publish(
        self, checkpoint: StoredCheckpoint, *, has_ended: bool, members: tuple[str, ...] = (), division: int = 0
    ) -> None:
        """Let this checkpoint count; with `has_ended`, any process may own the agent from then on. `members` are all agents of the
        crawl, and `division` the number of their division. Raises ObjectChanged: this process is the owner no more, and nothing
        has changed."""
        assert self.head is not None
        self._number += 1
        # With the name of the owner: another crawl may have been here, and readers keep what they have read by its key.
        key = f"{self.folder}/checkpoints/{self.head.epoch:06d}-{self._number:06d}-{self.head.life}.json"
        self.store.put(key, msgspec.json.encode(checkpoint))
        holder = "" if has_ended else self.head.holder
        # The last one was begun after everything that the agent committed, so that it counts as two (`retaining`).
        count = self.head.count + (2 if has_ended else 1)
        now = {"checkpoint": key, "published": time.time() + self.apart, "count": count, "holder": holder}
        self._put(msgspec.structs.replace(self.head, members=members, division=division, **now))

    def _put(self, head: StoreHead) -> StoreHead:
        before, data = (self.head, self._tag), msgspec.json.encode(head)
        try:
            self._tag = self.store.put(self._key, data, self._tag)
        except ObjectChanged:
            # Its answer may have been lost, and the request repeated.
            if (found := self.read()) is None or found.life != head.life:
                self.head, self._tag = before  # what another process has written is not for this one to replace
                if found is None:
                    away = f"the store {self.store.name} has no {self._key}: it was emptied, or its disk is away"
                    raise StoreFailed(away) from None
                raise
            if found != head:
                self._tag = self.store.put(self._key, data, self._tag)
        self.head = head
        return head

    def checkpoint(self) -> StoredCheckpoint:
        """The checkpoint that counts; an empty one where nothing was published. Raises CrawlDirectoryError: it is not there, or
        damaged."""
        key = self.head.checkpoint if self.head is not None else ""
        if not key:
            return StoredCheckpoint({})
        try:
            return msgspec.json.decode(self.store.get(key), type=StoredCheckpoint)
        except ObjectMissing:
            raise missing(self.store, key) from None
        except ValueError as error:
            raise CrawlDirectoryError(f"the store {self.store.name} is damaged: {key}: {error}") from None

    # -- parts

    def part_key(self, digest: str) -> str:
        """Where a part lies that this owner ships."""
        assert self.head is not None
        return f"{self.folder}/data/{self.head.epoch:06d}/{digest}"

    def bring(
        self,
        files: Mapping[str, tuple[StoredPart, ...]],
        into: Path,
        have: Mapping[str, tuple[StoredPart, ...]] = {},
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """Write files of a checkpoint below the folder `into`, each whole or not at all; of those that it has, `have` says the
        parts. `beat` is called now and then meanwhile. Raises CrawlDirectoryError: a part is missing, or has other bytes than
        were shipped; names it."""
        for name in files:
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise CrawlDirectoryError(f"the store {self.store.name} is damaged: it names a file {name!r}")
        with ThreadPoolExecutor(_FETCHERS) as pool:
            for name, parts in files.items():
                path, there = into / name, have.get(name, ())
                if name in have and there == parts:
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                if there and there == parts[: len(there)]:
                    fresh, mode, missing = path, "ab", parts[len(there) :]  # it has grown
                else:
                    fresh, mode, missing = path.with_name(f".{path.name}.new"), "wb", parts
                with fresh.open(mode) as file:
                    fresh.chmod(_PRIVATE if name == CRAWL_FILE or name.startswith(STATE) else _USUAL)
                    for start in range(0, len(missing), _FETCHERS):
                        file.writelines(pool.map(self._part, missing[start : start + _FETCHERS]))
                        beat()
                fresh.replace(path)

    def content(self, parts: Iterable[StoredPart]) -> bytes:
        """The bytes of a file. Raises as :meth:`bring`."""
        return b"".join(map(self._part, parts))

    def _part(self, part: StoredPart) -> bytes:
        try:
            data = self.store.get(part.key)
        except ObjectMissing:
            raise missing(self.store, part.key) from None
        if digest_of(data) != part.digest:
            raise CrawlDirectoryError(
                f"the store {self.store.name} is damaged: {part.key} has other bytes than were shipped"
            )
        return data

    def sent_key(self, mark: str) -> str:
        """Where it is noted that a request was sent."""
        return f"{self.folder}/sent/{mark}"

    def note_sent(self, mark: str, life: bytes) -> bool:
        """Note that a request is sent now; False where another owner has noted it."""
        try:
            self.store.put(self.sent_key(mark), life, ABSENT)
        except ObjectChanged:  # it may be our own: an answer may have been lost, and the request repeated
            return self.store.get(self.sent_key(mark)) == life
        return True

    def left_by_others(self) -> Iterator[str]:
        """Objects of earlier owners that were killed or fenced: they publish nothing more, so no checkpoint will name these."""
        assert self.head is not None
        named, own = {self.head.checkpoint, *self.checkpoint().keys}, f"{self.head.epoch:06d}"
        for kind in ("data", "checkpoints"):
            start = f"{self.folder}/{kind}/"
            for key in self.store.list(start):
                if key not in named and key.removeprefix(start)[: len(own)] < own:
                    yield key

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects that no checkpoint names any more."""
        self.store.delete(sorted(keys))
