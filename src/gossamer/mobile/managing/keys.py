"""What home has to know of a runtime elsewhere: the key that its owner gave us, and the pin of its own.

Place in the flow: links ask here when they are opened. Neither stands in `crawl.toml`: a key is a secret (design question 19).
"""

import os
import stat
import tomllib
from pathlib import Path

import msgspec

from gossamer.flow.quantities import written
from gossamer.model.errors import UsageError

#: Variables of the environment, for crawls with one runtime.
KEY, PIN = "GOSSAMER_RUNTIME_KEY", "GOSSAMER_RUNTIME_PIN"


class RuntimeKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of one runtime."""

    key: str
    pin: str = ""


def runtime_key(address: str, file: str) -> RuntimeKey:
    """The key and pin of the runtime at an address.

    Args:
        address: as `--runtime` has it.
        file: TOML, one table for each address; empty: the environment says them.

    Raises:
        UsageError: there is none; says what to do.
    """
    if not file:
        key = os.environ.get(KEY, "")
        if not key:
            raise UsageError(f"runtime {address}: its key is not known; set {KEY}, or name a file: --runtime-keys FILE")
        return RuntimeKey(key, os.environ.get(PIN, ""))
    known = _read(Path(file))
    found = known.get(address) or known.get(address.rstrip("/"))
    if found is None:
        raise UsageError(f'{file}: no key for {address}; add a table ["{address}"] with key = "..."')
    return found


def _read(path: Path) -> dict[str, RuntimeKey]:
    try:
        with path.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise UsageError(f"{path} holds keys, and others can read it; run: chmod 600 {path}")
            plain = tomllib.loads(written(file.read()))
        return msgspec.convert(plain, dict[str, RuntimeKey])
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f'{path}: not keys of runtimes: {error}; write ["https://ADDRESS"] and key = "..."') from None
