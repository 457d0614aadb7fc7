"""Handlers and the pages that they are for, and the sorting of their results into requests, items and orders."""

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import CodeType, GeneratorType
from typing import Any, Literal

import msgspec

from gossamer.documents.page import unknown_label
from gossamer.parsing.contract import MAX_FOUND, MAX_ITEMS, MAX_ORDERS, Handled
from gossamer.values.errors import UsageError
from gossamer.values.items import as_item, shown_file
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.patterns import compiled_re2
from gossamer.values.request import NO_SESSIONS, Request
from gossamer.values.request_identity import MAX_NAME
from gossamer.values.visit import Block, Delay, Found, Item, Order, Raised

# Sorting what a handler yields: requests, items, orders. Any other value is refused where it is yielded. :mod:`running` makes one
# :class:`Gathering` for each page, in whichever thread the handler runs.

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
        """Take a yielded value. Raises TypeError: a handler may not yield such a value, or it is an item that cannot be written.
        Raises UsageError: a request has a label without a handler, a password, or a session although the spider keeps none.
        Raises TooManyFinds: the page has yielded too many requests or items."""
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
        return Handled(tuple(self._found), tuple(self._items), tuple(self._orders), errors)


# Handlers and the pages that they are for: registered by a spider, checked at once, found by label, URL and media type.
# :class:`gossamer.Spider` fills a :class:`HandlerTable`; the provider of :mod:`running` asks it for each visit.


#: Where a handler runs: `loop` beside the crawl itself (what is async), `thread` (what may block), `process` (what computes long).
Place = Literal["loop", "thread", "process"]

Handler = Callable[..., Any]

#: Any media type.
ANY = "*"


class HandlerPlan(msgspec.Struct, frozen=True):
    """One handler, and the pages that it handles."""

    function: Handler
    name: str
    place: str
    """File and line where it is defined."""
    label: str | None
    pattern: Any
    """A compiled RE2 pattern that the URL has to match; None for any."""
    url: str
    mime: str | None
    run: Place
    deadline: float
    """Seconds that it may take for a page."""
    render: bool = False
    """A browser renders its pages."""

    @property
    def who(self) -> str:
        """The handler as messages name it."""
        return f"handler {self.name!r}"

    @property
    def key(self) -> tuple[str | None, str, str | None]:
        """The pages that it handles. Two handlers may not have equal keys."""
        return self.label, self.url, self.mime

    @property
    def rank(self) -> int:
        """How specific the handler is: if two fit a page, the more specific one gets it."""
        return (self.label is not None) * 4 + bool(self.url) * 2 + (self.mime is not None)

    def fits(self, url: str, mime: str) -> bool:
        """Whether a page with its label, or without one, is for it. A page without a label has to be HTML."""
        if self.mime is None:
            if self.label is None and mime not in HTML_TYPES:
                return False
        elif self.mime not in (ANY, mime, f"{mime.partition('/')[0]}/*"):
            return False
        return self.pattern is None or self.pattern.search(url) is not None


class HandlerTable:
    """The handlers of one spider."""

    def __init__(self, deadline: float) -> None:
        """`deadline`: seconds that a handler may take for a page, unless it says otherwise."""
        self._deadline = deadline
        self._pages: dict[str, list[HandlerPlan]] = {}
        self._failed: list[HandlerPlan] = []

    def __repr__(self) -> str:
        return f"<HandlerTable of {', '.join(one.name for one in self.all()) or 'none'}>"

    def all(self) -> list[HandlerPlan]:
        return [*(one for those in self._pages.values() for one in those), *self._failed]

    @property
    def labels(self) -> frozenset[str]:
        return frozenset(filter(None, self._pages))

    def codes(self) -> dict[CodeType, HandlerPlan]:
        return {code: one for one in self.all() if (code := _code(one.function)) is not None}

    def add_page(
        self,
        function: Handler,
        label: str | None,
        url: str,
        mime: str | None,
        run: Place | None,
        deadline: float | None,
        render: bool = False,
    ) -> None:
        """Register a handler of pages. Raises UsageError: the function is not a handler, or another handler has the same pages;
        names the user's file and line."""
        plan = msgspec.structs.replace(self._plan(function, label, url, mime, run, deadline), render=render)
        those = self._pages.setdefault(label or "", [])
        meant = [f"label {plan.label!r}" if plan.label else "without a label"]
        meant += [f"URLs like {plan.url!r}"] if plan.url else []
        meant += [f"type {plan.mime}"] if plan.mime else []
        _put(those, plan, f"pages {' and '.join(meant)}")
        those.sort(key=lambda one: -one.rank)

    def add_failed(self, function: Handler, label: str | None, run: Place | None, deadline: float | None) -> None:
        """Register a handler of requests that brought no document. Raises the errors of :meth:`add_page`."""
        plan = self._plan(function, label, "", None, run, deadline)
        if plan.run == "process":
            raise UsageError(
                f"{plan.place}: {plan.who} is for failures, which need no process; let it run in a thread or in the loop"
            )
        _put(self._failed, plan, "failures" + (f" of the label {label!r}" if label else ""))
        self._failed.sort(key=lambda one: -one.rank)

    def of_page(self, label: str, url: str, mime: str) -> HandlerPlan | None:
        return next((one for one in self._pages.get(label, ()) if one.fits(url, mime)), None)

    def of_failure(self, label: str) -> HandlerPlan | None:
        """Return the handler of a request that brought no document: first the one of its label, then the one of all."""
        return next((one for one in self._failed if one.label in (None, label)), None)

    def named(self, name: str) -> HandlerPlan | None:
        return next((one for one in self.all() if one.name == name), None)

    def _plan(
        self,
        function: Handler,
        label: str | None,
        url: str,
        mime: str | None,
        run: Place | None,
        deadline: float | None,
    ) -> HandlerPlan:
        if not callable(function):
            raise UsageError(f"a handler is a function, not {function!r:.80}")
        inner, place = _inner(function), place_of_function(function)
        name = str(getattr(inner, "__qualname__", "") or type(function).__name__).rpartition("<locals>.")[2]
        here = f"{place}: handler {name!r}"
        try:
            inspect.signature(function).bind(object())
        except TypeError:
            takes = inspect.signature(function)
            raise UsageError(f"{here} takes {takes}; a handler takes one argument, the page") from None
        is_async = inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner)
        if run is None:
            run = "loop" if is_async else "thread"
        if run not in ("loop", "thread", "process"):
            raise UsageError(f"{here}: run={run!r}; a handler runs in the loop, a thread or a process")
        if is_async and run != "loop":
            raise UsageError(f"{here} is async, so it runs in the loop; write it with def to run it in a {run}")
        if run == "process" and not Path(_file(function)).is_file():
            raise UsageError(f"{here} is to run in a process, which needs a file that it can be loaded from")
        seconds: object = self._deadline if deadline is None else deadline
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
            raise UsageError(f"{here}: deadline={seconds!r}; give seconds, more than 0")
        for what, text in (("label", label), ("url", url), ("mime", mime)):
            given: object = text
            if given is not None and not (isinstance(given, str) and len(given) <= MAX_NAME and given.isprintable()):
                raise UsageError(f"{here}: {what}={text!r:.80} is not one line of text")
        if label is not None and "/" in label and " " not in label and mime is None and label.count("/") == 1:
            raise UsageError(f"{here}: {label!r} looks like a media type; write mime={label!r}")
        return HandlerPlan(
            function,
            name,
            place,
            label or None,
            _pattern(url, here) if url else None,
            url,
            None if mime is None else mime.lower(),
            run,
            self._deadline if deadline is None else deadline,
        )


def _put(those: list[HandlerPlan], plan: HandlerPlan, what: str) -> None:
    """Add a handler, or put it into the place of the one that it is another version of."""
    for index, other in enumerate(those):
        if other.key == plan.key:
            # It may be the same handler, defined again: a cell of a notebook was run once more, or a module loaded again.
            is_same = plan.place == other.place or not Path(_file(plan.function)).is_file()
            if plan.name != other.name or not is_same:
                raise UsageError(f"{plan.place}: {plan.who} is for {what}, and so is {other.who} of {other.place}")
            those[index] = plan
            return
    those.append(plan)


def _pattern(url: str, here: str) -> Any:
    try:
        return compiled_re2(url)
    except ValueError as error:
        raise UsageError(f"{here}: url={url!r} is not an RE2 pattern: {error}") from None


def _inner(function: Handler) -> Any:
    """The function behind partial objects, wrappers, bound methods and callable objects."""
    found: Any = function
    while isinstance(found, partial):
        found = found.func
    found = inspect.unwrap(found)
    if not inspect.isroutine(found) and not inspect.isclass(found):
        found = type(found).__call__
    return getattr(found, "__func__", found)


def _code(function: Handler) -> CodeType | None:
    code: CodeType | None = getattr(_inner(function), "__code__", None)
    return code


def _file(function: Handler) -> str:
    code = _code(function)
    return "" if code is None else code.co_filename


def place_of_function(function: Handler) -> str:
    """Return file and line of a function; empty if they are not known."""
    code = _code(function)
    return "" if code is None else f"{shown_file(code.co_filename)}:{code.co_firstlineno}"
