"""The settings of politeness, the rules for hosts, domains, addresses and the crawl that follow from them, the list of hosts and
domains that are not asked any more, and the orders of processors, which add to it.

Place in the flow: :mod:`provider` has the sheet and makes rules of it. :mod:`schedule` goes by them, and asks the
blocklist when a host's turn comes: an opt-out takes effect then. An entry closes the name itself and everything below it; an IP
address closes itself alone.

A keeper of the commit takes orders: it puts each into a space of the ledger with its visit's group, and gives it to politeness when
that group is kept; a crawl that goes on reads them all when it starts. In a wiring without this keeper the commit counts them as
`orders_refused`. Where several agents share a crawl, an order about another agent's host is owed to that agent in the same group
(:mod:`gossamer.storage.mailbox.mailbox`), as a task that names no page; the agent that receives it obeys it from then on
(:mod:`gossamer.agents.url_exchange`).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar

import msgspec

from gossamer.engine.ends import Uses, UsesMany
from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.contract import Politeness
from gossamer.frontier.politeness.pace import PaceRules
from gossamer.frontier.politeness.retries import STRIKES, WAITS
from gossamer.storage.archive.contract import GroupKeeper
from gossamer.storage.contract import Space
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.mailbox.contract import OwesUrls
from gossamer.values.addresses import is_address
from gossamer.values.errors import UsageError
from gossamer.values.hosts import HostTable, given_host
from gossamer.values.settings import AddressDelay, Bandwidth, DomainDelay, HostDelay, PageRate, PerHost
from gossamer.values.task import Task
from gossamer.values.visit import ORDER, Block, Delay, Order, Record

V = TypeVar("V")


class Share(msgspec.Struct, frozen=True):
    """The part that all hosts of one domain or address may take together."""

    live: float = 4
    """Requests; infinite is no cap."""
    gap: float = 0.25
    """Seconds between two starts."""


class LayerRules(msgspec.Struct, frozen=True):
    """All settings of the layers."""

    pace: PaceRules = PaceRules()
    per_host: int = 1
    domain: Share = Share()
    address: Share = Share()
    domain_on_loopback: Share = Share(gap=0.0)
    address_on_loopback: Share = Share(live=inf, gap=0.0)
    """This machine is ours, and all of a simulated web lives on one address."""
    pages_per_second: float | None = None
    bytes_per_second: float | None = None
    waits: tuple[float, ...] = WAITS
    """Seconds before the second and each further try, of a page or of a host; none is no retry."""
    delays: HostTable[float] = HostTable()
    """Hosts with a delay of their own, in seconds; below 0 it follows the latency."""
    lives: HostTable[int] = HostTable()
    """Hosts with a number of live requests of their own."""
    strikes: int = STRIKES
    """Failures in a row after which a host is only probed."""


def pace_of(host: str, rules: LayerRules) -> PaceRules:
    delay = rules.delays.get(host) if len(rules.delays) else None
    return rules.pace if delay is None else msgspec.structs.replace(rules.pace, delay=None if delay < 0 else delay)


def live_of(host: str, rules: LayerRules) -> int:
    return (rules.lives.get(host) if len(rules.lives) else None) or rules.per_host


class PolitenessSheet(Sheet, frozen=True):
    """Settings of :class:`~gossamer.frontier.politeness.provider.HostPoliteness`. All are live."""

    delay: HostDelay = "auto"
    factor: Annotated[float, setting("With `auto`, wait this multiple of the host's latency.", ge=0)] = 5.0
    floor: Annotated[float, setting("With `auto`, wait at least this long.", unit="s", ge=0)] = 1.0
    cap: Annotated[
        float, setting("With `auto`, wait at most this long while the host answers without errors.", unit="s", ge=0)
    ] = 30.0
    per_host: PerHost = 1
    delays: Annotated[
        dict[str, Annotated[float, msgspec.Meta(ge=0)] | Literal["auto"]],
        setting("Wait this many seconds between two requests to these hosts, as `*.example.org`, instead of `delay`."),
    ] = msgspec.field(default_factory=dict)
    lives: Annotated[
        dict[str, Annotated[int, msgspec.Meta(ge=1)]],
        setting("Have at most this many requests in flight to these hosts, as `*.example.org`, instead of `per_host`."),
    ] = msgspec.field(default_factory=dict)
    domain_delay: DomainDelay = None
    domain_live: Annotated[
        int, setting("Have at most this many requests in flight to one registered domain.", unit="requests", ge=1)
    ] = 4
    ip_delay: AddressDelay = None
    ip_live: Annotated[
        int, setting("Have at most this many requests in flight to one address, off loopback.", unit="requests", ge=1)
    ] = 4
    address_turns: Annotated[
        bool,
        setting(
            "Ask an address only when the supervisor grants a turn, because other agents of the crawl may have hosts "
            "at that address.",
            restart="it is so where several agents share a crawl",
        ),
    ] = False
    domain_turns: Annotated[
        bool,
        setting(
            "Ask a registered domain only when the supervisor grants a turn, because other agents of the crawl may have "
            "hosts of that domain.",
            restart="it is so where several agents share a crawl whose `division` is `host`, or whose `host_turns` are on",
        ),
    ] = False
    host_turns: Annotated[
        bool,
        setting(
            "Where several agents share the crawl, let each of them ask any host, one after the other: pages that a browser "
            "renders need files of other hosts.",
            restart="agents take turns from their start",
        ),
    ] = False
    rate: PageRate = None
    bandwidth: Bandwidth = None
    retries: Annotated[
        tuple[Annotated[float, msgspec.Meta(ge=0)], ...],
        setting("Wait this many seconds before the second and each further try of a page or of an endpoint."),
    ] = WAITS
    strikes: Annotated[
        int, setting("After this many failures in a row, only probe the host.", unit="failures", ge=1)
    ] = STRIKES
    blocked: Annotated[
        tuple[str, ...], setting("Send no more requests to these hosts and domains, as `example.org`.")
    ] = ()


def rules_of(sheet: PolitenessSheet) -> LayerRules:
    """The rules that these settings come to. Without a setting of the user's, domains and addresses on loopback have no gap."""
    usual = LayerRules()
    delay = None if sheet.delay == "auto" else sheet.delay
    domain = usual.domain.gap if sheet.domain_delay is None else sheet.domain_delay
    address = usual.address.gap if sheet.ip_delay is None else sheet.ip_delay
    return LayerRules(
        pace=PaceRules(delay=delay, factor=sheet.factor, floor=sheet.floor, cap=sheet.cap),
        per_host=sheet.per_host,
        domain=Share(sheet.domain_live, domain),
        address=Share(sheet.ip_live, address),
        domain_on_loopback=Share(sheet.domain_live, sheet.domain_delay or 0.0),
        address_on_loopback=Share(usual.address_on_loopback.live, sheet.ip_delay or 0.0),
        pages_per_second=sheet.rate,
        bytes_per_second=sheet.bandwidth,
        waits=sheet.retries,
        strikes=sheet.strikes,
        delays=_by_host("delays", {host: -1.0 if one == "auto" else one for host, one in sheet.delays.items()}),
        lives=_by_host("lives", sheet.lives),
    )


def _by_host(name: str, values: Mapping[str, V]) -> HostTable[V]:
    try:
        return HostTable(values)
    except UsageError as error:
        raise SettingError(f"setting {name!r}: {error}") from None


# -- the blocklist


class Blocklist:
    """Names that are closed. `rule(host)` costs one look-up for each label of the name."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        """A list with these entries. Raises UsageError: one of them is no host name."""
        self.entries: dict[str, None] = {}
        for entry in entries:
            self.block(entry)

    def __len__(self) -> int:
        return len(self.entries)

    def block(self, entry: str) -> str:
        """Close a host or domain; returns the name as it is compared: lower case, in its ASCII form. Raises UsageError: it is
        no host name."""
        name = given_host(entry.strip().removeprefix("*.").strip("."), entry)
        self.entries[name] = None
        return name

    def rule(self, host: str) -> str:
        """The entry that closes this host; empty where none does."""
        entries = self.entries
        if not entries:
            return ""
        name = host
        while name:
            if name in entries:
                return name
            if name is host and is_address(host):
                return ""
            name = name.partition(".")[2]
        return ""

    def lines(self) -> Iterator[str]:
        """The entries as lines, without their ends, in the order in which they came."""
        yield from self.entries


# -- orders of processors

#: Some 20,000 hosts: a processor that orders more has gone wrong, and each is held in memory.
ORDERS = Space("orders", value_bytes=512, common_bytes=1 << 20)


#: Before an order that travels as a task, in the place of the task's URL.
_SCHEME = "order:"


class ProcessorOrders(Provider[NoSettings], GroupKeeper):
    """Carries out orders of processors (such as blocking a host), and keeps them for later runs. Contract: `Keeper`."""

    ledger: Uses[Ledger]
    politeness: Uses[Politeness]
    outboxes: UsesMany[OwesUrls] = MappingProxyType({})

    #: The commit refuses orders where no keeper says this.
    takes_orders = True

    def __init__(self, sheet: NoSettings | None = None) -> None:
        super().__init__(sheet)
        self._staged: list[Order] = []

    async def start(self) -> None:
        self.ledger.spaces.open(ORDERS)
        kept = self.ledger.spaces.scan(ORDERS, None)
        self.obey([msgspec.msgpack.decode(value, type=Order) for _, value in kept])

    def stage(self, records: Sequence[Record], group: Group) -> None:
        """Keep the orders of these visits; one that cannot be carried out is counted as `orders_unusable`."""
        self._staged = []
        for record in records:
            for given in record.visit.orders:
                order = _usable(given)
                if order is None:
                    group.count("orders_unusable")
                    continue
                is_new = group.get(ORDERS, None, _key(order)) is None
                if self._put(order, group):
                    self._staged.append(order)
                    is_ours = all(outbox.is_ours(order.host) for outbox in self.outboxes.get("orders", ()))
                    if is_new and not is_ours:  # the agent that has the host has to know
                        url = f"{_SCHEME}{msgspec.json.encode(order).decode()}"
                        group.push([Task(url, order.host, relation=ORDER)])

    def _put(self, order: Order, group: Group) -> bool:
        is_kept = group.put(ORDERS, None, _key(order), msgspec.msgpack.encode(order))
        if is_kept:
            group.count(f"ordered:{'block' if isinstance(order, Block) else 'delay'}")
        return is_kept

    def committed(self, ends: Mapping[str, int]) -> None:
        self.obey(self._staged)
        self._staged = []

    def take_back(self) -> None:
        self._staged = []

    def received(self, tasks: Sequence[Task], group: Group) -> Sequence[Order]:
        """Keep orders that another agent's pages gave; returns those that are to be obeyed when the group is kept."""
        taken: list[Order] = []
        for task in tasks:
            order = _order_of(task)
            if order is None:
                group.count("orders_unusable")
            elif self._put(order, group):
                taken.append(order)
        return taken

    def obey(self, orders: Sequence[Order]) -> None:
        for order in orders:
            if isinstance(order, Block):
                self.politeness.block(order.host)
            else:
                self.politeness.slow(order.host, order.seconds)


def blocked_by_orders(ledger: Ledger) -> list[str]:
    """The hosts and domains that orders have blocked, by name: for views of a crawl."""
    if not ledger.counters().get("ordered:block"):
        return []  # without a look at a space that this crawl may not have
    ledger.spaces.open(ORDERS)
    return [key.decode().partition(" ")[2] for key, _ in ledger.spaces.scan(ORDERS, None, b"block ")]


def _usable(order: Order) -> Order | None:
    try:
        host = Blocklist().block(order.host)
    except UsageError:
        return None
    if isinstance(order, Block):
        return Block(host)
    return Delay(host, order.seconds) if math.isfinite(order.seconds) and order.seconds > 0 else None


def _order_of(task: Task) -> Order | None:
    """The order that a task carries; None where it carries none: another version's agent may have sent it."""
    try:
        return _usable(msgspec.json.decode(task.url.removeprefix(_SCHEME), type=Order))
    except (ValueError, RecursionError):
        return None


def _key(order: Order) -> bytes:
    """A host is blocked once; of its delays each is kept, since the longest holds."""
    if isinstance(order, Block):
        return f"block {order.host}".encode()
    return f"delay {order.host} {order.seconds:g}".encode()
