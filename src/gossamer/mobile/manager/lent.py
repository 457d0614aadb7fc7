"""URLs that are lent: those that wait for a mobile crawler, and those that a crawler has with it. A space of the ledger.

Place in the flow: :class:`LendingLedger` stands between the stages and the ledger, and no stage knows of it. It gives URLs of
lent hosts to crawlers and queues all others as ever. Among several agents it stands behind the divided ledger, since all that is
lent is ours. ::

    commit, frontier ── push ──► `lending-ledger` ──► the ledger's queues, where we fetch
                                        └───────────► lent URLs, where a crawler does

The key of an entry is the URL's and the crawler's, so two look-ups find a URL that came home. The counter `lent` says how many
there are: the crawl goes on while there are any.

:class:`CrawlerBook` is outbox and inbox of the manager: it has every crawler that is on its way, with the batch that is next. The
manager puts a crawler there before it is sent, and moves its next sequence on in the group that has the last of a batch. So a batch
is committed once, whatever is killed, and a later process goes on with the crawlers that are away.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, cast

import msgspec

from gossamer.engine.ends import Uses
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.contract import CRAWLERS, LAST_CRAWLER, LENT, LastCrawler, Lender, LentTask
from gossamer.storage.contract import Spaces
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.ledger.moving import parts
from gossamer.storage.ledger.providers import LedgerFront
from gossamer.storage.mailbox.staging import DivertingGroup
from gossamer.values.hosts import DeletionTarget, HostTable
from gossamer.values.task import ROBOTS, Task
from gossamer.values.url import host_of
from gossamer.values.visit import Location, Visit

#: Bytes of the two parts of a key. The first is no secret's hash: so long that an attacker cannot find two URLs with the same one.
_URL_BYTES, _CRAWLER_BYTES = 16, 8

_encode = msgspec.msgpack.Encoder().encode
_lent_task = msgspec.msgpack.Decoder(LentTask).decode


class LentSheet(Sheet, frozen=True):
    runtimes: Annotated[
        dict[str, str],
        setting(
            "Send crawlers for these hosts (keys: a host, or `*.` and a host) to the runtimes at these addresses (values).",
            restart="crawlers are on their way",
            names="a folder",
        ),
    ] = msgspec.field(default_factory=dict)


class LentUrls(Provider[LentSheet]):
    """Keeps the URLs that mobile crawlers have, and those that wait for a crawler. Contract: `Lender`."""

    ledger: Uses[Ledger]
    keeps_state = True

    def __init__(self, sheet: LentSheet | None = None) -> None:
        super().__init__(sheet)
        self._runtimes: HostTable[str] = HostTable(self.sheet.runtimes)
        self._recalled: set[str] = set()
        self.knower: Callable[[Task], str] = lambda task: ""
        """The crawler that knows a task already, since it was found on a page of its own; the manager says it."""
        self._watchers: list[Callable[[], None]] = []
        self.waiting: set[str] = set()
        """Hosts of which URLs may wait for a crawler: the manager looks, and takes them out."""
        self.pages = 0
        """Pages of a limited crawl that crawlers on their way may bring."""
        self.room: Callable[[], int | None] = lambda: None
        """How many pages the crawl may still have beside these; None where it has no limit. The frontier says it."""
        self.ended = asyncio.Event()
        """Set when the crawl hands out nothing more."""

    async def start(self) -> None:
        self.ledger.spaces.open(LENT)
        self.ledger.spaces.open(CRAWLERS)
        self.ended = asyncio.Event()
        self.waiting = {one.task.host for one in all_lent(self.ledger.spaces)}
        self.metrics.gauge("lent", lambda: self.ledger.counters().get("lent", 0))
        self.metrics.gauge("recalled", lambda: len(self._recalled))

    # -- the frontier

    @property
    def is_out(self) -> bool:
        """Whether anything is lent, or a crawler is away whose URLs are all home already."""
        counters = self.ledger.counters()
        return counters.get("lent", 0) > 0 or counters.get("crawlers_away", 0) > 0

    def watch(self, told: Callable[[], None], room: Callable[[], int | None]) -> None:
        """Call `told` when there is news; ask `room` how many pages may be lent."""
        self._watchers.append(told)
        self.room = room

    def tell(self) -> None:
        """There is news: tasks are in the queues, or nothing is lent any more, or pages are free."""
        for told in self._watchers:
            told()

    def end(self) -> None:
        """The crawl ends; lent tasks stay so for the next run."""
        self.ended.set()

    # -- the ledger in front, and the manager

    def runtime_of(self, host: str) -> str:
        return "" if host in self._recalled else self._runtimes.get(host) or ""

    def lends(self, host: str) -> bool:
        return bool(self.runtime_of(host))

    def lend(self, tasks: Sequence[Task], group: Group) -> None:
        """Stage tasks of lent hosts. One that was found on a page that a crawler brings, and is of its hosts, is that crawler's."""
        for task in tasks:
            crawler = self.knower(task)
            put_lent(LentTask(task, crawler), group)
            if not crawler:
                self.waiting.add(task.host)

    def brought(self, task: Task, crawler: str, group: Group, *, knows_links: bool) -> None:
        """Stage the end of a task that came home; without its links it is kept until the crawler has ended."""
        drop_lent(LentTask(task), group)
        if knows_links:
            drop_lent(LentTask(task, crawler), group)
        else:
            put_lent(LentTask(task, crawler, is_done=True), group)

    def of_host(self, host: str) -> Iterator[LentTask]:
        for _, value in self.ledger.spaces.scan(LENT, host):
            yield _lent_task(value)

    def task_of(self, url: str, host: str, crawler: str) -> Task | None:
        """The task of a URL that this crawler has with it, or that waits for one; None where it is not lent."""
        for whose in (crawler, ""):
            value = self.ledger.spaces.get(LENT, host, _key(url, whose))
            if value is not None:
                return _lent_task(value).task
        return None

    def assign(self, tasks: Sequence[LentTask], crawler: str, group: Group) -> None:
        """Stage that a crawler has these from now on; an empty name: they wait for one."""
        for one in tasks:
            drop_lent(one, group)
            put_lent(msgspec.structs.replace(one, crawler=crawler), group)
            if not crawler:
                self.waiting.add(one.task.host)

    def settle(self, tasks: Sequence[LentTask], group: Group) -> None:
        """Stage that the crawler has seen to these: they are done, wherever their documents are."""
        for one in tasks:
            drop_lent(one, group)

    def recall(self, host: str, tasks: Sequence[LentTask], group: Group) -> None:
        """Stage that a host is fetched from here, for the rest of this run; `group` is the ledger's own or the one in front of
        it. Documents of which parts came without their links are fetched again, since no other page may lead to the URLs behind
        them."""
        self._recalled.add(host)
        self.waiting.discard(host)
        queued: dict[str, Task] = {}
        for one in tasks:
            drop_lent(one, group)
            if one.is_done:
                row = self.ledger.document(one.task.url)
                if row is not None:
                    group.undo(row)
            else:
                queued.setdefault(one.task.identity, one.task)
        group.count("discovered", -len(queued))  # they were counted when they were lent
        group.push(list(queued.values()))


def put_lent(one: LentTask, group: Group) -> None:
    """Stage that a URL is lent; where there is no room, it is counted as cut."""
    host, key = one.task.host, _key(one.task.identity, one.crawler)
    is_new = group.get(LENT, host, key) is None
    if group.put(LENT, host, key, _encode(one)):
        group.count("lent", is_new)
    else:
        group.count("cut:lent")


def drop_lent(one: LentTask, group: Group) -> None:
    host, key = one.task.host, _key(one.task.identity, one.crawler)
    if group.get(LENT, host, key) is not None:
        group.delete(LENT, host, key)
        group.count("lent", -1)


def all_lent(spaces: Spaces) -> Iterator[LentTask]:
    """Everything that is lent, in the order of domains."""
    for _, value in spaces.walk(LENT):
        yield _lent_task(value)


def lent_of(spaces: Spaces, url: str, host: str) -> LentTask | None:
    """A URL as it is lent, of whichever ledger; None where it is not. One that a crawler has is told before one that waits."""
    found = [_lent_task(value) for _, value in spaces.scan(LENT, host, _key(url, "")[:_URL_BYTES])]
    return max(found, key=lambda one: one.crawler, default=None)


def _key(identity: str, crawler: str) -> bytes:
    url = blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=_URL_BYTES).digest()
    return url + (blake2b(crawler.encode(), digest_size=_CRAWLER_BYTES).digest() if crawler else bytes(_CRAWLER_BYTES))


# The ledger in front of the ledger.


class _Lending(DivertingGroup):
    """A group that lends what is not fetched from here."""

    def __init__(self, group: Group, lent: Lender) -> None:
        super().__init__(group)
        self._lent = lent

    def leaves(self, task: Task) -> bool:
        """Whether it is for a crawler."""
        return task.request is None and task.relation != ROBOTS and self._lent.lends(task.host)

    def divert(self, tasks: Sequence[Task], *, is_new: bool) -> None:
        """Lend them; a URL is discovered where it is lent, too. A nearer way to one is a new errand for a crawler."""
        if is_new:
            self._group.count("discovered", len(tasks))
        self._lent.lend(tasks, self._group)

    def visited(self, visit: Visit, location: Location | None) -> bool:
        """Keep the row of a visit; one that a crawler brought was lent until now."""
        is_kept = self._group.visited(visit, location)
        if is_kept and (brought := visit.response.brought) is not None:
            knows_links = brought.form in ("whole", "row") or bool(visit.links or visit.refused)
            self._lent.brought(visit.task, brought.crawler, self._group, knows_links=knows_links)
        return is_kept


class LendingLedger(LedgerFront):
    lent: Uses[Lender]

    @contextmanager
    def group(self) -> Iterator[Group]:
        with self.behind.group() as group:
            yield cast(Group, _Lending(group, self.lent))


#: The beginnings of the keys of crawlers, and of facts that are remembered of hosts.
_CRAWLER, _WALKED = b"c", b"w"


class CrawlerRecord(msgspec.Struct, frozen=True):
    """A crawler that is on its way."""

    id: str
    runtime: str
    hosts: tuple[str, ...]
    """Home accepts URLs of these alone."""
    data: bytes
    """As it is sent."""
    made: float
    """Steady time at which it was made, in seconds; so are the next two."""
    until: float
    """The lease: if nothing was heard of the runtime by then, the crawler is lost."""
    ends: float
    """When its journey is over, whatever the runtime says."""
    next: int = 0
    """The sequence of the batch that is taken in next."""
    pages: int = 0
    """Pages that came home."""
    share: int = 0
    """Pages of a limited crawl that it may bring; 0 where there is no limit."""
    bytes: int = 0
    """Bytes of the batches that came home, unpacked."""
    external: int = 0
    """URLs out of its hosts that came home."""

    @property
    def is_heard(self) -> bool:
        return self.next > 0


_record = msgspec.msgpack.Decoder(CrawlerRecord).decode


class CrawlerBook:
    """The crawlers of one ledger. Its counter `crawlers_away` says how many are on their way."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def away(self) -> list[CrawlerRecord]:
        return [_record(value) for _, value in self._ledger.spaces.scan(CRAWLERS, None, _CRAWLER)]

    def put(self, record: CrawlerRecord, group: Group) -> bool:
        """Stage a crawler, new or moved on; False where there is no room for one more."""
        is_new = group.get(CRAWLERS, None, _CRAWLER + record.id.encode()) is None
        if not group.put(CRAWLERS, None, _CRAWLER + record.id.encode(), _encode(record)):
            return False
        group.count("crawlers_away", is_new)
        group.count("crawlers_sent", is_new)
        return True

    def end(self, record: CrawlerRecord, fate: str, group: Group) -> None:
        """Stage the end of a crawler's journey: `home`, `cut`, `lost` or `refused`."""
        group.delete(CRAWLERS, None, _CRAWLER + record.id.encode())
        group.count("crawlers_away", -1)
        if fate in ("home", "cut"):
            for host in record.hosts:
                group.put(CRAWLERS, host, LAST_CRAWLER, _encode(LastCrawler(record.id, record.runtime)))
        group.count(f"crawlers:{fate}")

    def walked(self, host: str) -> int:
        """Pages of a host that crawlers visited until the limit of the whole crawl ended them: the next one passes them again."""
        return int.from_bytes(self._ledger.spaces.get(CRAWLERS, None, _WALKED + host.encode()[:500]) or b"")

    def has_walked(self, host: str, pages: int, group: Group) -> None:
        group.put(CRAWLERS, None, _WALKED + host.encode()[:500], pages.to_bytes(8))


# Deletions, before the ledger forgets the hosts themselves. They can be killed at any point and called again. A crawler that
# was sent to a host of which something goes counts as lost, since it would bring that home; the rest of its URLs wait for
# another one.


def forget_lent(directory: Path, ledgers: Sequence[Ledger], target: DeletionTarget, hosts: Sequence[str]) -> int:
    """Take out everything of a target that is lent; see `forget` of :class:`~gossamer.engine.subjects.Subject`."""
    gone = 0
    for ledger in ledgers:
        counters = ledger.counters()
        if not (counters.get("lent") or counters.get("crawlers_sent")):
            continue
        ledger.spaces.open(LENT)
        ledger.spaces.open(CRAWLERS)
        book = CrawlerBook(ledger)
        of_url = "" if target.kind == "host" else host_of(target.name)
        for record in book.away():
            if any(target.has_host(host) or host == of_url for host in record.hosts):
                _lose(ledger, book, record)
        for part in parts(one for one in all_lent(ledger.spaces) if target.has(one.task.url)):
            with ledger.group() as group:
                for one in part:
                    drop_lent(one, group)
            gone += sum(not one.is_done for one in part)
        walked = ((key, key.removeprefix(_WALKED)) for key, _ in ledger.spaces.scan(CRAWLERS, None, _WALKED))
        for keys in parts(key for key, host in walked if target.has_host(host.decode("utf-8", "replace"))):
            with ledger.group() as group:
                for key in keys:
                    group.delete(CRAWLERS, None, key)
    return gone


def _lose(ledger: Ledger, book: CrawlerBook, record: CrawlerRecord) -> None:
    """End a journey, after what it had with it waits again."""
    for part in parts(one for one in all_lent(ledger.spaces) if one.crawler == record.id):
        with ledger.group() as group:
            for one in part:
                drop_lent(one, group)
                put_lent(msgspec.structs.replace(one, crawler=""), group)
    with ledger.group() as group:
        book.end(record, "lost", group)
