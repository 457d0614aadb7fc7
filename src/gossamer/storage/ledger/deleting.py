"""Deletions from a ledger at rest: a URL, or all of a host or domain, and rows of answers whose files are lost.

Place in the flow: `gossamer delete` calls :func:`delete`, which takes out rows, links, tasks, all that is known of hosts, and
digests. A crawl that goes on with `--accept-loss` calls :func:`forget` before it works: rows of answers that are gone are
forgotten, so that their URLs are queued again, and with them the digests by which others would refer to these answers.

Both need a ledger that they alone have open, of which nothing is in flight. They can be killed at any point and called again: each
batch leaves a whole ledger. A deletion that is repeated does not find again what is gone; `forget` gives the ends of the files up
last, and those tell it what was lost.

Keys hold no names, so names come from values: rows, tasks and states of hosts. Seen URLs stay seen unless the deletion is to
`forget` them, and a deleted URL counts as seen from then on: that is why it is never queued again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby

import msgspec

from gossamer.storage.contract import COPIES, DIGESTS, MAIL, OWED
from gossamer.storage.ledger import layout
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.ledger.moving import LedgerRewriting, disown, parts
from gossamer.storage.ledger.waiting import AsideTasks
from gossamer.storage.mailbox.exchange_files import FILE_ID_BYTES, WRITTEN
from gossamer.storage.mailbox.staging import mailed, owed_key, owed_task
from gossamer.values.agents import CLAIM, packed, unpacked
from gossamer.values.hosts import DeletionTarget
from gossamer.values.ledger_rows import DocumentRow, HostState
from gossamer.values.media_type import HTML_TYPES
from gossamer.values.outcome import Outcome
from gossamer.values.url import host_of
from gossamer.values.visit import ORDER, Location


def forget(ledger: RocksLedger, is_gone: Callable[[Location], bool], ends: Mapping[str, int | None]) -> int:
    """Forget what lay at places that are gone, of which `ends` say what is left of each file, or None; returns how many URLs are
    fetched again.

    A digest is kept only where the row of its owner shows a record with it that is there: one that is forgotten for nothing costs
    one more copy of a document, one that is kept for nothing would cost the document. A request that was no plain GET is not
    repeated, whatever became of its answer. Raises CrawlDirectoryError: it could not be written.
    """
    contents = ledger.contents
    rows = ((digest, ledger.document(url)) for digest, url in contents.all())
    ownerless = (
        digest
        for digest, row in rows
        if row is None or row.digest != digest or row.location is None or is_gone(row.location)
    )
    disown(ledger, ownerless)
    lost = (  # their record is gone, or refers to one that may be
        row
        for row in ledger.documents()
        if row.location is not None
        and (
            row.outcome is Outcome.NOT_MODIFIED
            or (row.duplicate_of and not contents.owner(row.digest))
            or is_gone(row.location)
        )
    )
    again = _undo(ledger, lost)
    ledger.give_up_ends(ends)
    return again


def _undo(ledger: RocksLedger, rows: Iterable[DocumentRow]) -> int:
    """Forget rows, and queue their URLs again; returns how many are fetched again."""
    again = 0
    for part in parts(rows):
        again += sum(not row.mark for row in part)
        with ledger.group() as group:
            for row in part:
                group.undo(row)
    return again


#: Families whose keys begin with the id of a host, `seen` apart.
_BY_HOST = ("documents", "links", "requests", "hosts", "spaces")

_rows = msgspec.msgpack.Decoder(DocumentRow)
_states = msgspec.msgpack.Decoder(HostState)
_encode = msgspec.msgpack.Encoder().encode


class LedgerDeletion(msgspec.Struct):
    """The numbers of a deletion."""

    documents: int = 0
    tasks: int = 0
    again: int = 0
    """URLs that are fetched again, since their documents lay in what is deleted."""


def hosts_of(ledger: RocksLedger, target: DeletionTarget) -> set[str]:
    """The names of all hosts that go whole with a target. Memory: some 100 bytes each. They are found by their states, queues and
    rows: a deletion that was killed among these finds fewer, so the caller notes them before it begins."""
    ledger.flush_moves()
    with ledger.rewriting() as rewriting:
        return _Work(rewriting, target, forget=False).hosts()


def delete(ledger: RocksLedger, target: DeletionTarget, hosts: Iterable[str], *, forget: bool) -> LedgerDeletion:
    """Take everything of a target out of a ledger, with nothing popped; `hosts` go whole, as :func:`hosts_of` found them before
    the first call. With `forget`, count it as never seen. Raises CrawlDirectoryError: it could not be written."""
    done = LedgerDeletion()
    # No other visit may refer to documents that go; a page kept as a copy of one is fetched again.
    disown(ledger, (digest for digest, url in ledger.contents.all() if target.has(url)))
    _disclaim(ledger, target)
    _forgive(ledger, target)
    copies = (row for row in ledger.documents() if target.has(row.duplicate_of) and not target.has(row.url))
    done.again = _undo(ledger, copies)
    if target.kind == "url" and not forget:
        with ledger.group() as group:
            group.offer([target.name])
    ledger.flush_moves()
    with ledger.rewriting() as rewriting:
        work = _Work(rewriting, target, forget=forget)
        done.tasks = work.lanes() + work.later() + work.aside()
        if target.kind != "url":
            rewriting.drop_turns(target.has_host)
        done.documents = work.rows()
        work.of_hosts({rewriting.keys.host(name) for name in hosts})
        rewriting.store.compact()
    return done


def _disclaim(ledger: RocksLedger, target: DeletionTarget) -> None:
    """Forget what agents have claimed of a target. The earliest of the claims that stay is the first one of its document."""
    if not ledger.counters().get("digests"):
        return
    spaces = ledger.spaces
    spaces.open(DIGESTS)
    spaces.open(COPIES)
    claims = (unpacked(value) for _, value in spaces.walk(DIGESTS))
    documents = (list(those) for _, those in groupby(claims, lambda claim: claim.digest))
    touched = (those for those in documents if any(target.has(claim.url) for claim in those))
    for part in parts(touched):
        with ledger.group() as group:
            for those in part:
                left = sorted((one for one in those if not target.has(one.url)), key=lambda one: (one.met_at, one.url))
                for one in those:
                    group.delete(DIGESTS, one.host, one.copy_key)
                    if target.has(one.url):
                        group.delete(COPIES, None, one.copy_key)
                group.delete(DIGESTS, those[0].host, those[0].key)
                for one in left[:1]:
                    first = msgspec.structs.replace(one, copies=len(left) - 1)
                    group.put(DIGESTS, first.host, first.key, packed(first))
                for one in left[1:]:
                    group.put(DIGESTS, one.host, one.copy_key, packed(one))
                group.count("copies", max(len(left) - 1, 0) - (len(those) - 1))


def _forgive(ledger: RocksLedger, target: DeletionTarget) -> None:
    """Forget URLs of a target that are owed to other agents: their spaces would go with the hosts, but they are counted."""
    counters, spaces = ledger.counters(), ledger.spaces
    for space, task_of, names in (
        (OWED, owed_task, ("owed",)),
        (MAIL, lambda value: mailed(value)[1], ("mail", "owed")),
        (WRITTEN, lambda value: owed_task(value[FILE_ID_BYTES:]), ("written",)),
    ):
        if not counters.get(space.owner):
            continue
        spaces.open(space)
        tasks = (task_of(value) for _, value in spaces.walk(space))
        owed = (task for task in tasks if task.relation not in (CLAIM, ORDER))
        gone = (task for task in owed if target.has(task.url) or (space is MAIL and target.has(task.source)))
        for part in parts(gone):
            with ledger.group() as group:
                for task in part:
                    group.delete(space, task.host, owed_key(task))
                    for name in names:
                        group.count(name, -1)


class _Work:
    """The entries of one target."""

    def __init__(self, rewriting: LedgerRewriting, target: DeletionTarget, *, forget: bool) -> None:
        self._rewriting = rewriting
        self._store = rewriting.store
        self._keys = rewriting.keys
        self._target = target
        self._forget = forget

    def hosts(self) -> set[str]:
        target = self._target
        if target.kind == "url":
            return set()
        names = {target.name}
        for key, data in self._store.scan("hosts", b"", b"\xff" * (layout.HOST_ID_BYTES + 2)):
            if key[layout.HOST_ID_BYTES :] == layout.STATE and target.has_host(name := _states.decode(data).host):
                names.add(name)
        names.update(host for host, _ in self._queued() if target.has_host(host))
        for _, data in self._store.scan("documents", b"", b"\xff" * 32):
            row = _rows.decode(data)
            if target.has(row.url):
                names.add(host_of(row.url))
        return names

    def _queued(self) -> Iterator[tuple[str, bytes]]:
        """Each host with a queue, and what its chunks begin with."""
        start = layout.CHUNK
        while row := next(self._store.scan("frontier", start, layout.after(layout.CHUNK)), None):
            key, data = row
            prefix = key[: 1 + layout.HOST_ID_BYTES]
            yield layout.unpack(data)[0].host, prefix
            start = layout.after(prefix)

    # -- tasks

    def lanes(self) -> int:
        """Tasks in the queues of hosts. Only chunks that hold one are written anew."""
        target, gone = self._target, 0
        for host, prefix in self._queued():
            if target.kind == "url" and host != host_of(target.name):
                continue
            if target.kind == "host" and not target.has_host(host):
                continue
            for chunk, data in self._store.scan("frontier", prefix, layout.after(prefix)):
                level, serial = chunk[-9], int.from_bytes(chunk[-8:])
                if not any(target.has(task.url) for task in layout.unpack(data, level)):
                    continue
                key = chunk[1:-9] + layout.CURSOR
                cursors = layout.unpack_cursors(self._store.get("hosts", key))
                left = layout.unfinished(cursors, chunk, data)
                kept = [task for task in left if not target.has(task.url)]
                batch = self._store.batch()
                batch.change("frontier", chunk, layout.pack(host, kept)[0] if kept else None)
                if (cursor := cursors.get(level)) is not None:
                    # The finished part of this chunk was left out: its places count from its beginning again.
                    is_here = cursor.place >> layout.PLACE_BITS == serial
                    first = min(cursor.place, serial << layout.PLACE_BITS) if is_here else cursor.place
                    finished = tuple(place for place in cursor.finished if place >> layout.PLACE_BITS != serial)
                    cursors[level] = msgspec.structs.replace(cursor, place=first, finished=finished)
                    batch.put("hosts", key, layout.pack_cursors(cursors))
                self._rewriting.write(batch, finished=len(left) - len(kept))
                gone += len(left) - len(kept)
        return gone

    def later(self) -> int:
        gone = (
            key
            for key, value in self._store.scan("frontier", layout.LATER, layout.after(layout.LATER))
            if self._target.has(layout.unpack_with_level(value)[0].url)
        )
        return self._rewriting.drop("frontier", gone, unfinished=1)

    def aside(self) -> int:
        kept = AsideTasks(self._store, self._keys)
        target, gone = self._target, 0
        for row in list(kept.rows()):
            batch, here = self._store.batch(), 0
            for key, tasks in kept.chunks(row.family):
                rest = [task for task in tasks if not target.has(task.url)]
                if len(rest) == len(tasks):
                    continue
                here += len(tasks) - len(rest)
                chunk = layout.pack_with_level(rest[0].host, rest[0].level, rest)[0] if rest else None
                batch.change("frontier", key, chunk)
            is_whole = target.has_host(row.family.owner.removeprefix("*."))
            if is_whole or here:
                left = None if is_whole else _encode(msgspec.structs.replace(row, count=row.count - here))
                batch.change("frontier", kept.row_key(row.family), left)
                self._rewriting.write(batch, {"set_aside": -here})
            gone += here
        return gone

    # -- the rest

    def rows(self) -> int:
        """Rows of documents; documents counted as kept count no more."""
        found = (
            (key, row)
            for key, data in self._store.scan("documents", b"", b"\xff" * 32)
            if self._target.has((row := _rows.decode(data)).url)
        )
        gone = 0
        for part in parts(found):
            batch = self._store.batch()
            counts = {"pages": 0, "documents": 0}
            for key, row in part:
                for family in ("documents", "links", "requests", *(["seen"] if self._forget else [])):
                    batch.delete(family, key)
                counts["pages"] -= row.outcome in (Outcome.OK, Outcome.TRUNCATED) and row.mime in HTML_TYPES
                counts["documents"] -= row.outcome is Outcome.OK and row.bytes > 0 and not row.duplicate_of
            self._rewriting.write(batch, counts)
            gone += len(part)
        if self._forget and self._target.kind == "url":
            batch = self._store.batch()
            batch.delete("seen", self._keys.url(self._target.name))
            self._rewriting.write(batch)
        return gone

    def of_hosts(self, hosts: set[bytes]) -> None:
        """Everything under the ids of hosts: nothing of it holds a name that could be asked for."""
        drop = self._rewriting.drop
        for host in sorted(hosts):
            self._rewriting.drop_tallies([host])
            for family in (*_BY_HOST, *(["seen"] if self._forget else [])):
                drop(family, (key for key, _ in self._store.scan(family, host, layout.after(host))))
            aside = layout.ASIDE + host
            drop("frontier", (key for key, _ in self._store.scan("frontier", aside, layout.after(aside))))
