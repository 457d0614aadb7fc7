"""Handlers: a user's code that gets pages one by one, and says what of them is kept and followed.

Place in the flow: the process stage asks :class:`PageHandlers` for each visit, after content-seen; what a handler yields travels in
the visit, like what processors find. Suite: `gossamer.testing.check_page_handlers`.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from gossamer.model.orders import Order
from gossamer.model.visit import Found, Item, Raised, Visit
from gossamer.reading.document import Document


class Handled(msgspec.Struct, frozen=True):
    """What a handler made of one page."""

    found: tuple[Found, ...] = ()
    items: tuple[Item, ...] = ()
    orders: tuple[Order, ...] = ()
    errors: tuple[Raised, ...] = ()
    again: float | None = None
    """Seconds after which it wants the page once more; what it yielded before does not count then."""


class Elsewhere(msgspec.Struct, frozen=True):
    """A processor, as another process makes it, that runs a handler there."""

    who: str
    """The handler, as a person knows it."""
    place: str
    """File and line where it is defined."""
    module: str
    name: str
    sheet: Mapping[str, Any]


class PageHandlers(Protocol):
    """Finds the handler of a visit, and runs it.

    Promises:
        1. `wants` is quick and changes nothing. It is asked of a document when its media type is known.
        2. `handle` never raises for what a handler does, and ends within its deadline: an exception, a deadline that passed and a
           thing that cannot be kept are in `errors`, and cost what the handler would have yielded after that.
        3. A handler is given each page once, unless the process dies before the visit is committed.
    """

    def wants(self, visit: Visit) -> bool:
        """Whether there is a handler for this visit, or for the failure that it is, if it is final."""
        ...

    def elsewhere(self, visit: Visit) -> Elsewhere | None:
        """What runs its handler in a process of its own; None where `handle` runs it."""
        ...

    async def handle(self, document: Document) -> Handled:
        """What the handler of this visit yields."""
        ...
