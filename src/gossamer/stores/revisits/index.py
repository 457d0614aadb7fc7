"""Where the schedule of known pages lies: keys in a space of the ledger, and what deletes them.

Place in the flow: :mod:`gossamer.stores.revisits.schedule` keeps pages under these keys, and
:mod:`gossamer.stores.revisits.deleting` takes them away.

Under each host lie its pages (`p` and a hash of the URL: what is known of it), the times of their next visits in order (`d`, the
time and the hash: the URL), and when the host is to be looked at (`h`, with the time before which none of its pages is due).
Under no host lies an index of those times, so that a page costs nothing before it is due.
"""

from struct import Struct

import msgspec
from xxhash import xxh3_128_digest

from gossamer.contracts.ledger import Group
from gossamer.contracts.spaces import Space
from gossamer.model.known import KnownPage

#: As large as it takes: pages are counted by the crawl's own limits.
SCHEDULE = Space("revisits", value_bytes=64 << 10, host_bytes=1 << 40, common_bytes=1 << 40)

PAGE, DUE, HOST = b"p", b"d", b"h"

#: In this form the bytes of times that are not negative sort as the times do.
TIME, TIMES = Struct(">d"), Struct(">dd")

#: Counter: pages that are known.
KNOWN = "revisits:known"

pages = msgspec.msgpack.Decoder(KnownPage)


def page_key(identity: str) -> bytes:
    return PAGE + xxh3_128_digest(identity.encode("utf-8", "surrogateescape"))


def due_key(due: float, page: bytes) -> bytes:
    return DUE + TIME.pack(due) + page[1:]


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
