"""Where a person has put the units of a graph in its picture: remembered for this user, outside of every crawl.

Place in the flow: :mod:`app` reads and writes a layout for the page of the topology.
"""

import contextlib
import os
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.model.errors import UsageError

#: Units of a picture that are remembered, and how far from its middle one may lie.
MOST, FAR = 5_000, 1_000_000

#: Layouts that are kept; the one that was not changed for the longest time goes.
KEPT = 500

Place = Annotated[float, msgspec.Meta(ge=-FAR, le=FAR)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]


class Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A picture as somebody left it."""

    places: Annotated[dict[Name, tuple[Place, Place]], msgspec.Meta(max_length=MOST)] = {}
    """Unit -> x and y."""
    is_still: bool = False
    """The picture does not arrange itself."""


def layouts_folder() -> Path:
    """Where layouts lie: `$XDG_STATE_HOME/gossamer/layouts`."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "gossamer" / "layouts"


def read_layout(folder: Path, key: str) -> Layout:
    """The layout of a crawl, by its key; an empty one where none is kept that can be read."""
    try:
        return msgspec.json.decode(_file(folder, key).read_bytes(), type=Layout)
    except (OSError, msgspec.MsgspecError):
        return Layout()


def write_layout(folder: Path, key: str, body: bytes) -> Layout:
    """Keep a layout, given as JSON.

    Raises:
        UsageError: it is none, or cannot be kept.
    """
    try:
        layout = msgspec.json.decode(body, type=Layout)
    except msgspec.MsgspecError as error:
        raise UsageError(f"layout: {error}") from None
    path = _file(folder, key)
    fresh = path.with_suffix(f".{os.getpid()}")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.write_bytes(msgspec.json.encode(layout))
        fresh.replace(path)
        _forget(folder)
    except OSError as error:
        raise UsageError(f"the layout cannot be kept in {folder}: {error.strerror}") from None
    return layout


def _file(folder: Path, key: str) -> Path:
    """A key is made of letters, digits, dots and hyphens (:func:`gossamer.dashboard.crawls.key_of`), and ends with a hash."""
    return folder / f"{key}.json"


def _forget(folder: Path) -> None:
    files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in files[KEPT:]:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
