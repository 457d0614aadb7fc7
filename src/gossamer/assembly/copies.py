"""Documents that several agents keep: claims that the ledger of an agent knows become rows of the table `copies`.

Place in the flow: the run of an agent writes them with each sample and at its end; a row counts when the group that forgets its
claim is kept, so that a kill neither loses nor doubles one.
"""

from typing import TYPE_CHECKING

from gossamer.model.errors import GossamerError
from gossamer.stores.exchange.digests import AgentDigests
from gossamer.stores.tablelog import TableLog
from gossamer.stores.tables.copies import COPIES, copy_row

if TYPE_CHECKING:
    from gossamer.assembly.agency.agent import AgentRun
    from gossamer.assembly.crawl import Crawl


def write_copies(crawl: "Crawl | AgentRun") -> None:
    """Write the claims that are in no table yet. Those that cannot be written are counted by the log, and are written later.

    Args:
        crawl: at work. One that has no other agents has no claims.
    """
    for digests in crawl.providers(AgentDigests):
        for log in crawl.providers(TableLog)[:1]:
            _write(crawl, digests, log)


def _write(crawl: "Crawl | AgentRun", digests: AgentDigests, log: TableLog) -> None:
    for claims in digests.unwritten():
        try:
            log.add(COPIES.name, map(copy_row, claims))
            ends = log.ends()
            with crawl.ledger.group() as group:
                digests.written(claims, group)
                for file, end in ends.items():
                    group.written(file, end)
        except (OSError, GossamerError):
            log.take_back()
            log.metrics.count("copies_late")
            return
        log.committed(ends)


async def claim_again(run: "AgentRun") -> None:
    """Let an agent claim the documents that it has not claimed: it was alone when it met them, or another agent lost its ledger."""
    for digests in run.providers(AgentDigests):
        await digests.claim_again(run.ledger.documents())
