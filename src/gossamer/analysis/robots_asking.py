"""Which URLs a site's robots.txt allows, asked without a crawl.

Place in the flow: `gossamer robots` asks here. The gate (:mod:`gossamer.frontier.robots`) and the protocol module of a crawl
are put together without its ring, so that the verdict is the one that a crawl would reach.
"""

from collections.abc import Sequence
from typing import Self

import msgspec

from gossamer.engine.unit import Clock, SystemClock
from gossamer.fetcher.dns import ResolverSheet, SystemResolver
from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.request import HttpSheet
from gossamer.frontier.robots.contract import RobotsRuling, RobotsVerdict
from gossamer.frontier.robots.provider import ObeyRobots, RobotsSheet
from gossamer.frontier.robots.rules import MAX_BYTES
from gossamer.values.addresses import place_of
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.task import ROBOTS, Task
from gossamer.values.url import canonical, endpoint_of, host_of, scheme_of, site_of

#: Seconds of waiting between two requests to a site that are made at once when a person waits for the answer: the
#: pause before the second round. A longer wait is an answer.
_PATIENCE = 5.0


class RobotsAsking:
    """Asks each site for its robots.txt once, as a crawl would, and says what a crawl would do with a URL."""

    def __init__(self, agent: str, resolve: Sequence[str] = (), contact: str = "") -> None:
        """Nothing is opened yet. Without `contact`, only hosts of this machine are asked; `resolve` is of
        `PATTERN=ADDRESS[:PORT]` entries."""
        self._clock: Clock = SystemClock()
        self._robots = ObeyRobots(RobotsSheet(agent=agent))
        self._resolver = SystemResolver(ResolverSheet(resolve=tuple(resolve), only_loopback=not contact))
        self._http = HttpModule(HttpSheet(max_body=MAX_BYTES + 1, contact=contact))
        self._http.resolver = self._resolver

    async def __aenter__(self) -> Self:
        await self._http.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.stop()
        await self._resolver.stop()

    async def judge(self, url: str) -> RobotsVerdict:
        """The verdict on a canonical URL that a person gave; a site that cannot be asked now gives `wait`.
        Raises UsageError: the site's address is not one that may be asked; says why."""
        self._open_as_seed(url)
        task = Task(url, host_of(url))
        while True:
            verdict = self._robots.judge(task, self._clock.now())
            if verdict.ruling is RobotsRuling.WAIT and verdict.until - self._clock.now() <= _PATIENCE:
                await self._clock.sleep(max(0.0, verdict.until - self._clock.now()))
            elif verdict.ruling is RobotsRuling.FETCH_FIRST:
                await self._ask(site_of(url), verdict.url)
            else:
                return verdict

    def _open_as_seed(self, url: str) -> None:
        """Hosts that a person gives may be loopback (design question 8)."""
        host, port = endpoint_of(url)
        seed = place_of(host, port)
        before = self._resolver.sheet
        if seed not in before.seed_hosts:
            self._resolver.sheet = msgspec.structs.replace(before, seed_hosts=(*before.seed_hosts, seed))
            self._resolver.changed(before)

    async def _ask(self, site: str, url: str) -> None:
        response = await self._http.fetch(Task(url, host_of(url), source=site, relation=ROBOTS))
        if response.outcome is Outcome.ADDRESS_REFUSED and site_of(url) == site:
            raise UsageError(
                f"{url} is not asked for ({response.error}); requests beyond this machine have to name a contact for "
                f"site owners: give --contact URL_OR_MAIL, or set GOSSAMER_CONTACT, or judge by a --file"
            )
        self._robots.learned(site, response, self._clock.now())


def url_of_site(text: str) -> str:
    """The canonical form of a URL whose site can have a robots.txt. Raises UsageError: it is no URL, or one of another scheme."""
    try:
        url = canonical(text)
    except UnreadableUrl as error:
        hint = f"; did you mean http://{text}?" if "://" not in text else ""
        raise UsageError(f"{error}{hint}") from None
    if scheme_of(url) not in ("http", "https"):
        raise UsageError(f"{text[:200]!r}: robots.txt is asked for at http and https URLs only")
    return url
