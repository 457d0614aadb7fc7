"""Names are looked up a bounded number at once, and no answer of a resolver holds a host up."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gossamer.engine.unit import Metrics
from gossamer.fetcher.contract import Endpoint
from gossamer.frontier.host_turns import LOOKUPS, FrontierHost, Lookups
from gossamer.frontier.limits import CrawlTotals, Failures, FrontierSheet
from gossamer.values.errors import AddressRefused, ResolutionFailed
from gossamer.values.outcome import Outcome
from gossamer.values.task import Answer, Task


class Answers:
    """A resolver that answers by the first letter of the name."""

    def __init__(self) -> None:
        self.under_way = self.most = 0

    async def resolve(self, host: str, port: int) -> Endpoint:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if host.startswith("refused"):
            raise AddressRefused(f"{host}: private")
        if host.startswith("nowhere"):
            raise ResolutionFailed(host)
        if host.startswith("broken"):
            raise ValueError(host)
        return Endpoint("192.0.2.1", port)


class Seen:
    """A frontier as its look-ups see it: it notes the hosts that go on, and those that have no address."""

    def __init__(self, resolve: Callable[[str, int], Any], **sheet: Any) -> None:
        self.sheet = FrontierSheet(**sheet)
        self.metrics = Metrics()
        self.resolver = SimpleNamespace(resolve=resolve)
        self.went_on: list[str] = []
        self.missed: list[str] = []
        self.turns = SimpleNamespace(put=self.went_on.append, refuse_wants=lambda *_: None)
        self.politeness = SimpleNamespace(missed=self.missed.append)
        self.totals, self.failures = CrawlTotals(FrontierSheet()), Failures()
        self.signal = lambda role: None


def lookups_of(seen: Any) -> Lookups:
    lookups = Lookups(seen)
    lookups.write = lambda: None  # type: ignore[method-assign]  # there is no ledger
    return lookups


def test_every_host_goes_on_and_what_broke_is_told(run: Callable[..., Any]) -> None:
    names = [
        "known.test",
        "refused.test",
        "nowhere.test",
        "broken.test",
        *(f"more{n}.test" for n in range(2 * LOOKUPS)),
    ]
    answers = Answers()
    seen, hosts = Seen(answers.resolve), {name: FrontierHost(name) for name in names}

    async def body() -> None:
        lookups = lookups_of(seen)
        for name, host in hosts.items():
            assert not lookups.is_known(host, Task(f"http://{name}/", name))
        while len(lookups):
            await asyncio.sleep(0)
        await lookups.close()

    run(body())
    assert set(seen.went_on) == set(names)
    assert seen.missed == ["nowhere.test"]
    assert hosts["nowhere.test"].ports == {}
    assert (hosts["known.test"].address, hosts["known.test"].ports) == ("192.0.2.1", {80: ""})
    assert (hosts["refused.test"].address, hosts["refused.test"].ports) == ("", {80: "refused.test: private"})
    assert (hosts["broken.test"].address, hosts["broken.test"].ports) == ("", {80: ""})
    assert seen.metrics.counters["broken_resolver:ValueError"] == 1
    assert answers.most == LOOKUPS


def test_a_page_that_names_thousands_of_hosts_delays_only_its_own(run: Callable[..., Any]) -> None:
    seen = Seen(Answers().resolve)

    async def body() -> None:
        lookups = lookups_of(seen)
        for number in range(2000):
            name = f"nowhere{number}.test"
            lookups.is_known(FrontierHost(name), Task(f"http://{name}/", name, source="http://flood.test/page"))
        for number in range(10):
            name = f"known{number}.test"
            lookups.is_known(FrontierHost(name), Task(f"http://{name}/", name, source="http://well.test/"))
        while sum(name.startswith("known") for name in seen.went_on) < 10:
            await asyncio.sleep(0)
        await lookups.close()

    run(body())
    assert len(seen.went_on) < 3 * LOOKUPS


def test_an_address_is_no_name_that_is_looked_up(run: Callable[..., Any]) -> None:
    async def body() -> None:
        lookups = lookups_of(Seen(Answers().resolve))
        for number in range(LOOKUPS):
            lookups.is_known(FrontierHost(f"127.0.0.{number}"), Task(f"http://127.0.0.{number}/", f"127.0.0.{number}"))
        lookups.is_known(FrontierHost("[::1]"), Task("http://[::1]/", "[::1]"))
        lookups.is_known(FrontierHost("a.test"), Task("http://a.test/", "a.test"))
        assert (len(lookups), lookups.names) == (LOOKUPS + 2, 1)
        while len(lookups):
            await asyncio.sleep(0)
        assert lookups.names == 0
        await lookups.close()

    run(body())


@pytest.mark.parametrize("unresolved", [(), ("echo",)])
def test_names_of_a_scheme_that_has_no_machines_are_not_looked_up(run: Any, unresolved: tuple[str, ...]) -> None:
    async def body() -> None:
        asked: list[str] = []

        async def resolve(host: str, port: int) -> None:
            asked.append(host)
            raise ResolutionFailed(host)

        addresses = lookups_of(Seen(resolve, unresolved=unresolved))
        host = FrontierHost("name.test")
        assert addresses.is_known(host, Task("echo://name.test/", "name.test")) is bool(unresolved)
        while len(addresses):
            await asyncio.sleep(0)
        assert bool(asked) is not bool(unresolved)
        await addresses.close()

    run(body())


@pytest.mark.parametrize("robots", [Outcome.CLIENT_ERROR, Outcome.CONNECT_FAILED])
def test_a_server_that_answered_for_its_robots_txt_is_there_although_its_page_failed(robots: Outcome) -> None:
    totals = CrawlTotals(FrontierSheet())
    totals.sown("http://a.test/")
    totals.answered(Answer("http://a.test/robots.txt", "a.test", robots, 0.0))
    totals.answered(Answer("http://a.test/", "a.test", Outcome.PROTOCOL_FAILED, 0.0))
    assert totals.is_unserved is (robots is Outcome.CONNECT_FAILED)
