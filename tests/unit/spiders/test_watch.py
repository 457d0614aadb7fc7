"""The watch over the loop: it names the handler that blocks the crawl, with the line where it stands, once; nobody else."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from gossamer.spiders.handlers import HandlerTable
from gossamer.spiders.threads import LoopWatch

Run = Callable[[Any], Any]

#: Seconds that nobody has to wait: the watch speaks long before.
LONG = 60.0

#: Seconds without a mark that count as blocked here.
PATIENCE = 0.3


class Told:
    """What a watch says; whoever blocks the loop can wait until it speaks."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.spoken = threading.Event()

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        self.spoken.set()


def watched(table: HandlerTable, told: Told, run: Run, work: Callable[[], Any]) -> None:
    async def body() -> None:
        watch = LoopWatch(table.codes(), told, PATIENCE)
        watch.start()
        try:
            await work()
        finally:
            watch.stop()

    run(body())


def test_a_handler_that_blocks_the_loop_is_named_once_with_the_line_where_it_stands(run: Run) -> None:
    told = Told()

    def deeper() -> None:
        assert told.spoken.wait(LONG)  # here

    async def blocks(page: Any) -> None:
        deeper()

    table = HandlerTable(LONG)
    table.add_page(blocks, None, "", None, None, None)

    async def work() -> None:
        await blocks(None)
        told.spoken.clear()
        await asyncio.sleep(0)
        assert not told.spoken.wait(4 * PATIENCE), "it speaks once of each handler"

    watched(table, told, run, work)
    [line] = told.lines
    assert "handler 'blocks' blocks the crawl" in line
    assert f"test_watch.py:{deeper.__code__.co_firstlineno + 1}; " in line
    assert line.split(": ")[0].endswith(f"test_watch.py:{blocks.__code__.co_firstlineno}")


def test_what_blocks_the_loop_and_is_no_handler_is_not_named(run: Run) -> None:
    told = Told()

    async def handler(page: Any) -> None: ...

    table = HandlerTable(LONG)
    table.add_page(handler, None, "", None, None, None)

    async def work() -> None:
        await asyncio.sleep(0)
        assert not told.spoken.wait(4 * PATIENCE)

    watched(table, told, run, work)
    assert told.lines == []


def test_a_handler_that_awaits_is_not_named(run: Run) -> None:
    told = Told()

    async def waits(page: Any) -> None:
        await asyncio.sleep(4 * PATIENCE)

    table = HandlerTable(LONG)
    table.add_page(waits, None, "", None, None, None)
    watched(table, told, run, lambda: waits(None))
    assert told.lines == []


def test_the_thread_of_a_watch_ends_with_it(run: Run) -> None:
    before = set(threading.enumerate())
    told = Told()

    async def work() -> None:
        own.extend(set(threading.enumerate()) - before)

    own: list[threading.Thread] = []
    watched(HandlerTable(LONG), told, run, work)
    assert [thread.name for thread in own] == ["gossamer watch"]
    own[0].join(LONG)
    assert not own[0].is_alive()
