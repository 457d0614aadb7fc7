"""The limit of depth, and the visited pages whose links a lower limit has cut: where the limit rises, they are announced again.

Place in the flow: the ledger has one; the frontier asks it for pages, and the commit announces their links. What was cut is in no
queue and in no table: the links of visited pages are kept anyway, so that what is to be found again follows from them, and a page
costs nothing more. How far the pages are announced is kept, so that a crawl which is killed goes on there. To announce a page twice
does nothing: its links are seen.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter

import msgspec

from gossamer.engine.errors import SettingError
from gossamer.storage.ledger.contract import Links, Tallied
from gossamer.storage.ledger.keys import HOST_ID_BYTES, LEARNT, OWN_PREFIX, ROBOTS, STATE, TALLIES, LedgerKeys
from gossamer.storage.ledger.seen import DEEPEST
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.storage.seen.caches import RecentlyUsed
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.ledger_rows import DocumentRow, HostState
from gossamer.values.request_identity import Requested
from gossamer.values.task import ANNOUNCED, Task
from gossamer.values.url import host_of

# Links of visited pages, kept while a depth limit is set: when a page turns out to be nearer to the seeds, its links are
# announced again from here, and it is not fetched again (design question 4).


class _Run(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """Links of one relation. New fields go to the end, with a default."""

    relation: str
    urls: list[str]
    request: Requested | None = None
    """What is asked for at each of them beside its URL."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[_Run])


class KeptLinks:
    """Links by page, in order. Runs of links share their relation."""

    def __init__(self, store: RocksStore, keys: LedgerKeys) -> None:
        self._store = store
        self._keys = keys

    def of(self, url: str) -> Links | None:
        """The links of a page; None where it was not visited.

        Raises:
            CrawlDirectoryError: they are damaged.
        """
        data = self._store.get("links", self._keys.url(url))
        if data is None:
            return None
        try:
            return [(url, run.relation, run.request) for run in _decoder.decode(data) for url in run.urls]
        except msgspec.DecodeError as error:
            text = f"the links of {url} in the ledger are damaged: {error}; go back to a checkpoint"
            raise CrawlDirectoryError(text) from None

    def put(self, pages: Mapping[str, Links], batch: Batch) -> None:
        """Put the links of pages into a batch."""
        for url, links in pages.items():
            grouped = groupby(links, key=itemgetter(1, 2))
            runs = [_Run(relation, [link[0] for link in run], request) for (relation, request), run in grouped]
            batch.put("links", self._keys.url(url), _encoder.encode(runs))


# What is kept of hosts, and how many URLs were queued of each host and domain: small tables in front of the store.
#
# A commit asks for the state of each visited host and for the tallies of each new task: most were asked for just before.

#: States and tallies that are remembered; about 600 and 150 bytes each.
REMEMBERED_STATES, REMEMBERED_TALLIES = 8_192, 65_536

#: Hosts that are remembered for their errors, those with the most: people are shown a handful.
FAILING = 64

_states = msgspec.msgpack.Decoder(HostState)


class LedgerHosts:
    """Rows of hosts, robots bytes of their sites, what watchers learnt of them, tallies."""

    def __init__(self, store: RocksStore, keys: LedgerKeys) -> None:
        self._store = store
        self._keys = keys
        self._states: RecentlyUsed[str, HostState] = RecentlyUsed(REMEMBERED_STATES)
        self._tallies: RecentlyUsed[tuple[Tallied, str], int] = RecentlyUsed(REMEMBERED_TALLIES)
        self.failing: dict[str, int] = {}
        """Errors of hosts that had some since this was opened, all runs together; of the hosts with the most."""

    def states(self, names: Sequence[str]) -> list[HostState]:
        """The states of hosts, in order; an empty one for a host of which nothing is kept."""
        known = self._states
        found = {name: state for name in names if (state := known.get(name)) is not None}
        rest = [name for name in dict.fromkeys(names) if name not in found]
        if rest:
            keys = [self._keys.host(name) + STATE for name in rest]
            for name, data in zip(rest, self._store.get_many("hosts", keys), strict=True):
                found[name] = state = HostState(name) if data is None else _states.decode(data)
                known.set(name, state)
        return [found[name] for name in names]

    def all(self) -> Iterator[HostState]:
        """The states of all hosts, in the order of domains."""
        for key, data in self._store.scan("hosts", b"", b"\xff" * (HOST_ID_BYTES + 2)):
            if key[HOST_ID_BYTES:] == STATE:
                yield _states.decode(data)

    def robots(self, site: str, host: str) -> bytes | None:
        """The robots bytes of a site; None where nothing is kept."""
        return self._store.get("hosts", self._robots_key(site, host))

    def learnt(self, names: Sequence[str], what: str) -> list[bytes | None]:
        """What is kept of hosts under a watcher's name for it, in order."""
        return self._store.get_many("hosts", [self._learnt_key(name, what) for name in names])

    def tally(self, what: Tallied, name: str) -> int:
        """How many were counted under this name."""
        count = self._tallies.get((what, name))
        if count is None:
            count = int.from_bytes(self._store.get("hosts", self._keys.host(name) + TALLIES[what]) or b"")
            self._tallies.set((what, name), count)
        return count

    def put(
        self,
        states: Mapping[str, HostState],
        robots: Mapping[tuple[str, str], bytes],
        learnt: Mapping[tuple[str, str], bytes],
        tallies: Mapping[tuple[Tallied, str], int],
        batch: Batch,
    ) -> None:
        """Put rows, robots bytes by site and host, what was learnt by host and name, and tallies into a batch."""
        for name, state in states.items():
            batch.put("hosts", self._keys.host(name) + STATE, _encoder.encode(state))
        for (site, host), data in robots.items():
            batch.put("hosts", self._robots_key(site, host), data)
        for (name, watcher), data in learnt.items():
            batch.put("hosts", self._learnt_key(name, watcher), data)
        for (what, name), count in tallies.items():
            batch.put("hosts", self._keys.host(name) + TALLIES[what], count.to_bytes(8))

    def applied(self, states: Mapping[str, HostState], tallies: Mapping[tuple[Tallied, str], int]) -> None:
        for name, state in states.items():
            self._states.set(name, state)
            errors = state.counters.get("errors", 0)
            if errors:
                self._note_errors(name, errors)
        for key, count in tallies.items():
            self._tallies.set(key, count)

    def _note_errors(self, name: str, errors: int) -> None:
        self.failing[name] = errors
        if len(self.failing) > 2 * FAILING:
            most = sorted(self.failing.items(), key=lambda pair: -pair[1])
            self.failing = dict(most[:FAILING])

    def _learnt_key(self, host: str, what: str) -> bytes:
        return self._keys.host(host) + LEARNT + what.encode()

    def _robots_key(self, site: str, host: str) -> bytes:
        return self._keys.host(host) + ROBOTS + site.encode("utf-8", "surrogatepass")


#: Seen URLs that are looked at in one step: some milliseconds.
LOOKED_AT = 4_096

#: Under which name of its own the ledger keeps how far they are announced.
NAME = "depth"

#: Behind every key of a URL.
_LAST = b"\xff" * 32

_rows = msgspec.msgpack.Decoder(DocumentRow)


class _Reached(msgspec.Struct, array_like=True):
    """How far the limit has been made good."""

    floor: int
    """Links of pages that are nearer than this to the seeds were cut by no limit, or were announced again."""
    limit: int
    """The limit that holds, or held when this was written."""
    cursor: bytes = b""
    """Of the pages at the floor or deeper, those whose keys are not behind this one have been announced up to the limit."""


class DepthLimit:
    """How deep a crawl goes. It keeps depths if it had a limit when its first URL was met."""

    def __init__(self, store: RocksStore, limit: int | None, put: Callable[[str, bytes], None]) -> None:
        self._store = store
        self._put = put
        self._next = b""
        self._is_over = True
        self._reached = _Reached(0, 0)
        first = next(store.scan("seen", b"", _LAST), None)
        self.keeps_depths = limit is not None if first is None else bool(first[1])
        if not self.keeps_depths:
            self._refuse(limit)
            return
        kept = store.get("meta", OWN_PREFIX + NAME.encode())
        wanted = _effective(limit)
        # Nothing was cut before the first URL was met. An older program kept no note: then every page is announced once more.
        self._reached = (
            _Reached(wanted if first is None else 0, wanted)
            if kept is None
            else msgspec.msgpack.decode(kept, type=_Reached)
        )
        self._begin(wanted)

    @property
    def kept(self) -> bytes | None:
        """What is kept of the limit; None where depths are not kept."""
        return msgspec.msgpack.encode(self._reached) if self.keeps_depths else None

    @property
    def limit(self) -> int | None:
        """Links from the nearest seed that are followed; None where depths are not kept, and there is no limit."""
        return self._reached.limit if self.keeps_depths else None

    def change(self, limit: int | None) -> None:
        """Another limit holds from now on.

        Raises:
            SettingError: the crawl does not know the depths of its URLs.
        """
        if self.keeps_depths:
            self._begin(_effective(limit))
        else:
            self._refuse(limit)

    def _refuse(self, limit: int | None) -> None:
        if limit is not None:
            raise SettingError(
                "setting 'depth': this crawl began without a limit of depth, so that nobody knows the shortest ways to its pages; "
                "begin a crawl with --depth N, which may be large, to change N later"
            )

    def _begin(self, limit: int) -> None:
        """Note the limit before anything is cut by it."""
        reached = self._reached
        cursor = reached.cursor if limit == reached.limit else b""
        self._keep(_Reached(min(reached.floor, limit), limit, cursor))

    def _keep(self, reached: _Reached) -> None:
        self._reached = reached
        self._next, self._is_over = reached.cursor, reached.floor >= reached.limit
        self._put(NAME, msgspec.msgpack.encode(reached))

    # -- pages to announce again

    @property
    def is_owing(self) -> bool:
        """Whether there may be pages whose links have to be announced."""
        return not self._is_over

    def owing(self, most: int) -> Sequence[Task]:
        """Some visited pages whose links may have been cut, at most so many: each at its lowest depth. The same again until
        :meth:`announced`. None may be among those that were looked at."""
        keys: dict[bytes, int] = {}
        looked, floor, limit = 0, self._reached.floor, self._reached.limit
        start = self._reached.cursor + b"\0" if self._reached.cursor else b""
        for key, value in islice(self._store.scan("seen", start, _LAST), LOOKED_AT):
            looked += 1
            self._next = key
            depth = int.from_bytes(value)
            if floor <= depth <= limit:
                keys[key] = depth
                if len(keys) == most:
                    break
        self._is_over = looked < LOOKED_AT and len(keys) < most
        rows = self._store.get_many("documents", list(keys))
        return [
            _page(_rows.decode(row), depth) for depth, row in zip(keys.values(), rows, strict=True) if row is not None
        ]

    def announced(self) -> None:
        """The links of the pages that :meth:`owing` gave are queued: go on behind them."""
        limit = self._reached.limit
        if self._is_over:
            self._keep(_Reached(limit, limit))
        else:
            self._keep(_Reached(self._reached.floor, limit, self._next))


def merged_reach(one: bytes | None, other: bytes | None) -> bytes | None:
    """What holds of pages that come from two ledgers: those whose links one of them owes are announced once more."""
    if one is None or other is None:
        return other if one is None else one
    mine, others = (msgspec.msgpack.decode(data, type=_Reached) for data in (one, other))
    if mine == others:
        return one
    return msgspec.msgpack.encode(_Reached(min(mine.floor, others.floor), max(mine.limit, others.limit)))


def _effective(limit: int | None) -> int:
    return DEEPEST if limit is None else min(limit, DEEPEST)


def _page(row: DocumentRow, depth: int) -> Task:
    request = Requested(row.mark) if row.mark else None
    return Task(row.url, host_of(row.url), depth, row.source, ANNOUNCED, request=request)
