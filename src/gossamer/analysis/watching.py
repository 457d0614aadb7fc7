"""Watching a crawl from outside: how it stands, again and again, whether it runs, rests, or begins and ends meanwhile.

Place in the flow: `gossamer watch` and the dashboard look here. A running crawl is asked over one connection that stays; of one
that rests the ledger is read once, and again only when something has been at it.
"""

from collections.abc import Sequence
from pathlib import Path

from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.control.client import Control, NotRunning, check_is_crawl
from gossamer.crawls.control.host_facts import HostNow, HostsNow
from gossamer.crawls.control.messages import ReadHosts, Status
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.storage.ledger.ledger import STATE_DIRECTORY
from gossamer.storage.tables.places import CRAWL_FILE

#: Seconds for an answer: a watcher would rather say that there is none than wait for long.
PATIENCE = 5.0


class CrawlWatch:
    """Looks at one crawl."""

    def __init__(self, directory: Path, patience: float = PATIENCE) -> None:
        """Nothing is looked at yet.

        Args:
            directory: the crawl directory.
            patience: seconds for an answer of a running crawl.

        Raises:
            UsageError: the directory holds no crawl.
        """
        check_is_crawl(directory)
        self.directory = directory
        self._patience = patience
        self._control: Control | None = None
        self._resting: tuple[object, CrawlStanding] | None = None

    def look(self, *, units: bool = False, agent: str = "") -> CrawlStanding:
        """How the crawl stands now; with `units` also what every unit of a running one has counted.

        Args:
            units: also tell of units.
            agent: tell of this one alone, of several that run.

        Raises:
            CrawlDirectoryError: a running crawl does not answer, or the ledger of one that rests is missing or damaged.
            SteeringRefused: it has no such agent.
        """
        try:
            found: CrawlStanding = self._connected().told(Status(units, agent), CrawlStanding)
            self._resting = None
            return found
        except NotRunning:
            self.close()
            return self._read()
        except Exception:
            self.close()
            raise

    def hosts(self, names: Sequence[str]) -> dict[str, HostNow]:
        """How hosts stand at this moment, by their names; nothing of a crawl that does not run.

        Raises:
            CrawlDirectoryError: a running crawl does not answer.
        """
        try:
            found: HostsNow = self._connected().told(ReadHosts(list(names)), HostsNow)
        except NotRunning:
            self.close()
            return {}
        except Exception:
            self.close()
            raise
        return found.hosts

    def close(self) -> None:
        """Hang up. The next look connects again."""
        control, self._control = self._control, None
        if control is not None:
            control.close()

    def _connected(self) -> Control:
        if self._control is None:
            self._control = Control(self.directory, self._patience, changing=0.0)
        return self._control

    def _read(self) -> CrawlStanding:
        mark = self._mark()
        if self._resting is None or self._resting[0] != mark:
            self._resting = mark, standing_at_rest(self.directory)
        return self._resting[1]

    def _mark(self) -> object:
        """Something that is another one when a run, or a command about a crawl at rest, has been at its ledger."""
        places = [self.directory / CRAWL_FILE, *sorted((self.directory / STATE_DIRECTORY).glob("*/ledger"))]
        return [(place, place.stat().st_mtime_ns) for place in places if place.exists()]
