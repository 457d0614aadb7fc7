"""The marshaler of a master: it says which agent each URL goes to (Hunyadi 2007, section 5.3.1, decision 68).

Place in the flow: in a master, between the end that receives from all agents and those that send to them. It takes six steps for a
batch of URLs at once: fetch and validate, recently seen, canonical host, domain constraints, assignable domain, designate.
"""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import compress
from operator import not_
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from gossamer.agents.contract import DesignationTable
from gossamer.agents.ring import DivisionSheet
from gossamer.engine.component import Filter
from gossamer.engine.ends import In, Out, Uses
from gossamer.engine.errors import SettingError
from gossamer.engine.gate import Receipt, current
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.expressions.contract import TaskFilter
from gossamer.fetcher.cares import check_servers
from gossamer.storage.seen.memory import SaturatingTable, SecondChance
from gossamer.values.agents import CLAIM, Designated, fault_beside_url
from gossamer.values.errors import DiskFull, UnreadableUrl, UrlTooLong, UsageError
from gossamer.values.hosts import DomainRule, domain_rule
from gossamer.values.task import Task
from gossamer.values.url import canonical, host_of, is_machine, plain_host, scheme_of, scheme_rule, with_host
from gossamer.values.url_normalization import aliases_of
from gossamer.values.visit import ORDER

if TYPE_CHECKING:
    import aiodns

#: Addresses that are remembered; the oldest goes.
REMEMBERED = 65_536

#: Seconds for which a name, or that there is none, is remembered; and that no server answered.
KEPT, KEPT_FAILURE = 3_600.0, 60.0

#: Look-ups at once: a batch of the marshaler may hold some hundred addresses.
_AT_ONCE = 64

#: Names of one address that are tried: a server of many sites may have hundreds.
_TRIED = 8

#: Seconds that a name server has for its first answer, and how often it is asked.
_TIMEOUT, _TRIES = 1.5, 2


class ReverseNames:
    """Looks names of addresses up, and remembers them."""

    def __init__(self, servers: Sequence[str], now: Callable[[], float]) -> None:
        """`servers` are name servers as ADDRESS[:PORT], none for those of the system; `now` is a monotonic clock."""
        self._servers = list(servers)
        self._now = now
        self._known: dict[str, tuple[str, float]] = {}
        self._resolver: aiodns.DNSResolver | None = None
        self._room = asyncio.Semaphore(_AT_ONCE)

    def name_of(self, host: str) -> str:
        return self._known[host][0] if host in self._known else ""

    async def look_up(self, hosts: Iterable[str]) -> int:
        """Find the names of those hosts that are addresses and not known; how many were looked up."""
        now = self._now()
        asked = {host for host in hosts if _address(host) and self._known.get(host, ("", 0.0))[1] <= now}
        await asyncio.gather(*map(self._find, asked))
        return len(asked)

    async def close(self) -> None:
        if self._resolver is not None:
            await self._resolver.close()
            self._resolver = None

    async def _find(self, host: str) -> None:
        import aiodns  # it takes 80 ms, and few crawls need it here

        try:
            async with self._room:
                name, kept = await self._confirmed(_address(host)), KEPT
        except aiodns.error.DNSError as error:
            name, kept = (
                "",
                KEPT if error.args[0] in (aiodns.error.ARES_ENOTFOUND, aiodns.error.ARES_ENODATA) else KEPT_FAILURE,
            )
        self._known.pop(host, None)
        self._known[host] = name, self._now() + kept
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]

    async def _confirmed(self, address: str) -> str:
        """The first name in the order of the alphabet that leads back to its address; empty where none does."""
        import aiodns

        if self._resolver is None:
            self._resolver = aiodns.DNSResolver(timeout=_TIMEOUT, tries=_TRIES)
            if self._servers:
                self._resolver.nameservers = self._servers
        found = await self._resolver.query_dns(ipaddress.ip_address(address).reverse_pointer, "PTR")
        names = {_host(str(getattr(record.data, "dname", ""))) for record in found.answer} - {""}
        for name in sorted(names)[:_TRIED]:
            try:
                answer = await self._resolver.getaddrinfo(name)
            except aiodns.error.DNSError:
                continue
            found_at = (node.addr[0] for node in answer.nodes)
            if address in {text.decode("ascii") if isinstance(text, bytes) else text for text in found_at}:
                return name
        return ""


def _address(host: str) -> str:
    """The address that a host of a URL is; empty for a name."""
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return ""


def _host(name: str) -> str:
    """A name as hosts of URLs are written; empty for what cannot be one."""
    try:
        host = host_of(canonical(f"http://{name.rstrip('.')}/"))
    except UnreadableUrl:
        return ""
    return host if is_machine(host) and not _address(host) else ""


# The second step: a table of URLs that were just sent spares agents these. It lies in memory, since an agent that is sent a URL
# twice knows it already.

#: How a full table makes room.
RecentRule = Literal["second-chance", "saturation"]

_TABLES: dict[RecentRule, type[SecondChance | SaturatingTable]] = {
    "second-chance": SecondChance,
    "saturation": SaturatingTable,
}


class RecentUrlsSheet(Sheet, frozen=True):
    capacity: Annotated[
        int,
        setting(
            "Remember at most this many URLs; a URL of 55 characters takes 171 bytes.",
            unit="URLs",
            restart="the table has a fixed size",
            ge=1,
        ),
    ] = 100_000
    rule: Annotated[
        RecentRule,
        setting(
            "When the table is full, erase one URL at a time (`second-chance`), or all URLs at once that were not "
            "met again (`saturation`).",
            restart="the table is made by one rule",
        ),
    ] = "second-chance"


class RecentUrlTable(Provider[RecentUrlsSheet]):
    """Remembers URLs that were passed on a short time ago, with the depth at which they were found.

    It holds back a URL only if it was inserted at this depth or a lesser one. It never holds more URLs than its capacity, and may
    forget any of them.
    """

    def __init__(self, sheet: RecentUrlsSheet | None = None) -> None:
        super().__init__(sheet)
        self._table = _TABLES[self.sheet.rule](self.sheet.capacity)
        self.metrics.gauge("urls", lambda: len(self._table))

    def misses(self, urls: Sequence[str], depth: int = 0) -> list[str]:
        rest = self._table.misses(urls, depth)
        self.metrics.count("asked", len(urls))
        self.metrics.count("hits", len(urls) - len(rest))
        return rest

    def insert(self, url: str, depth: int = 0) -> None:
        self._table.insert(url, depth)


# Steps as plain code: which URLs can be fetched, which ones come twice, and the identity of a task.


def names_page(task: Task) -> bool:
    """Whether a task has the URL of a page: orders of processors and claims of documents travel as tasks, and pass as they are."""
    return task.relation not in (ORDER, CLAIM)


def validated(task: Task, schemes: Collection[str]) -> Task | str:
    """Step 1: the task in its canonical form, or the rule by which it is refused.

    What names no page passes as it is.
    """
    if fault_beside_url(task):
        return "unfit"
    if not names_page(task):
        return task
    url = task.url
    host = plain_host(url)
    if not host:
        try:
            url = canonical(url)
        except UrlTooLong:
            return "too_long"
        except UnreadableUrl:
            return "not_a_url"
        host = host_of(url)
    if scheme_of(url) not in schemes:
        return scheme_rule(url)
    if not is_machine(host):
        return "no_host"
    if url == task.url and host == task.host:
        return task
    return msgspec.structs.replace(task, url=url, host=host)


def not_recent(tasks: Iterable[Task], recent: RecentUrlTable) -> list[Task]:
    """Step 2: the tasks that were not passed on a short time ago, each once, those of one depth together.

    What names no page is never held back.
    """
    by_depth: dict[int, dict[str, Task]] = {}
    rest: list[Task] = []
    for task in tasks:
        if not names_page(task):
            rest.append(task)
        else:
            by_depth.setdefault(task.depth, {}).setdefault(task.identity, task)
    nearer: set[str] = set()
    for depth in sorted(by_depth):
        those = by_depth[depth]
        asked = [identity for identity in those if identity not in nearer] if nearer else list(those)
        missed = recent.misses(asked, depth)
        rest += [those[identity] for identity in missed]
        if len(by_depth) > 1:
            nearer.update(missed)
    return rest


def named(task: Task, name_of: Callable[[str], str]) -> Task:
    """Step 3: the task under the canonical name of its host."""
    name = name_of(task.host)
    if name == task.host or not names_page(task):
        return task
    return msgspec.structs.replace(task, url=with_host(task.url, name), host=name)


def refused(tasks: Iterable[Task], verdicts: Iterable[str]) -> list[str]:
    """Step 4: for each task the rule of the domain constraints that refuses it, or nothing. They speak of pages alone."""
    return [verdict if names_page(task) else "" for task, verdict in zip(tasks, verdicts, strict=True)]


# The third step: the one name of a host that has several. A person's table is a setting, so that it lies with the crawl. Names of
# addresses are looked up only if a person wants it, since they may change. `gossamer why` tells of aliases that pages have proved.


class HostNamesSheet(Sheet, frozen=True):
    aliases: Annotated[
        tuple[str, ...],
        setting(
            "Use the second name of hosts that have two, as `www.example.org=example.org`; the first may be an address, as "
            "`192.0.2.7=example.org`."
        ),
    ] = ()
    reverse: Annotated[
        bool,
        setting(
            "Look up the names of hosts that are addresses (PTR), and use a name that leads back to its address. Answers are "
            "remembered for an hour."
        ),
    ] = False
    servers: Annotated[
        tuple[str, ...], setting("Ask these name servers, as ADDRESS[:PORT]; empty: those of the system.")
    ] = ()


class GivenHostNames(Provider[HostNamesSheet]):
    """Replaces names of hosts by those in its table of aliases. A name that it returns is its own canonical name, and equal tables
    give equal names in every process.

    Raises:
        SettingError: an alias cannot be read, or leads to another one; or a name server is none.
    """

    def __init__(self, sheet: HostNamesSheet | None = None) -> None:
        super().__init__(sheet)
        self._names: dict[str, str] = {}
        self._reverse: ReverseNames | None = None
        self._read()

    async def stop(self) -> None:
        if self._reverse is not None:
            await self._reverse.close()

    def changed(self, before: HostNamesSheet) -> None:
        self._read()

    def _read(self) -> None:
        check_servers(self.sheet.servers)
        try:
            self._names = aliases_of(self.sheet.aliases)
        except UsageError as error:
            raise SettingError(str(error)) from None

    def name_of(self, host: str) -> str:
        if host not in self._names and self._reverse is not None and self.sheet.reverse:
            host = self._reverse.name_of(host) or host
        return self._names.get(host, host)

    async def learn(self, hosts: Iterable[str]) -> None:
        """Look up the names of hosts that are addresses, if that is wanted."""
        if self.sheet.reverse:
            if self._reverse is None:
                self._reverse = ReverseNames(self.sheet.servers, self.clock.monotonic)
            asked = await self._reverse.look_up(host for host in hosts if host not in self._names)
            self.metrics.count("looked_up", asked)


# The filter that takes all steps.


class MarshalSheet(DivisionSheet, frozen=True):
    schemes: Annotated[tuple[str, ...], setting("Pass on URLs of these schemes, and refuse all others.")] = (
        *("http", "https", "ftp", "gopher"),
    )
    seeds_as_links: Annotated[
        bool,
        setting(
            "Treat seeds like links: use the canonical names of their hosts, and refuse them by domain constraints. If off, "
            "seeds go unchanged to an agent, as with the ring; the agent refuses them by the same rules, and reports it."
        ),
    ] = True
    disk_wait: Annotated[float, setting("Wait this long before trying a full disk again.", unit="s", gt=0)] = (
        1.0  # soon enough for a person who makes room, and far from busy waiting
    )


class Marshal(Filter[MarshalSheet]):
    """Tags each URL with its agent. It counts refused URLs by rule as `refused:RULE`, and repeated ones as `recent`.

    Raises:
        UsageError: `together` names no registered domains.
    """

    inbox: In[Task]
    outbox: Out[Designated]
    recent: Uses[RecentUrlTable]
    hosts: Uses[GivenHostNames]
    constraints: Uses[TaskFilter]
    designations: Uses[DesignationTable]

    #: One group of the ledger takes the new domains of so many URLs; it is some milliseconds of the event loop.
    batch = 512

    def __init__(self, sheet: MarshalSheet | None = None) -> None:
        super().__init__(sheet)
        self._rule: DomainRule = domain_rule(self.sheet.division, self.sheet.together)

    async def filter_many(self, tasks: list[Task]) -> None:
        """Take the six steps. A URL enters the recently-seen table when it is safe, so that no other copy is held back in vain."""
        self.metrics.count("marshaled", len(tasks))
        judged = [validated(task, self.sheet.schemes) for task in tasks]
        self._refuse(rule for rule in judged if isinstance(rule, str))
        valid = [task for task in judged if not isinstance(task, str)]
        fresh = not_recent(valid, self.recent)
        self.metrics.count("recent", len(valid) - len(fresh))
        as_links = self.sheet.seeds_as_links
        await self.hosts.learn(task.host for task in fresh)
        called = [named(task, self.hosts.name_of) if as_links or task.source else task for task in fresh]
        refusals = refused(called, self.constraints.judge_tasks("schedule", called))
        if not as_links:
            refusals = [refusal if task.source else "" for task, refusal in zip(called, refusals, strict=True)]
        self._refuse(filter(None, refusals))
        passing = list(compress(called, map(not_, refusals)))
        domains = [self._rule.assignable(task.host) for task in passing]
        while True:  # while the disk is full this waits, and so do the agents that have sent their URLs
            try:
                agents = await self.designations.designate(domains)
                break
            except DiskFull:
                self.metrics.count("disk_full")
                await self.clock.sleep(self.sheet.disk_wait)
        await self._pass_on(map(Designated, agents, passing), list(compress(fresh, map(not_, refusals))))

    def _refuse(self, rules: Iterable[str]) -> None:
        for rule, number in Counter(rules).items():
            self.metrics.count(f"refused:{rule}", number)

    async def _pass_on(self, designated: Iterable[Designated], known_as: Sequence[Task]) -> None:
        """Send them. A URL that is held back is acknowledged at once; so its first copy must be safe with its agent by then."""
        whole = current.get()
        if whole is not None:
            whole.hold()

        def safe() -> None:
            for task in known_as:
                if names_page(task):
                    self.recent.insert(task.identity, task.depth)
            if whole is not None:
                whole.release()

        receipt = Receipt(safe)
        token = current.set(receipt if whole is not None else None)
        try:
            await self.outbox.send_many(list(designated))
        finally:
            current.reset(token)
        receipt.release()
