"""What a crawl comes to: the value that `--json` prints, `status` shows and the Python API returns."""

import resource
import sys

import msgspec

#: Under this name the ledger keeps the summary of the run that ended last; empty while one is at work.
ENDED = "ended"


class Summary(msgspec.Struct, frozen=True):
    """What INTERFACE prints with `--json`, field for field."""

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
    """URLs that look like parts of traps, and were not fetched."""

    @property
    def exit_code(self) -> int:
        """As INTERFACE says: 0 finished or limit, 3 stopped, 4 incomplete."""
        return {"finished": 0, "limit": 0, "stopped": 3, "incomplete": 4}[self.state]


def cpu_seconds() -> float:
    """Seconds of CPU of this process and of those that it started and that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 3)


def peak_rss() -> int:
    """Bytes. Linux counts in KiB, macOS in bytes; children by the largest one, which is what the system keeps."""
    unit = 1 if sys.platform == "darwin" else 1024
    peaks = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(peaks) * unit
