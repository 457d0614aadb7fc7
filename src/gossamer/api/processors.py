"""Processors that a program registers, and the types of the values that handlers take, return and yield."""

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar

import msgspec

from gossamer.crawls.catalog import catalog as shipped_catalog
from gossamer.crawls.compiling import find_wiring
from gossamer.documents.document import Document
from gossamer.documents.page import Page
from gossamer.engine.planning import Catalog
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import ProviderPlan, Wiring
from gossamer.spiders.handlers import place_of_function
from gossamer.spiders.logins import Session
from gossamer.values.errors import UsageError
from gossamer.values.request import Request
from gossamer.values.visit import Found, Item, Order

if TYPE_CHECKING:
    from gossamer.analysis.reprocess import Reprocessed

# Processors that a program registers: functions that read pages, in every crawl that the program starts afterwards.

ProcessorFunction = Callable[[Document], Iterable[Found | Item | Order] | None]
P = TypeVar("P", bound=ProcessorFunction)

_registered: list[tuple[tuple[str, ...], ProcessorFunction]] = []


def processor(*mimes: str) -> Callable[[P], P]:
    """Register a function as processor of these media types, for every crawl that this program starts afterwards.

    The function takes a :class:`~gossamer.documents.document.Document` and yields :class:`Item` or :class:`Found`,
    and :class:`Block` or :class:`Delay` if the wiring takes orders (docs/documents.md). If a function is defined again,
    as when a cell of a notebook runs again, it replaces the earlier one.

    Raises:
        UsageError: no media type is named, or the decorated object is not a function of one argument.
    """
    if not mimes or not all(isinstance(mime, str) for mime in mimes):
        raise UsageError('@gossamer.processor("text/html") names the media types of its pages, in brackets')

    def register(function: P) -> P:
        takes = inspect.signature(function)
        try:
            takes.bind(object())
        except TypeError:
            name = getattr(function, "__name__", repr(function))
            raise UsageError(
                f"{place_of_function(function)}: processor {name!r} takes {takes}; it takes one argument, the document"
            ) from None
        for index, (_, other) in enumerate(_registered):
            if _replaces(function, other):
                _registered[index] = (mimes, function)
                return function
        _registered.append((mimes, function))
        return function

    return register


def _replaces(function: ProcessorFunction, other: ProcessorFunction) -> bool:
    """Whether it is the other one, defined again: the same name at the top of the same module."""
    names = [(getattr(one, "__module__", ""), getattr(one, "__qualname__", "")) for one in (function, other)]
    if names[0] != names[1] or "<locals>" in names[0][1]:
        return False
    code = getattr(function, "__code__", None)
    is_same = place_of_function(function) == place_of_function(other)
    return is_same or not Path("" if code is None else code.co_filename).is_file()


async def reprocess(directory: str, *, wiring: str = "", render: bool = False) -> "Reprocessed":
    """Run processors over the stored archive of a crawl, without a request, and replace the rows of its tables.

    It runs the processors of the crawl's wiring, or of `wiring` (a file name), and those that this program registered.
    With `render`, a browser shows pages again, with nothing but the answers of the archive.
    """
    from gossamer.analysis.reprocess import crawl_wiring
    from gossamer.analysis.reprocess import reprocess as prepare

    catalog = shipped_catalog()
    plan = find_wiring(wiring) if wiring else crawl_wiring(directory)
    return await prepare(directory, wiring=with_registered(plan, catalog), render=render, catalog=catalog).run()


def with_registered(wiring: Wiring, catalog: Catalog) -> Wiring:
    """Return the wiring with the program's own processors after those that it names; a resumed crawl names them already."""
    plan = wiring.components.get("process")
    if not _registered or plan is None:
        return wiring
    providers = dict(wiring.providers)
    table: dict[str, list[str]] = {}
    bound = plan.providers.get("processors", {})
    for mime, names in bound.items() if isinstance(bound, dict) else ():
        table[mime] = [names] if isinstance(names, str) else list(names)
    for number, (mimes, function) in enumerate(_registered, 1):
        name = f"{getattr(function, '__name__', 'processor')}-{number}"
        catalog.add(name, _function_provider(function))
        providers[name] = ProviderPlan(use=name)
        for mime in mimes:
            those = table.setdefault(mime, [])
            if name not in those:
                those.append(name)
    plan = msgspec.structs.replace(plan, providers={**plan.providers, "processors": table})
    return msgspec.structs.replace(wiring, providers=providers, components={**wiring.components, "process": plan})


def _function_provider(function: ProcessorFunction) -> type[Provider[Any]]:
    class FunctionProcessor(Provider[Any]):
        """A processor made from a function."""

        place = place_of_function(function)

        def process(self, document: Document) -> Iterable[Found | Item | Order]:
            return function(document) or ()

    return FunctionProcessor


# Types of the values that handlers take, return and yield, for authors of handlers (:mod:`spider`) and for type checkers.


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

#: The results of a handler: one thing, or several; plain or async.
Results: TypeAlias = Result | Iterable[Result] | AsyncIterable[Result] | Awaitable[Result | Iterable[Result]]

#: The seeds of a crawl: one URL or request, or several.
Seeds: TypeAlias = str | Request | Iterable[str | Request]

Handler: TypeAlias = Callable[[Page], Results]
Method: TypeAlias = Callable[[Any, Page], Results]

#: A log-in: False where no user is logged in after it.
LogIn: TypeAlias = Callable[[Session], Awaitable[bool | None]]
