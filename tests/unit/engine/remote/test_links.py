"""Sockets: who may listen where, and what strangers on them achieve."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gossamer.engine.ends import In, Out
from gossamer.engine.errors import Closed, ConnectorError, EndOfItems, RemoteRefused, WiringError, WrongItem
from gossamer.engine.gate import Receipt
from gossamer.engine.remote.addresses import parse
from gossamer.engine.remote.connector import RemoteConnector, RemoteSheet
from gossamer.engine.remote.frames import FramePipe
from gossamer.engine.remote.links import HALF_OPEN, LONGEST_DELAY, Exchange, _HalfOpen, _source

Run = Callable[[Any], Any]

SECRET = {"GOSSAMER_SECRET": "a secret of sufficient length"}


def connector(address: str, name: str = "words", **more: Any) -> RemoteConnector[str]:
    return RemoteConnector(name, str, address, exchange=more.pop("exchange", None) or Exchange({}), **more)


async def receive_all(end: In[str]) -> list[str]:
    received: list[str] = []
    try:
        while True:
            received += await end.receive_many()
    except EndOfItems:
        return received


@pytest.mark.parametrize(
    "address",
    ["unix:", "unix:" + "x" * 200, "tcp:", "tcp:9100", "tcp:localhost", "tcp:localhost:http", "tcp:h:70000", "udp:h:1"],
)
def test_malformed_addresses_are_told_how_they_are_written(address: str) -> None:
    with pytest.raises(WiringError, match=r"write|choose"):
        parse(address)


def test_addresses_are_read_and_written_alike() -> None:
    for address in ("unix:run/links.sock", "tcp:127.0.0.1:9100", "tcp:[::1]:9100"):
        assert str(parse(address)) == address


def test_tcp_needs_a_secret(socket_folder: Path) -> None:
    with pytest.raises(WiringError, match="GOSSAMER_SECRET"):
        connector("tcp:127.0.0.1:0")
    connector("tcp:127.0.0.1:0", exchange=Exchange(SECRET))


def test_a_secret_may_stand_in_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text(SECRET["GOSSAMER_SECRET"])
    path.chmod(0o600)
    connector("tcp:127.0.0.1:0", options=RemoteSheet(secret_file=str(path)))
    path.chmod(0o644)
    with pytest.raises(WiringError, match="open to others"):
        connector("tcp:127.0.0.1:0", options=RemoteSheet(secret_file=str(path)))


@pytest.mark.parametrize(("length", "fits"), [(4_000, True), (5_000, False)])
def test_an_item_longer_than_a_frame_may_be_is_refused(run: Run, socket_folder: Path, length: int, fits: bool) -> None:
    async def test() -> None:
        tested = connector(f"unix:{socket_folder}/s", options=RemoteSheet(frame_limit=4096))
        await tested.start()
        if fits:
            await tested.send(["x" * length], None)
            assert await In("in", tested).receive_many() == ["x" * length]
        else:
            with pytest.raises(WrongItem, match="longer than its frame_limit"):
                await tested.send(["x" * length], None)
        await tested.stop()

    run(test())


def test_a_socket_is_private_and_gone_after_stop(run: Run, socket_folder: Path) -> None:
    async def test() -> None:
        tested = connector(f"unix:{socket_folder}/run/s")
        await tested.start()
        assert (socket_folder / "run").stat().st_mode & 0o777 == 0o700
        assert (socket_folder / "run/s").stat().st_mode & 0o777 == 0o600
        await tested.stop()
        assert list((socket_folder / "run").iterdir()) == []

    run(test())


def test_only_the_socket_of_a_dead_process_is_replaced(run: Run, socket_folder: Path) -> None:
    async def test() -> None:
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(str(socket_folder / "stale"))
        stale.close()
        first = connector(f"unix:{socket_folder}/stale")
        await first.start()
        second = connector(f"unix:{socket_folder}/stale")
        with pytest.raises(WiringError, match="another process"):
            await second.start()
        await second.stop()
        assert (socket_folder / "stale").is_socket(), "the second one's stop does not touch the first one's socket"
        await first.stop()
        for name in ("file", "link"):
            path = socket_folder / name
            path.symlink_to("/dev/null") if name == "link" else path.write_text("precious")
            refused = connector(f"unix:{path}")
            with pytest.raises(WiringError, match="not a socket"):
                await refused.start()
            await refused.stop()
        assert (socket_folder / "file").read_text() == "precious"

    run(test())


@pytest.mark.parametrize("scheme", ["unix", "tcp"])
def test_who_goes_away_in_the_handshake_is_told_of_where_strangers_may_come(
    scheme: str, run: Run, socket_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "gossamer.engine.remote.links")

    async def test() -> None:
        exchange = Exchange(SECRET)
        address = f"unix:{socket_folder}/s" if scheme == "unix" else "tcp:127.0.0.1:0"
        served = connector(address, exchange=exchange)
        await served.start()
        if scheme == "unix":
            _, writer = await asyncio.open_unix_connection(f"{socket_folder}/s")
        else:
            _, writer = await asyncio.open_connection("127.0.0.1", served.address.port)
        writer.close()
        while not any("turned away" in record.message for record in caplog.records):
            await asyncio.sleep(0)
        await served.stop()

    run(test())
    levels = {record.levelname for record in caplog.records if "turned away" in record.message}
    assert levels == {"DEBUG" if scheme == "unix" else "WARNING"}


def test_a_folder_that_others_can_enter_is_refused(run: Run, socket_folder: Path) -> None:
    async def test() -> None:
        (socket_folder / "open").mkdir(mode=0o755)
        (socket_folder / "linked").symlink_to(socket_folder)
        for folder in ("open", "linked"):
            refused = connector(f"unix:{socket_folder}/{folder}/s")
            with pytest.raises(WiringError, match="chmod 700"):
                await refused.start()
            await refused.stop()

    run(test())


def test_strangers_do_not_disturb_a_link(run: Run, socket_folder: Path) -> None:
    async def test() -> None:
        path = str(socket_folder / "s")
        tested = connector(f"unix:{path}")
        await tested.start()
        silent = [await asyncio.open_unix_connection(path) for _ in range(HALF_OPEN // 2)]
        for garbage in (b"\xff\xff\xff\xff\x05", b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\1\x05"):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(garbage)
            await reader.read()
            writer.close()
        out, end = Out("out", tested), In("in", tested)
        await out.send_many(["a", "b"])
        out.close()
        assert await receive_all(end) == ["a", "b"]
        await tested.stop()
        for _, writer in silent:
            writer.close()

    run(test())


@pytest.mark.parametrize("address", ["unix:{}/s", "tcp:127.0.0.1:0"])
def test_silent_connections_of_one_address_keep_out_no_peer_and_fill_no_log(
    run: Run, socket_folder: Path, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    async def test() -> None:
        tested = connector(address.format(socket_folder), exchange=Exchange(SECRET), side="receive")
        await tested.start()
        place = tested.address

        async def silent() -> Any:
            if place.scheme == "unix":
                return await asyncio.open_unix_connection(place.path)
            return await asyncio.open_connection(place.host, place.port)

        strangers = [await silent() for _ in range(4 * HALF_OPEN)]
        peer = connector(str(place), exchange=Exchange(SECRET), side="send")
        await peer.start()
        out, end = Out("out", peer), In("in", tested)
        await out.send_many(["a", "b"])
        out.close()
        assert await receive_all(end) == ["a", "b"]
        for _, writer in strangers:
            writer.close()
        await peer.stop()
        await tested.stop()

    run(test())
    assert len(caplog.records) <= 8 + 6


def test_the_address_with_the_most_half_open_connections_loses_its_oldest_and_known_ones_lose_last() -> None:
    half_open = _HalfOpen()
    pipes = [FramePipe() for _ in range(HALF_OPEN + 4)]
    first = FramePipe()
    assert half_open.enter(first, "192.0.2.9") is None
    half_open.leave(first, is_proved=True)
    for number, pipe in enumerate(pipes[: HALF_OPEN - 2]):
        assert half_open.enter(pipe, "192.0.2.9" if number % 2 else "198.51.100.1") is None
    honest = FramePipe()
    assert half_open.enter(honest, "203.0.113.5") is None
    assert half_open.enter(pipes[-1], "198.51.100.1") is None
    assert half_open.enter(pipes[-2], "192.0.2.9") is pipes[0], "the oldest of the strangers that have the most"
    assert half_open.enter(pipes[-3], "203.0.113.6") is pipes[2]


def test_a_household_of_ipv6_counts_as_one_address() -> None:
    assert _source(("2001:db8::1", 1, 0, 0)) == _source(("2001:db8::ffff%eth0", 2, 0, 0))
    assert _source(("2001:db8:0:1::1", 1, 0, 0)) != _source(("2001:db8::1", 1, 0, 0))
    assert (_source(("192.0.2.1", 5)), _source("")) == ("192.0.2.1", "")


def test_two_connectors_of_one_address_make_a_link_both_ways(run: Run, socket_folder: Path) -> None:
    async def test() -> None:
        address, here, there = f"unix:{socket_folder}/s", Exchange(SECRET), Exchange(SECRET)
        sides = [
            connector(address, "requests", exchange=here, side="receive"),
            connector(address, "answers", exchange=here, side="send", options=RemoteSheet(listen="sender")),
            connector(address, "requests", exchange=there, side="send"),
            connector(address, "answers", exchange=there, side="receive", options=RemoteSheet(listen="sender")),
        ]
        for side in sides:
            await side.start()
        requests, answers = Out("requests", sides[2]), Out("answers", sides[1])
        await requests.send("what?")
        requests.close()
        assert await receive_all(In("requests", sides[0])) == ["what?"]
        await answers.send("that")
        answers.close()
        assert await receive_all(In("answers", sides[3])) == ["that"]
        with pytest.raises(Closed, match="receiving side is not in this process"):
            await sides[1].take(1)
        with pytest.raises(Closed, match="sending side is not in this process"):
            await sides[3].send(["x"], None)
        for side in sides:
            await side.stop()

    run(test())


@pytest.mark.parametrize("listens", ["receiver", "sender"])
@pytest.mark.parametrize("scheme", ["unix", "tcp"])
def test_items_are_compressed_where_the_link_is_between_machines_whoever_listens(
    scheme: str, listens: Any, run: Run, socket_folder: Path
) -> None:
    """A relay between the two sides counts what passes."""
    items = [f"http://www.example.org/pages/{number}.html" for number in range(2000)]

    async def test() -> None:
        passed = 0
        near = f"unix:{socket_folder}/near" if scheme == "unix" else "tcp:127.0.0.1:0"
        sides: dict[str, dict[str, Any]] = {"receiver": {"side": "receive"}, "sender": {"side": "send"}}
        options = RemoteSheet(listen=listens)
        listening = connector(near, exchange=Exchange(SECRET), options=options, **sides.pop(listens))
        await listening.start()

        async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal passed
            while data := await reader.read(1 << 16):
                passed += len(data)
                writer.write(data)
            writer.close()

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            there = listening.address
            if scheme == "unix":
                other = await asyncio.open_unix_connection(there.path)
            else:
                other = await asyncio.open_connection(there.host, there.port)
            await asyncio.gather(pump(reader, other[1]), pump(other[0], writer))

        if scheme == "unix":
            server = await asyncio.start_unix_server(relay, f"{socket_folder}/far")
            far = f"unix:{socket_folder}/far"
        else:
            server = await asyncio.start_server(relay, "127.0.0.1", 0)
            far = f"tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}"
        dialling = connector(far, exchange=Exchange(SECRET), options=options, **next(iter(sides.values())))
        await dialling.start()
        sending, receiving = (dialling, listening) if listens == "receiver" else (listening, dialling)
        out = Out("out", sending)
        await out.send_many(items)
        out.close()
        assert await receive_all(In("in", receiving)) == items
        for side in (sending, receiving):
            await side.stop()
        server.close()
        length = sum(map(len, items))
        assert passed < length / 3 if scheme == "tcp" else passed > length

    run(test())


def test_a_refused_dialer_tells_its_producers_and_does_not_come_again(run: Run, socket_folder: Path) -> None:
    async def test() -> None:
        address = f"unix:{socket_folder}/s"
        receiving = connector(address, side="receive", exchange=Exchange(SECRET))
        sending = connector(address, side="send", exchange=Exchange({"GOSSAMER_SECRET": "another secret altogether"}))
        await receiving.start()
        await sending.start()
        with pytest.raises(RemoteRefused, match="secret"):
            await sending.send(["x"] * 10_000, None)
        await sending.stop()
        await receiving.stop()

    run(test())


def test_a_dialer_backs_off_until_the_other_side_is_there(run: Run, socket_folder: Path) -> None:
    async def test() -> None:
        waits: list[float] = []
        address = f"unix:{socket_folder}/s"
        receiving = connector(address, side="receive")

        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 8:
                await receiving.start()
            await asyncio.sleep(0)

        sending = connector(address, side="send", exchange=Exchange({}, sleep=sleep, chance=lambda: 1.0))
        await sending.start()
        out = Out("out", sending)
        await out.send("patience")
        out.close()
        assert await receive_all(In("in", receiving)) == ["patience"]
        assert waits[:8] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, LONGEST_DELAY, LONGEST_DELAY]
        await sending.stop()
        await receiving.stop()

    run(test())


def test_connectors_of_one_address_have_names_and_a_secret_in_common(run: Run, socket_folder: Path) -> None:
    async def test() -> None:
        exchange = Exchange({})
        first = connector(f"unix:{socket_folder}/s", exchange=exchange, side="receive")
        await first.start()
        second = connector(f"unix:{socket_folder}/s", exchange=exchange, side="receive")
        with pytest.raises(WiringError, match="names at one address must differ"):
            await second.start()
        await first.stop()

    run(test())


def test_a_connector_that_its_process_opens_later_is_asked_for_again(run: Run, socket_folder: Path) -> None:
    async def test() -> None:
        address, there = f"unix:{socket_folder}/s", Exchange({})
        early = connector(address, "early", exchange=there, side="receive")
        late = connector(address, "late", exchange=there, side="receive")
        await early.start()
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                await late.start()
            await asyncio.sleep(0)

        sending = connector(address, "late", side="send", exchange=Exchange({}, sleep=sleep))
        await sending.start()
        out = Out("out", sending)
        await out.send("at last")
        out.close()
        assert await receive_all(In("in", late)) == ["at last"]
        for side in (sending, late, early):
            await side.stop()

    run(test())


def test_a_connector_that_never_comes_is_a_mistake(run: Run, socket_folder: Path) -> None:
    async def test() -> None:
        address = f"unix:{socket_folder}/s"
        early = connector(address, "early", side="receive")
        await early.start()
        sending = connector(address, "misspelt", side="send", exchange=Exchange({}, sleep=lambda _: asyncio.sleep(0)))
        await sending.start()
        with pytest.raises(RemoteRefused, match=r"no connector 'misspelt'.*known: early"):
            await sending.send(["x"] * 10_000, None)
        await sending.stop()
        await early.stop()

    run(test())


def test_stopping_tells_what_nobody_acknowledged(run: Run, socket_folder: Path) -> None:
    async def test() -> None:
        sending = connector(f"unix:{socket_folder}/s", side="send", options=RemoteSheet(linger=0))
        await sending.start()
        out = Out("out", sending)
        await out.send_many(["a", "b"])
        out.close()
        with pytest.raises(ConnectorError, match="2 items were not acknowledged"):
            await sending.stop()
        kept = RemoteSheet(linger=0, journal=str(socket_folder / "journal"))
        sending = connector(f"unix:{socket_folder}/s", side="send", options=kept)
        await sending.start()
        out = Out("out", sending)
        await out.send_many(["a", "b"])
        out.close()
        await sending.stop()

    run(test())


def test_a_sender_that_keeps_what_it_sends_comes_back_after_its_end(run: Run, socket_folder: Path) -> None:
    async def test() -> None:
        address, environment = f"unix:{socket_folder}/s", Exchange({})
        receiving = connector(address, side="receive", senders=frozenset({"oslo"}), exchange=environment)
        await receiving.start()
        for word in ("a", "b"):
            options = RemoteSheet(kept=True, slot="oslo")
            sending = connector(address, side="send", options=options, exchange=Exchange({}))
            await sending.start()
            out = Out("out", sending)
            await out.send_many([word])
            items, receipts = await receiving.take(1)
            assert items == [word]
            for receipt in receipts or ():
                assert receipt is not None
                receipt.release()
            out.close()
            await sending.idle()
            await sending.stop()
        await receiving.stop()

    run(test())


def test_what_consumers_still_hold_when_both_sides_stop_is_acknowledged_later(run: Run, socket_folder: Path) -> None:
    async def test() -> None:
        done: list[bool] = []
        receipt = Receipt(lambda: done.append(True))
        tested = connector(f"unix:{socket_folder}/s")
        await tested.start()
        await tested.send(["a", "b"], receipt)
        receipt.release()
        items: list[str] = []
        held: list[Receipt | None] = []
        while len(items) < 2:
            taken, receipts = await tested.take(2)
            items += taken
            held += receipts or ()
        await tested.idle()
        await tested.stop()
        assert not done
        for each in held:
            assert each is not None
            each.release()
        assert done == [True]

    run(test())


@pytest.mark.parametrize("journal", ["", "journal"])
def test_who_waits_to_send_when_a_connector_stops_is_told(journal: str, run: Run, socket_folder: Path) -> None:
    async def test() -> None:
        options = RemoteSheet(journal=journal and str(socket_folder / journal), window=10)
        tested = connector(f"unix:{socket_folder}/s", options=options)
        await tested.start()
        waiting = [asyncio.ensure_future(tested.send(["x"] * 200, None)) for _ in range(3)]
        for _ in range(5):
            await asyncio.sleep(0)
        await tested.stop()
        for each in waiting[1:]:
            with pytest.raises(Closed):
                await each
        await asyncio.gather(waiting[0], return_exceptions=True)

    run(test())
