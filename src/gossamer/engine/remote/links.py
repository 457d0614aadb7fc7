"""Links: the connections of one process to others, shared by all its remote connectors. Above :mod:`.handshake`.

Connectors of one address share a listening socket; which one a peer wants is in its first message. Two connectors over
one address, one for each direction, make a link that runs both ways (the bi-directional connector of Hunyadi 2007).
"""

import asyncio
import logging
import os
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from gossamer.engine.errors import BrokenFrame, RemoteRefused, WiringError, refusing
from gossamer.engine.remote import handshake
from gossamer.engine.remote.addresses import (
    BACKLOG,
    Address,
    dialing,
    keep_alive,
    listening_unix_socket,
    own_place,
    peer_place,
    remove_unix_socket,
    seen_certificate,
    serving,
    stop_listening,
    tell_place,
)
from gossamer.engine.remote.frames import FramePipe, LinkLost
from gossamer.engine.remote.handshake import NotHere, Party

_log = logging.getLogger(__name__)

#: Seconds after the first and between the later attempts to dial. A restarted process is back within the first few;
#: more than the last would be felt as a stall.
FIRST_DELAY = 0.05
LONGEST_DELAY = 2.0

#: Attempts that may find the process but not the connector: it opens them one by one. Half a minute, no more.
_NOT_HERE = 20

#: Seconds that a peer has for the handshake: a few packets, on a machine under load.
HANDSHAKE_DEADLINE = 5.0

#: Seconds that a closing connection has to send what was written.
_CLOSING_DEADLINE = 1.0

#: Connections that may be in their handshake at once; for each more another one is dropped, and an honest dialer comes again.
HALF_OPEN = 64

#: Peers turned away that are told one by one; then a line comes each time that their number has doubled.
_TOLD = 8


class _HalfOpen:
    """Connections in their handshake, by the addresses that they come from.

    A newcomer always has room where its address has few of them: another one is dropped, the oldest of the address that has the
    most. An honest peer is through in some milliseconds, however many silent connections strangers hold. Addresses that have
    proved before that they know the secret are dropped last.
    """

    def __init__(self) -> None:
        self._waiting: dict[FramePipe, str] = {}
        self._known: set[str] = set()

    def enter(self, pipe: FramePipe, source: str) -> FramePipe | None:
        """A connection came; returns the one that has to go for it."""
        self._waiting[pipe] = source
        if len(self._waiting) <= HALF_OPEN:
            return None
        strangers = [one for one in self._waiting.values() if one not in self._known]
        [(most, _)] = Counter(strangers or self._waiting.values()).most_common(1)
        oldest = next(pipe for pipe, one in self._waiting.items() if one == most)
        self.leave(oldest)
        return oldest

    def leave(self, pipe: FramePipe, *, is_proved: bool = False) -> None:
        source = self._waiting.pop(pipe, None)
        if source is not None and is_proved:
            self._known.add(source)


class Listener:
    """One listening socket and the parties behind it."""

    def __init__(self, address: Address, secret: bytes) -> None:
        self.address = address
        self.secret = secret
        self.parties: dict[str, Party] = {}
        self.refused = 0
        """Peers that were turned away."""
        self.channel = b""
        """See :attr:`FramePipe.channel`."""
        self._half_open = _HalfOpen()
        self._server: asyncio.Server | None = None
        self._inode = 0
        self._tasks: dict[asyncio.Task[None], tuple[FramePipe, Party | None]] = {}

    async def start(self) -> None:
        """Open the socket. On port 0 the address then has the port that the system chose. Raises WiringError: it cannot be
        opened."""
        loop, address = asyncio.get_running_loop(), self.address
        made = partial(_Accepted, self)
        if address.scheme == "unix":
            bound, self._inode = listening_unix_socket(Path(address.path))
            self._server = await loop.create_unix_server(made, sock=bound, backlog=BACKLOG)
            return
        sealed: dict[str, Any] = {}
        if address.seal:
            sealed["ssl"], self.channel = serving(address.seal)
            sealed["ssl_handshake_timeout"] = HANDSHAKE_DEADLINE
        with refusing(WiringError, f"cannot listen at {address}"):
            self._server = await loop.create_server(made, address.host, address.port, backlog=BACKLOG, **sealed)
        port = self._server.sockets[0].getsockname()[1]
        self.address = Address("tcp", host=address.host, port=port, seal=address.seal)

    async def remove(self, party: Party) -> bool:
        """Take a party away, with its connections; True if it was the last and the socket is closed."""
        self.parties = {name: other for name, other in self.parties.items() if other is not party}
        last = not self.parties
        if last and self._server is not None:
            await stop_listening(self._server)
            if self.address.scheme == "unix":
                remove_unix_socket(Path(self.address.path), self._inode)
        tasks = [task for task, (_, served) in self._tasks.items() if last or served is party]
        pipes = [self._tasks[task][0] for task in tasks]
        # Connections are closed after what was written to them is sent, then the tasks that serve them end.
        for pipe in pipes:
            pipe.close()
        if pipes:
            gone = [asyncio.ensure_future(pipe.gone()) for pipe in pipes]
            _, late = await asyncio.wait(gone, timeout=_CLOSING_DEADLINE)
            for pipe in pipes if late else ():
                pipe.abort()
            for waiting in late:
                waiting.cancel()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        return last

    def accepted(self, pipe: "_Accepted") -> None:
        if not self.parties:
            pipe.abort()
            return
        dropped = self._half_open.enter(pipe, pipe.source)
        if dropped is not None:
            dropped.abort()
        if dropped is pipe:
            return
        task = asyncio.ensure_future(self._receive(pipe))
        self._tasks[task] = (pipe, None)
        task.add_done_callback(lambda task: self._tasks.pop(task, None))

    async def _receive(self, pipe: FramePipe) -> None:
        try:
            async with asyncio.timeout(HANDSHAKE_DEADLINE):
                party, peer = await handshake.accept(pipe, self.secret, self.parties)
            self._half_open.leave(pipe, is_proved=True)
        except (LinkLost, BrokenFrame, RemoteRefused, TimeoutError) as error:
            # On a socket of this user's own, a peer that goes away in its handshake is a process of ours that was just stopped.
            is_ours = isinstance(error, LinkLost) and self.address.scheme == "unix"
            level, why = logging.DEBUG if is_ours else logging.WARNING, str(error) or "it did not finish its handshake"
            self.refused += 1
            # In lines whose number strangers cannot choose.
            if self.refused <= _TOLD:
                _log.log(level, "%s: a peer was turned away: %s", self.address, why)
            elif self.refused & (self.refused - 1) == 0:
                told = "%s: %d peers were turned away so far, the last one: %s"
                _log.log(level, told, self.address, self.refused, why)
            pipe.close()
            return
        finally:
            self._half_open.leave(pipe)
        task = asyncio.current_task()
        assert task is not None
        self._tasks[task] = (pipe, party)
        pipe.limit = party.frame_limit
        await party.serve(pipe, peer)


def _source(peer: object) -> str:
    """The origin of a connection, as strangers are counted: an address, or of IPv6 the network that one household has."""
    if not isinstance(peer, tuple):
        return ""
    host = str(peer[0]).partition("%")[0]
    return str(ip_network((host, 64), strict=False)) if ":" in host else host


class _Accepted(FramePipe):
    """A pipe that reports to its listener once it is connected."""

    def __init__(self, listener: Listener) -> None:
        super().__init__(packs=listener.address.scheme == "tcp")
        self.channel = listener.channel
        self._listener = listener
        self.source = ""
        """Where it comes from."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        keep_alive(transport.get_extra_info("socket"))
        self.source = _source(transport.get_extra_info("peername"))
        self._listener.accepted(self)


class Exchange:
    """All links of one process.

    Args:
        environment: where `GOSSAMER_SECRET` is looked up.
        sleep: how a dialer waits between attempts.
        chance: a random number in [0, 1) for each attempt, so that many dialers do not come at once.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.environment = os.environ if environment is None else environment
        self._sleep = sleep
        self._chance = chance
        self._listeners: dict[Address, Listener] = {}
        self._peers: dict[Address, Address] = {}
        """Where this process listens for `peer:PATH`."""
        self._lock = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<Exchange listening at {', '.join(map(str, self._listeners)) or 'nothing'}>"

    async def listen(self, address: Address, secret: bytes, party: Party) -> Address:
        """Let peers find a party at an address; returns where that is, which differs on port 0. Raises WiringError: the
        address cannot be used, has another secret, or another connector of that name."""
        async with self._lock:
            given = address
            if given.scheme == "peer":
                address = self._peers.get(given) or own_place(given)
            listener = self._listeners.get(address)
            if listener is None:
                listener = Listener(address, secret)
                await listener.start()
                self._listeners[listener.address] = listener
            name = party.about().connector
            if listener.secret != secret:
                raise WiringError(f"connector {name!r}: {address} is used with another secret by other connectors")
            if name in listener.parties:
                raise WiringError(f"connector {name!r} listens at {address} already; names at one address must differ")
            listener.parties[name] = party
            if given.scheme == "peer":
                self._peers[given] = listener.address
                tell_place(given, listener.address)
            return listener.address

    async def unlisten(self, address: Address, party: Party) -> None:
        async with self._lock:
            listener = self._listeners.get(address)
            if listener is not None and await listener.remove(party):
                del self._listeners[address]
                self._peers = {given: at for given, at in self._peers.items() if at != address}

    async def dial(self, address: Address, secret: bytes, party: Party) -> None:
        """Keep a party connected, until it is done or refused. Run as a task, to be cancelled."""
        delay, not_here = FIRST_DELAY, 0
        while not party.done:
            pipe = await self._connect(address)
            try:
                if pipe is not None and await self._use(pipe, secret, party):
                    delay, not_here = FIRST_DELAY, 0
            except RemoteRefused as error:
                if address.scheme == "peer":  # another process may have the port of one that comes back elsewhere
                    _log.debug("%s: refused: %s", address, error)
                elif (not_here := not_here + 1) > _NOT_HERE or not isinstance(error, NotHere):
                    party.fail(str(error))
                    return
            if not party.done:
                await self._sleep(delay * (0.5 + self._chance() / 2))
                delay = min(2 * delay, LONGEST_DELAY)

    async def _connect(self, address: Address) -> FramePipe | None:
        loop = asyncio.get_running_loop()
        if address.scheme == "peer":
            if (there := peer_place(address)) is None:
                return None
            address = there
        try:
            if address.scheme == "unix":
                _, pipe = await loop.create_unix_connection(FramePipe, address.path)
            else:
                # Between machines the wire is dearer than the work to fill less of it.
                pipes = partial(FramePipe, packs=True)
                transport, pipe = await loop.create_connection(
                    pipes, address.host, address.port, ssl=dialing() if address.seal else None
                )
                keep_alive(transport.get_extra_info("socket"))
                if address.seal:
                    pipe.channel = seen_certificate(transport)
        except OSError:
            return None
        return pipe

    async def _use(self, pipe: FramePipe, secret: bytes, party: Party) -> bool:
        """Shake hands and serve; True if it came to that, so that the next attempt comes soon. Raises RemoteRefused: the
        other side refused us, or is not the one that we look for."""
        try:
            async with asyncio.timeout(HANDSHAKE_DEADLINE):
                peer = await handshake.introduce(pipe, secret, party)
            pipe.limit = party.frame_limit
            await party.serve(pipe, peer)
            return True
        except (LinkLost, BrokenFrame, TimeoutError):
            return False
        finally:
            pipe.close()
            try:
                async with asyncio.timeout(_CLOSING_DEADLINE):
                    await pipe.gone()
            except TimeoutError:
                pipe.abort()
