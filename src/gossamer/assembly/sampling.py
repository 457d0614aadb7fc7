"""Samples of a crawl: how it stands, every ten seconds, as rows of the table `samples`.

Place in the flow: :mod:`crawl` takes them while it works, and one when its work is done. The numbers are those of
:mod:`~gossamer.assembly.control.standing`, without what takes a look at each host: a sample costs some hundred microseconds.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from gossamer.assembly.control.sizes import disk_free
from gossamer.assembly.copies import write_copies
from gossamer.flow.clock import Clock, SystemClock
from gossamer.model.dates import utc_text
from gossamer.model.errors import GossamerError
from gossamer.model.outcome import ERRORS
from gossamer.stores.tablelog import TableLog
from gossamer.stores.tables.samples import COARSE, FINE, SAMPLES, SampleRow

if TYPE_CHECKING:
    from gossamer.assembly.agency.agent import AgentRun
    from gossamer.assembly.crawl import Crawl


class Sampler:
    """Takes the samples of a crawl, and writes them beside its other rows, as it does copies that agents have of one document."""

    def __init__(self, crawl: "Crawl | AgentRun", clock: Clock | None = None) -> None:
        """`clock` says when a sample is due: the machine's, unless another is given, since people look at the plots."""
        self._crawl = crawl
        self._clock = clock or SystemClock()
        self._kept = 0
        """The number of the last five minutes, since the epoch, of which a sample is kept for good."""

    def __repr__(self) -> str:
        return f"<Sampler of {self._crawl.directory}>"

    @contextlib.asynccontextmanager
    async def sampling(self) -> AsyncIterator[None]:
        """Take samples while the block runs."""
        task = asyncio.create_task(self._go_on())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _go_on(self) -> None:
        while True:
            await self._clock.sleep(FINE)
            self.take()
            write_copies(self._crawl)

    def take(self, ended: str = "") -> None:
        """Take a sample and write it; `ended` is the state in which the run ends.

        One that cannot be written is counted by the log as `samples_lost`: the crawl goes on without it.
        """
        logs = self._crawl.providers(TableLog)
        if not logs:
            return
        log, now = logs[0], self._crawl.ledger.clock.now()
        is_kept = bool(ended) or int(now // COARSE) != self._kept
        row = sample_of(self._crawl, log.sheet.agent, now, every=COARSE if is_kept else FINE, ended=ended)
        try:
            log.add(SAMPLES.name, [row])
            ends = log.ends()
            with self._crawl.ledger.group() as group:
                for file, end in ends.items():
                    group.written(file, end)
        except (OSError, GossamerError):
            log.take_back()
            log.metrics.count("samples_lost")
            return
        log.committed(ends)
        if is_kept:
            self._kept = int(now // COARSE)


def sample_of(crawl: "Crawl | AgentRun", agent: str, now: float, *, every: int, ended: str = "") -> SampleRow:
    """How a running crawl stands, as a row.

    Args:
        crawl: the crawl.
        agent: who takes the sample.
        now: seconds since the epoch.
        every: as in the table.
        ended: the state in which the run ends; empty while it goes on.
    """
    summary, frontier, pulse = crawl.figures.summary(), crawl.units.frontier, crawl.figures.pulse
    speed, _ = pulse.speeds
    return SampleRow(
        taken_at=utc_text(now),
        agent=agent,
        every=every,
        state=ended or crawl.state_at_work,
        pages=summary.pages,
        fetched=summary.fetched,
        unique_documents=summary.unique_documents,
        bytes=summary.bytes,
        errors=sum(count for name, count in summary.outcomes.items() if name in ERRORS),
        raised=summary.raised,
        discovered=summary.discovered,
        queued=summary.queued,
        set_aside=summary.set_aside,
        in_flight=int(frontier.metrics.snapshot()["in_flight"]),
        hosts=summary.hosts,
        seconds=summary.seconds,
        pages_per_second=0.0 if ended else round(speed, 2),
        cpu_seconds=summary.cpu_seconds,
        peak_rss_bytes=summary.peak_rss_bytes,
        disk_free=disk_free(crawl.directory),
        outcomes=summary.outcomes,
        sizes={name: int(size) for name, size in pulse.sizes.items()},
    )
