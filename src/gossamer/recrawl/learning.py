"""Rates of change as visits teach them, where the schedule keeps them, and how it judges pages that were visited before
there was one.

Place in the flow: :mod:`schedule` keeps pages under the keys that stand here, and :mod:`ledger` takes them away. The schedule
asks for the outlook of a page when it says how long the page waits, and gives each visit that says something.
"""

from collections.abc import Sequence
from struct import Struct

import msgspec
from xxhash import xxh3_128_digest

from gossamer.storage.contract import Space
from gossamer.storage.ledger.contract import Group
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.ledger.reader import LedgerReader
from gossamer.values import page_history
from gossamer.values.ledger_rows import DocumentRow
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.outcome import Outcome
from gossamer.values.page_history import NO_SIGNALS, USUAL, Belief, KnownPage, RateGroup, Signals

# Where the schedule lies, in a space of the ledger. Under each host lie its pages (`p` and a hash of the URL: what is known of
# it), the times of their next visits in order (`d`, the time and the hash: the URL), when the host is to be looked at (`h`, with
# the time before which none of its pages is due), and the agent that counts its pages, where they came from another one (`c`).
# Under no host lies an index of those times, so that a page costs nothing before it is due.

#: As large as it takes: pages are counted by the crawl's own limits.
SCHEDULE = Space("revisits", value_bytes=64 << 10, host_bytes=1 << 40, common_bytes=1 << 40)

PAGE, DUE, HOST, COUNTED = b"p", b"d", b"h", b"c"

#: In this form the bytes of times that are not negative sort as the times do.
TIME, TIMES = Struct(">d"), Struct(">dd")

#: Counters: pages that are known, visits that were seen, pages that were queued again, visits of those that ended.
KNOWN, SEEN, WOKEN, ENDED = "revisits:known", "revisits:seen", "revisits:woken", "revisits:ended"

#: Names of values: the price; of how many visits the schedule does not know what pages they brought; whether such pages came from
#: another agent.
PRICE, UNPLANNED, CAME = "revisits.price", "revisits.unplanned", "revisits.came"

pages = msgspec.msgpack.Decoder(KnownPage)


def page_key(identity: str) -> bytes:
    return PAGE + xxh3_128_digest(identity.encode("utf-8", "surrogateescape"))


def due_key(due: float, page: bytes) -> bytes:
    return DUE + TIME.pack(due) + page[1:]


def times_of(data: bytes) -> tuple[float, float]:
    """The value under `h`. The first schedules had the first time alone: their pages may be due at any time."""
    looked_at, first = TIMES.unpack(data.ljust(TIMES.size, b"\0"))
    return looked_at, first


def is_unplanned(ledger: LedgerReader) -> bool:
    """Whether a ledger may have pages that were visited before there was a schedule, and that have no time yet."""
    if ledger.meta(CAME):
        return True
    unplanned = unplanned_visits(ledger)
    return bool(unplanned) and ledger.meta(UNPLANNED) != str(unplanned).encode()


def unplanned_visits(ledger: LedgerReader) -> int:
    counters = ledger.counters()
    return counters.get("visits", 0) - counters.get(SEEN, 0)


def look_at(group: Group, host: str, times: tuple[float, float] | None) -> None:
    """Look at this host at the first of these times, and not when it was to be before; none of its pages is due before the second.
    None: never."""
    before = group.get(SCHEDULE, host, HOST)
    if before is not None:
        group.delete(SCHEDULE, None, before[: TIME.size] + host.encode())
    if times is None:
        group.delete(SCHEDULE, host, HOST)
        return
    group.put(SCHEDULE, host, HOST, TIMES.pack(*times))
    group.put(SCHEDULE, None, TIME.pack(times[0]) + host.encode(), b"")


def drop_page(group: Group, host: str, url: str) -> None:
    """Stage that nothing is known of a page. It is queued no more, but where it is queued already."""
    key = page_key(url)
    data = group.get(SCHEDULE, host, key)
    if data is None:
        return
    group.delete(SCHEDULE, host, key)
    group.count(KNOWN, -1)
    if due := pages.decode(data).due:
        group.delete(SCHEDULE, host, due_key(due, key))


def drop_host(group: Group, host: str) -> None:
    """Stage that a host is not looked at any more; rows under it go with the host."""
    look_at(group, host, None)
    group.count(KNOWN, -sum(1 for _ in group.scan(SCHEDULE, host, PAGE)))


# Rates of change: of a page, of its kind on its host, of its kind anywhere; and the signals of its host. They lie in a space of
# their own: under each host a group for each kind of page and the record of its signals, under no host a group for each kind.
# They change in the group that keeps the visit.

#: A host has fewer than twenty kinds of pages, and so has the whole crawl: kinds are words of ours.
RATES = Space("revisit-rates", value_bytes=256)

_KIND, _ALL, _SIGNALS = b"k", b"a", b"s"

_group = msgspec.msgpack.Decoder(RateGroup)
_signals = msgspec.msgpack.Decoder(Signals)
_encode = msgspec.msgpack.Encoder().encode


def _kept(group: Group, host: str | None, key: bytes) -> RateGroup:
    data = group.get(RATES, host, key)
    return RateGroup() if data is None else _group.decode(data)


def usual(group: Group) -> Belief:
    """The belief about a page of which nothing is known, not even its host."""
    return page_history.prior_of(_kept(group, None, _ALL), USUAL)


def prior(group: Group, host: str, kind: str) -> Belief:
    key = _KIND + kind.encode()
    return page_history.prior_of(_kept(group, host, key), page_history.prior_of(_kept(group, None, key), usual(group)))


def signals_of(group: Group, host: str) -> Signals:
    """How far what a host says of changes has proved true."""
    data = group.get(RATES, host, _SIGNALS)
    return NO_SIGNALS if data is None else _signals.decode(data)


def learn(group: Group, host: str, before: KnownPage, page: KnownPage) -> KnownPage:
    """Stage what a visit teaches: `page` is what is known with it, `before` what was known until then. Returns the page with the
    evidence of this visit."""
    time, is_changed = page.visited_at - before.visited_at, page.changes > before.changes
    believed_before, signals = prior(group, host, page.kind), signals_of(group, host)
    evidence = page_history.learnt(believed_before, before.evidence, time, is_changed, signals, before.signalled)
    expected = page_history.believed(believed_before, before.evidence)
    told = page_history.judged(signals, expected, time, is_changed, before.signalled)
    if told is not signals and (before.signalled or signals.true or signals.false):
        group.put(RATES, host, _SIGNALS, _encode(told))
    belief = page_history.believed(believed_before, evidence)
    key = _KIND + page.kind.encode()
    for of, name in ((host, key), (None, key), (None, _ALL)):
        group.put(RATES, of, name, _encode(page_history.grouped(_kept(group, of, name), belief, time)))
    return msgspec.structs.replace(page, evidence=evidence, signalled=0)


# Pages that a crawl visited before it had a schedule. Where a crawl gets a schedule later (`gossamer resume DIR --recrawl
# ...`), the schedule of known pages (:mod:`~gossamer.recrawl.schedule`) plans them step by step.

#: Rows that are read at once, so that the crawl goes on meanwhile.
_AT_ONCE = 500


class PastVisits:
    """Rows of documents in the ledger, some at a time. A run that is killed begins anew, and its schedule knows what it has."""

    def __init__(self, store: RocksLedger) -> None:
        self._store = store
        self._after = b""

    def __repr__(self) -> str:
        return f"<PastVisits after {self._after!r}>"

    def take(self) -> Sequence[DocumentRow] | None:
        """Those of the next rows whose pages can be visited again; None where no row is left."""
        rows, self._after = self._store.documents_after(self._after, _AT_ONCE)
        if not rows:
            return None
        return [row for row in rows if not row.mark and row.outcome in (Outcome.OK, Outcome.TRUNCATED)]

    def end(self) -> None:
        """Keep that all of them are planned."""
        self._store.put_meta(UNPLANNED, str(unplanned_visits(self._store)).encode())
        self._store.put_meta(CAME, b"")


def as_known(row: DocumentRow, now: float) -> KnownPage:
    """The page that the row of a document tells of; `now` bounds the time of the visit, since the clock may have been ahead."""
    visited = min(row.fetched_at, now)
    return KnownPage(
        visited_at=visited, changed_at=visited, digest=row.digest, is_page=row.mime in HTML_TYPES, body_at=row.location
    )
