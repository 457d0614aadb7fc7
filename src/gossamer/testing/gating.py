"""Conformance suite for robots gates: run it over an implementation of your own.

Each check is one promise of `contracts.robots`. A broken promise raises an AssertionError that names it.
"""

from collections.abc import Callable

from gossamer.contracts.robots import RobotsGate, RobotsRuling, RobotsVerdict
from gossamer.model.outcome import Outcome
from gossamer.model.task import Task
from gossamer.model.url import host_of
from gossamer.model.visit import Response

#: One day: for longer no robots.txt is good (RFC 9309, 2.4).
_DAY = 86_400.0
_NOW = 1_700_000_000.0

SITE = "http://a.test"
PRIVATE = f"{SITE}/private/page"
PUBLIC = f"{SITE}/public/page"

#: Sites that share a name, a port or a scheme with :data:`SITE`, and are others.
OTHERS = ("https://a.test", "http://a.test:8080", "http://www.a.test", "http://b.test")

ANSWER = Response(Outcome.OK, status=200, body=b"User-agent: *\nDisallow: /private/\nCrawl-delay: 7\n")

#: Every way in which a request can end, with what hostile servers add.
ENDINGS = (
    *(Response(outcome, status=0) for outcome in Outcome),
    *(Response(Outcome.OK, status=200, body=body) for body in (b"", b"\0" * 9, b"\xff\xfe\xfd", b"<html>" * 999)),
    Response(Outcome.OK, status=200, body=b"User-agent: *\nDisall", cut="disconnect"),
    Response(Outcome.OK, status=200, body=b"#" * (1 << 21)),
    *(
        Response(Outcome.REDIRECT, status=301, headers=(("location", to),))
        for to in (
            "",
            "/",
            "/robots.txt",
            "http://b.test/r",
            "javascript:x",
            "http://[",
            "//",
            "\0",
            "http://a.test/robots.txt",
        )
    ),
    *(Response(Outcome.CLIENT_ERROR, status=status) for status in (400, 401, 403, 404, 410, 418, 451, 499)),
    *(
        Response(Outcome.RATE_LIMITED, status=429, headers=(("retry-after", text),))
        for text in (
            "",
            "5",
            "-5",
            "9" * 400,
            "Fri, 31 Dec 9999 23:59:59 GMT",
            "Mon, 01 Jan 0001 00:00:00 GMT",
            "soon",
            "٣",
        )
    ),
)


def check_robots(make: Callable[[], RobotsGate]) -> None:
    """Check that a robots gate that obeys keeps its promises.

    Args:
        make: returns a started gate that has learned nothing, with our own product token.
    """
    _check_first(make())
    _check_sites(make())
    _check_times(make())
    _check_state(make)
    for ending in ENDINGS:
        _check_ending(make(), ending)


def _ask(gate: RobotsGate, url: str, now: float = _NOW) -> RobotsVerdict:
    return gate.judge(Task(url, host_of(url)), now)


def _check_first(gate: RobotsGate) -> None:
    verdict = _ask(gate, PUBLIC)
    assert verdict.ruling is RobotsRuling.FETCH_FIRST, "a URL was judged before its robots.txt was known"
    assert verdict.url == f"{SITE}/robots.txt", f"{verdict.url} is not where robots.txt is"
    assert _ask(gate, PUBLIC) == verdict, "equal questions have different answers"
    lesson = gate.learned(SITE, ANSWER, _NOW)
    assert lesson.settled, "a whole robots.txt settles a site"
    assert lesson.delay == 7.0, "Crawl-delay was not read"
    assert _ask(gate, PUBLIC).ruling is RobotsRuling.ALLOWED, "an allowed URL was denied"
    assert _ask(gate, PUBLIC).delay == 7.0, "Crawl-delay is not told with the verdict"
    denied = _ask(gate, PRIVATE)
    assert denied.ruling is RobotsRuling.DENIED and denied.rule and denied.line == 2, "a denial names its rule and line"
    assert _ask(gate, f"{SITE}/robots.txt").ruling is RobotsRuling.ALLOWED, "robots.txt itself is always allowed"
    for url in ("file:///etc/x", "data:,x", "mailto:a@a.test"):
        assert _ask(gate, url).ruling is RobotsRuling.ALLOWED, f"{url} has no robots.txt"
    gate.forget(SITE)
    assert _ask(gate, PUBLIC).ruling is RobotsRuling.FETCH_FIRST, "a forgotten answer still counts"
    gate.forget("http://never-seen.test")


def _check_sites(gate: RobotsGate) -> None:
    gate.learned(SITE, ANSWER, _NOW)
    for other in OTHERS:
        verdict = _ask(gate, f"{other}/public/page")
        assert verdict.ruling is RobotsRuling.FETCH_FIRST, f"what holds for {SITE} was taken for {other}"
        assert verdict.url == f"{other}/robots.txt"


def _check_times(gate: RobotsGate) -> None:
    gate.learned(SITE, ANSWER, _NOW)
    assert _ask(gate, PUBLIC, _NOW + 1).ruling is RobotsRuling.ALLOWED, "what was learned is good for a while"
    assert _ask(gate, PUBLIC, _NOW + _DAY + 1).ruling is RobotsRuling.FETCH_FIRST, "an answer is good for a day at most"
    assert _ask(gate, PUBLIC, _NOW - 2 * _DAY).ruling is RobotsRuling.FETCH_FIRST, (
        "a clock that went back makes no answer last"
    )
    gate.learned(SITE, ANSWER, _NOW + _DAY + 1)
    assert _ask(gate, PUBLIC, _NOW + _DAY + 2).ruling is RobotsRuling.ALLOWED


def _check_state(make: Callable[[], RobotsGate]) -> None:
    first, second = make(), make()
    assert first.state(SITE) == b"", "something is kept although nothing is known"
    for answer in (ANSWER, Response(Outcome.RATE_LIMITED, status=429), Response(Outcome.CLIENT_ERROR, status=404)):
        first.learned(SITE, answer, _NOW)
        second.restore(SITE, first.state(SITE))
        assert second.state(SITE) == first.state(SITE), "a restored state is kept as it was"
        for url in (PRIVATE, PUBLIC):
            for now in (_NOW, _NOW + 30, _NOW + _DAY, _NOW + 2 * _DAY):
                assert _ask(second, url, now) == _ask(first, url, now), "a restored gate judges otherwise"
    for damaged in (b"", b"\xc1", b"\x90" * 99, first.state(SITE)[:-1], b"\xdd\xff\xff\xff\xff"):
        second.restore(SITE, damaged)
        assert _ask(second, PUBLIC).ruling in RobotsRuling, "a damaged state stops the gate"


def _check_ending(gate: RobotsGate, ending: Response) -> None:
    """Check that a site gets a ruling however its requests end, and finally one that needs no further request at once."""
    now = _NOW
    for _ in range(60):
        verdict = _ask(gate, PUBLIC, now)
        if verdict.ruling in (RobotsRuling.ALLOWED, RobotsRuling.DENIED):
            return
        if verdict.ruling is RobotsRuling.WAIT:
            assert verdict.until > now, "the verdict to wait names no time"
            if verdict.until > now + 30:
                assert verdict.until <= now + _DAY, "no server can make a site wait for longer than a day"
                return
            now = verdict.until
            continue
        assert verdict.url.startswith(("http://", "https://")), f"{verdict.url!r} cannot be asked for"
        assert gate.learned(SITE, ending, now).event, "an answer taught nothing"
    raise AssertionError(f"60 requests for one robots.txt after {ending.outcome}")
