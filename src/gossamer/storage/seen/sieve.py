"""The sieve: offers go into a log, a thread merges full logs with the runs, what is new comes out in bulk.

=====================  ==============================================================================================
`offers-N.jsonl`       what was offered, in order; the last one grows, those before it wait for their merge
`run-N-K`              fingerprints of what came out, sorted; never changed (:mod:`gossamer.storage.seen.runs`)
`found-N.jsonl`        what of `offers-N` was new, in the order of the offers; drained from its beginning
`manifest.json`        the runs that stand, and the last N that is merged
=====================  ==============================================================================================

A merge writes `run` and `found`, then the manifest, then removes the log: killed before the manifest it is done again, after
it the log is superfluous. How far logs and finds *count* is not for the files to say: `ends` is asked, which is the ledger's
word where there is one, so that offering and draining are kept or forgotten with the commit that they belong to.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from gossamer.engine.files import AppendFile
from gossamer.storage.recovery import opened_log
from gossamer.storage.seen import runs
from gossamer.values.errors import CrawlDirectoryError

if TYPE_CHECKING:
    from gossamer.storage.seen.providers import SieveSheet

#: A log grows to so many times its capacity while a merge runs; then the offer waits for the merge, to bound memory.
OVERFLOW = 2

#: Bytes of a log that the merge reads at once: half a millisecond of this process's time between two looks at others.
PIECE = 1 << 19

T = TypeVar("T")


#: File of the sieve -> the byte at which what counts of it ends; None: all of it counts.
Ends = Callable[[str], int | None]


class _Merge(msgspec.Struct):
    """The changes of a merge."""

    number: int
    standing: list[runs.SieveRun]
    dropped: list[runs.SieveRun]
    found: runs.FindsFile
    new: int
    leaving: list[runs.FindsFile]


class Finds:
    """The files of finds of a sieve. They do not say how far they count: until the end that one was drained to is committed, its
    items come again after a reopening."""

    def __init__(self, directory: Path, ends: Ends) -> None:
        self._directory = directory
        self._ends = ends
        self._found: deque[runs.FindsFile] = deque()
        self._drained: list[runs.FindsFile] = []

    def __len__(self) -> int:
        return sum(found.count for found in self._found)

    def open(self, path: Path) -> None:
        """Go on with a file of an earlier session, where what counts of it ends."""
        with path.open("rb") as file:
            at = file.seek(self._ends(path.name) or 0)
            found = runs.FindsFile(path.name, path.stat().st_size, at, sum(1 for _ in file))
        (self._found if found.count else self._drained).append(found)

    def add(self, found: runs.FindsFile) -> None:
        self._found.append(found)

    def take(self, most: int) -> tuple[list[bytes], str, int]:
        """Up to `most` lines of one file; the file, and its byte behind them. No line, where nothing is left."""
        while self._found:
            found = self._found[0]
            with (self._directory / found.file).open("rb") as file:
                file.seek(found.at)
                lines = list(islice(file, most))
            found.at += sum(map(len, lines))
            found.count -= len(lines)
            if found.count <= 0:
                self._drained.append(self._found.popleft())
            if lines:
                return lines, found.file, found.at
        return [], "", 0

    def counting(self) -> list[runs.FindsFile]:
        """Files that were drained to the end, and count as such; they are taken off the list."""
        ends = ((found, self._ends(found.file)) for found in self._drained)
        counting = [found for found, end in ends if end is None or end >= found.size]
        self._drained = [found for found in self._drained if found not in counting]
        return counting


class Sieve(Generic[T]):
    """Which items have a URL that was never offered before? The answer comes later, through :meth:`take`."""

    def __init__(
        self,
        directory: Path,
        kind: type[T],
        url_of: Callable[[T], str],
        limits: "SieveSheet",
        ends: Ends,
        progress: Callable[[], int] = lambda: 0,
    ) -> None:
        """A closed sieve, whose files lie in `directory`. Items are of a `kind` that JSON can hold, each with a canonical URL.

        `ends` says how far files count. `progress` is a number that grows with what counts: one that is less than at the last
        merge gives away that the ledger went back to a checkpoint, whose URLs the sieve has let out already.
        """
        self.directory = directory
        self.limits = limits
        self._url_of = url_of
        self._ends = ends
        self._progress = progress
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]  # a class that is known at run time
        self._front = runs.Recent(limits.recent)
        self._keys = runs.SieveKeys()
        self._backlog: deque[int] = deque()
        self._finds = Finds(directory, ends)
        self._leaving: list[runs.FindsFile] = []
        """Finds that can be removed after a merge which notes that they count."""
        self._settling: tuple[list[runs.FindsFile], int] = [], 0
        self._mark = 0
        """The progress that the next manifest notes: no crash of any kind takes it back."""
        self._job: Future[_Merge] | None = None
        self._merging: Callable[[], _Merge]
        """The merge that runs or has failed."""
        self._in_job = 0
        self._wanted = False
        self.asked = 0
        self.missed = 0
        self.new = 0
        self.merges = 0

    # -- life

    def open(self) -> None:
        """Open the sieve of the directory, or begin one. Raises CrawlDirectoryError: it is damaged, or newer than this program;
        OSError: it cannot be read or written."""
        self.directory.mkdir(parents=True, exist_ok=True)
        known = runs.read(self.directory)
        self._manifest = known or runs.SieveManifest(os.urandom(8).hex())
        if known is None:
            runs.write(self.directory, self._manifest, sync=self.limits.sync)
        if self._progress() < self._manifest.mark:
            raise CrawlDirectoryError(
                f"the sieve in {self.directory} is newer than the ledger, which went back to a checkpoint: "
                "put the sieve back as it was then, or begin anew with --overwrite"
            )
        self._mark = self._manifest.mark
        self._secret = int(self._manifest.secret, 16)
        self._fingerprints = runs.FingerprintMaker(self._secret)
        self._runs = [runs.SieveRun(self.directory, entry) for entry in self._manifest.runs]
        # Files that the manifest does not name were left by a merge that did not end, or by the logs that it had read.
        named, merged = {entry.file for entry in self._manifest.runs}, self._manifest.merged
        left = [path for path in self.directory.glob("run-*") if path.name not in named]
        left += [path for number, path in self._numbered("offers") if number <= merged]
        left += [path for number, path in self._numbered("found") if number > merged]
        for path in left:
            path.unlink()
        for _, path in self._numbered("found"):
            self._finds.open(path)
        first = merged + 1
        last = max([number for number, _ in self._numbered("offers")], default=first)
        while self._ends(_offers(last + 1)):  # a log that counts must be there, or it is damage
            last += 1
        for number in range(first, last + 1):
            path = self.directory / _offers(number)
            opened_log(path, self._ends(path.name)).close()
        self._backlog.extend(range(first, last))
        self._begin_log(last)
        self._keys = self._keys_of(last)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="sieve")
        self._advance()

    def close(self) -> None:
        self._executor.shutdown()
        if self._job is not None and self._job.exception() is None:
            self._finish()
        self._log.close()
        for run in self._runs:
            run.close()

    def _numbered(self, kind: str) -> list[tuple[int, Path]]:
        return sorted((int(path.stem.partition("-")[2]), path) for path in self.directory.glob(f"{kind}-*.jsonl"))

    def _begin_log(self, number: int) -> None:
        self._number = number
        self._log = AppendFile(self.directory / _offers(number), fresh=False)

    # -- in

    @property
    def waiting(self) -> int:
        """Offers that are not decided; of an earlier session's logs each counts as one until it is merged."""
        return self._in_job + len(self._backlog) + len(self._keys)

    def __len__(self) -> int:
        self._advance()
        return self.waiting + len(self._finds)

    @property
    def seen(self) -> int:
        return sum(run.count for run in self._runs)

    @property
    def merging(self) -> Future[object] | None:
        return self._job  # type: ignore[return-value]  # its result stays in here

    def unseen(self, urls: Sequence[str]) -> list[str]:
        self.asked += len(urls)
        return self._front.misses(urls)

    def offer(self, items: Sequence[T]) -> None:
        """Let these in. They count when :attr:`position` is committed, and come out later where they are new. Raises OSError:
        they could not be written, and are not let in; CrawlDirectoryError: a merge found a damaged file."""
        self._advance()
        urls = list(map(self._url_of, items))
        fresh = self._front.misses(urls)
        self.missed += len(fresh)
        if not fresh:
            return
        if len(fresh) < len(items):
            # Backwards, so that the first of several with one URL stays.
            by_url = dict(zip(reversed(urls), reversed(items), strict=True))
            items = [by_url[url] for url in fresh]
        keys = self._fingerprints.of(fresh)
        self._log.append(self._encoder.encode_lines(items))
        self._keys.add(keys)
        self._front.add(fresh)

    @property
    def position(self) -> tuple[str, int]:
        """The log that grows, and its end: to be committed with what was offered."""
        return self._log.path.name, self._log.end

    def sync(self) -> None:
        """Force the log to the disk. Made for a thread."""
        with self._log.path.open("rb") as file:
            os.fsync(file.fileno())

    # -- out

    def flush(self) -> None:
        """Merge what waits as soon as it is committed and no other merge runs, full or not."""
        self._wanted = True
        self._advance()

    def take(self, most: int) -> tuple[list[T], str, int]:
        """Up to `most` items that are new, in the order of their offers; a file, and an end. They come again, after a reopening,
        until the file counts up to that end; so the caller commits it together with the items."""
        self._advance()
        lines, file, end = self._finds.take(most)
        items: list[T] = self._decoder.decode(b"[" + b",".join(lines) + b"]")
        return items, file, end

    @property
    def ready(self) -> bool:
        self._advance()
        return len(self._finds) > 0

    def settled(self) -> None:
        """Offers that counted at the last call survive a power cut by now."""
        files, self._mark = self._settling
        self._leaving += files
        self._settling = self._finds.counting(), self._progress()

    # -- merging

    def _advance(self) -> None:
        """Take in a merge that has ended; begin the next where one is due."""
        count = len(self._keys)
        if self._job is not None and (self._job.done() or count >= OVERFLOW * self.limits.capacity):
            self._finish()
        if self._job is not None:
            return
        if self._backlog:
            self._begin_merge(self._backlog.popleft(), None)
        elif count and (self._wanted or count >= self.limits.capacity):
            name, end = self.position
            counts = self._ends(name)
            if counts is not None and counts < end:
                return  # a merge cannot be taken back: the log must be committed to its end
            self._wanted = False
            self._log.close()
            number, keys = self._number, self._keys
            self._keys = runs.SieveKeys()
            self._begin_log(number + 1)
            self._begin_merge(number, keys)

    def _begin_merge(self, number: int, keys: runs.SieveKeys | None) -> None:
        self._in_job = len(keys) if keys is not None else 1
        if not self.limits.sync:
            self._leaving += self._finds.counting()
            self._mark = self._progress()
        leaving, self._leaving = self._leaving, []
        self._merging = partial(self._merge, number, keys, self._mark, leaving)
        self._job = self._executor.submit(self._merging)

    def _finish(self) -> None:
        assert self._job is not None
        try:
            merge = self._job.result()
        except OSError as error:
            # It changes nothing before its manifest, so it is tried again, for who waits until there is room.
            self._job = self._executor.submit(self._merging)
            why = error.strerror or error
            raise CrawlDirectoryError(f"the sieve in {self.directory} cannot be merged: {why}") from error
        self._job, self._in_job = None, 0
        self._runs = merge.standing
        self.merges += 1
        self.new += merge.new
        for run in merge.dropped:
            run.close()
            run.path.unlink()
        for name in (_offers(merge.number), *(found.file for found in merge.leaving)):
            (self.directory / name).unlink(missing_ok=True)
        if merge.found.size:
            self._finds.add(merge.found)

    def _merge(self, number: int, keys: runs.SieveKeys | None, mark: int, leaving: list[runs.FindsFile]) -> _Merge:
        """One merge, in the thread: it reads what no one changes, and writes files that no one knows until the manifest."""
        if keys is None:
            keys = self._keys_of(number)
        standing, sync = list(self._runs), self.limits.sync
        sifted = runs.sift(keys, standing)
        found = runs.write_found(self.directory, number, self._pieces(number), sifted, sync=sync)
        if len(sifted.high):
            standing.append(
                runs.write_run(self.directory, f"run-{number:08}-0", [(sifted.high, sifted.low)], sync=sync)
            )
        dropped: list[runs.SieveRun] = []
        while places := runs.crowded([run.count for run in standing]):
            joined = [standing[place] for place in places]
            name = f"run-{number:08}-{len(dropped) + 1}"
            one = runs.write_run(self.directory, name, runs.in_order(joined), sync=sync)
            standing = [*(run for run in standing if run not in joined), one]
            dropped += joined
        entries = tuple(run.entry for run in standing)
        runs.write(self.directory, runs.SieveManifest(self._manifest.secret, number, entries, mark), sync=sync)
        return _Merge(number, standing, dropped, found, len(sifted.high), leaving)

    def _pieces(self, number: int) -> Iterator[list[bytes]]:
        rest = b""
        with (self.directory / _offers(number)).open("rb", buffering=0) as file:
            while data := file.read(PIECE):
                *lines, rest = (rest + data).split(b"\n")
                yield lines

    def _keys_of(self, number: int) -> runs.SieveKeys:
        """The fingerprints of a log, as they were when it was written."""
        keys, fingerprints = runs.SieveKeys(), runs.FingerprintMaker(self._secret)
        for lines in self._pieces(number):
            items: list[T] = self._decoder.decode(b"[" + b",".join(lines) + b"]")
            keys.add(fingerprints.of(map(self._url_of, items)))
        return keys


def _offers(number: int) -> str:
    return f"offers-{number:08}.jsonl"
