"""The runtime's process: where it listens, and when it ends.

Place in the flow: `gossamer runtime --serve` calls :func:`serve`. Off loopback it speaks TLS and nothing else, whatever it is told.
The application is the contract of a runtime over HTTP (docs/runtime.md): which request is which call, and how answers and refusals
travel. :class:`SenderGuard` says whose request it is before anything of the body is read.
:mod:`~gossamer.mobile.manager.links` is the other end. ::

    GET    /v1/offer                              offer
    PUT    /v1/crawlers/IDENTITY                  send; the body is the crawler
    GET    /v1/crawlers/IDENTITY/batches/N?wait=S batch; 200 with the frame, 202 with the standing
    DELETE /v1/crawlers/IDENTITY/batches/N        acknowledge
    DELETE /v1/crawlers/IDENTITY                  cancel

Promises: a request without a key learns nothing here, and costs little: a head within a few seconds, one hash, and two lines of
the log a minute for its address. The right key opens at any time. Behind a proxy all requests have one address, so no number of
wrong keys may keep the right one out; and a key of 32 random bytes needs no lock against guessing.
"""

import asyncio
import contextlib
import fcntl
import os
import re
import signal
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

from gossamer.crawls.http_server import Guard, is_loopback, json_answer, listening_socket, server
from gossamer.engine.files import user_folder
from gossamer.mobile.contract import (
    MAX_CRAWLER,
    MAX_WAIT,
    CrawlerStanding,
    RuntimeOffer,
    RuntimeRefused,
    RuntimeUnavailable,
)
from gossamer.mobile.judging import allowed_processors
from gossamer.mobile.runtime.host import HostedLink, RuntimeHost
from gossamer.mobile.runtime.keeper import ProcessLimits, walls_here
from gossamer.mobile.runtime.store import Diary, HostStanding, Senders, own_certificate, write_standing
from gossamer.mobile.sources.opened import Runtime
from gossamer.mobile.sources.owner import OwnerSheet
from gossamer.values.addresses import place_of
from gossamer.values.errors import CrawlDirectoryError, UsageError

#: The address at which it listens by default.
ADDRESS = "127.0.0.1:8643"

#: Connections at once: senders, and those whom the guard turns away.
MAX_CONNECTIONS = 128
#: Bytes of the head of a request.
MAX_HEAD = 16_384

#: Seconds between two descriptions of itself on the disk.
_DESCRIBE = 1.0


class RuntimeAddress(msgspec.Struct, frozen=True):
    name: str
    port: int
    """0: a free one."""
    has_tls: bool

    def url(self, port: int) -> str:
        return f"{'https' if self.has_tls else 'http'}://{place_of(self.name, port)}"


def read_listening(text: str, *, tls: bool = False) -> RuntimeAddress:
    """Where to listen, as a person wrote it: `HOST:PORT`. Others than loopback addresses always have TLS.
    Raises UsageError: it is no address."""
    name, _, port = text.rpartition(":")
    name = name.strip("[]")
    if not name or not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise UsageError(f"listen {text!r}: write HOST:PORT, as 127.0.0.1:8643 or 0.0.0.0:8643")
    return RuntimeAddress(name, int(port), tls or not is_loopback(name))


def state_folder(text: str = "", *, is_new: bool = False) -> Path:
    """Where a runtime keeps keys, crawlers and results: a folder of the user's own; `is_new`: it may have to be made.
    Raises UsageError: it cannot be made, or others can write to it."""
    folder = Path(text) if text else user_folder("state") / "runtime"
    try:
        if is_new:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except FileNotFoundError:
        raise UsageError(f"{folder}: no runtime has run there; give the folder of its --state") from None
    except OSError as error:
        raise UsageError(f"--state {folder}: cannot be used: {error.strerror or error}") from None
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise UsageError(f"--state {folder}: others can write there; use a folder of your own, with chmod 700")
    return folder


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a state folder: no other runtime uses it. Raises CrawlDirectoryError: another one does."""
    number = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CrawlDirectoryError(f"{folder}: another runtime uses it; stop that one, or give --state") from None
        yield
    finally:
        os.close(number)


def is_held(folder: Path) -> bool:
    try:
        with held(folder):
            return False
    except CrawlDirectoryError:
        return True
    except OSError:
        return False


def serve(
    sheet: OwnerSheet,
    listening: RuntimeAddress,
    folder: Path,
    tell: Callable[[HostStanding], None],
    *,
    limits: ProcessLimits | None = None,
) -> None:
    """Serve until a signal says that it is enough; `tell` gets the description of the runtime once it listens. `limits` says
    which walls are put up, and whether weak ones do. Raises UsageError: something cannot be served, it cannot listen there, or
    crawlers cannot be shut in. Raises CrawlDirectoryError: another runtime uses the folder."""
    processes = limits or ProcessLimits()
    with held(folder):
        walls = walls_here(processes)
        if not (walls.is_whole or processes.is_weak):
            raise UsageError(
                f"crawlers cannot be shut in on this machine ({walls}); "
                "see docs/runtime.md, Isolation, or say --weak-isolation and admit only senders whom you trust"
            )
        certificate = own_certificate(folder) if listening.has_tls else None
        installed = allowed_processors(sheet.allow)
        diary = Diary(folder / "runtime.jsonl")
        with listening_socket(listening.name, listening.port, MAX_CONNECTIONS) as bound, Runtime(sheet) as sources:
            standing = HostStanding(
                pid=os.getpid(),
                address=listening.url(bound.getsockname()[1]),
                pin=certificate.pin if certificate else "",
                hosts=sheet.serve,
                walls=str(walls),
                is_weak=not walls.is_whole,
            )
            host = RuntimeHost(sheet, sources, folder, diary, installed=installed, limits=processes)
            diary.tell("started", address=standing.address, walls=standing.walls, hosts=list(sheet.serve))
            file = str(certificate.path) if certificate else None
            guard = SenderGuard(application(host), Senders(folder), diary)
            serving = server(guard, most=MAX_CONNECTIONS, head=MAX_HEAD, certificate=file, key=file)

            async def describe() -> None:
                while True:
                    await asyncio.to_thread(write_standing, folder, standing, host)
                    await asyncio.sleep(_DESCRIBE)

            async def live() -> None:
                loop = asyncio.get_running_loop()
                for number in (signal.SIGINT, signal.SIGTERM):
                    # uvicorn sends itself the signal again when it has ended, which must not end the process before crawlers are
                    # ended.
                    loop.add_signal_handler(number, lambda: setattr(serving, "should_exit", True))
                async with host:
                    describing = asyncio.create_task(describe())
                    tell(standing)
                    try:
                        await serving.serve(sockets=[bound])
                    finally:
                        describing.cancel()
                write_standing(folder, standing, host)

            asyncio.run(live())
            diary.tell("ended_serving")


#: Wrong keys from one address within a minute, after which more of them are told to wait until the minute is over.
WRONG_KEYS, MINUTE = 10, 60.0
#: Addresses that are remembered.
_ADDRESSES = 10_000
#: Requests of one sender at once.
MAX_REQUESTS = 8

#: The key of a scope under which the application finds the sender.
SENDER = "gossamer.sender"


class SenderGuard(Guard):
    """Lets in the senders that the owner has admitted, each with some requests at a time."""

    def __init__(self, app: ASGIApp, senders: Senders, diary: Diary, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(app)
        self._senders = senders
        self._diary = diary
        self._now = now
        self._wrong: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """Address -> when its minute began, and how many wrong keys came."""
        self._live: dict[str, int] = {}

    def refused(self, scope: Scope) -> Response | None:
        scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
        sender = self._senders.sender(key.strip()) if scheme.lower() == "bearer" else ""
        if not sender:
            address = (scope.get("client") or ("",))[0]
            began, count = self._wrong.pop(address, (self._now(), 0))
            if self._now() - began >= MINUTE:
                began, count = self._now(), 0
            if count >= WRONG_KEYS:
                self._wrong[address] = began, count
                return _refused(429, "too many wrong keys; try again in a minute")
            self._wrong[address] = began, count + 1
            while len(self._wrong) > _ADDRESSES:
                self._wrong.popitem(last=False)
            if count + 1 in (1, WRONG_KEYS):  # a guesser must not fill the log
                self._diary.tell("denied", address=address, wrong_keys=count + 1)
            return _refused(401, "the request has no key of a sender; ask the owner of the runtime for one")
        if self._live.get(sender, 0) >= MAX_REQUESTS:
            return _refused(429, f"you have {MAX_REQUESTS} requests in flight already; wait for an answer")
        self._live[sender] = self._live.get(sender, 0) + 1
        scope[SENDER] = sender
        return None

    def ended(self, scope: Scope) -> None:
        self._live[scope[SENDER]] -= 1


def _refused(status: int, told: str) -> Response:
    # The connection is closed, so that a body is not read in vain.
    return json_answer({"reason": "not_authorized", "told": told}, status, {"connection": "close"})


#: Seconds that a crawler's bytes may take to come.
PATIENCE = 300.0

#: A number as it may be read: Python refuses to make one of thousands of digits, and no sequence or length has so many.
_DIGITS = re.compile(r"[0-9]{1,12}")

Call = Callable[[HostedLink, Request], Awaitable[RuntimeOffer | CrawlerStanding | bytes]]


def application(host: RuntimeHost) -> Starlette:
    """The application, which has to be guarded."""

    def answering(call: Call) -> Callable[[Request], Awaitable[Response]]:
        async def answered(request: Request) -> Response:
            try:
                found = await call(host.link(request.scope[SENDER]), request)
            except RuntimeRefused as refused:
                return json_answer({"reason": refused.reason, "told": str(refused)}, 422)
            except (RuntimeUnavailable, ClientDisconnect) as error:
                return json_answer({"reason": "later", "told": str(error)}, 503)
            if isinstance(found, bytes):
                return Response(found, media_type="application/octet-stream")
            is_no_batch = request.method == "GET" and isinstance(found, CrawlerStanding)
            return json_answer(found, 202 if is_no_batch else 200)

        return answered

    crawler = "/v1/crawlers/{identity}"
    batch = crawler + "/batches/{sequence}"
    calls: tuple[tuple[str, str, Call], ...] = (
        ("GET", "/v1/offer", lambda link, request: link.offer()),
        ("PUT", crawler, _send),
        ("DELETE", crawler, lambda link, request: link.cancel(request.path_params["identity"])),
        ("GET", batch, _batch),
        ("DELETE", batch, lambda link, request: link.acknowledge(request.path_params["identity"], _sequence(request))),
    )
    return Starlette(routes=[Route(path, answering(call), methods=[method]) for method, path, call in calls])


async def _send(link: HostedLink, request: Request) -> CrawlerStanding:
    """Read the body, if it is no longer than a crawler may be and comes in time."""
    told = request.headers.get("content-length", "")
    if told and not (_DIGITS.fullmatch(told) and int(told) <= MAX_CRAWLER):
        raise RuntimeRefused("too_large", f"the crawler has {told[:20]!r} bytes; at most {MAX_CRAWLER} are accepted")
    body = bytearray()
    try:
        async with asyncio.timeout(PATIENCE):
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_CRAWLER:
                    raise RuntimeRefused(
                        "too_large", f"the crawler has more than {MAX_CRAWLER} bytes, and no more are accepted"
                    )
    except TimeoutError:
        raise RuntimeUnavailable(f"the crawler did not come within {PATIENCE:g} s") from None
    return await link.send(request.path_params["identity"], bytes(body))


async def _batch(link: HostedLink, request: Request) -> bytes | CrawlerStanding:
    try:
        wait = min(max(0.0, float(request.query_params.get("wait", "0"))), MAX_WAIT)
    except ValueError:
        wait = 0.0
    return await link.batch(request.path_params["identity"], _sequence(request), wait)


def _sequence(request: Request) -> int:
    sequence: str = request.path_params["sequence"]
    if not _DIGITS.fullmatch(sequence):
        raise HTTPException(404)  # as for any other address that names nothing
    return int(sequence)
