"""The robots provider: answers of servers, a bounded memory, and what a site's verdicts tell beside the ruling."""

import pytest

from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import build, change
from gossamer.frontier.robots.contract import RobotsRuling, RobotsVerdict
from gossamer.frontier.robots.machine import RobotsEvent
from gossamer.frontier.robots.provider import IgnoreRobots, ObeyRobots, RobotsSheet, answered
from gossamer.simweb.hosts import ROBOTS, ROBOTS_MOVED, robots_text
from gossamer.simweb.hosts import allowed as allowed_by_data
from gossamer.values.outcome import Outcome, of_status
from gossamer.values.task import Task
from gossamer.values.visit import Response

NOW = 1_700_000_000.0
SITE = "http://a.test"


def ok(body: bytes, cut: str = "") -> Response:
    return Response(Outcome.OK if not cut else Outcome.TRUNCATED, status=200, body=body, cut=cut)


def judge(gate: ObeyRobots | IgnoreRobots, url: str, now: float = NOW) -> RobotsVerdict:
    return gate.judge(Task(url, "a.test"), now)


@pytest.mark.parametrize(
    ("response", "event"),
    [
        (ok(b"User-agent: *"), RobotsEvent.WHOLE),
        (ok(b""), RobotsEvent.WHOLE),
        (ok(b"<html>"), RobotsEvent.UNREADABLE),
        (ok(b"#" * (1 << 20)), RobotsEvent.WHOLE),
        (ok(b"#" * ((1 << 20) + 1)), RobotsEvent.CAPPED),
        (ok(b"#" * (1 << 24), cut="length"), RobotsEvent.CAPPED),
        (ok(b"User-agent: *\nDisallow: /a", cut="disconnect"), RobotsEvent.CUT),
        (Response(Outcome.DECODE_FAILED, status=200, body=b"\x1f\x8b"), RobotsEvent.CUT),
        (Response(Outcome.NOT_MODIFIED, status=304), RobotsEvent.UNCHANGED),
        (Response(Outcome.REDIRECT, status=301, headers=(("location", "/r"),)), RobotsEvent.MOVED),
        (Response(Outcome.REDIRECT, status=301), RobotsEvent.LOST),
        (Response(Outcome.REDIRECT, status=302, headers=(("location", "file:///etc/passwd"),)), RobotsEvent.LOST),
        (Response(Outcome.REDIRECT, status=302, headers=(("location", "http://["),)), RobotsEvent.LOST),
        (Response(Outcome.CLIENT_ERROR, status=404), RobotsEvent.MISSING),
        (Response(Outcome.CLIENT_ERROR, status=410), RobotsEvent.MISSING),
        (Response(Outcome.CLIENT_ERROR, status=401), RobotsEvent.FORBIDDEN),
        (Response(Outcome.CLIENT_ERROR, status=418), RobotsEvent.REFUSED),
        (Response(Outcome.RATE_LIMITED, status=429), RobotsEvent.LIMITED),
        (Response(Outcome.SERVER_ERROR, status=503), RobotsEvent.BROKEN),
        (Response(Outcome.DNS_FAILED), RobotsEvent.FAILED),
        (Response(Outcome.ADDRESS_REFUSED), RobotsEvent.SHUT),
        (Response(Outcome.BLOCKED), RobotsEvent.SHUT),
        (Response(Outcome.PROTOCOL_FAILED, status=200), RobotsEvent.FAILED),
    ],
)
def test_every_answer_is_an_event(response: Response, event: RobotsEvent) -> None:
    assert answered(response, f"{SITE}/robots.txt", "gossamer")[0].event is event


def test_a_redirect_is_resolved_against_the_url_that_was_asked() -> None:
    robots = ObeyRobots()
    to = Response(Outcome.REDIRECT, status=301, headers=(("location", "//b.test/dir/r.txt"),))
    robots.learned(SITE, to, NOW)
    assert judge(robots, f"{SITE}/x").url == "http://b.test/dir/r.txt"
    robots.learned(SITE, Response(Outcome.REDIRECT, status=301, headers=(("location", "s.txt"),)), NOW)
    assert judge(robots, f"{SITE}/x").url == "http://b.test/dir/s.txt"
    robots.learned(SITE, ok(b"User-agent: *\nDisallow: /"), NOW)
    assert judge(robots, f"{SITE}/x").ruling is RobotsRuling.DENIED
    assert judge(robots, "http://b.test/x").ruling is RobotsRuling.FETCH_FIRST, "the rules are the first site's alone"


def test_what_a_site_says_beside_its_rules_comes_with_the_verdict_and_the_lesson() -> None:
    robots = ObeyRobots()
    body = b"User-agent: *\nCrawl-delay: 400\nContent-Usage: ai=n\nAllow: /\nSitemap: http://a.test/s.xml"
    lesson = robots.learned(SITE, ok(body), NOW)
    assert lesson.is_slow and lesson.delay == 400.0 and lesson.sitemaps == ("http://a.test/s.xml",)
    assert (lesson.state, lesson.event, lesson.settled) == ("qualified", "whole", True)
    verdict = judge(robots, f"{SITE}/x")
    assert verdict == RobotsVerdict(RobotsRuling.ALLOWED, "Allow: /", 4, delay=400.0, usage=("Content-Usage: ai=n",))
    assert robots.metrics.counters["slow_sites"] == 1


def test_the_retry_interval_and_the_failure_limit_of_a_site_are_settings() -> None:
    broken = Response(Outcome.SERVER_ERROR, status=503)
    robots = ObeyRobots(RobotsSheet(retry=1800.0, max_failures=2))
    for _ in range(2):
        robots.learned(SITE, broken, NOW)
    assert judge(robots, f"{SITE}/x").until == NOW + 1800.0
    for _ in range(2):
        robots.learned(SITE, broken, NOW + 1800.0)
    assert judge(robots, f"{SITE}/x", NOW + 90_000.0).ruling is RobotsRuling.DENIED
    patient = ObeyRobots(RobotsSheet(policy="paper", max_failures=0))
    for number in range(400):
        patient.learned(SITE, broken, NOW + number)
    assert judge(patient, f"{SITE}/x", NOW + 400).ruling is RobotsRuling.WAIT


def test_a_site_whose_robots_txt_must_not_be_asked_for_is_denied_and_says_why() -> None:
    robots = ObeyRobots()
    to = Response(Outcome.REDIRECT, status=301, headers=(("location", "http://b.test/r"),))
    robots.learned(SITE, to, NOW)
    lesson = robots.learned(SITE, Response(Outcome.BLOCKED), NOW)
    assert lesson.settled
    verdict = judge(robots, f"{SITE}/x")
    assert verdict.ruling is RobotsRuling.DENIED
    assert verdict.rule == "robots.txt redirects to a host that this crawl must not ask"


def test_an_unreachable_site_waits_and_says_why() -> None:
    robots = ObeyRobots()
    for _ in range(2):
        lesson = robots.learned(SITE, Response(Outcome.SERVER_ERROR, status=503), NOW)
    assert not lesson.settled
    verdict = judge(robots, f"{SITE}/x")
    assert (verdict.ruling, verdict.until, verdict.rule) == (RobotsRuling.WAIT, NOW + 10.0, "robots.txt: 5xx")


def test_memory_is_bounded_and_what_was_dropped_can_be_restored() -> None:
    robots = ObeyRobots(RobotsSheet(memory=20_000, ready_rules=100))
    body = b"User-agent: *\n" + b"".join(b"Disallow: /%d\n" % n for n in range(20))
    states: dict[str, bytes] = {}
    for n in range(200):
        site = f"http://h{n}.test"
        robots.learned(site, ok(body), NOW)
        states[site] = robots.state(site)
    gauges = robots.metrics.snapshot()
    assert gauges["state_bytes"] <= 20_000
    assert gauges["ready_rules"] <= 100
    assert robots.metrics.counters["states_dropped"] > 100
    first = "http://h0.test"
    assert judge(robots, f"{first}/7").ruling is RobotsRuling.FETCH_FIRST
    robots.restore(first, states[first])
    assert judge(robots, f"{first}/7").ruling is RobotsRuling.DENIED


def test_a_site_in_use_is_not_dropped_before_those_that_are_not() -> None:
    robots = ObeyRobots(RobotsSheet(memory=20_000))
    robots.learned(SITE, ok(b"User-agent: *\nDisallow: /x"), NOW)
    for n in range(200):
        robots.learned(f"http://h{n}.test", ok(b"User-agent: *\nDisallow: /x"), NOW)
        assert judge(robots, f"{SITE}/x").ruling is RobotsRuling.DENIED


def test_sites_whose_files_say_the_same_share_their_rules_while_one_of_them_is_known() -> None:
    robots = ObeyRobots()
    for site, body in (("a", b"Disallow: /x"), ("b", b"Disallow: /x"), ("c", b"Disallow: /y")):
        robots.learned(f"http://{site}.test", ok(b"User-agent: *\n" + body), NOW)
    a, b, c = (robots.known(f"http://{site}.test").rules for site in "abc")
    assert a is b is not c
    restored = ObeyRobots()
    for site in "abc":
        restored.restore(f"http://{site}.test", robots.state(f"http://{site}.test"))
    assert restored.known("http://a.test").rules is restored.known("http://b.test").rules
    assert [judge(restored, f"http://{site}.test/x").ruling.value for site in "abc"] == ["denied", "denied", "allowed"]
    assert len(restored._alike) == 2
    restored.forget("http://c.test")
    assert len(restored._alike) == 1, "what no site has takes no memory"


def test_a_shorter_life_of_answers_holds_at_once() -> None:
    robots = ObeyRobots()
    robots.learned(SITE, ok(b"User-agent: *\nDisallow: /x"), NOW)
    before, robots.sheet = robots.sheet, change(robots.sheet, {"keep": "10s", "policy": "paper"}, running=True)
    robots.changed(before)
    assert judge(robots, f"{SITE}/x", NOW + 1).ruling is RobotsRuling.FETCH_FIRST


def test_no_setting_makes_an_answer_good_for_more_than_a_day() -> None:
    with pytest.raises(SettingError):
        build(RobotsSheet, {"keep": "25h"})


@pytest.mark.parametrize("kind", sorted(ROBOTS))
def test_simulated_hosts_are_judged_as_they_mean_it(kind: str) -> None:
    """The simulated web holds rules as data and never parses them: it cannot share a reader's mistake."""
    host, robots = ROBOTS[kind], ObeyRobots()
    if host.status == 301:
        robots.learned(SITE, Response(Outcome.REDIRECT, status=301, headers=(("location", ROBOTS_MOVED),)), NOW)
    body = ok(robots_text(host, []))
    for _ in range(2):
        found = body if host.status in (200, 301) else Response(of_status(host.status), status=host.status)
        robots.learned(SITE, found, NOW)
    for path in (
        "/",
        "/s1/50.html",
        "/s1/57.html",
        "/s1/55.html?x=1",
        "/s2/7.html",
        "/s3/",
        "/private/",
        "/a?b&sort=c",
    ):
        is_allowed = judge(robots, SITE + path).ruling is RobotsRuling.ALLOWED
        assert is_allowed == allowed_by_data(kind, "Gossamer", path), path


def test_ignored_robots_allow_everything_and_ask_for_nothing() -> None:
    gate = IgnoreRobots()
    assert judge(gate, f"{SITE}/x").ruling is RobotsRuling.ALLOWED
    assert gate.learned(SITE, ok(b"User-agent: *\nDisallow: /"), NOW).settled
    gate.restore(SITE, b"anything")
    gate.forget(SITE)
    assert gate.state(SITE) == b""
    assert judge(gate, f"{SITE}/x").rule == "robots.txt is ignored"
