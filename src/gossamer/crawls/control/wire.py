"""The control socket: where it lies, and the form of requests and answers on it.

Place in the flow: server and clients find the socket and speak through it by this module; the list of requests is
:mod:`gossamer.crawls.control.messages`. The socket lies in the user's runtime directory, under a name made from the crawl's
directory: paths of sockets are limited to some 100 bytes, and a crawl may lie where sockets cannot (design question 13). A
client in a session with another environment looks in every folder where the crawl could have put it, and in the one that the
crawl has noted in its state. A message is JSON with its length before it. A request names no code, class, file or environment:
only fields of the types that it declares. An unknown field is refused, and lengths are checked before anything is allocated
(fault 113).
"""

import contextlib
import hashlib
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from gossamer.engine.files import replace_file
from gossamer.storage.members import AGENTS
from gossamer.values.errors import GossamerError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from gossamer.crawls.control.steering import Settable, Steerable, Stoppable


# Requests and answers, and their form on the wire.

#: Bytes of a request at most: a block list of some 40,000 names.
MAX_REQUEST = 1 << 20

#: Bytes of an answer at most; the server cuts its lists long before.
MAX_ANSWER = 1 << 24

#: Bytes before each message: its length, the highest byte first.
HEADER = 4


class ControlRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do"):
    """Base of what can be asked."""

    steers: ClassVar[bool] = True
    """It changes the crawl, and a line of the steering log says so."""

    async def act(self, crawl: "Steerable") -> "Answered":
        """Do it to a crawl, in the crawl's process. Raises GossamerError: it cannot be done, and nothing has changed;
        FlowError: likewise."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it does")

    def noted(self, crawl: "Settable", answered: "Answered") -> dict[str, Any]:
        """The words of the steering log once it is done."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


class ProcessRequest(ControlRequest, frozen=True):
    """Base of what any process of a crawl can be asked, also a master, which has no ledger and no frontier."""

    async def act(self, crawl: "Stoppable") -> "Answered":
        raise NotImplementedError(f"{type(self).__name__} does not say what it does")


class Reply(msgspec.Struct, frozen=True, tag_field="is"):
    """Base of what is answered."""


class Done(Reply, frozen=True, tag="done"):
    """It was done; in words for a person."""

    text: str


class Listed(Reply, frozen=True, tag="listed"):
    """Names that were asked for."""

    names: list[str]


class Told(Reply, frozen=True, tag="told"):
    """The answer, as JSON that the asker knows the form of."""

    value: msgspec.Raw


class NotDone(Reply, frozen=True, tag="refused"):
    """It was not done, and nothing has changed."""

    text: str
    exit_code: int = 2


Answered = Done | Listed | Told | NotDone


class RequestRefused(GossamerError):
    """A request was not carried out, and nothing has changed."""

    def __init__(self, answer: NotDone) -> None:
        super().__init__(answer.text)
        self.exit_code = answer.exit_code


_answers = msgspec.json.Decoder(Answered)


class Malformed(ValueError):
    """A message that is none of ours. The connection is dropped."""


def encode(message: ControlRequest | Reply) -> bytes:
    body = msgspec.json.encode(message)
    return len(body).to_bytes(HEADER) + body


def read_length(header: bytes, limit: int) -> int:
    """The length of the message that follows. Raises Malformed: it is longer than `limit`, or empty."""
    length = int.from_bytes(header)
    if not 0 < length <= limit:
        raise Malformed(f"a message of {length} bytes; at most {limit} are taken")
    return length


def tag_of(request: type[ControlRequest]) -> str:
    return str(request.__struct_config__.tag)


def read_answer(body: bytes) -> Answered:
    """An answer from its bytes. Raises Malformed: it is none; says what is wrong."""
    answer: Answered = decoded(_answers, body)
    return answer


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """A message from its bytes. Raises :class:`Malformed` where it is none."""
    try:
        return decoder.decode(body)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not a message of this protocol: {error}") from None


def told(value: msgspec.Struct) -> Told:
    return Told(msgspec.Raw(msgspec.json.encode(value)))


#: Bytes of the longest path of a folder.
_MOST_NOTE = 4_096

#: macOS: the option that names the user at the other end, and where the user's number stands in `struct xucred`.
_LOCAL_PEERCRED, _SOL_LOCAL, _XUCRED = 1, 0, struct.Struct("=IIh")


def socket_name(directory: Path) -> str:
    """The socket's name: 80 bits of a hash of the directory's real path."""
    return hashlib.sha256(os.fsencode(os.path.realpath(directory))).hexdigest()[:20] + ".sock"


def folders() -> list[Path]:
    """Folders for sockets, the preferred first. Each is ours alone, or is not there yet."""
    runtime = [Path(given)] if (given := os.environ.get("XDG_RUNTIME_DIR")) else []
    runtime += [Path(f"/run/user/{os.getuid()}")]
    found = [folder / "gossamer" for folder in runtime if is_private(folder)]
    # Without one, as in a service or over `su`: a folder of our own beside all users' temporary files. Also the usual place
    # of those, since the asker may have another TMPDIR than the crawl.
    shared = (tempfile.gettempdir(), "/tmp")  # noqa: S108  # no other user's folder is used: is_private looks at it first
    found += [Path(top) / f"gossamer-{os.getuid()}" for top in shared]
    return list(dict.fromkeys(found))


def sockets(directory: Path) -> Iterator[Path]:
    """Where the socket of this crawl may be, in folders that no other user can write to."""
    name = socket_name(directory)
    found = dict.fromkeys([*folders(), *_noted(directory)])
    return (folder / name for folder in found if is_private(folder))


def note(directory: Path, folder: Path) -> None:
    """Note in the state of a crawl, or of one agent of it, in which folder its socket lies: its own environment has led there."""
    with contextlib.suppress(OSError):  # on a full disk it is found where the environment is the same
        replace_file(_note_of(directory), os.fsencode(folder))


def forget(directory: Path) -> None:
    with contextlib.suppress(OSError):
        _note_of(directory).unlink(missing_ok=True)


def _noted(directory: Path) -> list[Path]:
    try:
        with _note_of(directory).open("rb") as file:
            folder = Path(os.fsdecode(file.read(_MOST_NOTE)))
    except OSError:
        return []
    return [folder] if folder.is_absolute() else []


def _note_of(directory: Path) -> Path:
    """An agent's directory lies in the state of its crawl; a crawl has its state below it."""
    place, state = Path(os.path.realpath(directory)), Path(AGENTS).parent
    return (place if place.parent.name == state.name else place / state) / "control-folder"


def is_private(folder: Path) -> bool:
    """A real folder, ours, and closed to others."""
    try:
        seen = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.getuid() and not stat.S_IMODE(seen.st_mode) & 0o077


def is_ours(connected: socket.socket) -> bool:
    """Whether the process at the other end belongs to our user, by the system's word (besides the socket's mode)."""
    if hasattr(socket, "SO_PEERCRED"):
        peer = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _, user, _ = struct.unpack("3i", peer)
    else:
        peer = connected.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 128)
        _, user, _ = _XUCRED.unpack(peer[: _XUCRED.size])
    return bool(user == os.getuid())


def other_end_is(writer: "asyncio.StreamWriter", ours: "Callable[[socket.socket], bool]" = is_ours) -> bool:
    """Whether the process at the other end of a stream is one of ours."""
    connection = writer.get_extra_info("socket")
    # A duplicate: the event loop shows its socket behind a cover that answers no such question.
    with socket.socket(fileno=os.dup(connection.fileno())) as duplicate:
        return ours(duplicate)
