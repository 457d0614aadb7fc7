"""Types of the values that handlers take, return and yield, for authors of handlers and for type checkers.

Place in the flow: :mod:`spider` registers functions of these types.
"""

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping
from typing import Any, ClassVar, Protocol, TypeAlias

import msgspec

from gossamer.model.orders import Order
from gossamer.model.request import Request
from gossamer.model.visit import Found, Item
from gossamer.reading.page import Page
from gossamer.spiders.logins import Session


class _DataclassItem(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


class _AttrsItem(Protocol):
    __attrs_attrs__: ClassVar[Any]


class _PydanticItem(Protocol):
    def model_dump(self, *, mode: str = ...) -> dict[str, Any]: ...


#: One thing that a handler yields: an item, a request, or nothing where a selector found nothing.
Result: TypeAlias = (
    Request
    | list[Request]
    | Found
    | Item
    | Order
    | Mapping[str, Any]
    | msgspec.Struct
    | _DataclassItem
    | _AttrsItem
    | _PydanticItem
    | None
)

#: What a handler returns: one thing, or several; plain or async.
Results: TypeAlias = Result | Iterable[Result] | AsyncIterable[Result] | Awaitable[Result | Iterable[Result]]

#: What a crawl starts from: one URL or request, or several.
Seeds: TypeAlias = str | Request | Iterable[str | Request]

Handler: TypeAlias = Callable[[Page], Results]
Method: TypeAlias = Callable[[Any, Page], Results]

#: A log-in: False where nobody is logged in after it.
LogIn: TypeAlias = Callable[[Session], Awaitable[bool | None]]
