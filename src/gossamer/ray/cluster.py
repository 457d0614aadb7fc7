"""`--cluster ray`: Ray finds room for each agent, and the supervisor does everything else.

Place in the flow: a :class:`RayCluster` is a :class:`~gossamer.agents.joined.welcoming.JoinedCluster` whose machines begin by
themselves. For each agent it asks Ray for an actor (:mod:`gossamer.ray.host`), which begins `gossamer agent --join` on a node. That
joins here, over TLS, with the secret of the crawl, and from then on Ray carries nothing. Ray never begins an actor again: an agent
whose node is gone goes on elsewhere when the lease is over, as any machine that is not heard of. Actors outlive this process. The
next supervisor of the crawl finds them by their names, and they find it, since it listens where the one before it did.
"""

import asyncio
import contextlib
import hashlib
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import msgspec

from gossamer.agents.contract import ClusterNeeds, Placed
from gossamer.agents.joined import link
from gossamer.agents.joined.welcoming import JoinedCluster
from gossamer.agents.masters import is_master
from gossamer.agents.parcels import Deed
from gossamer.agents.wiring import has_store
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.files import replace_file
from gossamer.engine.remote.addresses import CERTIFICATE, Address
from gossamer.engine.remote.handshake import SECRET_VARIABLE
from gossamer.engine.wiring import read
from gossamer.ray.connecting import NAMESPACE, check_installed, connect, first_line
from gossamer.ray.host import SUPERVISES, AgentHost
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.storage.ledger.opening import secret_of, share_secret
from gossamer.storage.members import crawl_id
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.addresses import place_of
from gossamer.values.agents import at_work
from gossamer.values.errors import UsageError

#: Hosts of `--listen` that no other machine can dial.
_EVERYWHERE = (str(IPv4Address(0)), str(IPv6Address(0)))

#: Seconds between two looks at the actors.
_LOOK = 1.0

#: Seconds after which people are told that there is no room: a worker of Ray takes some seconds to begin.
_PATIENCE = 15.0

#: Seconds between the ends of two processes of an agent that cannot join, after which another one is begun.
_PAUSE = 5.0

#: Seconds that a process has to end when the crawl is over.
_LAST = 20.0

_NOTE = f"{STATE_DIRECTORY}/ray.json"


class _RayNote(msgspec.Struct, frozen=True):
    """Where the supervisor listened last."""

    host: str
    port: int
    has_asked: bool = False
    """Ray's autoscaler has been asked for room, and not told since that there is no need."""


class _Host:
    """An actor, as the supervisor has it. Which agent its machine gets is told by who joins first."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.begun = time.monotonic()
        self.ready: asyncio.Future[str] = asyncio.wrap_future(handle.ready.remote().future())
        """Done when Ray has found room for it; the id of its node."""
        self.leaving: Any = None
        self.over: asyncio.Future[list[str]] = asyncio.wrap_future(handle.ended.remote().future())
        """Done when its process has ended, or nothing is there any more that could tell."""

    @property
    def node(self) -> str:
        """Empty until it is known."""
        is_known = self.ready.done() and not self.ready.cancelled() and self.ready.exception() is None
        return self.ready.result() if is_known else ""

    def forget(self) -> None:
        for future in (self.ready, self.over):
            if not future.done():
                future.cancel()
            elif not future.cancelled():
                future.exception()


class RayCluster(JoinedCluster):
    """The agents of one crawl on the nodes of a Ray cluster. Contract: `agents.contract.Cluster`."""

    def __init__(self, needs: ClusterNeeds) -> None:
        """Check the options, and touch nothing. Raises UsageError: Ray is not installed, or too old, or something of the crawl
        needs all agents on one machine."""
        check_installed()
        super().__init__(needs)
        self._listen, self._wheels = needs.options.listen, needs.options.agent_wheel
        self._hosts: list[_Host] = []
        self._wanted: set[str] = set()
        """Names that were placed, each of which needs a machine."""
        self._keeper: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._is_crowded = False
        self._has_asked = False
        """The autoscaler of Ray is to have room for all agents."""

    def _own_place(self, options: CrawlOptions) -> tuple[str, int]:
        return link.host_and_port(options.listen, "--listen") if options.listen else ("", 0)

    def _shared_secret(self, options: CrawlOptions) -> bytes:
        """Made of the crawl's own, when there is a crawl."""
        return b""

    # -- what the supervisor asks

    async def place(self, name: str) -> Placed:
        await self._open()
        self._want([name])
        # The processes of agents that have left the crawl end.
        self._wanted.intersection_update(at_work(self._members()))
        for machine in self._machines.values():
            agent = machine.joining.agent
            if agent and agent not in self._wanted and machine.is_here:
                machine.put(link.Over(f"{agent} has left the crawl"))
                machine.is_leaving = True
        return await super().place(name)

    async def do_at_rest(self, deed: Deed) -> bytes:
        await self._open()
        self._want([deed.agent])
        return await super().do_at_rest(deed)

    def has_room(self, names: Sequence[str]) -> bool:
        self._want(names)
        return super().has_room(names)

    async def living(self, names: Iterable[str]) -> Mapping[str, Placed]:
        found = await super().living(names)
        self._want(found)
        return found

    def _want(self, names: Iterable[str]) -> None:
        self._wanted.update(name for name in names if not is_master(name))
        if self._wanted and self._keeper is None:
            self._keeper = asyncio.create_task(self._keep())

    async def close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        is_over = not any(one.placed is not None and one.placed.is_alive for one in self._machines.values())
        await super().close()
        if is_over:
            if self._has_asked:
                with contextlib.suppress(Exception):  # Ray is gone, and its autoscaler with it
                    _ask_for_nodes([])
                    self._has_asked = False
                    self._note()
            ending = [host.over for host in self._hosts if host.ready.done()]
            if ending:
                await asyncio.wait(ending, timeout=_LAST)
            for host in self._hosts:
                _end(host)
        for host in self._hosts:
            host.forget()

    # -- the cluster and its actors

    async def _begin_to_listen(self) -> None:
        """Connect to Ray, listen, and take over what is there. Raises UsageError."""
        share_secret(self.directory / STATE_DIRECTORY)
        own = secret_of(self.directory / STATE_DIRECTORY)
        self._secret = hashlib.blake2b(own, person=b"gossamer ray").hexdigest().encode()
        await asyncio.to_thread(connect, self._wheels)
        if threading.current_thread() is threading.main_thread():
            # Ray's own handler would print the stack of this process before it calls what was there.
            signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        import ray

        nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
        if len(nodes) > 1 and not has_store(read(self.directory / CRAWL_FILE)):
            raise UsageError(
                f"Ray has {len(nodes)} nodes here, and what an agent keeps would be lost with its node; add --store with a place "
                "that all of them reach"
            )
        for place in self._places().values():
            try:
                ray.remote(AgentHost).options(**_where("", place))
            except ValueError as error:
                raise UsageError(f"--agent-place: {place!r} names no label of Ray: {first_line(error)}") from None
        note = _RayNote("", 0)
        with contextlib.suppress(OSError, ValueError):
            note = msgspec.json.decode((self.directory / _NOTE).read_bytes(), type=_RayNote)
        host, port = (
            link.host_and_port(self._listen, "--listen") if self._listen else (ray.util.get_node_ip_address(), 0)
        )
        if not port and note.host == host:
            with contextlib.suppress(OSError), socket.create_server((host, note.port)):  # it is free
                port = note.port
        self._address = Address("tcp", host=host, port=port, seal=str(self.folder / CERTIFICATE))
        await super()._begin_to_listen()
        self._has_asked = note.has_asked
        if own_actor := os.environ.get(SUPERVISES):
            ray.get_actor(own_actor, NAMESPACE).name.remote(str(self.directory.absolute()))
        self._note()
        # The actors of the supervisor before this one are taken over; those that look for it elsewhere are ended.
        for entry in ray.util.list_named_actors(all_namespaces=True):
            crawl, _, rest = entry["name"].partition("/")
            if entry["namespace"] != NAMESPACE or crawl != crawl_id(self.directory):
                continue
            with contextlib.suppress(ValueError):  # it has ended just now
                host_there = _Host(ray.get_actor(entry["name"], NAMESPACE))
                if rest.startswith(f"{self._address.port}/"):
                    self._hosts.append(host_there)
                else:
                    host_there.forget()
                    _end(host_there)

    def _note(self) -> None:
        note = _RayNote(self._address.host, self._address.port, self._has_asked)
        replace_file(self.directory / _NOTE, msgspec.json.encode(note))

    async def _keep(self) -> None:
        """See to it that there are as many actors as agents."""
        told = ""
        while True:
            try:
                self._look_after()
            except Exception as error:  # whatever Ray has to say: it may answer again
                if told != (told := first_line(error)):
                    self._report(f"Ray cannot be asked: {told}")
            await asyncio.sleep(_LOOK)

    def _look_after(self) -> None:
        now = time.monotonic()
        for host in [host for host in self._hosts if host.over.done()]:
            self._hosts.remove(host)
            lines = [] if host.over.cancelled() or host.over.exception() is not None else host.over.result()
            why = lines[-1] if lines else "its worker or its node is gone"
            self._report(f"a process that Ray has begun for an agent has ended: {why}")
            _end(host)
            self._not_before = now + _PAUSE
        draining = _draining()
        for host in self._hosts:
            if host.leaving is None and host.node in draining:
                host.leaving = host.handle.leave.remote()
                self._report("Ray is about to take a node away, so that its agent ends in order and goes on elsewhere")
        unserved = [name for name in sorted(self._wanted) if not self._is_served(name)]
        if now >= self._not_before:
            for name in unserved[: max(0, len(self._wanted) - len(self._hosts))]:
                self._hosts.append(self._begun(name))
        is_crowded = any(not host.ready.done() and now - host.begun > _PATIENCE for host in self._hosts)
        if is_crowded and not self._is_crowded and unserved:
            self._tell_crowded(unserved)
        self._is_crowded = is_crowded

    def _is_served(self, name: str) -> bool:
        """Whether the machine of an agent is connected, or one that can have it."""
        machine = self._machines.get(self._homes.get(name, ""))
        return machine.is_here if machine is not None else self._free_for(name) is not None

    def _begun(self, name: str) -> _Host:
        """Ask Ray for an actor that can have what an agent keeps, where that is. Ray begins it when there is room."""
        import ray

        home = self._homes.get(name, "")
        before = self._machines[home].joining.node if home in self._machines else ""
        place = self._places().get(name, "")
        there = [node["NodeID"] for node in ray.nodes() if node["Alive"] and node["NodeManagerHostname"] == before]
        nodes = [node for node in there if node not in _draining()]
        here = self._address.host if self._address.host not in _EVERYWHERE else ray.util.get_node_ip_address()
        address = place_of(here, self._address.port)
        host = ray.remote(AgentHost).options(
            name=f"{crawl_id(self.directory)}/{self._address.port}/{secrets.token_hex(4)}",
            namespace=NAMESPACE,
            lifetime="detached",
            max_restarts=0,
            max_task_retries=0,
            num_cpus=1,
            **_where(nodes[0] if nodes else "", place),
        )
        variables = {SECRET_VARIABLE: self._secret.decode()}
        return _Host(host.remote(f"{self.directory.absolute()}.nodes", home, address, variables, place))

    def _tell_crowded(self, names: Sequence[str]) -> None:
        import ray

        places = self._places()
        for name in names:
            label, value = label_of(places.get(name, ""))
            if value and not any(node["Alive"] and node["Labels"].get(label) == value for node in ray.nodes()):
                self._report(
                    f"{name}: no node of Ray has the label {label}={value}; begin one with `ray start --labels`"
                )
        every = ray.cluster_resources().get("CPU", 0.0)
        free = ray.available_resources().get("CPU", 0.0)
        self._has_asked = True
        self._note()
        _ask_for_nodes([places.get(name, "") for name in sorted(self._wanted)])
        self._report(
            f"{', '.join(names)}: no room; each agent needs one processor of Ray, of which {free:g} of {every:g} are free; its "
            "autoscaler is asked for more"
        )

    def _tell_place(self) -> None:
        self._report(f"agents that Ray places join this crawl at {self._address.host}:{self._address.port}")
        if SUPERVISES in os.environ:
            self._report(
                f"the crawl goes on if this command is gone; from any node, gossamer status ray:{self.directory.absolute().name}"
            )

    def _tell_waiting(self, name: str) -> None:
        """The reason for its waiting is told where Ray is asked."""


def label_of(place: str) -> tuple[str, str]:
    """The label that nodes at a place have, and its value: `oslo` is that of `place`, and `LABEL=VALUE` is a label of its own."""
    label, _, value = place.rpartition("=")
    return label or "place", value


def _where(node: str, place: str) -> dict[str, Any]:
    """Options by which Ray finds a node: one that is known, or else any, at a place if that is given."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    if node:  # at a place, Ray must not take any other node where this one is full
        return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=not place)}
    return {"scheduling_strategy": "SPREAD", "label_selector": dict([label_of(place)]) if place else None}


def _ask_for_nodes(places: Sequence[str]) -> None:
    """Ask the autoscaler of Ray for room for agents at these places, those at work among them; none: for nothing any more."""
    from ray.autoscaler.sdk import request_resources

    labels = [dict([label_of(place)]) if place else {} for place in places]
    request_resources(bundles=[{"CPU": 1}] * len(places), bundle_label_selectors=labels)


def _draining() -> Collection[str]:
    """The nodes that Ray is about to take away. No public function of Ray 2.60 says so."""
    from ray._private.state import state

    found: Collection[str] = state.get_draining_nodes()
    return found


def _end(host: _Host) -> None:
    import ray

    with contextlib.suppress(Exception):  # it has ended, or its node is not there to be told
        ray.kill(host.handle)
