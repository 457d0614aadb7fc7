"""Changes of a crawl at rest: checkpoints, and hosts that it is not to ask when it goes on."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.control.steering import BLOCKING, note_steering
from gossamer.crawls.directory import read_wiring
from gossamer.crawls.summary import ENDED, ENDED_FILE
from gossamer.engine.files import Point, crash_at, replace_file
from gossamer.engine.wiring import with_settings, write
from gossamer.frontier.politeness.rules import Blocklist
from gossamer.storage.ledger.ledger import RocksLedger, ledgers_of
from gossamer.storage.ledger.opening import check_is_free, checkpoint_name
from gossamer.storage.logs import STEERING_LOG
from gossamer.storage.mailbox.shared_state import SHARED, copy_shared, restore_shared
from gossamer.storage.members import members_of, write_members
from gossamer.storage.recovery import files_of
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.agents import member
from gossamer.values.errors import CrawlDirectoryError, UsageError

#: Where it stands which agents the crawl had at each checkpoint.
_MEMBERS = "state/supervisor/checkpoints"

#: The mark of a crawl of several agents that is going back to a checkpoint, with its name.
_RESTORING = "state/supervisor/restoring"

#: The name for going back to a checkpoint in the log of steering.
_RESTORE = "restore"


def checkpoints(directory: Path) -> list[str]:
    """The names that every agent's ledger has a checkpoint under, the oldest first."""
    first, *others = [ledger.checkpoints() for ledger in ledgers_of(directory)]
    return [name for name in first if all(name in names for names in others)]


def checkpoint(directory: Path, name: str) -> str:
    """Keep the state that the crawl rests in; returns the name. Raises UsageError: the name cannot be used, or is taken;
    CrawlDirectoryError: the ledger is in use or damaged."""
    name = name or checkpoint_name()
    check_is_free_everywhere(directory, name)
    checkpoint_those(directory, [ledger.sheet.agent for ledger in ledgers_of(directory)], name)
    if members := members_of(directory):
        note_members(directory, name, members)
    if (directory / SHARED).exists():
        copy_shared(directory, name)
    return name


def check_is_free_everywhere(directory: Path, name: str) -> None:
    """Refuse a name that a checkpoint of any agent has. Raises UsageError."""
    for ledger in ledgers_of(directory):
        check_is_free(name, ledger.checkpoints())


def checkpoint_those(directory: Path, agents: Sequence[str], name: str) -> None:
    """Keep the state that these agents rest in. Raises as :func:`checkpoint`."""
    for ledger in ledgers_of(directory):
        if ledger.sheet.agent in agents:
            with opened_as_found(ledger):
                ledger.checkpoint(name)


def note_members(directory: Path, name: str, members: Sequence[str]) -> None:
    """Note which agents the crawl had at a checkpoint: whole, or not at all. Raises OSError."""
    path = directory / _MEMBERS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, msgspec.json.encode(list(members)))


def _members_at(directory: Path, name: str) -> tuple[str, ...]:
    """The agents that the crawl had at a checkpoint; without a note those that it has, since each has a part of it. Raises
    UsageError: the crawl has agents that it did not have then, so that no state of them can be gone back to;
    CrawlDirectoryError: the note is damaged."""
    path, now = directory / _MEMBERS / f"{name}.json", members_of(directory)
    try:
        then = msgspec.json.decode(path.read_bytes(), type=tuple[str, ...])
    except FileNotFoundError:
        return now
    except ValueError as error:
        raise CrawlDirectoryError(f"{path} is damaged: {error}; bring it back from a copy") from None
    known = {member(text).agent for text in then}
    new = [agent for text in now if (agent := member(text).agent) not in known]
    if new:
        raise UsageError(
            f"{new[0]} joined the crawl after the checkpoint {name!r} was made, so the crawl cannot go back to it"
        )
    return then


@contextmanager
def opened_as_found(ledger: RocksLedger) -> Iterator[None]:
    """Open a ledger, and leave it as it was found: only a crawl can say that nothing is in flight any more."""
    ledger.open()
    try:
        yield
    finally:
        if ledger.is_clean:
            ledger.close()
        else:
            ledger.abandon()


def restore(directory: Path, name: str, forget: Callable[[Path], None]) -> None:
    """Go back to a checkpoint. Pages archived since then stay in the archive; `forget` drops what agents have begun since.
    Raises UsageError: there is no such checkpoint, or agents have joined since. Nothing has changed; CrawlDirectoryError: the
    ledger is in use, or the checkpoint is damaged."""
    known = checkpoints(directory)
    if name not in known:
        raise UsageError(f"there is no checkpoint {name!r}; known: {', '.join(known) or 'none'}")
    then = _members_at(directory, name)
    mark = directory / _RESTORING
    if then:
        # Between two agents of which one has gone back and the other has not, URLs are lost.
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(name, encoding="utf-8")
    forget(directory)
    for ledger in ledgers_of(directory):
        ledger.restore(name, _ends(directory, ledger))
        crash_at(Point.RESTORING)
    if (directory / SHARED).exists():
        restore_shared(directory, name)
        crash_at(Point.RESTORING)
    # A crawl that was at work at its checkpoint rests since a person has gone back to it: no kill has ended it.
    stopped = msgspec.json.encode(CrawlStanding(str(directory), "stopped"))
    was_at_work = False
    for ledger in ledgers_of(directory):
        with opened_as_found(ledger):
            if not ledger.is_clean:
                was_at_work = True
                ledger.put_meta(ENDED, stopped)
    if was_at_work and (directory / ENDED_FILE).exists():
        replace_file(directory / ENDED_FILE, stopped)
    if then:
        write_members(directory, then)
        mark.unlink()
    note_steering(directory, {"do": _RESTORE, "name": name})


def refuse_half_restored(directory: Path) -> None:
    """Refuse to go on with a crawl of which only some agents have gone back to a checkpoint. Raises CrawlDirectoryError: that
    is so."""
    with suppress(FileNotFoundError):
        name = (directory / _RESTORING).read_text(encoding="utf-8")
        raise CrawlDirectoryError(
            f"the crawl in {directory} was killed while it went back to a checkpoint; finish that: "
            f"gossamer checkpoint {directory} --restore {name}"
        )


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
    """Refuse a crawl that has no list of hosts that it asks for nothing. Raises UsageError: that is so; CrawlDirectoryError:
    its wiring is damaged."""
    unit, _ = BLOCKING
    if unit not in read_wiring(directory).providers:
        raise UsageError(f"the crawl in {directory} cannot block hosts: it has no unit {unit!r}")


def close_hosts(directory: Path, names: Sequence[str]) -> tuple[list[str], int]:
    """Put hosts and domains on the list; returns their names as they are compared, and how many names the list has then. Raises
    UsageError: one is no host or domain, or the crawl cannot block any; CrawlDirectoryError: its wiring is damaged."""
    check_can_block(directory)
    wiring = read_wiring(directory)
    unit, setting = BLOCKING
    blocklist = Blocklist(wiring.providers[unit].settings.get(setting, ()))
    added = [blocklist.block(name) for name in names]
    write(directory / CRAWL_FILE, with_settings(wiring, unit, {setting: list(blocklist.lines())}))
    return added, len(blocklist)
