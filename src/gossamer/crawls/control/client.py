"""The other side of control: asks a crawl that runs in another process, and waits for its answer."""

import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from gossamer.crawls.control import wire
from gossamer.storage.members import AGENTS, holder_of, members_of
from gossamer.storage.tables.places import begun_crawl
from gossamer.values.agents import at_work
from gossamer.values.errors import CrawlDirectoryError, UsageError

#: Seconds for an answer. A crawl answers between two steps of its own; a checkpoint takes the longest.
TIMEOUT = 30.0

#: Seconds that a crawl may take to begin to listen, or to end after it has listened; and between two looks.
CHANGING = 5.0
_LOOK = 0.05


#: The folder of a crawl directory in which each agent, and their supervisor, has one of its own.
_STATE = Path(AGENTS).parent


T = TypeVar("T")


class NotRunning(UsageError):
    """No crawl is running in this directory."""


class NotSupervised(CrawlDirectoryError):
    """Agents of the crawl are at work, and their supervisor is gone."""

    def __init__(self, directory: Path, agents: Sequence[str]) -> None:
        super().__init__(
            f"the supervisor of the crawl in {directory} is gone, and {' and '.join(agents)} work on; "
            f"gossamer resume {directory} takes them over, gossamer stop {directory} ends them"
        )
        self.agents = tuple(agents)


class Control:
    """A connection to a running crawl."""

    def __init__(
        self,
        directory: Path,
        timeout: float = TIMEOUT,
        *,
        agent: str = "",
        changing: float = CHANGING,
        is_ours: Callable[[socket.socket], bool] = wire.is_ours,
    ) -> None:
        """Connect.

        Args:
            agent: the one that is asked, of a crawl that has no supervisor; empty for the crawl as a whole.
            changing: seconds that a crawl may take to begin to listen, or to end after it has listened.
            is_ours: says whether a connection's other end belongs to our user.

        Raises:
            UsageError: the directory holds no crawl.
            NotRunning: no crawl is running in it.
            NotSupervised: only agents are, that work without a supervisor.
            CrawlDirectoryError: one is, but takes no commands.
        """
        self.directory = directory
        begun_crawl(directory)
        self._agent = agent
        self._place = directory / _STATE / agent if agent else directory
        self._changing = changing
        self._is_ours = is_ours
        self._socket = self._connected(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def _connected(self, timeout: float) -> socket.socket:
        """A connection; where the crawl is just starting or ending, as soon as it listens or is gone."""
        deadline = time.monotonic() + self._changing
        while True:
            connected = self._tried(timeout)
            if connected is not None:
                return connected
            process = holder(self.directory)
            if not process:
                break
            if not self._agent and (agents := unsupervised(self.directory)):
                raise NotSupervised(self.directory, agents)
            if time.monotonic() > deadline:
                raise CrawlDirectoryError(f"{self.directory} is in use by process {process}, which takes no commands")
            time.sleep(_LOOK)
        raise NotRunning(f"no crawl is running in {self.directory}; `gossamer resume {self.directory}` goes on with it")

    def _tried(self, timeout: float) -> socket.socket | None:
        for path in wire.sockets(self._place):
            connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connected.settimeout(timeout)
            try:
                connected.connect(str(path))
                if self._is_ours(connected):
                    return connected
            except TimeoutError:
                raise self._silent() from None
            except OSError:
                pass  # no crawl has listened here, or none does any more
            connected.close()
        return None

    def ask(self, request: wire.ControlRequest) -> wire.Answered:
        """Ask, and wait for the answer. Raises RequestRefused: it was not done; says why; NotRunning: the crawl ended before it
        answered; CrawlDirectoryError: it does not answer."""
        try:
            self._socket.sendall(wire.encode(request))
            header = self._receive(wire.HEADER)
            answer = wire.read_answer(self._receive(wire.read_length(header, wire.MAX_ANSWER)))
        except TimeoutError:
            raise self._silent() from None
        except OSError:
            # The next reader of the ledger finds the last word of the crawl in it.
            deadline = time.monotonic() + self._changing
            while holder(self.directory) and time.monotonic() < deadline:
                time.sleep(_LOOK)
            raise NotRunning(f"the crawl in {self.directory} has ended; `gossamer resume` goes on with it") from None
        except wire.Malformed as error:
            raise CrawlDirectoryError(
                f"the crawl in {self.directory} uses a different version of the control protocol: {error}"
            ) from None
        if isinstance(answer, wire.NotDone):
            raise wire.RequestRefused(answer)
        return answer

    def do(self, request: wire.ControlRequest) -> str:
        """Ask for something to be done; returns what was done, in words. Raises as :meth:`ask`."""
        answer = self.ask(request)
        assert isinstance(answer, wire.Done)
        return answer.text

    def names(self, request: wire.ControlRequest) -> list[str]:
        answer = self.ask(request)
        assert isinstance(answer, wire.Listed)
        return answer.names

    def told(self, request: wire.ControlRequest, form: type[T]) -> T:
        answer = self.ask(request)
        assert isinstance(answer, wire.Told)
        return msgspec.json.decode(answer.value, type=form)

    def _receive(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            part = self._socket.recv(min(count - len(received), 1 << 16))
            if not part:
                raise ConnectionResetError
            received += part
        return bytes(received)

    def _silent(self) -> CrawlDirectoryError:
        return CrawlDirectoryError(
            f"the crawl in {self.directory} does not answer; its process may be suspended: check the process before "
            f"you end it"
        )


def holder(directory: Path) -> str:
    """The process that has a ledger of this crawl open; empty where none has."""
    for path in directory.glob("state/*/lock"):
        if process := holder_of(path):
            return process
    return ""


def unsupervised(directory: Path) -> list[str]:
    """The agents of a crawl of several that are at work without a supervisor."""
    members = members_of(directory)
    if not members or holder_of(directory / _STATE / "supervisor" / "lock"):
        return []
    return [agent for agent in at_work(members) if holder_of(directory / _STATE / agent / "lock")]
