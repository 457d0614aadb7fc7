"""Sorting what a handler yields: requests, items, orders. Any other value is refused where it is yielded.

Place in the flow: :mod:`running` makes one :class:`Gathering` for each page, in whichever thread the handler runs.
"""

from collections.abc import Iterable
from types import GeneratorType

from gossamer.contracts.processing import MAX_FOUND, MAX_ITEMS, MAX_ORDERS
from gossamer.contracts.spiders import Handled
from gossamer.model.errors import UsageError
from gossamer.model.items import as_item
from gossamer.model.orders import Block, Delay, Order
from gossamer.model.request import NO_SESSIONS, Request
from gossamer.model.visit import Found, Item, Raised
from gossamer.reading.page import unknown_label

#: Lists inside lists that are looked into.
_DEEPEST = 8


class TooManyFinds(Exception):
    """A page has yielded as many requests or items as one page may."""


class Gathering:
    """Collects the results of one handler for one page."""

    def __init__(self, url: str, labels: frozenset[str], *, keeps_sessions: bool) -> None:
        """`keeps_sessions`: a request may name one."""
        self._url = url
        self._labels = labels
        self._keeps_sessions = keeps_sessions
        self._found: list[Found] = []
        self._items: list[Item] = []
        self._orders: list[Order] = []

    def __repr__(self) -> str:
        return f"<Gathering {len(self._found)} requests, {len(self._items)} items>"

    def add(self, thing: object, depth: int = 0) -> None:
        """Take a yielded value.

        Raises:
            TypeError: a handler may not yield such a value, or it is an item that cannot be written.
            UsageError: a request has a label without a handler, a password, or a session although the spider keeps none.
            TooManyFinds: the page has yielded too many requests or items.
        """
        if thing is None:
            return
        if isinstance(thing, Request):
            found = thing.kept()
            if (asked := found.request) is not None:
                if asked.label and asked.label not in self._labels:
                    raise UsageError(unknown_label(asked.label, self._labels))
                if asked.session and not self._keeps_sessions:
                    raise UsageError(NO_SESSIONS)
            self._found.append(found)
            if len(self._found) < MAX_FOUND:
                return
        elif isinstance(thing, Found):
            self._found.append(thing)
        elif isinstance(thing, list | tuple | GeneratorType):
            if depth > _DEEPEST:
                raise TypeError("a handler yields requests and items, and lists of them, not lists of lists of lists")
            self.add_all(thing, depth + 1)
        elif isinstance(thing, Block | Delay):
            self._orders.append(thing)
        else:
            self._items.append(as_item(thing, self._url))
        if len(self._found) >= MAX_FOUND or len(self._items) >= MAX_ITEMS or len(self._orders) >= MAX_ORDERS:
            raise TooManyFinds(f"a page may yield at most {MAX_FOUND:,} requests and {MAX_ITEMS:,} items")

    def add_all(self, things: Iterable[object], depth: int = 0) -> None:
        """Take each of these values. Raises the errors of :meth:`add` and those of the iterable."""
        for thing in things:
            self.add(thing, depth)

    def handled(self, *errors: Raised) -> Handled:
        """Return everything that was taken so far."""
        return Handled(tuple(self._found), tuple(self._items), tuple(self._orders), errors)
