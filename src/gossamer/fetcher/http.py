"""The protocol module for http and https: from a task to a response, by libcurl.

Place in the flow: between the fetch component, which chooses a module by scheme, and the resolver, which says where to connect. One
:mod:`~gossamer.fetcher.driver` on the running loop drives all transfers and keeps connections alive between them; the
handles come from a pool of ours (:mod:`~gossamer.fetcher.transfer`). libcurl asks no name server, follows no redirect, uses
no proxy, decodes nothing and remembers nothing; the deadlines are kept here, by the unit's clock.
"""

from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pycurl

from gossamer.documents.content_coding import Keeping
from gossamer.engine.ends import Uses, UsesMany
from gossamer.engine.gate import Crowd, Gate
from gossamer.expressions.contract import VisitFilter
from gossamer.fetcher.answer import UNTIDY, Asked, answer_of, unwanted, verdict_on
from gossamer.fetcher.authentication import Authentication
from gossamer.fetcher.contract import Endpoint, ProxyHealth, Resolver
from gossamer.fetcher.driver import CurlModule, Valve, affordable
from gossamer.fetcher.proxies import PROXY_REFUSES, Proxies, Proxy
from gossamer.fetcher.request import HttpSheet, constants, trusted
from gossamer.fetcher.transfer import DROPPED, MISLED, Transfer
from gossamer.values import url as urls
from gossamer.values.errors import AddressRefused, ResolutionFailed
from gossamer.values.outcome import TRANSIENT, Note, Outcome
from gossamer.values.request_identity import Requested
from gossamer.values.task import ROBOTS, Task
from gossamer.values.visit import Response

if TYPE_CHECKING:
    from gossamer.fetcher.untidy import Bare

#: Outcomes of a robots.txt request after which the host's next address is asked.
_ROBOTS_FAILED = TRANSIENT - {Outcome.RATE_LIMITED}

#: Further addresses of a host that are tried when the first takes no connection: one more of each kind is enough.
_SPARE_ADDRESSES = 2

#: Further proxies by which a request goes when the first did not carry it.
_SPARE_PROXIES = 2

#: Where a request goes whose proxy is chosen only when it is sent.
_BY_PROXY = Endpoint("", 0)

#: Connections of a pool before more requests than these have come at once: those that idle spare a host a new one.
_CONNECTIONS = 256

#: Seconds before a server whose answer libcurl refuses is asked once more in another way: the delay of a crawl that knows no other.
_AGAIN = 1.0

#: Servers that are remembered for having dropped a connection; then all are forgotten, and may cost one try again.
_MOST_DROPPERS = 10_000


class HttpModule(CurlModule[HttpSheet, Transfer]):
    """Fetches http and https URLs, and sends requests to them. Implements `RequestSender` and `LogInSender`."""

    resolver: Uses[Resolver]
    gates: UsesMany[VisitFilter]

    _slots: Gate

    def __init__(self, sheet: HttpSheet | None = None) -> None:
        self.gates = {}
        self._idle: list[Transfer] = []
        self._droppers: set[tuple[str, int]] = set()
        """Servers, by address and port, that have dropped a connection that was used again."""
        self._untidy: set[tuple[str, int]] = set()
        """Hosts, by name and port, whose heads libcurl does not read: another host of their server may write tidy ones."""
        self._authentication = Authentication(self._now)
        self._proxies: Proxies | None = None
        self._share = 1.0
        super().__init__(sheet)

    def read_sheet(self) -> None:
        sheet = self.sheet
        self._authentication.read(sheet)
        if self._proxies is None or self._proxies.entries != sheet.proxy:
            self._proxies = Proxies(sheet.proxy, self._monotonic) if sheet.proxy else None
        self._shared = constants(sheet, is_proxied=self._proxies is not None)
        self._valve = Valve(sheet.bandwidth, self._monotonic, self._go_on) if sheet.bandwidth else None
        self.take_bandwidth(self._share)
        self._keeping = Keeping(sheet.max_body, sheet.spool_above, sheet.spool)

    # By the clock that the unit has when it is asked.

    def _now(self) -> float:
        return self.clock.now()

    def _monotonic(self) -> float:
        return self.clock.monotonic()

    def proxies(self) -> list[ProxyHealth]:
        """How the proxies do; none where there are none."""
        return self._proxies.health() if self._proxies is not None else []

    def take_bandwidth(self, share: float) -> None:
        """Take in so many times the `bandwidth` of the settings, if there is one: other agents take in as much less."""
        self._share = share
        if self._valve is not None:
            self._valve.lend(share)

    @property
    def bytes_taken(self) -> float:
        """Bytes of bodies that came in while there was a bandwidth; those of one that is under way count too."""
        return 0.0 if self._valve is None else self._valve.taken

    def changed(self, before: HttpSheet) -> None:
        """New requests go by the new sheet; handles made under the old one are not used again."""
        super().changed(before)
        self._authentication.open()
        self._drop_idle()

    async def start(self) -> None:
        """Open libcurl's pool of connections and begin to watch the clock."""
        self._slots = Gate(self._pool(self.sheet.connections or _CONNECTIONS))
        self._authentication.open()

    def _pool(self, connections: int) -> int:
        """Let the pool have this many connections, or as many as the system affords. Returns their number."""
        most = self._most = affordable(connections)
        self.driver().setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, most)
        self.driver().setopt(pycurl.M_MAXCONNECTS, most)
        return most

    async def _entered(self) -> Crowd:
        """Wait for a connection to be free. Unless a person has set their number, it grows with the requests at once."""
        before = self._most
        if not self.sheet.connections and self._pool(2 * before) > before:
            self._slots.resize(self._most)
        return await self._slots.enter()

    async def stop(self) -> None:
        """End what is under way and close every connection."""
        await super().stop()
        self._drop_idle()
        self._authentication.close()

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def send(self, task: Task) -> Response:
        return await self.fetch(task, task.request)

    def has_entered(self, url: str, session: str = "") -> bool:
        return self._authentication.has_entered(url, session)

    def grant(self, url: str, field: str, session: str = "") -> None:
        self._authentication.grant(url, field, session)

    def note_entered(self, url: str, session: str = "") -> None:
        self._authentication.note_entered(url, session)

    def renew(self, session: str) -> None:
        self._authentication.renew(session)
        if self._proxies is not None:
            self._proxies.renew(session)

    async def fetch(self, task: Task, sent: Requested | None = None) -> Response:
        started, url = self.clock.now(), task.url
        if not url.startswith(("http://", "https://")):
            return Response(Outcome.SCHEME_REFUSED, started=started, error="not an http or https URL")
        began = self.clock.monotonic()
        try:
            host, port = urls.endpoint_of(url)
            if self._proxies is None:
                endpoint = await self.resolver.resolve(host, port)
            else:
                # The proxy looks the name up; names that can be refused without that are refused before.
                self.resolver.judge(host, port)
                endpoint = _BY_PROXY
        except ResolutionFailed as error:
            return Response(Outcome.DNS_FAILED, started=started, error=str(error))
        except AddressRefused as error:
            return Response(Outcome.ADDRESS_REFUSED, started=started, error=str(error))
        jar = self._authentication.jar_of(task) if self._authentication.has_cookies else None
        # Most requests of most crawls prove nothing, and ask for a page that is not known.
        is_bare = self._authentication.says_nothing and sent is None and not (task.etag or task.last_modified)
        fields = ((), ()) if is_bare else self._authentication.fields_of(task, sent, jar)
        gates = self.gates.get("body", ())
        wanted = partial(unwanted, gates, task, self.metrics) if gates and task.relation != ROBOTS else None
        asked = Asked(url, started, self.clock.monotonic() - began, *fields, wanted, sent)
        slot = self._slots.try_enter() or await self._entered()
        try:
            is_robots = task.relation == ROBOTS
            if self._proxies is None:
                response = await self._fetch_from(asked, endpoint, is_robots=is_robots)
            else:
                session = "" if task.request is None else task.request.session
                response = await self._fetch_by(self._proxies, asked, session, is_robots=is_robots)
        finally:
            self._slots.leave(slot)
        return response if jar is None else self._authentication.received(task, jar, response, started)

    async def _fetch_by(self, proxies: Proxies, asked: Asked, session: str, *, is_robots: bool) -> Response:
        """Go by the proxy whose turn it is; where it does not carry the request, by others."""
        for left in reversed(range(min(len(proxies), 1 + _SPARE_PROXIES))):
            proxy = proxies.choose(session)
            try:
                endpoint = await proxy.endpoint()
            except ResolutionFailed as error:
                proxies.failed(proxy)
                response = Response(Outcome.DNS_FAILED, started=asked.started, error=str(error))
            else:
                response = await self._fetch_from(asked, endpoint, is_robots=is_robots, proxy=proxy)
            # One that carried it was met, and so was its server.
            if not left or not proxies.rests(proxy) or (response.is_met and response.status != PROXY_REFUSES):
                return response
        raise AssertionError("there is a proxy")

    async def _fetch_from(
        self, asked: Asked, endpoint: Endpoint, *, is_robots: bool, proxy: Proxy | None = None
    ) -> Response:
        """Try the host's addresses in turn, as long as they take no connection; for a robots.txt also as long as they fail, for
        one of them may know what the others do not (Agarwal and others, 3.4). Of failures, that of an address which took the
        connection says most.
        """
        response = await self._attempt(asked, endpoint.address, endpoint.port, proxy)
        for address in endpoint.others if is_robots else endpoint.others[:_SPARE_ADDRESSES]:
            if not _took_none(response) and not (is_robots and response.outcome in _ROBOTS_FAILED):
                break
            other = await self._attempt(asked, address, endpoint.port, proxy)
            response = other if _took_none(response) or not _took_none(other) else response
        return response

    async def _attempt(self, asked: Asked, address: str, port: int, proxy: Proxy | None) -> Response:
        """One request to one address. However it ends, the handle goes back to the pool, clean."""
        host = urls.endpoint_of(asked.url)
        if host in self._untidy and proxy is None and asked.request is None:
            return await self._ask_bare(asked, address, port)
        transfer = self._idle.pop() if self._idle else Transfer(self._shared, self._valve)
        try:
            fields = asked.shown + asked.secret
            now, single = self.clock.monotonic(), (address, port) in self._droppers
            if asked.request is not None:
                # On a connection that was used before, it could not be told whether it came through.
                single = single or not asked.request.is_safe
                transfer.carry(asked.request)
            if proxy is not None and self._proxies is not None:
                single = single or self._proxies.is_shared(proxy)
            transfer.begin(
                asked.url, address, port, self._keeping, now, fields, asked.wanted, proxy=proxy, single=single
            )
            ending = await self.ended(transfer)
            if transfer.verdict is DROPPED:
                # It may close each connection after its answer without a word: from now on each request gets one of its own.
                self.metrics.counters["dropped"] += 1
                self._remember(self._droppers, address, port)
            if ending[1] in UNTIDY and proxy is None and asked.request is None:
                self._remember(self._untidy, *host)
                self.metrics.counters["requests"] += 1
                await self.clock.sleep(_AGAIN)
                again = await self._ask_bare(asked, address, port)
                self.metrics.count(f"note:{Note.ASKED_AGAIN}")
                return msgspec.structs.replace(again, notes=(*again.notes, Note.ASKED_AGAIN))
            response = self._response(transfer, asked, address, ending)
            if proxy is not None and self._proxies is not None:
                self._proxies.judge(proxy, transfer, ending)
            return response
        finally:
            driver = self._multi or self.driver()
            driver.discard(transfer.curl)
            if transfer.clear() and transfer.shared is self._shared and not driver.closed:
                self._idle.append(transfer)
            else:
                transfer.close()

    def _remember(self, servers: set[tuple[str, int]], host: str, port: int) -> None:
        if len(servers) >= _MOST_DROPPERS:
            servers.clear()
        servers.add((host, port))

    async def _ask_bare(self, asked: Asked, address: str, port: int) -> Response:
        """One request to a server whose heads libcurl does not read; a handle keeps what comes, and is not used again."""
        from gossamer.fetcher.untidy import Bare, ask_untidy, context_of  # few servers write such

        asked = msgspec.structs.replace(asked, shown=(*asked.shown, "Connection: close"))
        transfer = Bare(self._shared)
        try:
            transfer.begin(asked.url, address, port, self._keeping, self.clock.monotonic(), (), asked.wanted)
            sent = transfer.request_head(asked.url, asked.shown + asked.secret)
            tls = context_of(trusted(self.sheet.ca_file), verify=self.sheet.verify)
            metered = partial(self._metered, transfer)
            asking = ask_untidy(transfer, asked.url, sent, (address, port), tls, metered, self._monotonic)
            return self._response(transfer, asked, address, await self.ended(transfer, asking))
        finally:
            transfer.close()

    async def _metered(self, transfer: "Bare", size: int) -> None:
        """Wait until the bandwidth of the crawl allows so many bytes."""
        if self._valve is not None and (wait := self._valve.take(size)) > 0.0:
            transfer.keep_waiting(wait)
            await self.clock.sleep(wait)

    def _go_on(self, transfer: Transfer) -> None:
        """The bandwidth allows the piece that a transfer was stopped at, if it still waits for that."""
        future = self._live.get(transfer)
        if future is None or future.done() or not transfer.is_stopped:
            return
        try:
            transfer.go_on(self.clock.monotonic())
        except pycurl.error as error:
            future.set_exception(error)

    def _response(self, transfer: Transfer, asked: Asked, address: str, ending: tuple[int, str]) -> Response:
        now = self.clock.monotonic()
        elapsed = now - transfer.began - transfer.held(now)
        counters = self.metrics.counters
        counters["requests"] += 1
        counters["body_bytes"] += transfer.size
        if connects := transfer.curl.getinfo(pycurl.NUM_CONNECTS):
            counters["connects"] += connects
        if transfer.misled(address):
            return Response(Outcome.ADDRESS_REFUSED, started=asked.started, elapsed=elapsed, error=MISLED)
        if transfer.lines:
            transfer.judge_head()
        # Behind a proxy, the server's own address is known to the proxy alone.
        is_direct, is_timed = self._proxies is None, self.sheet.timings
        verdict, server = verdict_on(transfer, ending), address if is_direct else ""
        response = answer_of(
            transfer, asked, verdict, self._keeping, server, elapsed, is_timed=is_timed, is_direct=is_direct
        )
        for note in response.notes:
            self.metrics.count(f"note:{note}")
        return response


def _took_none(response: Response) -> bool:
    return response.outcome is Outcome.CONNECT_FAILED and not response.address and not response.is_met
