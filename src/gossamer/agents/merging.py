"""Exchange files on their way into a crawl and out of it, and URLs that are owed again to an agent whose directory is lost.

Place in the flow: :class:`FileExchange` does it for a crawl at work; `gossamer merge` and `gossamer exchange` ask here for one
that may rest.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents.ring import RingDesignation, RingSheet
from gossamer.agents.url_exchange import UrlIntake
from gossamer.agents.wiring import OUTBOX, is_exchanging
from gossamer.crawls.builder import with_directory
from gossamer.crawls.catalog import catalog
from gossamer.crawls.companions import Beside
from gossamer.crawls.control.wire import Answered, ControlRequest, Done, Listed
from gossamer.crawls.directory import kept_wiring
from gossamer.crawls.figures import UnitsAtWork
from gossamer.crawls.options import CrawlOptions
from gossamer.engine.errors import refusing
from gossamer.engine.graph import ComponentNode, used_names
from gossamer.engine.planning import plan
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import show_count
from gossamer.engine.unit import meanwhile
from gossamer.engine.wiring import Wiring
from gossamer.storage.archive.contract import OrderTaker
from gossamer.storage.commit.commit_stage import Commit
from gossamer.storage.commit.queueing import CommitSheet
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.mailbox import sealed_files
from gossamer.storage.mailbox.exchange_files import IN, OUT, FileOutbox, WrittenFile
from gossamer.storage.mailbox.sealed_files import EXCHANGE_KEY, SUFFIX, ExchangeKey, ForAnother, UrlFile
from gossamer.storage.seen.contract import SeenSet
from gossamer.values.agents import agent_name, member, named
from gossamer.values.errors import DiskFull, UsageError
from gossamer.values.task import Arrived

# A file is proved whole before anything else happens to it: length, digest, seal, then each URL. Then it is copied into the crawl
# directory, and its URLs are committed; when all of them are, that is noted. A kill between these steps leaves a file that the
# next run merges. Files stay there, so that a crawl that goes back to a checkpoint merges those again that came after it. URLs of
# a sound file that cannot be kept are left out and counted; a file that is not sound any more goes aside.

#: URLs that one group takes: files are long, and each group costs a write of its own. Some milliseconds of the event loop.
_AT_ONCE = 2_000

#: Roles of the commit that say what becomes of a URL.
_INTAKE = ("ledger", "seen", "traversal", "prioritizer", "task_gates", "keepers")

#: Where files go that lay among those to be merged and cannot be.
REFUSED = "exchange/refused"

#: The message about a crawl that exchanges no files.
_NO_FILES = "this crawl exchanges no files; only a crawl that began with --exchange files does"


class Merged(msgspec.Struct, frozen=True):
    """The entries that files brought."""

    files: int = 0
    urls: int = 0
    new: int = 0
    """URLs that were not known here."""
    confirmed: int = 0
    """URLs of ours that others have merged."""
    refused: int = 0
    """URLs that cannot be kept."""

    @property
    def told(self) -> str:
        """In words for a person."""
        if not self.files:
            return "no file is left to merge: each sound one was merged before"
        words = f"{show_count(self.files, 'file')} merged: {show_count(self.urls, 'URL')}, {self.new:,} new"
        words += f", {self.refused:,} refused" if self.refused else ""
        return f"{words}; {show_count(self.confirmed, 'URL')} of ours confirmed" if self.confirmed else words


class MergeFiles(ControlRequest, frozen=True, tag="merge-files"):
    """Merge the exchange files that lie in the crawl directory."""

    async def act(self, crawl: Any) -> Answered:
        [exchange] = [one for one in crawl.beside if isinstance(one, FileExchange)]
        if exchange.is_over:
            return Done("the crawl is about to end; the files are kept, and merged when it goes on")
        return Done((await exchange.merge(crawl.units)).told)


class WriteFiles(ControlRequest, frozen=True, tag="write-files"):
    """Write what is owed to other agents into exchange files."""

    again: bool = False
    """Also what was written before, and was not said to be merged."""

    async def act(self, crawl: Any) -> Answered:
        [exchange] = [one for one in crawl.beside if isinstance(one, FileExchange)]
        with refusing(UsageError, "no exchange file can be written"):
            files = await exchange.write(crawl.units, again=self.again)
        return Listed(list(written_lines(files, crawl.directory)))


class FileExchange(Beside):
    """The files of one crawl at work; a crawl that exchanges none has none of this."""

    requests = (MergeFiles, WriteFiles)

    def __init__(self, directory: Path, options: CrawlOptions, wiring: Wiring, report: Callable[[str], object]) -> None:
        """Read the key of the exchange, or make one; nothing is written yet. Raises UsageError: it cannot be read, or it is another
        agent that makes it."""
        self._directory = directory
        self._report = report
        self._agent = str(wiring.providers[OUTBOX].settings["agent"])
        self._key: ExchangeKey | None = None
        self._is_new = not options.resume and not options.exchange_key
        """This agent has made the key, and others need it."""
        if not options.resume:
            members = tuple(wiring.providers["ring"].settings["members"])
            if self._is_new and self._agent != member(members[0]).agent:
                raise UsageError(
                    f"{self._agent} needs the key of the exchange: --exchange-key FILE; agent 1 makes it when it begins, and "
                    f"keeps it as {EXCHANGE_KEY} in its crawl directory"
                )
            self._key = (
                sealed_files.new_key(members) if self._is_new else sealed_files.read_key(Path(options.exchange_key))
            )
        self._turn = asyncio.Lock()
        self.is_over = False
        """The crawl ends: URLs that come in now are merged when it goes on."""

    def register(self) -> None:
        if self._key is not None:
            sealed_files.write_key(self._directory / EXCHANGE_KEY, self._key)

    async def begin(self, units: UnitsAtWork) -> None:
        """Merge the files that came while the crawl was at rest."""
        if self._is_new and self._key is not None:
            numbers = range(1, len(self._key.members) + 1)
            others = " and ".join(str(number) for number in numbers if agent_name(number) != self._agent)
            self._report(
                f"take a copy of {self._directory / EXCHANGE_KEY} to agent {others}, for --exchange-key FILE; keep it secret"
            )
        done = await self.merge(units)
        if done.files:
            self._report(done.told)

    def working(self, units: UnitsAtWork) -> AbstractAsyncContextManager[None]:
        """While the block runs, what is owed is written into files from time to time."""
        return meanwhile(*(outbox.write_in_time() for outbox in units.providers(FileOutbox)))

    async def end(self, units: UnitsAtWork) -> None:
        """Write what is owed. Where that cannot be, it stays owed, and a line says so."""
        async with self._turn:
            self.is_over = True
        try:
            for line in written_lines(await self.write(units), self._directory):
                self._report(line)
        except (OSError, DiskFull) as error:
            self._report(
                f"URLs for other agents cannot be written into files now ({error}); "
                f"gossamer exchange {self._directory} writes them later"
            )

    async def merge(self, units: UnitsAtWork) -> Merged:
        """Merge the files in the crawl directory that are not merged yet."""
        done = Merged()
        async with self._turn:
            for outbox in units.providers(FileOutbox):
                done = await take_in(self._directory, outbox, intake_of(units.running), self._report)
        if done.new:
            units.frontier.on_arrived_many([Arrived(done.new)])
        return done

    async def write(self, units: UnitsAtWork, *, again: bool = False) -> list[WrittenFile]:
        """Write what is owed into files; with `again` also what was written before and not confirmed. Raises OSError: a file
        cannot be written; DiskFull: likewise."""
        made = list[WrittenFile]()
        for outbox in units.providers(FileOutbox):
            if again:
                await outbox.owe_again()
            made += await outbox.write()
        return made


def written_lines(files: Sequence[WrittenFile], directory: Path) -> Iterator[str]:
    for file in files:
        what = show_count(file.urls, "URL") if file.urls else "what was merged"
        yield f"{what} for {file.agent}: {directory / OUT / file.name}"


# -- files that come in


class TakenFiles(msgspec.Struct, frozen=True):
    """The fate of files that a person named."""

    files: int
    """Those that are in the crawl directory now."""
    refused: list[str]
    """A line for each file that was refused, in whole or in part."""
    for_others: list[str]
    """A line for each file that is for another agent."""


def taken_files(directory: Path, paths: Iterable[Path]) -> TakenFiles:
    """Prove exchange files, those in folders too, and copy those that are sound into the crawl directory, each whole or not at all.
    Raises UsageError: the crawl exchanges no files, or one cannot be copied."""
    wiring = exchanging_wiring(directory)
    key, agent = sealed_files.read_key(directory / EXCHANGE_KEY), str(wiring.providers[OUTBOX].settings["agent"])
    ring = RingDesignation(RingSheet(members=tuple(wiring.providers["ring"].settings["members"])))
    count, refused, for_others = 0, list[str](), list[str]()
    for path in chain.from_iterable(sorted(one.glob(f"*{SUFFIX}")) if one.is_dir() else [one] for one in paths):
        try:
            file = sealed_files.proved(path, key, agent)
            for _ in _judging(file, agent, ring.owner):
                pass
        except ForAnother as error:
            for_others.append(str(error))
        except UsageError as error:
            refused.append(str(error))
        else:
            _copy(file, directory)
            count += 1
            if file.refused:
                others = file.refused - len(file.examples)
                examples = f"{'; '.join(file.examples)}{f', and {others:,} more' if others > 0 else ''}"
                refused.append(
                    f"{path}: {show_count(file.refused, 'URL')} of {file.header.urls:,} cannot be kept, and the rest is merged "
                    f"({examples}); {file.header.sender} should not have written such URLs"
                )
    return TakenFiles(count, refused, for_others)


def _judging(file: UrlFile, agent: str, owner: Callable[[str], str]) -> Iterator[None]:
    """Judge every URL of a file before the first one is kept; a pause after some of them. Raises UsageError: the file is not
    what its header says, or its agents divide the web in another way than ours."""
    host = ""
    for number, task in enumerate(file.tasks(), 1):
        if number % _AT_ONCE == 0:
            yield
        if task.host == host:
            continue  # most URLs stand behind others of their host
        host = task.host
        if owner(host) != agent:
            raise UsageError(
                f"{file.path} has a URL that is not for {agent}: {named(task)}; use the same version of Gossamer for all agents"
            )


def exchanging_wiring(directory: Path) -> Wiring:
    """The wiring of a crawl that exchanges files. Raises UsageError: it exchanges none."""
    wiring = kept_wiring(str(directory))
    if not is_exchanging(wiring):
        raise UsageError(_NO_FILES)
    return wiring


def _copy(file: UrlFile, directory: Path) -> None:
    folder = directory / IN
    target = folder / f"{file.header.sender}-{file.header.id}{SUFFIX}"
    if file.path.parent.absolute() == folder.absolute() or target.exists():
        return
    beside = folder / f".{target.name}.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with file.path.open("rb") as source, beside.open("wb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fsync(copy.fileno())
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        why = error.strerror or error
        raise UsageError(f"{file.path} cannot be copied into {folder}: {why}; nothing of it is merged") from None


async def take_in(directory: Path, outbox: FileOutbox, intake: UrlIntake, report: Callable[[str], object]) -> Merged:
    """Merge the files in the crawl directory that are not merged yet. Raises DiskFull: they cannot be kept; what is not noted
    yet is merged again next time."""
    done, receipts = Merged(), list[str]()
    files = list[tuple[UrlFile, int]]()
    agent = outbox.sheet.agent
    for path in sorted((directory / IN).glob(f"*{SUFFIX}")):
        if outbox.has_merged(path.stem.rpartition("-")[2]):
            continue
        try:
            # It was proved when it was copied; since then the disk or a person may have changed it.
            file = sealed_files.proved(path, outbox.key, agent)
            if outbox.has_merged(file.header.id):
                continue  # a person has put it there under another name
            for _ in _judging(file, agent, outbox.designation.owner):
                await asyncio.sleep(0)
        except UsageError as error:
            # It goes away from those that are to be merged, so that no later run fails on it.
            target = directory / REFUSED / path.name
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                path.replace(target)
            except OSError as failure:
                report(f"{error}; it cannot be put aside into {target.parent}: {failure.strerror or failure}")
            else:
                report(f"{error}; it is put aside: {target}")
            continue
        new, tasks = 0, file.tasks()
        while part := list(islice(tasks, _AT_ONCE)):
            new += await intake.receive(part)
            await asyncio.sleep(0)
        receipts += file.header.merged
        files.append((file, new))
    confirmed = await outbox.confirmed(receipts)
    for file, new in files:
        outbox.merged(file.header, new, file.refused)
        done = Merged(
            done.files + 1, done.urls + file.header.urls, done.new + new, confirmed, done.refused + file.refused
        )
    return done


def intake_of(graph: RunningGraph) -> UrlIntake:
    """Commits what comes in as the commit of a graph does, by its settings as they stand."""
    node = graph.graph.components[_commit(graph)]
    found: dict[str, Any] = {role: graph.providers[str(node.roles[role])] for role in _INTAKE[:4]}
    gates = _bound(graph, node, "task_gates", "schedule")
    takers = [keeper for keeper in _bound(graph, node, "keepers", "visits") if isinstance(keeper, OrderTaker)]
    assert isinstance(node.sheet, CommitSheet)
    return UrlIntake(sheet=node.sheet, **found, gates=gates, takers=takers)


def _commit(graph: RunningGraph) -> str:
    return next(name for name, node in graph.graph.components.items() if issubclass(node.unit, Commit))


def _bound(graph: RunningGraph, node: ComponentNode, role: str, key: str) -> list[Any]:
    names = node.roles.get(role, {})
    assert not isinstance(names, str)
    return [graph.providers[name] for name in names.get(key, ())]


# -- a crawl at rest


@contextlib.asynccontextmanager
async def at_rest(directory: Path, report: Callable[[str], None]) -> AsyncIterator[tuple[FileOutbox, UrlIntake]]:
    """The parts of a crawl at rest that exchange files, while the block runs; its ledger is left as clean as it was. Raises
    UsageError: it exchanges no files; CrawlDirectoryError: it is in use, or damaged; FlowError: a part cannot start."""
    wiring = with_directory(exchanging_wiring(directory), str(directory))  # it may have been moved
    graph = RunningGraph(plan(wiring, catalog()), report=report)
    roles = graph.graph.components[_commit(graph)].roles
    try:
        await graph.start_providers([OUTBOX, *used_names({role: roles[role] for role in _INTAKE if role in roles})])
        outbox = graph.unit(OUTBOX)
        assert isinstance(outbox, FileOutbox)
        yield outbox, intake_of(graph)
    finally:
        for ledger in graph.providers.values():
            if isinstance(ledger, RocksLedger) and not ledger.is_clean:
                # Only a crawl can say that nothing is in flight any more.
                ledger.flush_moves()
                ledger.abandon()
        await graph.stop()


# URLs that were sent by files to a lost directory (`gossamer exchange DIR --lost N`): what the lost agent had confirmed was
# forgotten. The seen set knows that it was met, and has no URLs, so these come from the tables.


async def owe_to_lost(directory: Path, outbox: FileOutbox, seen: SeenSet, number: int) -> int:
    """Owe the agent of this number, counted from 1, all again that it was sent, as far as the tables have the links; returns how
    many URLs are owed to it. `seen` says what the crawl has met, and so has sent. Raises UsageError: there is no such agent, it is
    this one, or the crawl keeps no table of links."""
    from gossamer.agents.lost import found_links
    from gossamer.query.database import Database  # a crawl without losses pays for nothing of this

    lost = agent_name(number)
    if lost not in outbox.key.names or lost == outbox.sheet.agent:
        others = ", ".join(name for name in outbox.key.names if name != outbox.sheet.agent)
        raise UsageError(f"--lost {number}: the other agents of this exchange are {others}")
    await outbox.owe_again()
    count = 0
    with Database(directory) as database:
        if not {"links", "pages"} <= set(database.tables):
            raise UsageError("this crawl keeps no table of links, so it cannot tell what it has sent to the lost agent")
    for tasks in found_links(directory, _AT_ONCE):
        theirs = {task.url: task for task in tasks if outbox.designation.owner(task.host) == lost}
        for new in seen.unseen(list(theirs)):
            del theirs[new]
        count += outbox.owe_known(list(theirs.values()))
        await asyncio.sleep(0)
    return count
