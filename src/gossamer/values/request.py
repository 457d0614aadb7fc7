"""Requests of a program: `gossamer.Request`, which handlers yield, and the errors that make the crawl fetch a page again.

Place in the flow: a handler yields it; the stage that runs the handler makes a link of it
(:class:`~gossamer.values.visit.Found`), which is resolved, judged and queued like every other link.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from gossamer.values.errors import UsageError
from gossamer.values.items import UnwritableItem, plain
from gossamer.values.request_identity import Action, Redirects, requested
from gossamer.values.visit import Found

#: The relation of what is asked for by its URL, not by an element of the page.
REQUEST = "request"

#: The error where a session is asked for that no spider keeps.
NO_SESSIONS = "the spider keeps no sessions; make it with gossamer.Spider(..., sessions=10)"

#: Seconds that a page may wait for another try: a day.
LONGEST_RETRY = 86_400.0


class Retry(Exception):
    """Raise it in a handler to fetch the page again. Everything that the handler yielded for the page is dropped.

    After as many tries as the spider allows, the page ends as `gone_after_retries`.
    """

    def __init__(self, after: float = 10.0, reason: str = "") -> None:
        """Ask for another try.

        Args:
            after: seconds to wait before it, at least; a day at most.
            reason: what was wrong with the page, for the log.

        Raises:
            UsageError: `after` is no number of seconds.
        """
        given: object = after
        if not (isinstance(given, int | float) and 0 <= given <= LONGEST_RETRY):
            raise UsageError(f"gossamer.Retry(after={after!r}): give seconds, from 0 to {LONGEST_RETRY:g}")
        super().__init__(reason or f"asked for again after {after:g} s")
        self.after = float(after)


class LoggedOut(Retry):
    """Raise it in a handler if its page shows that the session is logged out. The log-in runs again, then the page is
    fetched again."""

    def __init__(self, reason: str = "") -> None:
        """`reason`: for the log."""
        super().__init__(0, reason or "no user is logged in")


class PageSession:
    """The session that requested a page, with its own cookies and proxy."""

    __slots__ = ("is_retired", "name")

    def __init__(self, name: str) -> None:
        """`name`: empty where the spider keeps no sessions."""
        self.name = name
        self.is_retired = False

    def __repr__(self) -> str:
        return f"<PageSession {self.name!r}>"

    def __str__(self) -> str:
        return self.name

    def retire(self) -> None:
        """Give up this session, because the site refuses it: its cookies and its proxy are dropped, and it begins anew
        under its name.

        To fetch the page again, `raise gossamer.Retry`.

        Raises:
            UsageError: the spider keeps no sessions.
        """
        if not self.name:
            raise UsageError(NO_SESSIONS)
        self.is_retired = True


class Request:
    """A request that a handler yields: a URL, and the data to send with it.

    A plain `Request(url)` is the same as a link to that URL. A request with its own method, body or key is identified
    by these too, so it is sent even if the URL was fetched before; its answer never counts as a duplicate.
    """

    __slots__ = ("found", "has_password")

    def __init__(
        self,
        url: str,
        *,
        method: str = "",
        body: bytes | str | Mapping[str, str] | None = None,
        json: object = None,
        headers: Mapping[str, str] | None = None,
        cookies: Mapping[str, str] | None = None,
        label: str = "",
        data: object = None,
        priority: int = 0,
        key: str = "",
        redirects: Redirects = "follow",
        safe: bool | None = None,
        session: str | PageSession = "",
        render: bool | None = None,
        actions: Iterable[Action] = (),
    ) -> None:
        """Describe a request.

        Args:
            url: absolute, or relative to the page that the handler was given.
            method: in capitals; by default GET, or POST where there is a body.
            body: bytes, text (sent as UTF-8), or the fields of a form. 1 MiB at most.
            json: sent as JSON, instead of a body.
            headers: fields of this request, in place of the crawl's own of the same name.
            cookies: sent with this request alone.
            label: chooses the handler that gets the answer.
            data: given back to that handler as `page.data`: anything that JSON can hold.
            priority: fetch it as if it had been found so many links nearer to the seeds; further away where it is negative.
            key: tells apart requests that are otherwise the same, such as those of two sessions.
            redirects: `follow` hands the handler what the redirect leads to, `keep` the redirect itself.
            safe: it may be sent again after a kill that left its fate unknown. GET and HEAD are safe, others are not.
            session: who asks, where the spider keeps sessions: a name of your own, or `page.session`.
            render: have a browser render the page, or not; by default as the crawl does with other pages.
            actions: what the browser does on the page before it is read, in this order, as `[gossamer.Action.scroll()]`;
                with actions, the page is rendered. They do not tell requests apart; a `key` does.

        Raises:
            UsageError: a part of it cannot be sent or kept; says which.
        """
        self.has_password = False
        """It holds a password as a person typed it: it is sent at once or not at all, since whatever waits is kept."""
        fields = dict(headers or {})
        content, kind = (body, "") if isinstance(body, bytes) else (None, "")
        if json is not None:
            if body is not None:
                raise UsageError("a request has a body or json, not both")
            content, kind = msgspec.json.encode(_plain(json, "json")), "application/json"
        elif isinstance(body, Mapping):
            content, kind = urlencode(dict(body)).encode(), "application/x-www-form-urlencoded"
        elif isinstance(body, str):
            content, kind = body.encode(), "text/plain; charset=utf-8"
        elif body is not None and content is None:
            raise UsageError(f"the body of a request is bytes, text or the fields of a form, not {type(body).__name__}")
        if kind and not any(name.lower() == "content-type" for name in fields):
            fields["Content-Type"] = kind
        if cookies:
            fields["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
        method = method or ("GET" if content is None else "POST")
        if redirects not in ("follow", "keep"):
            raise UsageError(f"redirects={redirects!r}: a request follows redirects ('follow') or takes them ('keep')")
        made = requested(
            method,
            content or b"",
            tuple((str(name), str(value)) for name, value in fields.items()),
            label,
            b"" if data is None else msgspec.msgpack.encode(_plain(data, "data")),
            key,
            safe,
            priority,
            redirects,
            str(session),
            True if render is None and (actions := tuple(actions)) else render,
            tuple(actions),
        )
        self.found = Found(url, REQUEST, request=None if made == _NOTHING else made)

    @classmethod
    def of(cls, found: Found) -> "Request":
        """The request for a link that is known already."""
        request = cls.__new__(cls)
        request.has_password = False
        request.found = found
        return request

    def kept(self) -> Found:
        """The link that waits in the ledger for it.

        Raises:
            UsageError: it holds a password, and neither ledger nor archive may.
        """
        if self.has_password:
            raise UsageError(
                f"the form at {self.url} has a password, which ledger and archive would keep; send it in a log-in, "
                "@spider.login(URL)"
            )
        return self.found

    @property
    def url(self) -> str:
        """The URL as it was given."""
        return self.found.href

    @property
    def method(self) -> str:
        """The method as it is sent."""
        return "GET" if self.found.request is None else self.found.request.method

    @property
    def label(self) -> str:
        """The label, which chooses the handler of the answer."""
        return "" if self.found.request is None else self.found.request.label

    @property
    def session(self) -> str:
        """The name of the session that sends the request; empty for the session whose turn it is."""
        return "" if self.found.request is None else self.found.request.session

    def __repr__(self) -> str:
        label = f" label={self.label!r}" if self.label else ""
        return f"<Request {self.method} {self.url}{label}>"


_NOTHING = requested()


def _plain(value: object, name: str) -> object:
    try:
        return plain(value, name)
    except UnwritableItem as error:
        raise UsageError(f"a request cannot keep {error}") from None


def unpacked(data: bytes) -> Any:
    """The `data` of the request; None if it had none."""
    return msgspec.msgpack.decode(data) if data else None
