"""Failures: every failed item is replaced, given once more, or stops the crawl under its component's name."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from gossamer.engine.component import AsynchronousFilter, Consumer, Filter, Producer
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import ComponentFailed
from gossamer.engine.gate import Receipt
from gossamer.engine.handling import ErrorPolicy
from gossamer.engine.local import LocalConnector
from gossamer.testing import Stand

RESTART = ErrorPolicy("restart", 3)


class Fragile(Filter):
    """Fails on items named in `failures`, as often as that says; makes each item and its double."""

    inbox: In[int]
    outbox: Out[int]

    def __init__(self, failures: dict[int, int]) -> None:
        super().__init__()
        self.failures = failures
        self.calls: list[Any] = []

    async def start(self) -> None:
        self.calls.append("start")

    async def stop(self) -> None:
        self.calls.append("stop")

    def attempt(self, item: int) -> None:
        if self.failures.get(item, 0) > 0:
            self.failures[item] -= 1
            raise ValueError(f"cannot do {item}")


class Returning(Fragile):
    def filter(self, item: int) -> list[int]:
        self.attempt(item)
        return [item, 2 * item]


class Yielding(Fragile):
    """Has made half of it when it fails."""

    def filter(self, item: int) -> Iterator[int]:
        yield item
        self.attempt(item)
        yield 2 * item


class Emitting(Fragile):
    """Has emitted half of it when it fails."""

    def filter(self, item: int) -> None:
        self.outbox.emit(item)
        self.attempt(item)
        self.outbox.emit(2 * item)


class Waiting(Fragile):
    async def filter(self, item: int) -> list[int]:
        await asyncio.sleep(0)
        self.attempt(item)
        return [item, 2 * item]


class Many(Fragile):
    def filter_many(self, items: list[int]) -> Iterator[int]:
        for item in items:
            self.outbox.emit(item)
            self.attempt(item)
            self.outbox.emit(2 * item)
        return iter(())


class ManyLazy(Fragile):
    """Fails while its results are read."""

    def filter_many(self, items: list[int]) -> Iterator[int]:
        for item in items:
            yield item
            self.attempt(item)
            yield 2 * item


class ManyAsync(Fragile):
    async def filter_many(self, items: list[int]) -> list[int]:
        await asyncio.sleep(0)
        for item in items:
            self.attempt(item)
        return [made for item in items for made in (item, 2 * item)]


FORMS = pytest.mark.parametrize("form", [Returning, Yielding, Emitting, Waiting, Many, ManyLazy, ManyAsync])


@FORMS
def test_without_a_policy_the_crawl_stops_with_the_components_name_and_its_item(form: type[Fragile], run: Any) -> None:
    async def body() -> None:
        async with Stand(form({3: 9})) as stand:
            await stand.give("inbox", 1, 2, 3, 4)
            with pytest.raises(
                ComponentFailed, match=f"component '{form.__name__}' failed on 3: ValueError: cannot do 3"
            ):
                await stand.wait()
            assert await stand.made("outbox") == [1, 2, 2, 4]

    run(body())


@FORMS
def test_after_a_restart_the_item_is_given_once_more_and_nothing_of_it_comes_twice(
    form: type[Fragile], run: Any
) -> None:
    async def body() -> None:
        # A method that takes many is asked for the whole batch first, which fails, too.
        times = 2 if form.__name__.startswith("Many") else 1
        component = form({3: times})
        reports: list[str] = []
        async with Stand(component, policy=RESTART, report=reports.append) as stand:
            await stand.give("inbox", 1, 2, 3, 4)
            assert await stand.made("outbox") == [1, 2, 2, 4, 3, 6, 4, 8]
            assert component.calls == ["start", "stop", "start"]
            assert stand.handled == 4
        assert reports == [f"component '{form.__name__}' is restarted: ValueError: cannot do 3"]

    run(body())


@FORMS
def test_an_item_that_fails_again_after_the_restart_stops_the_crawl(form: type[Fragile], run: Any) -> None:
    async def body() -> None:
        component = form({3: 9})
        async with Stand(component, policy=RESTART) as stand:
            await stand.give("inbox", 1, 2, 3, 4)
            with pytest.raises(ComponentFailed, match="failed on 3"):
                await stand.wait()
            assert component.calls == ["start", "stop", "start"]

    run(body())


@FORMS
def test_what_failed_returns_goes_on_in_the_place_of_the_item_that_failed_and_of_no_other(
    form: type[Fragile], run: Any
) -> None:
    class Replacing(form):  # type: ignore[valid-type,misc]
        def failed(self, item: int, error: Exception) -> list[int]:
            assert str(error) == f"cannot do {item}"
            return [-item]

    async def body() -> None:
        async with Stand(Replacing({2: 9, 4: 9})) as stand:
            await stand.give("inbox", 1, 2, 3, 4, 5)
            assert await stand.made("outbox") == [1, 2, -2, 3, 6, -4, 5, 10]
            stand.end()
            await stand.wait()
            assert stand.handled == 5
            assert stand.component.metrics.counters["failures"] == 2

    run(body())


def test_failed_may_drop_an_item(run: Any) -> None:
    class Dropping(Returning):
        def failed(self, item: int, error: Exception) -> None:
            return None

    async def body() -> None:
        async with Stand(Dropping({1: 9})) as stand:
            await stand.give("inbox", 1, 2)
            assert await stand.made("outbox") == [2, 4]

    run(body())


def test_a_failed_that_raises_leaves_the_matter_to_the_policy(run: Any) -> None:
    class Worse(Returning):
        def failed(self, item: int, error: Exception) -> None:
            raise KeyError("worse")

    async def body() -> None:
        async with Stand(Worse({1: 1})) as stand:
            await stand.give("inbox", 1)
            with pytest.raises(ComponentFailed, match="KeyError: 'worse'"):
                await stand.wait()

    run(body())


def test_restarts_are_counted_over_the_units_life(run: Any) -> None:
    async def body() -> None:
        async with Stand(Returning({1: 1, 2: 1, 3: 1}), policy=ErrorPolicy("restart", 2)) as stand:
            await stand.give("inbox", 1, 2, 3)
            with pytest.raises(ComponentFailed, match="failed on 3"):
                await stand.wait()
            assert await stand.made("outbox") == [1, 2, 2, 4]

    run(body())


def test_a_unit_that_does_not_come_back_is_named(run: Any) -> None:
    class Gone(Returning):
        async def start(self) -> None:
            if self.calls:
                raise OSError("the disk is gone")
            await super().start()

    async def body() -> None:
        async with Stand(Gone({1: 1}), policy=RESTART) as stand:
            await stand.give("inbox", 1)
            with pytest.raises(
                ComponentFailed, match="component 'Gone' could not be restarted: OSError: the disk is gone"
            ):
                await stand.wait()

    run(body())


class Pooled(Consumer):
    """A pool on one resource, which breaks under all of them at once."""

    inbox: In[int]

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Any] = []
        self.broken = False
        self.go = asyncio.Event()
        self.slow = asyncio.Event()

    async def start(self) -> None:
        self.log.append("start")
        self.broken = False

    async def stop(self) -> None:
        self.log.append("stop")

    async def consume(self, item: int) -> None:
        if item < 0:
            await self.slow.wait()
        else:
            await self.go.wait()
        if self.broken and item >= 0:
            raise ConnectionError("lost")
        self.log.append(item)


def test_a_pool_restarts_once_for_one_cause_and_when_nobody_else_is_at_work(run: Any) -> None:
    async def body() -> None:
        pool = Pooled()
        async with Stand(pool, workers=4, policy=ErrorPolicy("restart", 1)) as stand:
            await stand.give("inbox", -1, 1, 2, 3)
            pool.broken = True
            pool.go.set()
            await stand.settle()
            assert pool.log == ["start"], "one worker is still in the middle of an item"
            await stand.give("inbox", 4)
            pool.slow.set()
            await stand.settle()
            assert pool.log[:4] == ["start", -1, "stop", "start"]
            assert sorted(pool.log[4:]) == [1, 2, 3, 4]
            assert pool.metrics.counters["restarts"] == 1

    run(body())


class Stuttering(Producer):
    """Remembers where it was."""

    outbox: Out[int]

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.next = 0
        self.failures = failures

    def produce(self) -> Iterator[int]:
        while self.next < 5:
            if self.next == 3 and self.failures:
                self.failures -= 1
                raise OSError("lost the file")
            self.next += 1
            yield self.next


def test_a_producer_goes_on_after_a_restart(run: Any) -> None:
    async def body() -> None:
        async with Stand(Stuttering(1), policy=RESTART) as stand:
            assert await stand.made("outbox") == [1, 2, 3, 4, 5]
            await stand.wait()

    run(body())


def test_a_producer_that_raises_is_named(run: Any) -> None:
    async def body() -> None:
        async with Stand(Stuttering(1)) as stand:
            with pytest.raises(ComponentFailed, match="component 'Stuttering' failed: OSError: lost the file"):
                await stand.wait()

    run(body())


class Forgetful(AsynchronousFilter):
    """Fails when it is asked."""

    inbox: In[int]
    outbox: Out[int]

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures
        self.kept: list[int] = []

    def on_inbox(self, item: int) -> None:
        self.kept.append(item)
        self.signal("outbox")

    def take_outbox(self, free: int) -> list[int] | None:
        if self.failures:
            self.failures -= 1
            raise LookupError("where was it?")
        taken, self.kept = self.kept, []
        return taken or None


def test_asking_for_items_is_subject_to_the_policy_too(run: Any) -> None:
    async def body() -> None:
        async with Stand(Forgetful(1), policy=RESTART) as stand:
            await stand.give("inbox", 1, 2)
            assert await stand.made("outbox") == [1, 2]
        async with Stand(Forgetful(1)) as stand:
            await stand.give("inbox", 1)
            with pytest.raises(ComponentFailed, match="component 'Forgetful' failed: LookupError"):
                await stand.wait()
        async with Stand(Forgetful(2), policy=RESTART) as stand:
            await stand.give("inbox", 1)
            with pytest.raises(ComponentFailed, match="component 'Forgetful' failed: LookupError"):
                await stand.wait()

    run(body())


# -- receipts


class Ledger:
    """Items with receipts, and which of them are done."""

    def __init__(self, stand: Stand) -> None:
        self.stand = stand
        self.done: list[int] = []

    async def give(self, *items: int) -> None:
        for item in items:
            receipt = Receipt(lambda item=item: self.done.append(item))  # type: ignore[misc]
            assert self.stand.connectors["inbox"].offer([item], receipt)
            receipt.release()
        await self.stand.settle()


@FORMS
def test_a_receipt_is_released_once_when_all_that_the_item_caused_is_handled(form: type[Fragile], run: Any) -> None:
    async def body() -> None:
        async with Stand(form({})) as stand:
            ledger = Ledger(stand)
            await ledger.give(1, 2, 3)
            assert not ledger.done, "what was made of them still waits"
            await stand.made("outbox")
            assert sorted(ledger.done) == [1, 2, 3]

    run(body())


@FORMS
def test_a_receipt_is_released_once_after_a_restart(form: type[Fragile], run: Any) -> None:
    async def body() -> None:
        async with Stand(form({2: 1}), policy=RESTART) as stand:
            ledger = Ledger(stand)
            await ledger.give(1, 2, 3)
            await stand.made("outbox")
            assert sorted(ledger.done) == [1, 2, 3]

    run(body())


@FORMS
def test_a_receipt_is_released_once_when_failed_replaces_the_item(form: type[Fragile], run: Any) -> None:
    class Replacing(form):  # type: ignore[valid-type,misc]
        def failed(self, item: int, error: Exception) -> list[int]:
            return [-item]

    async def body() -> None:
        async with Stand(Replacing({2: 9})) as stand:
            ledger = Ledger(stand)
            await ledger.give(1, 2, 3)
            assert not ledger.done
            await stand.made("outbox")
            assert sorted(ledger.done) == [1, 2, 3]

    run(body())


@FORMS
def test_the_receipt_of_an_item_that_stopped_the_crawl_is_not_released(form: type[Fragile], run: Any) -> None:
    async def body() -> None:
        async with Stand(form({2: 9})) as stand:
            ledger = Ledger(stand)
            await ledger.give(1, 2, 3)
            await stand.made("outbox")
            with pytest.raises(ComponentFailed):
                await stand.wait()
            assert 2 not in ledger.done
            assert 3 not in ledger.done

    run(body())


class Handing(Filter):
    """Two workers, of which one emits and waits: the other must not take its item's receipt."""

    inbox: In[int]
    outbox: Out[int]

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def filter(self, item: int) -> None:
        self.outbox.emit(item)
        if item == 1:
            await self.go.wait()


def test_what_one_worker_emits_keeps_its_receipt_when_another_sends_it(run: Any) -> None:
    async def body() -> None:
        handing = Handing()
        async with Stand(handing, workers=2) as stand:
            ledger = Ledger(stand)
            await ledger.give(1, 2)
            items, receipts = stand.connectors["outbox"].poll(10)
            assert items == [1, 2], "the second worker has sent both"
            assert receipts is not None
            handing.go.set()
            await stand.settle()
            assert ledger.done == []
            for receipt in receipts:
                assert receipt is not None
                receipt.release()
            assert ledger.done == [1, 2]

    run(body())


class Background(Consumer):
    """Passes items on in the background."""

    inbox: In[int]

    def __init__(self, elsewhere: Any) -> None:
        super().__init__()
        self.elsewhere = elsewhere

    def consume(self, item: int) -> None:
        self.elsewhere.send_soon(item)


def test_what_is_sent_in_the_background_holds_the_receipt_until_it_is_accepted(run: Any) -> None:
    async def body() -> None:
        elsewhere: LocalConnector[int] = LocalConnector("elsewhere", int, 1)
        out: Out[int] = Out("elsewhere", elsewhere)
        async with Stand(Background(out)) as stand:
            ledger = Ledger(stand)
            await ledger.give(1, 2)
            assert stand.handled == 2
            assert ledger.done == []
            for expected in (1, 2):
                items, receipts = await elsewhere.take(1)
                assert items == [expected]
                assert receipts is not None
                receipts[0].release()  # type: ignore[union-attr]
                await stand.settle()
            assert ledger.done == [1, 2]

    run(body())


# -- items that are set aside


@FORMS
def test_a_skipped_item_goes_on_as_it_came_and_nothing_else_of_it(form: type[Fragile], run: Any) -> None:
    async def body() -> None:
        aside: list[tuple[str, Any, str]] = []
        reports: list[str] = []
        component = form({3: 9, 4: 9})
        async with Stand(
            component,
            policy=ErrorPolicy("skip"),
            report=reports.append,
            keep_failed=lambda name, item, error: aside.append((name, item, str(error))),
        ) as stand:
            await stand.give("inbox", 1, 2, 3, 4, 5)
            assert await stand.made("outbox") == [1, 2, 2, 4, 3, 4, 5, 10]
            assert stand.handled == 5
        name = form.__name__
        assert aside == [(name, 3, "cannot do 3"), (name, 4, "cannot do 4")]
        assert reports == [f"component '{name}' failed on an item, which goes on without it: ValueError: cannot do 3"]
        assert component.metrics.counters["skipped"] == 2
        assert component.calls == ["start", "stop"], "it was never restarted"

    run(body())


@FORMS
def test_after_too_many_skipped_items_the_crawl_stops_with_a_clear_line(form: type[Fragile], run: Any) -> None:
    async def body() -> None:
        async with Stand(form({1: 9, 2: 9, 3: 9}), policy=ErrorPolicy("skip", errors=2)) as stand:
            await stand.give("inbox", 1, 2, 3, 4)
            with pytest.raises(ComponentFailed, match=r"failed on 3 items and may on 2 \(`errors` in the wiring\)"):
                await stand.wait()
            assert await stand.made("outbox") == [1, 2]

    run(body())
