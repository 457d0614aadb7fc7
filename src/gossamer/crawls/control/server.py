"""The crawl's side of control: a socket beside the crawl, on its own event loop, that can hold nothing up; and the line by
which the supervisor of several agents asks each of them.

A request is read with a limit and a deadline, answered by one call of a coroutine, and its answer written with a deadline.
A client that is not our user, is not understood or is too slow is dropped; the crawl does not notice. An agent that is being
started again does not answer its supervisor, and holds up no round.
"""

import asyncio
import contextlib
import functools
import operator
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.control import messages, wire
from gossamer.engine.errors import FlowError, WiringError
from gossamer.engine.remote.addresses import listening_unix_socket, remove_unix_socket, stop_listening
from gossamer.storage.members import AGENTS
from gossamer.values.errors import GossamerError

# The request that some bytes are: one that ships (:mod:`messages`), or one that an installed package offers by an entry point of
# the group :data:`GROUP`, which `gossamer ask` sends. The maker of a server may name others.

#: Everything that ships and can be asked; a package may have declared requests of its own before.
REQUESTS: tuple[type[wire.ControlRequest], ...] = tuple(
    one
    for one in [*wire.ControlRequest.__subclasses__(), *wire.ProcessRequest.__subclasses__()]
    if one.__module__ == messages.__name__
)

#: The entry point group by which installed packages offer requests of their own, by their tags.
GROUP = "gossamer.control"

_SHIPPED = frozenset(map(wire.tag_of, REQUESTS))


@functools.cache  # at the first request: it takes a millisecond, and most crawls are asked for nothing
def _requests() -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(functools.reduce(operator.or_, REQUESTS))


class _Tagged(msgspec.Struct, frozen=True):
    """Any request, as far as its name."""

    do: str


_tags = msgspec.json.Decoder(_Tagged)


def read_request(body: bytes, others: Sequence[type[wire.ControlRequest]] = ()) -> wire.ControlRequest:
    """A request from its bytes: one that ships, one of these others, or one of an installed package. Raises Malformed: it is
    none; says what is wrong."""
    named: _Tagged = wire.decoded(_tags, body)
    other = next((one for one in others if wire.tag_of(one) == named.do), None)
    own = None if named.do in _SHIPPED else other or offered_request(named.do)
    decoder = _requests() if own is None else msgspec.json.Decoder(own)
    request: wire.ControlRequest = wire.decoded(decoder, body)
    return request


def offered_request(name: str) -> type[wire.ControlRequest] | None:
    """The request that an installed package offers under this name; None where none does. Raises Malformed: what it offers is
    no request of this name, or cannot be loaded."""
    from gossamer.engine.subjects import offered

    entry = next(iter(offered(GROUP, name)), None)
    if entry is None:
        return None
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        raise wire.Malformed(f"request {name!r} cannot be loaded from {entry.value}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, wire.ControlRequest)) or wire.tag_of(found) != name:
        raise wire.Malformed(f"{entry.value} is no request called {name!r}")
    return found


#: Connections at once: a few watchers, and who steers.
MAX_CLIENTS = 32

#: Seconds that a client may stay silent between requests: longer than the pause of any watcher.
IDLE = 120.0

#: Seconds for the rest of a request whose first byte is there, and for an answer to be taken.
PATIENCE = 5.0

Steer = Callable[[wire.ControlRequest], Awaitable[wire.Answered]]


class ControlServer:
    """Serves one crawl. A crawl that cannot have a socket runs without, and says so."""

    def __init__(
        self,
        directory: Path,
        steer: Steer,
        report: Callable[[str], None],
        *,
        requests: Sequence[type[wire.ControlRequest]] = (),
        max_clients: int = MAX_CLIENTS,
        patience: float = PATIENCE,
        is_ours: Callable[[socket.socket], bool] = wire.is_ours,
    ) -> None:
        """`requests` can be asked beside those of people; `is_ours` says whether a connection's other end belongs to our user."""
        self._requests = requests
        self._max_clients = max_clients
        self._patience = patience
        self._is_ours = is_ours
        self._directory = directory
        self._steer = steer
        self._report = report
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[None]] = set()
        self._answering: set[asyncio.Task[None]] = set()
        self._inode = 0
        self.path: Path | None = None
        """Where it listens."""

    async def start(self) -> None:
        """Listen. The socket that a killed crawl left behind is replaced."""
        reasons = []
        for folder in wire.folders():
            path = folder / wire.socket_name(self._directory)
            try:
                bound, self._inode = listening_unix_socket(path)
            except WiringError as error:
                reasons.append(str(error))
                continue
            self._server = await asyncio.start_unix_server(self._serve, sock=bound)
            self.path = path
            wire.note(self._directory, folder)
            return
        self._report(f"this crawl cannot be steered: {reasons[0] if reasons else 'no folder for a socket'}")

    async def stop(self) -> None:
        """Listen no more, and finish the answers that are under way."""
        if self._server is None or self.path is None:
            return
        await stop_listening(self._server)
        remove_unix_socket(self.path, self._inode)
        wire.forget(self._directory)
        if self._answering:
            await asyncio.wait(self._answering, timeout=self._patience)
        for task in (left := [*self._answering, *self._clients]):
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            if len(self._clients) <= self._max_clients and wire.other_end_is(writer, self._is_ours):
                while True:
                    async with asyncio.timeout(IDLE):
                        first = await reader.readexactly(1)
                    async with asyncio.timeout(self._patience):
                        header = first + await reader.readexactly(wire.HEADER - 1)
                        body = await reader.readexactly(wire.read_length(header, wire.MAX_REQUEST))
                    # Once understood, a request is carried out and answered even if the crawl ends meanwhile: it may be why.
                    answering = asyncio.create_task(self._answer(body, writer))
                    self._answering.add(answering)
                    answering.add_done_callback(self._answering.discard)
                    await asyncio.shield(answering)
        except asyncio.CancelledError:
            pass  # the crawl ends: only `stop` waits for this task
        except (wire.Malformed, TimeoutError, asyncio.IncompleteReadError, OSError):
            pass  # not understood, too slow, or gone: the connection ends
        finally:
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()
            self._clients.discard(task)

    async def _answer(self, body: bytes, writer: asyncio.StreamWriter) -> None:
        answer: wire.Answered
        try:
            answer = await self._steer(read_request(body, self._requests))
        except wire.Malformed as error:
            answer = wire.NotDone(str(error))
        except (GossamerError, FlowError) as error:
            answer = wire.NotDone(str(error), error.exit_code)
        except ConnectionError:
            raise  # the request goes on to an agent elsewhere, which cannot be reached: so it does not answer here, either
        except Exception as error:
            # A fault of ours must not end the crawl that it came from.
            answer = wire.NotDone(f"the crawl could not do this: {type(error).__name__}: {error}", 1)
        writer.write(wire.encode(answer))
        async with asyncio.timeout(self._patience):
            await writer.drain()


# Questions to one agent, over the control socket that it serves as any crawl does.

#: Seconds for an answer of an agent, which answers between two steps of its own. A checkpoint takes longer.
LINE_PATIENCE = 10.0


class AgentSilent(GossamerError):
    """The agent does not answer: it is not there, or is being started again."""


def place_of(directory: Path, agent: str) -> Path:
    """The folder of an agent's state: its control socket is called after it, as a crawl's is after its directory."""
    return directory / Path(AGENTS).parent / agent


class AgentLine:
    def __init__(self, directory: Path, agent: str) -> None:
        self._place = place_of(directory, agent)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()
        self.is_silent = False
        """It has not answered for long: the others do not wait for it, while one question stays open."""

    async def ask(self, request: wire.ControlRequest, patience: float = LINE_PATIENCE) -> wire.Answered:
        """Ask, and wait for the answer. Raises AgentSilent: there is none; RequestRefused: it was not done."""
        if self.is_silent:
            raise AgentSilent(f"{self._place.name} does not answer: it is silent")
        return await self._answer(request, patience)

    async def beat(self, request: wire.ControlRequest, form: Any) -> Any:
        """Ask for a value of this form, and wait for as long as it takes. Raises as :meth:`ask`, where the process is gone."""
        return self._value(await self._answer(request, None), form)

    async def _answer(self, request: wire.ControlRequest, patience: float | None) -> wire.Answered:
        try:
            async with asyncio.timeout(patience), self._turn:
                try:
                    reader, writer = self._streams or await self._connected()
                    writer.write(wire.encode(request))
                    await writer.drain()
                    header = await reader.readexactly(wire.HEADER)
                    answer = wire.read_answer(await reader.readexactly(wire.read_length(header, wire.MAX_ANSWER)))
                except BaseException:
                    # Only the one that has the turn hangs up: a later answer would be taken for that of the next question.
                    self.close()
                    raise
        except (OSError, EOFError, TimeoutError, wire.Malformed) as error:
            raise AgentSilent(f"{self._place.name} does not answer: {type(error).__name__}") from None
        if isinstance(answer, wire.NotDone):
            raise wire.RequestRefused(answer)
        return answer

    async def told(self, request: wire.ControlRequest, form: Any, patience: float = LINE_PATIENCE) -> Any:
        return self._value(await self.ask(request, patience), form)

    @staticmethod
    def _value(answer: wire.Answered, form: Any) -> Any:
        assert isinstance(answer, wire.Told)
        return msgspec.json.decode(answer.value, type=form)

    async def do(self, request: wire.ControlRequest, patience: float = LINE_PATIENCE) -> str:
        """Ask for something to be done; returns what was done, in words. Raises as :meth:`ask`."""
        answer = await self.ask(request, patience)
        assert isinstance(answer, wire.Done)
        return answer.text

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        for path in wire.sockets(self._place):
            try:
                reader, writer = await asyncio.open_unix_connection(path)
            except OSError:
                continue  # no process has listened here, or none does any more
            if wire.other_end_is(writer):
                self._streams = reader, writer
                return self._streams
            writer.close()
        raise ConnectionRefusedError

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
