"""Log-ins of a spider, and the protocol module that runs them before the first page of a host.

Place in the flow: a log-in is a function that requests a few pages of its host before any other page of that host.
:class:`gossamer.Spider` fills a :class:`LogInTable`; the protocol module for http asks it by way of :mod:`running`. The requests
of a log-in go out in the turn of the page that waits for it, so that no host is asked twice at once. They are in no queue, log or
archive, because they hold secrets.
"""

import asyncio
import base64
import inspect
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote_plus

import msgspec

from gossamer.documents.charset import in_charset
from gossamer.documents.page import Page
from gossamer.engine.ends import Uses
from gossamer.engine.errors import ComponentFailed
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.parsing.contract import Ask, Entered, Grant, LogIns, LogInSender
from gossamer.spiders.handlers import place_of_function
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.items import raised
from gossamer.values.media_type import sniff_media_type
from gossamer.values.outcome import Outcome
from gossamer.values.request import Request
from gossamer.values.request_identity import redirected, requested
from gossamer.values.task import ROBOTS, Task
from gossamer.values.url import canonical, host_of, scheme_of, site_of
from gossamer.values.visit import Record, Response, Visit

#: Redirects that one request of a log-in follows: as many as browsers do.
_MOST_REDIRECTS = 20

#: A token of RFC 6750, 2.1.
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")

#: Hosts that a token may be asked of without TLS: nothing listens between (RFC 8252, 8.3).
_LOOPBACK = frozenset(("127.0.0.1", "[::1]", "localhost"))

#: Characters of what a server says of a refusal that are told.
_TOLD = 200

#: The part of its time after which a token is asked for anew, so that no request arrives with one that has just ended.
_SPENT = 0.9

#: The reason that is told where a log-in returns False.
_NOT_IN = "it says that no user is logged in"


class Session:
    """A log-in sends its requests through a session. They go to one host, and the crawl keeps the cookies."""

    def __init__(self, url: str, ask: Ask, issuer: str = "", name: str = "") -> None:
        """Ask the host of a canonical URL, and `issuer`, the host that issues its tokens, as the session of this name."""
        self.url = url
        self.name = name
        """The session of the spider that logs in; empty if the spider keeps none."""
        self._ask = ask
        self._hosts = {host_of(url), issuer or host_of(url)}
        self.token = ""
        """The value that :meth:`bear` was given."""
        self.seconds = 0.0

    def bear(self, token: str, seconds: float = 0.0) -> None:
        """Send `Authorization: Bearer TOKEN` with every request to the site of the log-in from now on.

        Neither ledger nor archive has the token, and a later run asks for a new one.

        Args:
            seconds: for which the token is valid; the log-in runs again before they have passed. 0 if it does not expire.

        Raises:
            UsageError: the token cannot be sent.
        """
        if not _TOKEN.fullmatch(token):
            raise UsageError("a bearer token is one word of letters, digits and -._~+/ (RFC 6750)")
        self.token, self.seconds = token, max(float(seconds), 0.0)

    async def get(self, url: str = "") -> Page:
        """Return the page of a URL, absolute or relative to the URL of the log-in, which is also the default. Raises the same
        errors as :meth:`send`."""
        return await self.send(Request(url or self.url))

    async def send(self, request: Request) -> Page:
        """Send a request, such as `page.form(...).submit(...)` makes, and follow redirects.

        Returns:
            The last page, whatever its status.

        Raises UsageError: a redirect leads to another host, or its target is not a URL.
        """
        url, sent = self._resolved(request.url, self.url), request.found.request or requested()
        sent = msgspec.structs.replace(sent, session=self.name)
        for _ in range(_MOST_REDIRECTS):
            task = Task(url, host_of(url), request=sent)
            response = await self._ask(task)
            location = response.header("location")
            if response.outcome is not Outcome.REDIRECT or not location or sent.redirects == "keep":
                mime = sniff_media_type(response.content, response.content_type)
                return Page(Record(Visit(task=task, response=response, mime=mime)))
            target = self._resolved(location, url)
            sent = redirected(sent, response.status, is_same_site=site_of(target) == site_of(url))
            url = target
        raise UsageError(f"{request.url} leads from one redirect to the next")

    def _resolved(self, href: str, base: str) -> str:
        try:
            url = canonical(in_charset(href, base, ""), base)
        except UnreadableUrl as error:
            raise UsageError(str(error)) from None
        if host_of(url) not in self._hosts or (scheme_of(url) != "https" and scheme_of(self.url) == "https"):
            raise UsageError(f"{url} is not on {site_of(self.url)}; a log-in asks its own host alone")
        return url


class LogInPlan(msgspec.Struct, frozen=True):
    function: Callable[..., Any]
    url: str
    place: str
    """File and line where it is defined."""
    deadline: float
    issuer: str = ""
    """The host that issues tokens for it, if it is another one."""


class LogInTable:
    """The log-ins of one spider, by host."""

    def __init__(self) -> None:
        self._plans: dict[str, LogInPlan] = {}

    def __len__(self) -> int:
        return len(self._plans)

    def add(
        self, function: Callable[..., Any], url: str, deadline: float, *, place: str = "", issuer: str = ""
    ) -> None:
        """Register a log-in, which may take `deadline` seconds; one that is defined again replaces the earlier one. `place` is
        the file and line where the user asks for it, that of the function where it is empty; `issuer` is the host that issues
        tokens for it, if it is another one. Raises UsageError: the function is not a log-in, or its host has another one; names
        the user's file and line."""
        place = place or place_of_function(function)
        try:
            address = canonical(url)
        except UnreadableUrl as error:
            raise UsageError(f"{place}: the log-in's URL: {error}") from None
        if scheme_of(address) not in ("http", "https"):
            raise UsageError(f"{place}: the log-in's URL {url!r} is not an http or https URL")
        if not inspect.iscoroutinefunction(function):
            raise UsageError(f"{place}: a log-in is written with async def, and awaits what it asks for")
        try:
            inspect.signature(function).bind(object())
        except TypeError:
            raise UsageError(f"{place}: a log-in takes one argument, the session") from None
        plan = LogInPlan(function, address, place, deadline, issuer)
        other = self._plans.get(host_of(address))
        if other is not None and other.function.__qualname__ != function.__qualname__:
            raise UsageError(f"{place}: {host_of(address)} has a log-in already, at {other.place}")
        self._plans[host_of(address)] = plan

    def of(self, host: str) -> LogInPlan | None:
        return self._plans.get(host)


class Entrances:
    """The log-ins of a spider at work in one crawl. Implements `parsing.contract.LogIns`."""

    def __init__(self, table: LogInTable, now: Callable[[], float]) -> None:
        self._table = table
        self._now = now
        self._locks: dict[_Who, asyncio.Lock] = {}
        self._entered: dict[_Who, float] = {}
        """When each host was logged in to; 0 for an earlier run."""
        self._until: dict[_Who, float] = {}
        """When the token of a host is to be asked for anew, where it has one that ends."""
        self._left: set[_Who] = set()

    def _is_in(self, who: "_Who") -> bool:
        return who in self._entered and self._now() < self._until.get(who, float("inf"))

    async def enter(self, url: str, ask: Ask, entered: Entered, grant: Grant, session: str = "") -> None:
        who = (host_of(url), session)
        plan = self._table.of(host_of(url))
        if plan is None or self._is_in(who):
            return
        async with self._locks.setdefault(who, asyncio.Lock()):
            if self._is_in(who):
                return
            if who not in self._left and entered.has_entered(plan.url, session):
                self._entered[who] = 0.0
                return
            run = await _run(plan, ask, session)
            self._left.discard(who)
            self._entered[who] = now = self._now()
            self._until.pop(who, None)
            if not run.token:
                entered.note_entered(plan.url, session)
                return
            grant(plan.url, f"Authorization: Bearer {run.token}", session)
            if run.seconds:
                self._until[who] = now + _SPENT * run.seconds

    def leave(self, url: str, asked: float, session: str = "") -> None:
        """Run the log-in of a session again because a page shows that it is logged out, unless it has run since the page was
        requested."""
        who = (host_of(url), session)
        if self._entered.get(who, float("inf")) <= asked:
            del self._entered[who]
            self._left.add(who)

    def forget(self, session: str) -> None:
        """Begin a session anew, so that it is logged in nowhere."""
        for who in [who for who in self._entered if who[1] == session]:
            del self._entered[who]
            if not self._locks[who].locked():
                del self._locks[who]
            self._until.pop(who, None)
            self._left.discard(who)


#: A host, and the session that is logged in there.
_Who = tuple[str, str]


async def _run(plan: LogInPlan, ask: Ask, name: str) -> Session:
    session = Session(plan.url, ask, plan.issuer, name)
    try:
        async with asyncio.timeout(plan.deadline) as limit:
            is_in = await plan.function(session)
    except TimeoutError as error:
        late = f"it took longer than its deadline of {plan.deadline:g} s" if limit.expired() else str(error)
        raise _failure(plan, plan.place, late) from None
    except Exception as error:
        told = raised("log-in", error, plan.place)
        raise _failure(plan, told.place, str(error) if isinstance(error, UsageError) else told.error) from None
    if is_in is False:
        raise _failure(plan, plan.place, _NOT_IN)
    return session


def _failure(plan: LogInPlan, place: str, reason: str) -> ComponentFailed:
    return ComponentFailed(f"{place}: the log-in at {plan.url} failed: {reason}")


# A protocol module in front of another: it runs the log-in of a host before the first page of that host. The fetch component
# gives it the tasks of a spider that logs in; the module behind it fetches them.


class EnteringModule(Provider[NoSettings]):
    """Logs in to a site first, then fetches with the module behind it. Implements
    `fetcher.contract.RequestSender`."""

    behind: Uses[LogInSender]
    logins: Uses[LogIns]

    async def fetch(self, task: Task) -> Response:
        """See the contract. Raises ComponentFailed where the log-in fails."""
        await self._enter(task)
        return await self.behind.fetch(task)

    async def send(self, task: Task) -> Response:
        """See the contract. Raises as :meth:`fetch`."""
        await self._enter(task)
        return await self.behind.send(task)

    async def _enter(self, task: Task) -> None:
        if task.relation != ROBOTS:
            session = "" if task.request is None else task.request.session
            await self.logins.enter(task.url, self.behind.send, self.behind, self.behind.grant, session)


class TokenGrant:
    """The log-in that asks a server for tokens: OAuth 2.0 by client credentials or a refresh token (RFC 6749, 4.4 and 6). It reads
    the secret each time, so that the secret stays only where the person keeps it. The token goes with the requests to its
    site (:meth:`Session.bear`)."""

    def __init__(self, token_url: str, client: str, secret: str, scope: str, refresh_token: str) -> None:
        """Check what a person gave; the two secrets are references, `$NAME` or `@FILE`. Raises UsageError: the URL is not
        valid, or a secret must not be sent to it. Raises SettingError: a secret is missing."""
        from gossamer.fetcher.authentication import secret_of  # few spiders have tokens

        try:
            self.url = canonical(token_url)
        except UnreadableUrl as error:
            raise UsageError(f"token_url={token_url!r}: {error}") from None
        if scheme_of(self.url) != "https" and host_of(self.url) not in _LOOPBACK:
            raise UsageError(f"token_url={token_url!r}: a secret is sent over https alone")
        self._client = client
        self._secret = secret
        self._scope = scope
        self._refresh = refresh_token
        self._newer = ""
        """A refresh token that the server gave in the place of the one before."""
        self._read = secret_of
        for reference in filter(None, (secret, refresh_token)):
            secret_of(reference)

    def __repr__(self) -> str:
        return f"<TokenGrant of {self.url}>"

    async def enter(self, session: Session) -> None:
        """Ask for a token, and bear it. Raises UsageError: the server refuses, or its answer holds no token. The message quotes
        the answer."""
        fields = {"grant_type": "client_credentials"}
        if self._refresh:
            fields = {"grant_type": "refresh_token", "refresh_token": self._newer or self._read(self._refresh)}
        if self._scope:
            fields["scope"] = self._scope
        headers = {"Accept": "application/json"}
        if self._secret:
            pair = f"{quote_plus(self._client)}:{quote_plus(self._read(self._secret))}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            fields["client_id"] = self._client
        page = await session.send(Request(self.url, body=fields, headers=headers, redirects="keep"))
        try:
            told = page.json()
        except ValueError:
            told = None
        told = told if isinstance(told, dict) else {}
        token, kind = told.get("access_token"), told.get("token_type")
        if page.status != 200 or not isinstance(token, str) or str(kind).lower() != "bearer":
            reason = told.get("error_description") or told.get("error") or "no bearer token is in its answer"
            raise UsageError(f"{self.url} gives no token (status {page.status}): {str(reason)[:_TOLD]!r}")
        newer = told.get("refresh_token")
        if isinstance(newer, str) and self._refresh:
            self._newer = newer
        seconds = told.get("expires_in")
        session.bear(token, seconds if isinstance(seconds, int | float) and seconds > 0 else 0.0)
