"""The limit of depth, the links of visited pages, and which pages' links a lower limit has cut.

Place in the flow: the frontier asks for pages whose links are to be announced again, and the commit announces them. While depths
are kept, the links of visited pages are kept too: a page that turns out to be nearer to the seeds is not fetched again, since its
links are here (design question 4). Links that a limit has cut are found in the same way when the limit rises, so they need no queue
or table of their own. The ledger notes how far the pages are announced, so that a crawl which is killed goes on there. To announce
a page twice does nothing: its links are seen.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter

import msgspec

from gossamer.engine.errors import SettingError
from gossamer.storage.ledger.contract import Links
from gossamer.storage.ledger.layout import OWN_PREFIX, LedgerKeys
from gossamer.storage.ledger.seen import DEEPEST
from gossamer.storage.ledger.store import Batch, RocksStore
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.ledger_rows import DocumentRow
from gossamer.values.request_identity import Requested
from gossamer.values.task import ANNOUNCED, Task
from gossamer.values.url import host_of


class _Run(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """Links of one relation. New fields go to the end, with a default."""

    relation: str
    urls: list[str]
    request: Requested | None = None
    """The request at each of them, where it is no plain GET."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[_Run])


class KeptLinks:
    """Links by page, in order. Runs of links share their relation."""

    def __init__(self, store: RocksStore, keys: LedgerKeys) -> None:
        self._store = store
        self._keys = keys

    def of(self, url: str) -> Links | None:
        """The links of a page; None where it was not visited. Raises CrawlDirectoryError: they are damaged."""
        data = self._store.get("links", self._keys.url(url))
        if data is None:
            return None
        try:
            return [(url, run.relation, run.request) for run in _decoder.decode(data) for url in run.urls]
        except ValueError as error:
            text = f"the links of {url} in the ledger are damaged: {error}; go back to a checkpoint"
            raise CrawlDirectoryError(text) from None

    def put(self, pages: Mapping[str, Links], batch: Batch) -> None:
        for url, links in pages.items():
            grouped = groupby(links, key=itemgetter(1, 2))
            runs = [_Run(relation, [link[0] for link in run], request) for (relation, request), run in grouped]
            batch.put("links", self._keys.url(url), _encoder.encode(runs))


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
        self.limit: int | None = None
        """The limit that holds; None where depths are not kept."""
        self.is_owing = False
        """There are pages whose links may have been cut, and are to be announced again."""
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
        return msgspec.msgpack.encode(self._reached) if self.keeps_depths else None

    def change(self, limit: int | None) -> None:
        """Another limit holds from now on. Raises SettingError: the crawl does not know the depths of its URLs."""
        if self.keeps_depths:
            self._begin(_effective(limit))
        else:
            self._refuse(limit)

    def _refuse(self, limit: int | None) -> None:
        if limit is not None:
            raise SettingError(
                "setting 'depth': this crawl began without a limit of depth, so that the shortest ways to its pages are not known; "
                "begin a crawl with --depth N, which may be large, to change N later"
            )

    def _begin(self, limit: int) -> None:
        """Note the limit before anything is cut by it."""
        reached = self._reached
        cursor = reached.cursor if limit == reached.limit else b""
        self._keep(_Reached(min(reached.floor, limit), limit, cursor))

    def _keep(self, reached: _Reached) -> None:
        self._reached, self.limit = reached, reached.limit
        self._next, self.is_owing = reached.cursor, reached.floor < reached.limit
        self._put(NAME, msgspec.msgpack.encode(reached))

    # -- pages to announce again

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
        self.is_owing = looked == LOOKED_AT or len(keys) == most
        found = []
        for depth, data in zip(keys.values(), self._store.get_many("documents", list(keys)), strict=True):
            if data is not None:
                row = _rows.decode(data)
                request = Requested(row.mark) if row.mark else None
                found.append(Task(row.url, host_of(row.url), depth, row.source, ANNOUNCED, request=request))
        return found

    def announced(self) -> None:
        """The links of the pages that :meth:`owing` gave are queued: go on behind them."""
        limit = self._reached.limit
        self._keep(_Reached(self._reached.floor, limit, self._next) if self.is_owing else _Reached(limit, limit))


def merged_reach(one: bytes | None, other: bytes | None) -> bytes | None:
    """The reach of pages that come from two ledgers: pages whose links one of them owes are announced once more."""
    if one is None or other is None:
        return other if one is None else one
    mine, others = (msgspec.msgpack.decode(data, type=_Reached) for data in (one, other))
    if mine == others:
        return one
    return msgspec.msgpack.encode(_Reached(min(mine.floor, others.floor), max(mine.limit, others.limit)))


def _effective(limit: int | None) -> int:
    return DEEPEST if limit is None else min(limit, DEEPEST)
