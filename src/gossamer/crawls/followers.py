"""Followers of a crawl: files of items (`--items FILE`), its triple store (`--rdf`), a triple store elsewhere, the search index
(`--index`), and databases of the user's own (`--sinks FILE`).

A worker of its own feeds each from the committed rows (`gossamer.query.following`).

Place in the flow: :mod:`crawl` registers what is asked for when the directory is made, starts the processes when the crawl begins,
and ends them when everything is committed. A crawl that goes on goes on with what followed it.
"""

import asyncio
import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gossamer.crawls.options import CrawlOptions
from gossamer.engine.errors import refusing
from gossamer.engine.files import replace_file
from gossamer.engine.worker import Use
from gossamer.engine.workers import Worker, WorkerFailed
from gossamer.storage.tables import places
from gossamer.storage.tables.contract import FollowerNote, FollowerOrder
from gossamer.values.errors import UsageError
from gossamer.values.patterns import lazy_pattern

if TYPE_CHECKING:
    from gossamer.query.item_files import ItemLayout

#: How an item file may end: that says how it is written.
FORMS = (".jsonl", ".csv", ".json", ".parquet", ".xlsx")

#: `KIND=FILE`. A file whose name looks so is written with its folder: `./a=b.csv`.
_OF_KIND = lazy_pattern(r"(?P<kind>[\w.:-]+)=(?P<file>.+)", re.DOTALL)


class ItemFiles:
    """The item files of one crawl directory."""

    def __init__(self, directory: Path, options: CrawlOptions) -> None:
        """Name files that items are written to, besides those that the crawl has. `options`: `items` and the options that begin
        so. Raises UsageError: the name of a file does not say how it is to be written, or two are the same file."""
        self._directory = directory
        self._files = dict(map(self._named, options.items))
        self._options = options
        if len({path.absolute() for path in self._files}) < len(options.items):
            raise UsageError(
                "--items names a file twice; give each file once, with --items KIND=FILE for one kind of items"
            )
        if not options.items and (options.item_columns or options.item_key or options.item_formulas == "keep"):
            raise UsageError("--item-columns, --item-key and --item-formulas need --items FILE; name a file")

    @staticmethod
    def _named(text: str) -> tuple[Path, str]:
        """A file, and the kind of items that it takes; empty for all."""
        of_kind = _OF_KIND.fullmatch(text)
        file, kind = (of_kind["file"], of_kind["kind"]) if of_kind else (text, "")
        if Path(file).suffix not in FORMS:
            raise UsageError(f"--items {text}: the name decides the format; let it end in {', '.join(FORMS)}")
        return Path(file), kind

    def _layout(self, kind: str) -> "ItemLayout":
        from gossamer.query.item_files import ItemLayout  # few crawls have item files

        options = self._options
        return ItemLayout(kind, options.item_columns, options.item_key, options.item_formulas == "keep")

    def check(self, *, overwrite: bool) -> None:
        """Refuse to write over a file that this crawl did not make. Touches nothing. Raises UsageError: there is such a file,
        or no folder for it."""
        for file, kind in self._files.items():
            if not file.absolute().parent.is_dir():
                raise UsageError(f"--items {file}: there is no directory {file.absolute().parent}")
            if file.is_dir():
                raise UsageError(f"--items {file} is a directory; name a file in it")
            if not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
                raise UsageError(f"--items {file} cannot be written: its permissions do not allow it")
            if not overwrite:
                known = None
                if (self._directory / places.ITEM_FILE_NOTES).is_dir():
                    from gossamer.query.item_files import known_layout  # few crawls have item files

                    known = known_layout(self._directory, file)
                if known is None and file.exists() and file.stat().st_size:  # an empty one may be what a kill left
                    raise UsageError(f"{file} exists; name another file with --items, or replace it with --overwrite")
                if known is not None and known != self._layout(kind):
                    raise UsageError(
                        f"--items {file}: this crawl writes it with another kind, --item-columns, --item-key or --item-formulas; "
                        "name another file"
                    )

    def register(self) -> None:
        """Note the files in the crawl's directory, so that they are written from now on. Raises UsageError: a file cannot be
        written."""
        for file, kind in self._files.items():
            from gossamer.query.item_files import register  # few crawls have item files

            with refusing(UsageError, f"--items {file} cannot be written"):
                register(self._directory, file, self._layout(kind))


#: Followers of a crawl by name: the place that shows that the crawl has one, and the words for its failure.
_PLACES = {
    "items": (places.ITEM_FILE_NOTES, "items could not be written to a file"),
    "triples": (places.TRIPLES, "the triple store is not complete"),
    "endpoints": (places.ENDPOINTS, "the triple store elsewhere is not complete"),
    "index": (places.FOLLOWING_INDEX, "the index is not complete"),
    "packages": (places.PACKAGE_FOLLOWERS, "data that packages derive from the crawl is not complete"),
}

#: Followers that have nothing to do before the table `triples` has a row, by name: where notes show that one ever had
#: something to do. On most of the web `--rdf` finds nothing, and a process that waits for it in vain costs 0.2 s of CPU.
_NEED_TRIPLES = {"triples": f"{places.TRIPLES}/*.sqlite", "endpoints": f"{places.ENDPOINTS}/*/*.sqlite"}

#: Feeds one of them beside a running crawl, to which it gives way, or when the crawl is at rest.
_LATER = Use("gossamer.query.following:follow_crawl")
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
        """Refuse to write over a file that this crawl did not make, and a bad file of sinks. Touches nothing. Raises
        UsageError: there is such a file, or no folder for it."""
        if self._sinks is not None:
            from gossamer.query.schema import tables_of  # few crawls have databases
            from gossamer.sinks.mapping import read_sinks

            read_sinks(self._sinks, tables_of(self._directory))
        self._files.check(overwrite=overwrite)

    def register(self) -> None:
        """Note in the directory what follows the crawl from now on, so that every later run feeds it. Raises UsageError: a file
        of items cannot be written, or that of the sinks cannot be read; OSError: it cannot be noted."""
        self._files.register()
        if self._has_triples:
            (self._directory / places.TRIPLES).mkdir(exist_ok=True)
        if self._endpoint:
            from gossamer.rdf.store.endpoint import register_endpoint  # few crawls feed one

            register_endpoint(self._directory, self._endpoint)
        if self._has_index:
            (self._directory / places.FOLLOWING_INDEX).touch()
        if self._sinks is not None:
            # It tells where databases are.
            replace_file(self._directory / places.SINKS_FILE, self._sinks.read_bytes(), mode=0o600)

    async def start(self, *, once: bool = False) -> None:
        """Feed what is registered from now on, or once. A follower without work starts when it has some."""
        found = {name: failure for name, (place, failure) in _PLACES.items() if (self._directory / place).exists()}
        if (self._directory / places.SINKS_FILE).exists():
            from gossamer.query.schema import tables_of  # few crawls have databases
            from gossamer.sinks.mapping import read_sinks

            for name in read_sinks(self._directory / places.SINKS_FILE, tables_of(self._directory)).sinks:
                found[f"sink-{name}"] = f"the database of sink {name} is not complete"
        self._failures = found
        self._idle = list(self._failures)
        await self._start_busy(once=once)
        if self._idle:
            self._watch = asyncio.create_task(self._watch_for_rows(once=once))

    async def _start_busy(self, *, once: bool) -> None:
        """Start what has something to do."""
        for name in list(self._idle):
            notes = _NEED_TRIPLES.get(name)
            if notes is None or any(self._directory.glob(notes)) or places.has_rows(self._directory, places.TRIPLES):
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
