"""How a ledger is found, opened, made, checkpointed and replaced, with a kill at any step.

Place in the flow: :mod:`~gossamer.storage.ledger.ledger` lets one process in by a lock, makes an empty ledger where there is none,
and reads here what an opened one begins with: secret, rule by which hosts are assigned, state of the last commit, ends of files.

A directory bears the name `ledger` only when it is whole. A ledger that is being made is called `making`; a whole one that is
about to replace another, `made`; a replaced one, `replaced`. The next opening finishes what a kill interrupted. As long as the
process works that made a ledger, `making` is a link to it, so that it need not be opened again under its new name.
"""

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

import msgspec

from gossamer.engine.errors import refusing
from gossamer.engine.files import Point, crash_at, replace_file, scratch, take_lock
from gossamer.storage.ledger import schema
from gossamer.storage.ledger.layout import END_PREFIX, RULE_KEY, SECRET_KEY, STATE_KEY, LedgerKeys, Marks, after
from gossamer.storage.ledger.reader import LedgerSheet, LedgerState
from gossamer.storage.ledger.store import RocksStore, damaged, has_missing_sectors, missing_between, number_behind
from gossamer.storage.recovery import SUMS, sum_up
from gossamer.values.errors import CrawlDirectoryError, LedgerDamaged, LogDamaged, UsageError
from gossamer.values.hosts import DomainRule, domain_rule
from gossamer.values.patterns import lazy_pattern

# One process for each ledger: the system takes the lock away from a process that dies (fault 107).


#: Seconds for which a lock may be held by a process that only looks whether it is.
_LOOK = 0.02


class ProcessLock:
    """Held from construction to `close`; the file names the holder.

    `flock`, not `lockf`: it also holds against a second opening within the process.
    """

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: Path) -> None:
        """Take the lock, at once or not at all. Raises CrawlDirectoryError: another process holds it, or the directory cannot be
        written."""
        self.path = path
        advice = "; resume where the crawl directory can be written"
        with refusing(CrawlDirectoryError, f"cannot write to {path.parent}", advice):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        if not take_lock(descriptor, _LOOK):
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
            os.close(descriptor)
            text = f"{path.parent} is in use by process {holder or '(just starting)'}; stop that one first"
            raise CrawlDirectoryError(text) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._descriptor = descriptor

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


# A ledger that lies where nothing can be written, made readable: the library writes a log of its own even to read.

#: Files that hold the data; they are read where they are. The others are small, and some are written to.
_LARGE = frozenset({".sst", ".log"})


@contextlib.contextmanager
def readable(path: Path, can_write: Callable[[Path, int], bool] = os.access) -> Iterator[Path]:
    """A directory in which the database in `path` can be opened for reading: itself, or links to its files in a folder of ours.
    `can_write` says whether files can be made in a directory, as `os.access` does. Raises OSError: it cannot be read, or there is
    no room for its small files."""
    if can_write(path, os.W_OK):
        yield path
        return
    with scratch() as folder:
        beside = Path(folder, path.name)
        beside.mkdir()
        for one in path.iterdir():
            if one.suffix in _LARGE:
                (beside / one.name).symlink_to(one.resolve())
            elif one.is_file() and not one.name.startswith("LOG"):
                shutil.copyfile(one, beside / one.name)
        yield beside


#: The form of a checkpoint's name: a plain file name on every system, and never a path.
NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

#: Files of a checkpoint that are summed up. Tables have checksums of their own, which leave out what a reader passes over, as
#: filters are; they are summed up too, unless they are so many bytes that this would hold up a crawl (10 ms).
_SUMMED = ("CURRENT", "MANIFEST-*", "OPTIONS-*", "*.json")
_TABLES = "*.sst"
_MOST_SUMMED = 16_000_000

#: Of a directory that its owner alone may read.
_PRIVATE = 0o700


def check_is_free(name: str, taken: Collection[str]) -> None:
    if name in taken:
        raise UsageError(f"there is a checkpoint {name!r} already; take another name")


def checkpoint_name() -> str:
    """A name for a checkpoint that has none: the time."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


class Places:
    """The names inside an agent's state directory."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.lock = state / "lock"
        self.ledger = state / "ledger"
        self.making = state / "making"
        self.made = state / "made"
        self.replaced = state / "replaced"
        self.checkpoints = state / "checkpoints"

    def recover(self) -> None:
        """Finish a replacement that a kill interrupted, drop what was only half made."""
        self.drop_link()
        shutil.rmtree(self.making, ignore_errors=True)
        crash_at(Point.RECOVERY)
        if self.made.exists():
            if self.ledger.exists():
                shutil.rmtree(self.replaced, ignore_errors=True)
                self.ledger.rename(self.replaced)
            crash_at(Point.RECOVERY)
            self.made.rename(self.ledger)
        crash_at(Point.RECOVERY)
        shutil.rmtree(self.replaced, ignore_errors=True)
        for half in self.checkpoints.glob(".*"):
            shutil.rmtree(half, ignore_errors=True)

    def drop_link(self) -> None:
        """Drop the link by which a process works with a ledger that it has made. A link that stays goes at the next opening."""
        if self.making.is_symlink():
            with contextlib.suppress(OSError):
                self.making.unlink()

    def close_to_others(self) -> None:
        """Let the owner alone read ledger and checkpoints. Raises OSError."""
        self.checkpoints.mkdir(exist_ok=True)
        for path in (self.ledger, self.checkpoints):
            path.chmod(_PRIVATE)

    def names(self) -> list[str]:
        found = [path for path in self.checkpoints.glob("[!.]*") if path.is_dir()]
        return [path.name for path in sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))]

    def check_name(self, name: str) -> None:
        """Refuse what no checkpoint can be called, and names that are taken. Raises UsageError."""
        if not NAME.fullmatch(name):
            raise UsageError(f"a checkpoint cannot be called {name!r}; take letters, digits, dot, dash, underscore")
        check_is_free(name, self.names())

    def add(self, name: str, snapshot: Callable[[Path], None]) -> Path:
        """Make a checkpoint. Raises UsageError: the name cannot be used, or is taken."""
        self.check_name(name)
        path = self.checkpoints / name
        self.checkpoints.mkdir(exist_ok=True)
        half = self.checkpoints / f".{name}"
        shutil.rmtree(half, ignore_errors=True)
        snapshot(half)
        tables = sum(path.stat().st_size for path in half.glob(_TABLES))
        sum_up(half, (*_SUMMED, _TABLES) if tables <= _MOST_SUMMED else _SUMMED)
        crash_at(Point.CHECKPOINT)
        half.rename(path)
        return path


def replace(places: Places, make: Callable[[Path], None], sheet: LedgerSheet, ends: Mapping[str, int]) -> None:
    """Put what `make` writes, with committed ends of files, in the place of a ledger that is closed, lost or damaged. Raises
    CrawlDirectoryError: the ledger is in use, or what was made is damaged."""
    with contextlib.closing(ProcessLock(places.lock)):
        places.recover()
        make(places.making)
        with contextlib.closing(RocksStore(places.making, sheet)) as store:
            batch = store.batch()
            for file, end in ends.items():
                batch.put("meta", END_PREFIX + file.encode(), str(end).encode())
            store.write(batch)
            store.sync()
        places.making.rename(places.made)
        places.recover()


def link(source: Path, target: Path) -> None:
    """A copy of a database. Its tables never change, so the copy shares them; the rest is small."""
    target.mkdir(mode=stat.S_IMODE(source.parent.stat().st_mode))
    for path in source.iterdir():
        if path.suffix == ".sst":
            try:
                os.link(path, target / path.name)
                continue
            except OSError:  # a file system without hard links
                pass
        if path.is_file() and path.name != SUMS:
            shutil.copy2(path, target / path.name)


def missing(state: Path) -> CrawlDirectoryError:
    return CrawlDirectoryError(f"there is no ledger in {state}; name the directory of a crawl")


# The opening of a ledger, and its secret.

#: So many times a ledger that is being written is opened to be looked at. Its writer replaces a file every few seconds at most,
#: and an opening takes milliseconds: the second try succeeds, and this only bounds the wait where something is very wrong.
_OPENINGS = 20


#: The file in a crawl's state that has the secret of all its ledgers, where agents share one.
_SHARED = "secret"

_SECRET_BYTES = 8


def open_beside(path: Path, open_it: Callable[[], RocksStore]) -> RocksStore:
    """Open a database to read it while its owner may be writing in `path`; `open_it` opens it, or links to its files.

    The library lists the files before it opens them, and the owner may replace one in between. A file that is missing is damage
    only where the directory stayed the same meanwhile. Raises CrawlDirectoryError: it is damaged, or cannot be read.
    """
    for _ in range(_OPENINGS - 1):
        before = _data(path)
        try:
            return _read_whole(path, open_it)
        except LedgerDamaged:
            if _data(path) == before:
                raise
    return _read_whole(path, open_it)


def _data(path: Path) -> set[str]:
    """The files of a database, without the diary of the library, which changes at each opening."""
    return {one.name for one in path.iterdir() if not one.name.startswith("LOG")}


def _read_whole(path: Path, open_it: Callable[[], RocksStore]) -> RocksStore:
    """Open a database to read it. Raises CrawlDirectoryError: also where its log was not read to the end."""
    check_log(path)
    behind = number_behind(path)
    store = open_it()
    if store.number_behind() >= behind or has_missing_sectors(path):
        return store
    store.close()
    raise LogDamaged(
        f"the ledger in {path} is damaged: a byte of its write-ahead log has changed, and later commits cannot be read; bring it "
        f"back from a copy, or go on from the commit before: gossamer resume {path.parents[2]} --accept-loss"
    )


def check_log(path: Path) -> None:
    """Notice a log that is gone: the library would take the store for one in which that was never written. Raises
    CrawlDirectoryError: that is so."""
    if (path / "CURRENT").exists() and not any(path.glob("*.log")):
        what = "its write-ahead log is missing"
    elif gap := missing_between(path):
        what = f"a write-ahead log is missing between {gap}"
    else:
        return
    raise damaged(path, what)


def share_secret(state: Path, secret: bytes | None = None) -> None:
    """Let all ledgers that are made in a crawl's `state` from now on have one secret, so that one can take from another: that of
    a ledger which is there already, or a new one. Call it before the first of several agents starts; it does nothing where it was
    called before. Raises OSError."""
    path = state / _SHARED
    if path.exists():
        return
    state.mkdir(parents=True, exist_ok=True)
    replace_file(path, os.urandom(_SECRET_BYTES) if secret is None else secret, mode=0o600)


def secret_of(state: Path) -> bytes:
    """The secret of a new ledger: the one that all share, where they share one."""
    try:
        shared = (state / _SHARED).read_bytes()
    except FileNotFoundError:
        return os.urandom(_SECRET_BYTES)
    if len(shared) != _SECRET_BYTES:
        raise CrawlDirectoryError(f"{state / _SHARED} is damaged; bring it back from a copy")
    return shared


def make_empty(create: Callable[[Path], RocksStore], path: Path, sheet: LedgerSheet) -> RocksStore:
    """An empty ledger of this version, with a secret; `create` makes its store in `path`, inside an agent's state. Returns the
    store, which is open."""
    secret = secret_of(path.parents[1])
    rule = domain_rule(sheet.division, sheet.together)
    with contextlib.ExitStack() as undone:
        store = undone.enter_context(contextlib.closing(create(path)))
        batch = store.batch()
        batch.put("meta", SECRET_KEY, secret)
        if rule != DomainRule():
            batch.put("meta", RULE_KEY, msgspec.json.encode(rule))
        schema.stamp(batch)
        store.write(batch)
        store.sync()
        undone.pop_all()
    return store


def begin(create: Callable[[Path], RocksStore], places: Places, sheet: LedgerSheet) -> RocksStore:
    """Make the first ledger of an agent; returns its store, which is open. The library goes on with the name by which it has opened
    the directory, so that leads there."""
    store = make_empty(create, places.making, sheet)
    try:
        crash_at(Point.RECOVERY)
        places.making.rename(places.ledger)
        crash_at(Point.RECOVERY)
        places.making.symlink_to(places.ledger.name)
    except OSError:
        store.close()
        if not places.ledger.exists():
            raise
        return create(places.ledger)  # a file system without links
    store.path = places.ledger
    return store


def read_keys(store: RocksStore, sheet: LedgerSheet) -> LedgerKeys:
    """The keys of a ledger, which go by its secret and its rule. Raises CrawlDirectoryError: its secret is lost; UsageError: the
    settings ask for another rule than the one that was fixed when it was made."""
    secret = store.get("meta", SECRET_KEY)
    if secret is None:
        raise CrawlDirectoryError(f"the ledger in {store.path} lost its secret; go back to a checkpoint")
    text, asked = store.get("meta", RULE_KEY), domain_rule(sheet.division, sheet.together)
    kept = DomainRule() if text is None else msgspec.json.decode(text, type=DomainRule)
    if asked not in (kept, DomainRule()):
        raise UsageError(
            f"the crawl in {sheet.directory} assigns each {kept.division} as a whole, and that is fixed; leave "
            "the ledger's settings `division` and `together` as they were"
        )
    return LedgerKeys(int.from_bytes(secret), kept)


def read_state(store: RocksStore) -> LedgerState:
    """The state that the last commit wrote; an empty one where there was none. Raises CrawlDirectoryError: it is damaged."""
    text = store.get("meta", STATE_KEY)
    try:
        return LedgerState(Marks(), {}) if text is None else msgspec.msgpack.decode(text, type=LedgerState)
    except ValueError as error:
        raise damaged(store.path, str(error)) from None


def read_ends(store: RocksStore) -> dict[str, int]:
    """File of the crawl directory -> its committed end. Raises CrawlDirectoryError: one is damaged."""
    try:
        ends = store.scan("meta", END_PREFIX, after(END_PREFIX))
        return {key[len(END_PREFIX) :].decode(): int(value) for key, value in ends}
    except ValueError as error:
        raise damaged(store.path, str(error)) from None
