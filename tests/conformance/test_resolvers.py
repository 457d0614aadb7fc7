"""Every resolver of ours keeps the promises of `fetcher.contract`."""

import asyncio
from typing import Any

import pytest

from gossamer.fetcher.contract import Endpoint
from gossamer.fetcher.dns import CachedResolver, FoundAddresses, ResolverSheet, SystemResolver
from gossamer.testing.fetching import check_resolver
from gossamer.values.errors import ResolutionFailed


class Names(SystemResolver):
    """Two names, without the operating system."""

    async def find(self, host: str) -> FoundAddresses:
        await asyncio.sleep(0)
        if host == "unknown.test":
            raise ResolutionFailed("no such name")
        return FoundAddresses(["10.0.0.1"] if host == "inside.test" else ["93.184.216.34", "93.184.216.35"])


@pytest.mark.parametrize("cached", [False, True], ids=["SystemResolver", "CachedResolver"])
def test_resolver(cached: bool, run: Any) -> None:
    async def body() -> None:
        system = Names(ResolverSheet(only_loopback=False))
        resolver: SystemResolver | CachedResolver = system
        if cached:
            resolver = CachedResolver()
            resolver.behind = system
        await check_resolver(
            resolver,
            known=("a.test", 80),
            endpoint=Endpoint("93.184.216.34", 80, ("93.184.216.35",)),
            unknown=("unknown.test", 80),
            refused=[("inside.test", 80), ("127.0.0.1", 80), ("localhost", 80), ("a.test", 25)],
            lookups=lambda: system.metrics.counters["lookups"],
        )
        await resolver.stop()

    run(body())
