"""Orders of processors: hosts that they block, and delays that they ask for, kept with the visits that they were found on.

Place in the flow: a keeper of the commit. An order is put into a space of the ledger with its visit's group, and given to
politeness when that group is kept; a crawl that goes on reads them all when it starts. A wiring that does not bind this keeper
does not take orders: the commit counts them as `orders_refused`.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec

from gossamer.contracts.ledger import Group, Ledger
from gossamer.contracts.politeness import Politeness
from gossamer.contracts.spaces import Space
from gossamer.flow.ports import Uses
from gossamer.flow.sheet import NoSettings
from gossamer.flow.unit import Provider
from gossamer.model.errors import UsageError
from gossamer.model.orders import Block, Delay, Order
from gossamer.model.visit import Record
from gossamer.services.politeness.blocklist import Blocklist

#: Some 20,000 hosts: a processor that orders more has gone wrong, and each is held in memory.
ORDERS = Space("orders", value_bytes=512, common_bytes=1 << 20)


class ProcessorOrders(Provider[NoSettings]):
    """Takes the orders of processors, and keeps them for later runs. Contract: `keeping.Keeper`."""

    ledger: Uses[Ledger]
    politeness: Uses[Politeness]

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
                elif group.put(ORDERS, None, _key(order), msgspec.msgpack.encode(order)):
                    self._staged.append(order)
                    group.count(f"ordered:{'block' if isinstance(order, Block) else 'delay'}")

    def committed(self, ends: Mapping[str, int]) -> None:
        """What was staged takes effect."""
        for order in self._staged:
            self._obey(order)
        self._staged = []

    def take_back(self) -> None:
        """What was staged has no effect."""
        self._staged = []

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
    """The hosts and domains that orders have blocked, by name: for those who look at a crawl."""
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


def _key(order: Order) -> bytes:
    """A host is blocked once; of its delays each is kept, since the longest holds."""
    if isinstance(order, Block):
        return f"block {order.host}".encode()
    return f"delay {order.host} {order.seconds:g}".encode()
