"""Questions to a copy of a triple store, each answered in a process of its own with limits of time and memory.

Place in the flow: `gossamer sparql` and :mod:`serving` ask here. :mod:`answering` is what runs in the process.
"""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec

from gossamer.engine import processes
from gossamer.engine.sheet import show_bytes, show_seconds
from gossamer.query.engine import check_triples
from gossamer.query.following import feed_all, feeds_of
from gossamer.rdf.store.answering import NO_MEMORY
from gossamer.rdf.store.feeding import snapshot
from gossamer.rdf.store.questions import SparqlQuestion
from gossamer.rdf.store.store import TripleStore
from gossamer.storage.tables.places import TRIPLES
from gossamer.values.errors import CrawlDirectoryError, GossamerError, UsageError

# A copy of a crawl's triple store with everything that the crawl has committed: what commands and the server read.
#
# Place in the flow: `gossamer sparql`, `export` and `serve-sparql` begin here.


@contextlib.contextmanager
def current_copy(directory: Path, patience: float) -> Iterator[Path]:
    """A copy of the store as of now. A store that was deleted is made again for it.

    Args:
        directory: the crawl directory.
        patience: seconds to wait for the process of a running crawl.

    Raises:
        UsageError: the crawl keeps no triples.
        CrawlDirectoryError: the store is of another version, damaged or in use, or the directory cannot be read or written.
    """
    check_triples(directory)

    def feed(store: TripleStore) -> None:
        feed_all(directory, feeds_of(directory, store.consumers()))
        store.open()

    with contextlib.ExitStack() as stack:
        try:
            copy = stack.enter_context(snapshot(directory, feed, patience))
        except OSError as error:
            what = error.filename or directory / TRIPLES
            raise CrawlDirectoryError(f"{what}: {error.strerror or error}; the triples cannot be copied") from None
        yield copy


#: Bytes that are passed on at once.
_PIECE = 1 << 16

#: Bytes of complaints that are read.
_MOST_COMPLAINTS = 4_000

#: Statuses by which a process ends that could not get memory: Rust gives up, or the system kills it.
_OUT_OF_MEMORY = {-signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV, NO_MEMORY}


class QuestionLimits(msgspec.Struct, frozen=True):
    """What one question may take."""

    seconds: float = 60.0
    memory: int = 1 << 30
    """Bytes."""


class TooMuch(GossamerError):
    """A question wanted more time or memory than it may have."""

    exit_code = 4


Take = Callable[[bytes], Awaitable[None]]
Begin = Callable[[str], Awaitable[None]]


async def _begin(form: str) -> None:
    """Who asks for one form needs not be told of it."""


async def ask(store: Path, question: SparqlQuestion, limits: QuestionLimits, take: Take, begin: Begin = _begin) -> None:
    """Have a question answered.

    Args:
        store: a copy of a store, which nobody writes.
        question: what is asked.
        limits: what it may take.
        take: gets the answer, piece by piece.
        begin: is told the form of the answer before its first piece.

    Raises:
        UsageError: the question cannot be answered; says why.
        TooMuch: it wanted more than it may have.
        CrawlDirectoryError: the store cannot be read.
    """
    child = await processes.begun(
        "gossamer.rdf.store.answering", str(store), str(limits.memory), str(int(limits.seconds) + 2)
    )
    try:
        async with asyncio.timeout(limits.seconds):
            complaint = await _converse(child, question, take, begin)
    except TimeoutError:
        raise TooMuch(
            f"the query got no answer within {show_seconds(limits.seconds)}; ask for less, or give it more time"
        ) from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    _judge(child.returncode, complaint, limits)


async def _converse(child: asyncio.subprocess.Process, question: SparqlQuestion, take: Take, begin: Begin) -> str:
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None
    complaints = asyncio.create_task(child.stderr.read(_MOST_COMPLAINTS))
    try:
        try:
            child.stdin.write(msgspec.json.encode(question))
            await child.stdin.drain()
            child.stdin.close()
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has ended, and says why
        if form := await child.stdout.readline():
            await begin(form.decode().strip())
        while piece := await child.stdout.read(_PIECE):
            await take(piece)
        complaint = await complaints
        await child.wait()
    finally:
        complaints.cancel()
    return complaint.decode("utf-8", "replace").strip()


def _judge(status: int | None, complaint: str, limits: QuestionLimits) -> None:
    if not status:
        return
    last = complaint.rpartition("\n")[2]
    if status == UsageError.exit_code:
        raise UsageError(last)
    if status == -signal.SIGXCPU:
        raise TooMuch(
            f"the query got no answer within {show_seconds(limits.seconds)}; ask for less, or give it more time"
        )
    if status in _OUT_OF_MEMORY:
        raise TooMuch(f"the answer wants more than {show_bytes(limits.memory)} of memory; ask for less, or allow more")
    raise CrawlDirectoryError(f"the triples cannot be read: {last or f'status {status}'}")
