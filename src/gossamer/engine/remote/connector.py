"""The remote connector: a sender, a receiver, or both, behind the interface of every connector. Top of this package."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NoReturn, TypeVar

from gossamer.engine.connector import DEFAULT_CAPACITY, DEFAULT_SLOT, Connector, Receipts, Side, Statistics, Waiters
from gossamer.engine.errors import Closed, ConnectorError, WiringError
from gossamer.engine.gate import Receipt
from gossamer.engine.remote import handshake
from gossamer.engine.remote.addresses import parse
from gossamer.engine.remote.frames import FRAME_LIMIT, About, Codec, type_name
from gossamer.engine.remote.handshake import Party
from gossamer.engine.remote.journal import FileJournal, MemoryJournal
from gossamer.engine.remote.links import Exchange
from gossamer.engine.remote.receiving import ExpectedSenders, Receiver
from gossamer.engine.remote.sending import Sender
from gossamer.engine.sheet import Sheet, setting

T = TypeVar("T")

_fixed = partial(setting, restart="it is part of how the two sides are connected")


class RemoteSheet(Sheet, frozen=True):
    """Settings of a connector over `unix:` or `tcp:`."""

    batch: Annotated[int, _fixed("Items sent in one frame, at most.", unit="items", ge=1)] = 1000
    window: Annotated[
        int,
        _fixed("Items under way, unacknowledged, at most; 0: four batches, at least the capacity.", unit="items", ge=0),
    ] = 0
    frame_limit: Annotated[int, _fixed("Longest item or frame that is accepted.", unit="bytes", ge=4096, le=2**31)] = (
        FRAME_LIMIT
    )
    listen: Annotated[Literal["receiver", "sender"], _fixed("Which side listens; the other one dials.")] = "receiver"
    journal: Annotated[str, _fixed("File where unacknowledged items outlive the sending process; empty: memory.")] = ""
    fsync: Annotated[bool, _fixed("Items in the journal also outlive a loss of power; slow.")] = False
    secret_file: Annotated[
        str, _fixed(f"File with the secret both sides share; empty: the variable {handshake.SECRET_VARIABLE}.")
    ] = ""
    linger: Annotated[
        float, _fixed("Time for the other side to acknowledge what is left, when the sender stops.", unit="s", ge=0)
    ] = 10.0
    slot: Annotated[
        str, _fixed("Tell the other side that this process has this name; empty: its name in the wiring.")
    ] = ""
    kept: Annotated[
        bool,
        _fixed(
            "Leave what is not acknowledged at the end to the producers, which keep it, come back and send it again."
        ),
    ] = False


class RemoteConnector(Connector[T]):
    """A connector whose ends may be in two processes.

    Args:
        address: `unix:PATH` or `tcp:HOST:PORT`, where the two sides meet.
        exchange: the process' links; connectors that share it share sockets.
        side: which ends are in this process. `both` still goes over the socket.
        slot: the name of this process; of several senders each has its own, and keeps it when it comes back.
        senders: how many senders there will be, or their slots: the stream ends when each has.

    Raises:
        WiringError: the address is malformed, or `tcp:` has no secret.
    """

    def __init__(
        self,
        name: str,
        item_type: type[T],
        address: str,
        capacity: int = DEFAULT_CAPACITY,
        *,
        exchange: Exchange,
        side: Side = "both",
        slot: str = DEFAULT_SLOT,
        senders: int | frozenset[str] = 1,
        options: RemoteSheet | None = None,
    ) -> None:
        super().__init__(name, item_type, capacity)
        self._options = options or RemoteSheet()
        self._exchange = exchange
        self.address = parse(address)
        """The address where the sides meet; on port 0 of `tcp:` known after :meth:`start` of the side that listens."""
        self._secret = handshake.read_secret(self._options.secret_file, exchange.environment)
        if self.address.scheme != "unix" and not self._secret:
            raise WiringError(
                f"connector {name!r}: {address} needs a secret that both sides share; "
                f"name a secret_file, or set {handshake.SECRET_VARIABLE}"
            )
        self._changes = Waiters()
        self._slot = self._options.slot or slot
        sender, receiver = (About(name, type_name(item_type), sending, self._slot, "", 0) for sending in (True, False))
        settings = self._options
        codec: Codec[T] = Codec(name, item_type, self.item_class, settings.frame_limit)
        self._sender: Sender[T] | None = None
        self._receiver: Receiver[T] | None = None
        if side != "receive":
            journal = MemoryJournal()
            if settings.journal:
                purpose = f"connector {name!r} for {sender.item_type}"
                journal = FileJournal(Path(settings.journal), purpose, fsync=settings.fsync)
            window = settings.window or max(4 * settings.batch, capacity)
            self._sender = Sender(sender, codec, journal, capacity, settings.batch, window, self._changes)
        if side != "send":
            expected = ExpectedSenders(senders)
            limit = settings.frame_limit
            self._receiver = Receiver(receiver, item_type, codec, capacity, limit, expected, self._changes)
        self._dialling: asyncio.Task[None] | None = None
        self._peak = 0

    # -- its life

    async def start(self) -> None:
        """Listen, and begin to dial: the other side may come later. Raises WiringError: the socket or the journal cannot be
        used."""
        listens, dials = self._parties()
        if self._sender is not None:
            self._sender.open()
        if listens is not None:
            try:
                self.address = await self._exchange.listen(self.address, self._secret, listens)
            except WiringError:
                if self._sender is not None:
                    await self._sender.close()
                raise
        if dials is not None:
            self._dialling = asyncio.ensure_future(self._exchange.dial(self.address, self._secret, dials))

    async def stop(self) -> None:
        """Close in order: waiting items are sent, then connections, sockets and the journal are closed. Raises ConnectorError:
        the producers had closed, and what they sent last was not acknowledged in time."""
        left, sender = "", self._sender
        is_last = sender is not None and sender.ended and sender.failure is None and self._receiver is None
        if sender is not None and is_last and not self._options.kept:  # the other side gets time for what is left
            with contextlib.suppress(TimeoutError, ConnectorError):
                async with asyncio.timeout(self._options.linger):
                    await self.idle()
            lost = sender.unacknowledged + sender.intake.statistics().waiting
            if lost and not self._options.journal:
                within = f"within {self._options.linger:g} s and are lost; a journal would keep them"
                left = f"connector {self.name!r}: {lost} items were not acknowledged {within}"
        listens, _ = self._parties()
        if self._receiver is not None:
            self._receiver.close(self._sender.acknowledge if self._sender is not None else None)
        if self._dialling is not None:
            self._dialling.cancel()
            await asyncio.wait([self._dialling])
        if listens is not None:
            await self._exchange.unlisten(self.address, listens)
        if self._sender is not None:
            await self._sender.close()
        if left:
            raise ConnectorError(left)

    def _parties(self) -> tuple[Party | None, Party | None]:
        if self._options.listen == "receiver":
            return self._receiver, self._sender
        return self._sender, self._receiver

    # -- the producers' end

    def offer(self, items: Sequence[T], receipt: Receipt | None) -> bool:
        return self._sending().offer(items, receipt)

    async def send(self, items: Sequence[T], receipt: Receipt | None) -> None:
        await self._sending().send(items, receipt)

    async def room(self) -> int:
        return await self._sending().room()

    def end(self) -> None:
        """All producers of this process have closed: when everything is acknowledged the other side is told. Not where they keep
        what is not: they come back with it."""
        if self._sender is not None and not self._options.kept:
            self._sender.intake.end()

    # -- the consumers' end

    def poll(self, limit: int) -> tuple[list[T], Receipts]:
        receiver = self._receiving()
        receiver.ready.set()
        return receiver.inbox.poll(limit)

    async def take(self, limit: int) -> tuple[list[T], Receipts]:
        receiver = self._receiving()
        receiver.ready.set()
        return await receiver.inbox.take(limit)

    def retire(self) -> None:
        if self._receiver is not None:
            self._receiver.inbox.retire()

    def position(self) -> dict[str, int]:
        return self._receiver.position() if self._receiver is not None else {}

    def resume(self, positions: Mapping[str, int]) -> None:
        self._receiving().resume(positions)

    # -- both

    async def idle(self) -> None:
        """Return when everything sent is acknowledged or, where the consumers are in this process, handed out."""
        sender, receiver = self._sender, self._receiver
        if sender is None:
            await self._receiving().inbox.idle()
        elif receiver is None:
            while not sender.delivered:
                await sender.intake.idle()
                await self._changes.until(lambda: sender.delivered or not sender.intake.vacant)
        else:

            def under_way() -> int:
                sender.check()
                return self._under_way(sender, receiver)

            while under_way() or receiver.inbox.statistics().waiting or not sender.intake.vacant:
                await sender.intake.idle()
                await self._changes.until(lambda: not under_way() or not sender.intake.vacant)
                await receiver.inbox.idle()

    def _under_way(self, sender: Sender[T], receiver: Receiver[T]) -> int:
        """Items between two sides that are both here."""
        received = receiver.received(self._slot, sender.about().stream)
        return sender.numbered - max(received, sender.acknowledged)

    def statistics(self) -> Statistics:
        """The figures as they stand. A sending side alone has passed what left its queue, in all lives."""
        sender, receiver = self._sender, self._receiver
        intake = sender.intake.statistics() if sender is not None else Statistics()
        inbox = receiver.inbox.statistics() if receiver is not None else Statistics()
        under_way = 0
        if sender is not None:
            under_way = sender.unacknowledged if receiver is None else self._under_way(sender, receiver)
        waiting = intake.waiting + inbox.waiting + (under_way if receiver is not None else 0)
        self._peak = max(self._peak, waiting, intake.peak, inbox.peak)
        return Statistics(
            passed=inbox.passed if receiver is not None or sender is None else sender.numbered,
            waiting=waiting,
            peak=self._peak,
            stalled=sender.stalled if sender is not None else 0.0,
            capacity=self.capacity + (sender.window if sender is not None else 0),
            unacknowledged=sender.unacknowledged if sender is not None else 0,
            repeated=receiver.repeated if receiver is not None else 0,
        )

    def _sending(self) -> Sender[T]:
        return self._sender or self._absent("sending")

    def _receiving(self) -> Receiver[T]:
        return self._receiver or self._absent("receiving")

    def _absent(self, side: str) -> NoReturn:
        raise Closed(f"connector {self.name!r} is remote, and its {side} side is not in this process")
