"""Crawls whose agents join from machines of their own, which are killed, suspended and cut off: what must hold, by the web's log.

Each machine is a network namespace of Linux (root is needed), with an address of its own on one bridge; cutting it off takes its
link down, and a slow link drops what does not fit its queue. A web is on loopback alone, so each namespace has a relay to it, over
a socket in the file system. There is one machine more than there are agents, a store, and a lease of four seconds. Faults come one
after the other, each as soon as both agents have published since the one before.
"""

import asyncio
import contextlib
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path

from gossamer.agents.cluster import living
from gossamer.engine import processes
from gossamer.engine.remote.handshake import SECRET_VARIABLE
from tools.killing import Told
from tools.killing.site import send, served, started
from tools.killing.stores import AGENTS, FIRST, PublishingCrawl, play

#: Namespaces of machines; the supervisor has another one, number 0.
MACHINES = (1, 2, 3)

#: Kilobits a second of a slow link: the least carries hardly more than beats.
_SLOW = (8, 32, 128)

_PORT = 8650


class MachineFault(StrEnum):
    """Something that happens to a machine that has an agent, or to the supervisor."""

    AGENT = "an agent is killed"
    MACHINE = "all processes of a machine are killed, and its folder is gone"
    SUSPENDED = "a machine is suspended until another one has its agent, and wakes up then"
    SHORT_CUT = "the link of a machine is down for most of the lease"
    LONG_CUT = "the link of a machine is down until another one has its agent"
    SLOWED = "the link of a machine carries some kilobytes a second and drops the rest, for up to three leases"
    SUPERVISOR = "the supervisor is killed"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Network:
    """Namespaces on one bridge."""

    def __init__(self) -> None:
        self._name = f"g{secrets.token_hex(3)}"

    def __enter__(self) -> "Network":
        hub = self.space("hub")
        _ip("netns", "add", hub)
        _ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        _ip("-n", hub, "link", "set", "bridge", "up")
        for number in (0, *MACHINES):
            space = self.space(number)
            _ip("netns", "add", space)
            _ip("-n", space, "link", "set", "lo", "up")
            _ip("-n", space, "link", "add", "eth", "type", "veth", "peer", "name", f"to{number}", "netns", hub)
            _ip("-n", space, "address", "add", f"{self.address(number)}/24", "dev", "eth")
            _ip("-n", space, "link", "set", "eth", "up")
            _ip("-n", hub, "link", "set", f"to{number}", "master", "bridge", "up")
        return self

    def __exit__(self, *_: object) -> None:
        for space in (*map(self.space, (0, *MACHINES)), self.space("hub")):
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)

    def space(self, number: int | str) -> str:
        return f"{self._name}-{number}"

    def address(self, number: int) -> str:
        return f"10.77.0.{number + 1}"

    def within(self, number: int, command: list[str]) -> list[str]:
        return ["ip", "netns", "exec", self.space(number), *command]

    def cut(self, number: int, *, is_up: bool) -> None:
        _ip("-n", self.space("hub"), "link", "set", f"to{number}", "up" if is_up else "down")

    def slow(self, number: int, kilobits: int) -> None:
        """Let the link of a machine carry so much, both ways; 0: all again."""
        rate = ("tbf", "rate", f"{kilobits}kbit", "burst", "4kb", "latency", "400ms")
        for space, name in ((number, "eth"), ("hub", f"to{number}")):
            words = ("add", "dev", name, "root", *rate) if kilobits else ("del", "dev", name, "root")
            command = ["ip", "netns", "exec", self.space(space), "tc", "qdisc", *words]
            subprocess.run(command, check=True, capture_output=True)


class JoinedCrawl(PublishingCrawl):
    def __init__(self, folder: Path, seed: int, told: Told) -> None:
        super().__init__(folder, seed, told)
        self._network = Network()
        self._environment = {**processes.environment(), SECRET_VARIABLE: secrets.token_hex(16)}
        self._machines: dict[int, tuple[subprocess.Popen[bytes], Path]] = {}
        self._old: list[subprocess.Popen[bytes]] = []
        self._count = 0

    def run(self, most: int) -> int:
        with self._network, served(self._round, self._log) as port, self._relays(port):
            self._listen = f"{self._network.address(0)}:{_PORT}"
            more = ["--cluster", "joined", "--listen", self._listen, *self._options()]
            self.process = self._begin(0, [*self._round.command(self._folder / "crawl", port), *more], "supervisor")
            for number in MACHINES:
                self._join(number)
            try:
                done = self._play(most)
                self._end("supervisor.said")
                for process in self._old:  # machines whose agent went on elsewhere have to end by themselves
                    try:
                        process.wait(60)
                    except subprocess.TimeoutExpired:
                        self._told.wrong.append(
                            f"{self._folder.name}: a machine whose agent went on elsewhere goes on, too"
                        )
            finally:
                for place in self._folder.glob("machine-*"):
                    if place.is_dir():
                        send(signal.SIGKILL, set(living(place, AGENTS).values()))
                for process in (self.process, *self._old, *(process for process, _ in self._machines.values())):
                    process.kill()
                    process.wait()
        self._judge_store()
        return done

    # -- processes

    def _begin(self, number: int, command: list[str], name: str) -> subprocess.Popen[bytes]:
        command = self._network.within(number, command)
        return started(command, self._folder / f"{name}.said", env=self._environment)

    def _join(self, number: int) -> None:
        """Let a machine join with an empty folder."""
        self._count += 1
        place = self._folder / f"machine-{self._count}"
        command = processes.command("gossamer", "agent", "--join", self._listen, "-o", str(place))
        self._machines[number] = self._begin(number, command, place.name), place

    @contextlib.contextmanager
    def _relays(self, port: int) -> Iterator[None]:
        door = self._folder / "web"
        program = [sys.executable, "-P", "-m", "tools.killing.machines"]
        spaces = [self._network.within(number, [*program, f"{port}", str(door)]) for number in (0, *MACHINES)]
        relays = [subprocess.Popen([*program, str(door), f"{port}"]), *map(subprocess.Popen, spaces)]
        try:
            yield
        finally:
            for relay in relays:
                relay.kill()
                relay.wait()

    def _of(self, number: int) -> set[int]:
        process, place = self._machines[number]
        return {process.pid, *living(place, AGENTS).values()}

    # -- what happens

    def _let(self) -> None:
        fault = self._chance.choice(list(MachineFault))
        for ended in [number for number, (process, _) in self._machines.items() if process.poll() is not None]:
            self._join(ended)  # its agent went on elsewhere in the fault before
        number = self._chance.choice([n for n, (_, place) in self._machines.items() if living(place, AGENTS)] or [1])
        self._told.faults[fault.name.lower()]["machines"] += 1
        process, place = self._machines[number]
        match fault:
            case MachineFault.AGENT:
                send(signal.SIGKILL, set(living(place, AGENTS).values()))
            case MachineFault.MACHINE:
                send(signal.SIGKILL, self._of(number))
                process.wait()
                shutil.rmtree(place, ignore_errors=True)
                self._join(number)
            case MachineFault.SUSPENDED:
                everybody = self._of(number)
                send(signal.SIGSTOP, everybody)
                self._until(lambda: self._is_elsewhere(number))
                send(signal.SIGCONT, everybody)
                self._old.append(process)
                self._join(number)
            case MachineFault.SHORT_CUT:
                self._network.cut(number, is_up=False)
                time.sleep(self._chance.uniform(0.2, 0.9) * self.lease)
                self._network.cut(number, is_up=True)
            case MachineFault.LONG_CUT:
                self._network.cut(number, is_up=False)
                self._until(lambda: self._is_elsewhere(number))
                self._network.cut(number, is_up=True)
                self._old.append(process)
                self._join(number)
            case MachineFault.SLOWED:
                self._network.slow(number, self._chance.choice(_SLOW))
                time.sleep(self._chance.uniform(0.2, 3.0) * self.lease)
                self._network.slow(number, 0)
            case MachineFault.SUPERVISOR:
                send(signal.SIGKILL, {self.process.pid})
                self.process.wait()
                words = ["resume", str(self._folder / "crawl"), "--cluster", "joined", "--listen", self._listen]
                self.process = self._begin(0, processes.command("gossamer", *words, "--json"), "supervisor")

    def _is_elsewhere(self, number: int) -> bool:
        """Both agents live on other machines."""
        others = [place for other, (_, place) in self._machines.items() if other != number]
        return len({name for place in others for name in living(place, AGENTS)}) == FIRST


run = partial(play, JoinedCrawl)


async def _relay(here: str, there: str) -> None:
    """Pass on all that comes at a port of loopback, or a socket, to the other."""

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def joined(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to = (
                asyncio.open_connection("127.0.0.1", int(there))
                if there.isdigit()
                else asyncio.open_unix_connection(there)
            )
            back, on = await to
        except OSError:
            writer.close()
            return
        await asyncio.gather(passed(reader, on), passed(back, writer))

    if here.isdigit():
        server = await asyncio.start_server(joined, "127.0.0.1", int(here))
    else:
        server = await asyncio.start_unix_server(joined, here)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_relay(sys.argv[1], sys.argv[2]))
