"""The masters of an agent: to which of them it sends what it owes, and what happens where one is silent.

    outbox ── owed to any master ──► `master-links` ──► the sender of the master whose turn it is
                                          ▲ given back      │
                                          └── silent ◄──────┘

Place in the flow: in the wiring of an agent that has masters, between its outbox and a sender for each master. An agent has one
master that it prefers. It sends to another one only while that one is silent, which is so when it has acknowledged nothing of what
it was sent for `patience` seconds. What a silent master has is sent once more, to another; coming twice does no harm.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from gossamer.agents.held_domains import MASTERS
from gossamer.engine.ends import Uses
from gossamer.engine.sheet import Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.storage.mailbox.contract import OwedTask, Owing

#: Seconds between two looks at who is silent.
_LOOK = 0.5


class _Batch(NamedTuple):
    master: str
    since: float
    owed: Sequence[OwedTask]


class MasterLinksSheet(Sheet, frozen=True):
    """Settings of :class:`MasterLinks`."""

    masters: Annotated[
        tuple[str, ...],
        setting("Send to the first of these masters that is not silent.", restart="each has a sender of its own"),
    ] = ("master-00",)
    patience: Annotated[
        float,
        setting("Count a master as silent if it has acknowledged none of its URLs for this time.", unit="s", gt=0),
    ] = 5.0


class MasterLinks(Provider[MasterLinksSheet]):
    """Gives the URLs in an agent's outbox to the senders that serve its masters. Contract: `exchanging.Owing`."""

    behind: Uses[Owing]
    keeps_state = True

    def __init__(self, sheet: MasterLinksSheet | None = None) -> None:
        super().__init__(sheet)
        self._sent: dict[int, _Batch] = {}
        self._back: deque[OwedTask] = deque()
        """What silent masters were sent, to be sent once more."""
        self._silent: set[str] = set()
        self._changed = asyncio.Event()
        """Set once, when another sender's turn comes or something is given back; then a new one takes its place."""
        self._looking: asyncio.Task[None] | None = None
        self.metrics.gauge("silent", lambda: len(self._silent))

    async def start(self) -> None:
        """Begin to look who is silent."""
        self._looking = asyncio.create_task(self._look_on())

    async def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def take(self, agent: str, most: int) -> Sequence[OwedTask]:
        """What is owed to any master, for the sender to this one; suspended while it is another one's turn."""
        while True:
            while agent != self._turn():
                await self._changed.wait()
            if self._back:
                owed: Sequence[OwedTask] = [self._back.popleft() for _ in range(min(most, len(self._back)))]
            else:
                owed = await self._more(most)
            if owed and agent == self._turn():
                self._sent[id(owed)] = _Batch(agent, self.clock.monotonic(), owed)
                return owed
            if owed:  # it fell silent while this waited, and the sender whose turn it is may wait for more to be owed
                self._back.extendleft(reversed(owed))
                self._tell_change()

    async def _more(self, most: int) -> Sequence[OwedTask]:
        """What the outbox has next; nothing where something changes meanwhile."""
        taking = asyncio.ensure_future(self.behind.take(MASTERS, most))
        changing = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait((taking, changing), return_when=asyncio.FIRST_COMPLETED)
            return taking.result() if taking.done() else ()
        finally:
            changing.cancel()
            if not taking.done():
                taking.cancel()

    def delivered(self, owed: Sequence[OwedTask]) -> None:
        """What a sender took has arrived, so that its master is not silent."""
        batch = self._sent.pop(id(owed), None)
        if batch is not None:
            now = self.clock.monotonic()
            # The master goes on: what it was sent later has waited for this.
            for key, other in self._sent.items():
                if other.master == batch.master:
                    self._sent[key] = other._replace(since=now)
            self._heard(batch.master)
        self.behind.delivered(owed)

    def _turn(self) -> str:
        """The first master that is not silent; where all are, the first one, which is waited for."""
        masters = self.sheet.masters
        return next((one for one in masters if one not in self._silent), masters[0])

    def _tell_change(self) -> None:
        """Wake all senders. None of them clears the event, or one that is about to wait would miss it."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _heard(self, master: str) -> None:
        if master in self._silent:
            self._silent.discard(master)
            self._tell_change()

    async def _look_on(self) -> None:
        while True:
            await self.clock.sleep(_LOOK)
            self._look()

    def _look(self) -> None:
        """See who is silent; where another master is there, it gets what the silent one has."""
        now, patience = self.clock.monotonic(), self.sheet.patience
        late = {one.master for one in self._sent.values() if now - one.since >= patience} - self._silent
        if not late or not set(self.sheet.masters) - self._silent - late:
            return
        self._silent |= late
        for master in late:
            self.metrics.count("fell_silent")
            self.report(f"{master} is silent, so {self._turn()} gets what it was sent")
        for batch in self._sent.values():
            if batch.master in late:
                self._back.extend(batch.owed)
        self._tell_change()
