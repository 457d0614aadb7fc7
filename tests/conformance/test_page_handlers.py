"""The handlers of a spider keep the promises of their contract, whatever handlers do; and each mistake is told with its place."""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any

import msgspec

from gossamer.documents.document import Document
from gossamer.documents.page import Page
from gossamer.spiders.handlers import HandlerTable
from gossamer.spiders.running import SpiderHandlers
from gossamer.testing import check_page_handlers
from gossamer.testing.storage import visit
from gossamer.values.outcome import Outcome
from gossamer.values.request import Retry
from gossamer.values.request_identity import requested
from gossamer.values.task import DONE, KEEP, Answer, RetryDecision
from gossamer.values.visit import Visit


class Rulings:
    """Politeness, as far as handlers ask it."""

    def expected(self, answer: Answer) -> RetryDecision:
        return KEEP if answer.outcome is Outcome.CONNECT_FAILED else DONE


def labelled(label: str, outcome: Outcome = Outcome.OK) -> Visit:
    plain = visit()
    task = msgspec.structs.replace(plain.task, request=requested(label=label))
    response = msgspec.structs.replace(plain.response, outcome=outcome)
    return msgspec.structs.replace(plain, task=task, response=response, mime="text/html")


def handlers_of(table: HandlerTable) -> SpiderHandlers:
    handlers = type("OwnHandlers", (SpiderHandlers,), {"table": table})()
    handlers.politeness = Rulings()  # type: ignore[assignment]  # of which one method is asked
    return handlers


def every_mistake(released: threading.Event) -> HandlerTable:
    table = HandlerTable(0.1)

    def raises(page: Page) -> Iterator[Any]:
        yield {"kept": 1}
        raise ValueError("no")

    async def raises_late(page: Page) -> AsyncIterator[Any]:
        yield {"kept": 1}
        raise ValueError("no")

    def hangs(page: Page) -> None:
        released.wait()

    async def waits(page: Page) -> None:
        await asyncio.Event().wait()

    def yields_nonsense(page: Page) -> Any:
        return [object()]

    def yields_too_much(page: Page) -> Iterator[Any]:
        while True:
            yield {"more": 1}

    def stops(page: Page) -> None:
        raise StopIteration

    def again(page: Page) -> None:
        raise Retry(after=3)

    async def fine(page: Page) -> list[Any]:
        return [{"a": 1}, page.follow("/next"), None, [page.follow("/other", label="fine")]]

    for one in (raises, raises_late, hangs, waits, yields_nonsense, yields_too_much, stops, again, fine):
        table.add_page(one, one.__name__, "", None, None, None)
    table.add_failed(fine, None, None, None)
    return table


def test_whatever_a_handler_does_it_ends_in_what_it_made(run: Any) -> None:
    released = threading.Event()
    table = every_mistake(released)

    async def body() -> None:
        handlers = handlers_of(table)
        await handlers.start()
        wanted = [labelled(label) for label in table.labels] + [labelled("fine", Outcome.CLIENT_ERROR)]
        unwanted = [labelled("nobody"), labelled("fine", Outcome.CONNECT_FAILED), labelled("fine", Outcome.REDIRECT)]
        await check_page_handlers(handlers, wanted, unwanted)
        made = {
            label: await handlers.handle(Document(labelled(label))) for label in ("raises", "fine", "again", "stops")
        }
        assert [item.value for item in made["raises"].items] == [{"kept": 1}]
        assert [error.error for error in made["raises"].errors] == ["ValueError: no"]
        assert "test_page_handlers.py:" in made["raises"].errors[0].place
        assert [found.href for found in made["fine"].found] == ["/next", "/other"]
        assert made["again"].again == 3 and not made["again"].errors
        assert made["stops"].errors
        released.set()
        await handlers.stop()

    coroutine: Coroutine[Any, Any, None] = body()
    run(coroutine)
