"""Orders of processors: hosts that they block, and delays that they ask for, kept with the visits that they were found on.

Place in the flow: a keeper of the commit. An order is put into a space of the ledger with its visit's group, and given to
politeness when that group is kept; a crawl that goes on reads them all when it starts. A wiring that does not bind this keeper
does not take orders: the commit counts them as `orders_refused`.

Where several agents share a crawl, an order about another agent's host is owed to that agent in the same group
(:mod:`gossamer.storage.mailbox.mailbox`), as a task that names no page; the agent that receives it obeys it from then on
(:mod:`gossamer.agents.url_exchange`).
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from gossamer.engine.ends import Uses, UsesMany
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.frontier.contract import Politeness
from gossamer.frontier.politeness.rules import Blocklist
from gossamer.storage.contract import Space
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.mailbox.contract import OwesUrls
from gossamer.values.errors import UsageError
from gossamer.values.task import Task
from gossamer.values.visit import ORDER, Block, Delay, Order, Record

#: Some 20,000 hosts: a processor that orders more has gone wrong, and each is held in memory.
ORDERS = Space("orders", value_bytes=512, common_bytes=1 << 20)


#: Before an order that travels as a task, in the place of the task's URL.
_SCHEME = "order:"


class ProcessorOrders(Provider[NoSettings]):
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
        """Take up what earlier runs were ordered."""
        self.ledger.spaces.open(ORDERS)
        for _, value in self.ledger.spaces.scan(ORDERS, None):
            self._obey(msgspec.msgpack.decode(value, type=Order))

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
                    if is_new:
                        self._owe(order, group)

    def _put(self, order: Order, group: Group) -> bool:
        is_kept = group.put(ORDERS, None, _key(order), msgspec.msgpack.encode(order))
        if is_kept:
            group.count(f"ordered:{'block' if isinstance(order, Block) else 'delay'}")
        return is_kept

    def _owe(self, order: Order, group: Group) -> None:
        """Let the agent know that has the host, where that is another one."""
        if any(not outbox.is_ours(order.host) for outbox in self.outboxes.get("orders", ())):
            group.push([_task(order)])

    def committed(self, ends: Mapping[str, int]) -> None:
        """Let the staged orders take effect."""
        self.obey(self._staged)
        self._staged = []

    def take_back(self) -> None:
        """Drop the staged orders."""
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
        """Let politeness know of orders that are kept."""
        for order in orders:
            self._obey(order)

    def ends(self) -> Mapping[str, int]:
        """It writes no files."""
        return {}

    def files(self) -> Sequence[str]:
        """It writes no files."""
        return ()

    def _obey(self, order: Order) -> None:
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
    """The order with its host as tasks name it; None where there is no such host or time."""
    try:
        host = Blocklist().block(order.host)
    except UsageError:
        return None
    if isinstance(order, Block):
        return Block(host)
    return Delay(host, order.seconds) if math.isfinite(order.seconds) and order.seconds > 0 else None


def _task(order: Order) -> Task:
    return Task(f"{_SCHEME}{msgspec.json.encode(order).decode()}", order.host, relation=ORDER)


def _order_of(task: Task) -> Order | None:
    """The order that a task carries; None where it carries none: another version's agent may have sent it."""
    try:
        return _usable(msgspec.json.decode(task.url.removeprefix(_SCHEME), type=Order))
    except (msgspec.DecodeError, RecursionError):
        return None


def _key(order: Order) -> bytes:
    """A host is blocked once; of its delays each is kept, since the longest holds."""
    if isinstance(order, Block):
        return f"block {order.host}".encode()
    return f"delay {order.host} {order.seconds:g}".encode()
