"""Work in processes of their own: answered in typed frames, limited, and ended when it is late, dies or has no parent any more."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.engine import processes
from gossamer.engine.worker import Caller, Frames, PeerGone, Use
from gossamer.engine.workers import Worker, WorkerFailed, answered, working
from gossamer.testing.clock import HUNG_AFTER
from gossamer.values.errors import CrawlDirectoryError


class Order(msgspec.Struct):
    """A request of these tests."""

    do: str
    number: int = 0


def work(order: Order, caller: Caller) -> Any:
    """The function of these tests; it runs in the other process."""
    match order.do:
        case "double":
            print("this is for people")
            return {"number": order.number * 2, "niceness": os.nice(0)}
        case "count":
            for number in range(order.number):
                caller.send(bytes([number]))
        case "join":
            return b"".join(caller.take() for _ in range(order.number))
        case "wait":
            while not caller.has_closed(HUNG_AFTER):
                pass
            return b"closed"
        case _:
            return misbehave(order, caller)
    return None


def misbehave(order: Order, caller: Caller) -> Any:
    match order.do:
        case "refuse":
            raise CrawlDirectoryError("this crawl\nis in use")
        case "break":
            raise KeyError("nothing of this name")
        case "fill":
            return bytes(len(bytearray(order.number)))
        case "burn":
            while True:
                pass
        case "limit":
            caller.limit_time(0.0)
            time.sleep(HUNG_AFTER)
        case "die":
            os.kill(os.getpid(), order.number)
    return None


USE = Use(f"{__name__}:work")

pytestmark = pytest.mark.forks


def told(order: Order, use: Use = USE, seconds: float = HUNG_AFTER) -> bytes:
    return asyncio.run(answered(use, order, seconds))


def why(order: Order, use: Use = USE, seconds: float = HUNG_AFTER) -> WorkerFailed:
    with pytest.raises(WorkerFailed) as caught:
        told(order, use, seconds)
    return caught.value


def test_a_request_is_answered_by_a_process_that_gives_way_and_whose_prints_disturb_nothing() -> None:
    answer = msgspec.msgpack.decode(told(Order("double", 21), msgspec.structs.replace(USE, niceness=3)))
    assert answer == {"number": 42, "niceness": os.nice(0) + 3}


def test_one_process_answers_one_request_after_the_other_in_parts_and_from_parts() -> None:
    async def talk() -> list[bytes]:
        async with working(USE) as worker:
            await worker.ready()
            await worker.put(Order("count", 3))
            parts = [await worker.part() for _ in range(4)]
            await worker.put(Order("join", 2))
            await worker.put(b"a" * 200_000)
            await worker.put(b"b")
            assert parts == [b"\0", b"\1", b"\2", None]
            return [await worker.answer()]

    assert asyncio.run(talk()) == [b"a" * 200_000 + b"b"]


def test_an_error_of_ours_comes_back_with_its_text_and_status_and_any_other_with_its_name() -> None:
    refused = why(Order("refuse"))
    assert (refused.reason, str(refused), refused.exit_code) == ("refused", "this crawl is in use", 5)
    broken = why(Order("break"))
    assert broken.reason == "crashed" and str(broken).startswith("KeyError: ")
    assert why(Order("double"), Use("gossamer.nowhere:work")).reason == "crashed"


def test_a_process_that_wants_too_much_or_takes_too_long_is_ended_and_says_so() -> None:
    small = msgspec.structs.replace(USE, memory=300 << 20)
    assert why(Order("fill", 2 << 30), small).reason == "memory"
    assert why(Order("burn"), msgspec.structs.replace(USE, seconds=1)).reason == "time"
    assert why(Order("burn"), seconds=0.0).reason == "time"
    assert why(Order("limit")).reason == "time"
    assert why(Order("die", signal.SIGKILL)).reason == "memory"
    assert str(why(Order("die", signal.SIGTERM))) == f"its process ended with {-signal.SIGTERM}"


def test_a_frame_that_says_to_be_too_long_is_refused_before_it_is_read() -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as taken, os.fdopen(writer, "wb", 0) as put:
        put.write(b"\xff\xff\xff\xff")
        with pytest.raises(ValueError, match="4294967295 bytes"):
            Frames(taken, put, 1000).take()
        put.write(b"\0\0\0\7cut")
        put.close()
        with pytest.raises(PeerGone):
            Frames(taken, put, 1000).take()


def test_a_process_learns_that_everything_is_done() -> None:
    async def talk() -> bytes:
        async with working(USE) as worker:
            await worker.put(Order("wait"))
            worker.close_input()
            return await worker.answer()

    assert asyncio.run(talk()) == b"closed"


def test_a_killed_process_is_no_answer_and_its_end_may_be_asked_for_twice() -> None:
    async def talk() -> None:
        worker = await Worker.start(USE)
        worker.kill()
        with pytest.raises(WorkerFailed):
            await worker.ready()
        await worker.put(Order("double"))
        await worker.end()
        await worker.end()

    asyncio.run(talk())


def test_a_process_ends_when_its_parent_is_gone() -> None:
    line = processes.command("gossamer.engine.worker")
    with subprocess.Popen(line, env=processes.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        frame = msgspec.msgpack.encode(USE)
        process.stdin.write(len(frame).to_bytes(4) + frame)
        process.stdin.close()
        assert process.wait(HUNG_AFTER) == 0


def test_a_worker_loads_no_event_loop() -> None:
    program = "import gossamer.engine.worker, sys; print('asyncio' in sys.modules)"
    source = str(Path(__file__).resolve().parents[3] / "src")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={"PYTHONPATH": source})
    assert done.stdout == "False\n", done.stderr
