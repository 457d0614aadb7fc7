"""Crawls that Ray has placed: nodes, workers, supervisors and commands are killed and suspended; what must hold, by the web's log.

Ray has a head without processors and two nodes, all on loopback, in the environment that `./gossamer dev ray` makes. Each node has
a disk of its own for the folders of agents: a mount of Linux (root is needed) that only its processes see. There is a store, and a
lease of four seconds. Faults come one after the other, each as soon as both agents have published since the one before.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path

from gossamer.agents.cluster import living
from gossamer.storage.members import holder_of
from tools import ROOT
from tools.killing import Told
from tools.killing.site import send, served, started
from tools.killing.stores import AGENTS, FIRST, PublishingCrawl, play

_PYTHON = str(ROOT / ".ray/bin/python")

#: Ports for which a raylet otherwise waits, 15 s, until its helpers have chosen them; on a busy machine it then gives up.
RAYLET_PORTS = (
    "node-manager-port",
    "object-manager-port",
    "dashboard-agent-grpc-port",
    "dashboard-agent-listen-port",
    "runtime-env-agent-port",
    "metrics-export-port",
)

#: How soon Ray takes a node for lost that does not answer: a busy machine is slow, and a campaign does not wait for half a minute.
_HEALTH = {
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "4000",
    "RAY_health_check_failure_threshold": "5",
    "RAY_raylet_start_wait_time_s": "300",
}

#: Seconds in which a node has to begin.
_BEGINS = 120.0


class RayFault(StrEnum):
    """Something that happens to a node that has an agent, to the supervisor, or to the command that follows it."""

    RAYLET = "a raylet is killed, and the disk of its node is gone"
    WORKER = "a worker of Ray is killed"
    SUSPENDED = "all of a node is suspended until the other one has its agents, and wakes up then"
    DRAINED = "Ray takes a node away, which hands back what it has"
    COMMAND = "the command is killed, without which the crawl goes on; another one follows it"
    SUPERVISOR = "the worker of Ray is killed that has the supervisor"


#: Those after which agents go on elsewhere.
_OF_NODES = (RayFault.RAYLET, RayFault.SUSPENDED, RayFault.DRAINED)


class RayNode:
    """One node, in processes that it has begun."""

    def __init__(self, home: Path, environment: dict[str, str], address: str, disk: Path | None, seen: Path) -> None:
        """Begin it. The head has no `address` of another one, and no disk; others see their disk at `seen`."""
        with contextlib.ExitStack() as held:
            sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in (*RAYLET_PORTS, "port")]
            ports = [one.getsockname()[1] for one in sockets]
        self.disk = disk or seen
        self.address = address or f"127.0.0.1:{ports[-1]}"
        words = [f"--{name}={port}" for name, port in zip(RAYLET_PORTS, ports, strict=False)]
        words += ["--block", "--disable-usage-stats", "--node-ip-address=127.0.0.1", "--object-store-memory=80000000"]
        words += ["--min-worker-port=0", "--max-worker-port=0"]
        if disk is None:
            words += ["--head", f"--port={ports[-1]}", f"--temp-dir={home}"]
            words += ["--num-cpus=0", "--include-dashboard=false"]
        else:
            words += [f"--address={address}", "--num-cpus=2"]
        command = [_PYTHON, "-P", "-m", "ray.scripts.scripts", "start", *words]
        if disk is not None:
            disk.mkdir()
            mounted = 'mount --bind "$0" "$1" && shift && exec "$@"'
            command = ["unshare", "-m", "sh", "-c", mounted, str(disk), str(seen), *command]
        said = seen.with_name(f"ray-{ports[0]}.said")
        said.unlink(missing_ok=True)  # of another node that had this port
        self.process = started(command, said, env=environment, cwd=home.parent, start_new_session=True)
        self.port = ports[0]
        self._raylet = f"--node_manager_port={self.port}".encode()
        until = time.monotonic() + _BEGINS
        while "Ray runtime started" not in said.read_text("utf-8", "replace"):
            if self.process.poll() is not None or time.monotonic() > until:
                self.end()
                raise ChildProcessError(said.read_text("utf-8", "replace")[-2_000:])
            time.sleep(0.2)

    def raylets(self) -> set[int]:
        found = set[int]()
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if words[0].endswith(b"/raylet") and self._raylet in words:
                    found.add(int(path.parent.name))
        return found

    def agents(self) -> dict[str, int]:
        return {name: number for place in self.disk.glob("*") for name, number in living(place, AGENTS).items()}

    def end(self) -> None:
        send(signal.SIGKILL, {self.process.pid, *self.raylets()})
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class RayCrawl(PublishingCrawl):
    def __init__(self, folder: Path, seed: int, told: Told) -> None:
        super().__init__(folder, seed, told)
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self._environment = {**os.environ, **token, **_HEALTH}
        self._nodes: list[RayNode] = []
        self._count = 0

    def run(self, most: int) -> int:
        (self._folder / "crawl.nodes").mkdir()
        with self._ray(), served(self._round, self._log) as port:
            command = self._round.command(self._folder / "crawl", port)
            self._drive(*command[4:], "--cluster", "ray", *self._options())
            try:
                done = self._play(most)
                self._end("driver.said")
            finally:
                self.process.kill()
                self.process.wait()
        self._judge_store()
        return done

    @contextlib.contextmanager
    def _ray(self) -> Iterator[None]:
        with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as short:
            self._home = Path(short) / "r"
            head = RayNode(self._home, self._environment, "", None, self._folder / "crawl.nodes")
            self._environment["RAY_ADDRESS"] = head.address
            try:
                self._begin_node()
                self._begin_node()
                yield
            finally:
                for node in (*self._nodes, head):
                    node.end()

    def _begin_node(self) -> None:
        seen, address = self._folder / "crawl.nodes", self._environment["RAY_ADDRESS"]
        for last in (False, False, True):  # on a busy machine Ray gives up now and then
            self._count += 1
            try:
                disk = self._folder / f"node-{self._count}"
                self._nodes.append(RayNode(self._home, self._environment, address, disk, seen))
                return
            except ChildProcessError:
                if last:
                    raise

    def _drive(self, *words: str) -> None:
        command = [_PYTHON, "-P", "-m", "gossamer", *words]
        self.process = started(command, self._folder / "driver.said", env=self._environment, cwd=self._folder)

    # -- what happens

    def _let(self) -> None:
        fault = self._chance.choice(list(RayFault))
        if not self._until(lambda: any(node.agents() for node in self._nodes)):
            return
        self._told.faults[fault.name.lower()]["Ray"] += 1
        node = self._chance.choice([node for node in self._nodes if node.agents()] or self._nodes)
        agents = set(node.agents().values())
        begun = time.monotonic()
        match fault:
            case RayFault.WORKER:
                send(signal.SIGKILL, {_parent(_parent(agent)) for agent in agents})
            case RayFault.COMMAND:
                if not self._until(lambda: bool(self._supervisor())):
                    return
                self.process.kill()
                self.process.wait()
                self._drive("log", "ray:crawl", "--follow")
            case RayFault.SUPERVISOR:
                if not self._until(lambda: bool(self._supervisor())):
                    return
                send(signal.SIGKILL, {_parent(self._supervisor())})
                self.process.wait()
                self._drive("resume", str(self._folder / "crawl"), "--cluster", "ray", "--json")
            case RayFault.DRAINED:
                self._drain(node)
                self._lose(node)
            case RayFault.RAYLET:
                send(signal.SIGKILL, node.raylets())
                self._lose(node)
                shutil.rmtree(node.disk, ignore_errors=True)
            case RayFault.SUSPENDED:
                machines = set(map(_parent, agents))
                everybody = {*agents, *machines, *map(_parent, machines), *node.raylets()}
                send(signal.SIGSTOP, everybody)
                self._until(lambda: self._are_elsewhere(node))
                send(signal.SIGCONT, everybody)
                self._lose(node)
        if fault in _OF_NODES and self._until(lambda: self._are_elsewhere(node)):
            seconds = round(time.monotonic() - begun, 1)
            self._told.figures["slowest"] = max(seconds, self._told.figures["slowest"])

    def _supervisor(self) -> int:
        """The process that supervises; agents publish without one, too."""
        return int(holder_of(self._folder / "crawl/state/supervisor/lock") or 0)

    def _drain(self, node: RayNode) -> None:
        """Let Ray say that a node, which it knows by its port, is about to go away."""
        program = (
            "import ray, subprocess, sys; ray.init(log_to_driver=False)\n"
            f"[one] = [n['NodeID'] for n in ray.nodes() if n['NodeManagerPort'] == {node.port}]\n"
            "words = ['--reason=DRAIN_NODE_REASON_PREEMPTION', '--reason-message=spot', '--deadline-remaining-seconds=600']\n"
            "start = [sys.executable, '-m', 'ray.scripts.scripts', 'drain-node', f'--node-id={one}', *words]\n"
            "sys.exit(subprocess.run(start).returncode)"
        )
        subprocess.run([_PYTHON, "-P", "-c", program], env=self._environment, capture_output=True, check=True)

    def _are_elsewhere(self, node: RayNode) -> bool:
        """Both agents live on other nodes."""
        return len({name for one in self._nodes if one is not node for name in one.agents()}) == FIRST

    def _lose(self, node: RayNode) -> None:
        """See that all agents of a lost node end by themselves, and begin another node."""
        until = time.monotonic() + 60
        while node.agents() and time.monotonic() < until:
            time.sleep(0.2)
        if node.agents():
            self._told.wrong.append(f"{self._folder.name}: agents of a lost node go on")
        self._nodes.remove(node)
        node.end()
        self._begin_node()


def _parent(number: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])
    return number


run = partial(play, RayCrawl)
