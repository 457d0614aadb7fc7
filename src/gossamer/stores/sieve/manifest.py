"""The manifest: which runs stand, and how far the offers are merged. One small file, replaced as a whole.

Whatever it does not name was left by a merge that did not end, and is removed.
"""

from pathlib import Path

import msgspec

from gossamer.model.errors import CrawlDirectoryError
from gossamer.stores.replacing import replace_file
from gossamer.stores.sieve.runs import RunEntry

FILE = "manifest.json"

#: The form of the files. A newer one is refused.
VERSION = 1


class SieveManifest(msgspec.Struct, frozen=True):
    """What stands."""

    secret: str
    """Key of the fingerprints, in hexadecimal."""
    merged: int = 0
    """The last log of offers that is merged; later ones wait."""
    runs: tuple[RunEntry, ...] = ()
    mark: int = 0
    """How far the ledger was, at least: an older one went back to a checkpoint."""
    version: int = VERSION


def read(directory: Path) -> SieveManifest | None:
    """The manifest of a sieve; None where there is no sieve yet.

    Raises:
        CrawlDirectoryError: it is damaged, or of a newer version.
    """
    path = directory / FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        if any(directory.glob("run-*")):
            raise CrawlDirectoryError(f"{path} is missing; go back to a checkpoint") from None
        return None
    try:
        found = msgspec.json.decode(data, type=SieveManifest)
    except msgspec.DecodeError as error:
        raise CrawlDirectoryError(f"{path} is damaged: {error}; go back to a checkpoint") from None
    if found.version > VERSION:
        raise CrawlDirectoryError(
            f"{path} is of version {found.version}, this program knows {VERSION}; use a newer one"
        )
    return found


def write(directory: Path, manifest: SieveManifest, *, sync: bool) -> None:
    """Replace the manifest. With `sync`, it and the names of the other files survive a power cut."""
    replace_file(directory / FILE, msgspec.json.format(msgspec.json.encode(manifest)), sync=sync)
