"""How all agents of a crawl stand, looked at again and again while they work.

Place in the flow: the crawl (:mod:`~gossamer.assembly.agency.crawl`) shows it in its panel and its lines of progress. The log of
the whole crawl grows with each look.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gossamer.assembly.agency.roster import Roster
from gossamer.assembly.agency.supervisor import Supervisor
from gossamer.flow.clock import SystemClock
from gossamer.model.dates import utc_text
from gossamer.stores.merged_log import merge_logs
from gossamer.stores.rowlog import LOG_PATH, log_path

if TYPE_CHECKING:
    from gossamer.assembly.control.standing import CrawlStanding

#: Seconds between two looks.
LOOK = 1.0

#: Seconds after its fetch in which a page is usually committed: so long the merged log waits, to be in the order of time.
HELD_BACK = 5.0


class CrawlView:
    """The latest look at a crawl of several agents."""

    def __init__(
        self,
        directory: Path,
        roster: Roster,
        standing: "Callable[[], Awaitable[CrawlStanding]]",
        report: Callable[[str], None],
    ) -> None:
        self._directory, self._roster = directory, roster
        self._standing, self._report = standing, report
        self.latest: CrawlStanding | None = None
        """None before the first look."""

    def __repr__(self) -> str:
        return f"<CrawlView of {self._directory}>"

    async def watch(self, supervisor: Callable[[], Supervisor]) -> None:
        """Look until this is cancelled. `supervisor` returns the one that is at work."""
        while True:
            await asyncio.sleep(LOOK)
            if supervisor().is_resting:
                continue
            self.latest = await self._standing()
            news = [agent.news for agent in supervisor().agents.values() if agent.news is not None]
            await self._merge({log_path(one.report.agent): one.logged for one in news})

    async def _merge(self, ends: dict[str, int]) -> None:
        """Let the log of the crawl grow up to where the agents' logs end."""
        before = utc_text(SystemClock().now() - HELD_BACK)
        try:
            await asyncio.to_thread(merge_logs, self._directory, self._roster.members, ends, before=before)
        except OSError as error:
            log = self._directory / LOG_PATH
            self._report(f"{log} cannot be written ({error.strerror}); it is completed when the crawl ends")
