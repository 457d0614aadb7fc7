"""A crawl whose ledger is lost: it begins again beside what it has, where a person says so.

Place in the flow: :mod:`gossamer.assembly.crawl` calls :func:`begin_anew` before any unit is up. A ledger cannot be made again
of the files: what was queued stands in it alone. So every URL is fetched again from the seeds on, and all whole records and rows
stay, as after going back to a checkpoint that held nothing.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from gossamer.flow.graph import Graph
from gossamer.model.errors import CrawlDirectoryError
from gossamer.stores.deletions import refuse_unfinished, seek_again
from gossamer.stores.files import AppendFile
from gossamer.stores.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.stores.recovery import files_of, is_away

#: A store beside a ledger, which knows URLs by itself: they would not be fetched again.
_SIEVE = "sieve"

#: What a lost ledger is called from then on, with a number.
_ASIDE = "damaged"


def begin_anew(directory: Path, graph: Graph) -> Iterator[str]:
    """Put an empty ledger in the place of one that is lost, and say so; nothing happens where none is.

    Raises:
        CrawlDirectoryError: it cannot: several agents share the crawl, or it has a store of seen URLs besides.
    """
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
        files = begin_ledger_anew(directory, ledger)
        aside = next(reversed(lost_ledgers(directory)), None)
        yield f"the crawl goes on without the ledger of {sheet.agent}" + (f", which is in {aside}" if aside else "")
        yield f"fetching every URL again, from the seeds on; {files} files of archive and logs stay"


def _ledgers(directory: Path, graph: Graph) -> list[RocksLedger]:
    sheets = (node.sheet for node in graph.providers.values() if isinstance(node.sheet, LedgerSheet))
    return [RocksLedger(msgspec.structs.replace(sheet, directory=str(directory))) for sheet in sheets]


def refuse_unfinished_work(directory: Path, graph: Graph, *, accept: bool) -> None:
    """Refuse a crawl that is half deleted or trimmed; not where a person goes on without its ledger, which that would need.

    Raises:
        CrawlDirectoryError: that is so.
    """
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
    """Put an empty ledger in the place of a lost one; returns how many files of its agent stay.

    Raises:
        CrawlDirectoryError: it cannot be written.
    """
    seek_again(directory)
    ends = dict(_ends(directory, ledger.sheet.agent))
    _set_aside(ledger.places.ledger)
    ledger.begin_anew(ends)
    return len(ends)


def lost_ledgers(directory: Path) -> list[Path]:
    """What is left of ledgers that were lost: folders, for who wants to look."""
    return sorted((directory / STATE_DIRECTORY).glob(f"*/{_ASIDE}-*"))


def _ends(directory: Path, agent: str) -> Iterator[tuple[str, int]]:
    """The files of an agent, and where the last whole record or line of each ends."""
    from gossamer.stores.warc_scanning import Gap, scan  # who has lost nothing pays for nothing of this

    for path in files_of(directory, agent):
        if is_away(path):
            continue
        if path.suffix == ".gz":
            end = max((found.end for found in scan(path) if not isinstance(found, Gap)), default=0)
        else:
            file = AppendFile(path, fresh=False)
            end = file.end_of_lines()
            file.close()
        if end:
            yield path.relative_to(directory).as_posix(), end


def _set_aside(ledger: Path) -> None:
    """Rename what is left of a ledger."""
    if not ledger.exists():
        return
    number = 1
    while (aside := ledger.with_name(f"{_ASIDE}-{number}")).exists():
        number += 1
    ledger.rename(aside)
