"""The mailbox of an agent that may have to go back to a checkpoint in a store, as the others may.

    the recipient has committed it ──► `sent`, with what the recipient had published then ──► a later checkpoint of it: forgotten
                                          └── the recipient has gone back: owed again

Place in the flow: it takes the place of :class:`~gossamer.storage.mailbox.mailbox.Mailbox` in the wiring of an agent whose crawl
has a store. An entry that its recipient has committed is gone with the recipient's ledger, as long as no checkpoint has it. So it
moves from the space of entries into another one, some hundreds in one value, and is forgotten when a checkpoint has it for certain.
Each agent says in a file of its folder how many checkpoints it has published, and how often it has gone back to one. A checkpoint
that was in the making when the entry was delivered may not have it; the one after that was begun later, and has it. An answer may
come from a process whose successor is at work already, so an entry counts as sent to the life that its recipient had before. No
clocks are compared, agents need not rest together, and nothing depends on what is on its way.

By the ring, the recipient is the only agent that can have an entry. By masters, any other agent may have it, so all of them count.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from gossamer.engine.sheet import setting
from gossamer.storage.contract import MAIL, Space
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.ledger.parcels import given_by
from gossamer.storage.mailbox.contract import MAIL_TO, OwedTask
from gossamer.storage.mailbox.mailbox import Mailbox, MailboxSheet
from gossamer.storage.mailbox.staging import mailed, owed_key, owed_task, staged
from gossamer.values.task import Task

#: Delivered mail that may be lost yet, under no host. A crawl of 500 pages/s that finds five URLs of others on each page has
#: some 200 MB of it when checkpoints are ten minutes apart; an agent that is away for a day must not make the others lose URLs.
SENT = Space("sent", value_bytes=4 << 20, common_bytes=1 << 40)

#: Bytes of tasks in one value: a task with the body of a request has 1 MB at most.
_ROW_BYTES = 1 << 20

#: Seconds between two looks at what others have published.
_LOOK = 1.0

#: Checkpoints of a recipient after which one was begun later than anything that it had committed before.
_CERTAIN = 2


class StorePoint(msgspec.Struct, frozen=True):
    """How far an agent is in its store."""

    count: int = 0
    """Checkpoints that it has published."""
    restored: int = 0
    """How often it has gone back to one."""
    division: int = 0
    """The division of domains among agents (:func:`~gossamer.storage.members.division_of`) by which it has published last."""


def point_path(directory: Path, agent: str) -> Path:
    """The file in which an agent says so."""
    return directory / "state" / agent / "store.json"


class _SentRow(msgspec.Struct, frozen=True, array_like=True):
    """Entries that were delivered, and how far the agents were then that may have them."""

    points: dict[str, StorePoint]
    owed: list[tuple[bool, bytes]]
    """Whether it is mail, and the entry as it was kept."""


_decode = msgspec.msgpack.Decoder(_SentRow).decode


def mail_of(ledger: Ledger) -> Iterator[tuple[str, Task]]:
    """Mail that masters have given to other agents, as far as this ledger has it: the agent, and the task."""
    for space in (MAIL, SENT):
        ledger.spaces.open(space)
    yield from (mailed(value) for _, value in ledger.spaces.walk(MAIL))
    for _, row in ledger.spaces.scan(SENT, None):
        yield from (mailed(value) for is_mail, value in _decode(row).owed if is_mail)


class RetainingSheet(MailboxSheet, frozen=True):
    directory: Annotated[str, setting("The crawl directory.", restart="its files are open there", names="a folder")] = (
        "."
    )


class RetainingMailbox(Mailbox):
    """Holds what one agent owes the others until they cannot lose it any more. Contracts: `OwesUrls`, `Owing`."""

    sheet_type = RetainingSheet
    sheet: RetainingSheet

    def __init__(self, sheet: RetainingSheet | None = None) -> None:
        super().__init__(sheet)
        self._points: dict[str, StorePoint] = {}
        self._seen: dict[str, int] = {}
        """When each file was written that was read last."""
        self._rows: dict[int, Mapping[str, StorePoint]] = {}
        self._lives: dict[int, Mapping[str, int]] = {}
        """Of batches on their way, how often each agent had gone back to a checkpoint that may get it."""
        self._lives_of: dict[bytes, Mapping[str, int]] = {}
        """The same of entries that were delivered, by their keys."""
        self._next = 0
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await super().start()
        self.ledger.spaces.open(SENT)
        for key, value in self.ledger.spaces.scan(SENT, None):
            self._next = int.from_bytes(key, "big")
            self._rows[self._next] = _decode(value).points
        self.metrics.gauge("sent", lambda: self.ledger.counters().get("sent", 0))
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await super().stop()

    async def take(self, recipient: str, most: int) -> Sequence[OwedTask]:
        batch = await super().take(recipient, most)
        self._lives[id(batch)] = {name: self._point(name).restored for name in self._among(recipient)}
        return batch

    def _among(self, recipient: str) -> Sequence[str]:
        """The agents that may have what this recipient was sent."""
        return self.sheet.others if self.sheet.masters else (recipient,)

    def delivered(self, owed: Sequence[OwedTask]) -> None:
        super().delivered(owed)
        self._lives_of.update(dict.fromkeys((one.key for one in owed), self._lives.pop(id(owed), {})))

    def _forget(self) -> None:
        super()._forget()
        if not self._done:
            self._lives_of.clear()

    def let_go(self, owed: Sequence[OwedTask], group: Group) -> None:
        """Keep what was delivered, as long as its recipient may lose it."""
        batches: dict[tuple[str, int], list[OwedTask]] = {}
        for one in owed:
            recipient = "" if self.sheet.masters else one.recipient
            batches.setdefault((recipient, id(self._lives_of.get(one.key))), []).append(one)
        for (recipient, _), those in batches.items():
            lives = self._lives_of.get(those[0].key, {})
            points = {
                name: msgspec.structs.replace(point, restored=lives.get(name, point.restored))
                for name in self._among(recipient)
                for point in (self._point(name),)
            }
            part, size = list[tuple[bool, bytes]](), 0
            for one in those:
                if part and size + len(one.value) > _ROW_BYTES:
                    self._keep(points, part, group)
                    part, size = [], 0
                part.append((bool(one.agent), one.value))
                size += len(one.value)
            self._keep(points, part, group)

    def _keep(self, points: Mapping[str, StorePoint], owed: list[tuple[bool, bytes]], group: Group) -> None:
        self._next += 1
        group.put(SENT, None, self._next.to_bytes(8, "big"), msgspec.msgpack.encode(_SentRow(dict(points), owed)))
        group.count("sent", len(owed))
        self._rows[self._next] = points

    # -- what others have published

    @property
    def owes(self) -> bool:
        self.look_at_others()
        return super().owes

    async def _watch(self) -> None:
        while True:
            await self.clock.sleep(_LOOK)
            self.look_at_others()
            # Domains that this agent has given to others are forgotten as soon as a checkpoint of theirs has them.
            for path, taker, number in given_by(Path(self.sheet.directory), self.sheet.agent):
                if self._point(taker).division >= number:
                    path.unlink(missing_ok=True)

    def _point(self, agent: str) -> StorePoint:
        """How far an agent is in its store, as it has told last: it may be gone with its folder."""
        path = point_path(Path(self.sheet.directory), agent)
        try:
            changed = path.stat().st_mtime_ns
            if changed != self._seen.get(agent):
                self._points[agent] = msgspec.json.decode(path.read_bytes(), type=StorePoint)
                self._seen[agent] = changed
        except (OSError, ValueError):
            pass
        return self._points.get(agent, StorePoint())

    def look_at_others(self) -> None:
        """Forget what others have in their checkpoints, and owe again what they have lost."""
        if not self._rows:
            return
        now = {name: self._point(name) for name in {name for points in self._rows.values() for name in points}}
        rows = {key: [(now[name], then) for name, then in points.items()] for key, points in self._rows.items()}
        lost = [key for key, pairs in rows.items() if any(one.restored > then.restored for one, then in pairs)]
        safe = [
            key
            for key, pairs in rows.items()
            if all(one.restored == then.restored and one.count >= then.count + _CERTAIN for one, then in pairs)
        ]
        for key in lost:
            again: list[OwedTask] = []
            with self.ledger.group() as group:
                for is_mail, value in self._drop(key, group):
                    agent, task = mailed(value) if is_mail else ("", owed_task(value))
                    recipient = MAIL_TO + agent if is_mail else self.designation.owner(task.host)
                    one = OwedTask(recipient, task, agent, owed_key(task), value)
                    if staged(one, group):
                        again.append(one)
            del self._rows[key]
            self.kept(again, is_sure=False)  # they are read from the space, which may have had one at a lower depth
            self.metrics.count("owed_again", len(again))
        if safe:
            with self.ledger.group() as group:
                for key in safe:
                    self._drop(key, group)
            for key in safe:
                del self._rows[key]

    def _drop(self, number: int, group: Group) -> list[tuple[bool, bytes]]:
        key = number.to_bytes(8, "big")
        value = self.ledger.spaces.get(SENT, None, key)
        owed = _decode(value).owed if value is not None else []
        group.delete(SENT, None, key)
        group.count("sent", -len(owed))
        return owed
