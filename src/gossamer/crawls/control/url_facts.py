"""What a ledger knows of one URL: the part of its story that only the crawl's own process can tell while it runs."""

from typing import TYPE_CHECKING

import msgspec

from gossamer.frontier.contract import CRAWLERS, LAST_CRAWLER, LENT, LastCrawler, LentTask
from gossamer.frontier.politeness.rules import Blocklist, blocked_by_orders
from gossamer.frontier.traps.judging import evidence_of
from gossamer.frontier.traps.likeness import ALIASES
from gossamer.frontier.traps.memory import WHAT as TRAPS
from gossamer.mobile.manager.lent import lent_of
from gossamer.storage.contract import MAIL, OWED
from gossamer.storage.mailbox.exchange_files import FILES, WRITTEN, parted, written_files
from gossamer.storage.mailbox.staging import mailed, owed_key, owed_task
from gossamer.values.ledger_rows import DocumentRow, HostState
from gossamer.values.task import Family, Task
from gossamer.values.url import host_of, site_of

if TYPE_CHECKING:
    from gossamer.storage.ledger.ledger import RocksLedger

#: Names under which watchers keep what they have learnt of a host and its story tells.
TOLD = (TRAPS, ALIASES)

#: Chunks of a host's queue that are looked at for a URL, 128 tasks each: some 20 ms, which a crawl can spare.
LOOKED_AT = 1_000


class Known(msgspec.Struct, frozen=True):
    """Facts about a canonical URL."""

    url: str
    is_seen: bool
    """It was queued at some time."""
    flights: int = 0
    """Requests for it that are under way."""
    task: Task | None = None
    """As it waits or is in flight; None where it is done, unknown, or too far back in its host's queue."""
    due: float = 0.0
    """Seconds since the epoch before which a task for later is not queued; 0 where it is."""
    depth: int | None = None
    """The lowest depth that it was met at, where the crawl keeps depths."""
    row: DocumentRow | None = None
    """Its last visit."""
    host: HostState | None = None
    robots: bytes = b""
    """What the robots part keeps of its site."""
    aside: Family | None = None
    """The family under which it is set aside."""
    evidence: str = ""
    """Why that looks like a trap."""
    blocked_by: str = ""
    """The host or domain above it that an order of a processor blocks; empty where none does."""
    is_cut: bool = False
    """It was met, and is neither visited nor waiting: a budget or a limit of depth cut it."""
    is_owed: bool = False
    """It is another agent's, and that agent has not said that it has it."""
    file: str = ""
    """The exchange file that it was written into; empty where it waits for the next one."""
    lent: LentTask | None = None
    """As it is lent to a mobile crawler, or waits for one."""
    crawled_by: LastCrawler | None = None
    """The mobile crawler that came home from its host last."""
    learnt: dict[str, bytes] = {}
    """What watchers have learnt of its host, by their names for it."""


def known_of(ledger: "RocksLedger", url: str) -> Known:
    """What this ledger knows of a canonical URL."""
    host = host_of(url)
    waiting = ledger.waiting(url, LOOKED_AT)
    aside = ledger.aside_of(url, LOOKED_AT) if waiting is None and host else None
    family = aside[0] if aside else None
    lent, crawled_by = _of_crawlers(ledger, url, host)
    is_seen, row, flights = ledger.is_seen(url), ledger.document(url), ledger.queues.flights(url)
    owed, file = _owed(ledger, url, host)
    is_anywhere = not is_seen or row is not None or flights > 0 or waiting is not None or aside is not None
    return Known(
        url=url,
        is_seen=is_seen,
        flights=flights,
        task=waiting.task if waiting else aside[1] if aside else owed,
        due=waiting.due if waiting else 0.0,
        depth=ledger.depth_of([url])[0],
        row=row,
        host=ledger.host_states([host])[0] if host else None,
        robots=ledger.robots(site_of(url), host) or b"" if host else b"",
        aside=family,
        evidence=evidence_of(ledger.learnt((family.owner,), TRAPS)[0], family) if family else "",
        blocked_by=Blocklist(blocked_by_orders(ledger)).rule(host) if host else "",
        is_owed=owed is not None,
        file=file,
        lent=lent,
        crawled_by=crawled_by,
        is_cut=not is_anywhere and owed is None and ledger.is_looked_at_whole(url, LOOKED_AT),
        learnt={what: data for what in TOLD if (data := ledger.learnt((host,), what)[0])} if host else {},
    )


def _owed(ledger: "RocksLedger", url: str, host: str) -> tuple[Task | None, str]:
    """The task as it is owed to another agent, and the name of the exchange file that it was written into."""
    counters, key = ledger.counters(), owed_key(Task(url, host))
    if not (counters.get("owed") or counters.get("written")):
        return None, ""
    for space in (OWED, MAIL, WRITTEN, FILES):
        ledger.spaces.open(space)
    if (value := ledger.spaces.get(OWED, host, key)) is not None:
        return owed_task(value), ""
    if (value := ledger.spaces.get(MAIL, host, key)) is not None:
        return mailed(value)[1], ""
    if (value := ledger.spaces.get(WRITTEN, host, key)) is None:
        return None, ""
    file, task = parted(value)
    return task, next((one.name for one in written_files(ledger.spaces) if one.id == file), file)


def _of_crawlers(ledger: "RocksLedger", url: str, host: str) -> tuple[LentTask | None, LastCrawler | None]:
    """How a URL is lent, and which crawler came home from its host last."""
    counters = ledger.counters()
    if not host or not (counters.get("crawlers_sent") or counters.get("lent")):
        return None, None  # without a look at spaces that this crawl may not have
    for space in (LENT, CRAWLERS):
        ledger.spaces.open(space)
    last = ledger.spaces.get(CRAWLERS, host, LAST_CRAWLER)
    return lent_of(ledger.spaces, url, host), msgspec.msgpack.decode(last, type=LastCrawler) if last else None
