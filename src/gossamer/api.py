"""The Python API: a crawl as an async iterator of pages, with the same option names as the command line.

::

    async for page in gossamer.crawl("https://example.org/", depth=2):
        print(page.url, page.status, page.title)

It stands where the command line stands, above assembly: it makes the same crawl and reads the same records.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gossamer.assembly.catalog import catalog as shipped_catalog
from gossamer.assembly.compiling import find_wiring, shipped
from gossamer.assembly.crawl import Crawl
from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.summary import Summary
from gossamer.assembly.tuning import loop_factory
from gossamer.flow.catalog import Catalog
from gossamer.flow.component import Consumer
from gossamer.flow.ports import In
from gossamer.flow.sheet import NoSettings, build
from gossamer.flow.unit import Provider
from gossamer.flow.wiring import ProviderPlan, Wiring
from gossamer.model.orders import Order
from gossamer.model.visit import Found, Item, Record
from gossamer.reading.document import Document
from gossamer.reading.page import Page
from gossamer.stores.scratch import scratch

if TYPE_CHECKING:
    from gossamer.assembly.reprocess import Reprocessed

ProcessorFunction = Callable[[Document], Iterable[Found | Item | Order] | None]
P = TypeVar("P", bound=ProcessorFunction)

#: Pages that wait for the reader of the iterator; when it is slow, the crawl slows down with it.
READ_AHEAD = 64

#: The component that hands pages to the program.
READER = "program"

_registered: list[tuple[tuple[str, ...], ProcessorFunction]] = []


def processor(*mimes: str) -> Callable[[P], P]:
    """Register a function as processor of these media types, for every crawl that this program starts from now on.

    The function takes a :class:`~gossamer.reading.document.Document` and yields :class:`Item` or :class:`Found`,
    and :class:`Block` or :class:`Delay` where the wiring takes orders (docs/documents.md).
    """

    def register(function: P) -> P:
        _registered.append((mimes, function))
        return function

    return register


@contextlib.contextmanager
def own_processors() -> Iterator[None]:
    """Begin without registered processors, and forget at the end of the block those that were registered in it."""
    before, _registered[:] = _registered[:], []
    try:
        yield
    finally:
        _registered[:] = before


class CrawlRun:
    """A crawl being read: iterate over its pages; afterwards `summary` says how it ended."""

    def __init__(self, seeds: Iterable[str], options: Mapping[str, Any]) -> None:
        self._seeds = [seeds] if isinstance(seeds, str) else list(seeds)
        self._options = dict(options)
        self.summary: Summary | None = None

    def __aiter__(self) -> AsyncIterator[Page]:
        return self._pages()

    async def _pages(self) -> AsyncIterator[Page]:
        queue: asyncio.Queue[Page | None] = asyncio.Queue(READ_AHEAD)
        with self._workspace() as options:
            job = _make_crawl(self._seeds, options, queue, keeps=bool(self._options.get("output")))
            task = asyncio.create_task(_run_and_close(job, queue))
            try:
                while (page := await queue.get()) is not None:
                    yield page
                self.summary = await task
            finally:
                if not task.done():
                    job.stop()
                    await _drained(task, queue)

    @contextlib.contextmanager
    def _workspace(self) -> Iterator[dict[str, Any]]:
        """Without `output` nothing is kept: the log goes to a folder that is removed with the crawl."""
        if self._options.get("output"):
            yield self._options
            return
        with scratch() as folder:
            yield {"no_warc": True, **self._options, "output": str(Path(folder) / "crawl")}


async def _run_and_close(job: Crawl, queue: asyncio.Queue[Page | None]) -> Summary:
    try:
        return await job.run()
    finally:
        await queue.put(None)


async def _drained(task: "asyncio.Task[Summary]", queue: asyncio.Queue[Page | None]) -> None:
    """The reader has left: let the crawl finish what is in flight, and read on so that it can."""
    while not task.done():
        get = asyncio.ensure_future(queue.get())
        await asyncio.wait({task, get}, return_when=asyncio.FIRST_COMPLETED)
        get.cancel()
    await asyncio.gather(task, return_exceptions=True)


def crawl(seeds: str | Iterable[str], **options: Any) -> CrawlRun:
    """Crawl from `seeds`; iterate over the result with `async for`.

    Args:
        seeds: one URL or several.
        options: those of the command line, with underscores; `wiring` takes a file name; `output` keeps archive and log.
    """
    return CrawlRun([seeds] if isinstance(seeds, str) else seeds, options)


def crawl_sync(seeds: str | Iterable[str], **options: Any) -> Iterator[Page]:
    """As :func:`crawl`, for callers without an event loop: a plain iterator of pages."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        pages = aiter(crawl(seeds, **options))
        try:
            while True:
                try:
                    yield runner.run(_next(pages))
                except StopAsyncIteration:
                    return
        finally:
            runner.run(_closed(pages))


async def _next(pages: AsyncIterator[Page]) -> Page:
    return await anext(pages)


async def _closed(pages: AsyncIterator[Page]) -> None:
    close = getattr(pages, "aclose", None)
    if close is not None:
        await close()


def _make_crawl(seeds: list[str], options: dict[str, Any], queue: asyncio.Queue[Page | None], *, keeps: bool) -> Crawl:
    named = options.pop("wiring", None)
    wiring = find_wiring(named) if named else shipped("default")
    catalog = shipped_catalog()
    catalog.add(READER, _reader(queue))
    wiring = _with_registered(wiring, catalog)
    chosen = build(CrawlOptions, options)
    return Crawl(seeds, chosen, wiring=wiring, catalog=catalog, tables=keeps, subscribers=[READER])


async def reprocess(directory: str, *, wiring: str = "") -> "Reprocessed":
    """Run processors over the stored archive of a crawl, without a request, and replace what its tables say.

    Those of the crawl's wiring run, or of `wiring` (a file name), and those that this program registered.
    """
    from gossamer.assembly.reprocess import crawl_wiring
    from gossamer.assembly.reprocess import reprocess as prepare

    catalog = shipped_catalog()
    plan = find_wiring(wiring) if wiring else crawl_wiring(directory)
    return await prepare(directory, wiring=_with_registered(plan, catalog), catalog=catalog).run()


def _reader(queue: asyncio.Queue[Page | None]) -> type[Consumer[NoSettings]]:
    """A subscriber of records: hands pages to the iterator."""

    class Reader(Consumer[NoSettings]):
        """Hands committed pages to the program that iterates over the crawl."""

        records: In[Record]

        async def consume(self, record: Record) -> None:
            if record.visit.is_page:
                await queue.put(Page(record))

    return Reader


def _with_registered(wiring: Wiring, catalog: Catalog) -> Wiring:
    """The wiring with the program's own processors behind those that it names."""
    import msgspec

    plan = wiring.components.get("process")
    if not _registered or plan is None:
        return wiring
    providers = dict(wiring.providers)
    table: dict[str, list[str]] = {}
    bound = plan.providers.get("processors", {})
    for mime, names in bound.items() if isinstance(bound, dict) else ():
        table[mime] = [names] if isinstance(names, str) else list(names)
    for number, (mimes, function) in enumerate(_registered, 1):
        name = f"{function.__name__}-{number}"
        catalog.add(name, _function_provider(function))
        providers[name] = ProviderPlan(use=name)
        for mime in mimes:
            table.setdefault(mime, []).append(name)
    plan = msgspec.structs.replace(plan, providers={**plan.providers, "processors": table})
    return msgspec.structs.replace(wiring, providers=providers, components={**wiring.components, "process": plan})


def _function_provider(function: ProcessorFunction) -> type[Provider[Any]]:
    class FunctionProcessor(Provider[Any]):
        """A processor made from a function."""

        def process(self, document: Document) -> Iterable[Found | Item | Order]:
            return function(document) or ()

    return FunctionProcessor
