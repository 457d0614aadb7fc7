"""Keys and chunks of the ledger: where everything is found, why it lies beside what it is asked with, and how queued tasks lie
there.

Every key of a URL or a host begins with a hash of the assignable domain, so that handing a domain to another agent is
one range (design question 5); then comes the host, then the URL, so that the links of a page, which mostly stay on their
host, meet in few blocks (M6: host and URL fingerprint apart).

Tasks that were found together share source, relation, depth, attempt, hops, validators and request (mostly none): a chunk holds
*runs* of such tasks, which name what they share once, so that a page's links cost little more than their URLs. Chunks that lie in
no lane, of tasks that are delayed or set aside, stand behind one byte with their level. Cursors say how far lanes are done.

=========  ==========================================  ===========================================================
family     key                                         value
=========  ==========================================  ===========================================================
seen       domain 4, host 6, URL 10 bytes              empty; where depths are kept, the lowest depth, 2 bytes
documents  the same                                    a DocumentRow
links      the same                                    a visited page's links, where depths are kept
requests   the same                                    what a request that is no plain GET sends, until it is done
hosts      domain 4, host 6, `c`                       the cursors of its lanes
hosts      domain 4, host 6, `s`                       a HostState
hosts      domain 4, host 6, `x`, site                 robots bytes of a site of this host
hosts      domain 4, host 6, `t`, name                 what a watcher has learnt of this host, under its name for it
hosts      domain 4, host 6, `n`, `d` or `i`           tally of the host, the domain of this name, or links to the host
contents   digest                                      the URL that its bytes were first met at
contents   0 or 1, ...                                 fingerprints of texts: :mod:`~gossamer.storage.ledger.seen`
frontier   `q`, domain 4, host 6, level, serial 8      a chunk of tasks
frontier   `l`, milliseconds since the epoch 8, 8      a chunk with the one task that is due then
frontier   `r`, serial 8                               hosts that wait for their turn, in order
frontier   `a`, domain 4, host 6                       the name of a host that is held (its turn has come)
frontier   `w`, milliseconds since the epoch 8, d, h   the name of a host that rests until then
frontier   `s`, domain 4, host 6, family 5             a SetAside: a family of which tasks are set aside
frontier   `t`, domain 4, host 6, family 5, serial 8   its tasks, a level before each chunk
meta       `schema`, `secret`, `state`, `end/FILE`     version; key of the hashes; counters; committed end
meta       `rule`                                      a DomainRule, where it is not the usual one
meta       `own/NAME`                                  a value of another owner that commits with a group
meta       `spaces/OWNER`                              version of the owner's space
spaces     domain 4, host 6, owner, version 1, key     an entry of the owner's space; the owner behind its length, 1 byte
spaces     domain 4, host 6, 0, owner                  bytes that the owner has under this host
meta       `space/` and the same without a host        the same of what belongs to no host
=========  ==========================================  ===========================================================
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
from xxhash import xxh3_128_digest

from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.hosts import DomainRule, Remembered, domain_point
from gossamer.values.request_identity import Requested
from gossamer.values.task import Task
from gossamer.values.url import host_of

#: Bytes of the fingerprint of a domain, of a host, of a URL within its host. Domains share 4 bytes at the cost of
#: locality only. With 80 bits, a host of 100 million URLs loses one with odds of 4e-9.
DOMAIN_BYTES, HOST_BYTES, URL_BYTES = 4, 6, 10

#: Bytes of what stands for a host in keys.
HOST_ID_BYTES = DOMAIN_BYTES + HOST_BYTES

#: Hosts, and beginnings of URLs, whose id is remembered at once, 210 bytes each; then all are forgotten, which costs each
#: one more look (20 us). Above the 100,000 hosts of a broad crawl, since a table that is cleared in each round is useless.
REMEMBERED_HOSTS, REMEMBERED_BEGINNINGS = 131_072, 32_768

CHUNK, LATER, ROTATION, HELD, RESTING, ASIDE, SHELF = b"q", b"l", b"r", b"a", b"w", b"s", b"t"
CURSOR, STATE, ROBOTS, LEARNT = b"c", b"s", b"x", b"t"
SCHEMA_KEY, SECRET_KEY, STATE_KEY, END_PREFIX, OWN_PREFIX = b"schema", b"secret", b"state", b"end/", b"own/"
RULE_KEY = b"rule"
SPACE_VERSION_PREFIX, COMMON_PREFIX = b"spaces/", b"space/"

#: How keys of tallies end, by what is tallied.
TALLIES = {"host": b"n", "domain": b"d", "linked": b"i"}


_LEVELS = [bytes([level]) for level in range(256)]


class LedgerKeys:
    """Makes keys. XXH3 resists accidents, not people, so it is keyed with a secret of this crawl that no server knows."""

    __slots__ = ("_of_beginning", "_rule", "_secret", "host")

    def __init__(self, secret: int, rule: DomainRule | None = None) -> None:
        """Keys under this secret; `rule` says which hosts lie together."""
        self._secret = secret
        self._rule = rule or DomainRule()
        self.host: Callable[[str], bytes] = Remembered(self._id, REMEMBERED_HOSTS).__getitem__
        """The id of a host. The domain's part is the same in every crawl: agents agree on who owns it."""
        self._of_beginning: Mapping[str, bytes] = Remembered(
            lambda beginning: self.host(host_of(beginning)), REMEMBERED_BEGINNINGS
        )

    def _id(self, host: str) -> bytes:
        domain = domain_point(self._rule.assignable(host)).to_bytes(DOMAIN_BYTES)
        return domain + xxh3_128_digest(host.encode("utf-8", "surrogatepass"), self._secret)[:HOST_BYTES]

    def url(self, url: str) -> bytes:
        """The key of a canonical URL, or of the identity of a request, which begins with one."""
        # A beginning that ends at a slash behind `https://` holds the whole authority: it fixes the host.
        slash = url.find("/", 8)
        host = self._of_beginning[url if slash < 0 else url[:slash]]
        return host + xxh3_128_digest(url.encode("utf-8", "surrogatepass"), self._secret)[:URL_BYTES]


def serial_key(kind: bytes, serial: int) -> bytes:
    return kind + serial.to_bytes(8)


def lane_key(prefix: bytes, level: int, serial: int = 0) -> bytes:
    """The key of a chunk; at level 256, the first key behind all lanes of the prefix."""
    return prefix + _LEVELS[level] + serial.to_bytes(8) if level < 256 else after(prefix)


def time_key(kind: bytes, time: float, rest: bytes) -> bytes:
    """A key that sorts by time. Times before the epoch count as the epoch, times without end as the last that fits."""
    return kind + math.ceil(_milliseconds(time)).to_bytes(8) + rest


def due_key(kind: bytes, now: float) -> bytes:
    """The first key behind all whose time has come."""
    return kind + (math.floor(_milliseconds(now)) + 1).to_bytes(8)


def _milliseconds(time: float) -> float:
    return min(max(time, 0.0) * 1000, 2.0**62)


def time_of(key: bytes) -> float:
    return int.from_bytes(key[1:9]) / 1000


def after(prefix: bytes) -> bytes:
    """The first key behind all that begin with `prefix`."""
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix[-1] < 255 else after(prefix[:-1])


#: Tasks of one chunk at most: a chunk is read whole, and of most only the first few tasks are wanted soon.
CHUNK_TASKS = 128

#: A place in a lane: the chunk's serial, and the index within it in the last bits.
Place = int
PLACE_BITS = 8

#: Deleted chunks of a lane that a search may walk over: more are jumped over, which costs a search of its own (10 us
#: against 0.2 us for each of them).
WALKED_OVER = 64

_shared = attrgetter("source", "relation", "depth", "attempt", "hops", "etag", "last_modified", "request")


class _Run(msgspec.Struct, array_like=True, gc=False):
    """URLs, and what they share. New fields go to the end, with a default, and are written where they say something."""

    source: str
    relation: str
    depth: int
    attempt: int
    hops: int
    urls: list[str]
    etag: str = ""
    last_modified: str = ""
    mark: str | None = None
    """The mark of requests that are no plain GET. Their bodies lie apart."""


class _Chunk(msgspec.Struct, array_like=True, gc=False):
    """Tasks of one lane of one host."""

    host: str
    runs: list[_Run]


class _EarlyChunk(msgspec.Struct, array_like=True, gc=False):
    """As ledgers have it that were begun before redirects in a row were counted: source, relation, depth, attempt, URLs."""

    host: str
    runs: list[tuple[str, str, int, int, list[str]]]


class Cursor(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the unfinished part of a lane begins, and which places behind it are finished already."""

    place: Place = 0
    spent: int = 0
    """Chunks of this lane that were deleted: many are to be jumped over."""
    finished: tuple[Place, ...] = ()


#: The cursor of a lane that has none.
NEW = Cursor()

#: The cursors of a host's lanes, by level. A lane that is not named begins with its first chunk.
Cursors = Mapping[int, Cursor]


class Marks(msgspec.Struct, array_like=True):
    """Where the queues stand; kept with the counters."""

    serial: int = 1
    """The next chunk or value of the rotation."""
    rotation: int = 0
    """Values of the rotation before this one are gone."""
    unfinished: int = 0
    """Tasks that are queued or in flight."""


_encode = msgspec.msgpack.Encoder().encode
_chunks = msgspec.msgpack.Decoder(_Chunk)
_early_chunks = msgspec.msgpack.Decoder(_EarlyChunk)
_cursors = msgspec.msgpack.Decoder(dict[int, Cursor])


def pack(host: str, tasks: Sequence[Task]) -> list[bytes]:
    if len(tasks) <= CHUNK_TASKS:
        return [_pack(host, tasks)]
    return [_pack(host, tasks[start : start + CHUNK_TASKS]) for start in range(0, len(tasks), CHUNK_TASKS)]


def _pack(host: str, tasks: Sequence[Task]) -> bytes:
    if len(tasks) == 1:  # as most are in a broad crawl
        [task] = tasks
        return _encode((host, (_run(_shared(task), (task.url,)),)))
    return _encode((host, [_run(shared, [task.url for task in run]) for shared, run in groupby(tasks, key=_shared)]))


def _run(shared: tuple[Any, ...], urls: Sequence[str]) -> tuple[Any, ...]:
    source, relation, depth, attempt, hops, etag, last_modified, request = shared
    if request is not None:
        return source, relation, depth, attempt, hops, urls, etag, last_modified, request.mark
    if etag or last_modified:
        return source, relation, depth, attempt, hops, urls, etag, last_modified
    return source, relation, depth, attempt, hops, urls


def unpack(data: bytes, level: int = 0) -> list[Task]:
    """The tasks of a chunk of the lane of this level. Raises CrawlDirectoryError: these bytes are no chunk."""
    try:
        chunk = _chunks.decode(data)
    except ValueError as error:
        try:
            early = _early_chunks.decode(data)
        except ValueError:
            raise CrawlDirectoryError(f"a chunk of the ledger is damaged: {error}; go back to a checkpoint") from None
        chunk = _Chunk(early.host, [_Run(*run[:4], 0, run[4]) for run in early.runs])
    host = chunk.host
    return [
        Task(url, host, depth, source, relation, attempt, level, hops, etag, last_modified, request)
        for source, relation, depth, attempt, hops, urls, etag, last_modified, request in map(_shared_by, chunk.runs)
        for url in urls
    ]


def _shared_by(r: _Run) -> tuple[str, str, int, int, int, list[str], str, str, Requested | None]:
    request = None if r.mark is None else Requested(r.mark)
    return r.source, r.relation, r.depth, r.attempt, r.hops, r.urls, r.etag, r.last_modified, request


def pack_with_level(host: str, level: int, tasks: Sequence[Task]) -> list[bytes]:
    """Chunks of tasks of one host and level that lie in no lane."""
    return [bytes([level]) + chunk for chunk in pack(host, tasks)]


def unpack_with_level(data: bytes) -> list[Task]:
    return unpack(data[1:], data[0])


def unfinished(cursors: Cursors, key: bytes, value: bytes) -> list[Task]:
    """The tasks of the chunk under a key that are not finished, those in flight among them."""
    level, serial = key[-9], int.from_bytes(key[-8:])
    cursor = cursors.get(level, NEW)
    return [
        task
        for place, task in enumerate(unpack(value, level), serial << PLACE_BITS)
        if place >= cursor.place and place not in cursor.finished
    ]


def pack_cursors(cursors: Cursors) -> bytes:
    return _encode(cursors)


def unpack_cursors(data: bytes | None) -> dict[int, Cursor]:
    """The cursors of these bytes; none of a host that has none. Raises CrawlDirectoryError: these bytes are no cursors."""
    if data is None:
        return {}
    try:
        return _cursors.decode(data)
    except ValueError as error:
        raise CrawlDirectoryError(f"a cursor of the ledger is damaged: {error}; go back to a checkpoint") from None


# Bodies and fields of requests that are no plain GET, until these are done: in the queues they wait as URL and mark alone.
# A group that queues such a task keeps what it sends, and a task that is popped gets it back. So a body of a
# megabyte is in memory while its task is in flight, and not before. A task that may not be sent twice is noted as begun before it
# is handed out: a process that finds the note of another one says so in the task, and the request ends as `interrupted`.


class _Kept(msgspec.Struct, array_like=True, gc=False):
    """New fields go to the end, with a default."""

    tasks: int
    """How many tasks wait for it, or are in flight."""
    begun: bytes
    """The session that was about to send it; empty where none was."""
    request: Requested


_kept = msgspec.msgpack.Decoder(_Kept)


class KeptRequests:
    def __init__(self, store: RocksStore, keys: LedgerKeys, session: bytes) -> None:
        """`session` names this opening of the ledger: no other one has it."""
        self._store = store
        self._keys = keys
        self._session = session

    def whole(self, task: Task) -> Task:
        """A task that was popped, with all that it sends."""
        if task.request is None:
            return task
        kept = self._of(task.identity)
        if kept is None:  # nothing but a mark is left of it: it is not sent, rather than sent as something else
            return msgspec.structs.replace(task, request=msgspec.structs.replace(task.request, was_begun=True))
        was_begun = bool(kept.begun) and kept.begun != self._session
        return msgspec.structs.replace(task, request=msgspec.structs.replace(kept.request, was_begun=was_begun))

    def is_begun(self, identity: str) -> bool:
        """Whether it may have been sent, and its outcome is not kept."""
        kept = self._of(identity)
        return kept is not None and bool(kept.begun)

    def write(self, pushed: Iterable[Task], ended: Mapping[str, int], begun: Iterable[str], batch: Batch) -> None:
        """Put the requests of new tasks, each as often as it is queued, into a batch; note which are about to be sent; drop those
        for which no task waits any more: `ended` says how many flights of an identity have ended."""
        changed: dict[str, _Kept | None] = {}

        def known(identity: str) -> _Kept | None:
            return changed[identity] if identity in changed else self._of(identity)

        for identity in begun:
            kept = known(identity)
            if kept is not None:
                changed[identity] = _Kept(kept.tasks, self._session, kept.request)
        for identity, count in ended.items():
            kept = known(identity)
            if kept is not None:
                changed[identity] = _Kept(kept.tasks - count, b"", kept.request)
        for task in pushed:
            assert task.request is not None
            kept = known(task.identity)
            request = msgspec.structs.replace(task.request, was_begun=False)
            changed[task.identity] = _Kept(1 if kept is None else kept.tasks + 1, b"", request)
        for identity, kept in changed.items():
            key = self._keys.url(identity)
            batch.change("requests", key, None if kept is None or kept.tasks <= 0 else _encode(kept))

    def _of(self, identity: str) -> _Kept | None:
        data = self._store.get("requests", self._keys.url(identity))
        return None if data is None else _kept.decode(data)


def as_queued(task: Task) -> Task:
    """The task as it lies in a queue: of what it sends, the mark alone."""
    if task.request is None:
        return task
    return msgspec.structs.replace(task, request=Requested(task.request.mark))
