"""Names are looked up a bounded number at once, and no answer of a resolver holds a host up."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gossamer.fetcher.contract import Endpoint
from gossamer.frontier.host_turns import FrontierHost
from gossamer.frontier.limits import CrawlLimits, Failures, Stopping
from gossamer.frontier.lookups import LOOKUPS, HostAddresses, Lookups
from gossamer.frontier.sheet import FrontierSheet
from gossamer.values.errors import AddressRefused, ResolutionFailed
from gossamer.values.task import Task


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


def test_every_host_goes_on_and_what_broke_is_told(run: Callable[..., Any]) -> None:
    names = [
        "known.test",
        "refused.test",
        "nowhere.test",
        "broken.test",
        *(f"more{n}.test" for n in range(2 * LOOKUPS)),
    ]
    answers, known, missing, broken = Answers(), list[FrontierHost](), list[FrontierHost](), list[Exception]()

    async def body() -> None:
        lookups = Lookups(lambda: answers, known.append, missing.append, missing.append, broken.append)
        for name in names:
            lookups.seek(FrontierHost(name), Task(f"http://{name}/", name), 80)
        while len(lookups):
            await asyncio.sleep(0)
        await lookups.close()

    run(body())
    found = {host.name: (host.address, host.ports[80]) for host in known}
    assert set(found) == {name for name in names if name != "nowhere.test"}
    assert [(host.name, host.ports) for host in missing] == [("nowhere.test", {})]
    assert found["known.test"] == ("192.0.2.1", "")
    assert found["refused.test"] == ("", "refused.test: private")
    assert found["broken.test"] == ("", "")
    assert [type(error) for error in broken] == [ValueError]
    assert answers.most == LOOKUPS


def test_a_page_that_names_thousands_of_hosts_keeps_nobody_elses_waiting(run: Callable[..., Any]) -> None:
    answers, known = Answers(), list[FrontierHost]()

    async def body() -> None:
        lookups = Lookups(lambda: answers, known.append, known.append, known.append, broken=lambda error: None)
        for number in range(2000):
            name = f"nowhere{number}.test"
            lookups.seek(FrontierHost(name), Task(f"http://{name}/", name, source="http://flood.test/page"), 80)
        for number in range(10):
            name = f"known{number}.test"
            lookups.seek(FrontierHost(name), Task(f"http://{name}/", name, source="http://well.test/"), 80)
        while sum(host.name.startswith("known") for host in known) < 10:
            await asyncio.sleep(0)
        await lookups.close()

    run(body())
    assert len(known) < 3 * LOOKUPS


@pytest.mark.parametrize("unresolved", [(), ("echo",)])
def test_names_of_a_scheme_that_has_no_machines_are_not_looked_up(run: Any, unresolved: tuple[str, ...]) -> None:
    async def body() -> None:
        asked: list[str] = []

        async def resolve(host: str, port: int) -> None:
            asked.append(host)
            raise ResolutionFailed(host)

        uses: Any = SimpleNamespace(
            sheet=FrontierSheet(unresolved=unresolved),
            resolver=SimpleNamespace(resolve=resolve),
            politeness=SimpleNamespace(missed=lambda host: None),
        )
        stopping, failures = Stopping(CrawlLimits(), ""), Failures()
        addresses = HostAddresses(uses, stopping, failures, lambda host: None, lambda error: None)
        host = FrontierHost("name.test")
        assert addresses.is_known(host, Task("echo://name.test/", "name.test")) is bool(unresolved)
        while len(addresses):
            await asyncio.sleep(0)
        assert bool(asked) is not bool(unresolved)
        await addresses.close()

    run(body())
