"""A sender and a receiver over links that are cut: what is sent again, what is dropped, who takes whose place."""

import asyncio
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gossamer.engine.connector import Receipts, Waiters
from gossamer.engine.errors import BrokenFrame, EndOfItems, RemoteRefused, WrongItem
from gossamer.engine.gate import Receipt
from gossamer.engine.remote.frames import (
    FRAME_LIMIT,
    About,
    Ack,
    Codec,
    FrameKind,
    FramePipe,
    LinkRefused,
    decode,
    encode,
)
from gossamer.engine.remote.journal import FileJournal, MemoryJournal
from gossamer.engine.remote.receiving import ExpectedSenders, Receiver
from gossamer.engine.remote.sending import Sender

Run = Callable[[Any], Any]

#: The number of the first item, as a frame begins with it.
FIRST = struct.pack("!Q", 1)

CODEC: Codec[int] = Codec("numbers", int, int, FRAME_LIMIT)


def make_sender(journal: MemoryJournal | None = None, slot: str = "a", batch: int = 2, window: int = 6) -> Sender[int]:
    about = About("numbers", "int", True, slot, "", 1)
    sender = Sender(about, CODEC, journal or MemoryJournal(), 100, batch, window, Waiters())
    sender.open()
    return sender


def make_receiver(senders: int | frozenset[str] = 1, capacity: int = 100) -> Receiver[int]:
    about = About("numbers", "int", False, "b", "", 0)
    receiver = Receiver(about, int, CODEC, capacity, FRAME_LIMIT, ExpectedSenders(senders), Waiters())
    receiver.ready.set()
    return receiver


class Link:
    """A sender and a receiver, connected until it is cut."""

    def __init__(self, pipes: tuple[FramePipe, FramePipe], sender: Sender[int], receiver: Receiver[int]) -> None:
        self.pipes = pipes
        self.serving = [
            asyncio.ensure_future(sender.serve(pipes[0], receiver.about())),
            asyncio.ensure_future(receiver.serve(pipes[1], sender.about())),
        ]

    async def cut(self) -> None:
        for pipe in self.pipes:
            pipe.abort()
        await asyncio.gather(*self.serving)


async def take(receiver: Receiver[int], count: int) -> tuple[list[int], list[Receipt]]:
    items: list[int] = []
    held: list[Receipt] = []
    while len(items) < count:
        taken, receipts = await receiver.inbox.take(count - len(items))
        items += taken
        held += [receipt for receipt in receipts or () if receipt is not None]
    return items, held


def release(receipts: Receipts) -> None:
    for receipt in receipts or ():
        if receipt is not None:
            receipt.release()


def test_what_was_not_handled_when_a_receiver_died_goes_to_its_successor(run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        sender, first, second = make_sender(), make_receiver(), make_receiver()
        link = Link(joined_pipes(), sender, first)
        await sender.send([1, 2, 3, 4, 5, 6], None)
        _, receipts = await take(first, 6)
        release(receipts[:3])
        await sender.changes.until(lambda: sender.acknowledged == 2)
        await link.cut()
        link = Link(joined_pipes(), sender, second)
        items, receipts = await take(second, 4)
        assert items == [3, 4, 5, 6], "frames that were handled whole do not come again"
        release(receipts)
        await sender.changes.until(lambda: not sender.unacknowledged)
        await link.cut()
        await sender.close()

    run(test())


def test_what_a_living_receiver_has_had_is_dropped_and_counted(run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        sender, receiver = make_sender(), make_receiver()
        link = Link(joined_pipes(), sender, receiver)
        await sender.send([1, 2, 3, 4], None)
        _, receipts = await take(receiver, 4)
        await link.cut()
        link = Link(joined_pipes(), sender, receiver)
        await sender.send([5], None)
        items, more = await take(receiver, 1)
        assert items == [5]
        assert receiver.repeated == 4
        release(receipts + more)
        await sender.changes.until(lambda: not sender.unacknowledged)
        await link.cut()
        await sender.close()

    run(test())


def test_no_more_than_the_window_is_under_way(run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        sender, receiver = make_sender(), make_receiver()
        await sender.send(list(range(20)), None)
        link = Link(joined_pipes(), sender, receiver)
        _, receipts = await take(receiver, 6)
        for _ in range(20):
            await asyncio.sleep(0)
        assert sender.numbered == 6
        assert receiver.inbox.poll(1) == ([], None)
        release(receipts)
        items, _ = await take(receiver, 6)
        assert items == [6, 7, 8, 9, 10, 11]
        await link.cut()
        await sender.close()

    run(test())


def test_receipts_of_what_is_sent_are_held_until_the_other_side_has_handled_it(run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        sender, receiver = make_sender(), make_receiver()
        done: list[bool] = []
        receipt = Receipt(lambda: done.append(True))
        link = Link(joined_pipes(), sender, receiver)
        assert sender.offer([1, 2, 3], receipt)
        receipt.release()
        _, receipts = await take(receiver, 3)
        assert not done
        release(receipts)
        await sender.changes.until(lambda: not sender.unacknowledged)
        assert done == [True]
        await link.cut()
        await sender.close()

    run(test())


def test_a_consumer_that_kept_its_position_gets_the_next_item(run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        sender, first, second = make_sender(window=10), make_receiver(), make_receiver()
        link = Link(joined_pipes(), sender, first)
        await sender.send([1, 2, 3, 4, 5], None)
        await take(first, 3)
        kept = first.position()
        assert list(kept.values()) == [3], "in the middle of a frame"
        await link.cut()
        second.resume(kept)
        assert second.position() == kept, "kept until the sender is back"
        link = Link(joined_pipes(), sender, second)
        items, _ = await take(second, 2)
        assert items == [4, 5]
        assert list(second.position().values()) == [5]
        await link.cut()
        await sender.close()

    run(test())


def test_a_consumer_older_than_what_was_acknowledged_is_told_so(run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        sender, first, second = make_sender(), make_receiver(), make_receiver()
        link = Link(joined_pipes(), sender, first)
        await sender.send([1, 2, 3, 4], None)
        _, receipts = await take(first, 2)
        kept = dict.fromkeys(first.position(), 1)
        release(receipts)
        await sender.changes.until(lambda: sender.acknowledged == 2)
        await link.cut()
        second.resume(kept)
        link = Link(joined_pipes(), sender, second)
        with pytest.raises(RemoteRefused, match="acknowledged and are lost"):
            await sender.changes.until(lambda: sender.delivered)
        with pytest.raises(RemoteRefused):
            await sender.send([5], None)
        await link.cut()
        await sender.close()

    run(test())


def test_a_journal_older_than_its_receiver_is_told_so(run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        sender = make_sender()
        await sender.send([1], None)
        ours, theirs = joined_pipes()
        serving = asyncio.ensure_future(sender.serve(ours, About("numbers", "int", False, "b", "", 0)))
        theirs.put(FrameKind.ACK, encode(Ack(17)))
        await serving
        with pytest.raises(RemoteRefused, match="older"):
            sender.offer([2], None)
        await sender.close()

    run(test())


def test_a_sender_that_starts_anew_takes_the_place_of_its_former_life(run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        old, new, receiver = make_sender(), make_sender(), make_receiver()
        first = Link(joined_pipes(), old, receiver)
        await old.send([1, 2], None)
        items, _ = await take(receiver, 1)
        second = Link(joined_pipes(), new, receiver)
        await new.send([10], None)
        more, _ = await take(receiver, 2)
        assert items + more == [1, 2, 10], "what had come is handled as usual"
        assert len(receiver.position()) == 1
        await asyncio.gather(*first.serving)
        with pytest.raises(RemoteRefused, match="taken the place"):
            old.check()
        assert "taken the place" in receiver.objection(old.about())
        await second.cut()
        await old.close()
        await new.close()

    run(test())


def test_the_stream_ends_when_each_expected_sender_has_ended(run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        receiver = make_receiver(frozenset({"a", "c"}))
        assert "not one of its senders" in receiver.objection(About("numbers", "int", True, "z", "s", 1))
        links = []
        for slot, number in (("a", 1), ("c", 2)):
            sender = make_sender(slot=slot)
            links.append((sender, Link(joined_pipes(), sender, receiver)))
            await sender.send([number], None)
            sender.intake.end()
            items, receipts = await take(receiver, 1)
            assert items == [number]
            release(receipts)
            await sender.changes.until(lambda: sender.delivered)  # noqa: B023 - awaited at once
        with pytest.raises(EndOfItems):
            await receiver.inbox.take(1)
        assert receiver.done
        assert "ended" in receiver.objection(About("numbers", "int", True, "a", "s", 1))
        for sender, link in links:
            assert sender.done
            await link.cut()
            await sender.close()

    run(test())


def test_more_senders_than_expected_are_refused(run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        receiver, sender = make_receiver(1), make_sender()
        link = Link(joined_pipes(), sender, receiver)
        await sender.send([1], None)
        await take(receiver, 1)
        assert "1 senders" in receiver.objection(About("numbers", "int", True, "z", "s", 1))
        assert not receiver.objection(sender.about())
        await link.cut()
        await sender.close()

    run(test())


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"short",
        FIRST,
        FIRST + b"\xdd\xff\xff\xff\xff",
        FIRST + b"\x91\xc7\x01\x05x",
        FIRST + b"\x91\xa1x",
        FIRST + b"\x90",
        struct.pack("!Q", 0) + b"\x91\x01",
        FIRST + b"\x91" * 5000,
    ],
    ids=["empty", "no number", "no items", "4 Gi items", "extension", "wrong type", "none", "number 0", "nested"],
)
def test_frames_that_hold_no_items_are_refused_aloud(payload: bytes, run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        with pytest.raises(BrokenFrame):
            CODEC.unpack(payload)
        receiver = make_receiver()
        ours, theirs = joined_pipes()
        serving = asyncio.ensure_future(receiver.serve(theirs, About("numbers", "int", True, "a", "s", 1)))
        assert (await ours.read())[0] is FrameKind.ACK
        ours.put(FrameKind.DATA, payload)
        kind, answer = await ours.read()
        assert kind is FrameKind.REFUSED
        assert decode(answer, LinkRefused).reason
        await serving
        assert receiver.inbox.poll(1) == ([], None)

    run(test())


def test_a_gap_drops_the_link_and_takes_nothing(run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        receiver = make_receiver()
        ours, theirs = joined_pipes()
        serving = asyncio.ensure_future(receiver.serve(theirs, About("numbers", "int", True, "a", "s", 1)))
        ours.put(FrameKind.DATA, CODEC.pack(5, CODEC.encode([5])))
        await serving
        assert receiver.inbox.poll(1) == ([], None)
        assert list(receiver.position().values()) == [0]

    run(test())


def test_frames_that_overlap_are_cut_to_what_is_new(run: Run, joined_pipes: Any) -> None:
    async def test() -> None:
        receiver = make_receiver()
        ours, theirs = joined_pipes()
        serving = asyncio.ensure_future(receiver.serve(theirs, About("numbers", "int", True, "a", "s", 1)))
        ours.put(FrameKind.DATA, CODEC.pack(1, CODEC.encode([1, 2, 3])))
        ours.put(FrameKind.DATA, CODEC.pack(2, CODEC.encode([2, 3, 4, 5])))
        items, _ = await take(receiver, 5)
        assert items == [1, 2, 3, 4, 5]
        assert receiver.repeated == 2
        ours.close()
        await serving

    run(test())


def test_a_journal_in_a_file_has_what_send_returned_from(run: Run, joined_pipes: Any, tmp_path: Path) -> None:
    async def test() -> None:
        before = make_sender(FileJournal(tmp_path / "journal", "numbers"))
        assert before.offer([1], None)
        await before.send([2, 3, 4], None)
        stream = before.about().stream
        await before.close()
        after = make_sender(FileJournal(tmp_path / "journal", "numbers"))
        assert after.about().stream == stream
        assert after.numbered == 4
        receiver = make_receiver()
        link = Link(joined_pipes(), after, receiver)
        await after.send([5], None)
        items, _ = await take(receiver, 5)
        assert items == [1, 2, 3, 4, 5]
        await link.cut()
        await after.close()

    run(test())


def test_an_item_that_cannot_cross_is_refused_where_it_is_sent(run: Run) -> None:
    class Other(int):
        pass

    async def test() -> None:
        sender = make_sender()
        for wrong in (Other(1), 2**70):
            with pytest.raises(WrongItem):
                sender.offer([1, wrong], None)
        assert sender.intake.vacant
        await sender.close()

    run(test())
