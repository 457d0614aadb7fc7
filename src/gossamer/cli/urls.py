"""`gossamer normalize` and `gossamer robots`: what a URL is to a crawl, whether it may be fetched, and which rule says so.

Place in the flow: the command line's door to :mod:`gossamer.frontier.robots`, offline with a file; otherwise gate and protocol
module are put together without a crawl, to ask a few sites (:class:`Asking`).
"""

import asyncio
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import click
import msgspec

from gossamer.cli.helping import option
from gossamer.cli.saying import given_urls, shown, tell
from gossamer.crawls.identity import contact_of
from gossamer.crawls.machine import loop_factory
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.clock import Clock, SystemClock
from gossamer.fetcher.dns import ResolverSheet, SystemResolver
from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.request import HttpSheet
from gossamer.frontier.robots.contract import RobotsRuling, RobotsVerdict
from gossamer.frontier.robots.provider import ObeyRobots, RobotsSheet
from gossamer.frontier.robots.rules import MAX_BYTES, Decision, PathForm, Rules, parse
from gossamer.parsing.links import parameters_of
from gossamer.values.addresses import place_of
from gossamer.values.errors import UnreadableUrl, UsageError
from gossamer.values.outcome import Outcome
from gossamer.values.task import ROBOTS, Task
from gossamer.values.url import canonical, endpoint_of, host_of, scheme_of, site_of
from gossamer.values.url_normalization import STEPS, USUAL, Normaliser, chosen

#: Seconds of waiting between two requests to a site that are made at once when a person waits for the answer: the
#: pause before the second round. A longer wait is an answer.
_PATIENCE = 5.0


class Asking:
    """Asks each site for its robots.txt once, as a crawl would, and says what a crawl would do with a URL."""

    def __init__(self, agent: str, resolve: Sequence[str] = (), contact: str = "") -> None:
        """Nothing is opened yet.

        Args:
            resolve: `PATTERN=ADDRESS[:PORT]` entries.
            contact: URL or mail address for site owners; without one, only hosts of this machine are asked.
        """
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


# `gossamer normalize`: the form in which a crawl would keep these URLs. The command line's door to :mod:`gossamer.values.url` and
# :mod:`gossamer.values.url_normalization`, without a crawl.


@click.command(
    epilog=f"Steps: {', '.join(STEPS)}; usual: {', '.join(USUAL)}. Exit status: 0 all are URLs, 2 a line is no URL."
)
@click.argument("urls", metavar="[URL]...", nargs=-1)
@option("--base URL", "Resolve relative URLs against this one.")
@option(
    "--normalise --normalize wishes STEP...",
    "Also take this step (sort-query), or leave it out (no-tracking), as in a crawl (repeatable).",
)
@option("--parameters FILE", "Leave out the session and tracking parameters that this file lists.", default="")
def normalize(urls: tuple[str, ...], base: str | None, wishes: tuple[str, ...], parameters: str) -> int:
    """Show the canonical form of URLs: the form that a crawl fetches and compares.

    It prints a line for each URL: its canonical form, or `error:` and the reason why it has none. Without URLs, or with
    `-`, it reads them from standard input, one a line. docs/urls.md explains the steps.

    \b
    gossamer normalize 'HTTP://Example.org:80/a/../%7Ex?utm_source=y#top'
    gossamer normalize --base http://example.org/dir/ ../x < links.txt
    """
    try:
        normalise = Normaliser(chosen(wishes), parameters_of(parameters))
    except ValueError as error:
        raise UsageError(f"--normalise: {error}") from None
    if base is not None:
        try:
            base = canonical(base)
        except UnreadableUrl as error:
            raise UsageError(f"--base: {error}") from None
    status = 0
    for text in given_urls(urls):
        try:
            print(shown(normalise(canonical(text, base))))
        except UnreadableUrl as error:
            print(f"error: {shown(str(error))}")
            status = 2
    return status


@click.command()
@click.argument("urls", metavar="[URL]...", nargs=-1)
@option("--agent", "Look for this product token in robots.txt.", default="Gossamer", show_default=True)
@option("--file file ROBOTS_TXT", "Judge by this file (`-`: standard input), without a request.")
@option(
    "--resolve PATTERN=ADDRESS...", "Ask ADDRESS[:PORT] for hosts that match, as `*.sim=127.0.0.1:8080` (repeatable)."
)
@option(
    "--contact URL_OR_MAIL",
    "Give site owners this URL or mail address as your contact; GOSSAMER_CONTACT sets it too.",
    default="",
)
def robots(urls: tuple[str, ...], agent: str, file: str | None, resolve: tuple[str, ...], contact: str) -> int:
    """Show for each URL whether robots.txt allows it, and by which rule.

    It prints a line for each URL: allowed or denied, the URL, and the rule with its line number, separated by tabs.
    Without URLs, or with `-`, it reads them from standard input, one a line.

    With --file, URLs are compared byte for byte as they are written, as Google's parser does. Without --file, each
    host's robots.txt is fetched once, and URLs are brought to their canonical form first, as in a crawl. Hosts beyond
    this machine are asked only with a contact.

    Exit status: 0 all went well, 2 wrong usage, 4 a robots.txt could not be fetched.
    """
    if file == "-" and _from_input(urls):
        raise click.UsageError("standard input cannot be both the robots.txt and the list of URLs")
    if file is not None:
        return _offline(_read(file), agent, given_urls(urls))
    if not agent:
        raise click.UsageError("--agent: give the product token that robots.txt may name, as Gossamer")
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_ask(Asking(agent, resolve, contact_of(CrawlOptions(contact=contact))), given_urls(urls)))


def _from_input(urls: tuple[str, ...]) -> bool:
    return not urls or "-" in urls


def _read(file: str) -> Rules:
    """The rules of a file or of standard input. Raises UsageError: it cannot be read."""
    try:
        if file == "-":
            data = sys.stdin.buffer.read(MAX_BYTES)
        else:
            with Path(file).open("rb") as opened:
                data = opened.read(MAX_BYTES)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from None
    return parse(data, PathForm.BYTES)


def _offline(rules: Rules, agent: str, urls: Iterable[str]) -> int:
    for url in urls:
        _tell(url, rules.decide(agent, url))
    return 0


def _tell(url: str, decision: Decision) -> None:
    rule = f"{decision.rule} (line {decision.line})" if decision.line else decision.rule or "no rule"
    print("allowed" if decision.allowed else "denied", shown(url), shown(rule), sep="\t")


async def _ask(asking: Asking, urls: Iterable[str]) -> int:
    status = 0
    async with asking:
        for text in urls:
            try:
                url = _canonical(text)
                verdict = await asking.judge(url)
            except UsageError as error:
                tell(str(error))
                status = 2
                continue
            _tell(url, _decision(verdict))
            if verdict.ruling is RobotsRuling.WAIT:
                status = status or 4
    return status


def _canonical(text: str) -> str:
    try:
        url = canonical(text)
    except UnreadableUrl as error:
        hint = f"; did you mean http://{text}?" if "://" not in text else ""
        raise UsageError(f"{error}{hint}") from None
    if scheme_of(url) not in ("http", "https"):
        raise UsageError(f"{text[:200]!r}: robots.txt is asked for at http and https URLs only")
    return url


def _decision(verdict: RobotsVerdict) -> Decision:
    """What a crawl would do now: while a robots.txt cannot be had, nothing of the site is fetched."""
    return Decision(verdict.ruling is RobotsRuling.ALLOWED, verdict.rule, verdict.line)
