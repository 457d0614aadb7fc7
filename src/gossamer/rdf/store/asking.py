"""Questions to a copy of a triple store, each answered in a process of its own with limits of time and memory.

Place in the flow: `gossamer sparql` and :mod:`serving` ask here. :mod:`answering` is what runs in the process.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec

from gossamer.engine.sheet import show_bytes, show_seconds
from gossamer.engine.worker import Use
from gossamer.engine.workers import WorkerFailed, working
from gossamer.query.contract import check_triples
from gossamer.query.following import feed_all, feeds_of
from gossamer.rdf.store.answering import StoreQuestion
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
    use = Use(
        "gossamer.rdf.store.answering:answer_sparql", niceness=5, memory=limits.memory, seconds=int(limits.seconds) + 2
    )
    try:
        async with asyncio.timeout(limits.seconds), working(use) as worker:
            await worker.put(StoreQuestion(str(store), question))
            await begin((await worker.part() or b"").decode())
            while piece := await worker.part():
                await take(piece)
    except TimeoutError:
        raise _late(limits) from None
    except WorkerFailed as failed:
        if failed.reason == "time":
            raise _late(limits) from None
        if failed.reason == "memory":
            raise TooMuch(
                f"the answer wants more than {show_bytes(limits.memory)} of memory; ask for less, or allow more"
            ) from None
        if failed.exit_code == UsageError.exit_code:
            raise UsageError(str(failed)) from None
        raise CrawlDirectoryError(str(failed)) from None


def _late(limits: QuestionLimits) -> TooMuch:
    return TooMuch(f"the query got no answer within {show_seconds(limits.seconds)}; ask for less, or give it more time")
