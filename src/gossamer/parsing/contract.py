"""Processors and handlers read documents, and yield links, items and orders. Suites: `gossamer.testing.check_processor`,
`check_page_handlers`.

Place in the flow: the process stage asks the processors of a document's MIME type (row M4), and :class:`PageHandlers`, a user's
code that gets pages one by one, after content-seen; all that they yield travels in the visit. :class:`LogIns` are asked before
a page is fetched, :class:`Beginnings` before anything is.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

from gossamer.fetcher.contract import RequestSender
from gossamer.values.request_identity import Requested
from gossamer.values.task import Answer, RetryDecision, Task
from gossamer.values.visit import Found, Item, Order, Raised, Response, Statements, Visit

if TYPE_CHECKING:
    from gossamer.documents.document import Document

#: Most spellings of links and most items that are taken from one page: far more than are kept, and few enough for memory.
MAX_FOUND = 50_000
MAX_ITEMS = 10_000

#: Most links of one page that a processor is asked for. It ends what yields without end; no page of 16 MiB has more.
MAX_YIELDED = 3_000_000

#: The trouble of a page that yields more than is taken from one.
TOO_MANY_FINDINGS = "too_many_findings"

#: Most orders that are taken from one page. Only a hostile page makes a processor yield more.
MAX_ORDERS = 100


class Processor(Protocol):
    """Reads one document, and yields the links, items, triples and orders that it finds.

    Promises:
        1. It reads the document and nothing else. Every processor sees the document from byte 0.
        2. One instance sees all documents of its types, and may keep state across them. A class with `divisible = True` gives
           up that guarantee: other instances, in processes that can be killed, read documents that are large or could
           hang the crawl, and the tree of such a page is available only there.
        3. Its orders take effect with the commit of its document, in a wiring that accepts orders; other wirings only count them.
        4. It may raise an exception. The error is counted, and the page loses only this processor's findings. If it raises
           :class:`gossamer.values.request.Retry`, the page is fetched once more, and its findings of this time are dropped.
        5. A class with `finds_links = True` yields nothing but links. It is not called for pages whose handler chooses the
           links to follow.
    """

    def process(self, document: "Document") -> Iterable[Found | Item | Statements | Order]:
        """Yield the links, items and triples of this document, and orders to the crawl.

        Orders are declared in :mod:`gossamer.values.visit`.
        """
        ...


class Handled(msgspec.Struct, frozen=True):
    """The result of a handler for one page."""

    found: tuple[Found, ...] = ()
    items: tuple[Item, ...] = ()
    orders: tuple[Order, ...] = ()
    errors: tuple[Raised, ...] = ()
    again: float | None = None
    """Seconds after which it wants the page once more; its earlier yields do not count then."""


class Elsewhere(msgspec.Struct, frozen=True):
    """A processor, as another process makes it, that runs a handler there."""

    who: str
    """The handler, as a person knows it."""
    place: str
    """File and line where it is defined."""
    module: str
    name: str
    sheet: Mapping[str, Any]
    deadline: float
    """Seconds that it may take for a page."""


class PageHandlers(Protocol):
    """Finds the handler of a visit, and runs it.

    Promises:
        1. `wants` is quick and changes nothing. It is asked of a document when its media type is known.
        2. `handle` never raises because of a handler, and ends within its deadline: an exception, a missed deadline or
           an object that cannot be kept appears in `errors`, and everything that the handler would have yielded after
           it is lost.
        3. A handler is given each page once, unless the process dies before the visit is committed.
    """

    def wants(self, visit: Visit) -> bool:
        """Whether there is a handler for this visit, or for its failure if that is final."""
        ...

    def elsewhere(self, visit: Visit) -> Elsewhere | None:
        """The processor that runs its handler in a process of its own; None where `handle` runs it."""
        ...

    def left(self, visit: Visit) -> None:
        """The handler of this visit, which ran in another process, found the session logged out."""
        ...

    def retired(self, visit: Visit) -> None:
        """The handler of this visit, which ran in another process, gives up the session that asked for it."""
        ...

    async def handle(self, document: "Document") -> Handled:
        """Run the handler of this visit, and gather what it yields."""
        ...


class Rulings(Protocol):
    """Decides what happens to a page after an answer: the part of politeness that tells a final failure from a first
    try."""

    def expected(self, answer: Answer) -> RetryDecision:
        """The ruling on this answer. May be asked any number of times."""
        ...


class Beginnings(Protocol):
    """Gives the requests that a program makes of the seeds of its crawl.

    Promise: it always gives the same answer, so that a resumed crawl requests nothing twice.
    """

    def beginnings(self, url: str) -> Sequence[Requested | None]:
        """The requests for a seed, given by its canonical URL; None is a plain request, which every other seed gets."""
        ...


#: Sends the request of a task with the cookies of the crawl.
Ask = Callable[[Task], Awaitable[Response]]

#: Has every request of a session to the site of a URL carry a header field.
Grant = Callable[[str, str, str], None]


class Entered(Protocol):
    """Remembers log-ins, also for later runs if cookies are kept.

    Promises:
        1. A log-in that was noted is known in later runs, for as long as a cookie is there that its URL is asked with.
        2. One that was not noted is not known, whatever cookies there are.
    """

    def has_entered(self, url: str, session: str = "") -> bool:
        """Whether a session has run the log-in of this URL, and a cookie of it is still valid."""
        ...

    def note_entered(self, url: str, session: str = "") -> None:
        """A session has run the log-in of this URL. Raises OSError where it cannot be written down."""
        ...


class LogInSender(RequestSender, Entered, Protocol):
    """A module that sends the requests of log-ins, and keeps their cookies."""

    def grant(self, url: str, field: str, session: str = "") -> None:
        """Send this header field with every request of a session to the site of `url`, in this run alone. The archive does
        not have it."""
        ...

    def renew(self, session: str) -> None:
        """Forget everything of a session: it begins anew, without cookies, log-ins and fields, and by another proxy.

        Raises:
            OSError: it cannot be written down.
        """
        ...


class SessionHealth(msgspec.Struct, frozen=True):
    """State of a session."""

    name: str
    asked: int
    """Requests of all that had this name."""
    retired: int
    """How many of these there were before it."""


class SessionsStanding(msgspec.Struct, frozen=True):
    """State of the sessions of a spider."""

    count: int
    """So many ask in turn."""
    retired: int
    """So many were retired in this run."""
    most: int
    """So many are retired at most."""
    members: list[SessionHealth] = []
    """Those that were retired most often."""


class SessionTurns(Protocol):
    """Chooses the session of each request.

    Promises:
        1. A task that names a session is asked for by that session; others go from one session to the next.
        2. A session that is refused is retired, and named once by `take_retired`; of what it asked before that, nothing retires
           it again.
        3. No more sessions are retired than the limit allows.
    """

    def session_for(self, task: Task) -> str:
        """The session for a task; empty if no sessions are kept."""
        ...

    def answered(self, session: str, task: Task, response: Response) -> None:
        """Note the answer to a request of a session."""
        ...

    def take_retired(self) -> Sequence[str]:
        """Sessions that were retired since the last call: their cookies are to be forgotten."""
        ...


@runtime_checkable
class SessionsTold(Protocol):
    """A provider that says how its sessions do."""

    def sessions_standing(self, most: int) -> SessionsStanding | None:
        """Their standing, with the health of at most so many; None where there are none."""
        ...


class LogIns(Protocol):
    """Runs log-ins.

    Promises:
        1. A log-in is run by one caller of a session at a time, who has its host's turn; the others wait.
        2. It asks the host of its own URL alone, and one that issues tokens where it was made for one; it ends within its deadline.
        3. One that has succeeded is run once for a session, and noted; one that has failed is run again for the next caller.
    """

    async def enter(self, url: str, ask: Ask, entered: Entered, grant: Grant, session: str = "") -> None:
        """Run the log-in of the host of `url` for a session, where there is one and the session is not logged in.

        `grant` takes the URL of a site, the header field that its requests are sent with from then on, and the session.

        Raises:
            ComponentFailed: it failed; names the user's file and line.
        """
        ...
