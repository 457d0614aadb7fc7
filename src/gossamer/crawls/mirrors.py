"""The folder of `--mirror DIR`: judged before a crawl begins, noted in its directory, written when it stops.

Place in the flow: a crawl asks here. A worker writes it
(`gossamer.analysis.mirror_writing`), so that a crawl holds neither parser nor pages for it.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from gossamer.crawls.options import CrawlOptions
from gossamer.engine.worker import Use
from gossamer.engine.workers import WorkerFailed, answered
from gossamer.values.errors import UsageError

#: Where a crawl notes its folder.
_NOTE = "state/mirror.json"

#: The file by which a mirror is known.
MIRROR_MARK = ".gossamer-mirror.json"

#: What a mirror holds beside its documents.
_OWN = frozenset((MIRROR_MARK, "index.html"))


class MirrorMark(msgspec.Struct, frozen=True):
    """What lies in a mirror, so that nothing else in the folder is ever removed."""

    crawl: str
    """Absolute path of the crawl directory that it was made from."""
    files: tuple[str, ...]


class MirrorNote(msgspec.Struct, frozen=True):
    """Which folder a crawl writes."""

    folder: str
    """Absolute path."""


def read_note(directory: Path) -> Path | None:
    """The folder that a crawl writes when it stops; None where it has none."""
    try:
        return Path(msgspec.json.decode((directory / _NOTE).read_bytes(), type=MirrorNote).folder)
    except FileNotFoundError:
        return None


def check_folder(folder: Path, directory: Path) -> None:
    """Refuse a folder that holds anything but a mirror. Touches nothing.

    Raises:
        UsageError: it does; says what.
    """
    inside, outside = folder.absolute(), directory.absolute()
    if inside == outside or inside in outside.parents or outside in inside.parents:
        raise UsageError(f"{folder}: the mirror and the crawl directory cannot lie in each other; name another folder")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{folder} is not a folder; name another one")
    if not folder.exists() or not any(folder.iterdir()):
        return
    try:
        mark = msgspec.json.decode((folder / MIRROR_MARK).read_bytes(), type=MirrorMark)
    except (OSError, msgspec.DecodeError):
        raise UsageError(f"{folder} is not empty and holds no mirror; name another folder") from None
    known = _OWN | set(mark.files)
    strange = (path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())
    other = next((path for path in strange if path.relative_to(folder).as_posix() not in known), None)
    if other is not None:
        raise UsageError(f"{other} is not part of the mirror in {folder}; move it away, or name another folder")


class MirrorFolder:
    """The mirror of one crawl."""

    def __init__(self, directory: Path, options: CrawlOptions, report: Callable[[str], object]) -> None:
        """Name the folder.

        Raises:
            UsageError: the crawl keeps no archive to write it from.
        """
        self._directory = directory
        self._folder = Path(options.mirror) if options.mirror else None
        self._report = report
        if self._folder is not None and options.no_warc:
            raise UsageError("--mirror writes its files from the archive; leave out --no-warc")

    def check(self) -> None:
        """Refuse a folder that holds anything but a mirror. Touches nothing.

        Raises:
            UsageError: it does.
        """
        if self._folder is not None:
            check_folder(self._folder, self._directory)

    def register(self) -> None:
        """Note the folder: a crawl that goes on writes it again when it stops.

        Raises:
            OSError: it cannot be noted.
        """
        if self._folder is not None:
            path = self._directory / _NOTE
            fresh = path.with_name(f"{path.name}.new")
            fresh.write_bytes(msgspec.json.encode(MirrorNote(str(self._folder.absolute()))))
            fresh.replace(path)

    async def finish(self) -> None:
        """Write the folder, if the crawl has one. Reports what became of it."""
        if read_note(self._directory) is None:
            return
        use = Use("gossamer.analysis.mirror_writing:write_noted", niceness=10)
        try:
            for line in msgspec.msgpack.decode(await answered(use, str(self._directory)), type=list[str]):
                self._report(line)
        except WorkerFailed as failed:
            why = str(failed)[:300]
            self._report(f"the mirror could not be written ({why}); gossamer export --to folder does it later")
