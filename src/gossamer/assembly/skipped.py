"""Items that a component could not handle, set aside for a person to look at: one line each in `logs/skipped.jsonl`.

Place in the flow: a component with `on_error = "skip"` raised; the item went on without it, and its error comes here.
"""

import os
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from gossamer.flow.wiring import MAIN_PROCESS
from gossamer.stores.printable import printable

#: Bytes of an item that are written whole: a visit with a page of the usual size. Of a larger one its beginning is shown.
WHOLE_ITEM = 256_000
SHOWN = 2_000

#: Characters of a traceback: the innermost frames, which say where it happened.
TRACEBACK = 8_000


def setting_aside(directory: Path, process: str = MAIN_PROCESS) -> Callable[[str, Any, Exception], None]:
    """What keeps such items of one process of the crawl in a directory."""
    name = "skipped.jsonl" if process == MAIN_PROCESS else f"skipped-{process}.jsonl"
    path = directory / "logs" / name

    def aside(unit: str, item: Any, error: Exception) -> None:
        entry = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "unit": unit,
            "error": f"{type(error).__name__}: {error}",
            "traceback": "".join(traceback.format_exception(error))[-TRACEBACK:],
            "item": _written(item),
        }
        path.parent.mkdir(exist_ok=True)
        with open(path, "ab", opener=_for_the_owner) as log:
            log.write(printable(msgspec.json.encode(entry)) + b"\n")

    return aside


def _for_the_owner(path: str, flags: int) -> int:
    """An item may hold a request, and what it sends opens pages."""
    return os.open(path, flags, 0o600)


def _written(item: Any) -> Any:
    try:
        text = msgspec.json.encode(item, enc_hook=repr)
    except (TypeError, ValueError):
        text = b""
    return msgspec.Raw(text) if 0 < len(text) <= WHOLE_ITEM else f"{item!r:.{SHOWN}}"
