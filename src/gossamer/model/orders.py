"""Orders of a processor to the crawl, beside links and items: to block a host or to slow down its requests (row M4).

Place in the flow: a processor yields it, the visit carries it, and it takes effect with the commit of the visit, if the
wiring has a keeper that accepts orders (:mod:`gossamer.services.orders`).
"""

import msgspec


class Block(msgspec.Struct, frozen=True, tag="block"):
    """Send no more requests to this host and to hosts below it."""

    host: str
    """A host or domain, such as `example.org`."""


class Delay(msgspec.Struct, frozen=True, tag="delay"):
    """Leave at least this time between two requests to a host. The longest requested delay applies, a day at most."""

    host: str
    seconds: float


Order = Block | Delay

#: How a task was found that carries an order to another agent (:attr:`gossamer.model.task.Task.relation`): no link is of this kind.
ORDER = "order"
