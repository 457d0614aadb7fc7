"""The pages of one crawler: every URL passes the owner's sheet and the site's robots.txt before a source is asked (decision 82).

Place in the flow: the runner asks here (:class:`~gossamer.mobile.running.Fetch`). A refusal has a name, is counted, and is
remembered with its first examples for the owner. The crawler itself learns only that the URL is blocked.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import msgspec

from gossamer.engine.unit import Clock
from gossamer.expressions.compiling import Expression
from gossamer.frontier.robots.contract import RobotsGate, RobotsRuling, RobotsVerdict
from gossamer.mobile.contract import PageSource, Withheld
from gossamer.mobile.sources.owner import OwnerLimits
from gossamer.values.outcome import DOCUMENTS, Outcome
from gossamer.values.task import Task
from gossamer.values.url import host_of, scheme_of, site_of
from gossamer.values.visit import Response

#: First URLs of each refusal that are kept for the owner.
MAX_EXAMPLES = 5

#: Sites whose robots.txt is remembered for the owner: an archive answers for every host that a crawler thinks of.
MAX_SITES = 10_000

#: Requests for one site's robots.txt at one time: the file, and five redirects (RFC 9309, 2.3.1.2), with room for a 5xx.
_MAX_ASKED = 10

#: The reasons for which a URL is refused, by name: the words that an owner reads.
REASONS: Mapping[str, str] = {
    "not_served": "the host is not served here",
    "refused": "an expression of the owner's sheet refuses it",
    "robots_denied": "the site's robots.txt denies it",
    "robots_unreachable": "the site's robots.txt cannot be had, so nothing of the site may be fetched",
    "requests": "the crawler has used up its requests",
    "bytes": "the crawler has used up its bytes",
    "time": "the crawler has used up its time",
    "unsafe_path": "the path does not name a file below the root",
    "dotfile": "a name in the path begins with a dot",
    "server_side": "a server runs such files and does not show them; serve the host by its local server",
    "private": "not every user of this machine may read it",
    "outside": "a symbolic link leads out of the root",
    "htaccess": "a directory has .htaccess; serve the host by its local server, or name it in ignore_htaccess",
    "special": "it is neither a file nor a directory",
    "no_index": "the directory has no index file, and directories are never listed",
    "changed": "the file was replaced while it was opened",
    "damaged": "the stored record cannot be read",
}


class ServedSite(msgspec.Struct):
    """A host that is served, to all crawlers together."""

    source: PageSource
    scheme: str = ""
    """URLs of the other scheme are redirected to it; empty: both are served."""
    delay: float | None = None
    """Seconds between two requests at least; None where no server is asked, so that no pace is kept."""
    free_at: float = 0.0
    """When it may be asked again, on the monotonic clock."""
    turn: AbstractContextManager[object] = nullcontext()
    """Held while it is asked: a lock, where crawlers in several threads must not ask at once."""


class RefusalTally(msgspec.Struct):
    """How often something was refused, and what it was first."""

    count: int = 0
    examples: list[tuple[str, str]] = []
    """URL, and what exactly stood in the way."""


class RobotsNote(msgspec.Struct, frozen=True):
    """The result of a site's robots.txt."""

    state: str
    """In one word: `whole`, `missing`, ..."""
    sitemaps: tuple[str, ...] = ()


class GatedPages:
    """Answers for one crawler. Contract: :class:`~gossamer.mobile.running.Fetch`."""

    def __init__(
        self,
        sites: Callable[[str], ServedSite | None],
        robots: RobotsGate,
        clock: Clock,
        refusals: Sequence[Expression] = (),
        limits: OwnerLimits | None = None,
        rest: Callable[[float], None] = time.sleep,
        turn: AbstractContextManager[object] | None = None,
    ) -> None:
        """Begin with nothing used up. `sites` gives the site for `host` or `host:port`, None for one that is not served; `robots`
        may be shared, since what it has learned of a site is asked for once a day, and `turn` is held while it is asked: a lock,
        where crawlers in several threads share it. The clock is for robots.txt and the limit of time; a URL for which one of the
        `refusals` holds is refused; `rest` waits this many seconds."""
        self._sites = sites
        self._robots = robots
        self._clock = clock
        self._refusals = tuple(refusals)
        self._limits = limits or OwnerLimits()
        self._rest = rest
        self._turn = turn or nullcontext()
        self._began: float | None = None
        self._requests = 0
        self._bytes = 0
        self.refused: dict[str, RefusalTally] = {}
        self.robots: dict[str, RobotsNote] = {}
        """The results of robots.txt, by site; of the first :data:`MAX_SITES`."""

    def __call__(self, task: Task) -> Response:
        """The answer for `task.url`; `blocked`, `robots_denied` or `robots_unreachable` where it is refused."""
        return self._told(task.url, self._judged(task))

    def _judged(self, task: Task) -> Response | Withheld:
        if used_up := self._used_up():
            return used_up
        site = self._site(task.url)
        if site is None:
            return Withheld("not_served")
        for expression in self._refusals:
            if not expression.judge(task):
                return Withheld("refused", expression.source)
        if site.scheme and scheme_of(task.url) != site.scheme:
            location = f"{site.scheme}:{task.url.partition(':')[2]}"
            return Response(Outcome.REDIRECT, 301, headers=(("location", location),))
        verdict = self.verdict(task.url)
        if verdict.ruling is RobotsRuling.DENIED:
            line = f" (line {verdict.line})" if verdict.line else ""
            return Withheld("robots_denied", f"{verdict.rule}{line}")
        if verdict.ruling is not RobotsRuling.ALLOWED:
            return Withheld("robots_unreachable", verdict.rule)
        return self._asked(site, task.url, verdict.delay)

    def _used_up(self) -> Withheld | None:
        now = self._clock.monotonic()
        self._began = now if self._began is None else self._began
        limits = self._limits
        if self._requests >= limits.requests:
            return Withheld("requests", f"limit: {limits.requests}")
        if self._bytes >= limits.bytes:
            return Withheld("bytes", f"limit: {limits.bytes}")
        return Withheld("time", f"limit: {limits.time:g} s") if now - self._began >= limits.time else None

    def _asked(self, site: ServedSite, url: str, delay: float = 0.0) -> Response | Withheld:
        """Ask when the site is free, and no other crawler asks. No crawler holds the turn while it waits."""
        self._requests += 1
        while True:
            with site.turn:
                wait = 0.0 if site.delay is None else site.free_at - self._clock.monotonic()
                if wait <= 0:
                    answer = site.source.answer(url)
                    if site.delay is not None:
                        site.free_at = self._clock.monotonic() + max(site.delay, delay)
                    break
            self._rest(wait)
        if isinstance(answer, Response) and answer.outcome in DOCUMENTS:
            self._bytes += len(answer.document)
        return answer

    def verdict(self, url: str) -> RobotsVerdict:
        """The verdict of robots.txt on a served URL; reads that file first where it is not known."""
        task, name = Task(url, host_of(url)), site_of(url)
        for _ in range(_MAX_ASKED):
            with self._turn:
                verdict = self._robots.judge(task, self._clock.now())
            if verdict.ruling is not RobotsRuling.FETCH_FIRST:
                return verdict
            site = self._site(verdict.url)
            found = Withheld("not_served") if site is None else self._asked(site, verdict.url)
            answer = self._told(verdict.url, found)  # one that is withheld may forbid anything, so it closes the site
            with self._turn:
                lesson = self._robots.learned(name, answer, self._clock.now())
            if name in self.robots or len(self.robots) < MAX_SITES:
                self.robots[name] = RobotsNote(lesson.event, lesson.sitemaps)
        return RobotsVerdict(RobotsRuling.WAIT, "robots.txt leads nowhere")

    def _site(self, url: str) -> ServedSite | None:
        return self._sites(site_of(url).partition("://")[2])

    def _told(self, url: str, found: Response | Withheld) -> Response:
        """The answer to a crawler. A refusal is noted for the owner, and gives nothing to explore what it may not have."""
        if isinstance(found, Response):
            return found
        tally = self.refused.setdefault(found.reason, RefusalTally())
        tally.count += 1
        if len(tally.examples) < MAX_EXAMPLES:
            tally.examples.append((url, found.told))
        if found.reason == "robots_denied":
            return Response(Outcome.ROBOTS_DENIED)
        return Response(Outcome.ROBOTS_UNREACHABLE if found.reason == "robots_unreachable" else Outcome.BLOCKED)
