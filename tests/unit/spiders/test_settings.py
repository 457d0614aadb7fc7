"""What settings of spiders do: handlers in threads, the watch over the loop, one handler of a file."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.documents.document import Document
from gossamer.documents.page import Page
from gossamer.spiders.handlers import HandlerTable
from gossamer.spiders.loading import FileHandler, FileHandlerSheet
from gossamer.spiders.running import SpiderHandlers, SpiderSheet
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.storage import visit
from gossamer.values.errors import UsageError
from gossamer.values.request_identity import requested
from gossamer.values.visit import Item, Visit


def labelled(label: str) -> Visit:
    plain = visit()
    task = msgspec.structs.replace(plain.task, request=requested(label=label))
    return msgspec.structs.replace(plain, task=task, mime="text/html")


def handlers_of(table: HandlerTable, sheet: SpiderSheet) -> SpiderHandlers:
    return type("OwnHandlers", (SpiderHandlers,), {"table": table})(sheet)


@pytest.mark.parametrize("threads", [1, 3])
def test_so_many_handlers_block_at_the_same_time(threads: int) -> None:
    table, entered, go_on = HandlerTable(30.0), threading.Semaphore(0), threading.Event()
    inside, most = [0], [0]
    lock = threading.Lock()

    def blocks(page: Page) -> Iterator[Any]:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        entered.release()
        go_on.wait(HUNG_AFTER)
        with lock:
            inside[0] -= 1
        yield {"a": 1}

    table.add_page(blocks, "blocks", "", None, None, None)
    handlers = handlers_of(table, SpiderSheet(threads=threads, watch=False))

    async def body() -> None:
        await handlers.start()
        pages = [asyncio.ensure_future(_handled(handlers)) for _ in range(3)]
        for _ in range(threads):
            await asyncio.to_thread(entered.acquire)
        await asyncio.sleep(0.05)  # whoever else may enter does so by now
        go_on.set()
        await asyncio.gather(*pages)
        await handlers.stop()

    asyncio.run(body())
    assert most[0] == threads


async def _handled(handlers: SpiderHandlers) -> None:
    found = handlers.handle(Document(labelled("blocks")))
    assert isinstance(found, Coroutine)
    await found


@pytest.mark.parametrize("watch", [True, False])
def test_the_loop_is_watched_where_the_setting_says_so(watch: bool) -> None:
    handlers = handlers_of(HandlerTable(1.0), SpiderSheet(watch=watch))

    async def body() -> bool:
        before = set(threading.enumerate())
        await handlers.start()
        begun = set(threading.enumerate()) - before
        await handlers.stop()
        return any(thread.name == "gossamer watch" for thread in begun)

    assert asyncio.run(body()) is watch


SPIDER = """
import gossamer

class Shop(gossamer.Spider):
    pass

spider = Shop()

@spider.page()
def first(page):
    yield {"by": "first"}

@spider.page("two")
def second(page):
    yield {"by": "second"}
    yield page.follow("/next", label="two")
"""


def items_of(file: Path, handler: str, *labels: str) -> list[object]:
    one = FileHandler(FileHandlerSheet(file=str(file), handler=handler, labels=labels))
    return [found.value for found in one.process(Document(labelled("two"))) if isinstance(found, Item)]


def test_a_file_runs_the_handler_that_is_named_and_knows_the_labels_that_are(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(SPIDER)
    assert items_of(file, "first") == [{"by": "first"}]
    assert items_of(file, "second", "two") == [{"by": "second"}]
    with pytest.raises(UsageError, match="two"):
        items_of(file, "second", "another")
