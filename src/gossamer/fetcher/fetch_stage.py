"""The fetch stage: a pool of workers, each with one request; the protocol module is chosen by the URL's scheme. Below it stands the
one module that needs no network, for `file:`.

Place in the flow: for each task the stage sends an *answer* back to the frontier (the host is free again), then the *visit*
onwards.
"""

import asyncio
import errno
import mimetypes
import os
import stat
from pathlib import Path
from types import MappingProxyType
from typing import Annotated
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from gossamer.engine.component import Filter
from gossamer.engine.ends import In, Out, UsesMany
from gossamer.engine.errors import ComponentFailed
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.fetcher.contract import ProtocolModule, RequestSender, SendGuard
from gossamer.values.body import PIECE, THRESHOLD, BodyWriter
from gossamer.values.outcome import Outcome
from gossamer.values.settings import MAX_BODY, MaxBody
from gossamer.values.task import Answer, Task
from gossamer.values.url import authority_of, path_of, scheme_of
from gossamer.values.visit import Response, Visit, answer_of


class Fetch(Filter[NoSettings]):
    """Fetches each task, and makes a visit of it whether the fetch succeeds or fails."""

    tasks: In[Task]
    answers: Out[Answer]
    visits: Out[Visit]
    protocols: UsesMany[ProtocolModule]
    guards: UsesMany[SendGuard] = MappingProxyType({})

    async def filter(self, task: Task) -> None:
        """Every task ends in one answer and one visit, whatever a module or a server does."""
        response = await self._fetch(task)
        self.metrics.counters[f"outcome:{response.outcome}"] += 1
        await self.answers.send(answer_of(task, response))
        barred = {"body": response.barred} if response.barred else {}
        await self.visits.send(Visit(task, response, barred=barred))

    async def _fetch(self, task: Task) -> Response:
        modules = self.protocols.get(scheme_of(task.url))
        if not modules:
            return Response(Outcome.SCHEME_REFUSED, error=f"no protocol module serves {scheme_of(task.url)!r}")
        module = modules[0]
        try:
            if task.request is None or task.request.is_plain:
                return await module.fetch(task)
            if isinstance(module, RequestSender):
                for guard in () if task.is_safe else self.guards.get("guards", ()):
                    if not await guard.may_send(task):
                        why = "it may have been sent before the crawl lost its machine"
                        return Response(Outcome.INTERRUPTED, started=self.clock.now(), error=why)
                return await module.send(task)
            return Response(Outcome.SCHEME_REFUSED, error=f"{type(module).__name__} sends nothing but plain GETs")
        except ComponentFailed:
            raise  # of a person's own code, as a log-in: the crawl would fetch pages that are not those which it is for
        except Exception as error:
            # A module promises not to raise; one that does costs its page and is counted, not the crawl.
            self.metrics.count("raised")
            return Response(Outcome.PROTOCOL_FAILED, started=self.clock.now(), error=f"{type(error).__name__}: {error}")


# file: documents of this machine, inside the directories that a person gave as seeds. A directory is a document of the type
# `text/uri-list` (RFC 2483): its entries' URLs, one on each line, which a processor reads (`gossamer.parsing.other_links`).
# Anything that is neither a plain file nor a directory is never opened.

#: The type of a directory's listing.
LISTING = "text/uri-list"

#: Entries of a directory that are listed, in the order of their names: as many links as are kept of a page, and some.
MOST_ENTRIES = 100_000


class BodySheet(Sheet, frozen=True):
    """Settings of all protocol modules: how much of a body is kept, and where."""

    max_body: MaxBody = MAX_BODY
    spool_above: Annotated[int, setting("Keep bodies larger than this on the disk.", unit="bytes", ge=0)] = THRESHOLD
    spool: Annotated[
        str,
        setting(
            "Keep large bodies in this directory while they are used; if empty, in the system's temporary directory.",
            names="a folder",
        ),
    ] = ""


class TransferSheet(BodySheet, frozen=True):
    """Settings of all modules that ask servers."""

    connect: Annotated[float, setting("Give up a TCP connection that takes longer than this.", unit="s", gt=0)] = 10.0
    first_byte: Annotated[
        float,
        setting("Give up an answer whose first byte takes longer than this after the connection.", unit="s", gt=0),
    ] = 30.0
    deadline: Annotated[float, setting("Give up a fetch that takes longer than this in all.", unit="s", gt=0)] = 120.0
    least_speed: Annotated[float, setting("Give up a body that comes slower than this.", unit="bytes/s", ge=0)] = 100.0
    speed_window: Annotated[float, setting("Measure the least speed over this time.", unit="s", gt=0)] = 30.0
    timings: Annotated[bool, setting("Record for each answer when each phase of the fetch ended.")] = False

    @property
    def shortest(self) -> float:
        """Seconds of the shortest deadline."""
        return min(self.connect, self.first_byte, self.deadline)


class FileSheet(BodySheet, frozen=True):
    roots: Annotated[
        tuple[str, ...],
        setting("Let these files, and these directories with everything in them, be read.", names="a file"),
    ] = ()


class FileModule(Provider[FileSheet]):
    """Reads files. Implements `fetcher.contract.ProtocolModule`."""

    async def fetch(self, task: Task) -> Response:
        """See the contract. Reading happens on a thread: a disk may take its time."""
        started, began = self.clock.now(), self.clock.monotonic()
        if not task.url.startswith("file:///"):
            outcome = Outcome.ADDRESS_REFUSED if task.url.startswith("file:") else Outcome.SCHEME_REFUSED
            return Response(outcome, started=started, error="not a file of this machine")
        try:
            response = await asyncio.to_thread(self._read, task.url)
        except OSError as error:
            response = _failed(error)
        elapsed = self.clock.monotonic() - began
        self.metrics.count("requests")
        self.metrics.count("body_bytes", len(response.body))
        return msgspec.structs.replace(response, started=started, elapsed=elapsed)

    def _read(self, url: str) -> Response:
        name = unquote_to_bytes(path_of(url).partition("?")[0])
        if b"\0" in name or authority_of(url):
            return Response(Outcome.ADDRESS_REFUSED, error="not a file of this machine")
        # Links are followed before the judgement: only the place of the file counts.
        path = os.path.realpath(name)
        if not self._may_read(path):
            return Response(Outcome.ADDRESS_REFUSED, error="outside the directories of the seeds")
        # Non-blocking, so that a pipe does not hold the thread; no link, should one have been put there since.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            kind = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(kind):
                return self._listing(url, name, descriptor)
            if not stat.S_ISREG(kind) or name.endswith(b"/"):
                return Response(Outcome.CLIENT_ERROR, error="neither a file nor a directory")
            return self._file(name, descriptor)
        finally:
            os.close(descriptor)

    def _may_read(self, path: bytes) -> bool:
        for root in self.sheet.roots:
            allowed = os.path.realpath(os.fsencode(root))
            if path == allowed or path.startswith(allowed.rstrip(b"/") + b"/"):
                return True
        return False

    def _file(self, name: bytes, descriptor: int) -> Response:
        writer, room = BodyWriter(self.sheet.spool_above, self.sheet.spool, digest=True), self.sheet.max_body
        while piece := os.read(descriptor, PIECE):
            writer.write(piece[: room - writer.size] if writer.size + len(piece) > room else piece)
            if writer.size >= room:
                break
        more = bool(os.read(descriptor, 1)) or bool(piece and len(piece) > room)
        cut = more or os.fstat(descriptor).st_size > room
        mime = mimetypes.guess_type(os.fsdecode(name))[0] or "application/octet-stream"
        return Response(
            Outcome.TRUNCATED if cut else Outcome.OK,
            headers=(("content-type", mime),),
            body=writer.take(),
            cut="length" if cut else "",
            error=f"body over {room} bytes" if cut else "",
        )

    def _listing(self, url: str, name: bytes, descriptor: int) -> Response:
        if not name.endswith(b"/"):
            # Relative links would be resolved against the directory above.
            return Response(Outcome.REDIRECT, headers=(("location", f"{url.partition('?')[0]}/"),))
        lines: list[str] = []
        with os.scandir(descriptor) as entries:
            for entry in entries:
                if len(lines) >= MOST_ENTRIES:
                    break
                slash = "/" if entry.is_dir(follow_symlinks=False) else ""
                lines.append(f"file://{quote_from_bytes(name + os.fsencode(entry.name))}{slash}\r\n")
        body = "".join(sorted(lines)).encode("ascii")
        return Response(Outcome.OK, headers=(("content-type", LISTING),), body=body)


def _failed(error: OSError) -> Response:
    """The outcome of what the system refuses: gone and forbidden are final, the rest may pass."""
    final = error.errno in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
    return Response(Outcome.CLIENT_ERROR if final else Outcome.SERVER_ERROR, error=error.strerror or str(error))


def root_of(url: str) -> str:
    """The directory that a seed opens: itself, where it is one, otherwise the one that it lies in."""
    path = Path(os.fsdecode(unquote_to_bytes(path_of(url).partition("?")[0])))
    return str(path if url.endswith("/") or path.is_dir() else path.parent)
