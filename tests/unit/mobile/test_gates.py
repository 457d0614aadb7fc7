"""What stands between a crawler and a source: hosts, the owner's refusals, robots.txt, limits and the rate."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

import pytest

from gossamer.expressions.compiling import Expression
from gossamer.frontier.robots.provider import ObeyRobots
from gossamer.mobile.contract import Withheld
from gossamer.mobile.sources.files import names_of
from gossamer.mobile.sources.owner import MAX_EXAMPLES, MAX_SITES, REASONS, GatedPages, OwnerLimits, ServedSite
from gossamer.testing import FakeClock
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response

HOME = "https://example.org/"


class Pages:
    """A source of what the test says, which notes what it was asked."""

    def __init__(self, pages: Mapping[str, Response | Withheld]) -> None:
        self.pages = pages
        self.asked: list[str] = []

    def answer(self, url: str) -> Response | Withheld:
        path = "/" + "/".join(url.split("/")[3:])
        self.asked.append(path)
        return self.pages.get(path, Response(Outcome.CLIENT_ERROR, 404))

    def close(self) -> None:
        pass


def page(body: bytes = b"text") -> Response:
    return Response(Outcome.OK, 200, headers=(("content-type", "text/html"),), body=body)


def robots(text: str) -> Response:
    return Response(Outcome.OK, 200, body=text.encode())


def let_pass(clock: FakeClock, seconds: float) -> None:
    asyncio.run(clock.advance(seconds))


def gated(
    source: Pages,
    clock: FakeClock | None = None,
    *,
    scheme: str = "",
    delay: float | None = None,
    refuse: Sequence[str] = (),
    limits: OwnerLimits | None = None,
) -> GatedPages:
    clock = clock or FakeClock()
    refusals = [Expression(text, "schedule") for text in refuse]
    sites = {"example.org": ServedSite(source, scheme, delay)}
    return GatedPages(sites.get, ObeyRobots(), clock, refusals, limits, rest=partial(let_pass, clock))


def ask(gate: GatedPages, url: str) -> Outcome:
    return gate(Task(url, "example.org")).outcome


def test_the_sites_robots_txt_is_read_first_and_obeyed() -> None:
    source = Pages(
        {"/": page(), "/open": page(), "/shut/a": page(), "/robots.txt": robots("User-agent: *\nDisallow: /shut/")}
    )
    gate = gated(source)
    assert ask(gate, f"{HOME}shut/a") is Outcome.ROBOTS_DENIED
    assert ask(gate, f"{HOME}open") is Outcome.OK
    assert source.asked == ["/robots.txt", "/open"], "it is asked for once, and nothing that it denies is read"
    assert gate.refused["robots_denied"].examples == [(f"{HOME}shut/a", "Disallow: /shut/ (line 2)")]


def test_rules_for_this_crawler_by_name_are_obeyed() -> None:
    rules = robots("User-agent: *\nAllow: /\n\nUser-agent: Gossamer\nDisallow: /")
    assert ask(gated(Pages({"/": page(), "/robots.txt": rules})), HOME) is Outcome.ROBOTS_DENIED


def test_without_a_robots_txt_everything_is_allowed() -> None:
    assert ask(gated(Pages({"/": page()})), HOME) is Outcome.OK


@pytest.mark.parametrize("answer", [Withheld("private", "mode 0600"), Response(Outcome.SERVER_ERROR, 500)])
def test_a_robots_txt_that_nobody_may_read_closes_the_site(answer: Response | Withheld) -> None:
    source = Pages({"/": page(), "/robots.txt": answer})
    gate = gated(source)
    assert ask(gate, HOME) in (Outcome.ROBOTS_DENIED, Outcome.ROBOTS_UNREACHABLE)
    assert "/" not in source.asked


def test_a_robots_txt_that_leads_in_circles_ends() -> None:
    moved = Response(Outcome.REDIRECT, 301, headers=(("location", "/robots.txt"),))
    assert ask(gated(Pages({"/": page(), "/robots.txt": moved})), HOME) in Outcome


def test_a_host_that_is_not_served_is_refused_and_nobody_is_asked() -> None:
    source = Pages({"/": page()})
    gate = gated(source)
    for url in ("https://other.example/", "https://example.org:8443/", "https://www.example.org/"):
        assert ask(gate, url) is Outcome.BLOCKED
    assert source.asked == []
    assert gate.refused["not_served"].count == 3


def test_the_owners_refusals_hold_before_anything_is_read() -> None:
    source = Pages({"/private/a": page(), "/a": page()})
    gate = gated(source, refuse=['path("/private/**")'])
    assert ask(gate, f"{HOME}private/a") is Outcome.BLOCKED
    assert source.asked == []
    assert gate.refused["refused"].examples == [(f"{HOME}private/a", 'path("/private/**")')]
    assert ask(gate, f"{HOME}a") is Outcome.OK


def test_urls_of_the_other_scheme_are_redirected_to_the_owners() -> None:
    source = Pages({"/a": page()})
    found = gated(source, scheme="https")(Task("http://example.org/a?b=c", "example.org"))
    assert (found.outcome, found.header("location")) == (Outcome.REDIRECT, "https://example.org/a?b=c")
    assert source.asked == []


@pytest.mark.parametrize(("limits", "name"), [(OwnerLimits(requests=3), "requests"), (OwnerLimits(bytes=8), "bytes")])
def test_a_crawler_that_has_used_up_a_limit_gets_nothing_more(limits: OwnerLimits, name: str) -> None:
    source = Pages({f"/{number}": page() for number in range(9)})
    gate = gated(source, limits=limits)
    found = [ask(gate, f"{HOME}{number}") for number in range(9)]
    assert found == [Outcome.OK] * 2 + [Outcome.BLOCKED] * 7, "robots.txt is a request, too"
    assert gate.refused[name].count == 7 and len(gate.refused[name].examples) == MAX_EXAMPLES


def test_a_crawler_gets_nothing_after_its_time() -> None:
    clock = FakeClock()
    gate = gated(Pages({"/": page()}), clock, limits=OwnerLimits(time=60.0))
    assert ask(gate, HOME) is Outcome.OK
    let_pass(clock, 61)
    assert ask(gate, HOME) is Outcome.BLOCKED and "time" in gate.refused


def test_a_local_server_is_asked_at_the_owners_rate_or_its_own_slower_one() -> None:
    for text, seconds in (("User-agent: *\nCrawl-delay: 7", 7.0), ("", 2.0)):
        clock = FakeClock()
        gate = gated(Pages({"/a": page(), "/b": page(), "/robots.txt": robots(text)}), clock, delay=2.0)
        ask(gate, f"{HOME}a")
        began = clock.monotonic()
        ask(gate, f"{HOME}b")
        assert clock.monotonic() - began == seconds


def test_a_crawler_is_not_told_why_it_is_refused() -> None:
    gate = gated(Pages({"/.env": Withheld("dotfile", "'.env' begins with a dot")}))
    assert gate(Task(f"{HOME}.env", "example.org")) == Response(Outcome.BLOCKED)
    assert gate.refused["dotfile"].examples == [(f"{HOME}.env", "'.env' begins with a dot")]


def test_every_refusal_of_a_path_has_words_for_the_owner() -> None:
    found = names_of(f"{HOME}%2e%2e/a")
    assert isinstance(found, Withheld) and found.reason in REASONS


def test_hosts_that_a_crawler_thinks_of_take_no_memory_without_end() -> None:
    source = Pages({})
    gate = GatedPages(lambda _: ServedSite(source), ObeyRobots(), FakeClock())
    for number in range(MAX_SITES + 50):
        gate(Task(f"http://h{number}.example/", f"h{number}.example"))
    assert len(gate.robots) == MAX_SITES
