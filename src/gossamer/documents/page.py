"""A page as a program's own code sees it: the fetched document under familiar names, and methods that follow its links.

Place in the flow: handlers of a spider get one before the visit is committed; a program that iterates over a crawl gets
one for each committed record. Both get the same class. Fields that are known only after the commit (links, location) are
empty in a handler. The page and each :class:`PagePart` of it give texts, numbers and attributes by CSS selectors.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.statements import NOFOLLOW
from gossamer.values.errors import UsageError
from gossamer.values.items import number_in
from gossamer.values.outcome import Outcome
from gossamer.values.request import PageSession, Request, unpacked
from gossamer.values.request_identity import Requested
from gossamer.values.visit import Found, Item, Link, Location, Record, Visit

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

    from gossamer.documents.forms import Form


# -- selecting


class Selecting:
    """The base of a page and of an element of it; a subclass defines `_root`."""

    @property
    def _root(self) -> Any:
        """The tree or node that is searched."""
        raise NotImplementedError

    def css(self, selector: str) -> "list[LexborNode]":
        """Elements that match a CSS selector, in document order.

        Raises:
            UsageError: it is no selector.
            ParseSkipped: the page has no tree, since it would cost the parser too much.
        """
        found: list[LexborNode] = self._select("css", selector)
        return found

    def first(self, selector: str) -> "LexborNode | None":
        """The first element that matches; None where none does. Raises as :meth:`css`."""
        found: LexborNode | None = self._select("css_first", selector)
        return found

    def _select(self, how: str, selector: str) -> Any:
        from selectolax.lexbor import SelectolaxError  # only a page of which an element is asked needs it

        try:
            return getattr(self._root, how)(selector)
        except SelectolaxError as error:
            raise UsageError(f"{selector!r} is not a CSS selector: {error}") from None

    def each(self, selector: str) -> "Iterator[PagePart]":
        """The elements that match, in document order, each with the methods of a page: `for quote in page.each(".quote")`."""
        return map(PagePart, self.css(selector))

    def text(self, selector: str = "", default: str = "") -> str:
        """The text of the first element that matches, white space folded; `default` where none does."""
        node = self.first(selector)
        return default if node is None else folded(node)

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements that match, in document order."""
        return [folded(node) for node in self.css(selector)]

    def number(self, selector: str) -> float | None:
        """The first number in the text of the first element that matches: `£12.50` is 12.5. None where there is none."""
        node = self.first(selector)
        return None if node is None else number_in(folded(node))

    def attr(self, selector: str, name: str, default: str = "") -> str:
        """An attribute of the first element that matches; `default` where there is none."""
        node = self.first(selector)
        value = None if node is None else node.attributes.get(name)
        return default if value is None else value

    def attrs(self, selector: str, name: str) -> list[str]:
        """That attribute of all elements that match and have it."""
        found = (node.attributes.get(name) for node in self.css(selector))
        return [value for value in found if value is not None]


class PagePart(Selecting):
    """One element of a page: what it holds is taken out of it as out of a page."""

    __slots__ = ("node",)

    def __init__(self, node: "LexborNode") -> None:
        """`node`: the element, as selectolax has it."""
        self.node = node

    def __repr__(self) -> str:
        return f"<PagePart {self.node.tag}>"

    @property
    def _root(self) -> Any:
        return self.node

    def text(self, selector: str = "", default: str = "") -> str:
        """The text of the first element in it that matches, white space folded; of the element itself without a selector."""
        return super().text(selector, default) if selector else folded(self.node)

    def attribute(self, name: str, default: str = "") -> str:
        """An attribute of the element itself; `default` where it has none."""
        value = self.node.attributes.get(name)
        return default if value is None else value


def folded(node: "LexborNode") -> str:
    """The text of an element, white space folded."""
    return " ".join(node.text().split())


class Page(Selecting):
    """One fetch and its result: usually an HTML document, but also a feed, a file, an answer in JSON, or a failure."""

    def __init__(
        self, record: Record, *, document: Document | None = None, labels: Collection[str] | None = None
    ) -> None:
        """A page of a record.

        Args:
            record: the visit, and where it is kept.
            document: the visit's document, where it was read already.
            labels: those that a handler answers to; None where any will do.
        """
        self.record = record
        self._labels = labels
        if document is not None:
            self.__dict__["document"] = document

    def __repr__(self) -> str:
        return f"<Page {self.status or self.outcome} {self.url}>"

    @property
    def _visit(self) -> Visit:
        return self.record.visit

    # -- what was fetched

    @property
    def url(self) -> str:
        """The canonical URL that was fetched."""
        return self._visit.url

    @property
    def status(self) -> int:
        """The status code of the answer; 0 if there was none."""
        return self._visit.response.status

    @property
    def outcome(self) -> Outcome:
        """How the fetch ended, in one word: `ok`, `client_error`, `robots_denied`, ... (docs/reference/outcomes.md)."""
        return self._visit.response.outcome

    @property
    def error(self) -> str:
        """The error, in the words of the library or system; empty if nothing failed."""
        return self._visit.response.error

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Header fields of the answer in order, names in lower case."""
        return self._visit.response.headers

    def header(self, name: str) -> str:
        """Return the first header field of this name, in any case; empty if there is none."""
        return self._visit.response.header(name.lower())

    @property
    def mime(self) -> str:
        """The media type that the bytes show, such as `text/html`."""
        return self._visit.media_type

    @property
    def depth(self) -> int:
        """Number of links from the nearest seed."""
        return self._visit.task.depth

    @property
    def source(self) -> str:
        """The URL of the page that linked to it; empty for seeds."""
        return self._visit.task.source

    @property
    def attempt(self) -> int:
        """1 for the first try."""
        return self._visit.task.attempt

    @property
    def duplicate_of(self) -> str:
        """URL of the first document with the same bytes; empty if this is the first."""
        return self._visit.duplicate_of

    # -- what was asked for

    @property
    def label(self) -> str:
        """The label of the request; empty if it had none."""
        request = self._visit.task.request
        return "" if request is None else request.label

    @cached_property
    def data(self) -> Any:
        """The `data` of the request; None if it had none."""
        request = self._visit.task.request
        return None if request is None else unpacked(request.data)

    @cached_property
    def session(self) -> PageSession:
        """The session that requested the page, if the spider keeps sessions. It has a `name` and the method `retire()`."""
        return PageSession(self._visit.response.session)

    # -- what is known once it is committed

    @property
    def links(self) -> tuple[Link, ...]:
        """The links that are followed."""
        return self._visit.links

    @property
    def items(self) -> tuple[Item, ...]:
        """Items that processors and handlers extracted from the page."""
        return self._visit.items

    @property
    def location(self) -> Location | None:
        """The place of the page in the archive; None if it is not archived."""
        return self.record.location

    # -- what it says

    @cached_property
    def document(self) -> Document:
        """The document with its tree, parsed on first use."""
        return Document(self._visit)

    @property
    def title(self) -> str:
        """The text of the `title` element, white space folded."""
        return self._visit.title or self.document.title

    @property
    def content(self) -> bytes:
        """The bytes of the document, without content coding; for a large document only the first 16 MiB."""
        return self.document.content

    @cached_property
    def body(self) -> str:
        """The document as text, decoded by the encoding that it declares or shows."""
        return self.document.markup.decode("utf-8", "replace")

    def json(self) -> Any:
        """Return the document, parsed as JSON. Raises ValueError: it is not JSON."""
        return msgspec.json.decode(self.document.markup)

    @property
    def _root(self) -> Any:
        return self.document.tree

    def text(self, selector: str = "", default: str = "") -> str:
        """Return the text of the first element that matches, with white space folded; `default` if none matches.

        Without a selector, it returns the prose of the page, without menus and code, one block a line.
        """
        return super().text(selector, default) if selector else self.document.text

    # -- where it leads

    def follow(
        self,
        target: "str | LexborNode | PagePart",
        *,
        label: str = "",
        data: object = None,
        priority: int = 0,
        key: str = "",
        session: str | PageSession = "",
    ) -> Request | None:
        """Return the request for the first element that matches and has a link; None if there is none.

        Args:
            target: a CSS selector, an element, a part of the page that is one, or a URL (with a scheme, or beginning with `/`).
            label: chooses the handler that gets the answer.
            data: given back to that handler as `page.data`: anything that JSON can hold.
            priority: as of :class:`~gossamer.values.request.Request`; so are `key` and `session`.

        Raises:
            UsageError: no handler has this label, or a value cannot be kept.
        """
        self._check(label)
        url = target if isinstance(target, str) and ("://" in target or target.startswith("/")) else ""
        request = Request(url, label=label, data=data, priority=priority, key=key, session=session)
        if url:
            return request
        if isinstance(target, PagePart):
            target = target.node
        nodes = self.css(target) if isinstance(target, str) else [target]
        return next(iter(self._asked(nodes, request.found.request)), None)

    def follow_all(
        self,
        target: "str | Iterable[LexborNode]" = "a",
        *,
        label: str = "",
        data: object = None,
        priority: int = 0,
        key: str = "",
        session: str | PageSession = "",
    ) -> list[Request]:
        """Return the requests for all elements that match and have a link, in document order. See :meth:`follow`."""
        self._check(label)
        nodes = self.css(target) if isinstance(target, str) else target
        request = Request("", label=label, data=data, priority=priority, key=key, session=session)
        return list(self._asked(nodes, request.found.request))

    def form(self, selector: str = "form") -> "Form":
        """Return the first form that matches, to be filled in: `page.form("#login").submit(user="me", password=secret)`.

        The session that asked for the page sends the form.

        Raises:
            UsageError: the page has no such form, or the selector is not valid.
            ParseSkipped: the page has no tree.
        """
        from gossamer.documents.forms import Form  # few pages are filled in

        node = self.first(selector)
        if node is None or node.tag != "form":
            found = "an element that is no form" if node is not None else "nothing"
            raise UsageError(f"page.form({selector!r}) finds {found} on {self.url}")
        return Form(self.document.tree, node, self.url, self.document.charset, self.session.name)

    def _asked(self, nodes: "Iterable[LexborNode]", request: Requested | None) -> Iterable[Request]:
        for node in nodes:
            attributes, name = node.attributes, "href"
            target = attributes.get(name)
            if target is None:
                name = "src"
                target = attributes.get(name)
                if target is None:
                    continue
            rel = attributes.get("rel")
            disowned = rel is not None and not NOFOLLOW.isdisjoint(rel.lower().split())
            yield Request.of(Found(target, f"{node.tag} {name}", "", disowned, request))

    def _check(self, label: str) -> None:
        if label and self._labels is not None and label not in self._labels:
            raise UsageError(unknown_label(label, self._labels))


def unknown_label(label: str, known: Collection[str]) -> str:
    """Return the error text for a label that no handler has."""
    import difflib  # only a mistyped name needs it

    near = difflib.get_close_matches(label, known, n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    listed = f"; its labels: {', '.join(sorted(known))}" if known else "; it has none"
    return f"no handler of the spider has the label {label!r}{meant or listed}"
