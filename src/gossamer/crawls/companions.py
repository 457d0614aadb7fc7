"""Everything that is made of a crawl beside its run: tables, the followers of its rows, the folder of `--mirror DIR`, and what
subjects do.

Place in the flow: a crawl, of one agent or of several, has one :class:`Companions`. It checks them before it touches anything,
registers them when it makes its directory, starts them with its work, gives them the rest when everything is committed, and
finishes them when its own files are closed. Workers do the work, so that a crawl holds neither parser nor pages for it; one that
fails or is killed loses nothing: rows stay in their logs, where `gossamer query` finds them, and the next run goes on. Tables come
from closed row logs, now and then and at the end (:class:`TableMaker`); few rows at the end need no worker.
"""

import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec

from gossamer.crawls.control.wire import ControlRequest
from gossamer.crawls.figures import UnitsAtWork
from gossamer.crawls.followers import Following
from gossamer.crawls.options import CrawlOptions
from gossamer.crawls.plan import CrawlPlan
from gossamer.engine.errors import refusing
from gossamer.engine.files import replace_file
from gossamer.engine.processes import give_back_memory
from gossamer.engine.running import RunningGraph
from gossamer.engine.subjects import found_at, subjects
from gossamer.engine.unit import Clock, SystemClock, meanwhile
from gossamer.engine.wiring import Wiring
from gossamer.engine.worker import Use
from gossamer.engine.workers import Worker, WorkerFailed, answered, answered_here
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.tables.log import TableLog
from gossamer.storage.tables.manifest import TablesOrder, failure_of, note_failure, unmade
from gossamer.storage.tables.places import closed_segments, segments
from gossamer.storage.tables.row_tables import HOST_NOTES, host_row
from gossamer.values.errors import UsageError
from gossamer.values.hosts import forget_remembered

#: Where a crawl notes its folder.
_NOTE = "state/mirror.json"

#: The file by which a mirror is known.
MIRROR_MARK = ".gossamer-mirror.json"

#: Files that a mirror holds beside its documents.
_OWN = frozenset((MIRROR_MARK, "index.html"))


class MirrorMark(msgspec.Struct, frozen=True):
    """The files of a mirror, so that nothing else in the folder is ever removed."""

    crawl: str
    """Absolute path of the crawl directory that it was made from."""
    files: tuple[str, ...]


class MirrorNote(msgspec.Struct, frozen=True):
    """Which folder a crawl writes."""

    folder: str
    """Absolute path."""


def read_note(directory: Path) -> Path | None:
    """The folder that a crawl writes when it stops; None where it has none."""
    try:
        return Path(msgspec.json.decode((directory / _NOTE).read_bytes(), type=MirrorNote).folder)
    except FileNotFoundError:
        return None


def check_folder(folder: Path, directory: Path) -> None:
    """Refuse a folder that holds anything but a mirror. Touches nothing. Raises UsageError: it does; says what."""
    inside, outside = folder.absolute(), directory.absolute()
    if inside == outside or inside in outside.parents or outside in inside.parents:
        raise UsageError(f"{folder}: the mirror and the crawl directory cannot lie in each other; name another folder")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{folder} is not a folder; name another one")
    if not folder.exists() or not any(folder.iterdir()):
        return
    try:
        mark = msgspec.json.decode((folder / MIRROR_MARK).read_bytes(), type=MirrorMark)
    except (OSError, ValueError):
        raise UsageError(f"{folder} is not empty and holds no mirror; name another folder") from None
    known = _OWN | set(mark.files)
    strange = (path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())
    other = next((path for path in strange if path.relative_to(folder).as_posix() not in known), None)
    if other is not None:
        raise UsageError(f"{other} is not part of the mirror in {folder}; move it away, or name another folder")


class MirrorFolder:
    """The mirror of one crawl."""

    def __init__(self, directory: Path, options: CrawlOptions, report: Callable[[str], object]) -> None:
        """Name the folder, and touch nothing. Raises UsageError: the crawl keeps no archive to write it from, or the folder holds
        anything but a mirror."""
        self._directory = directory
        self._folder = Path(options.mirror) if options.mirror else None
        self._report = report
        if self._folder is not None:
            if options.no_warc:
                raise UsageError("--mirror writes its files from the archive; leave out --no-warc")
            check_folder(self._folder, directory)

    def register(self) -> None:
        """Note the folder: a crawl that goes on writes it again when it stops. Raises UsageError: nothing can be written in its
        place; OSError: it cannot be noted."""
        if self._folder is not None:
            above = next(path for path in self._folder.absolute().parents if path.exists())
            with refusing(
                UsageError, f"--mirror: {self._folder} cannot be written", "; name a folder where you may write"
            ):
                Path(tempfile.mkdtemp(prefix=f".{self._folder.name[:99]}.", dir=above)).rmdir()
            replace_file(self._directory / _NOTE, msgspec.json.encode(MirrorNote(str(self._folder.absolute()))))

    async def finish(self) -> str:
        """Write the folder, if the crawl has one. Reports what became of it, and returns why it could not be written."""
        if read_note(self._directory) is None:
            return ""
        use = Use("gossamer.analysis.mirror:write_noted", niceness=10)
        try:
            for line in msgspec.msgpack.decode(await answered(use, str(self._directory)), type=list[str]):
                self._report(line)
        except WorkerFailed as failed:
            why = f"the mirror could not be written ({str(failed)[:300]})"
            self._report(f"{why}; gossamer export --to folder does it later")
            return why
        return ""


def write_hosts(running: RunningGraph) -> None:
    """Write down what the ledgers know of hosts, for the table of that name. Call it when everything is committed."""
    logs = [provider for provider in running.providers.values() if isinstance(provider, TableLog)]
    for ledger in running.providers.values():
        if isinstance(ledger, RocksLedger) and logs:
            log, now = logs[0], ledger.clock.now()
            log.add(HOST_NOTES.name, (host_row(state, now) for state in ledger.hosts()), ledger)


#: Seconds between two looks for closed row logs. A segment takes minutes to fill, and a question meanwhile reads logs.
INTERVAL = 60.0

#: Steps by which the process gives way to the crawl beside it.
_NICENESS = 10

#: Bytes of row logs, those of some 300 pages, up to which the crawl's own process makes the tables at its end. Those of one page
#: take 0.12 s of CPU there, and 0.38 s in a process that has to start first.
FEW_ROWS = 512 << 10


class TableMaker:
    """Makes the tables of one crawl directory."""

    def __init__(
        self, directory: Path, report: Callable[[str], None], clock: Clock | None = None, *, few: int = FEW_ROWS
    ) -> None:
        """`few`: bytes of row logs that need no process."""
        self._directory = directory
        self._report = report
        self._clock = clock or SystemClock()
        self._few = few
        self._worker: Worker | None = None
        self._is_aborted = False

    async def watch(self) -> None:
        """Make tables of what is closed, now and then, until it is cancelled."""
        while True:
            await self._clock.sleep(INTERVAL)
            if closed_segments(self._directory):
                await self.make()

    async def finish(self) -> str:
        """The crawl has ended and everything is committed: make all tables and the index. Returns why that failed, and notes it."""
        if self._is_aborted or not (segments(self._directory) or failure_of(self._directory)):
            return ""
        why = await self.make(ended=True)
        with contextlib.suppress(OSError):  # a disk that takes no note takes no table: the next run tries again
            note_failure(self._directory, why)
        return why

    def abort(self) -> None:
        """Let go of what is being made: rows stay in their logs. Safe to call at any time."""
        self._is_aborted = True
        if self._worker is not None:
            self._worker.kill()

    async def make(self, *, ended: bool = False) -> str:
        """Make tables of what is closed, or of everything. Reports a failure, and returns why."""
        try:
            told = await self._made(TablesOrder(str(self._directory), ended))
        except WorkerFailed as failed:
            if self._is_aborted:
                self._report("tables and index are not complete; the next run, and `gossamer query`, go on with them")
                return ""
            why = str(failed)[:300]
            self._report(f"{unmade(why)}; `gossamer query` reads them, and the next run tries again")
            return why
        if told:
            self._report(told)
        return ""

    async def _made(self, order: TablesOrder) -> str:
        """Make the tables; returns a line about them for a person, mostly empty. Raises WorkerFailed."""
        use = Use("gossamer.query.convert:make_tables", niceness=0 if order.ended else _NICENESS)
        if order.ended and sum(one.path.stat().st_size for one in segments(self._directory)) <= self._few:
            told = await answered_here(
                use, msgspec.structs.replace(order, waits=False)
            )  # a thread that waits cannot be ended
            if told is not None:
                return str(told)
        if order.ended:  # what the crawl remembers is of no more use, and the worker needs as much memory
            forget_remembered()
            give_back_memory()
        self._worker = worker = await Worker.start(use)
        try:
            await worker.put(order)
            return msgspec.msgpack.decode(await worker.answer(), type=str)
        finally:
            await worker.end()


class Beside:
    """The work of a subject beside a crawl, in the crawl's own process; an heir does some of it."""

    requests: Sequence[type[ControlRequest]] = ()
    """They can be asked of the crawl too."""

    def __init__(self, directory: Path, options: CrawlOptions, wiring: Wiring, report: Callable[[str], None]) -> None:
        """Check it, and touch nothing."""

    def register(self) -> None:
        """Note in a new crawl what every run has to know. Raises OSError: it cannot be written."""

    async def begin(self, units: UnitsAtWork) -> None:
        """The units are up."""

    def working(self, units: UnitsAtWork) -> AbstractAsyncContextManager[None]:
        return contextlib.nullcontext()

    async def end(self, units: UnitsAtWork) -> None:
        """They have done their work, and are up."""


def works_beside(directory: Path, options: CrawlOptions, wiring: Wiring, report: Callable[[str], None]) -> list[Beside]:
    """The work of subjects beside a crawl of this wiring. Raises what :class:`Beside` raises when it is made."""
    used = {plan.use for plan in wiring.providers.values()}
    places = (place for one in subjects() for use, place in one.beside.items() if use in used)
    return [found_at(place)(directory, options, wiring, report) for place in places]


class Companions:
    """The processes beside one crawl."""

    def __init__(
        self, plan: CrawlPlan, options: CrawlOptions, report: Callable[[str], None], *, has_tables: bool
    ) -> None:
        """Check them. Touches nothing.

        Args:
            options: say what follows it, and where its mirror is.
            has_tables: make tables; without, rows stay in their logs, and no mirror is written.

        Raises:
            UsageError: the options do not fit, or a file or folder that is to be written belongs to another crawl or user.
        """
        self._tables = TableMaker(plan.directory, report) if has_tables else None
        self._following = Following(plan.directory, options, report, triples=plan.keeps_triples)
        self._following.check(overwrite=options.overwrite)
        self._mirror = MirrorFolder(plan.directory, options, report)

    @property
    def makes_tables(self) -> bool:
        """Whether rows become tables; without, :meth:`finish` does nothing."""
        return self._tables is not None

    def register(self) -> None:
        """Note them in the directory, for this run and every later one. Raises UsageError: what the options name cannot be read
        or written; OSError: they cannot be noted."""
        self._following.register()
        self._mirror.register()

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """While the block runs, its rows are followed, and become tables now and then."""
        await self._following.start()
        async with meanwhile(*([self._tables.watch()] if self._tables else ())):
            yield

    def abort(self) -> None:
        if self._tables is not None:
            self._tables.abort()

    async def feed_rest(self) -> None:
        """Everything is committed: wait until its followers have it. Safe to call when nothing was started."""
        await self._following.finish()

    async def finish(self) -> str:
        """Make the last tables, and write the mirror; returns why one of them could not be made, empty where they were."""
        if self._tables is None:
            return ""
        why = await self._tables.finish()
        return await self._mirror.finish() or why
