"""Names by c-ares, against a name server that may do anything (faults 41-53)."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.names import FakeDns, Zone

from gossamer.engine.errors import SettingError
from gossamer.fetcher.cares import DnsResolver, DnsSheet
from gossamer.fetcher.contract import Endpoint
from gossamer.fetcher.http import HttpModule
from gossamer.testing.clock import FakeClock
from gossamer.testing.fakeweb import FakeWeb
from gossamer.testing.fetching import check_resolver
from gossamer.values.errors import AddressRefused, ResolutionFailed
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task

PUBLIC, OTHER = "93.184.216.34", "93.184.216.35"


@asynccontextmanager
async def asking(
    zones: Mapping[str, Any], kind: type[DnsResolver] = DnsResolver, **settings: Any
) -> AsyncIterator[tuple[DnsResolver, FakeDns]]:
    async with FakeDns(zones) as names:
        resolver = kind(DnsSheet(servers=(names.server,), **{"only_loopback": False, **settings}))
        resolver.clock = FakeClock()
        try:
            yield resolver, names
        finally:
            await resolver.stop()


async def failure(resolver: DnsResolver, host: str, port: int = 80) -> Exception:
    with pytest.raises((ResolutionFailed, AddressRefused)) as caught:
        await resolver.resolve(host, port)
    return caught.value


def test_it_keeps_the_promises_of_a_resolver(run: Any) -> None:
    async def body() -> None:
        zones = {"a.test": [PUBLIC, OTHER], "inside.test": ["10.0.0.1"]}
        async with asking(zones) as (resolver, _):
            await check_resolver(
                resolver,
                known=("a.test", 80),
                endpoint=Endpoint(PUBLIC, 80, (OTHER,)),
                unknown=("unknown.test", 80),
                refused=[("inside.test", 80), ("127.0.0.1", 80), ("localhost", 80), ("a.test", 25)],
                lookups=lambda: int(resolver.metrics.counters["lookups"]),
            )

    run(body())


def test_all_addresses_are_kept_ipv4_first_and_no_more_than_sixteen(run: Any) -> None:
    many = [f"93.184.{n // 250}.{n % 250}" for n in range(1000)]

    async def body() -> None:
        async with asking({"a.test": ["2606:2800::1", PUBLIC], "many.test": many}) as (resolver, _):
            assert await resolver.resolve("a.test", 443) == Endpoint(PUBLIC, 443, ("2606:2800::1",))
            found = await resolver.resolve("many.test", 80)
            assert 1 + len(found.others) == 16

    run(body())


def test_an_answer_is_good_for_as_long_as_it_says_within_floor_and_cap(run: Any) -> None:
    async def body() -> None:
        zones = {
            "short.test": Zone([PUBLIC], ttl=0),
            "mid.test": Zone([PUBLIC], ttl=120),
            "long.test": Zone([PUBLIC], ttl=9999),
        }
        async with asking(zones, min_ttl=60, max_ttl=3600) as (resolver, _):
            lookups = resolver.metrics.counters
            for host, good in (("short.test", 60), ("mid.test", 120), ("long.test", 3600)):
                before = lookups["lookups"]
                await resolver.resolve(host, 80)
                await resolver.clock.advance(good - 1)  # type: ignore[attr-defined]
                await resolver.resolve(host, 80)
                assert lookups["lookups"] == before + 1
                await resolver.clock.advance(2)  # type: ignore[attr-defined]
                await resolver.resolve(host, 80)
                assert lookups["lookups"] == before + 2

    run(body())


def test_ports_of_one_name_cost_one_look_up_and_a_failure_is_remembered(run: Any) -> None:
    async def body() -> None:
        async with asking({"a.test": [PUBLIC]}) as (resolver, names):
            for port in (80, 443, 8080):
                assert (await resolver.resolve("a.test", port)).port == port
            assert names.asked["a.test"] == 1
            for _ in range(3):
                await failure(resolver, "gone.test")
            assert names.asked["gone.test"] == 1
            await resolver.clock.advance(61)  # type: ignore[attr-defined]
            await failure(resolver, "gone.test")
            assert names.asked["gone.test"] == 2

    run(body())


def test_aliases_are_followed_eight_times_and_no_further(run: Any) -> None:
    def chain(length: int) -> dict[str, Any]:
        links = {f"c{n}.x{length}.test": Zone(cname=f"c{n + 1}.x{length}.test") for n in range(length)}
        return {**links, f"c{length}.x{length}.test": [PUBLIC]}

    async def body() -> None:
        loop = {"l1.test": Zone(cname="l2.test"), "l2.test": Zone(cname="l1.test")}
        async with asking({**chain(8), **chain(9), **chain(30), **loop}) as (resolver, _):
            assert (await resolver.resolve("c0.x8.test", 80)).address == PUBLIC
            for host in ("c0.x9.test", "c0.x30.test", "l1.test"):
                assert isinstance(await failure(resolver, host), ResolutionFailed)

    run(body())


@pytest.mark.parametrize(
    "zone",
    [Zone(fails=True), Zone(raw=b"\x81\x80" + b"\xff" * 40), Zone(raw=b""), Zone([]), Zone(cname="nowhere.test")],
    ids=["SERVFAIL", "garbage", "empty", "no records", "alias to nothing"],
)
def test_a_name_server_that_fails_is_a_name_without_address(run: Any, zone: Zone) -> None:
    async def body() -> None:
        async with asking({"a.test": zone}, deadline=1.0) as (resolver, _):
            waiting = asyncio.ensure_future(failure(resolver, "a.test"))
            # Garbage is no answer to c-ares, so that the deadline ends it.
            await asyncio.wait({waiting}, timeout=0.5)
            await resolver.clock.advance(2)  # type: ignore[attr-defined]
            assert isinstance(await waiting, ResolutionFailed)

    run(body())


def test_a_silent_name_server_meets_the_deadline(run: Any) -> None:
    async def body() -> None:
        async with asking({"a.test": Zone(silent=True)}) as (resolver, names):
            waiting = asyncio.ensure_future(failure(resolver, "a.test"))
            while not names.asked["a.test"]:
                await asyncio.sleep(0.001)
            await resolver.clock.advance(4.9)  # type: ignore[attr-defined]
            assert not waiting.done()
            await resolver.clock.advance(0.2)  # type: ignore[attr-defined]
            assert "within 5 s" in str(await waiting)

    run(body())


@pytest.mark.parametrize(
    "addresses",
    [
        [PUBLIC, "127.0.0.1"],
        [PUBLIC, "::ffff:10.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["2002:7f00:1::"],
        ["::127.0.0.1"],
        ["169.254.169.254"],
        ["fd00:ec2::254"],
        [*(f"93.184.216.{n}" for n in range(60)), "192.168.0.1"],
    ],
)
def test_one_closed_address_closes_the_whole_name(run: Any, addresses: list[str]) -> None:
    async def body() -> None:
        async with asking({"a.test": addresses}) as (resolver, _):
            reason = await failure(resolver, "a.test")
            assert isinstance(reason, AddressRefused)
            assert not any(address in str(reason) for address in addresses)

    run(body())


def test_a_name_that_turns_to_a_closed_address_is_refused_at_its_next_look_up(run: Any) -> None:
    answers: Iterator[list[str]] = iter([["127.0.0.1"]] * 2 + [["127.0.0.1", "10.0.0.1"]] * 9)

    async def body() -> None:
        async with FakeWeb({"/": "page"}) as web:
            settings = {"allow_networks": ("127.0.0.0/8",), "allow_ports": (web.port,), "min_ttl": 0, "max_ttl": 0}
            async with asking({"a.test": lambda: Zone(next(answers), ttl=0)}, **settings) as (resolver, names):
                module = HttpModule()
                module.resolver = resolver
                await module.start()
                task = Task(f"http://a.test:{web.port}/", host="a.test")
                assert (await module.fetch(task)).outcome is Outcome.OK
                # The connection is kept alive, and the verdict on the name holds for it all the same.
                while (outcome := (await module.fetch(task)).outcome) is Outcome.OK:
                    pass
                assert outcome is Outcome.ADDRESS_REFUSED
                assert names.asked["a.test"] > 1
                await module.stop()

    run(body())


def test_local_names_and_the_hosts_file_are_known_without_a_name_server(run: Any) -> None:
    async def body() -> None:
        async with asking({}, seed_hosts=("localhost",)) as (resolver, names):
            endpoint = await resolver.resolve("localhost", 80)
            assert endpoint.address == "127.0.0.1"
            assert not names.asked
            assert isinstance(await failure(resolver, "intranet"), AddressRefused)
            assert not names.asked

    run(body())


def test_a_search_domain_is_never_added(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALDOMAIN", "evil.test")

    async def body() -> None:
        async with asking({}) as (resolver, names):
            await failure(resolver, "a.test")
            assert set(names.asked) == {"a.test"}

    run(body())


def test_names_are_looked_up_ahead_within_bounds_and_again_before_they_end(run: Any) -> None:
    async def body() -> None:
        zones = {f"h{n}.test": Zone([PUBLIC], ttl=0) for n in range(10)}
        async with asking({**zones, "slow.test": Zone(silent=True)}, ahead=4, refresh=30, min_ttl=100) as (
            resolver,
            names,
        ):
            resolver.prefetch([(f"h{n}.test", 80) for n in range(10)])
            assert resolver.metrics.counters["prefetch_left"] == 6
            while resolver.metrics.snapshot()["ahead"]:
                await asyncio.sleep(0.001)
            assert sum(names.asked.values()) == 4
            before = resolver.metrics.counters["lookups"]
            assert (await resolver.resolve("h0.test", 80)).address == PUBLIC
            resolver.prefetch([("h0.test", 80)] * 5)
            assert resolver.metrics.counters["lookups"] == before
            await resolver.clock.advance(80)  # type: ignore[attr-defined]
            resolver.prefetch([("h0.test", 80)] * 5)
            resolver.prefetch([("gone.test", 80)])
            while resolver.metrics.snapshot()["ahead"]:
                await asyncio.sleep(0.001)
            assert names.asked["h0.test"] == 2
            await resolver.clock.advance(50)  # type: ignore[attr-defined]
            await resolver.resolve("h0.test", 80)
            assert names.asked["h0.test"] == 2
            resolver.prefetch([("slow.test", 80)])

    run(body())


def test_a_channel_that_has_answered_much_makes_room_for_a_new_one(run: Any) -> None:
    class SoonRenewed(DnsResolver):
        renewed_after = 5

    async def body() -> None:
        zones = {f"h{n}.test": [PUBLIC] for n in range(40)}
        async with asking(zones, SoonRenewed) as (resolver, names):
            await asyncio.gather(*(resolver.resolve(host, 80) for host in zones))
            assert sum(names.asked.values()) == 40

    run(body())


@pytest.mark.parametrize("server", ["ns.test", "127.0.0.1:x", "127.0.0.1:99999", ""])
def test_a_name_server_that_cannot_be_asked_is_refused_at_the_start(server: str) -> None:
    with pytest.raises(SettingError, match="ADDRESS"):
        DnsResolver(DnsSheet(servers=(server,)))


def test_the_system_is_asked_where_no_server_is_named(run: Any) -> None:
    async def body() -> str:
        resolver = DnsResolver(DnsSheet(seed_hosts=("localhost",)))
        found = await resolver.resolve("localhost", 80)
        await resolver.stop()
        return found.address

    assert run(body()) == socket.gethostbyname("localhost")
