"""What follows a crawl: files of items (`--items FILE`), its triple store (`--rdf`), a triple store elsewhere, the search index
(`--index`), and databases of the user's own (`--sinks FILE`).

A worker of its own feeds each from the committed rows (`gossamer.analysis.following`).

Place in the flow: :mod:`crawl` registers what is asked for when the directory is made, starts the processes when the crawl begins,
and ends them when everything is committed. A crawl that goes on goes on with what followed it.
"""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from gossamer.crawls.item_files import ItemFiles
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.worker import Use
from gossamer.engine.workers import Worker, WorkerFailed
from gossamer.storage.tables.contract import FollowerNote, FollowerOrder
from gossamer.storage.tables.places import (
    ENDPOINTS,
    FOLLOWING_INDEX,
    ITEM_FILE_NOTES,
    PACKAGE_FOLLOWERS,
    SINKS_FILE,
    TRIPLES,
    has_rows,
)
from gossamer.values.errors import UsageError

#: What follows a crawl, by the name of its follower: where it shows that the crawl has it, and how it is called.
_PLACES = {
    "items": (ITEM_FILE_NOTES, "items could not be written to a file"),
    "triples": (TRIPLES, "the triple store is not complete"),
    "endpoints": (ENDPOINTS, "the triple store elsewhere is not complete"),
    "index": (FOLLOWING_INDEX, "the index is not complete"),
    "packages": (PACKAGE_FOLLOWERS, "data that packages derive from the crawl is not complete"),
}

#: What has nothing to do before the table `triples` has a row, by the name of its follower: where notes show that it ever had
#: something to do. On most of the web `--rdf` finds nothing, and a process that waits for it in vain costs 0.2 s of CPU.
_NEED_TRIPLES = {"triples": f"{TRIPLES}/*.sqlite", "endpoints": f"{ENDPOINTS}/*/*.sqlite"}

#: Feeds one of them beside a running crawl, to which it gives way, or when the crawl is at rest.
_LATER = Use("gossamer.analysis.following:follow_crawl")
_BESIDE = msgspec.structs.replace(_LATER, niceness=10)

_notes = msgspec.msgpack.Decoder(list[FollowerNote])

#: Seconds between two looks for the first row.
_INTERVAL = 1.0


class Following:
    """Everything that follows the crawl in one directory."""

    def __init__(
        self,
        directory: Path,
        options: CrawlOptions,
        report: Callable[[str], object],
        *,
        remark: Callable[[str], object] | None = None,
        triples: bool = False,
    ) -> None:
        """Name what is to follow, besides what the crawl has.

        Args:
            directory: the crawl directory.
            options: `items` and the options that begin so, `triple_store`, `index` and `sinks`.
            report: takes what goes wrong: something has not got every row.
            remark: takes what else a person has to know of what has got every row; `report` does unless told.
            triples: the crawl keeps triples, so it has a store of them.

        Raises:
            UsageError: the name of a file does not say how it is to be written, or the URL of a triple store is none.
        """
        if options.triple_store:
            from gossamer.rdf.store.endpoint import check_endpoint  # few crawls feed one

            check_endpoint(options.triple_store)
            if not triples:
                raise UsageError("--triple-store is for a crawl that keeps triples; add --rdf")
        self._directory = directory
        self._report = report
        self._remark = remark or report
        self._files = ItemFiles(directory, options)
        self._has_triples = triples
        self._endpoint = options.triple_store
        self._has_index = options.index
        self._sinks = Path(options.sinks) if options.sinks else None
        self._failures: dict[str, str] = {}
        self._workers: dict[str, Worker] = {}
        self._idle: list[str] = []
        """Those that are registered and have nothing to do yet."""
        self._watch: asyncio.Task[None] | None = None
        self._is_over = asyncio.Event()

    def check(self, *, overwrite: bool) -> None:
        """Refuse to write over a file that this crawl did not make, and a bad file of sinks. Touches nothing.

        Raises:
            UsageError: there is such a file, or no folder for it.
        """
        if self._sinks is not None:
            from gossamer.query.schema import tables_of  # few crawls have databases
            from gossamer.sinks.mapping import read_sinks

            read_sinks(self._sinks, tables_of(self._directory))
        self._files.check(overwrite=overwrite)

    def register(self) -> None:
        """Note in the directory what follows the crawl from now on, so that every later run feeds it.

        Raises:
            UsageError: a file of items cannot be written, or that of the sinks cannot be read.
            OSError: it cannot be noted.
        """
        self._files.register()
        if self._has_triples:
            (self._directory / TRIPLES).mkdir(exist_ok=True)
        if self._endpoint:
            from gossamer.rdf.store.endpoint import register_endpoint  # few crawls feed one

            register_endpoint(self._directory, self._endpoint)
        if self._has_index:
            (self._directory / FOLLOWING_INDEX).touch()
        if self._sinks is not None:
            _copy(self._sinks, self._directory / SINKS_FILE)

    async def start(self, *, once: bool = False) -> None:
        """Feed what is registered from now on, or once. A follower without work starts when it has some."""
        self._failures = _followers(self._directory)
        self._idle = list(self._failures)
        await self._start_busy(once=once)
        if self._idle:
            self._watch = asyncio.create_task(self._watch_for_rows(once=once))

    async def _start_busy(self, *, once: bool) -> None:
        """Start what has something to do."""
        for name in list(self._idle):
            notes = _NEED_TRIPLES.get(name)
            if notes is None or any(self._directory.glob(notes)) or has_rows(self._directory, TRIPLES):
                self._idle.remove(name)
                try:
                    self._workers[name] = worker = await Worker.start(_LATER if once else _BESIDE)
                    await worker.put(FollowerOrder(str(self._directory), name, once))
                except OSError as error:  # no process, no memory, no file to be had: the crawl has to go on
                    self._report(self._failure(name, error.strerror or str(error)))

    async def _watch_for_rows(self, *, once: bool) -> None:
        is_over = False
        while self._idle and not is_over:
            with contextlib.suppress(TimeoutError):
                is_over = await asyncio.wait_for(self._is_over.wait(), _INTERVAL)
            await self._start_busy(once=once)

    async def finish(self) -> None:
        """Everything is committed: wait until all have it. Safe to call when nothing was started."""
        self._is_over.set()  # which has the last look for rows taken at once
        if self._watch is not None:
            await self._watch
            self._watch = None
        workers, self._workers = self._workers, {}
        for worker in workers.values():
            worker.close_input()
        for name, worker in workers.items():
            try:
                for note in _notes.decode(await worker.answer()):
                    (self._report if note.is_lacking else self._remark)(note.text)
            except WorkerFailed as failed:
                self._report(self._failure(name, str(failed)[:300]))
            finally:
                await worker.end()

    def _failure(self, name: str, why: str) -> str:
        return f"{self._failures[name]} ({why}); the next run goes on with it"


def _followers(directory: Path) -> dict[str, str]:
    """What follows the crawl in a directory: the name of its follower -> what is told where that fails.

    Raises:
        UsageError: the file of the sinks cannot be read.
    """
    found = {name: failure for name, (place, failure) in _PLACES.items() if (directory / place).exists()}
    if (directory / SINKS_FILE).exists():
        from gossamer.query.schema import tables_of  # few crawls have databases
        from gossamer.sinks.mapping import read_sinks

        for name in read_sinks(directory / SINKS_FILE, tables_of(directory)).sinks:
            found[f"sink-{name}"] = f"the database of sink {name} is not complete"
    return found


def _copy(source: Path, target: Path) -> None:
    """The file as it is, whole or not at all; only its owner may read it, since it tells where databases are."""
    fresh = target.with_name(f"{target.name}.new")
    fresh.touch(mode=0o600)
    fresh.write_bytes(source.read_bytes())
    fresh.replace(target)
