"""Resolvers: the table, the cache, and that nothing leaves without the guard's word."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from gossamer.engine.errors import SettingError
from gossamer.fetcher.contract import Endpoint
from gossamer.fetcher.dns import CachedResolver, CachedSheet, FoundAddresses, ResolverSheet, SystemResolver, entry_of
from gossamer.testing.clock import FakeClock
from gossamer.values.errors import AddressRefused, ResolutionFailed


class Scripted(SystemResolver):
    """A resolver whose operating system is a dictionary; a name that is not in it has no address."""

    def __init__(self, sheet: ResolverSheet, **addresses: Sequence[str]) -> None:
        super().__init__(sheet)
        self.known = {name.replace("_", "."): list(found) for name, found in addresses.items()}
        self.clock = FakeClock()

    async def find(self, host: str) -> FoundAddresses:
        await asyncio.sleep(0)
        if host == "slow.test":
            await asyncio.Event().wait()
        if host not in self.known:
            raise ResolutionFailed(f"{host}: no such name")
        return FoundAddresses(self.known[host])


OPEN = ResolverSheet(only_loopback=False)


def lookups(resolver: SystemResolver | CachedResolver) -> int:
    return resolver.metrics.counters["lookups"]


def test_the_first_entry_that_fits_wins_and_may_change_the_port(run: Any) -> None:
    entries = ("*.a.test=127.0.0.2:8080", "b.*=127.0.0.3", "*=[::1]:99")
    resolver = SystemResolver(ResolverSheet(resolve=entries, allow_networks=("127.0.0.0/8", "::1/128")))

    async def body() -> list[Endpoint]:
        return [await resolver.resolve(host, 8000) for host in ("x.a.test", "b.a.test", "b.test", "a.test")]

    assert run(body()) == [
        Endpoint("127.0.0.2", 8080),
        Endpoint("127.0.0.2", 8080),
        Endpoint("127.0.0.3", 8000),
        Endpoint("::1", 99),
    ]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a.test", "PATTERN=ADDRESS"),
        ("=127.0.0.1", "PATTERN=ADDRESS"),
        ("a.test=", "PATTERN=ADDRESS"),
        ("a.test=b.test", "'b.test' is not an IP address"),
        ("a.test=127.0.0.1:0", "'0' is not a port"),
        ("a.test=127.0.0.1:http", "'http' is not a port"),
        ("a.test=[::1]:70000", "'70000' is not a port"),
    ],
)
def test_an_entry_that_cannot_be_read_says_what_is_wrong(text: str, word: str) -> None:
    with pytest.raises(SettingError, match="resolve entry") as caught:
        entry_of(text)
    assert word in str(caught.value)


def test_an_entry_gives_no_permission_that_its_host_has_not(run: Any) -> None:
    resolver = SystemResolver(ResolverSheet(resolve=("*=127.0.0.1:8080",), seed_hosts=("a.test:80",)))
    assert run(resolver.resolve("a.test", 80)) == Endpoint("127.0.0.1", 8080)
    with pytest.raises(AddressRefused, match="a loopback address"):
        run(resolver.resolve("b.test", 80))


def test_off_loopback_is_refused_until_it_is_allowed(run: Any) -> None:
    with pytest.raises(AddressRefused, match="off loopback"):
        run(Scripted(ResolverSheet(), a_test=["93.184.216.34"]).resolve("a.test", 80))
    assert run(Scripted(OPEN, a_test=["93.184.216.34"]).resolve("a.test", 80)) == Endpoint("93.184.216.34", 80)


def test_a_name_with_one_private_answer_is_refused_whole(run: Any) -> None:
    with pytest.raises(AddressRefused, match="a private address"):
        run(Scripted(OPEN, a_test=["93.184.216.34", "10.0.0.1"]).resolve("a.test", 80))


def test_literals_are_judged_like_names(run: Any) -> None:
    for host in ("127.0.0.1", "::1", "169.254.169.254", "::ffff:10.0.0.1"):
        with pytest.raises(AddressRefused):
            run(Scripted(OPEN).resolve(host, 80))


def test_a_blocked_port_opens_only_where_a_loopback_seed_names_it(run: Any) -> None:
    sheet = ResolverSheet(seed_hosts=("127.0.0.1:6379", "127.0.0.1"))
    assert run(Scripted(sheet).resolve("127.0.0.1", 6379)).port == 6379
    for question in (("127.0.0.1", 22), ("127.0.0.2", 6379)):
        with pytest.raises(AddressRefused):
            run(Scripted(sheet).resolve(*question))
    private = ResolverSheet(seed_hosts=("10.0.0.1:6379",), only_loopback=False)
    with pytest.raises(AddressRefused, match="port 6379 is blocked for crawls"):
        run(Scripted(private).resolve("10.0.0.1", 6379))


def test_answers_live_as_long_as_their_time_says(run: Any) -> None:
    async def body() -> None:
        clock = FakeClock()
        resolver = Scripted(ResolverSheet(only_loopback=False, ttl=300, negative_ttl=60), a_test=["93.184.216.34"])
        resolver.clock = clock
        for seconds, host, expected in (
            (0, "a.test", 1),
            (299, "a.test", 1),
            (2, "a.test", 2),
            (0, "no.test", 3),
            (59, "no.test", 3),
            (2, "no.test", 4),
        ):
            await clock.advance(seconds)
            try:
                await resolver.resolve(host, 80)
            except ResolutionFailed:
                assert host == "no.test"
            assert lookups(resolver) == expected

    run(body())


def test_a_full_cache_forgets_the_oldest(run: Any) -> None:
    async def body() -> None:
        resolver = Scripted(
            ResolverSheet(only_loopback=False, capacity=2), **{f"h{n}": ["93.184.216.34"] for n in "123"}
        )
        resolver.known = {f"h{n}.test": ["93.184.216.34"] for n in "123"}
        for host in ("h1.test", "h2.test", "h3.test", "h3.test", "h2.test"):
            await resolver.resolve(host, 80)
        assert lookups(resolver) == 3
        await resolver.resolve("h1.test", 80)
        assert lookups(resolver) == 4
        assert resolver.metrics.snapshot()["answers"] == 2

    run(body())


def test_a_look_up_has_a_deadline(run: Any) -> None:
    async def body() -> None:
        clock = FakeClock()
        resolver = Scripted(OPEN)
        resolver.clock = clock
        asking = asyncio.ensure_future(resolver.resolve("slow.test", 80))
        await clock.advance(4.9)
        assert not asking.done()
        await clock.advance(0.2)
        with pytest.raises(ResolutionFailed, match="the resolver gave no answer within 5 s"):
            await asking

    run(body())


def test_a_new_sheet_judges_anew(run: Any) -> None:
    async def body() -> None:
        resolver = Scripted(OPEN, a_test=["10.0.0.1"])
        with pytest.raises(AddressRefused):
            await resolver.resolve("a.test", 80)
        before, resolver.sheet = resolver.sheet, ResolverSheet(only_loopback=False, allow_networks=("10.0.0.0/8",))
        resolver.changed(before)
        assert (await resolver.resolve("a.test", 80)).address == "10.0.0.1"

    run(body())


def test_all_addresses_are_kept_up_to_sixteen(run: Any) -> None:
    addresses = [f"93.184.216.{n}" for n in range(1, 30)]
    endpoint = run(Scripted(OPEN, a_test=addresses).resolve("a.test", 80))
    assert (endpoint.address, *endpoint.others) == tuple(addresses[:16])


def test_localhost_is_asked_of_the_system_ipv4_first(run: Any) -> None:
    endpoint = run(SystemResolver(ResolverSheet(seed_hosts=("localhost:8000",))).resolve("localhost", 8000))
    assert endpoint.address == "127.0.0.1"


def test_a_cache_asks_behind_once_per_time_to_live(run: Any) -> None:
    async def body() -> None:
        clock = FakeClock()
        cache, behind = CachedResolver(CachedSheet(ttl=10)), Scripted(ResolverSheet(only_loopback=False, ttl=0))
        behind.known["a.test"] = ["93.184.216.34"]
        cache.behind, cache.clock = behind, clock
        for _ in range(5):
            await cache.resolve("a.test", 80)
        assert (lookups(cache), lookups(behind)) == (1, 1)
        await clock.advance(11)
        await cache.resolve("a.test", 80)
        assert (lookups(cache), lookups(behind)) == (2, 2)

    run(body())
