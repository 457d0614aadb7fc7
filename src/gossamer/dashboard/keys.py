"""The two keys of a user's dashboards: one for everything, one for looking. They lie in a file that nobody else can read."""

import enum
import hmac
import os
import secrets
import stat
from pathlib import Path

import msgspec

from gossamer.model.errors import UsageError

#: Random bytes of a key.
LENGTH = 32


class Access(enum.IntEnum):
    """What somebody may do."""

    NOTHING = 0
    READ = 1
    FULL = 2


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys."""

    full: str
    read: str

    def access(self, key: str) -> Access:
        """What somebody may do who has this key; takes as long for a wrong one as for a right one."""
        given = key.encode("utf-8", "replace")
        is_full = hmac.compare_digest(given, self.full.encode())
        is_read = hmac.compare_digest(given, self.read.encode())
        return Access.FULL if is_full else Access.READ if is_read else Access.NOTHING


def keys_file() -> Path:
    """Where the keys lie: `$XDG_STATE_HOME/gossamer/dashboard-keys.json`."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "gossamer" / "dashboard-keys.json"


def read_keys(path: Path) -> Keys:
    """The keys in this file; where there is none it is made, with new ones.

    Raises:
        UsageError: the file cannot be read or made, holds something else, or others can read it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _make(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            seen = os.fstat(file.fileno())
            if seen.st_uid != os.getuid() or stat.S_IMODE(seen.st_mode) & 0o077 or not stat.S_ISREG(seen.st_mode):
                raise UsageError(f"{path} holds keys, and others can read it; remove it, and new keys are made")
            found = msgspec.json.decode(file.read(4096), type=Keys)
    except OSError as error:
        raise UsageError(f"the keys of the dashboard cannot be kept in {path}: {error.strerror}") from None
    except msgspec.MsgspecError:
        raise UsageError(f"{path} holds no keys of a dashboard; remove it, and new keys are made") from None
    if min(len(found.full), len(found.read)) < LENGTH or found.full == found.read:
        raise UsageError(f"the keys in {path} are too short or alike; remove it, and new keys are made")
    return found


def _make(path: Path) -> None:
    """Whole or not at all, and never over a file that another dashboard has just made."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(Keys(secrets.token_urlsafe(LENGTH), secrets.token_urlsafe(LENGTH))))
        try:
            path.hardlink_to(fresh)
        except FileExistsError:
            pass  # another one was quicker: both go by its keys
    finally:
        fresh.unlink()
