"""Listening sockets: how they end."""

import asyncio
import gc
import socket
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from gossamer.crawls.machine import loop_factory
from gossamer.engine.remote.addresses import stop_listening

Loops = Callable[[], asyncio.AbstractEventLoop]


@pytest.mark.parametrize("loops", [asyncio.new_event_loop, loop_factory()])
@pytest.mark.parametrize("steps", range(5))
def test_a_connection_that_was_just_accepted_is_not_forgotten(loops: Loops, steps: int) -> None:
    """Each number of steps of the loop ends at another point between a connection that waits and one that has begun."""

    class Aborting(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            transport.abort()

    async def stop() -> None:
        server = await asyncio.get_running_loop().create_server(Aborting, "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()):
            for _ in range(steps):
                await asyncio.sleep(0)
            await stop_listening(server)
            for _ in range(5):
                await asyncio.sleep(0)
            await server.wait_closed()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with asyncio.Runner(loop_factory=loops) as runner:
            runner.run(stop())
        gc.collect()
    assert not [one for one in told if one.category is ResourceWarning]
