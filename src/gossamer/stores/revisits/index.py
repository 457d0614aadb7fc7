"""Where the schedule of known pages lies: keys in a space of the ledger, and what deletes them.

Place in the flow: :mod:`gossamer.stores.revisits.schedule` keeps pages under these keys, and
:mod:`gossamer.stores.revisits.deleting` takes them away.

Under each host lie its pages (`p` and a hash of the URL: what is known of it), the times of their next visits in order (`d`, the
time and the hash: the URL), when the host is to be looked at (`h`, with the time before which none of its pages is due), and the
agent that counts its pages, where they came from another one (`c`).
Under no host lies an index of those times, so that a page costs nothing before it is due.
"""

from struct import Struct

import msgspec
from xxhash import xxh3_128_digest

from gossamer.contracts.ledger import Group
from gossamer.contracts.spaces import Space
from gossamer.model.known import KnownPage
from gossamer.stores.ledger.reading import LedgerReading

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
    """What is kept under `h`. The first schedules had the first time alone: their pages may be due at any time."""
    looked_at, first = TIMES.unpack(data.ljust(TIMES.size, b"\0"))
    return looked_at, first


def is_unplanned(ledger: LedgerReading) -> bool:
    """Whether a ledger may have pages that were visited when nobody kept a schedule, and that have no time yet."""
    if ledger.meta(CAME):
        return True
    unplanned = unplanned_visits(ledger)
    return bool(unplanned) and ledger.meta(UNPLANNED) != str(unplanned).encode()


def unplanned_visits(ledger: LedgerReading) -> int:
    """Visits that no schedule has seen."""
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
    """Stage that a host is not looked at any more; what lies under it goes with the host."""
    look_at(group, host, None)
    group.count(KNOWN, -sum(1 for _ in group.scan(SCHEDULE, host, PAGE)))
