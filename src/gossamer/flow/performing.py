"""Handling with care: one batch through a component's gate and handler, with its receipts, its failures and restarts.

The runner receives batches and hands them here. Nothing that happens to an item here is silent: it is handled, or replaced
by the component's own `failed`, or set aside and let go on, or given once more after a restart, or the crawl stops with the
name of the component.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from gossamer.flow import receipt as receipts_
from gossamer.flow.component import Component
from gossamer.flow.connector import Receipts
from gossamer.flow.errors import ComponentFailed
from gossamer.flow.gate import Gate
from gossamer.flow.handling import Handler, Handling, ItemFailed


class ErrorPolicy(msgspec.Struct, frozen=True):
    """What happens when a component raises."""

    on_error: str = "stop"
    """`stop` ends the crawl; `restart` stops and starts the unit and gives it the item once more, then ends the crawl; `skip`
    sets the item aside, lets it go on as it came, and ends the crawl after too many."""
    restarts: int = 3
    """Restarts in the unit's life; a unit that needs more is not getting better by it."""
    errors: int = 100
    """Items that may be set aside; a unit that fails on more is not failing on an item."""


Aside = Callable[[str, Any, Exception], None]
"""Keeps an item that a component could not handle for a person to look at: the component's name, the item, the error."""


def forget(name: str, item: Any, error: Exception) -> None:
    """Where nobody keeps such items."""


class Performer:
    """Handles batches for one instance of a component."""

    def __init__(
        self,
        component: Component[Any],
        gate: Gate,
        policy: ErrorPolicy,
        report: Callable[[str], None] = lambda line: None,
        aside: Aside = forget,
    ) -> None:
        self.component = component
        self.gate = gate
        self.policy = policy
        self.report = report
        self.aside = aside
        self._restarting = asyncio.Lock()
        self._incarnation = 0

    async def perform(self, handling: Handling, items: list[Any], receipts: Receipts = None) -> None:
        """Hand a batch to the component, when it is not suspended and has a place free, and release the receipts."""
        number = self.gate.try_enter() or await self.gate.enter()
        try:
            if receipts is None:
                await self._attempt(handling.handle, items)
            else:
                await self._attempt_each(handling, items, receipts)
            self.component.metrics.counters["items"] += len(items)
        finally:
            self.gate.leave(number)

    async def _attempt_each(self, handling: Handling, items: list[Any], receipts: Receipts) -> None:
        """As :meth:`_attempt`, with each item's receipt passed on to what it causes."""
        assert receipts is not None
        if handling.whole:
            batches = [(receipts_.joint(receipts), items)]
        else:
            batches = [(receipt, [item]) for item, receipt in zip(items, receipts, strict=True)]
        for receipt, batch in batches:
            token = receipts_.current.set(receipt)
            try:
                await self._attempt(handling.handle, batch)
            finally:
                receipts_.current.reset(token)
            if receipt is not None:
                receipt.release()

    async def _attempt(self, handle: Handler, items: list[Any]) -> None:
        try:
            await handle(items)
        except ItemFailed as failure:
            await self._recover(handle, items, failure)

    async def _recover(self, handle: Handler, items: list[Any], failure: ItemFailed) -> None:
        """Let the component replace the failed item, or restart it and try once more; then go on with the rest."""
        while True:
            items = items[failure.position :]
            await self._replace_or_retry(handle, items[0], failure.cause)
            items = items[1:]
            try:
                if items:
                    await handle(items)
                return
            except ItemFailed as next_failure:
                failure = next_failure

    async def _replace_or_retry(self, handle: Handler, item: Any, cause: Exception) -> None:
        self.component.metrics.count("failures")
        try:
            instead = self.component.failed(item, cause)
            produced = list(instead) if instead is not None else ()
        except Exception as error:
            if self.policy.on_error == "skip":
                await self._skip(item, error)
                return
            await self.restart(error, item)
            try:
                await handle([item])
            except ItemFailed as again:
                raise self.failure(again.cause, item) from again.cause
        else:
            await self.component.emit_all(produced)

    async def _skip(self, item: Any, error: Exception) -> None:
        """Set an item aside and let it go on as it came, as if the component were not there.

        Raises:
            ComponentFailed: the component has failed on too many.
        """
        name, counters = self.component.name, self.component.metrics.counters
        if counters["skipped"] >= self.policy.errors:
            raise ComponentFailed(
                f"component {name!r} failed on {counters['skipped'] + 1} items and may on {self.policy.errors} (`errors` in the "
                f"wiring); the last error: {type(error).__name__}: {error}"
            ) from error
        counters["skipped"] += 1
        if counters["skipped"] == 1:
            self.report(
                f"component {name!r} failed on an item, which goes on without it: {type(error).__name__}: {error}"
            )
        self.aside(name, item, error)
        if self.component.outs:
            await self.component.emit_all([item])

    async def restart(self, error: Exception, item: Any) -> None:
        """Stop and start the unit, if its policy allows that once more, when no other worker is in the middle of an item.

        Raises:
            ComponentFailed: it does not, or the unit does not come back.
        """
        if self.policy.on_error != "restart":
            raise self.failure(error, item) from error
        incarnation = self._incarnation
        with self.gate.standing_aside():
            async with self._restarting:
                if incarnation != self._incarnation:
                    return  # Several workers failed on one cause; another of them has restarted the unit meanwhile.
                counters = self.component.metrics.counters
                if counters["restarts"] >= self.policy.restarts:
                    raise self.failure(error, item) from error
                counters["restarts"] += 1
                self.report(f"component {self.component.name!r} is restarted: {type(error).__name__}: {error}")
                async with self.gate.alone():
                    await self._stop_and_start()
                self._incarnation += 1

    async def _stop_and_start(self) -> None:
        try:
            await self.component.stop()
            await self.component.start()
        except Exception as error:
            what = f"component {self.component.name!r} could not be restarted"
            raise ComponentFailed(f"{what}: {type(error).__name__}: {error}") from error

    def failure(self, error: Exception, item: Any) -> ComponentFailed:
        """The component's failure under its name, with what it held."""
        held = f" on {item!r:.200}" if item is not None else ""
        return ComponentFailed(f"component {self.component.name!r} failed{held}: {type(error).__name__}: {error}")
