"""One libcurl handle, used for many requests, and what the request under way has received.

Making a handle and setting its constant options costs 17 us, so handles are kept; only the URL, its exact request
target and the place to connect change between requests. Nothing else stays: cookies, credentials and redirects are off,
connections belong to the pool behind all handles, and what was received is dropped by :meth:`Transfer.clear`.
A head is judged when the first byte of its body arrives, or at the end: one that lies, and a body beyond its cap, end
the transfer on the spot.
"""

import os
import socket
from collections.abc import Sequence
from typing import Any

import msgspec
import pycurl

from gossamer.model.outcome import Outcome
from gossamer.model.url import path_of
from gossamer.stages.fetch.head import BrokenHead, Head, IncompleteHead, read

#: What a callback returns to make libcurl end the transfer, and close its connection.
_STOP = -1

#: libcurl hands over at most this much at once; most pages then come in one or two pieces.
_BUFFER = 64 * 1024


class Verdict(msgspec.Struct, frozen=True):
    """Why we ended a transfer ourselves."""

    outcome: Outcome
    reason: str
    cut: str = ""
    """The WARC-Truncated word, where a part of the body is kept."""


class Constants(msgspec.Struct, frozen=True):
    """What every request has in common until the sheet changes."""

    options: tuple[tuple[int, Any], ...]
    fields: str
    """The request's fields after Host, as they are sent."""


def constants(fields: Sequence[str], user_agent: str, *, verify: bool, ca_file: str) -> Constants:
    """The options that are set once for each handle, and the fields that follow from them."""
    options: list[tuple[int, Any]] = [
        (pycurl.NOSIGNAL, 1),
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),
        (pycurl.FOLLOWLOCATION, 0),
        # An empty proxy, and no host to use one for: the environment's is never asked (FAULTS 51).
        (pycurl.PROXY, ""),
        (pycurl.NOPROXY, "*"),
        (pycurl.NETRC, pycurl.NETRC_IGNORED),
        # The canonical URL is what the server is asked for: libcurl must not fold dots of its own (FAULTS 34).
        (pycurl.PATH_AS_IS, 1),
        (pycurl.HTTP_CONTENT_DECODING, 0),
        (pycurl.BUFFERSIZE, _BUFFER),
        (pycurl.USERAGENT, user_agent),
        (pycurl.HTTPHEADER, list(fields)),
        (pycurl.SSL_VERIFYPEER, int(verify)),
        (pycurl.SSL_VERIFYHOST, 2 if verify else 0),
    ]
    if ca_file:
        options.append((pycurl.CAINFO, ca_file))
    sent = "".join(f"{field}\r\n" for field in (f"User-Agent: {user_agent}", *fields))
    return Constants(tuple(options), sent)


class Transfer:
    """A handle of the pool. `begin` makes it ready; afterwards its attributes tell what came."""

    __slots__ = (
        "_endpoint",
        "_fd",
        "_room",
        "_target",
        "began",
        "chunks",
        "curl",
        "head",
        "lines",
        "mark",
        "shared",
        "size",
        "verdict",
    )

    def __init__(self, shared: Constants) -> None:
        self.shared = shared
        self.lines: list[bytes] = []
        self.curl = pycurl.Curl()
        for option, value in shared.options:
            self.curl.setopt(option, value)
        # Ten lines a page: they are only collected here, and judged together. libcurl stops at 300 KB or 5,000 lines.
        self.curl.setopt(pycurl.HEADERFUNCTION, self.lines.append)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        self.curl.setopt(pycurl.SOCKOPTFUNCTION, self._on_socket)
        self._endpoint: tuple[str, int] | None = None
        self._target = ""
        self.clear()

    def clear(self) -> None:
        """Forget the request: nothing of it may reach the next one, or keep a body in memory."""
        self.began = 0.0
        self.mark: tuple[float, int] | None = None
        self.verdict: Verdict | None = None
        self.head: Head | None = None
        self.lines.clear()
        self.chunks: list[bytes] = []
        self.size = 0
        self._room = 0
        self._fd = -1

    def begin(self, url: str, address: str, port: int, room: int, now: float) -> None:
        """Make the handle ready to fetch `url` from an address, keeping at most `room` bytes of the body."""
        self.began = now
        self._room = room
        self.curl.setopt(pycurl.URL, url)
        if self._endpoint != (address, port):
            # Without a host and port in front, the entry stands for every URL: libcurl never asks a name server.
            shown = f"[{address}]" if ":" in address else address
            self.curl.setopt(pycurl.CONNECT_TO, [f"::{shown}:{port}"])
            self._endpoint = (address, port)
        # libcurl writes %7e as %7E; servers may tell them apart, and the URL of the task is what is asked for. The option
        # cannot be unset: a handle that has had it once gets it for every URL.
        if "%" in url or self._target:
            target = path_of(url)
            if target != self._target:
                self.curl.setopt(pycurl.REQUEST_TARGET, target)
                self._target = target

    def close(self) -> None:
        """Give the handle back to libcurl."""
        self.curl.close()

    @property
    def is_sent(self) -> bool:
        """Connected, TLS included, and the request is on its way. Asked only of slow and failed transfers."""
        return bool(self.curl.getinfo(pycurl.REQUEST_SIZE) > 0)

    @property
    def is_connected(self) -> bool:
        """TCP is connected. libcurl tells only after TLS, so a transfer that is not sent yet asks the socket itself."""
        try:
            with socket.socket(fileno=os.dup(self._fd)) as own:
                own.getpeername()
        except OSError:
            return False
        return True

    def _on_socket(self, fd: int, purpose: int) -> int:
        self._fd = fd
        return 0

    def judge_head(self) -> bool:
        """Read the head once it is complete. False while it is not, or cannot be believed: then there is a verdict."""
        if self.head is None and self.verdict is None:
            try:
                self.head = read(self.lines)
            except BrokenHead as error:
                self.verdict = Verdict(Outcome.PROTOCOL_FAILED, str(error))
            except IncompleteHead:
                pass
        return self.head is not None

    def _on_body(self, data: bytes) -> int | None:
        if self.head is None and not self.judge_head():
            return _STOP
        self.size += len(data)
        if self.size <= self._room:
            self.chunks.append(data)
            return None
        self.chunks.append(data[: len(data) - (self.size - self._room)])
        self.verdict = Verdict(Outcome.TRUNCATED, f"body over {self._room} bytes", "length")
        return _STOP


class Limits(msgspec.Struct, frozen=True):
    """The deadlines of one request, all in seconds."""

    connect: float
    tls: float
    head: float
    whole: float
    least_speed: float
    """Bytes per second, over `window`."""
    window: float


def overdue(transfer: Transfer, limits: Limits, now: float) -> Verdict | None:
    """Has a transfer outlived one of its deadlines? Each phase has its own, and its own outcome (FAULTS 11-15)."""
    waited = now - transfer.began
    has_head = transfer.head is not None or (bool(transfer.lines) and transfer.judge_head())
    if transfer.verdict is not None:
        return transfer.verdict
    if waited > limits.whole:
        return Verdict(Outcome.TIMED_OUT, f"not whole within {limits.whole:g} s", "time" if has_head else "")
    if has_head:
        return _slow(transfer, limits, now)
    if waited <= min(limits.connect, limits.head):
        return None
    if transfer.is_sent:
        if waited - transfer.curl.getinfo(pycurl.PRETRANSFER_TIME) > limits.head:
            return Verdict(Outcome.TIMED_OUT, f"no complete head within {limits.head:g} s")
    elif not transfer.is_connected:
        if waited > limits.connect:
            return Verdict(Outcome.CONNECT_FAILED, f"no connection within {limits.connect:g} s")
    elif waited > limits.connect + limits.tls:
        return Verdict(Outcome.TLS_FAILED, f"no TLS session within {limits.tls:g} s")
    return None


def _slow(transfer: Transfer, limits: Limits, now: float) -> Verdict | None:
    """Compare with the mark of a window ago; the first one is set when the body is first seen."""
    if transfer.mark is None:
        transfer.mark = (now, transfer.size)
        return None
    since, size = transfer.mark
    if now - since < limits.window:
        return None
    if transfer.size - size < limits.least_speed * (now - since):
        return Verdict(Outcome.TOO_SLOW, f"less than {limits.least_speed:g} bytes/s", "time")
    transfer.mark = (now, transfer.size)
    return None
