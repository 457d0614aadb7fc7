"""What Ray runs for an agent, without Ray."""

import asyncio
import socket
from pathlib import Path

from gossamer.engine.remote.handshake import SECRET_VARIABLE
from gossamer.ray.host import AgentHost
from gossamer.testing.clock import HUNG_AFTER


def test_an_agent_whose_node_is_to_go_away_ends_in_order(tmp_path: Path) -> None:
    async def told(address: str) -> list[str]:
        host = AgentHost(str(tmp_path), "", address, {SECRET_VARIABLE: "a secret of this test, and of no other"})
        async with asyncio.timeout(HUNG_AFTER):
            while not any("no supervisor answers" in line for line in host._lines):
                await asyncio.sleep(0.05)
            await host.leave()
            lines = await host.ended()
            await host.leave()  # it has ended by now
        assert host._process is not None
        assert host._process.returncode == 0
        return lines

    with socket.create_server(("127.0.0.1", 0)) as unanswered:
        assert asyncio.run(told(f"127.0.0.1:{unanswered.getsockname()[1]}"))
