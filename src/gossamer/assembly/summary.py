"""The result of a crawl: the value that `--json` prints, `status` shows and the Python API returns."""

import resource
import sys
from collections.abc import Mapping

import msgspec

from gossamer.model.visit import CUTS_OF_PAGES
from gossamer.stages.frontier.lingering import RetriesWaiting

#: Under this name the ledger keeps the summary of the run that ended last; empty while one is at work.
ENDED = "ended"


#: Where the supervisor of several agents keeps that of the crawl as a whole, inside its directory.
ENDED_FILE = "state/ended.json"


class Summary(msgspec.Struct, frozen=True):
    """The result of a crawl. Its fields are those of the line that `--json` prints at the end."""

    crawl: str
    state: str
    """`finished`, `limit`, `stopped` or `incomplete`."""
    pages: int
    fetched: int
    unique_documents: int
    bytes: int
    outcomes: dict[str, int]
    discovered: int
    queued: int
    hosts: int
    seconds: float
    pages_per_second: float
    cpu_seconds: float
    peak_rss_bytes: int
    set_aside: int = 0
    """URLs that were not fetched because they look like parts of traps."""
    cuts: dict[str, int] = {}
    """Number of URLs that each limit left out: see :func:`cuts_of`."""
    limit: str = ""
    """The name of the option whose limit ended the run; empty if no limit did."""
    goal: str = ""
    """The URL at which `--until` ended the run; empty if it did not."""
    waiting: RetriesWaiting | None = None
    """Retries that are due after the end of the run."""
    raised: int = 0
    """Visits on which processors or handlers raised an exception. The table `errors` has the details."""
    needs_browser: int = 0
    """Pages that seem to need a browser: they hold scripts, few words and hardly a link."""
    judged: int = 0
    """Pages whose relevance a focused crawl has judged."""
    relevant: int = 0
    """Judged pages that were relevant: `relevant / judged` is the harvest rate."""
    failure: str = ""
    """Why tables and index could not be made; empty where they were."""

    def with_failure(self, why: str) -> "Summary":
        """The same, where tables could not be made for this reason; a later run has to make them. Empty: they were made."""
        return msgspec.structs.replace(self, failure=why, state=with_failure(self.state, why))

    @property
    def exit_code(self) -> int:
        """The exit status of the crawl: 0 finished or limit, 3 stopped, 4 incomplete or without tables."""
        return 4 if self.failure else {"finished": 0, "limit": 0, "stopped": 3, "incomplete": 4}[self.state]


def with_failure(state: str, why: str) -> str:
    """The state of a crawl that ended in `state`, whose tables could not be made for a reason; empty: they were."""
    return "incomplete" if why and state in ("finished", "limit") else state


def unique_documents(counters: Mapping[str, int]) -> int:
    """Return how many documents differ from each other, by the counters of one ledger or the sums of several.

    Each agent counts the documents that are new to it; the agent that has a document's digest counts its copies at other agents. So
    the difference is exact over all agents, and can be negative for one of them.
    """
    return counters.get("documents", 0) - counters.get("copies", 0)


def urls_elsewhere(counters: Mapping[str, int]) -> int:
    """How many URLs wait outside of the queues, by the counters of a ledger: to be sent to other agents, where claims of documents
    are none, or with mobile crawlers."""
    return counters.get("owed", 0) - counters.get("owed_claims", 0) + counters.get("lent", 0)


#: Counters of the ledger that count cuts: budgets of hosts and domains, near-duplicates that were dropped, URLs of other
#: agents that the outbox had no room for, URLs that other agents sent and that cannot be kept, sitemaps, and parts of pages.
_CUTS = (
    *("cut:budget:", "cut:near-duplicate", "cut:owed", "cut:lent", "cut:crawler:", "cut:refused", "cut:sitemaps"),
    *(f"cut:{rule}" for rule in CUTS_OF_PAGES),
)


def cuts_of(counters: Mapping[str, int], ended_by: str, queued: int, set_aside: int) -> dict[str, int]:
    """Limits that bit: by rule, how many URLs each left out.

    All but those of a page's links, another run of the same crawl might have made elsewhere (row R6). Scope, filters and depth
    are no such limits: they lead to the same pages in whatever order they come.

    Args:
        counters: of the ledger.
        ended_by: what ended the run before its queues were empty, as `limit:max_pages`; empty if nothing did.
        queued: URLs that were still queued then.
        set_aside: URLs that look like parts of traps, of which some were fetched as probes.
    """
    cuts = {name.removeprefix("cut:"): n for name, n in counters.items() if n and name.startswith(_CUTS)}
    if set_aside:
        cuts["set_aside"] = set_aside
    if ended_by and queued:
        cuts[ended_by] = queued
    return dict(sorted(cuts.items()))


def cpu_seconds() -> float:
    """Seconds of CPU of this process and of those that it started and that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 3)


def peak_rss() -> int:
    """Bytes. Linux counts in KiB, macOS in bytes; children by the largest one, which is what the system keeps."""
    unit = 1 if sys.platform == "darwin" else 1024
    peaks = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(peaks) * unit
