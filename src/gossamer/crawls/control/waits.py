"""Why a crawl waits and until when, and how large its data sets are: for `status`, progress and JSON.

Place in the flow: :mod:`~gossamer.crawls.control.at_work` and :mod:`~gossamer.crawls.control.at_rest` ask here. Each store
knows its size; tables and sieves alone are folders of files, which are walked over seldom.
"""

import heapq
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path

import msgspec

from gossamer.frontier.politeness.places import Held, HeldBy, HostNote, why_held
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, RocksLedger
from gossamer.storage.ledger.waiting import Owed
from gossamer.storage.tables.places import TABLES
from gossamer.values.ledger_rows import HostState
from gossamer.values.task import SetAside

# Sizes of the main data sets, and how fast they grow.

#: Where rows lie that are not tables yet, and the seen set of a crawl in bulk: inside the states of agents.
ROWS, SIEVES = "*/rows", "*/sieve"

#: Names of the data sets that are walked over.
WALKED = ("tables", "sieve")

#: The end of the names of archive files, whatever their compression.
_ARCHIVED = ".warc"


class DataSet(msgspec.Struct, frozen=True):
    """One of the main data sets."""

    name: str
    """`seen`, `frontier`, `ledger`, `archive` or `tables`; of a crawl in bulk also `sieve`, where its seen set lies."""
    bytes: int
    """On the disk, and an estimate of what a store holds in memory until it writes it there."""
    growth: float = 0.0
    """Bytes a second over the last minute; 0 at rest."""
    items: int = 0
    """URLs, of `seen` and `frontier`; 0 of the others."""


def sizes_of(ledger: RocksLedger) -> dict[str, int]:
    """Bytes of all data sets that know their own size: no directory is looked at."""
    families = ledger.sizes()
    archive = sum(end for file, end in ledger.committed_ends().items() if _ARCHIVED in file.rpartition("/")[2])
    return {
        "seen": families.get("seen", 0),
        "frontier": families.get("frontier", 0) + families.get("requests", 0),
        "ledger": sum(families.values()),
        "archive": archive,
    }


def walked_sizes(directory: Path) -> dict[str, int]:
    """Bytes of the data sets that are directories: their files are walked over."""
    state = directory / STATE_DIRECTORY
    found = {"tables": _bytes_below([directory / TABLES, *state.glob(ROWS)])}
    sieves = list(state.glob(SIEVES))
    return {**found, "sieve": _bytes_below(sieves)} if sieves else found


def disk_free(directory: Path) -> int:
    """Bytes that we may still write on the disk of a directory; 0 where it is not known."""
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return 0


def _bytes_below(places: Iterable[Path]) -> int:
    total = 0
    for path in chain.from_iterable(place.rglob("*") for place in places):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # its maker has just removed it
    return total


def data_sets(sizes: Mapping[str, int], growth: Mapping[str, float], *, discovered: int, queued: int) -> list[DataSet]:
    items = {"seen": discovered, "frontier": queued}
    return [DataSet(name, size, round(growth.get(name, 0.0), 1), items.get(name, 0)) for name, size in sizes.items()]


#: Tasks for later that are counted: reading one takes some microseconds, and a person may look every second.
MOST_COUNTED = 1_000

#: Hosts or URLs that a reason names.
NAMED = 3

#: Families of what was set aside that are looked at for their hosts: reading one takes some microseconds too.
MOST_FAMILIES = 100


class Wait(msgspec.Struct, frozen=True):
    """One reason why something waits."""

    why: str
    """`paused`, `disk_full`, `memory`, `network_down`, `retries` (pages that are tried again), `unreachable`, `dns_failed`,
    `refusals`, `robots_unreachable`, `delay` (the usual one of hosts), `look_ups` (of names), `slow_pages`, `crawlers` (URLs
    that are lent), `set_aside`."""
    urls: int = 0
    hosts: int = 0
    until: float = 0.0
    """When the first of them goes on, in seconds since the epoch; 0 where it is not known."""
    names: list[str] = []
    """Some of the hosts, or of the URLs where it is `slow_pages`; the first to go on are first. Of `set_aside` hosts, or domains
    as `*.example.org`, with most of it."""
    seconds: float = 0.0
    """Of `slow_pages`: for how long the slowest has been under way. Of `delay`: the delay of the first host."""
    reason: str = ""
    """Of `delay`: why it is no shorter, in one word."""
    is_more: bool = False
    """There are more URLs than were counted."""


def waits_at_rest(
    owed: Owed, hosts: Iterable[HostState], now: float, set_aside: int, families: Iterable[SetAside] = ()
) -> list[Wait]:
    """The waits of a crawl that rests if it went on at `now` (seconds since the epoch)."""
    return [*retry_waits(owed), *gathered(held_at_rest(hosts, now), now), *set_aside_waits(set_aside, families)]


def retry_waits(owed: Owed) -> Iterator[Wait]:
    if owed.urls:
        is_more = owed.urls >= MOST_COUNTED
        yield Wait("retries", owed.urls, owed.hosts, owed.until, list(owed.names), is_more=is_more)


def gathered(held: Iterable[Held], now: float, queued: int = 0) -> list[Wait]:
    """Hosts by reason, the reasons that people should know of first; `queued` URLs wait for usual delays, if any do."""
    sums: dict[str, list[Held]] = {}
    counts: dict[str, int] = {}
    for one in held:
        counts[one.why] = counts.get(one.why, 0) + 1
        few = sums.setdefault(one.why, [])
        few.append(one)
        if len(few) > 8 * NAMED:
            few[:] = _first(few)
    found = []
    for why in HeldBy:
        if why in sums:
            first = _first(sums.pop(why))
            found.append(
                Wait(str(why), hosts=counts[why], until=now + first[0].seconds, names=[one.host for one in first])
            )
    usual = _first(one for few in sums.values() for one in few)
    if queued and usual:
        hosts, until = sum(counts[why] for why in sums), now + usual[0].seconds
        names = [one.host for one in usual]
        found.append(Wait("delay", queued, hosts, until, names, reason=str(usual[0].why)))
    return found


def _first(held: Iterable[Held]) -> list[Held]:
    return heapq.nsmallest(NAMED, held, key=lambda one: one.seconds)


def lent_waits(counters: Mapping[str, int]) -> Iterator[Wait]:
    """URLs of lent hosts, with the number of mobile crawlers that are away."""
    urls, crawlers = counters.get("lent", 0), counters.get("crawlers_away", 0)
    if urls or crawlers:
        yield Wait("crawlers", urls=urls, hosts=crawlers)


def set_aside_waits(number: int, families: Iterable[SetAside]) -> Iterator[Wait]:
    """Families that wait behind everything else; of the first families those are named that have most."""
    if number:
        counts = Counter[str]()
        for row in islice(families, MOST_FAMILIES):
            counts[row.family.owner] += row.count
        yield Wait("set_aside", number, names=[owner for owner, _ in counts.most_common(NAMED)])


_notes = msgspec.msgpack.Decoder(HostNote)


def held_at_rest(hosts: Iterable[HostState], now: float) -> Iterator[Held]:
    """Hosts that wait for longer than their usual delay at `now` (seconds since the epoch), by the notes that the ledger keeps.

    A note that cannot be read says nothing.
    """
    for state in hosts:
        if not state.note:
            continue
        try:
            note = _notes.decode(state.note)
        except ValueError:
            continue
        passed = now - note.written
        why, until = why_held(note.pace, note.circuit, note.circuits, passed)
        if why is not None:
            yield Held(state.host, until - passed, why)
