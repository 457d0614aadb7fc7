"""One agent of a crawl with a store: how it becomes the owner of its place there, comes back, and is published at rest.

Place in the flow: the publisher of an agent that begins asks for its place (:func:`claimed`). The supervisor brings an agent back
that has lost its folder while others work (:func:`bring_agent_back`). Where agents join or leave, all of them rest, and the store
has to have them as they are (:func:`publish_at_rest`), since an agent that goes back to a checkpoint can do one change again, and
not two.
"""

import asyncio
import contextlib
import os
import re
import shutil
import socket
import time
from collections.abc import Callable, Collection
from itertools import chain
from pathlib import Path

import msgspec

from gossamer.backup.contract import ObjectChanged, Store
from gossamer.backup.head import AgentInStore, StoreHead, new_life, note_owned, owned, owner_of
from gossamer.backup.opening import open_store, probe
from gossamer.backup.options import AGENT, StoreOptions
from gossamer.backup.shipping import SNAPSHOT, Shipping
from gossamer.engine.errors import refusing
from gossamer.engine.files import Point, crash_at
from gossamer.engine.sheet import show_seconds
from gossamer.engine.unit import Metrics
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, RocksLedger
from gossamer.storage.ledger.parcels import parcels_for
from gossamer.storage.logs import forget_merged
from gossamer.storage.mailbox.retaining import point_path
from gossamer.storage.members import agents_behind, division_of, members_of, note_behind
from gossamer.storage.recovery import in_store, noted
from gossamer.storage.rewrite_journals import DELETED
from gossamer.storage.tables.manifest import read_notes, write_notes
from gossamer.storage.tables.places import TABLES, converting
from gossamer.values.agents import at_work, member
from gossamer.values.errors import CrawlDirectoryError

#: An owner as the head has it, and the seconds between two looks at whether it is there.
_HOLDER, _LOOK = re.compile(r"process (\d+) on (.+)"), 0.5


def claimed(store: Store, directory: Path, agent: str, lease: float, now: float) -> AgentInStore:
    """The place of an agent, whose owner this process becomes; `now` is by the clock of the store. Raises CrawlDirectoryError:
    another process owns it, or the store holds another crawl."""
    note, place = owned(directory, agent), AgentInStore(store, agent)
    place.apart = now - time.time()
    if note is not None:  # else they may be copies of other crawls
        place.level()
    head = place.read()
    begins = note is None and head is not None and _is_of_a_lost_change(store, directory, agent)
    if head is not None and not begins and not (note and head.life in note.lives):
        if note is not None:
            raise CrawlDirectoryError(
                f"the crawl went on elsewhere ({head.holder or 'it has ended there'}), so {directory} is out of date; "
                f"go on with it in another folder: gossamer resume {store.name} -o DIR"
            )
        if head.checkpoint:
            raise CrawlDirectoryError(
                f"the store {store.name} holds a crawl already; name an empty place, or go on with that one: "
                f"gossamer resume {store.name} -o DIR"
            )
        place.refuse_living(now)  # a crawl that was lost before its first checkpoint has left nothing
    life, holder = new_life()
    # Noted before the claim, so that this directory knows its own claim after a kill. Where no head is found, its disk may be away,
    # and what other agents have sent is as far as it was.
    before = (head.life,) if head is not None else note.lives if note is not None else ()
    note_owned(directory, agent, store.name, (*before, life), head or note)
    crash_at(Point.BEGINNING)
    try:
        place.claim(life, holder, lease, begins=begins)
    except ObjectChanged:
        raise CrawlDirectoryError(f"another process has just taken the crawl in {store.name}") from None
    return place


def _is_of_a_lost_change(store: Store, directory: Path, agent: str) -> bool:
    """Whether a place in the store is that of an agent which joined on a machine that was lost before any other agent had published
    that: the crawl, which is owned here, went back to before it."""
    first = next(iter(at_work(members_of(directory))), AGENT)
    note = owned(directory, first)
    head = AgentInStore(store, first).read() if agent != first and note is not None else None
    if note is None or head is None or not head.checkpoint or head.life not in note.lives:
        return False
    return agent not in {member(text).agent for text in head.members}


def publish_at_rest(directory: Path, url: str, ledger: RocksLedger) -> None:
    """Publish an agent that rests, with its ledger, which is open; nothing where its last checkpoint has all of it. Raises
    CrawlDirectoryError: the store cannot be reached, or belongs to another process."""
    agent = ledger.sheet.agent
    note, store = owned(directory, agent), open_store(url)
    members, division = members_of(directory), division_of(directory)
    head = AgentInStore(store, agent).read()
    ours = head if note is not None and head is not None and note.has_ended and head.life in note.lives else None
    if ours is not None and (ours.members, ours.division) == (members, division):
        with contextlib.suppress(FileNotFoundError):
            if (directory / DELETED).stat().st_mtime_ns > point_path(directory, agent).stat().st_mtime_ns:
                ours = None  # something was deleted since
        if ours is not None:
            return
    # The lease of the crawl: a person who goes on with it elsewhere, since all rest here and are lost, waits no longer.
    lease = head.lease if head is not None else StoreOptions().lease
    place = claimed(store, directory, agent, lease, time.time())
    shipping, snapshot = Shipping(directory, place, members, Metrics()), ledger.places.state / SNAPSHOT
    shutil.rmtree(snapshot, ignore_errors=True)
    try:
        asyncio.run(ledger.snapshot_at_work(snapshot))
        checkpoint = shipping.ship(snapshot, dict(shipping.files(snapshot, ledger.committed_ends())))
    finally:
        shutil.rmtree(snapshot, ignore_errors=True)
    try:
        place.publish(checkpoint, has_ended=True, members=members, division=division)
    except ObjectChanged:
        raise CrawlDirectoryError(f"another process has just taken {agent} in {store.name}") from None
    assert place.head is not None
    note_owned(directory, agent, url, (place.head.life,), place.head, has_ended=True)


def bring_agent_back(
    directory: Path,
    url: str,
    agent: str,
    lease: float,
    *,
    is_dead: bool,
    was_apart: bool = False,
    is_over: Callable[[], bool] = lambda: False,
    tell: Callable[[str], object] = lambda line: None,
) -> str:
    """Bring one agent of a crawl back whose ledger is lost, to its last checkpoint; returns what was done, in words, and empty
    where the store has nothing of it. Its ledger stands in its place at last, so that after a kill the same call does it again.

    The lease need not pass if its process `is_dead`. One that `was_apart` had another folder than `directory`, so that its process
    writes nothing here. `is_over` says whether the crawl is about to end, so that nothing is waited for any more. Raises
    CrawlDirectoryError: the store cannot be read or is damaged, or the owner of the agent may be alive."""
    store = open_store(url)
    place = AgentInStore(store, agent)
    place.level()
    if place.read() is None:
        _look_behind(directory, agent, None)
        return ""
    now, _ = probe(store)
    if not is_dead:
        place.refuse_living(now)
    life, holder = new_life()
    try:
        before = place.head.holder if place.head is not None else ""
        head = place.claim(life, before or holder, lease, restores=True)
        # A process that has lost its folder writes into the new one, since it knows files by their names.
        in_the_way = "" if was_apart else before
        if _is_here(in_the_way):
            tell(f"{before} had {agent}, has lost its folder and is still there; {agent} goes on when that has ended")
        while _is_here(in_the_way):
            time.sleep(_LOOK)
            place.renew()
            if is_over():
                return ""
    except ObjectChanged:
        raise CrawlDirectoryError(f"another process has just taken {agent} in {store.name}") from None
    own = {
        name: parts
        for name, parts in place.checkpoint().files.items()
        if owner_of(name) == agent and not in_store(directory / name)
    }
    _look_behind(directory, agent, head)
    with refusing(CrawlDirectoryError, f"{directory} cannot be written"):
        making = directory / f".{agent}.restoring"
        shutil.rmtree(making, ignore_errors=True)
        place.bring(own, making)
        with converting(directory, wait=True):
            _put_in_place(directory, making, agent, own, lambda: note_owned(directory, agent, url, (life,), head))
        shutil.rmtree(making, ignore_errors=True)
    old = (
        f"its last checkpoint, {show_seconds(max(0.0, now - head.published))} old"
        if own
        else "nothing, as it had published nothing"
    )
    since = "what came since is fetched again" if before else "it had ended in order, so that nothing is fetched again"
    return f"{agent} {'goes on here' if was_apart else 'has lost its ledger, and goes on'} from {old}; {since}"


def _put_in_place(directory: Path, making: Path, agent: str, own: Collection[str], note: Callable[[], None]) -> None:
    """Put the files of an agent's checkpoint where those lie that it has lost; the ledger last."""
    ledger = f"{STATE_DIRECTORY}/{agent}/ledger"
    forget_merged(directory)
    made = (f"{TABLES}/*/{agent}-*.parquet", f"{STATE_DIRECTORY}/{agent}/index/*.cdxj")
    for path in chain.from_iterable(map(directory.glob, made)):  # some may be of rows that are fetched again
        if path.relative_to(directory).as_posix() not in own:
            path.unlink()
    for name in own:
        if not name.startswith(ledger):
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (making / name).replace(directory / name)
    note()
    agree_on_tables(directory)
    crash_at(Point.RESTORING)
    if own:
        (making / ledger).replace(directory / ledger)


def _look_behind(directory: Path, agent: str, head: StoreHead | None) -> None:
    """Note that an agent goes back to before the last change of agents, if it does: then it lacks what it took, or has what it
    gave."""
    number, found = division_of(directory), head or StoreHead(0, "", "", 0.0)
    if found.division < number and (found.members or parcels_for(directory, agent, number)):
        note_behind(directory, {**agents_behind(directory), agent: found.members})


def agree_on_tables(directory: Path) -> None:
    """Note tables as they are now: agents publish theirs at other instants than the first one publishes its notes of them."""
    if (notes := read_notes(directory)) is None:
        return
    there = {f"{path.parent.name}/{path.name}": path for path in (directory / TABLES).glob("*/agent-*.parquet")}
    kept = {name: one for name, one in notes.tables.items() if one is None or name in there or "/agent-" not in name}
    fresh = {name: noted(path) for name, path in there.items() if name not in kept}
    write_notes(directory, msgspec.structs.replace(notes, tables={**kept, **fresh}))


def _is_here(holder: str) -> bool:
    """Whether an owner is a process of this machine that has not ended."""
    match = _HOLDER.fullmatch(holder)
    if match is None or match[2] != socket.gethostname() or int(match[1]) == os.getpid():
        return False
    try:
        os.kill(int(match[1]), 0)
        return Path(f"/proc/{match[1]}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except OSError:
        return True
