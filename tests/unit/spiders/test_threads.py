"""Threads of handlers: at most so many at once, and one that hangs is left behind, named, and keeps nobody from ending."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gossamer.spiders.threads import Hanging, Threads, TooManyHang

Run = Callable[[Any], Any]

#: Seconds that are long enough for whatever comes back by itself.
LONG = 60.0

#: Seconds after which a thread that waits for the test counts as hanging.
SHORT = 0.02


@pytest.fixture
def released() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def names() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "gossamer handler"]


def test_what_a_function_returns_or_raises_comes_back_from_one_thread_that_is_used_again(run: Run) -> None:
    def fails() -> None:
        raise KeyError("x")

    def stops() -> None:
        raise StopIteration

    async def body() -> None:
        threads = Threads(4)
        idents = {await threads.run(threading.get_ident, LONG)}
        with pytest.raises(KeyError):
            await threads.run(fails, LONG)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await threads.run(stops, LONG)
        idents.add(await threads.run(threading.get_ident, LONG))
        assert len(idents) == 1 and threading.get_ident() not in idents
        threads.close()

    run(body())


def test_no_more_than_the_given_number_run_at_once(run: Run) -> None:
    lock, now, most = threading.Lock(), 0, 0
    both = threading.Barrier(2)

    def work() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        both.wait(LONG)
        with lock:
            now -= 1

    async def body() -> None:
        threads = Threads(2)
        await asyncio.gather(*(threads.run(work, LONG) for _ in range(6)))
        threads.close()

    run(body())
    assert most == 2 and now == 0


def test_a_function_that_hangs_is_named_with_its_line_and_its_thread_is_left_behind(
    run: Run, released: threading.Event
) -> None:
    def hangs() -> None:
        released.wait()  # here

    async def body() -> None:
        threads = Threads(2)
        with pytest.raises(Hanging) as caught:
            await threads.run(hangs, SHORT)
        line = hangs.__code__.co_firstlineno + 1
        assert str(caught.value).endswith(f"test_threads.py:{line}")
        assert len(threads.left_behind) == 1 and threads.left_behind[0].daemon
        assert await threads.run(lambda: "others work on", LONG) == "others work on"
        released.set()
        threads.left_behind[0].join(LONG)
        await threads.run(lambda: None, LONG)
        assert threads.left_behind == [], "a thread that came back after all is forgotten"
        threads.close()

    run(body())


def test_when_as_many_hang_as_may_run_no_more_are_started(run: Run, released: threading.Event) -> None:
    async def body() -> None:
        threads = Threads(2)
        for _ in range(2):
            with pytest.raises(Hanging):
                await threads.run(released.wait, SHORT)
        with pytest.raises(TooManyHang, match="2 threads hang"):
            await threads.run(lambda: None, LONG)
        threads.close()

    run(body())


def test_a_timeout_of_the_function_s_own_is_its_error_and_not_a_deadline(run: Run) -> None:
    def raises() -> None:
        raise TimeoutError("a database did not answer")

    async def body() -> None:
        threads = Threads(1)
        with pytest.raises(TimeoutError, match="a database"):
            await threads.run(raises, LONG)
        assert threads.left_behind == []
        threads.close()

    run(body())


def test_who_stops_waiting_leaves_the_thread_behind(run: Run, released: threading.Event) -> None:
    began = threading.Event()

    def hangs() -> None:
        began.set()
        released.wait()

    async def body() -> None:
        threads = Threads(1)
        task = asyncio.create_task(threads.run(hangs, LONG))
        await asyncio.to_thread(began.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(threads.left_behind) == 1
        threads.close()

    run(body())


def test_idle_threads_end_when_they_are_closed(run: Run) -> None:
    before = set(names())

    async def body() -> None:
        threads = Threads(3)
        meet = threading.Barrier(3)
        await asyncio.gather(*(threads.run(lambda: meet.wait(LONG), LONG) for _ in range(3)))
        own = set(names()) - before
        assert len(own) == 3
        threads.close()
        for thread in own:
            thread.join(LONG)
        assert not own & set(names())

    run(body())
