"""Exact duplicates across agents: each digest belongs to one agent, and that agent hears who met the document.

    commit ── stage ──► `agent-digests` ──► the space of digests, where the digest is ours
                              └───────────► the outbox, where it is another agent's ──► its `receive` ──► its space

Place in the flow: a keeper of the commit of an agent among several. A document that the agent did not know is claimed in the
group of its visit, and no fetch waits for an answer. Where a digest is claimed a second time, its claims become rows of
the table `copies`; :mod:`gossamer.query` joins them to the pages, and the earliest claim is the first document of all.

Claims are found again: where the agent has kept documents that it did not claim, since it was alone or since another agent has
lost its ledger, it claims all of its documents anew when it starts.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

from gossamer.crawls.work import CrawlAtWork
from gossamer.engine.ends import Uses
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.storage.archive.contract import GroupKeeper
from gossamer.storage.contract import COPIES, DIGESTS
from gossamer.storage.ledger.contract import Group, Ledger
from gossamer.storage.mailbox.contract import OwesUrls
from gossamer.storage.tables.log import TableLog
from gossamer.storage.tables.row_tables import COPIES as COPIED
from gossamer.storage.tables.row_tables import copy_row
from gossamer.values.agents import Claim, as_task, claim_of, claim_of_row, claimed_by, packed, unpacked
from gossamer.values.errors import GossamerError
from gossamer.values.ledger_rows import DocumentRow
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Record

#: Documents that one group claims again: some milliseconds of the event loop.
_AT_ONCE = 500

#: The counter that says that the documents of a ledger have to be claimed anew.
CLAIMS_DUE = "claims_due"


class AgentDigests(Provider[NoSettings], GroupKeeper):
    """Tells the other agents which documents this agent has met, and keeps such claims for the digests that are
    assigned to this agent.

    Contracts: `storage.archive.contract.Keeper`, `storage.archive.contract.ClaimTaker`.
    """

    ledger: Uses[Ledger]
    outbox: Uses[OwesUrls]
    keeps_state = True

    async def start(self) -> None:
        self.ledger.spaces.open(DIGESTS)
        self.ledger.spaces.open(COPIES)

    # -- our own documents

    def stage(self, records: Sequence[Record], group: Group) -> None:
        """Claim the documents of these visits that are new to the agent."""
        claims = list[Claim]()
        for record in records:
            response = record.visit.response
            # As the ledger counts documents: where both counts are the same, every document was claimed.
            is_document = response.outcome is Outcome.OK and bool(response.body) and not record.visit.duplicate_of
            if is_document and record.visit.again is None:
                group.count("claimed")
            claim = claim_of(record.visit)
            if claim is not None:
                claims.append(claim)
        self._claim(claims, group)

    def _claim(self, claims: Sequence[Claim], group: Group) -> None:
        away = list[Task]()
        for claim in claims:
            if self.outbox.is_ours(claim.host):
                _keep(claim, group)
            else:
                away.append(as_task(claim))
        if away:
            group.push(away)

    async def claim_again(self, rows: Iterable[DocumentRow]) -> int:
        """Claim all documents of the ledger, where one of them was never claimed. Returns how many were claimed. A run that is
        killed meanwhile begins again with the next start."""
        before = self.ledger.counters()
        if not has_unclaimed(before):
            return 0
        done, left = 0, iter(rows)
        while part := list(islice(left, _AT_ONCE)):
            claims = [claim for row in part if (claim := claim_of_row(row)) is not None]
            with self.ledger.group() as group:
                self._claim(claims, group)
            done += len(claims)
            await asyncio.sleep(0)
        with self.ledger.group() as group:
            group.count("claimed", before.get("documents", 0) - before.get("claimed", 0))
            group.count(CLAIMS_DUE, -before.get(CLAIMS_DUE, 0))
        return done

    # -- digests that are ours

    def received(self, tasks: Sequence[Task], group: Group) -> None:
        """Keep the claims of other agents."""
        for task in tasks:
            claim = claimed_by(task)
            if claim is None:
                group.count("claims_unusable")
            else:
                _keep(claim, group)

    def unwritten(self) -> Iterator[Sequence[Claim]]:
        """Claims of digests that are claimed more than once, and that no table has yet; some at a time.

        Each part has to be given to :meth:`written` before the next one is taken.
        """
        while part := [unpacked(value) for _, value in islice(self.ledger.spaces.scan(COPIES, None), _AT_ONCE)]:
            yield part

    def written(self, claims: Sequence[Claim], group: Group) -> None:
        for claim in claims:
            group.delete(COPIES, None, claim.copy_key)


def has_unclaimed(counters: Mapping[str, int]) -> bool:
    """Whether a ledger with these counters has documents that were not claimed, or that have to be claimed anew."""
    return bool(counters.get(CLAIMS_DUE)) or counters.get("documents", 0) != counters.get("claimed", 0)


def _keep(claim: Claim, group: Group) -> None:
    """Stage a claim. One that is known changes nothing, so it may come any number of times."""
    host, key = claim.host, claim.key
    found = group.get(DIGESTS, host, key)
    if found is None:
        if group.put(DIGESTS, host, key, packed(claim)):
            group.count("digests")
        return
    first = unpacked(found)
    if first.url == claim.url or group.get(DIGESTS, host, claim.copy_key) is not None:
        return
    if not group.put(DIGESTS, host, claim.copy_key, packed(claim)):
        return
    counted = Claim(first.digest, first.url, first.met_at, first.copies + 1)
    group.put(DIGESTS, host, key, packed(counted))
    group.count("copies")
    for one in (claim,) if first.copies else (first, claim):
        group.put(COPIES, None, one.copy_key, packed(one))


# Claims that the ledger of an agent knows become rows of the table `copies`. An agent writes them with each sample; a row counts
# when the group that forgets its claim is kept, so that a kill neither loses nor doubles one.


def write_copies(crawl: CrawlAtWork) -> None:
    """Write the claims that are in no table yet. Those that cannot be written are counted by the log, and are written later."""
    for log in crawl.providers(TableLog)[:1]:
        for digests, claims in ((one, claims) for one in crawl.providers(AgentDigests) for claims in one.unwritten()):
            try:
                log.add(COPIED.name, map(copy_row, claims), crawl.ledger, partial(digests.written, claims))
            except (OSError, GossamerError):
                log.metrics.count("copies_late")
                return


async def claim_again(run: CrawlAtWork) -> None:
    """Let an agent claim the documents that it has not claimed: it was alone when it met them, or another agent lost its ledger."""
    for digests in run.providers(AgentDigests):
        await digests.claim_again(run.ledger.documents())
