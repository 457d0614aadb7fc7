"""A crawl as an iterator, with the option names of the command line.

::

    async for page in gossamer.crawl("https://example.org/", depth=2):
        print(page.url, page.status, page.title)

Place in the flow: beside the command line, above assembly. It makes the same crawl; its reader is a subscriber of it.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack

import msgspec

from gossamer.agents.crawl import SupervisedCrawl
from gossamer.api.keywords import CrawlKeywords
from gossamer.api.processors import with_registered
from gossamer.crawls.catalog import catalog as shipped_catalog
from gossamer.crawls.compiling import find_wiring, shipped
from gossamer.crawls.directory import kept_wiring
from gossamer.crawls.machine import collecting_seldom, coroutine_runner
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.documents.page import Page
from gossamer.engine.component import Consumer
from gossamer.engine.ends import In
from gossamer.engine.files import scratch
from gossamer.engine.sheet import NoSettings, build
from gossamer.spiders.running import SpiderHandlers
from gossamer.spiders.spider_stage import SPIDER, asked_of, with_log_ins, with_sessions, with_spider
from gossamer.values.errors import GossamerError, UsageError
from gossamer.values.outcome import DOCUMENTS
from gossamer.values.request import Request
from gossamer.values.visit import Record

#: Pages that wait for the reader of the iterator; when it is slow, the crawl slows down with it.
READ_AHEAD = 64

#: The component that hands pages to the program.
READER = "program"

#: The visits that are yielded: successful HTML documents; documents of every type; every visit, whatever came of it.
Yields = Literal["pages", "documents", "outcomes"]

#: The log of a crawl's messages: those on which a person has to act, errors of processors among them.
LOG = logging.getLogger("gossamer")

T = TypeVar("T")


class CrawlFailed(GossamerError):
    """The crawl got no document at all. The message gives the reason for each seed."""

    exit_code = 4


class Made(msgspec.Struct, frozen=True):
    seeds: tuple[str, ...]
    options: Mapping[str, Any]
    spider: type[SpiderHandlers] | None = None
    """The handlers."""
    file: str = ""
    """That they stand in."""
    begun: tuple[str | Request, ...] = ()
    """Its seeds with what is asked of them."""
    keeps: bool = True
    """Its tables are made at the end."""


def make_crawl(
    made: Made,
    reader: type[Consumer[NoSettings]] | None = None,
    *,
    report: Callable[[str], None] = LOG.warning,
    **more: Any,
) -> SupervisedCrawl:
    """A crawl with the program's processors, its spider and a subscriber of its records; `more` are arguments of
    :class:`~gossamer.agents.crawl.SupervisedCrawl`. Raises GossamerError: the crawl cannot be made; the message says why."""
    options = dict(made.options)
    if not isinstance(options.get("item_columns", ()), str | list | tuple):
        from gossamer.query.item_files import columns_of  # few crawls have item files

        options["item_columns"] = columns_of(options["item_columns"])
    catalog = shipped_catalog()
    if named := options.pop("wiring", None):
        wiring = find_wiring(named)
    else:  # a crawl that goes on has one
        wiring = kept_wiring(options.get("output", "")) if options.get("resume") else shipped("default")
    wiring = with_registered(wiring, catalog)
    if made.spider is not None:
        catalog.add(SPIDER, made.spider)
        wiring = with_spider(wiring, made.file)
        if len(made.spider.logins):
            wiring = with_log_ins(wiring)
        if made.spider.plan_of_sessions.count:
            wiring = with_sessions(wiring)
    if reader is not None:
        catalog.add(READER, reader)
    job = SupervisedCrawl(
        made.seeds,
        build(all_options(), options),
        wiring=wiring,
        catalog=catalog,
        tables=made.keeps,
        subscribers=() if reader is None else (READER,),
        report=report,
        **more,
    )
    if made.spider is not None and any(isinstance(seed, Request) for seed in made.begun):
        made.spider.asked = asked_of(made.begun, job.kept)
    return job


class CrawlRun:
    """A running crawl: iterate over it to get its pages. :attr:`summary` shows its state, and after the end its result.

    Leaving the loop early ends the crawl. `async with` and `await run.close()` wait for this end.
    """

    def __init__(self, made: Made, yields: Yields) -> None:
        self._made = made
        self._yields = yields
        self._job: SupervisedCrawl | None = None
        self._summary: Summary | None = None
        self._pages: AsyncIterator[Page] | None = None

    @property
    def summary(self) -> Summary | None:
        """The result of the crawl, or its present state while it runs. None before it has begun."""
        if self._summary is not None or self._job is None:
            return self._summary
        return self._job.summary

    def __aiter__(self) -> AsyncIterator[Page]:
        if self._pages is None:
            self._pages = self._read()
        return self._pages

    async def __aenter__(self) -> "CrawlRun":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the crawl if it runs, after the requests in flight have ended."""
        close = getattr(self._pages, "aclose", None)
        if close is not None:
            await close()

    async def _read(self) -> AsyncIterator[Page]:
        queue: asyncio.Queue[Page | None] = asyncio.Queue(READ_AHEAD)
        with workspace(self._made) as made, collecting_seldom():
            job = self._job = make_crawl(made, _reader(queue, self._yields))
            task = asyncio.create_task(_run_and_close(job, queue))
            try:
                while (page := await queue.get()) is not None:
                    yield page
                self._summary = await task
            finally:
                if not task.done():
                    # The reader has left: the crawl finishes the requests in flight, and this reads on so that it can.
                    job.stop()
                    while not task.done():
                        get = asyncio.ensure_future(queue.get())
                        await asyncio.wait({task, get}, return_when=asyncio.FIRST_COMPLETED)
                        get.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                if not task.cancelled() and task.exception() is None:
                    self._summary = task.result()
        summary = self._summary
        if summary.state == "incomplete":
            if not summary.unique_documents and not summary.pages:
                raise CrawlFailed(f"nothing came; {'; '.join(job.last_lines) or 'no seed was fetched'}")
            LOG.warning("the crawl is incomplete: %s URLs are left to be tried again", summary.queued)


@contextlib.contextmanager
def workspace(made: Made) -> Iterator[Made]:
    """Give the crawl a folder. Without `output` the folder is temporary, and is removed at the end."""
    if made.options.get("output"):
        yield made
        return
    with scratch() as folder:
        options = {"no_warc": True, **made.options, "output": str(Path(folder) / "crawl")}
        yield msgspec.structs.replace(made, options=options, keeps=False)


async def _run_and_close(job: SupervisedCrawl, queue: asyncio.Queue[Page | None]) -> Summary:
    try:
        return await job.run()
    finally:
        await queue.put(None)


def _reader(queue: asyncio.Queue[Page | None], yields: Yields) -> type[Consumer[NoSettings]]:
    """A subscriber of records: hands on what was asked for."""

    class ProgramReader(Consumer[NoSettings]):
        """Hands committed pages to the program that iterates over the crawl."""

        records: In[Record]

        async def consume(self, record: Record) -> None:
            visit = record.visit
            if yields == "pages":
                is_asked_for = visit.is_page
            else:
                is_asked_for = not (visit.is_robots or visit.task.is_want) and (
                    yields == "outcomes" or visit.response.outcome in DOCUMENTS
                )
            if is_asked_for:
                await queue.put(Page(record))

    return ProgramReader


def crawl(
    seeds: str | Iterable[str], *, yields: Yields = "pages", wiring: str = "", **options: Unpack[CrawlKeywords]
) -> CrawlRun:
    """Crawl from `seeds`; iterate over the result with `async for`.

    Args:
        seeds: one URL or several.
        yields: `pages` yields successful HTML documents, `documents` those of every type, `outcomes` every visit, even
            failed ones.
        wiring: a file with a wiring, or the name of a shipped one.
        options: the options of the command line, with underscores; with `output`, archive and log are kept.

    Raises:
        CrawlFailed: at the end of the iteration, if no seed brought anything.
    """
    if yields not in ("pages", "documents", "outcomes"):
        raise UsageError(f"yields={yields!r}: a crawl yields 'pages', 'documents' or 'outcomes'")
    given: dict[str, Any] = {**options, **({"wiring": wiring} if wiring else {})}
    return CrawlRun(Made((seeds,) if isinstance(seeds, str) else tuple(seeds), given), yields)


class SyncCrawlRun(Iterator[Page]):
    """A running crawl for a caller without an event loop, or whose loop is busy, as in a notebook.

    Leaving a `for` loop early ends the crawl; afterwards :attr:`summary` holds its result.
    """

    def __init__(self, run: CrawlRun) -> None:
        self._run = run
        self._loop: LoopOfOwn | None = None
        self._is_closed = False

    @property
    def summary(self) -> Summary | None:
        """The result of the crawl, or its present state while it runs."""
        return self._run.summary

    def __iter__(self) -> Iterator[Page]:
        try:
            while (page := next(self, None)) is not None:
                yield page
        finally:
            self.close()

    def __next__(self) -> Page:
        if self._is_closed:
            raise StopIteration
        if self._loop is None:
            self._loop = LoopOfOwn()
        try:
            return self._loop.run(_next(aiter(self._run)))
        except StopAsyncIteration:
            self.close()
            raise StopIteration from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the crawl, if it runs, and wait for its end."""
        loop, self._loop, self._is_closed = self._loop, None, True
        if loop is not None:
            with contextlib.closing(loop):
                loop.run(self._run.close())

    def __del__(self) -> None:
        if self._loop is not None:
            self.close()


def crawl_sync(
    seeds: str | Iterable[str], *, yields: Yields = "pages", wiring: str = "", **options: Unpack[CrawlKeywords]
) -> SyncCrawlRun:
    """Like :func:`crawl`, but returns a plain iterator of pages, for callers without `async`. Works in a notebook
    too."""
    return SyncCrawlRun(crawl(seeds, yields=yields, wiring=wiring, **options))


class LoopOfOwn:
    """An event loop for a blocking caller: in this thread, or in a thread of its own if a loop already runs here."""

    def __init__(self) -> None:
        self._runner = coroutine_runner()
        self._thread: threading.Thread | None = None
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        begun = threading.Event()

        def serve() -> None:
            with self._runner as runner:
                runner.get_loop().call_soon(begun.set)
                runner.get_loop().run_forever()

        self._thread = threading.Thread(target=serve, name="gossamer crawl", daemon=True)
        self._thread.start()
        begun.wait()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, and return what it returns."""
        if self._thread is None:
            return self._runner.run(work)
        return asyncio.run_coroutine_threadsafe(work, self._runner.get_loop()).result()

    def close(self) -> None:
        if self._thread is None:
            self._runner.close()
            return
        self._runner.get_loop().call_soon_threadsafe(self._runner.get_loop().stop)
        self._thread.join()


async def _next(pages: AsyncIterator[Page]) -> Page:
    return await anext(pages)
