"""Machines that join a crawl: who is let in, who is not, and what strangers achieve."""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.clusters import TwoAgents

from gossamer.agents.joined import link
from gossamer.agents.joined.machine import JoinedMachine
from gossamer.agents.joined.placed import JoinedPlaced, Machine
from gossamer.agents.joined.welcoming import JoinedCluster
from gossamer.agents.process import ORDERS, AgentOrders
from gossamer.agents.supervision import Solitude
from gossamer.engine.files import scratch
from gossamer.engine.remote.addresses import dialing, new_certificate, serving
from gossamer.engine.remote.frames import FrameKind, FramePipe
from gossamer.engine.remote.handshake import SECRET_VARIABLE
from gossamer.engine.remote.links import HALF_OPEN
from gossamer.testing.clock import HUNG_AFTER
from gossamer.values.errors import CrawlDirectoryError, UsageError

SECRET = "a secret of these tests, and of no others"
OURS = link.own_program()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Welcoming:
    """A cluster that listens, and what it says."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.port, self.lines = free_port(), list[str]()
        self.folder = folder
        crawl = TwoAgents(
            folder / "crawl", scratch, self.lines.append, cluster="joined", listen=f"127.0.0.1:{self.port}"
        )
        self.cluster = JoinedCluster(crawl.needs)

    def machine(self, name: str, *, port: int = 0, secret: str = SECRET, program: link.Program = OURS) -> JoinedMachine:
        to = f"127.0.0.1:{port or self.port}"
        return JoinedMachine(self.folder / name, to, "", secret.encode(), lambda line: None, program=program)

    async def has_joined(self, work: "asyncio.Task[None]") -> None:
        """Wait until a machine is among the nodes."""
        async with asyncio.timeout(HUNG_AFTER):
            while not await self.cluster.nodes():
                assert not work.done(), work.result()
                await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def welcoming(folder: Path) -> AsyncIterator[Welcoming]:
    with scratch(shared=True) as shared:
        one = Welcoming(folder, Path(shared))
        await one.cluster.living(())
        try:
            yield one
        finally:
            await one.cluster.close()


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET_VARIABLE, SECRET)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (msgspec.structs.replace(OURS, version="0.0.1"), "it has Gossamer 0.0.1, and this crawl runs"),
        (msgspec.structs.replace(OURS, python="3.2"), "it has Python 3.2, and this crawl runs on"),
        (msgspec.structs.replace(OURS, parts="other"), "other packages with parts for Gossamer"),
    ],
)
def test_a_machine_with_another_program_is_refused_in_one_line(program: link.Program, why: str, tmp_path: Path) -> None:
    async def joined() -> list[str]:
        async with welcoming(tmp_path) as one, asyncio.timeout(HUNG_AFTER):
            with pytest.raises(UsageError, match=f"refuses this machine: .*{why}"):
                await one.machine("other", program=program).run()
            return one.lines

    assert [line for line in asyncio.run(joined()) if "was refused" in line and why in line and "\n" not in line]


def test_a_port_that_another_program_has_is_one_error_and_no_agent_waits(tmp_path: Path) -> None:
    async def placed() -> list[str]:
        with scratch(shared=True) as shared:
            one = Welcoming(tmp_path, Path(shared))
            with socket.create_server(("127.0.0.1", one.port)):
                places = [one.cluster.place(name) for name in TwoAgents.agents]
                said = await asyncio.gather(*places, return_exceptions=True)
            assert all(isinstance(error, UsageError) for error in said)
            return [*one.lines, *map(str, set(said))]

    [line] = asyncio.run(placed())
    assert "no agent can join: cannot listen at tcp:127.0.0.1" in line and "--listen name another address" in line


@pytest.mark.parametrize("number", ["0", "7", "10"])
def test_versions_that_differ_in_their_last_number_alone_work_together(number: str) -> None:
    series = OURS.version.rpartition(".")[0]
    assert not link.difference(msgspec.structs.replace(OURS, version=f"{series}.{number}"), OURS)
    assert link.difference(msgspec.structs.replace(OURS, version=f"{series}.{number}.{number}"), OURS)


def test_a_wrong_secret_is_refused_in_one_line_and_an_honest_machine_joins_beside_it(tmp_path: Path) -> None:
    async def joined() -> None:
        async with welcoming(tmp_path) as one, asyncio.timeout(HUNG_AFTER):
            with pytest.raises(UsageError, match="the secrets of the two sides are not the same"):
                await one.machine("stranger", secret="another secret, as long as that").run()
            work = asyncio.create_task(one.machine("honest").run())
            await one.has_joined(work)
            await one.cluster.close()
            await work

    asyncio.run(joined())


def test_a_machine_that_no_supervisor_answers_says_so_once_and_dials_on(tmp_path: Path) -> None:
    async def said() -> list[str]:
        lines: list[str] = []
        port = free_port()
        machine = JoinedMachine(tmp_path / "lone", f"127.0.0.1:{port}", "", SECRET.encode(), lines.append)
        work = asyncio.create_task(machine.run())
        async with asyncio.timeout(HUNG_AFTER):
            while not lines:
                await asyncio.sleep(0.05)
        assert not work.done()
        await machine.stop()
        await work
        return [line.replace(str(port), "PORT") for line in lines]

    assert asyncio.run(said()) == ["no supervisor answers at 127.0.0.1:PORT; this asks again until one does"]


def test_silent_strangers_do_not_keep_an_honest_machine_out(tmp_path: Path) -> None:
    async def joined() -> None:
        async with welcoming(tmp_path) as one, asyncio.timeout(HUNG_AFTER):
            silent = [
                await asyncio.open_connection("127.0.0.1", one.port, ssl=dialing() if number % 2 else None)
                for number in range(3 * HALF_OPEN)
            ]
            work = asyncio.create_task(one.machine("honest").run())
            await one.has_joined(work)
            await one.cluster.close()
            await work
            for _, writer in silent:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    asyncio.run(joined())


def test_one_in_between_who_reads_both_sides_is_refused_by_both(tmp_path: Path) -> None:
    """It has a certificate of its own, and passes on all that the two say."""
    certificate = tmp_path / "between.pem"
    certificate.write_bytes(new_certificate("between", 1))

    async def joined() -> None:
        async with welcoming(tmp_path) as one, asyncio.timeout(HUNG_AFTER):

            async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                there, to = await asyncio.open_connection("127.0.0.1", one.port, ssl=dialing())
                await asyncio.gather(passed_on(reader, to), passed_on(there, writer))

            context: ssl.SSLContext = serving(str(certificate))[0]
            server = await asyncio.start_server(between, "127.0.0.1", 0, ssl=context)
            async with server:
                port = server.sockets[0].getsockname()[1]
                with pytest.raises(UsageError, match="the secrets of the two sides are not the same"):
                    await one.machine("honest", port=port).run()

    asyncio.run(joined())


async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


class KeepingPipe(FramePipe):
    """A connection that keeps everything that is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.payloads: list[bytes] = []

    def put(self, kind: FrameKind, payload: bytes) -> None:
        self.payloads.append(payload)


@pytest.mark.parametrize(("says", "restores"), [("agent-00", False), ("", True)])
def test_a_machine_that_was_killed_while_it_brought_an_agent_back_does_so_again(
    says: str, restores: bool, tmp_path: Path
) -> None:
    async def begun() -> link.Begin:
        async with welcoming(tmp_path) as one, asyncio.timeout(HUNG_AFTER):
            one.cluster._homes["agent-00"] = "f"
            pipe = KeepingPipe()
            assert one.cluster._welcomed(link.MachineJoins(OURS, "f", "oslo", agent=says), pipe) is not None
            await one.cluster.place("agent-00")
            said = map(link.to_machine.decode, pipe.payloads)
            return next(message for message in said if isinstance(message, link.Begin))

    assert asyncio.run(begun()).restores is restores


def test_an_agent_that_is_bound_to_a_place_waits_for_a_machine_there_and_leaves_others_free(tmp_path: Path) -> None:
    async def homes() -> dict[str, str]:
        async with welcoming(tmp_path) as one, asyncio.timeout(HUNG_AFTER):
            orders = one.cluster.folder / ORDERS
            bound = msgspec.json.decode(orders.read_bytes(), type=AgentOrders)
            bound = msgspec.structs.replace(bound, members=("agent-00", "agent-01@lima", "agent-02"))
            orders.write_bytes(msgspec.json.encode(bound))
            for place in ("lima", "oslo", ""):
                joining = link.MachineJoins(OURS, f"in {place}", place, place=place)
                one.cluster._welcomed(joining, KeepingPipe())
                # Machines come one by one, so that an agent that could take the wrong one would.
                if place == "lima":
                    first = asyncio.create_task(one.cluster.place("agent-00"))
                    await asyncio.sleep(0)
            await first
            for name in ("agent-02", "agent-01"):
                await one.cluster.place(name)
            return one.cluster._homes

    assert asyncio.run(homes()) == {"agent-00": "in oslo", "agent-01": "in lima", "agent-02": "in "}


def test_an_agent_says_for_a_machine_of_which_place_it_waits(tmp_path: Path) -> None:
    async def said() -> list[str]:
        async with welcoming(tmp_path) as one, asyncio.timeout(HUNG_AFTER):
            orders = one.cluster.folder / ORDERS
            bound = msgspec.json.decode(orders.read_bytes(), type=AgentOrders)
            orders.write_bytes(
                msgspec.json.encode(msgspec.structs.replace(bound, members=("agent-00@lima", "agent-01")))
            )
            one.cluster._welcomed(link.MachineJoins(OURS, "f", "oslo"), KeepingPipe())
            waiting = asyncio.create_task(one.cluster.place("agent-00"))
            while not any("agent-00 waits" in line for line in one.lines):
                await asyncio.sleep(0.02)
            assert not waiting.done()
            waiting.cancel()
            return one.lines

    assert [line for line in asyncio.run(said()) if line.endswith(" --place lima")]


def test_agents_are_told_where_an_agent_is_and_not_where_it_was(tmp_path: Path) -> None:
    """Its machine was lost after another one had joined, which has it now, and is known as long as the supervisor is."""

    async def told() -> link.AgentPlace:
        async with welcoming(tmp_path) as one:
            one.cluster._homes.update({"agent-00": "new", "agent-01": "other"})
            pipe = KeepingPipe()
            machines = [
                one.cluster._welcomed(link.MachineJoins(OURS, "new", "oslo", agent="agent-00"), KeepingPipe()),
                one.cluster._welcomed(link.MachineJoins(OURS, "other", "rome", agent="agent-01"), pipe),
            ]
            lost = Machine(link.MachineJoins(OURS, "old", "lima", agent="agent-00"), KeepingPipe())
            lost.told = link.AgentPlace("tcp:lima:1", b"")
            one.cluster._machines["old"] = lost
            lost.lost()
            assert machines[0] is not None
            one.cluster._hear(machines[0], link.AgentPlace("tcp:oslo:1", b""))
            said = [link.to_machine.decode(payload) for payload in pipe.payloads]
            return [message for message in said if isinstance(message, link.Book)][-1].agents["agent-00"]

    assert asyncio.run(told()).address == "tcp:oslo:1"


@pytest.mark.parametrize(("has_store", "goes_to"), [(False, ""), (True, "spare")])
def test_an_agent_that_cannot_run_on_its_machine_goes_elsewhere_after_the_lease_and_back_where_it_can(
    has_store: bool, goes_to: str, tmp_path: Path
) -> None:
    async def homes() -> list[str]:
        async with welcoming(tmp_path) as one, asyncio.timeout(HUNG_AFTER):
            one.cluster._has_store = has_store
            pipe = KeepingPipe()
            machine = one.cluster._welcomed(link.MachineJoins(OURS, "own", "oslo"), pipe)
            assert machine is not None
            placed = await one.cluster.place("agent-00")
            one.cluster._hear(machine, link.AgentHasEnded(CrawlDirectoryError.exit_code, b""))
            assert await placed.ended(one.lines.append) == CrawlDirectoryError.exit_code
            refused = [m for p in pipe.payloads if isinstance(m := link.to_machine.decode(p), link.Refusal)]
            assert ["agent-00 cannot run there" in message.text for message in refused] == [True]
            found = [one.cluster._free_for("agent-00")]
            one.cluster._welcomed(link.MachineJoins(OURS, "spare", "rome"), KeepingPipe())
            found.append(one.cluster._free_for("agent-00"))
            machine.refused -= one.cluster._lease + link.BEYOND + 1
            found.append(one.cluster._free_for("agent-00"))
            # Its machine has come back, mended: it has the agent within the lease, and later where no other machine is free.
            back = one.cluster._welcomed(link.MachineJoins(OURS, "own", "oslo", agent="agent-00"), KeepingPipe())
            del one.cluster._machines["spare"]
            assert one.cluster._free_for("agent-00") is back
            return ["" if one is None else one.joining.folder for one in found]

    assert asyncio.run(homes()) == ["", "", goes_to]


def test_a_folder_of_another_crawl_is_refused(tmp_path: Path) -> None:
    async def joined() -> None:
        async with welcoming(tmp_path) as one:
            of_another = link.MachineJoins(OURS, "f", "oslo", crawl="another", agent="agent-00")
            assert "has a part of another crawl" in one.cluster._why_refused(of_another)

    asyncio.run(joined())


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"listen": ""}, "needs an address at which agents join; add --listen"),
        ({"listen": "8650"}, "--listen '8650': write HOST:PORT"),
        ({"crawlers": 2}, "--crawlers needs all agents on one machine"),
        ({"exchange": "files"}, "--exchange files needs all agents on one machine"),
        ({"secret_file": "/no/such/file"}, "secret_file '/no/such/file' cannot be read"),
    ],
)
def test_what_cannot_work_over_machines_is_refused_in_one_line(
    options: dict[str, object], why: str, tmp_path: Path
) -> None:
    with scratch(shared=True) as shared:
        needs = TwoAgents(tmp_path / "crawl", Path(shared)).needs
    changed = msgspec.structs.replace(needs.options, **{"cluster": "joined", "listen": "127.0.0.1:8650", **options})
    with pytest.raises(UsageError, match=why):
        JoinedCluster(needs._replace(options=changed))


def test_an_agent_counts_as_gone_after_the_lease_only_where_another_machine_can_have_what_it_keeps() -> None:
    async def looked(after: float | None) -> bool:
        machine = Machine(link.MachineJoins(OURS, "f", "oslo"), FramePipe())
        placed, said = JoinedPlaced("agent-00", machine, after), list[str]()
        machine.lost()
        machine.heard = time.monotonic() - 36.0
        watching = asyncio.create_task(placed.ended(said.append))
        await asyncio.wait([watching], timeout=0.5)
        watching.cancel()
        assert bool(said) is not placed.is_alive
        return placed.is_alive

    assert not asyncio.run(looked(35.0))
    assert asyncio.run(looked(37.0)), "the lease is not over"
    assert asyncio.run(looked(None)), "its machine alone has its pages"


def test_an_agent_is_alone_after_a_part_of_the_lease() -> None:
    solitude = Solitude(lambda line: True, 0.0)
    solitude.asked(10.0)
    assert not solitude.is_over(32.0, 22.5)
    assert solitude.is_over(32.5, 22.5)


@pytest.mark.parametrize("text", ["8650", "h:", ":1", "h:x", "h:70000", "h:0"])
def test_malformed_addresses_are_told_how_they_are_written(text: str) -> None:
    with pytest.raises(UsageError, match="write HOST:PORT"):
        link.host_and_port(text, "--join")


def test_addresses_are_read() -> None:
    assert link.host_and_port("h:1", "--join") == ("h", 1)
    assert link.host_and_port("[::1]:8650", "--join") == ("::1", 8650)
    assert link.host_and_port("192.0.2.7", "--listen", is_own=True) == ("192.0.2.7", 0)
