"""Links of visited pages, kept while a depth limit is set: when a page turns out to be nearer to the seeds, its links are
announced again from here, and it is not fetched again (design question 4)."""

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter

import msgspec

from gossamer.contracts.ledger import Links
from gossamer.model.errors import CrawlDirectoryError
from gossamer.model.requesting import Requested
from gossamer.stores.ledger.keys import LedgerKeys
from gossamer.stores.ledger.store import Batch, RocksStore


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

    def __repr__(self) -> str:
        return f"<KeptLinks in {self._store!r}>"

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
