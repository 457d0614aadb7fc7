"""A crawl at rest whose archive and tables somebody changes: what `gossamer delete` and `gossamer trim` have in common.

Place in the flow: :mod:`gossamer.analysis.deleting` and :mod:`gossamer.analysis.trimming` open a crawl by :func:`at_rest`,
make it whole by :func:`bring_back` before they change anything, and let tables, index and what follows the crawl catch up
afterwards.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from gossamer.crawls.control.standing import ledgers_of
from gossamer.crawls.damage import accept_losses, damages_of
from gossamer.crawls.directory import read_wiring
from gossamer.crawls.followers import Following
from gossamer.crawls.options import CrawlOptions
from gossamer.query.convert import convert
from gossamer.query.removing import leftovers
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.recovery import is_away, refusal, restore
from gossamer.storage.tables.manifest import are_tables, damaged_tables, known_notes, notes_of, write_notes
from gossamer.storage.tables.places import converting, replacing
from gossamer.values.errors import CrawlDirectoryError, GossamerError


@contextmanager
def at_rest(
    directory: Path, verb: str, *, accept: bool, remark: Callable[[str], object]
) -> Iterator[list[RocksLedger]]:
    """Hold the ledgers of a crawl, so that no other program works on it, and be the only one that replaces its tables.

    Args:
        directory: the crawl directory.
        verb: what the caller does, as `delete`: for what a person is told.
        accept: give up what is lost or damaged, so that the caller can do its work on what is left.
        remark: takes a line for each loss that is given up.

    Raises:
        CrawlDirectoryError: the crawl runs, or another program replaces its tables. Or what the caller does was not finished.
    """
    finish = f"gossamer {verb} {directory}"
    with ExitStack() as stack:
        ledgers = ledgers_of(directory)
        for ledger in ledgers:
            ledger.open()
            stack.callback(_close, ledger)
        if not stack.enter_context(replacing(directory)):
            raise CrawlDirectoryError(
                f"the tables of {directory} are being processed again; {verb} when that has ended"
            )
        try:
            if accept:
                with converting(directory, wait=True):
                    for loss in accept_losses(directory, ledgers).what:
                        remark(f"{verb} goes on, although {loss}")
            yield ledgers
        except GossamerError:
            raise
        except Exception as error:  # whatever it was, the journal knows how far it came
            why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            raise CrawlDirectoryError(
                f"{verb} came to no end ({why}); when that is mended, finish: {finish}"
            ) from error


def _close(ledger: RocksLedger) -> None:
    """Leave a ledger as it was found: only a crawl can say that nothing is in flight any more."""
    if ledger.is_clean:
        ledger.close()
    else:
        ledger.abandon()


def ends_of(ledgers: list[RocksLedger]) -> dict[str, int]:
    """How far each file is committed: path inside the crawl directory -> byte."""
    return {file: end for ledger in ledgers for file, end in ledger.committed_ends().items()}


def refuse_damaged(directory: Path, verb: str, damages: Sequence[object]) -> None:
    """Refuse a crawl that is not whole, and say how to go on without what is lost.

    Raises:
        CrawlDirectoryError: there are damages.
    """
    if damages:
        raise refusal(directory, damages, f"gossamer {verb} {directory} --accept-loss")


def convert_whole(directory: Path, verb: str, remark: Callable[[str], object]) -> None:
    """Make tables of all rows, and refuse tables that are not what was written. Raises CrawlDirectoryError."""
    if told := convert(directory, ended=True).told:
        remark(told)
    refuse_damaged(directory, verb, damaged_tables(directory, notes_of(directory), deep=True))


def bring_back(directory: Path, verb: str, ledgers: list[RocksLedger]) -> None:
    """Cut off what was never committed.

    Raises:
        CrawlDirectoryError: the crawl is not whole, or a part of it lies on a disk that is not there.
    """
    ends = ends_of(ledgers)
    damages = damages_of(directory, ends)
    refuse_damaged(directory, verb, [*damages.files, *damages.tables])
    away = next((file for file in ends if is_away(directory / file)), "")
    if away:
        raise CrawlDirectoryError(f"{directory / away} lies on a disk that is not there; bring the disk back first")
    providers = read_wiring(directory).providers.values()
    disks = [Path(str(disk)) for node in providers for disk in node.settings.get("disks", ())]
    for ledger in ledgers:
        restore(
            directory,
            ledger.committed_ends(),
            ledger.sheet.agent,
            disks,
            others=ends_of([one for one in ledgers if one is not ledger]),
            are_tables=lambda missing: are_tables(known_notes(directory), missing),
        )


def index_again(directory: Path, finish: str) -> None:
    """Make the index again from the archive, and remove the files that newer tables replace.

    Args:
        directory: the crawl directory.
        finish: the command that finishes what the caller does.

    Raises:
        CrawlDirectoryError: another program reads the tables, so that old files of them had to stay.
    """
    with converting(directory, wait=True):
        write_notes(directory, msgspec.structs.replace(notes_of(directory), index=()))
    convert(directory, ended=True)
    if left := leftovers(directory):
        raise CrawlDirectoryError(f"{left[0]} is read by another program; when that has ended, finish: {finish}")


def follow_again(directory: Path, remark: Callable[[str], object], finish: str) -> None:
    """Let what follows the crawl begin anew, since its tables have.

    Args:
        directory: the crawl directory.
        remark: takes what item files and stores have to tell that were made anew, and are complete.
        finish: the command that finishes what the caller does.

    Raises:
        CrawlDirectoryError: something that follows could not be made anew, and may have rows that are gone.
    """
    troubles: list[str] = []
    asyncio.run(_follow(Following(directory, CrawlOptions(), troubles.append, remark=remark)))
    if troubles:
        raise CrawlDirectoryError(f"{troubles[0]}; then finish: {finish}")


async def _follow(following: Following) -> None:
    await following.start()
    await following.finish()
