"""Hostile servers: however a server behaves, a fetch of ours ends, by the outcome that the table of cases names."""

import asyncio
import resource
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.fetcher.dns import ResolverSheet, SystemResolver
from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.request import HttpSheet
from gossamer.simweb.hostile import CASES, NOT_PLAYED, HostileCase, HostileWeb
from gossamer.testing.clock import FakeClock
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response

#: Bytes of a body that the fetcher of these tests keeps: enough for a ratio stop, small enough for many cases at once.
CAP = 2 << 20

#: docs/design/faults.md: the most by which memory may rise for a hostile answer.
RISE = 64 << 20

#: The cases in which the server makes the crawler wait: a deadline has to end them.
STALLING = frozenset({"B11", "B12", "B13", "G99a", "G99d"})


@asynccontextmanager
async def fetching(web: HostileWeb, folder: Path, clock: FakeClock) -> AsyncIterator[HttpModule]:
    """A fetcher that finds the hostile web behind every name, and trusts its authority."""
    trusted = folder / "ca.pem"
    trusted.write_bytes(web.certificate)
    sheet = HttpSheet(max_body=CAP, ca_file=str(trusted) if web.certificate else "")
    module = HttpModule(sheet)
    module.clock = clock
    ports = (web.port, *web.tls_ports.values())
    module.resolver = resolver = SystemResolver(
        ResolverSheet(resolve=("*=127.0.0.1",), allow_networks=("127.0.0.0/8",), allow_ports=ports)
    )
    await module.start()
    try:
        yield module
    finally:
        await module.stop()
        await resolver.stop()


async def fetched(module: HttpModule, web: HostileWeb, case: HostileCase, clock: FakeClock) -> Response:
    """Fetch a case. The clock moves only once the server has begun to make us wait."""
    fetch = asyncio.ensure_future(module.fetch(Task(web.url(case), host="hostile.sim")))
    if case.number in STALLING:
        await web.stalled.wait()
        await clock.advance(0.0, turns=500)
        while not fetch.done():
            await clock.advance(1.0, turns=20)
    while not (await asyncio.wait({fetch}, timeout=0.2))[0]:  # it pauses before it asks an untidy server once more
        await clock.advance(1.0)
    return await fetch


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path[1:])
def test_every_fetch_ends_as_the_table_says_and_within_its_bounds(case: HostileCase, run: Any, tmp_path: Path) -> None:
    async def body() -> None:
        clock = FakeClock()
        async with HostileWeb([case]) as web, fetching(web, tmp_path, clock) as module:
            before = peak()
            response = await fetched(module, web, case, clock)
            assert response.outcome is case.outcome, response.error
            assert len(response.body) <= CAP
            assert len(response.content) <= CAP
            assert peak() - before <= RISE
            assert clock.monotonic() <= module.sheet.deadline + 5
            well = await module.fetch(Task(web.healthy, host="hostile.sim"))
            if module.metrics.counters["dropped"]:  # it closed its connection unannounced: that was a try of its own
                well = await module.fetch(Task(web.healthy, host="hostile.sim"))
            assert well.outcome is Outcome.OK

    run(body())


def test_a_healthy_page_is_served_while_every_hostile_one_is_under_way(run: Any, tmp_path: Path) -> None:
    slow = [case for case in CASES if case.number in STALLING and not case.tls]

    async def body() -> None:
        clock = FakeClock()
        async with HostileWeb(slow) as web, fetching(web, tmp_path, clock) as module:
            under_way = [
                asyncio.ensure_future(module.fetch(Task(web.url(case), host="hostile.sim"))) for case in slow * 5
            ]
            for _ in range(20):
                assert (await module.fetch(Task(web.healthy, host="well.sim"))).outcome is Outcome.OK
            assert not any(fetch.done() for fetch in under_way)
            while not all(fetch.done() for fetch in under_way):
                await clock.advance(1.0, turns=20)
            assert [fetch.result().outcome for fetch in under_way] == [case.outcome for case in slow * 5]

    run(body())


#: A page behind a connection that is reset is asked for again until its host has its strikes: some thousand times here.
ASKED_FOR_LONG = ("B22a",)


@pytest.mark.parametrize("left_out", [ASKED_FOR_LONG, pytest.param((), marks=pytest.mark.long)])
def test_a_crawl_of_everything_hostile_ends_and_names_every_outcome(tmp_path: Path, left_out: tuple[str, ...]) -> None:
    # All are on one host here, and some ask that it be left alone for long.
    alone = ("F83", "F88", *left_out)
    cases = [
        case for case in CASES if case.number not in STALLING and not case.tls and not case.number.startswith(alone)
    ]

    async def body() -> dict[str, int]:
        async with HostileWeb(cases) as web:
            options = {
                "output": str(tmp_path / "crawl"),
                "resolve": (f"hostile.sim=127.0.0.1:{web.port}",),
                "per_host": 8,
                "delay": 0,
                "retries": 0,
                "linger": 0,
                "depth": 12,
                "max_page_size": CAP,
            }
            settings = {"politeness": {"strikes": 1_000}}
            job = Crawl(["http://hostile.sim/"], build(all_options(), options), settings=settings, tables=False)
            return (await job.run()).outcomes

    outcomes = asyncio.run(body())
    assert set(outcomes) <= set(Outcome)
    assert sum(outcomes.values()) > len(cases)


@pytest.mark.parametrize("verify", [True, False])
def test_the_archive_of_a_crawl_that_verifies_nobody_says_so(tmp_path: Path, verify: bool) -> None:
    cases = [case for case in CASES if case.number == "G98g"]  # sound, if one knew its authority

    async def body() -> dict[str, int]:
        async with HostileWeb(cases) as web:
            seeds = [web.url(case) for case in cases]
            options = {"output": str(tmp_path / "crawl"), "resolve": ("*=127.0.0.1",), "delay": 0, "retries": 0}
            settings = {"http": {"verify": verify}}
            return (await Crawl(seeds, build(all_options(), options), settings=settings, tables=False).run()).outcomes

    outcomes = asyncio.run(body())
    assert set(outcomes) == ({"tls_failed"} if verify else {"ok"})
    told: dict[str, list[bool]] = {}
    for path in (tmp_path / "crawl" / "warc").glob("*"):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                says = b"tls: certificates not verified" in record.content_stream().read()
                told.setdefault(record.rec_type, []).append(says)
    assert set(told) == (set() if verify else {"warcinfo", "metadata", "request", "response"})
    assert verify or (all(told["warcinfo"]) and all(told["metadata"]))
    assert verify or len(told["metadata"]) == len(told["response"])


def test_one_page_in_many_spellings_is_asked_for_once(tmp_path: Path) -> None:
    cases = [case for case in CASES if case.number == "C37a"]

    async def body() -> dict[str, int]:
        async with HostileWeb(cases) as web:
            resolve = (f"hostile.sim=127.0.0.1:{web.port}",)
            options = {"output": str(tmp_path / "crawl"), "resolve": resolve, "delay": 0, "retries": 0}
            return (await Crawl([web.url(cases[0])], build(all_options(), options), tables=False).run()).outcomes

    assert asyncio.run(body()) == {"ok": 2}


def test_each_case_has_a_path_of_its_own_and_says_what_it_does() -> None:
    assert len({case.path for case in CASES}) == len({case.number for case in CASES}) == len(CASES)
    for case in CASES:
        assert case.does.endswith("."), case.number
    assert not {case.number for case in CASES} & set(NOT_PLAYED) - {"B13"}
