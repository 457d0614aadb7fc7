"""The connection between a supervisor and a machine whose agent it asks: its messages, and how two programs know that they fit.

Place in the flow: :mod:`welcoming` and :mod:`machine` are its two ends. It is a link as those of remote connectors are
(:mod:`gossamer.engine.remote.links`): sealed, proved by the secret on both sides, with few connections in their handshake at once.
The machine dials, and dials again for as long as it runs. ::

    machine     MachineJoins                  its program, its folder, and whether its agent is at work
    supervisor  MachineWelcome                or Refusal, which ends the machine
    supervisor  Begin                         the agent's name and its orders, as the bytes of files
    supervisor  Question, MachineReply        as on the control socket of an agent
    supervisor  AtRest, ReadPart, WritePart   while all agents rest, and hosts change hands (:mod:`placed`)
    machine     Said, AgentHasEnded           its lines and its end
    machine     AgentPlace                    where other agents reach it
    supervisor  Book                          all agents' addresses, again whenever one has changed
    machine     Beat, supervisor  Echo        each second: what is old is told from what was only late

A message is msgpack in a frame; a message that is none ends the connection.
"""

import contextlib
import hashlib
import platform
import socket
from importlib.metadata import distributions
from typing import Annotated, TypeVar

import msgspec

from gossamer._version import __version__
from gossamer.engine.errors import BrokenFrame
from gossamer.engine.remote.frames import About, FrameKind, FramePipe
from gossamer.values.errors import UsageError

T = TypeVar("T")

#: Seconds between two beats.
BEAT = 1.0

#: Seconds after which a beat's echo is so late that questions which came with it may be as old: they are not answered.
FRESH = 5.0

#: Seconds after the lease in which an agent that was not heard of is still not placed elsewhere.
BEYOND = 5.0

#: Bytes of a message at most: an answer on a control socket, and some.
LIMIT = 20 << 20

#: The name under which machines join, and what they speak.
_CONNECTOR, _SPEECH = "join", "gossamer.agents.joined/1"

_Word = Annotated[str, msgspec.Meta(max_length=400)]
_Agent = Annotated[str, msgspec.Meta(pattern=r"^(agent-\d{2,4})?$")]
_Parcel = Annotated[str, msgspec.Meta(pattern=r"^state/agent-\d{2,4}/parcels/agent-\d{2,4}-agent-\d{2,4}(-\d+)?$")]
_Master = Annotated[str, msgspec.Meta(pattern=r"^master-\d{2,4}$")]
_Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
_File = Annotated[str, msgspec.Meta(pattern=r"^(state/((masters|supervisor)/)?)?[a-z][a-z-]{0,40}(\.(toml|json))?$")]


class Program(msgspec.Struct, frozen=True):
    """The program that runs there: agents of one crawl run the same."""

    version: _Word
    python: _Word
    parts: _Word
    """A digest of the installed packages that add parts."""


class JoinMessage(msgspec.Struct, frozen=True, tag=True):
    """Base of all that crosses."""


class MachineJoins(JoinMessage, frozen=True):
    """A machine comes, or comes back."""

    program: Program
    folder: _Word
    """The name of its crawl directory, made when that was made, unlike every other."""
    node: _Word
    """The machine, for people."""
    crawl: _Word = ""
    """The crawl of which the directory has a part; empty of a new one."""
    agent: _Agent = ""
    """The agent that it has."""
    is_alive: bool = False
    """That is at work."""
    place: _Word = ""
    """Where the machine stands; empty: at none that agents are bound to."""


class Beat(JoinMessage, frozen=True):
    at: float
    """Seconds, by the clock of the machine."""


class MachineReply(JoinMessage, frozen=True):
    """The answer to a question, as JSON; empty where the agent does not answer."""

    number: int
    body: bytes


class Said(JoinMessage, frozen=True):
    """A line of the agent for people."""

    line: Annotated[str, msgspec.Meta(max_length=10_000)]


class AgentHasEnded(JoinMessage, frozen=True):
    code: Annotated[int, msgspec.Meta(ge=-64, le=255)]
    """Exit status, or the signal below zero."""
    end: bytes
    """How it ended, as :class:`~gossamer.agents.ended.AgentEnd`; empty where it could not tell."""
    is_leaving: bool = False
    """Its machine was told to end, and runs no agent until the command is given again."""


class AgentPlace(JoinMessage, frozen=True):
    """The place of one agent, as the others have to know it."""

    address: _Word
    """Where they reach it; empty where they cannot."""
    point: bytes
    """How far it is in its store, as the file of a `StorePoint`; empty without a store."""


class MachineWelcome(JoinMessage, frozen=True):
    lease: float


class Refusal(JoinMessage, frozen=True):
    text: str
    is_replaced: bool = False
    """The agent of its folder went on elsewhere."""


class Begin(JoinMessage, frozen=True):
    agent: _Agent
    files: dict[_File, bytes]
    """Its orders, and the files of the whole crawl: `crawl.toml` and those of `state/`."""
    restores: bool
    """Another machine had it, which was not heard of for the lease: it goes on from the store."""


class Question(JoinMessage, frozen=True):
    number: int
    body: bytes


class AtRest(JoinMessage, frozen=True):
    """Let the agent do something while all agents rest; :class:`MachineReply` has how that ended."""

    number: int
    deed: bytes
    files: dict[_File, bytes]
    """The files of the whole crawl, as in :class:`Begin`."""
    restores: bool
    """As in :class:`Begin`."""


class ReadPart(JoinMessage, frozen=True):
    """Reply with the bytes of a parcel from here on, as many as cross at once."""

    number: int
    name: _Parcel
    at: Annotated[int, msgspec.Meta(ge=0)]


class WritePart(JoinMessage, frozen=True):
    """Write them there."""

    number: int
    name: _Parcel
    at: Annotated[int, msgspec.Meta(ge=0)]
    data: bytes


class KillAgent(JoinMessage, frozen=True):
    """End the agent as SIGKILL does."""


class Book(JoinMessage, frozen=True):
    """All agents that have begun: their addresses, and how far they are in their stores."""

    agents: dict[_Agent, AgentPlace]
    masters: dict[_Master, _Port] = {}
    """The port of each master, on the machine of the supervisor."""


class Echo(JoinMessage, frozen=True):
    at: float


class Over(JoinMessage, frozen=True):
    """The crawl has ended, and no agent of it is needed."""

    text: str


#: Messages that a machine replies to.
Asked = Question | AtRest | ReadPart | WritePart

ToSupervisor = MachineJoins | Beat | MachineReply | Said | AgentHasEnded | AgentPlace
ToMachine = MachineWelcome | Refusal | Begin | Asked | KillAgent | Book | Echo | Over

to_supervisor: msgspec.msgpack.Decoder[ToSupervisor] = msgspec.msgpack.Decoder(ToSupervisor)
to_machine: msgspec.msgpack.Decoder[ToMachine] = msgspec.msgpack.Decoder(ToMachine)


def put(pipe: FramePipe, message: JoinMessage) -> None:
    """Write a message. A lost connection swallows it."""
    pipe.put(FrameKind.DATA, msgspec.msgpack.encode(message))


async def received(pipe: FramePipe, decoder: msgspec.msgpack.Decoder[T], sender: str) -> T:
    """The next message of `sender`. Raises LinkLost; BrokenFrame: it is none."""
    kind, payload = await pipe.read()
    if kind is not FrameKind.DATA:
        raise BrokenFrame(f"a {kind.name} frame came from {sender}")
    try:
        return decoder.decode(payload)
    except (ValueError, RecursionError) as error:
        raise BrokenFrame(f"{sender} sent no message: {error}") from None


def about(*, sending: bool, slot: str) -> About:
    """The words of one end in the handshake; the machine is the one that sends."""
    return About(_CONNECTOR, _SPEECH, sending, slot, "", 0)


def own_program() -> Program:
    """The program of this process."""
    parts = {
        f"{entry.group} {entry.name}={entry.value} {package.version}"
        for package in distributions()
        for entry in package.entry_points
        if entry.group.startswith("gossamer.")
    }
    digest = hashlib.blake2b("\n".join(sorted(parts)).encode(), digest_size=8).hexdigest()
    return Program(__version__, ".".join(platform.python_version_tuple()[:2]), digest)


def difference(theirs: Program, ours: Program) -> str:
    """Why a machine with another program is refused; empty where it runs the same, or a version that differs in its last number
    alone: such versions have the same messages, orders and ledgers, so that agents change to the next one by one."""
    if theirs.version.rpartition(".")[0] != ours.version.rpartition(".")[0]:
        return f"it has Gossamer {theirs.version}, and this crawl runs {ours.version}; install that there"
    if theirs.python != ours.python:
        return f"it has Python {theirs.python}, and this crawl runs on {ours.python}; use that there"
    if theirs.parts != ours.parts:
        return "it has other packages with parts for Gossamer; install the same ones as here, in the same versions"
    return ""


def host_and_port(text: str, option: str, *, is_own: bool = False) -> tuple[str, int]:
    """The host and port of an option; `is_own` takes port 0 and no port for any that is free. Raises UsageError: it is none."""
    host, colon, port = text.rpartition(":")
    if is_own and (not colon or text.endswith("]")):
        host, port = text, "0"
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535 or not (int(port) or is_own):
        raise UsageError(f"{option} {text!r}: write HOST:PORT, as 192.0.2.7:8650 or [2001:db8::7]:8650")
    return host, int(port)


def own_host(host: str, port: int) -> str:
    """The address from which this machine reaches another one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((host, port))
        return str(probe.getsockname()[0])
    return "127.0.0.1"
