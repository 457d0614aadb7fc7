"""The life of one crawler that is on its way: sent, asked for its batches, acknowledged, until it is home or lost.

Place in the flow: the manager has one :class:`AwayCrawler` for each. It knows the link and the clock; the manager deals with its
batches at home. Every call of a link may be made again, so whatever is killed, the journey goes on where the ledger says. Before
a crawler is sent, the manager asks for an estimate whether it is worth its bytes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec

from gossamer.engine.clock import Clock
from gossamer.mobile.contract import CrawlerStanding, RuntimeLink, RuntimeRefused, RuntimeUnavailable
from gossamer.mobile.crawler import CrawlerBatch, MobileCrawler
from gossamer.mobile.manager.book import CrawlerRecord
from gossamer.mobile.manager.intake import BatchRefused
from gossamer.mobile.wire import BytesRefused, unpacked

#: Seconds that one question for a batch waits at the runtime: less than proxies let an exchange last.
ASKED: Final = 20.0

#: Seconds between two tries to reach a runtime: the first, and the longest.
FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 10.0

#: Seconds between two questions to a runtime that answers at once that a crawler has nothing yet.
SHORTEST_WAIT: Final = 0.05

Fate = Literal["home", "lost", "refused"]
"""How a journey ended: all batches are in; nothing more will come; or the runtime did what it may not."""

Take = Callable[[CrawlerRecord, CrawlerBatch, int], Awaitable[CrawlerRecord]]
"""Commits a batch, and gives the record as it stands then; the number is the size of the batch, unpacked."""


class CrawlerEnd(msgspec.Struct, frozen=True):
    """The end of a journey."""

    fate: Fate
    why: str = ""


class AwayCrawler:
    """One crawler, from the outbox to its end."""

    def __init__(
        self, record: CrawlerRecord, crawler: MobileCrawler, link: RuntimeLink, clock: Clock, lease: float, take: Take
    ) -> None:
        """Ready to go.

        Args:
            record: where its journey stands.
            crawler: as the record has it in bytes.
            link: to its runtime.
            clock: home's, by which the lease runs.
            lease: seconds without any word after which it is lost.
            take: commits a batch.
        """
        self.record = record
        self.crawler = crawler
        self._link = link
        self._clock = clock
        self._lease = lease
        self._take = take
        self._until = record.until
        self._pause = FIRST_PAUSE

    async def travel(self) -> CrawlerEnd:
        """Bring it home. Returns when that is done, or will not be."""
        is_sent = False
        while True:
            if self._clock.steady() > self.record.ends:
                return CrawlerEnd("lost", "its time is up")
            try:
                if not is_sent:
                    await self._send()
                    is_sent = True
                answer = await self._link.batch(self.record.id, self.record.next, ASKED)
                self._heard()
                end = await self._answered(answer)
                if end is not None:
                    return end
            except RuntimeUnavailable as error:
                if self._is_over():
                    return CrawlerEnd("lost", f"nothing was heard of the runtime: {error}")
                await self._clock.sleep(self._pause)
                self._pause = min(2 * self._pause, LONGEST_PAUSE)
            except RuntimeRefused as error:
                return CrawlerEnd("refused", f"the runtime refuses it ({error.reason}): {error}")
            except (BatchRefused, BytesRefused) as error:
                return CrawlerEnd("refused", f"what the runtime sent is refused ({error.reason}): {error}")

    async def _send(self) -> None:
        """Send it, unless it was heard of; one that is known there already is not sent twice (promise 2 of the link)."""
        if not self.record.is_heard:
            await self._link.send(self.record.id, self.record.data)
            self._heard()

    async def _answered(self, answer: bytes | CrawlerStanding) -> CrawlerEnd | None:
        """Take a batch in, or see where the crawler stands; the end, if that is one."""
        if isinstance(answer, bytes):
            batch, size = await asyncio.to_thread(_unpacked, answer)
            self.record = await self._take(self.record, batch, size)
            is_last = batch.summary is not None
            await self._acknowledge(is_last=is_last)
            return CrawlerEnd("home") if is_last else None
        if answer.has_ended:
            why = f"{answer.state}{f' ({answer.reason})' if answer.reason else ''}{f': {answer.told}' if answer.told else ''}"
            return CrawlerEnd("lost", f"the runtime says that it is {why}"[:500])
        await self._clock.sleep(SHORTEST_WAIT)
        return None

    async def _acknowledge(self, *, is_last: bool) -> None:
        """Let the runtime forget what is committed. A word that is lost does no harm: the next one says the same."""
        try:
            await self._link.acknowledge(self.record.id, self.record.next - 1)
        except (RuntimeUnavailable, RuntimeRefused):
            if not is_last:
                raise

    async def cancel(self) -> None:
        """Let the runtime forget it, if it hears that."""
        try:
            await self._link.cancel(self.record.id)
        except (RuntimeUnavailable, RuntimeRefused):
            return

    def _heard(self) -> None:
        self._until = self._clock.steady() + self._lease
        self._pause = FIRST_PAUSE

    def _is_over(self) -> bool:
        return self._clock.steady() > self._until


def _unpacked(frame: bytes) -> tuple[CrawlerBatch, int]:
    batch = unpacked(frame, CrawlerBatch)
    return batch, len(msgspec.msgpack.encode(batch))


# Costs of a crawler and of fetching instead. Fiedler and Hammer (2000, section 5) measure the two: a crawler pays for its program
# whatever it finds, a stationary crawl for every page.

#: Bytes of a page as a server sends it with gzip, and of request and heads around it, where nothing is known: medians of the
#: documentation sites that `gossamer bench mobile` crawls.
USUAL_PAGE: Final = 6_000
EXCHANGE: Final = 700

#: Bytes of a journey beside the program and what is brought: heads of the messages, the summary.
JOURNEY: Final = 4_000

#: A whole page that is brought home takes about this share of what gzip takes: frames of 8 MB know more than one page.
OF_GZIP: Final = 0.5


def is_worth_sending(program: int, pages: int | None, page: int = USUAL_PAGE) -> bool:
    """Whether a crawler is estimated to cost fewer bytes than fetching, though every page should be relevant.

    Args:
        program: bytes of the crawler as it is sent.
        pages: how many pages there can be at most; None where that is unknown, and there may be many.
        page: bytes of a page as a server sends it, packed.
    """
    if pages is None:
        return True
    return program + JOURNEY + pages * page * OF_GZIP < pages * (page + EXCHANGE)
