"""`samples`: how a crawl stood, every ten seconds. Plots of a crawl are drawn from it, also when the crawl has ended.

Place in the flow: :mod:`gossamer.assembly.sampling` takes the samples; the numbers are those that `status` shows at that instant.
"""

from typing import Annotated

import msgspec

from gossamer.contracts.tables import Table, column

#: Seconds between two samples, seconds between two that are kept for good, and seconds for which the others are kept.
FINE, COARSE, FINE_FOR = 10, 300, 86_400


class SampleRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How an agent of the crawl stood at an instant; counts are of the whole life of the crawl."""

    taken_at: Annotated[str, column("When the sample was taken, UTC.", type="TIMESTAMP")]
    agent: Annotated[str, column("The agent that took it.")]
    every: Annotated[int, column("Whether the sample is kept for good (300) or for a day (10).", unit="s")] = FINE
    state: Annotated[str, column("State of the crawl, in the words of `status`.")] = ""
    pages: Annotated[int, column("Successful HTML documents.")] = 0
    fetched: Annotated[int, column("Answered requests, without those for robots.txt.")] = 0
    unique_documents: Annotated[int, column("Documents that differ from each other.")] = 0
    bytes: Annotated[int, column("Bytes that were received.", unit="bytes")] = 0
    errors: Annotated[int, column("Requests that failed, and names without an address.")] = 0
    raised: Annotated[int, column("Visits on which processors or handlers raised.")] = 0
    discovered: Annotated[int, column("URLs that were found.")] = 0
    queued: Annotated[int, column("URLs that wait.")] = 0
    set_aside: Annotated[int, column("URLs that look like parts of traps.")] = 0
    in_flight: Annotated[int, column("Requests in flight.")] = 0
    hosts: Annotated[int, column("Hosts that were asked.")] = 0
    seconds: Annotated[float, column("Time since the run began.", unit="s")] = 0.0
    pages_per_second: Annotated[float, column("Speed over the last ten seconds.")] = 0.0
    cpu_seconds: Annotated[float, column("CPU time that the run has used.", unit="s")] = 0.0
    peak_rss_bytes: Annotated[int, column("Largest amount of memory that the run has used.", unit="bytes")] = 0
    disk_free: Annotated[int, column("Room on the disk of the crawl directory.", unit="bytes")] = 0
    outcomes: Annotated[dict[str, int], column("Requests by outcome: `outcomes->>'$.ok'` takes one out of it.")] = {}
    sizes: Annotated[dict[str, int], column("Bytes of the main data sets by name, as `status` shows them.")] = {}


SAMPLES = Table(
    "samples",
    SampleRow,
    "How the crawl stood: every ten seconds of its last day, every five minutes before.",
    page="",
)
