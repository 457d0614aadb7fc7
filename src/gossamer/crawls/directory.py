"""The directory of a crawl: judged before anything is touched, made, replaced, given up again.

Place in the flow: :mod:`plan` reads here the wiring of a crawl that is resumed, and commands read settings in it. :mod:`crawl` asks
what may be done with the directory that the options name, and writes the wiring as run into it: that file makes a directory a
crawl.
"""

import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.options import CrawlOptions
from gossamer.engine.errors import BrokenWiring, refusing
from gossamer.engine.files import AppendFile, Point, crash_at
from gossamer.engine.graph import Graph
from gossamer.engine.sheet import Sheet, metas, properties
from gossamer.engine.wiring import Wiring, read, write
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.storage.recovery import files_of, in_store, is_away
from gossamer.storage.rewrite_journals import refuse_unfinished, seek_again
from gossamer.storage.tables.manifest import notes_of, write_notes
from gossamer.storage.tables.places import CRAWL_FILE, TRIPLES, begun_crawl, converting
from gossamer.values.errors import CrawlDirectoryError, LogDamaged, UsageError

# The wiring that the directory of a crawl keeps.


def kept_wiring(output: str) -> Wiring:
    """The wiring that the crawl of a directory ran with last. Raises UsageError: no directory is named, or it holds no crawl;
    CrawlDirectoryError: its wiring is missing or damaged; WiringError: its wiring says what cannot be."""
    if not output:
        raise UsageError("--resume needs the directory of the crawl; name it with -o")
    from gossamer.crawls.old_wirings import completed  # a crawl that is new has none

    return completed(read_wiring(begun_crawl(output)))


def read_wiring(directory: Path) -> Wiring:
    """The wiring that a crawl directory keeps, as it stands there. Raises CrawlDirectoryError: it is missing, empty or cut;
    WiringError: it says what cannot be."""
    path = directory / CRAWL_FILE
    try:
        with refusing(CrawlDirectoryError, f"{path} cannot be read", "; bring it back from a copy"):
            if not path.stat().st_size:
                raise BrokenWiring(f"{path} is empty")
        return read(path)
    except BrokenWiring as error:
        advice = "bring it back from a copy" if os.access(path, os.R_OK) else "see to your rights there"
        raise CrawlDirectoryError(f"{error}; {advice}") from None


# A crawl whose ledger is lost begins again beside its files when the user asks for it. A ledger cannot be made again of the files:
# what was queued stands in it alone. So every URL is fetched again from the seeds on, and all whole records and rows stay, as
# after going back to a checkpoint that held nothing.

#: A store beside a ledger, which knows URLs by itself: they would not be fetched again.
_SIEVE = "sieve"

#: The name of a lost ledger from then on, with a number.
_ASIDE = "damaged"


def begin_anew(directory: Path, graph: Graph) -> Iterator[str]:
    """Put an empty ledger in the place of one that is lost, and say so; nothing happens where none is. Raises
    CrawlDirectoryError: it cannot: several agents share the crawl, or it has a store of seen URLs besides."""
    ledgers = _ledgers(directory, graph)
    for ledger in ledgers:
        sheet, damage = ledger.sheet, damage_of(ledger)
        if damage is None:
            continue
        others = {path.parent.name for path in (directory / STATE_DIRECTORY).glob("*/ledger")} - {sheet.agent}
        if len(ledgers) > 1 or others:
            raise CrawlDirectoryError(f"{damage}. One of several ledgers cannot begin again: bring it back from a copy")
        if (ledger.places.state / _SIEVE).exists():
            raise CrawlDirectoryError(
                f"{damage}. The sieve has URLs that would not be fetched again: begin a new crawl"
            )
        if isinstance(damage, LogDamaged):
            files = _replaced(directory, ledger, ledger.go_back)
            yield f"the crawl goes on from the last commit of {sheet.agent} that can be read"
            yield f"fetching the URLs of later commits again; {files} files of archive and logs stay"
            continue
        files = begin_ledger_anew(directory, ledger)
        aside = next(reversed(lost_ledgers(directory)), None)
        yield f"the crawl goes on without the ledger of {sheet.agent}" + (f", which is in {aside}" if aside else "")
        yield f"fetching every URL again, from the seeds on; {files} files of archive and logs stay"


def _ledgers(directory: Path, graph: Graph) -> list[RocksLedger]:
    sheets = (node.sheet for node in graph.providers.values() if isinstance(node.sheet, LedgerSheet))
    return [RocksLedger(msgspec.structs.replace(sheet, directory=str(directory))) for sheet in sheets]


def refuse_unfinished_work(directory: Path, graph: Graph, *, accept: bool) -> None:
    """Refuse a crawl that is half deleted or trimmed; not where a person goes on without its ledger, which that would need.
    Raises CrawlDirectoryError: that is so."""
    if not (accept and any(damage_of(ledger) for ledger in _ledgers(directory, graph))):
        refuse_unfinished(directory)


def damage_of(ledger: RocksLedger) -> CrawlDirectoryError | None:
    """Why a ledger cannot be opened any more; None where it can."""
    places = ledger.places
    if places.ledger.is_dir():
        return ledger.damage()
    if places.made.exists() or places.replaced.exists():
        return None  # a kill interrupted a replacement, which the ledger finishes itself
    return CrawlDirectoryError(f"the ledger in {places.ledger} is missing")


def begin_ledger_anew(directory: Path, ledger: RocksLedger) -> int:
    """Put an empty ledger in the place of a lost one; returns how many files of its agent stay. Raises CrawlDirectoryError: it
    cannot be written."""

    def begin(ends: Mapping[str, int]) -> None:
        if (left := ledger.places.ledger).exists():
            names = (left.with_name(f"{_ASIDE}-{number}") for number in itertools.count(1))
            left.rename(next(name for name in names if not name.exists()))
        ledger.begin_anew(ends)

    return _replaced(directory, ledger, begin)


def _replaced(directory: Path, ledger: RocksLedger, replace: Callable[[Mapping[str, int]], None]) -> int:
    """Replace a ledger by one that goes on behind all whole records and rows of its agent; returns how many files they are in."""
    seek_again(directory)
    ends = dict(_ends(directory, ledger.sheet.agent))
    replace(ends)
    # The process that wrote the last records may have died before it wrote their rows, of which the index is made otherwise.
    with converting(directory, wait=True):
        write_notes(directory, msgspec.structs.replace(notes_of(directory), index=()))
    return len(ends)


def lost_ledgers(directory: Path) -> list[Path]:
    """The remains of ledgers that were lost: folders, for a closer look."""
    return sorted((directory / STATE_DIRECTORY).glob(f"*/{_ASIDE}-*"))


def _ends(directory: Path, agent: str) -> Iterator[tuple[str, int]]:
    """The files of an agent, and where the last whole record or line of each ends."""
    from gossamer.storage.archive.reading import Gap, scan  # a crawl without losses pays for nothing of this

    for path in files_of(directory, agent):
        if is_away(path) or in_store(path):
            continue
        if path.suffix == ".gz":
            end = max((found.end for found in scan(path) if not isinstance(found, Gap)), default=0)
        else:
            file = AppendFile(path, fresh=False)
            end = file.end_of_lines()
            file.close()
        if end:
            yield path.relative_to(directory).as_posix(), end


#: The only file in the directory of a run that was killed before that was a crawl.
_UNFINISHED = f"{CRAWL_FILE}.new"

#: Marks a directory in which notes are written that have to be there before it is a crawl; and where they lie.
_BEGINNING = ".beginning"
_NOTES = ("state", TRIPLES)


class NameTaken(UsageError):
    """Another process has taken the directory since its name was found free: the next free name will do."""


class CrawlPlace:
    """One directory, and what the options allow to be done with it."""

    def __init__(self, path: Path, options: CrawlOptions, *, is_found: bool = False) -> None:
        """`is_found` says that no person named it: it was the first free name."""
        self.path = path
        self._is_found = is_found
        self._options = options
        self._aside = path.with_name(f"{path.name}.replaced")
        self._going = path.with_name(f".{path.name}.removed")
        self.holds_another = False
        """The crawl that is being replaced stands aside."""
        self._was_free = False
        """Nothing was there when this was checked."""

    def check(self) -> None:
        """Refuse what is no place for this crawl. Touches nothing. Raises UsageError: it holds something else, or a crawl that
        is neither to be resumed nor replaced; NameTaken: it was free when its name was found; CrawlDirectoryError: it holds a
        crawl that is to be replaced, and runs."""
        path = self.path
        self._was_free = not path.exists()
        if self._was_free and path.is_symlink():
            raise UsageError(f"{path} is a link that leads nowhere; remove it, or name another directory with -o")
        if self._is_found and not self._was_free:
            raise NameTaken(f"{path} was taken by another process")
        if self._options.resume and self._options.overwrite:
            raise UsageError("--resume goes on with a crawl, and --overwrite removes it; leave one of them out")
        if self._was_free or self._options.resume:
            return
        if not path.is_dir():
            raise UsageError(f"{path} is a file; name a directory with -o")
        if (path / CRAWL_FILE).exists():
            if not self._options.overwrite:
                self._check_free()
                raise UsageError(
                    f"{path} holds a crawl; go on with it (gossamer resume {path}), name another directory with -o, "
                    "or replace it with --overwrite"
                )
            self._check_idle()
            return
        # Runs that were killed left these names in a directory that is no crawl yet.
        own = (_UNFINISHED, _BEGINNING, *_NOTES) if (path / _BEGINNING).exists() else (_UNFINISHED,)
        if any(entry.name not in own for entry in path.iterdir()):
            raise UsageError(f"{path} is not empty and holds no crawl; name another directory with -o")

    def make(self, wiring: Wiring, graph: Graph, note: Callable[[], None]) -> bool:
        """Make the directory and write what is about to run into it: True if it was not there before. A crawl that is replaced
        stands aside until the new one has begun. `note`: writes what a new crawl has to know beside its wiring; a kill leaves
        both or no crawl. Raises UsageError: it cannot be written; NameTaken: it was free when it was checked, and is not now."""
        path = self.path
        shutil.rmtree(self._going, ignore_errors=True)  # of a run that was killed while it removed what came to nothing
        try:
            if self._options.overwrite and (path / CRAWL_FILE).exists():
                self._check_idle()  # once more: seeds were looked up meanwhile
                path.rename(self._aside)
                self.holds_another = True
            made = not path.exists()
            path.mkdir(parents=True, exist_ok=not self._was_free)
            if self._options.resume:
                (path / _BEGINNING).unlink(missing_ok=True)
            else:
                mark = self.path / _BEGINNING
                mark.touch()
                for name in _NOTES:  # those of a run that was killed here say what that one was told
                    shutil.rmtree(self.path / name, ignore_errors=True)
                (self.path / _NOTES[0]).mkdir()
                try:
                    note()
                except UsageError:
                    self.settle(made, has_begun=False)
                    raise
                crash_at(Point.BEGINNING)
                self.write(wiring, graph)
                crash_at(Point.BEGINNING)
                mark.unlink()
        except FileExistsError:
            raise NameTaken(
                f"{path} was taken by another process meanwhile; try again, or name another with -o"
            ) from None
        except OSError as error:
            why = error.strerror or error
            raise UsageError(f"{path} cannot be written: {why}; name another directory with -o") from None
        return made

    def _check_idle(self) -> None:
        if self._aside.exists():
            raise UsageError(
                f"{self._aside} is in the way: a run that was killed left it, or it is yours; move it, and try again"
            )
        self._check_free()

    def _check_free(self) -> None:
        from gossamer.crawls.control.client import holder  # few crawls find another in their place

        if process := holder(self.path):
            raise CrawlDirectoryError(f"{self.path} is in use by process {process}; stop that one first")

    def write(self, wiring: Wiring, graph: Graph) -> None:
        """Write the wiring that runs from now on; where it holds a password, for its owner alone. Raises OSError: it cannot be
        written; the old file stays."""
        units = (
            *((plan.settings, graph.components[name].sheet) for name, plan in wiring.components.items()),
            *((plan.settings, graph.providers[name].sheet) for name, plan in wiring.providers.items()),
        )
        has_secrets = any(given.get(name) for given, sheet in units if given for name in secrets_of(type(sheet)))
        write(self.path / CRAWL_FILE, wiring, is_private=has_secrets)

    @property
    def told_vain(self) -> str:
        """The fate of the directory when nothing came, in words."""
        rest = f"{self.path} keeps what it held" if self.holds_another else f"{self.path} is removed"
        return f"nothing came, so nothing is kept: {rest}"

    def settle(self, made: bool, has_begun: bool) -> None:
        """A crawl that could not begin, or came to nothing, leaves no directory; the one that it was to replace comes back."""
        if made and not has_begun:
            # First out of the way, whole: a directory that is half removed would be neither a crawl nor free for one.
            self.path.rename(self._going)
            shutil.rmtree(self._going, ignore_errors=True)
            if self.holds_another:
                self._aside.rename(self.path)
        elif self.holds_another:
            shutil.rmtree(self._aside, ignore_errors=True)
        self.holds_another = False


def secrets_of(sheet: type[Sheet]) -> Iterator[str]:
    """The names of settings that hold secrets. Annotations are read as they stand: every crawl asks this of its units before its
    first request, and to evaluate them takes 5 ms."""
    hints: dict[str, Any] = {}
    for base in reversed(sheet.__mro__):
        hints |= getattr(base, "__annotations__", {})  # not of `vars`: Python 3.14 makes them when they are asked for
    if any(isinstance(hint, str) for hint in hints.values()):  # a module whose annotations are not evaluated at all
        yield from (prop.name for prop in properties(sheet) if prop.secret)
        return
    for name, hint in hints.items():
        if any(meta.extra and meta.extra.get("secret") for meta in metas(hint)):
            yield name
