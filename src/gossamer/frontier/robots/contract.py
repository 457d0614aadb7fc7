"""Robots exclusion (RFC 9309), as the frontier sees it: the gate, and the answers that the crawls of one user share.
Suites: `gossamer.testing.check_robots`, `check_robots_answers`.

The gate fetches nothing. Before the frontier hands a task out, it asks the gate; when robots.txt is needed first, it
hands out that URL instead, as an ordinary task (relation `ROBOTS` of `values.task`) that goes before all others of its host, and
brings the answer back. A *site* is a scheme, host and port, named by `site_of` of `values.url`.
"""

from enum import StrEnum
from typing import Protocol

import msgspec

from gossamer.values.task import Task
from gossamer.values.visit import Response


class RobotsRuling(StrEnum):
    """The action for a task."""

    ALLOWED = "allowed"
    DENIED = "denied"
    FETCH_FIRST = "fetch_first"
    WAIT = "wait"


class RobotsVerdict(msgspec.Struct, frozen=True, gc=False):
    """A ruling with its reason."""

    ruling: RobotsRuling
    rule: str = ""
    """The rule that decided, as `Disallow: /private`, or in words what did instead."""
    line: int = 0
    """The rule's line in robots.txt, from 1; 0 where no rule decided."""
    url: str = ""
    """Of `fetch_first`: the URL to fetch, which may be of another host after a redirect."""
    address: int = 0
    """Of `fetch_first`: which of the host's addresses to begin with, from 0."""
    etag: str = ""
    last_modified: str = ""
    """Of `fetch_first`: validators of the copy that is known, so that a server may say that it still holds."""
    until: float = 0.0
    """Of `wait`: seconds since the epoch."""
    delay: float = 0.0
    """Seconds between two requests that the site asks for (`Crawl-delay`); 0 where it does not say."""
    usage: tuple[str, ...] = ()
    """The site's words about the use of its content (`Content-Usage`, `Content-Signal`), to be recorded."""
    is_news: bool = False
    """The gate has just learnt the answer from another crawl: :meth:`RobotsGate.state` has to be kept, as after a lesson."""


class Lesson(msgspec.Struct, frozen=True):
    """The findings of an answer: for the host's row, the log, and the crawl of sitemaps."""

    state: str
    """The state of the site, in one word."""
    event: str
    """The result of the request, in one word."""
    settled: bool
    """Its URLs can be judged now; otherwise the next verdict says what to do."""
    delay: float = 0.0
    is_slow: bool = False
    """The delay is so long that people should know of it."""
    sitemaps: tuple[str, ...] = ()
    """As the file wrote them, each once."""


class RobotsGate(Protocol):
    """Decides which tasks may be handed out.

    Promises:
        1. As long as a site's robots.txt is not known, none of its URLs is allowed; no answer of a site raises an
           error.
        2. Rules of one site apply to no other site.
        3. Times come with the questions: equal questions have equal answers, until something is learned.
        4. A robots.txt is used for at most a day; then it is requested again.
        5. A gate to which a state was restored judges as the one that gave it away, in another process, too.
    """

    def judge(self, task: Task, now: float) -> RobotsVerdict:
        """May this task be handed out now, and if not, what is to be done?

        Args:
            task: of any scheme; only http, https and ftp have robots.txt.
            now: seconds since the epoch.
        """

    def learned(self, site: str, response: Response, now: float, addresses: int = 1) -> Lesson:
        """The request that a verdict asked for has ended, in whatever way.

        Args:
            site: for which it was made, though a redirect may have led elsewhere.
            response: all of it.
            now: seconds since the epoch.
            addresses: how many the host has, so that each is tried.
        """

    def state(self, site: str) -> bytes:
        """The state to keep, so that this site can be judged after a restart; empty if nothing is known about it."""

    def restore(self, site: str, state: bytes) -> None:
        """Restore a state from :meth:`state`. If it cannot be read, nothing is known about the site."""

    def forget(self, site: str) -> None:
        """Free the memory that this site takes."""


class RobotsAnswers(Protocol):
    """States of sites, by a name that the gate makes, for any number of processes at once.

    A robots gate looks here before it lets a robots.txt be requested, and keeps here what came of its own requests. The states
    are the gate's; nothing here reads them. A failure here costs one more request, never a wrong verdict and never the crawl.

    Promises:
        1. A state that is found is one that was kept under this name, byte for byte; one that was damaged is not found.
        2. Of two that are kept under one name, the later one is found.
        3. While one process asks for a site, the others are told to wait; a process that has died asks for nothing.
        4. No call raises an error or waits for longer than a moment, whatever became of the place where states lie.
        5. The place stays within its bound: the states that were kept first go first.
    """

    def find(self, name: str) -> bytes:
        """The state that was kept under this name; empty if there is none."""

    def keep(self, name: str, state: bytes, now: float) -> None:
        """Keep a state; `now` is in seconds since the epoch."""

    def claim(self, name: str, now: float) -> float:
        """Say that this process is about to ask the site itself.

        Args:
            name: of the state that will come of it.
            now: seconds since the epoch.

        Returns:
            0 if no other process does; otherwise the seconds after which it is time to look again.
        """

    def release(self, name: str) -> None:
        """This process asks the site no more, whatever came of it."""
