"""A module that fetches from a fake web, for every test of fetching."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from gossamer.fetcher.dns import ResolverSheet, SystemResolver
from gossamer.fetcher.http import HttpModule
from gossamer.fetcher.request import HttpSheet
from gossamer.testing.clock import FakeClock
from gossamer.testing.fakeweb import FakeWeb
from gossamer.values.task import Task


def task(url: str) -> Task:
    """A task for a URL."""
    return Task(url, host="host")


@asynccontextmanager
async def fetching(
    web: FakeWeb, sheet: HttpSheet | None = None, clock: FakeClock | None = None
) -> AsyncIterator[HttpModule]:
    """A started module whose resolver leads every name to `web`."""
    module = HttpModule(sheet)
    resolver = SystemResolver(
        ResolverSheet(resolve=(web.resolve,), allow_networks=("127.0.0.0/8",), allow_ports=(web.port,))
    )
    module.resolver = resolver
    if clock is not None:
        module.clock = clock
    await module.start()
    try:
        yield module
    finally:
        await module.stop()
        await resolver.stop()


@pytest.fixture(name="fetching")
def _fetching() -> Callable[..., AbstractAsyncContextManager[HttpModule]]:
    return fetching
