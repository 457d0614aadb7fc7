"""Small files that hold a person's own choices, in `$XDG_CONFIG_HOME/gossamer`: nobody else can read them.

Place in the flow: sites (:mod:`sites`) and saved questions (:mod:`tables`) are kept so. A file that cannot be read is an error and
not an empty one: the next save would lose what it holds.
"""

import contextlib
import os
import stat
from pathlib import Path
from typing import TypeVar

import msgspec

from gossamer.model.errors import UsageError

T = TypeVar("T", bound=msgspec.Struct)

#: Bytes of such a file that are read: more than what is kept can come to.
_MOST = 8 << 20


def config_folder() -> Path:
    """The folder of these files: `$XDG_CONFIG_HOME/gossamer`, usually `~/.config/gossamer`."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "gossamer"


def read_kept(path: Path, kind: type[T]) -> T:
    """What a file holds; the value without any choice where there is no file.

    Raises:
        UsageError: the file cannot be read, holds something else, or belongs to another user.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return kind()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "rb") as file:
            seen = os.fstat(file.fileno())
            if seen.st_uid != os.getuid() or not stat.S_ISREG(seen.st_mode):
                raise UsageError(f"{path} does not belong to you; remove it")
            return msgspec.json.decode(file.read(_MOST), type=kind)
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError(f"{path} is damaged ({error}); mend it or remove it") from None


def write_kept(path: Path, value: msgspec.Struct) -> None:
    """Put a value in the place of what a file holds, whole or not at all, readable for its owner alone.

    Raises:
        UsageError: it cannot be written.
    """
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # of a process with this number that was killed
            fresh.unlink()
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(value)))
        fresh.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
