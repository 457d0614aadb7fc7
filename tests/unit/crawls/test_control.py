"""What the control socket promises: a closed list of requests from our own user, and a crawl that nothing holds up."""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.crawls.control import wire
from gossamer.crawls.control import wire as places
from gossamer.crawls.control.client import Control, NotRunning
from gossamer.crawls.control.messages import (
    BlockHosts,
    Change,
    CheckChange,
    Checkpoint,
    Checkpoints,
    CheckRewire,
    Continue,
    Pause,
    ReadGraph,
    ReadHost,
    ReadHosts,
    Rewire,
    SetHost,
    Status,
    Stop,
    Undo,
    Why,
)
from gossamer.crawls.control.server import ControlServer, read_request
from gossamer.crawls.control.wire import Answered, ControlRequest, Done, Listed, Malformed, RequestRefused, Told
from gossamer.storage.ledger.opening import ProcessLock
from gossamer.testing.clock import HUNG_AFTER
from gossamer.values.errors import CrawlDirectoryError, UsageError

Run = Callable[[Coroutine[Any, Any, Any]], Any]

EVERY_REQUEST = [
    Status(units=True),
    Pause(),
    Continue(),
    Stop(now=True),
    Checkpoint("before"),
    Checkpoints(),
    Change({"frontier.concurrency": "4"}),
    BlockHosts(["a.test", "b.test"]),
    Why("http://a.test/"),
    CheckChange({"frontier.concurrency": "4"}),
    CheckRewire("remove = []"),
    ReadGraph(),
    ReadHost("a.test"),
    ReadHosts(["a.test", "b.test"]),
    SetHost("a.test", {"delay": "5s"}),
    Rewire("remove = []"),
    Undo(),
]


@pytest.fixture
def crawl(tmp_path: Path, socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that holds a crawl, and a runtime directory of our own."""
    (socket_folder / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(socket_folder / "run"))
    (tmp_path / "crawl.toml").touch()
    return tmp_path


class Steered:
    """A crawl that only remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[ControlRequest] = []
        self.reports: list[str] = []

    async def steer(self, request: ControlRequest) -> Answered:
        self.asked.append(request)
        match request:
            case Checkpoints():
                return Listed(["one", "two"])
            case Status():
                return Told(msgspec.Raw(msgspec.json.encode({"pages": 3})))
            case BlockHosts(names=["broken"]):
                raise ZeroDivisionError("a fault of ours")
            case BlockHosts(names=["?"]):
                raise UsageError("'?' is not a host or domain")
            case _:
                return Done(f"did {type(request).__name__}")


@asynccontextmanager
async def serving(directory: Path, **limits: Any) -> AsyncIterator[tuple[Steered, ControlServer]]:
    steered = Steered()
    control = ControlServer(directory, steered.steer, steered.reports.append, **limits)
    await control.start()
    try:
        yield steered, control
    finally:
        await control.stop()


@contextmanager
def listening_socket(directory: Path) -> Iterator[socket.socket]:
    """A socket where that of this crawl would be, which accepts and says nothing."""
    folder = places.folders()[0]
    folder.mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(folder / places.socket_name(directory)))
        bound.listen()
        yield bound


async def asking(directory: Path, ask: Callable[[Control], Any]) -> Any:
    """Ask from a thread, as another process would."""

    def inside() -> Any:
        with Control(directory) as control:
            return ask(control)

    return await asyncio.to_thread(inside)


@pytest.mark.parametrize("request_", EVERY_REQUEST, ids=lambda request: type(request).__name__)
def test_every_request_arrives_as_it_was_sent_and_is_answered(request_: ControlRequest, crawl: Path, run: Run) -> None:
    async def steps() -> None:
        async with serving(crawl) as (steered, _):
            answer = await asking(crawl, lambda control: control.ask(request_))
            assert steered.asked == [request_]
            assert isinstance(answer, Done | Listed | Told)

    run(steps())


def test_one_connection_carries_many_requests(crawl: Path, run: Run) -> None:
    async def steps() -> None:
        async with serving(crawl) as (steered, _):
            found = await asking(
                crawl,
                lambda control: (
                    control.do(Pause()),
                    control.names(Checkpoints()),
                    control.told(Status(), dict[str, int]),
                ),
            )
            assert found == ("did Pause", ["one", "two"], {"pages": 3})
            assert len(steered.asked) == 3

    run(steps())


def test_a_refusal_keeps_its_words_and_its_exit_status(crawl: Path, run: Run) -> None:
    async def steps() -> None:
        async with serving(crawl):
            with pytest.raises(RequestRefused, match="not a host or domain") as caught:
                await asking(crawl, lambda control: control.do(BlockHosts(["?"])))
            assert caught.value.exit_code == 2

    run(steps())


def test_a_fault_in_an_answer_is_told_and_the_server_serves_on(crawl: Path, run: Run) -> None:
    async def steps() -> None:
        async with serving(crawl):
            with pytest.raises(RequestRefused, match="ZeroDivisionError: a fault of ours"):
                await asking(crawl, lambda control: control.do(BlockHosts(["broken"])))
            assert await asking(crawl, lambda control: control.do(Pause())) == "did Pause"

    run(steps())


def test_without_a_crawl_at_work_one_line_says_how_to_go_on(crawl: Path) -> None:
    with pytest.raises(NotRunning, match=r"no crawl is running in .*; `gossamer resume .*` goes on") as caught:
        Control(crawl)
    assert caught.value.exit_code == 2


def test_a_directory_without_a_crawl_is_told_apart_from_one_that_rests(crawl: Path) -> None:
    (crawl / "crawl.toml").unlink()
    with pytest.raises(UsageError, match="holds no crawl"):
        Control(crawl)
    with pytest.raises(UsageError, match="not a directory"):
        Control(crawl / "nowhere")


def test_the_socket_of_a_killed_crawl_is_no_crawl_and_is_replaced_by_the_next(crawl: Path, run: Run) -> None:
    with listening_socket(crawl):
        pass
    with pytest.raises(NotRunning):
        Control(crawl)

    async def steps() -> None:
        async with serving(crawl) as (steered, _):
            assert await asking(crawl, lambda control: control.do(Pause())) == "did Pause"
            assert steered.reports == []

    run(steps())


def test_nothing_is_left_behind_and_the_socket_is_ours_alone(crawl: Path, run: Run) -> None:
    async def steps() -> Path:
        async with serving(crawl) as (_, control):
            assert control.path is not None
            assert stat.S_IMODE(control.path.stat().st_mode) == 0o600
            assert stat.S_IMODE(control.path.parent.stat().st_mode) == 0o700
            return control.path

    assert not run(steps()).exists()


def test_a_folder_that_others_may_write_to_is_neither_used_nor_believed(crawl: Path, run: Run) -> None:
    runtime = Path(os.environ["XDG_RUNTIME_DIR"])
    (runtime / "gossamer").mkdir()
    (runtime / "gossamer").chmod(0o777)

    async def steps() -> None:
        async with serving(crawl) as (_, control):
            assert control.path is None or control.path.parent != runtime / "gossamer"
        assert runtime / "gossamer" not in {path.parent for path in places.sockets(crawl)}

    run(steps())


@pytest.mark.parametrize("place", [".", "state/agent-01"])
def test_a_crawl_is_found_from_a_session_with_another_environment(
    crawl: Path, socket_folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (crawl / "state/agent-01").mkdir(parents=True)
    directory = crawl / place

    async def steps() -> None:
        async with serving(directory) as (_, control):
            monkeypatch.delenv("XDG_RUNTIME_DIR")
            assert control.path in places.sockets(directory)
            assert control.path not in places.sockets(crawl / "state")
            (socket_folder / "run" / "gossamer").chmod(0o755)
            assert control.path not in places.sockets(directory), "others may write there, whatever the note says"
            (socket_folder / "run" / "gossamer").chmod(0o700)
        assert control.path not in places.sockets(directory)

    run(steps())
    assert [path.name for path in crawl.rglob("*") if path.is_file()] == ["crawl.toml"]


def test_one_crawl_has_one_socket_however_its_directory_is_written(crawl: Path) -> None:
    (crawl.parent / "link").symlink_to(crawl)
    (crawl / "sub").mkdir()
    names = {places.socket_name(path) for path in (crawl, crawl / "sub" / "..", crawl.parent / "link")}
    assert len(names) == 1
    assert places.socket_name(crawl / "sub") not in names


def test_a_stranger_at_the_other_end_is_dropped(crawl: Path, run: Run) -> None:
    async def steps() -> None:
        async with serving(crawl, is_ours=lambda connected: False) as (steered, _):
            with pytest.raises(NotRunning):
                await asking(crawl, lambda control: control.do(Pause()))
            assert steered.asked == []

    run(steps())


def test_a_server_that_is_not_ours_is_not_asked(crawl: Path) -> None:
    with listening_socket(crawl), pytest.raises(NotRunning):
        Control(crawl, is_ours=lambda connected: False)


def raw(directory: Path, data: bytes) -> bytes:
    """Send bytes, and nothing more; what comes back before the end."""
    with socket.socket(socket.AF_UNIX) as connected:
        connected.settimeout(HUNG_AFTER)
        connected.connect(str(next(path for path in places.sockets(directory) if path.exists())))
        connected.sendall(data)
        connected.shutdown(socket.SHUT_WR)
        received = b""
        try:
            while part := connected.recv(65536):
                received += part
        except ConnectionError:
            pass
        return received


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\xff\xff\xff\xff" + b"{" * 100, b"\0\0\0\0", b"\0\x10\0\x01{", b"GET / HTTP/1.1\r\n\r\n"],
    ids=["nothing", "torn header", "4 GiB", "empty", "too long", "HTTP"],
)
def test_what_is_no_request_ends_the_connection_and_nothing_else(data: bytes, crawl: Path, run: Run) -> None:
    async def steps() -> None:
        async with serving(crawl) as (steered, _):
            assert await asyncio.to_thread(raw, crawl, data) == b""
            assert steered.asked == []
            assert await asking(crawl, lambda control: control.do(Pause())) == "did Pause"

    run(steps())


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"do": "eval", "code": "1"}',
        b'{"do": "pause", "also": "this"}',
        b'{"do": "block", "names": []}',
        b'{"do": "block", "names": [7]}',
        b'{"do": "block", "names": "a.test"}',
        b'{"do": "set", "values": {"": "x"}}',
        b"\xff\xfe",
        b"null",
    ],
)
def test_a_request_outside_of_the_list_is_refused_in_words(body: bytes, crawl: Path, run: Run) -> None:
    async def steps() -> None:
        async with serving(crawl) as (steered, _):
            received = await asyncio.to_thread(raw, crawl, len(body).to_bytes(4) + body)
            answer = wire.read_answer(received[4:])
            assert isinstance(answer, wire.NotDone)
            assert answer.exit_code == 2
            assert steered.asked == []

    run(steps())


@given(st.binary(max_size=200))
def test_no_bytes_make_anything_but_a_request_or_a_refusal(body: bytes) -> None:
    try:
        request = read_request(body)
    except Malformed:
        return
    assert read_request(wire.encode(request)[4:]) == request


def test_a_slow_client_holds_up_nobody(crawl: Path, run: Run) -> None:
    async def steps() -> None:
        async with serving(crawl, patience=0.05) as (_, control):
            reader, writer = await asyncio.open_unix_connection(str(control.path))
            writer.write(b"\0")
            assert await asking(crawl, lambda control: control.do(Pause())) == "did Pause"
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()

    run(steps())


def test_more_clients_than_there_is_room_for_are_turned_away(crawl: Path, run: Run) -> None:
    async def steps() -> None:
        async with serving(crawl, max_clients=1) as (_, control):
            reader, writer = await asyncio.open_unix_connection(str(control.path))
            writer.write(wire.encode(Pause()))
            await reader.readexactly(4)
            with pytest.raises(NotRunning):
                await asking(crawl, lambda control: control.do(Pause()))
            writer.close()
            await writer.wait_closed()

    run(steps())


def test_a_crawl_that_is_suspended_is_told_apart_from_one_that_is_gone(crawl: Path) -> None:
    with (
        listening_socket(crawl),
        Control(crawl, timeout=0.05) as control,
        pytest.raises(CrawlDirectoryError, match="does not answer"),
    ):
        control.do(Pause())


def test_a_directory_that_is_in_use_without_a_socket_is_told_with_its_process(crawl: Path) -> None:
    lock = ProcessLock(crawl / "state" / "agent-00" / "lock")
    with pytest.raises(CrawlDirectoryError, match=f"in use by process {os.getpid()}, which takes no commands"):
        Control(crawl, changing=0.0)
    lock.close()
    with pytest.raises(NotRunning):
        Control(crawl)
