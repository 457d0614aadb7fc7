"""The supervisor's end of agents on machines of their own: `--cluster joined --listen HOST:PORT`.

Place in the flow: :mod:`gossamer.agents.several` has one in the place of a local cluster. It starts nothing: it welcomes machines
that people have started, gives each a name, and says that an agent has ended when its machine says so, or is not heard of for the
lease. For each agent there is a control socket here, whose questions go on to the machine, so that everything that asks an agent
does not know where it is. Contract: `agents.contract.Cluster`.

A name belongs to one folder on one machine, which has what the agent keeps, and waits for it. With a store, another machine gets
the name after the lease.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from gossamer.agents.contract import ClusterNeeds, ClusterNode, MachineAway, Placed
from gossamer.agents.ended import AgentEnd, forget_agent_end, write_agent_end
from gossamer.agents.handing_over import under_way
from gossamer.agents.joined import link
from gossamer.agents.joined.placed import LOOK, JoinedPlaced, Machine, MastersHere, done_there
from gossamer.agents.masters import KEPT, is_master
from gossamer.agents.parcels import Deed
from gossamer.agents.process import ORDERS, WIRING, AgentOrders
from gossamer.agents.supervision import REFUSING, REQUESTS
from gossamer.agents.wiring import STORE_USE
from gossamer.backup.options import StoreOptions
from gossamer.crawls.control.server import ControlServer, place_of
from gossamer.crawls.control.wire import HEADER, Answered, ControlRequest, encode, read_answer
from gossamer.crawls.options import CrawlOptions, part_of
from gossamer.engine.errors import BrokenFrame, WiringError
from gossamer.engine.files import replace_file, replace_private
from gossamer.engine.remote.addresses import ADDRESS, CERTIFICATE, SECRET, Address, new_certificate
from gossamer.engine.remote.frames import About, FramePipe, LinkLost
from gossamer.engine.remote.handshake import SECRET_VARIABLE, read_secret
from gossamer.engine.remote.links import Exchange
from gossamer.engine.wiring import read
from gossamer.storage.members import AGENTS, CRAWL_ID, DIVISION, JOINED, crawl_id, members_of, write_kept
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.agents import at_work, member
from gossamer.values.errors import UsageError

#: Seconds that the next supervisor gives machines to come back before it looks which agents are at work: they dial every two.
_COMING_BACK = 8.0


class JoinedCluster:
    """The agents of one crawl on machines that join it. Contract: `agents.contract.Cluster`. Machines find it at its address as a
    :class:`gossamer.engine.remote.handshake.Party`."""

    is_shared = False
    frame_limit = link.LIMIT
    done = False

    def __init__(self, needs: ClusterNeeds) -> None:
        """Check the options, and touch nothing. Raises UsageError: an address or a secret is missing, or something else of the
        crawl needs all agents on one machine."""
        options = needs.options
        self.directory, self.folder = needs.directory, needs.folder
        self._report = needs.report
        self._secret = self._shared_secret(options)
        odd = [name for name in _TOGETHER if getattr(options, name.removeprefix("--").replace("-", "_"))]
        odd += ["--exchange files"] * (options.exchange == "files")
        if odd:
            raise UsageError(f"{odd[0]} needs all agents on one machine; leave it or --cluster {options.cluster} out")
        host, port = self._own_place(options)
        self._address = Address("tcp", host=host, port=port, seal=str(self.folder / CERTIFICATE))
        self._lease = part_of(options, StoreOptions).lease
        self._has_store = False
        """Its agents outlive their machines."""
        self._program = link.own_program()
        self._exchange = Exchange()
        self._is_open = False
        self._opening = asyncio.Lock()
        self._refused: UsageError | None = None
        self._machines: dict[str, Machine] = {}
        """By the names of their folders."""
        self._homes: dict[str, str] = {}
        """Agent -> the folder that has what it keeps; empty where the store alone has that, until a machine does."""
        self._opened = 0.0
        self._servers: dict[str, ControlServer] = {}
        self._masters = MastersHere(self.directory, self.folder, self._spread)
        self._told_waiting: set[str] = set()

    def _own_place(self, options: CrawlOptions) -> tuple[str, int]:
        """Where machines join. Raises UsageError: that is not given, or malformed."""
        if not options.listen:
            raise UsageError("--cluster joined needs an address at which agents join; add --listen HOST:PORT")
        return link.host_and_port(options.listen, "--listen")

    def _shared_secret(self, options: CrawlOptions) -> bytes:
        """The secret that machines prove that they know. Raises UsageError: there is none, or it is too short."""
        try:
            secret = read_secret(options.secret_file, os.environ)
        except WiringError as error:
            raise UsageError(str(error)) from None
        if not secret:
            raise UsageError(
                f"--cluster joined needs a secret that all machines share; name a file with --secret-file, or set {SECRET_VARIABLE}"
            )
        return secret

    # -- what the supervisor asks

    async def place(self, name: str) -> Placed:
        await self._open()
        if is_master(name):
            return await self._masters.begin(name, self._address.host)
        machine, restores = await self._homed(name)
        if machine.joining.is_alive:
            # It went on without a supervisor for so long that this one knows nothing of what it was lent.
            left = await self._attached(name, machine)
            left.kill()
            await left.ended(self._report)
        forget_agent_end(self.directory, name)
        self._home(name, machine, is_alive=True)
        orders = msgspec.json.decode((self.folder / ORDERS).read_bytes(), type=AgentOrders)
        files = {
            WIRING: (self.folder / WIRING).read_bytes(),
            ORDERS: msgspec.json.encode(msgspec.structs.replace(orders, directory="", lease=self._lease)),
            SECRET: self._secret,
            **self._crawl_files(),
        }
        machine.put(link.Begin(name, files, restores))
        return await self._attached(name, machine)

    async def do_at_rest(self, deed: Deed) -> bytes:
        await self._open()
        had = self._homes.get(deed.agent)
        while True:
            machine, restores = await self._homed(deed.agent)
            self._home(deed.agent, machine, is_alive=False)
            try:
                done = await done_there(self.directory, machine, deed, self._crawl_files(), restores=restores)
            except ConnectionError:
                await asyncio.sleep(LOOK)
                continue
            machine.has_part = True
            if done.end is not None:
                write_agent_end(self.directory, deed.agent, done.end)
            is_elsewhere = had not in (None, "", machine.joining.folder)
            if is_elsewhere and (work := under_way(self.directory)) is not None and work.hand_overs:
                raise MachineAway(f"{deed.agent} goes on elsewhere")
            return done.answer

    def has_room(self, names: Sequence[str]) -> bool:
        found: list[Machine] = []
        for name in names:
            if (machine := self._free_for(name, found)) is None:
                self._tell_waiting(name)
            else:
                found.append(machine)
        return len(found) == len(names)

    async def _homed(self, name: str) -> tuple[Machine, bool]:
        """The machine on which an agent is to be, and whether it has to bring the agent back from the store."""
        while (machine := self._free_for(name)) is None:
            self._tell_waiting(name)
            await asyncio.sleep(LOOK)
        # A machine that was to bring it back says that it has no agent until it has.
        return machine, name in self._homes and (self._homes[name] != machine.joining.folder or not machine.has_part)

    async def living(self, names: Iterable[str]) -> Mapping[str, Placed]:
        await self._open()
        names = list(names)
        found: dict[str, Placed] = {**await self._masters.living(filter(is_master, names))}
        homes = {name: home for name in names if (home := self._homes.get(name))}
        until = time.monotonic() + _COMING_BACK
        while time.monotonic() < until and not all(
            (one := self._machines.get(home)) is not None and one.is_here for home in homes.values()
        ):
            await asyncio.sleep(LOOK)
        for name, home in homes.items():
            machine = self._machines.get(home)
            if machine is None:
                continue
            if machine.placed is not None and machine.placed.is_alive:
                found[name] = machine.placed
            elif machine.joining.is_alive and machine.is_here:
                found[name] = await self._attached(name, machine)
        return found

    async def nodes(self) -> list[ClusterNode]:
        return [
            ClusterNode(one.joining.node, one.joining.place, (one.joining.agent,) if one.joining.agent else ())
            for one in self._machines.values()
            if one.is_here
        ]

    def prepare(self, names: Iterable[str]) -> None:
        """Machines have the program loaded by then."""
        self._masters.prepare(filter(is_master, names))

    async def close(self) -> None:
        if not self._is_open:
            return
        self._is_open, self.done = False, True
        await self._masters.close()
        is_over = not any(one.placed is not None and one.placed.is_alive for one in self._machines.values())
        for machine in self._machines.values() if is_over else ():
            machine.put(link.Over(f"the crawl in {self.directory.name} has ended here, and needs no agent"))
        await asyncio.sleep(0)
        for server in self._servers.values():
            await server.stop()
        await self._exchange.unlisten(self._address, self)

    # -- names and machines

    async def _open(self) -> None:
        """Listen, once. Raises UsageError: nothing can listen there."""
        async with self._opening:  # agents are placed side by side
            if self._refused is not None:
                raise self._refused
            if not self._is_open:
                try:
                    await self._begin_to_listen()
                except UsageError as error:
                    self._refused = error
                    raise

    async def _begin_to_listen(self) -> None:
        self.done, self._opened = False, time.monotonic()
        with contextlib.suppress(FileNotFoundError, ValueError):
            self._homes = msgspec.json.decode((self.directory / JOINED).read_bytes(), type=dict[str, str])
        plans = read(self.directory / CRAWL_FILE).providers.values()
        if store := next((plan.settings for plan in plans if plan.use == STORE_USE), None):
            self._has_store, self._lease = True, float(store.get("lease", self._lease))
        replace_private(self.folder / CERTIFICATE, new_certificate("gossamer"))
        replace_private(self.folder / SECRET, self._secret)
        try:
            self._address = await self._exchange.listen(self._address, self._secret, self)
        except WiringError as error:
            raise UsageError(f"no agent can join: {error}; let --listen name another address") from None
        self._is_open = True
        if not self._has_store:
            self._report(
                "without a store (--store) the pages of each agent are on its machine alone, and its part waits while that is away"
            )
        self._tell_place()

    def _tell_place(self) -> None:
        host, port = self._address.host, self._address.port
        self._report(f"agents join this crawl at {host}:{port}: gossamer agent --join HOST:{port}")

    def _free_for(self, name: str, but: Container[Machine] = ()) -> Machine | None:
        """The machine on which an agent can begin now, or can rest."""
        home, working = self._homes.get(name, ""), at_work(self._members())
        machine = self._machines.get(home)
        # One that had left may have lost its machine to another agent.
        is_taken = machine is not None and machine.joining.agent not in ("", name)
        # An agent may go on elsewhere where its machine is away or cannot run it, the store has what it keeps, and the lease is
        # over. Within that the machine may come back, with the next version, or mended.
        since = self._opened if machine is None else machine.refused or machine.heard
        may_leave = self._has_store and (is_taken or time.monotonic() - since > self._lease + link.BEYOND)
        own = machine if machine is not None and machine.is_here and not is_taken else None
        if own is not None and not (own.refused and may_leave):
            return own
        if home and not may_leave:
            return None
        places = self._places()
        # The machine of one that has left is free, but it may be about to come back where others join.
        taken = {home for agent, home in self._homes.items() if agent in working or name not in working}
        free = [one for folder, one in self._machines.items() if one.is_here and folder not in taken and one not in but]
        if place := places.get(name, ""):
            return next((one for one in free if one.joining.place == place), own)
        return next((one for one in free if one.joining.place not in places.values()), own)

    def _members(self) -> tuple[str, ...]:
        """The agents that are to work, and where."""
        try:
            return msgspec.json.decode((self.folder / ORDERS).read_bytes(), type=AgentOrders).members
        except FileNotFoundError:  # a crawl that goes on looks who is at work before it has anything to say
            return members_of(self.directory)

    def _places(self) -> dict[str, str]:
        """Where agents are to work; those that may work anywhere are not among them."""
        return {one.agent: one.place for one in map(member, self._members()) if one.place}

    def _home(self, name: str, machine: Machine, *, is_alive: bool) -> None:
        self._homes[name] = machine.joining.folder
        machine.joining = msgspec.structs.replace(machine.joining, agent=name, is_alive=is_alive)
        write_kept(self.directory / JOINED, self._homes)

    def _tell_waiting(self, name: str) -> None:
        if name in self._told_waiting:
            return
        self._told_waiting.add(name)
        whose = "the machine that has its folder" if self._homes.get(name) else "a machine"
        place = self._places().get(name, "")
        self._report(
            f"{name} waits for {whose}: gossamer agent --join HOST:{self._address.port}{place and f' --place {place}'}"
        )

    def _crawl_files(self) -> dict[str, bytes]:
        """The files of the whole crawl, by their names in its directory."""
        files = {CRAWL_FILE: (self.directory / CRAWL_FILE).read_bytes()}
        for name in (CRAWL_ID, AGENTS, DIVISION, "state/secret", *KEPT):
            with contextlib.suppress(FileNotFoundError):
                files[name] = (self.directory / name).read_bytes()
        return files

    async def _attached(self, name: str, machine: Machine) -> JoinedPlaced:
        """An agent that begins, or works, as the supervisor has it from now on."""
        after = self._lease + link.BEYOND if self._has_store else None
        placed = machine.placed = JoinedPlaced(name, machine, after)
        machine.heard = time.monotonic()
        self._told_waiting.discard(name)
        if name not in self._servers:
            place = place_of(self.directory, name)
            place.mkdir(parents=True, exist_ok=True)

            async def forward(request: ControlRequest) -> Answered:
                at = self._machines.get(self._homes.get(name, ""))
                if at is None or at.placed is None or not at.placed.is_alive:
                    raise ConnectionError
                return read_answer(await at.ask(link.Question(0, encode(request)[HEADER:])))

            self._servers[name] = ControlServer(place, forward, self._report, requests=REQUESTS)
            await self._servers[name].start()
        return placed

    # -- as the party that machines find

    def about(self) -> About:
        return link.about(sending=False, slot="supervisor")

    def objection(self, peer: About) -> str:
        """Machines are judged by the first thing that they say."""
        return ""

    def fail(self, reason: str) -> None:
        """It dials no one."""

    async def serve(self, pipe: FramePipe, peer: About) -> None:
        machine: Machine | None = None
        try:
            machine = self._welcomed(await link.received(pipe, link.to_supervisor, "a machine"), pipe)
            while machine is not None:
                # It beats; one that does not may be gone, and dials again if it is not.
                async with asyncio.timeout(self._lease):
                    message = await link.received(pipe, link.to_supervisor, "a machine")
                self._hear(machine, message)
        except (LinkLost, BrokenFrame, TimeoutError):
            pass
        finally:
            pipe.close()
            if machine is not None and machine.pipe is pipe:
                machine.lost()

    def _welcomed(self, joining: link.ToSupervisor, pipe: FramePipe) -> Machine | None:
        """The machine that has just come; None where it is refused."""
        if not isinstance(joining, link.MachineJoins):
            raise BrokenFrame("a machine said something before it had joined")
        if why := self._why_refused(joining):
            self._report(f"{joining.node} wanted to join and was refused: {why}")
            home = self._homes.get(joining.agent)
            link.put(pipe, link.Refusal(why, is_replaced=home not in (None, joining.folder)))
            return None
        known = self._machines.get(joining.folder)
        if known is not None and known.pipe is not None:
            known.pipe.abort()
            known.lost()
        machine = known or Machine(joining, pipe)
        machine.has_part = bool(joining.agent)
        named = next((name for name, home in self._homes.items() if home == joining.folder), "")
        joining = msgspec.structs.replace(joining, agent=joining.agent or named)
        machine.joining, machine.pipe, machine.heard, machine.is_leaving = joining, pipe, time.monotonic(), False
        self._machines[joining.folder] = machine
        if joining.agent:
            self._homes.setdefault(joining.agent, joining.folder)
        machine.put(link.MachineWelcome(self._lease))
        self._spread(machine)
        return machine

    def _why_refused(self, joining: link.MachineJoins) -> str:
        if why := link.difference(joining.program, self._program):
            return why
        if joining.crawl and joining.crawl != crawl_id(self.directory):
            return "its folder has a part of another crawl; name another one there with -o"
        home = self._homes.get(joining.agent)
        if joining.agent and home not in (None, joining.folder):
            return (
                f"{joining.agent} went on elsewhere, so that its folder is out of date; name another one there with -o"
            )
        return ""

    def _hear(self, machine: Machine, message: link.ToSupervisor) -> None:
        machine.heard, placed = time.monotonic(), machine.placed
        match message:
            case link.Beat():
                machine.put(link.Echo(message.at))
            case link.MachineReply():
                machine.replied(message)
            case link.Said():
                if placed is not None:
                    placed.say(message.line)
            case link.AgentHasEnded():
                machine.joining = msgspec.structs.replace(machine.joining, is_alive=False)
                machine.is_leaving = message.is_leaving or message.code in REFUSING
                if machine.joining.agent and message.end:
                    with contextlib.suppress(ValueError):  # a machine that says nothing of use
                        end = msgspec.json.decode(message.end, type=AgentEnd)
                        write_agent_end(self.directory, machine.joining.agent, end)
                if placed is not None:
                    placed.has_ended(message.code)
                if message.code in REFUSING:
                    machine.refused = machine.refused or machine.heard
                    why = f"{machine.joining.agent} cannot run there; mend that, and give the same command again"
                    machine.put(link.Refusal(why))
            case link.AgentPlace():
                machine.told = message
                if machine.joining.agent and message.address:
                    replace_file(self.folder / f"{machine.joining.agent}{ADDRESS}", message.address.encode())
                self._spread()
            case link.MachineJoins():
                raise BrokenFrame("a machine joined twice")

    def _spread(self, to: Machine | None = None) -> None:
        """Send the table of agents to a machine, or to all."""
        machines = {name: self._machines.get(home) for name, home in self._homes.items()}
        told = {name: one.told for name, one in machines.items() if one is not None}
        book = link.Book(told, self._masters.ports)
        for machine in self._machines.values() if to is None else (to,):
            machine.put(book)


#: Options that read what all agents have written.
_TOGETHER = ("--crawlers", "--items", "--sinks", "--index", "--triple-store", "--mirror")
