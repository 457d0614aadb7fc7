"""A crawl that was begun by one agent in one process becomes a divided one that has one agent: its log is the agent's from then on.

Place in the flow: :mod:`membership` divides a crawl before other agents join it. The crawl is a divided one from the instant in
which its members are written. What is made before that is in nobody's way.
"""

from pathlib import Path

from gossamer.model.agents import agent_name
from gossamer.model.errors import CrawlDirectoryError
from gossamer.stores.ledger.ledger import STATE_DIRECTORY, RocksLedger
from gossamer.stores.ledger.opening import share_secret
from gossamer.stores.members import write_members
from gossamer.stores.merged_log import MergeMark, write_mark
from gossamer.stores.rowlog import LOG_PATH, log_path

#: Bytes of the log that are copied at once.
_CHUNK = 1 << 20

_OWN = log_path(agent_name(0))


def divide(directory: Path, ledger: RocksLedger) -> None:
    """Make a crawl of one agent at rest a divided one, with the same agent.

    Args:
        directory: of the crawl.
        ledger: its one ledger, open.

    Raises:
        CrawlDirectoryError: what was committed of its log is not there, or it cannot be copied. Nothing has changed.
    """
    end = ledger.committed_ends().get(LOG_PATH, 0)
    try:
        if end:
            _copy(directory / LOG_PATH, directory / _OWN, end)
        write_mark(directory, MergeMark({_OWN: end}, end))
        ledger.give_up_ends({_OWN: end})
        share_secret(directory / STATE_DIRECTORY, ledger.secret)
        write_members(directory, [agent_name(0)])
    except OSError as error:
        raise CrawlDirectoryError(f"the crawl in {directory} cannot be divided: {error.strerror}") from None
    forget_shared_log(ledger)


def forget_shared_log(ledger: RocksLedger) -> None:
    """The log of a divided crawl is made of those of its agents: an agent has committed nothing of it."""
    ledger.give_up_ends({LOG_PATH: None})


def _copy(source: Path, target: Path, end: int) -> None:
    """Copy the first bytes of a file: whole, or not at all."""
    fresh = target.with_name(f"{target.name}.new")
    left = end
    with source.open("rb") as old, fresh.open("wb") as new:
        while left and (data := old.read(min(left, _CHUNK))):
            new.write(data)
            left -= len(data)
    if left:
        fresh.unlink()
        raise CrawlDirectoryError(
            f"{source} is shorter than what was committed of it; resume the crawl with one agent and --accept-loss first"
        )
    fresh.replace(target)
