"""The outbox of an agent that no network connects with the others: what is owed leaves in files, and files of others come in.

    commit ── owe ──► owed ── write ──► exchange/out/*.urls, and `written` ── a receipt of the other agent ──► forgotten

Place in the flow: `divided-ledger` owes here as it does in the outbox of connected agents; a crawl writes files while it works and
when it ends, and `gossamer exchange` when a person asks (:mod:`gossamer.agents.merging`).

A file may be lost, come late, come twice, or in any order. So a URL that was written into one stays in the ledger until the other
agent says that it has merged that file: its own files name those which it has merged. URLs without such a receipt are owed again
when a person asks for it (decision 93).
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.engine.sheet import setting
from gossamer.storage.contract import OWED, Space, Spaces
from gossamer.storage.ledger.contract import Group
from gossamer.storage.mailbox import sealed_files
from gossamer.storage.mailbox.contract import OwedTask
from gossamer.storage.mailbox.staging import OwingSheet, StagesOwed, owed_key, owed_task
from gossamer.values.errors import DiskFull
from gossamer.values.task import Task

#: Folders of a crawl directory: files that go to other agents, and those of theirs that were merged.
OUT = "exchange/out"
IN = "exchange/in"

#: URLs that are in a file without a receipt of its merging: under their host, the file's id before the task.
WRITTEN = Space("written", value_bytes=OWED.value_bytes + 8, host_bytes=OWED.host_bytes)

#: The files themselves, under no host: those that were written and are not confirmed, and those of others that were merged.
FILES = Space("exchange-files", value_bytes=1 << 10)

#: Entries that are read, or moved by one group, in one turn of the event loop: about 10 ms.
STRETCH = 1_000

#: Bytes of a file's id before each entry of :data:`WRITTEN`.
FILE_ID_BYTES = 8
_WRITTEN, _MERGED = b"w", b"m"


class WrittenFile(msgspec.Struct, frozen=True):
    """A file that was written and not confirmed."""

    id: str
    agent: str
    """Whom it is for."""
    name: str
    urls: int
    made_at: float
    """Seconds since the epoch."""


class MergedFile(msgspec.Struct, frozen=True):
    """A file of another agent that was merged."""

    id: str
    agent: str
    """The agent that it is for."""
    urls: int
    new: int
    """How many of them were new here."""
    merged_at: float
    """Seconds since the epoch."""
    is_told: bool = False
    """A file that was written since then says so, or it has no URLs, so that its receipt is not waited for."""


class FileOutboxSheet(OwingSheet, frozen=True):
    directory: Annotated[str, setting("The crawl directory.", restart="its files are open there")] = "."
    every: Annotated[
        float, setting("Write what is owed into files after this time, while the crawl runs.", unit="s", gt=0)
    ] = 600.0
    most: Annotated[int, setting("Write at most this many URLs into one file.", unit="URLs", ge=1)] = 50_000


class FileOutbox(StagesOwed[FileOutboxSheet]):
    """Holds the URLs that an agent owes others whom it cannot reach. Contract: `OwesUrls`."""

    key: sealed_files.ExchangeKey

    async def start(self) -> None:
        """Go on with what an earlier process has left. Raises UsageError: the key of the exchange is gone, or none."""
        self.key = sealed_files.read_key(Path(self.sheet.directory, sealed_files.EXCHANGE_KEY))
        for space in (OWED, WRITTEN, FILES):
            self.ledger.spaces.open(space)
        self._turn = asyncio.Lock()
        self.metrics.gauge("owed", lambda: self.ledger.counters().get("owed", 0))
        self.metrics.gauge("written", lambda: self.ledger.counters().get("written", 0))

    def kept(self, owed: Sequence[OwedTask], *, is_sure: bool = True) -> None:
        """They wait in the ledger for the next file."""

    # -- files that go out

    async def write(self) -> list[WrittenFile]:
        """Write all that is owed into files, and one without URLs for an agent that is only to hear what was merged. Raises
        OSError, DiskFull: a file cannot be written; its URLs stay owed."""
        async with self._turn:
            made, mark, parts = list[WrittenFile](), b"", defaultdict[str, _Part](_Part)
            while stretch := list(islice(self.ledger.spaces.walk(OWED, mark), STRETCH)):
                mark = stretch[-1][0]
                by_agent = defaultdict[str, list[tuple[Task, bytes]]](list)
                for task, value in ((owed_task(value), value) for _, value in stretch):
                    by_agent[self.designation.owner(task.host)].append((task, value))
                for agent, those in by_agent.items():
                    parts[agent].writer.add(task for task, _ in those)
                    parts[agent].entries += [(task.host, owed_key(task), value) for task, value in those]
                # All parts together are no longer than one file may be: many agents take no more memory than one.
                while sum(part.writer.urls for part in parts.values()) >= self.sheet.most:
                    longest = max(parts, key=lambda agent: parts[agent].writer.urls)
                    made.append(await self._close(longest, parts.pop(longest)))
                await asyncio.sleep(0)
            untold = {one.agent for one in merged_files(self.ledger.spaces) if not one.is_told}
            for agent in sorted(parts.keys() | untold):
                made.append(await self._close(agent, parts.get(agent) or _Part()))
            return made

    async def _close(self, agent: str, part: "_Part") -> WrittenFile:
        """Put a file in its place, then note what is in it: a file that a kill leaves between the two is written once more."""
        told = [one for one in merged_files(self.ledger.spaces) if one.agent == agent]
        header = sealed_files.new_header(self.key, self.sheet.agent, agent, self.clock.now(), (one.id for one in told))
        name = f"{self.key.exchange}-{header.sender}-to-{agent}-{header.id}{sealed_files.SUFFIX}"
        folder = Path(self.sheet.directory, OUT)
        folder.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(part.writer.write, folder / name, self.key, header)
        file = WrittenFile(header.id, agent, name, part.writer.urls, header.made_at)
        # A file without URLs only says what was merged, and so does this one.
        before = [one for one in written_files(self.ledger.spaces) if one.agent == agent and not one.urls]
        with self.ledger.group() as group:
            group.put(FILES, None, _WRITTEN + bytes.fromhex(file.id), msgspec.msgpack.encode(file))
            for old in before:
                group.delete(FILES, None, _WRITTEN + bytes.fromhex(old.id))
            for one in told:
                _note(msgspec.structs.replace(one, is_told=True), group)
        self._remove(before)
        for start in range(0, len(part.entries), STRETCH):
            with self.ledger.group() as group:
                for host, key, value in part.entries[start : start + STRETCH]:
                    if group.get(OWED, host, key) != value:
                        continue  # it was owed again meanwhile, at a lower depth, and stays owed
                    is_new = group.get(WRITTEN, host, key) is None
                    if group.put(WRITTEN, host, key, bytes.fromhex(file.id) + value):
                        group.count("written", is_new)
                        group.delete(OWED, host, key)
                        group.count("owed", -1)
            await asyncio.sleep(0)
        return file

    async def owe_again(self) -> int:
        """Owe all again that was written and not confirmed, and tell all again that was merged; returns how many URLs are owed.

        Their files are removed; it does no harm if one of them arrives yet.
        """
        async with self._turn:
            count = 0
            for stretch in self._stretches_of_written():
                with self.ledger.group() as group:
                    for value in (value[FILE_ID_BYTES:] for _, value in stretch):
                        task = owed_task(value)
                        key = owed_key(task)
                        group.delete(WRITTEN, task.host, key)
                        group.count("written", -1)
                        if group.get(OWED, task.host, key) is None:
                            group.put(OWED, task.host, key, value)
                            group.count("owed")
                            count += 1
                await asyncio.sleep(0)
            files = written_files(self.ledger.spaces)
            with self.ledger.group() as group:
                for file in files:
                    group.delete(FILES, None, _WRITTEN + bytes.fromhex(file.id))
                for one in merged_files(self.ledger.spaces):
                    _note(msgspec.structs.replace(one, is_told=not one.urls), group)
            self._remove(files)
            return count

    def owe_known(self, tasks: Sequence[Task]) -> int:
        """Owe those again that were met here long ago, and are not owed; returns how many that are."""
        with self.ledger.group() as group:
            forgotten = [task for task in tasks if group.get(OWED, task.host, owed_key(task)) is None]
            return len(self.owe(forgotten, group))

    def _stretches_of_written(self) -> Iterator[list[tuple[bytes, bytes]]]:
        """All that is written, some at a time; a part that was read may be deleted before more is asked for."""
        mark = b""
        while stretch := list(islice(self.ledger.spaces.walk(WRITTEN, mark), STRETCH)):
            mark = stretch[-1][0]
            yield stretch

    # -- files that came in

    def has_merged(self, file: str) -> bool:
        """Whether the file with this id was merged."""
        try:
            key = _MERGED + bytes.fromhex(file)
        except ValueError:
            return False
        return self.ledger.spaces.get(FILES, None, key) is not None

    async def confirmed(self, receipts: Iterable[str]) -> int:
        """Forget what was in these files: the others have merged them. Returns how many URLs that were."""
        async with self._turn:
            files = {file.id: file for file in written_files(self.ledger.spaces)}
            confirmed = [files[receipt] for receipt in dict.fromkeys(receipts) if receipt in files]
            ids, count = {bytes.fromhex(file.id) for file in confirmed}, 0
            if not ids:
                return 0
            for stretch in self._stretches_of_written():
                tasks = [owed_task(value[FILE_ID_BYTES:]) for _, value in stretch if value[:FILE_ID_BYTES] in ids]
                with self.ledger.group() as group:
                    for task in tasks:
                        group.delete(WRITTEN, task.host, owed_key(task))
                        group.count("written", -1)
                count += len(tasks)
                await asyncio.sleep(0)
            with self.ledger.group() as group:
                for file in confirmed:
                    group.delete(FILES, None, _WRITTEN + bytes.fromhex(file.id))
            self._remove(confirmed)
            return count

    def merged(self, header: sealed_files.UrlFileHeader, new: int, refused: int = 0) -> None:
        """Note that a file was merged, but for URLs that cannot be kept: the next file for its agent says so."""
        with self.ledger.group() as group:
            group.count("merged_files")
            if refused:
                group.count("cut:refused", refused)
            _note(MergedFile(header.id, header.sender, header.urls, new, self.clock.now(), not header.urls), group)

    def _remove(self, files: Iterable[WrittenFile]) -> None:
        for file in files:
            with suppress(OSError):
                Path(self.sheet.directory, OUT, file.name).unlink(missing_ok=True)

    async def write_in_time(self) -> None:
        """Write what is owed again and again, as often as the setting says. Runs beside the crawl until it is cancelled."""
        while True:
            await self.clock.sleep(self.sheet.every)
            try:
                if self.ledger.counters().get("owed", 0):
                    await self.write()
            except (OSError, DiskFull) as error:
                self.metrics.count("files_late")
                self.report(f"URLs for other agents cannot be written into files now ({error}); they are written later")


class _Part:
    """The content of one file."""

    def __init__(self) -> None:
        self.writer = sealed_files.UrlFileWriter()
        self.entries: list[tuple[str, bytes, bytes]] = []
        """Host, key and value of each."""


def written_files(spaces: Spaces) -> list[WrittenFile]:
    found = [msgspec.msgpack.decode(value, type=WrittenFile) for _, value in spaces.scan(FILES, None, _WRITTEN)]
    return sorted(found, key=lambda file: file.made_at)


def merged_files(spaces: Spaces) -> list[MergedFile]:
    found = [msgspec.msgpack.decode(value, type=MergedFile) for _, value in spaces.scan(FILES, None, _MERGED)]
    return sorted(found, key=lambda file: file.merged_at)


def parted(value: bytes) -> tuple[str, Task]:
    """The id of the file that an entry of :data:`WRITTEN` was written into, and its task."""
    return value[:FILE_ID_BYTES].hex(), owed_task(value[FILE_ID_BYTES:])


def _note(file: MergedFile, group: Group) -> None:
    group.put(FILES, None, _MERGED + bytes.fromhex(file.id), msgspec.msgpack.encode(file))
