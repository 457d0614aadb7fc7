"""Files that grow by groups, files that are replaced whole, and folders that vanish with their process.

Place in the flow: the archive and the row logs append with :class:`AppendFile`; notes, manifests and small tables are written
with :func:`replace_file`; sockets, spills of DuckDB and the parts of an index lie in scratch folders of the system's directory
for temporary files.

Promises: a group of bytes is on disk whole or not at all, as far as this process can see to it, and the next opener cuts back
what a kill tore; a small file is never seen half written; a scratch folder has a lock that dies with its process, and the
next process removes the folders of the dead.

A process that keeps something calls :data:`crash_at` at each :class:`Point`: there a test makes it kill itself, to prove that
nothing is lost (docs/design/kills.md). With `GOSSAMER_CRASH=POINT:N` in the environment it ends by SIGKILL at the N-th passing of
that point. Only tests set the variable; otherwise a point is a call of an empty function.
"""

import contextlib
import fcntl
import os
import resource
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Literal, NoReturn

from gossamer.engine.errors import SettingError, refusing
from gossamer.engine.sheet import written

# -- files that people write


def text_in(path: Path, kind: type[Exception], *, called: str = "", most: int = -1, remedy: str = "") -> str:
    """The text of a file, which messages call `called`. Raises `kind`: it cannot be read, has more than `most` bytes, against which
    there is a `remedy`, or is no UTF-8."""
    called = called or str(path)
    with refusing(kind, f"{called} cannot be read"), path.open("rb") as file:
        data = file.read(most + 1 if most >= 0 else -1)
    if 0 <= most < len(data):
        raise kind(f"{called}: more than {most} bytes{remedy}")
    try:
        return written(data)
    except ValueError as error:
        raise kind(f"{called}: {error}") from None


def toml_of(text: str, source: str, kind: type[Exception]) -> dict[str, Any]:
    """The values of a text in TOML, which messages call `source`. Raises `kind`: it is none; says where."""
    import tomllib  # few commands read any

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise kind(f"{source}: not TOML: {error}") from None
    except RecursionError:
        raise kind(f"{source}: not TOML: too many brackets within each other") from None


def user_folder(kind: Literal["cache", "config", "state"]) -> Path:
    """The folder of this program among a user's files of a kind (XDG): `$XDG_CACHE_HOME/gossamer`, usually `~/.cache/gossamer`."""
    usual = ".local/state" if kind == "state" else f".{kind}"
    return Path(os.environ.get(f"XDG_{kind.upper()}_HOME") or Path.home() / usual, "gossamer")


# -- files that only grow

#: Bytes read at first to find the end of the last whole line; doubled until it is found.
TAIL_BYTES = 1 << 16


class AppendFile:
    """One open file, unbuffered: when `append` returns, another process can read what it wrote."""

    __slots__ = ("_descriptor", "_is_named", "end", "path")

    def __init__(self, path: Path, *, fresh: bool, mode: int = 0o644) -> None:
        """Open `path`, creating it with `mode`, and its directories. `fresh` refuses a file that exists (FileExistsError)."""
        path.parent.mkdir(parents=True, exist_ok=True)
        # No O_APPEND: a write after a cut-back must land at `end`. No symbolic link is followed (fault 69).
        flags = os.O_RDWR | os.O_CREAT | (os.O_EXCL if fresh else 0) | getattr(os, "O_NOFOLLOW", 0)
        self._descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0), mode)
        self.path = path
        #: Its name is on the disk as well: a power cut may otherwise leave bytes that no directory knows.
        self._is_named = False
        self.end = os.lseek(self._descriptor, 0, os.SEEK_END)

    def append(self, data: bytes, *, sync: bool = False) -> int:
        """Write all of `data`; returns the offset where it begins. Raises OSError: nothing of it was kept."""
        start = self.end
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
            if sync:
                self.sync()
        except OSError:
            self.cut_back(start)
            raise
        self.end = start + len(data)
        return start

    def sync(self) -> None:
        os.fsync(self._descriptor)
        if not self._is_named:
            sync_folder(self.path.parent)
            self._is_named = True

    def cut_back(self, end: int) -> None:
        os.ftruncate(self._descriptor, end)
        os.lseek(self._descriptor, end, os.SEEK_SET)
        self.end = end

    def tail(self, length: int) -> bytes:
        start = max(0, self.end - length)
        os.lseek(self._descriptor, start, os.SEEK_SET)
        data = os.read(self._descriptor, self.end - start)
        os.lseek(self._descriptor, self.end, os.SEEK_SET)
        return data

    def end_of_lines(self) -> int:
        """The end of the last whole line: a line that a kill tore begins there."""
        length = TAIL_BYTES
        while True:
            tail = self.tail(length)
            whole = tail.rfind(b"\n") + 1
            if whole or length >= self.end:
                return self.end - len(tail) + whole
            length *= 2

    def close(self) -> None:
        os.close(self._descriptor)


class LastWrites:
    """The ends of files before the last group was written to them, so that a failed commit can take it back."""

    def __init__(self) -> None:
        self._before: dict[AppendFile, int] = {}

    def begin(self) -> None:
        self._before.clear()

    def about_to(self, file: AppendFile) -> None:
        self._before.setdefault(file, file.end)

    def take_back(self) -> None:
        """Drop what was written since :meth:`begin`."""
        for file, end in self._before.items():
            file.cut_back(end)
        self._before.clear()


#: Bytes of a file that are copied at once.
PIECE = 1 << 20


def pieces_of(file: BinaryIO, length: int) -> Iterator[bytes]:
    """So many bytes of a file from where it stands, in pieces; fewer where it ends before."""
    while length > 0 and (piece := file.read(min(length, PIECE))):
        length -= len(piece)
        yield piece


# -- files that are replaced as a whole


class NotPrivate(Exception):
    """Another user owns a file, or may read it."""


@contextlib.contextmanager
def private(path: Path, closed: int = 0o077) -> Iterator[BinaryIO]:
    """Read a file of this user that has none of the rights in `closed`. Raises OSError, NotPrivate."""
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(number, "rb") as file:
        seen = os.fstat(number)
        if seen.st_uid != os.getuid() or stat.S_IMODE(seen.st_mode) & closed or not stat.S_ISREG(seen.st_mode):
            raise NotPrivate
        yield file


def replace_private(path: Path, data: bytes) -> None:
    """Put data in the place of what a file holds, whole or not at all, readable for its owner alone."""
    replace_file(path, data, sync=True, mode=0o600, ending=str(os.getpid()))


@contextlib.contextmanager
def in_place_of(path: Path) -> Iterator[Path]:
    """The name under which this process writes what is put in the place of `path` at the end: another process may write it, too.
    Nothing is left under that name if that fails."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        yield fresh
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def replace_file(
    path: Path, data: bytes | bytearray, *, sync: bool = False, mode: int = 0o666, ending: str = "new"
) -> None:
    """Put a file in the place of another, whole or not at all; a reader sees one of the two.

    Args:
        path: of the file. Its folder is there.
        data: what it is to hold.
        sync: wait for the disk, so that it survives a power cut.
        mode: the rights of the file.
        ending: behind the name of the file beside it that is written first.

    Raises:
        OSError: it cannot be written; the one before stays.
    """
    beside = path.with_name(f"{path.name}.{ending}")
    beside.unlink(missing_ok=True)  # of a process that was killed
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as out:
            out.write(data)
            out.flush()
            if sync:
                os.fsync(out.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    if sync:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


#: How the names of these folders begin.
PREFIX = "gossamer-"

_LOCK = "lock"

#: Bytes of address space below which the libraries that store and ask cannot start a thread, and end their process without a word:
#: a crawl with its tables ran with 0.9 GB and died with 0.7 (x86-64, 2 cores).
LEAST_SPACE = 1_280_000_000


@contextlib.contextmanager
def scratch(prefix: str = PREFIX, place: Path | None = None, *, shared: bool = False) -> Iterator[str]:
    """A new folder of this process' own, removed at the end; those of processes that were killed go first.

    Args:
        prefix: how its name begins: as :data:`PREFIX` or longer.
        place: where it is made; the system's own directory for temporary files unless told.
        shared: other processes may hold it as well (:func:`joined`); the last one that leaves removes it.

    Raises:
        OSError: it cannot be made.
    """
    sweep(place)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        try:
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # a sweep took it in the instant before it was held; so it may below
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        if (folder / _LOCK).exists():
            break
        os.close(descriptor)
    try:
        yield str(folder)
    finally:
        _leave(folder, descriptor)


@contextlib.contextmanager
def joined(folder: Path) -> Iterator[Path | None]:
    """Hold a folder that :func:`scratch` has made to be shared, so that it is not swept; None where it is gone."""
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    is_held = False
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        is_held = (folder / _LOCK).exists()
    if not is_held:
        os.close(descriptor)
        yield None
        return
    try:
        yield folder
    finally:
        _leave(folder, descriptor)


def _leave(folder: Path, descriptor: int) -> None:
    """Let go of a folder; its last holder removes it."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    os.close(descriptor)


def sweep(place: Path | None = None) -> None:
    """Remove our folders in `place` (the system's own unless told) that no process holds."""
    for folder in (place or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.lstat().st_uid != os.getuid():
                continue
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


#: Seconds for which a process may hold a lock under which it does two things at once: one that holds it longer is suspended.
SUSPENDED_AFTER = 10.0

#: Seconds between two tries to have a lock.
_TRY = 0.01


def take_lock(descriptor: int, patience: float) -> bool:
    """Lock an open file alone; false where another process holds it for so many seconds."""
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > end:
                return False
            time.sleep(_TRY)
        else:
            return True


def too_little_memory() -> str:
    """Why this process cannot open a store: the system gives it too little memory; empty where it does not."""
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space == resource.RLIM_INFINITY or space >= LEAST_SPACE:
        return ""
    least = LEAST_SPACE // 1024
    return f"the system lets this process have {space // 1024} kB of memory, and it needs {least}; raise it: ulimit -v {least}"


# -- crash points

#: The variable of the environment.
VARIABLE = "GOSSAMER_CRASH"


class Point(StrEnum):
    """Places where a process can be made to die."""

    BEGINNING = "beginning"
    ARCHIVE_WRITTEN = "archive-written"
    BEFORE_COMMIT = "before-commit"
    AFTER_COMMIT = "after-commit"
    CHECKPOINT = "checkpoint"
    RESTORING = "restoring"
    RECOVERY = "recovery"
    DELETION = "deletion"
    JOINING = "joining"


def _kill() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def crasher(text: str, kill: Callable[[], object] = _kill) -> Callable[[Point], None]:
    """The function that is called at each point.

    Args:
        text: what the environment says, `POINT:N`; empty for nothing.
        kill: what happens at the N-th passing.

    Raises:
        SettingError: the text is something else.
    """
    if not text:
        return lambda point: None  # no point was asked for
    name, _, number = text.partition(":")
    if name not in set(Point) or not number.isdigit() or int(number) < 1:
        known = ", ".join(Point)
        raise SettingError(f"{VARIABLE} is {text!r}; it must be POINT:N with N from 1, and one of the points {known}")
    left = int(number)

    def at(point: Point) -> None:
        nonlocal left
        if point == name:
            left -= 1
            if not left:
                kill()

    return at


#: Call this where a process may die.
crash_at = crasher(os.environ.get(VARIABLE, ""))
