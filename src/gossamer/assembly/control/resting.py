"""What can be done to a crawl that nobody is at work on: checkpoints, and hosts that it is not to ask when it goes on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gossamer.assembly.control.standing import checkpoint_name, ledgers_of
from gossamer.assembly.control.steering import BLOCKING, STEERING_LOG, note_steering
from gossamer.assembly.kept import read_wiring
from gossamer.flow.wiring import with_settings, write
from gossamer.model.errors import CrawlDirectoryError, UsageError
from gossamer.query.places import CRAWL_FILE
from gossamer.services.politeness.blocklist import Blocklist
from gossamer.stores.ledger.ledger import RocksLedger
from gossamer.stores.recovery import files_of

#: What going back to a checkpoint is called in the log of who steered.
_RESTORE = "restore"


def checkpoints(directory: Path) -> list[str]:
    """The names that every agent's ledger has a checkpoint under, the oldest first."""
    first, *others = [ledger.checkpoints() for ledger in ledgers_of(directory)]
    return [name for name in first if all(name in names for names in others)]


def checkpoint(directory: Path, name: str) -> str:
    """Keep the state that the crawl rests in; returns the name.

    Raises:
        UsageError: the name cannot be used, or is taken.
        CrawlDirectoryError: the ledger is in use or damaged.
    """
    name = name or checkpoint_name()
    for ledger in ledgers_of(directory):
        with _opened(ledger):
            ledger.checkpoint(name)
    return name


@contextmanager
def _opened(ledger: RocksLedger) -> Iterator[None]:
    """Open a ledger, and leave it as it was found: only a crawl can say that nothing is in flight any more."""
    ledger.open()
    try:
        yield
    finally:
        if ledger.is_clean:
            ledger.close()
        else:
            ledger.abandon()


def restore(directory: Path, name: str) -> None:
    """Go back to a checkpoint. What was archived since then stays in the archive.

    Raises:
        UsageError: there is no such checkpoint.
        CrawlDirectoryError: the ledger is in use, or the checkpoint is damaged.
    """
    for ledger in ledgers_of(directory):
        ledger.restore(name, _ends(directory, ledger))
    note_steering(directory, {"do": _RESTORE, "name": name})


def has_gone_back(directory: Path) -> bool:
    """Whether the crawl ever went back to a checkpoint: then its archive holds more than its ledger knows."""
    path = directory / STEERING_LOG
    return path.exists() and f'"do":"{_RESTORE}"' in path.read_text(encoding="utf-8")


def _ends(directory: Path, ledger: RocksLedger) -> dict[str, int]:
    """The end of every file that the agent has written, as committed; of a ledger that cannot be read, as it is."""
    try:
        with ledger.looking():
            return dict(ledger.committed_ends())
    except CrawlDirectoryError:
        agent = ledger.sheet.agent
        return {path.relative_to(directory).as_posix(): path.stat().st_size for path in files_of(directory, agent)}


def block(directory: Path, names: Sequence[str]) -> str:
    """Let a later run ask these hosts and domains for nothing; returns what was done, in words. Raises as :func:`close_hosts`."""
    added, number = close_hosts(directory, names)
    note_steering(directory, {"do": "block", "names": list(names)})
    return f"blocked when the crawl goes on: {', '.join(added)}; {number} in all"


def check_can_block(directory: Path) -> None:
    """Refuse a crawl that has no list of hosts that it asks for nothing.

    Raises:
        UsageError: that is so.
        CrawlDirectoryError: its wiring is damaged.
    """
    unit, _ = BLOCKING
    if unit not in read_wiring(directory).providers:
        raise UsageError(f"the crawl in {directory} cannot block anybody: it has no unit {unit!r}")


def close_hosts(directory: Path, names: Sequence[str]) -> tuple[list[str], int]:
    """Put hosts and domains on the list; returns their names as they are compared, and how many names the list has then.

    Raises:
        UsageError: one is no host or domain, or the crawl cannot block anybody.
        CrawlDirectoryError: its wiring is damaged.
    """
    check_can_block(directory)
    wiring = read_wiring(directory)
    unit, setting = BLOCKING
    blocklist = Blocklist(wiring.providers[unit].settings.get(setting, ()))
    added = [blocklist.block(name) for name in names]
    write(directory / CRAWL_FILE, with_settings(wiring, unit, {setting: list(blocklist.lines())}))
    return added, len(blocklist)
