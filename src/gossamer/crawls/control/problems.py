"""The problems of a crawl, and the rules that find them.

Place in the flow: :data:`RULES` are pure functions of the value that `status` shows (:mod:`~gossamer.crawls.control.standing`);
`watch` and the dashboard show the same problems, the worst first. A rule looks nothing up and changes nothing. A new rule
stands in :data:`RULES`, and its case in the tests.
"""

import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Literal

import msgspec

from gossamer.engine.sheet import show_bytes, show_count, show_seconds
from gossamer.values.outcome import ERRORS, Outcome

if TYPE_CHECKING:
    from gossamer.crawls.control.standing import CrawlStanding
    from gossamer.crawls.control.waits import Wait


# A problem: its cause, its evidence, and the command that helps.

Severity = Literal["halt", "loss", "slow", "note"]
"""`halt`: the crawl does nothing, or soon will. `loss`: pages are missing. `slow`: it could be faster. `note`: worth knowing."""

#: In this order problems are told.
_ORDER: tuple[Severity, ...] = ("halt", "loss", "slow", "note")


class Problem(msgspec.Struct, frozen=True):
    """Something that is wrong, or slower than it could be."""

    what: str
    """One word for it, as `disk_low`."""
    severity: Severity
    reason: str
    """The problem, in one clause."""
    evidence: str
    """The figures that show it."""
    command: str = ""
    """A command that helps or tells more, ready for a shell; empty where none does."""
    share: float = 0.0
    """How much of the crawl it touches, from 0 to 1; among problems of one severity the greater share comes first."""
    hosts: list[str] = []
    """Some of the hosts that it is about."""


def ranked(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda one: (_ORDER.index(one.severity), -one.share))


#: Requests from which on a share of them says something.
ENOUGH = 20

#: Share of requests that fail, or that robots.txt forbids, from which on it is a problem of the crawl and not of a page.
MANY = 0.1

#: Free bytes below which a disk is nearly full, and seconds until it is full below which that is worth a word.
LITTLE_DISK, SOON_FULL = 1_000_000_000, 86_400.0

#: Share of a core from which on the crawl's process is what limits it.
BUSY = 0.9

#: Share of the slots below which a crawl that has URLs is kept waiting by its hosts.
FEW_SLOTS = 0.25

#: Seconds of a mean answer from which on a host is slow: most answer in a tenth of that.
SLOW_ANSWER = 3.0

#: Seconds of a delay from which on the delay of hosts is what limits a crawl that is idle.
LONG_DELAY = 2.0

#: Names that evidence lists.
_NAMED = 3


def problems_of(now: "CrawlStanding") -> list[Problem]:
    return ranked(problem for rule in RULES for problem in rule(now))


def _command(now: "CrawlStanding", verb: str, *words: str) -> str:
    """A command about this crawl. Text that strangers chose, as names of hosts, is quoted for a shell."""
    is_like_option = any(word.startswith("-") for word in words[:1]) and not words[0].startswith("--")
    more = ["-o", "DIR"] if now.stored and not now.is_at_work and verb == "resume" else []
    return shlex.join(["gossamer", verb, now.crawl, *(["--"] if is_like_option else []), *more, *words])


def _named(names: list[str]) -> str:
    return f": {', '.join(names[:_NAMED])}" if names else ""


def _wait(now: "CrawlStanding", why: str) -> "Wait | None":
    return next((wait for wait in now.waits if wait.why == why), None)


# -- the crawl does nothing


def _resting(now: "CrawlStanding") -> Iterator[Problem]:
    """It was killed, paused or suspended, or its last run has ended without tables."""
    if now.state == "killed":
        yield Problem(
            "killed",
            "halt",
            "the last run died, and no process is at work on the crawl",
            f"{show_count(now.queued, 'URL')} queued; nothing that was committed is lost",
            _command(now, "resume"),
            1.0,
        )
    if now.failure:
        reason = "tables and index could not be made, and their rows stay in the row logs"
        yield Problem("unmade", "loss", reason, now.failure, _command(now, "resume"), 1.0)
    if now.state == "paused":
        queued = f"{show_count(now.queued, 'URL')} queued"
        yield Problem("paused", "halt", "the crawl is paused", queued, _command(now, "continue"), 0.5)
    if now.suspended:
        command = _command(now, "continue", "--unit", now.suspended[0])
        reason = "components are suspended, and what comes to them waits"
        yield Problem("suspended", "halt", reason, ", ".join(now.suspended), command, 0.4)


def _silent(now: "CrawlStanding") -> Iterator[Problem]:
    silent = [one for one in now.each_agent if one.silent_seconds]
    if silent:
        longest = show_seconds(max(one.silent_seconds for one in silent))
        yield Problem(
            "silent",
            "slow",
            "agents do not answer, and their hosts wait",
            f"{', '.join(one.name for one in silent)}; the longest for {longest}",
            _command(now, "set", "frontier.silence=TIME"),
            len(silent) / len(now.each_agent),
        )


def _disk(now: "CrawlStanding") -> Iterator[Problem]:
    free = f"{show_bytes(now.disk_free)} free"
    if _wait(now, "disk_full") is not None:
        yield Problem(
            "disk_full", "halt", "the disk is full, and the crawl waits for room", free, _command(now, "doctor"), 1.0
        )
        return
    growth = sum(one.growth for one in now.sizes if one.name not in _PARTS)
    left = now.disk_free / growth if growth > 0 else 0.0
    if now.is_at_work and (0 < now.disk_free < LITTLE_DISK or 0 < left < SOON_FULL):
        told = f"{free}, the crawl grows by {show_bytes(growth)}/s" if growth > 0 else free
        full = f"the disk will be full in {show_seconds(left)}" if 0 < left < SOON_FULL else "the disk is nearly full"
        keep = _command(now, "set", "min_free_disk=1GB")
        yield Problem("disk_low", "slow" if left > SOON_FULL / 24 else "halt", full, told, keep, 0.5)


#: Data sets that are part of another one: their growth must not be counted twice.
_PARTS = ("seen", "frontier")


def _network(now: "CrawlStanding") -> Iterator[Problem]:
    if _wait(now, "network_down") is not None:
        yield Problem(
            "network_down",
            "halt",
            "our own network seems to be down",
            "every host fails at once; the crawl probes until one answers",
            "gossamer doctor",
            1.0,
        )


def _nothing(now: "CrawlStanding") -> Iterator[Problem]:
    asked = sum(now.outcomes.values())
    if now.pages or not asked or (now.is_at_work and asked < ENOUGH):
        return
    counts = ", ".join(f"{count:,} {name}" for name, count in _most(now.outcomes))
    yield Problem("no_pages", "halt", "no request has brought a page", counts, _command(now, "report", "errors"), 0.9)


def _most(counts: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_NAMED]


# -- pages are missing


def _failing(now: "CrawlStanding") -> Iterator[Problem]:
    asked = sum(now.outcomes.values())
    errors = {name: count for name, count in now.outcomes.items() if name in ERRORS}
    share = sum(errors.values()) / asked if asked else 0.0
    if asked < ENOUGH or share < MANY:
        return
    kinds = ", ".join(f"{count:,} {name}" for name, count in _most(errors))
    most = ", ".join(f"{one.host} {one.errors:,}" for one in now.failing[:_NAMED])
    evidence = f"{share:.0%} of {asked:,} requests: {kinds}" + (f"; most at {most}" if most else "")
    first = now.failing[0] if now.failing else None
    is_one = first is not None and first.errors > now.errors / 2
    reason = f"{first.host} fails" if first is not None and is_one else "many requests fail"
    yield Problem(
        "failing",
        "loss",
        reason,
        evidence,
        _command(now, "report", "errors"),
        share,
        [one.host for one in now.failing[:_NAMED]],
    )


def _held(now: "CrawlStanding") -> Iterator[Problem]:
    for why, (reason, helps) in _HELD.items():
        wait = _wait(now, why)
        if wait is None:
            continue
        share = wait.hosts / now.hosts if now.hosts else 0.0
        evidence = f"{show_count(wait.hosts, 'host')}{_named(wait.names)}"
        command = helps(now, wait.names[0]) if wait.names else ""
        yield Problem(why, "loss", reason, evidence, command, min(1.0, share), list(wait.names))


#: Reason to wait -> what is wrong, and the command that helps with the first host.
_HELD: dict[str, tuple[str, Callable[["CrawlStanding", str], str]]] = {
    "unreachable": ("hosts do not answer", lambda now, host: _command(now, "block", host)),
    "dns_failed": ("host names have no address", lambda now, host: _command(now, "block", host)),
    "robots_unreachable": (
        "robots.txt of some hosts cannot be read, so the crawl sends them no requests",
        lambda now, host: _command(now, "report", "errors"),
    ),
    "refusals": ("hosts ask us to slow down", lambda now, host: _command(now, "set", "domain_delay=10s")),
}


def _lost(now: "CrawlStanding") -> Iterator[Problem]:
    """Pages were given up or wait, a program has raised, or only a browser would show them."""
    lost = now.outcomes.get(Outcome.GONE_AFTER_RETRIES, 0)
    if lost:
        yield Problem(
            "given_up",
            "loss",
            "URLs were given up after several tries",
            f"{show_count(lost, 'URL')} of {now.discovered:,}",
            _command(now, "report", "errors"),
            lost / max(1, now.discovered),
        )
    if now.raised:
        sql = "SELECT who, error, count(*) FROM errors GROUP BY ALL ORDER BY 3 DESC"
        yield Problem(
            "raised",
            "loss",
            "your own processors or handlers raise exceptions",
            f"on {show_count(now.raised, 'visit')}",
            _command(now, "query", sql),
            min(1.0, now.raised / max(1, now.fetched)),
        )
    if now.needs_browser:
        yield Problem(
            "needs_browser",
            "loss",
            "pages seem to need a browser, and none has rendered them",
            f"{now.needs_browser:,} of {show_count(now.pages, 'page')} hold scripts, few words and hardly a link",
            _command(now, "query", "SELECT url FROM pages WHERE needs_browser"),
            min(1.0, now.needs_browser / max(1, now.pages)),
        )
    if not now.is_at_work and now.state == "incomplete" and now.queued:
        urls = show_count(now.queued, "URL")
        yield Problem("unfinished", "loss", "URLs wait for a later try", urls, _command(now, "resume"), 0.5)


# -- the crawl could be faster


#: Seconds of a usual delay from which on it is a problem: a crawl that asks each second is as it should be.
LONG_PAUSE = 2.0


def _delays(now: "CrawlStanding") -> Iterator[Problem]:
    wait = _wait(now, "delay")
    if wait is None or not now.queued or wait.seconds < LONG_PAUSE:
        return
    help_ = {
        "setting": _command(now, "set", "delay=auto"),
        "errors": _command(now, "report", "errors"),
        "refusals": _command(now, "report", "errors"),
    }
    yield Problem(
        "delay",
        "slow",
        "no request is in flight, because every host has its pause between two requests",
        f"{show_count(wait.hosts, 'host')}{_named(wait.names)}; the delay is due to {_CAUSES.get(wait.reason, wait.reason)}",
        help_.get(wait.reason, ""),
        0.8,
        list(wait.names),
    )


#: Causes of a delay, by the word for its reason.
_CAUSES = {
    "setting": "a setting",
    "latency": "slow answers",
    "robots": "robots.txt",
    "errors": "errors",
    "refusals": "refusals",
}


def _slowed(now: "CrawlStanding") -> Iterator[Problem]:
    hosts = [one for one in now.slowed if one.delay >= LONG_DELAY]
    if hosts and _wait(now, "refusals") is None:
        told = ", ".join(f"{one.host} every {show_seconds(one.delay)} ({one.reason})" for one in hosts[:_NAMED])
        yield Problem(
            "slowed",
            "slow",
            "hosts are asked less often because of errors or refusals",
            told,
            _command(now, "report", "errors"),
            min(1.0, len(hosts) / max(1, now.hosts)),
            [one.host for one in hosts[:_NAMED]],
        )


def _slow(now: "CrawlStanding") -> Iterator[Problem]:
    hosts = [one for one in now.slowest if one.seconds >= SLOW_ANSWER]
    if hosts:
        told = ", ".join(f"{one.host} {show_seconds(one.seconds)}" for one in hosts[:_NAMED])
        yield Problem(
            "slow_hosts",
            "slow",
            "hosts take long to answer",
            f"mean of the last answers: {told}",
            _command(now, "report", "slow"),
            min(1.0, len(hosts) / max(1, now.hosts)),
            [one.host for one in hosts[:_NAMED]],
        )
    wait = _wait(now, "slow_pages")
    if wait is not None:
        yield Problem(
            "slow_pages",
            "slow",
            "pages have been under way for long",
            f"{show_count(wait.urls, 'page')}, up to {show_seconds(wait.seconds)}: {', '.join(wait.names[:1])}",
            _command(now, "report", "slow"),
            min(1.0, wait.urls / max(1, now.in_flight)),
        )


def _slots(now: "CrawlStanding") -> Iterator[Problem]:
    if now.concurrency and now.in_flight >= now.concurrency and now.queued:
        more = _command(now, "set", f"concurrency={2 * now.concurrency}")
        evidence = f"{now.in_flight:,} requests in flight, {now.queued:,} URLs queued"
        yield Problem("slots", "slow", "every slot for a request is in use", evidence, more, 0.6)


def _few_hosts(now: "CrawlStanding") -> Iterator[Problem]:
    """The delay, which makes most crawls of one site slow, and is meant to: told where nothing else is the reason."""
    is_free = now.in_flight < now.concurrency * FEW_SLOTS and now.busy < BUSY
    waits = [wait for wait in now.waits if wait.why != "delay" or wait.seconds >= LONG_PAUSE]
    if now.state == "running" and is_free and now.queued > now.concurrency and not waits:
        told = f"{now.in_flight:,} of {now.concurrency:,} slots in use, {now.queued:,} URLs queued"
        pace = ", ".join(f"{one.host} answers in {show_seconds(one.seconds)}" for one in now.slowest[:1])
        yield Problem(
            "few_hosts",
            "slow",
            "few hosts have URLs, and each gets one request at a time, with a pause after it",
            f"{told} of {show_count(now.hosts, 'host')}" + (f"; {pace}" if pace else ""),
            _command(now, "report", "hosts"),
            0.1,
        )


def _processor(now: "CrawlStanding") -> Iterator[Problem]:
    if now.busy >= BUSY:
        yield Problem(
            "processor",
            "slow",
            "the crawl's process uses all of its core",
            f"{now.busy:.0%} of a core over the last ten seconds",
            _command(now, "status", "--units"),
            min(1.0, now.busy),
        )


# -- worth knowing


def _aside(now: "CrawlStanding") -> Iterator[Problem]:
    if now.set_aside:
        share, wait = now.set_aside / max(1, now.discovered), _wait(now, "set_aside")
        names = list(wait.names) if wait is not None else []
        told = f"; most at {', '.join(names[:_NAMED])}" if names else ""
        yield Problem(
            "set_aside",
            "loss" if share > 0.5 else "note",
            "URLs look like parts of traps, and wait behind everything else",
            f"{show_count(now.set_aside, 'URL')}, {share:.0%} of those that were found{told}",
            _command(now, "traps"),
            min(1.0, share),
            [name for name in names if not name.startswith("*.")],
        )


def _denied(now: "CrawlStanding") -> Iterator[Problem]:
    asked, denied = sum(now.outcomes.values()), now.outcomes.get(Outcome.ROBOTS_DENIED, 0)
    if asked >= ENOUGH and denied / asked >= MANY:
        sql = "SELECT host, count(*) FROM pages WHERE outcome = 'robots_denied' GROUP BY 1 ORDER BY 2 DESC"
        yield Problem(
            "robots_denied",
            "note",
            "robots.txt forbids many URLs",
            f"{denied:,} of {asked:,}",
            _command(now, "query", sql),
            denied / asked,
        )


RULES: tuple[Callable[["CrawlStanding"], Iterator[Problem]], ...] = (
    _resting, _silent, _disk, _network, _nothing,
    _failing, _held, _lost,
    _delays, _slowed, _slow, _slots, _few_hosts, _processor,
    _aside, _denied,
)  # fmt: skip
