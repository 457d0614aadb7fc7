"""A machine that joins a crawl: `gossamer agent --join HOST:PORT`. An agent runs here as the supervisor says, and this is between.

Place in the flow: the command runs a :class:`JoinedMachine` until the crawl is over. It dials, and dials again when the connection
is lost (:mod:`link`). An agent is a process of this machine, run by the local cluster in a crawl directory of its own; questions of
the supervisor go on to its control socket. The agent outlives this process: the next one finds it by its directory.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents.cluster import LocalCluster, LocalPlaced, living, meeting
from gossamer.agents.ended import is_ledger_gone, noted_end
from gossamer.agents.handing_over import forget_parcels
from gossamer.agents.joined import link
from gossamer.agents.joined.placed import done_here, write_files
from gossamer.agents.lost import back_from_store
from gossamer.agents.parcels import ends_of
from gossamer.agents.process import ORDERS, WIRING, AgentOrders
from gossamer.agents.steering import LONGEST
from gossamer.agents.supervision import REQUESTS
from gossamer.agents.wiring import STORE_USE
from gossamer.crawls.builder import with_directory
from gossamer.crawls.control.server import AgentLine, AgentSilent, read_request
from gossamer.crawls.control.wire import Malformed, NotDone, RequestRefused
from gossamer.engine.errors import FlowError
from gossamer.engine.files import replace_file, replace_private
from gossamer.engine.remote.addresses import ADDRESS, CERTIFICATE, LISTEN, SECRET, Address, new_certificate
from gossamer.engine.remote.frames import About, FramePipe
from gossamer.engine.remote.links import Exchange
from gossamer.engine.wiring import Wiring, read, write
from gossamer.storage.ledger.opening import ProcessLock
from gossamer.storage.mailbox.retaining import StorePoint, point_path
from gossamer.storage.members import crawl_id, write_kept
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.errors import CrawlDirectoryError, GossamerError, UsageError

#: The file in which the folder keeps its own facts.
_NOTE = "state/machine.json"

#: Seconds between two looks at what other agents have to know.
_LOOK = 0.5

#: Seconds after which people are told that no supervisor answers.
_AWAY = 3.0

#: Lines of an agent that wait for a connection; more would say the same.
_MOST_LINES = 100


class _MachineNote(msgspec.Struct, frozen=True):
    folder: str
    """Its name."""
    agent: str = ""


class JoinedMachine:
    """One machine, and the agent that it has. It is also the party that dials (:class:`gossamer.engine.remote.handshake.Party`)."""

    frame_limit = link.LIMIT

    def __init__(
        self,
        directory: Path,
        to: str,
        listen: str,
        secret: bytes,
        report: Callable[[str], object],
        *,
        place: str = "",
        program: link.Program | None = None,
    ) -> None:
        """Check the arguments, and touch nothing.

        Args:
            directory: the crawl directory of the agent, which is made where it is not there.
            to: where the supervisor listens, as HOST:PORT.
            listen: where the agent listens for others, as HOST or HOST:PORT; empty: where this machine reaches the supervisor from.
            report: takes lines for people.
            place: where this machine stands, for agents that are to work there.
            program: what it says of itself; None: the truth.

        Raises:
            UsageError: an address is malformed.
        """
        host, port = link.host_and_port(to, "--join")
        self.directory = directory
        self._to = Address("tcp", host=host, port=port, seal=CERTIFICATE)
        self._listen = link.host_and_port(listen, "--listen", is_own=True) if listen else None
        self._secret = secret
        self._report = report
        self._note = _MachineNote("")
        self._program = program or link.own_program()
        self._place = place
        self._pipe: FramePipe | None = None
        self._placed: LocalPlaced | None = None
        self._cluster: LocalCluster | None = None
        self._meeting = contextlib.ExitStack()
        self._tasks: set[asyncio.Task[None]] = set()
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._end: link.AgentHasEnded | None = None
        self._told = link.AgentPlace("", b"")
        self._echoed = -link.FRESH
        self._over = asyncio.Event()
        self._resting = asyncio.Lock()
        self._refused: GossamerError | None = None
        self._is_leaving = False

    async def run(self) -> None:
        """Join, and let the agent work, until the crawl is over or a signal comes. Raises CrawlDirectoryError: the directory is in
        use, or out of date; UsageError: the supervisor refuses this machine; FlowError: the agent's orders cannot be read."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            lock = ProcessLock(self.directory / "state/machine.lock")
        except OSError as error:
            why = error.strerror or error
            raise UsageError(f"{self.directory} cannot be made: {why}; name another folder with -o") from None
        with contextlib.closing(lock), self._meeting:
            note = self.directory / _NOTE
            try:
                self._note = msgspec.json.decode(note.read_bytes(), type=_MachineNote)
            except FileNotFoundError:
                if (self.directory / CRAWL_FILE).exists():
                    raise UsageError(
                        f"{self.directory} holds a crawl of its own; name another folder with -o"
                    ) from None
                self._write_note("")
            except ValueError as error:
                raise CrawlDirectoryError(f"{note} is damaged: {error}; name another folder with -o") from None
            if self._note.agent:
                await self._find()
            exchange = Exchange()
            dialling = asyncio.create_task(exchange.dial(self._to, self._secret, self))
            looking = asyncio.create_task(self._look())
            over = asyncio.create_task(self._over.wait())
            try:
                await asyncio.wait({dialling, looking, over}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (dialling, looking, over, *self._tasks):
                    task.cancel()
                await asyncio.gather(dialling, over, *self._tasks, return_exceptions=True)
            if self._refused is not None:
                raise self._refused
            for task in (dialling, looking):
                if task.done() and not task.cancelled():
                    task.result()

    async def stop(self) -> None:
        """End the agent in order, and this process then."""
        self._is_leaving = True
        if self._placed is not None and self._placed.is_alive:
            self._report("stopping: the requests in flight are finished first")
            os.kill(self._placed.number, signal.SIGTERM)
            await asyncio.wait([*self._tasks], timeout=LONGEST)
        self._over.set()

    # -- its folder

    def _write_note(self, agent: str) -> None:
        self._note = _MachineNote(self._note.folder or secrets.token_hex(8), agent)
        write_kept(self.directory / _NOTE, self._note)

    async def _find(self) -> None:
        """Look what became of the agent that this folder has: it may be at work, or has ended while no process was here."""
        agent = self._note.agent
        folder = self._meet(agent)
        if living(self.directory, [agent]):
            assert self._cluster is not None
            [placed] = (await self._cluster.living([agent])).values()
            self._attend(placed)
        elif (self.directory / CRAWL_FILE).exists():
            ends = await ends_of(self.directory, read(self.directory / CRAWL_FILE), [agent])
            self._end = link.AgentHasEnded(-signal.SIGKILL, _encoded(ends[agent]))
        self._prepare(folder, agent)

    def _meet(self, agent: str) -> Path:
        """The folder where the agent looks for its orders."""
        self._meeting.close()
        self._cluster = LocalCluster(self.directory, self._meeting.enter_context(meeting(self.directory, [agent])))
        return self._cluster.folder

    def _prepare(self, folder: Path, agent: str) -> None:
        """Say where the agent listens, and how it proves who it is."""
        replace_private(folder / SECRET, self._secret)
        if not (folder / CERTIFICATE).exists():
            replace_private(folder / CERTIFICATE, new_certificate("gossamer agent"))
        host, port = self._listen or (link.own_host(self._to.host, self._to.port), 0)
        replace_file(folder / f"{agent}{LISTEN}", str(Address("tcp", host=host, port=port)).encode())

    # -- the agent

    async def _begin(self, message: link.Begin) -> None:
        try:
            if self._placed is not None and self._placed.is_alive:
                self._placed.kill()
                await self._placed.ended(self._say)
            self._end = None
            folder = self._meet(message.agent)  # at once, since what is told of other agents is written there meanwhile
            await asyncio.to_thread(self._write, folder, message)
            if message.restores:
                await self._restore(message.agent, read(folder / WIRING))
            self._write_note(message.agent)  # not before it is back, since it begins empty where no more is to come
            assert self._cluster is not None
            self._attend(await self._cluster.place(message.agent))
            self._report(f"{message.agent} works here, in {self.directory}")
        except (GossamerError, FlowError, OSError) as error:
            self._say(str(error))
            self._ended(getattr(error, "exit_code", 1), b"")

    def _write(self, folder: Path, message: link.Begin) -> None:
        """Write the orders of an agent, as they are on this machine."""
        self._prepare(folder, message.agent)
        write_files(self.directory, message.files)
        forget_parcels(self.directory)
        for name in message.files.keys() & {WIRING, ORDERS, SECRET}:
            replace_private(folder / name, message.files[name])
        orders = msgspec.json.decode((folder / ORDERS).read_bytes(), type=AgentOrders)
        here = msgspec.structs.replace(orders, directory=str(self.directory))
        replace_private(folder / ORDERS, msgspec.json.encode(here))
        write(folder / WIRING, with_directory(read(folder / WIRING), str(self.directory)), is_private=True)

    async def _restore(self, agent: str, wiring: Wiring) -> None:
        """Bring the agent back from the store, where it has one. Its old machine counts as dead, though it may still tell the store
        that it lives: it has paused by now, and is fenced by this."""
        for plan in wiring.providers.values():
            if plan.use == STORE_USE and is_ledger_gone(self.directory, agent):
                over = self._over.is_set
                await back_from_store(self.directory, plan.settings, agent, self._say, over, was_apart=True)

    def _attend(self, placed: LocalPlaced) -> None:
        async def watch() -> None:
            code = await placed.ended(self._say)
            end = noted_end(self.directory, self._note.agent) if code == 0 else None
            self._ended(code, _encoded(end))

        self._placed = placed
        self._spawn(watch())

    def _ended(self, code: int, end: bytes) -> None:
        self._end = link.AgentHasEnded(code, end, self._is_leaving)
        self._put(self._end)

    def _say(self, line: str) -> None:
        self._report(line)
        if self._pipe is None:
            self._lines.append(line)
        else:
            self._put(link.Said(line[:10_000]))

    # -- the connection

    def _put(self, message: link.JoinMessage) -> None:
        if self._pipe is not None:
            link.put(self._pipe, message)

    @property
    def done(self) -> bool:
        return self._over.is_set()

    def about(self) -> About:
        return link.about(sending=True, slot=self._note.folder)

    def objection(self, peer: About) -> str:
        """The supervisor has proved that it knows the secret, and that is all that is asked."""
        return ""

    def fail(self, reason: str) -> None:
        """It was refused in the handshake: another try would be, too."""
        self._refused = UsageError(f"the supervisor at {self._to.host}:{self._to.port} refuses this machine: {reason}")
        self._over.set()

    async def serve(self, pipe: FramePipe, peer: About) -> None:
        is_alive = self._placed is not None and self._placed.is_alive
        own = crawl_id(self.directory) if self._note.agent else ""
        joining = link.MachineJoins(
            *(self._program, self._note.folder, socket.gethostname(), own, self._note.agent, is_alive, self._place)
        )
        link.put(pipe, joining)
        beating: asyncio.Task[None] | None = None
        try:
            lease = None
            while not self._over.is_set():
                async with asyncio.timeout(lease):
                    message = await link.received(pipe, link.to_machine, "a supervisor")
                if isinstance(message, link.MachineWelcome):
                    self._pipe, lease = pipe, message.lease
                    # News and lines that could not be told while there was no connection.
                    self._put(self._told)
                    while self._lines:
                        self._put(link.Said(self._lines.popleft()))
                    if self._end is not None:
                        self._put(self._end)
                    beating = asyncio.create_task(_beat(pipe))
                else:
                    await self._hear(message)
        finally:
            self._pipe = None
            if beating is not None:
                beating.cancel()

    async def _hear(self, message: link.ToMachine) -> None:
        match message:
            case link.Refusal():
                if message.is_replaced and self._placed is not None:
                    self._placed.kill()
                self._refused = UsageError(f"the supervisor refuses this machine: {message.text}")
                self._over.set()
            case link.Over():
                self._report(message.text)
                self._over.set()
            case link.Begin() if not self._is_leaving:
                self._spawn(self._begin(message))
            case link.Question():
                self._spawn(self._answer(message))
            case link.AtRest() | link.ReadPart() | link.WritePart():
                self._spawn(self._do_at_rest(message))
            case link.KillAgent():
                if self._placed is not None:
                    self._placed.kill()
            case link.Echo():
                self._echoed = message.at
            case link.Book():
                self._write_book(message)
            case _:
                pass  # a beginning that comes too late

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, question: link.Question) -> None:
        body = b""
        if time.monotonic() - self._echoed <= link.FRESH and self._placed is not None and self._placed.is_alive:
            with (
                contextlib.suppress(AgentSilent),
                contextlib.closing(AgentLine(self.directory, self._note.agent)) as line,
            ):
                try:
                    answered = await line.ask(read_request(question.body, REQUESTS), LONGEST)
                except RequestRefused as error:
                    answered = NotDone(str(error), error.exit_code)
                except Malformed as error:
                    answered = NotDone(str(error))
                body = msgspec.json.encode(answered)
        self._put(link.MachineReply(question.number, body))

    async def _do_at_rest(self, asked: link.Asked) -> None:
        """Do something of the agent, or of its parcels, while all agents rest: one thing after the other."""

        async def has(agent: str, restores: bool) -> None:
            if restores:
                await self._restore(agent, read(self.directory / CRAWL_FILE))
            self._write_note(agent)

        async with self._resting:
            body = await done_here(self.directory, asked, has)
        self._put(link.MachineReply(asked.number, body))

    # -- what agents know of each other

    def _write_book(self, book: link.Book) -> None:
        """Write where masters and the other agents are, and how far agents are in their stores."""
        if self._cluster is None:
            return
        for master, port in book.masters.items():
            at = Address("tcp", host=self._to.host, port=port)
            _write_changed(self._cluster.folder / f"{master}{ADDRESS}", str(at).encode())
        for agent, told in book.agents.items():
            if agent == self._note.agent:
                continue
            if told.address:
                _write_changed(self._cluster.folder / f"{agent}{ADDRESS}", told.address.encode())
            if told.point:
                path = point_path(self.directory, agent)
                path.parent.mkdir(parents=True, exist_ok=True)
                _write_changed(path, told.point)

    async def _look(self) -> None:
        """Tell where the agent listens, and how far it is in its store, whenever that changes; and people, that no supervisor is
        there."""
        heard = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK)
            if self._pipe is not None:
                heard = time.monotonic()
            elif time.monotonic() - heard > _AWAY:
                self._report(
                    f"no supervisor answers at {self._to.host}:{self._to.port}; this asks again until one does"
                )
                heard = inf
            if self._cluster is None or not self._note.agent:
                continue
            point = b""
            with contextlib.suppress(OSError, ValueError):
                known = point_path(self.directory, self._note.agent).read_bytes()
                point = msgspec.json.encode(msgspec.json.decode(known, type=StorePoint))
            address = _text(self._cluster.folder / f"{self._note.agent}{ADDRESS}").decode("ascii", "replace")[:400]
            told = link.AgentPlace(address, point)
            if told != self._told:
                self._told = told
                self._put(told)


async def _beat(pipe: FramePipe) -> None:
    while True:
        link.put(pipe, link.Beat(time.monotonic()))
        await asyncio.sleep(link.BEAT)


def _encoded(end: Any) -> bytes:
    """How an agent ended, for a machine that has no ledger of it."""
    return b"" if end is None else msgspec.json.encode(msgspec.structs.replace(end, opening=0))


def _write_changed(path: Path, data: bytes) -> None:
    if _text(path) != data:
        replace_file(path, data)


def _text(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
