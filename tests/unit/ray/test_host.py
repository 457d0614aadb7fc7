"""What Ray runs for an agent, and for a command that another one follows, without Ray."""

import asyncio
import json
import os
import signal
import socket
from pathlib import Path

from gossamer.engine.remote.handshake import SECRET_VARIABLE
from gossamer.ray.host import ENVIRONMENT, INPUT, AgentHost, CommandHost, CommandSaid
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


async def all_of(host: CommandHost) -> tuple[bytes, bytes, int]:
    """All that a command says, on its two streams, and its end."""
    out, wrong, said = bytearray(), bytearray(), CommandSaid(0, [], None)
    async with asyncio.timeout(HUNG_AFTER):
        while said.status is None:
            said = await host.said(said.number)
            for is_error, piece in said.pieces:
                (wrong if is_error else out).extend(piece)
    return bytes(out), bytes(wrong), said.status


def beginning(folder: Path, given: bytes) -> str:
    (folder / ENVIRONMENT).write_text(json.dumps({**os.environ, "GOSSAMER_OF_THIS_TEST": "1"}))
    (folder / INPUT).write_bytes(given)
    return str(folder)


def test_a_command_on_a_node_has_the_folder_and_the_input_of_its_caller_which_gets_all_that_it_says(
    tmp_path: Path,
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "page.html").write_text("<title>of this folder</title>")
    lines = b"".join(b"http://a.test/%d\n" % number for number in range(20_000))

    async def told() -> None:
        out, wrong, status = await all_of(
            CommandHost(["inspect", "page.html", "--base", "http://a.test/"], folder=str(tmp_path / "here"))
        )
        assert (json.loads(out)["title"], wrong, status) == ("of this folder", b"", 0)
        host = CommandHost(["normalize", "-"], beginning(tmp_path, lines))
        assert await all_of(host) == (lines, b"", 0)
        out, wrong, status = await all_of(CommandHost(["status", str(tmp_path / "nowhere")]))
        assert (out, wrong.count(b"\n"), status) == (b"", 1, 2)

    asyncio.run(told())


def test_a_command_gets_the_signals_of_its_caller_and_its_end_is_told(tmp_path: Path) -> None:
    async def told() -> None:
        host = CommandHost(["simweb", "--port", "0", "--pages", "10"])
        said = CommandSaid(0, [], None)
        async with asyncio.timeout(HUNG_AFTER):
            while not said.pieces:
                said = await host.said(said.number)
        await host.send(signal.SIGKILL)
        assert (await all_of(host))[2] == -signal.SIGKILL
        await host.send(signal.SIGKILL)  # it has ended by now

    asyncio.run(told())
