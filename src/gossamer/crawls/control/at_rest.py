"""How a crawl at rest stands: made out of its ledgers, and of what was said when the last run ended."""

from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.control.problems import problems_of
from gossamer.crawls.control.standing import (
    CrawlStanding,
    agent_standing,
    errors_of,
    exchange_standing,
    failing_of,
    ledgers_of,
)
from gossamer.crawls.control.standing_of_agents import added_standing
from gossamer.crawls.control.waits import MOST_COUNTED, data_sets, lent_waits, sizes_of, waits_at_rest, walked_sizes
from gossamer.crawls.summary import ENDED, ENDED_FILE, unique_documents, urls_elsewhere, with_failure
from gossamer.frontier.contract import JUDGED, RELEVANT
from gossamer.frontier.politeness.rules import blocked_by_orders
from gossamer.storage.ledger.ledger import RocksLedger
from gossamer.storage.tables.manifest import failure_of

#: Hosts of a ledger at rest that are asked for their errors and waits: reading one takes some microseconds.
LOOKED_AT = 100_000


def standing_at_rest(directory: Path) -> CrawlStanding:
    """How a crawl at rest stands, by its ledgers. Nothing is changed.

    Raises:
        CrawlDirectoryError: a ledger is missing or damaged.
    """
    ledgers = ledgers_of(directory)
    found = [standing_of_ledger(directory, ledger) for ledger in ledgers]
    now = found[0]
    if len(found) > 1:
        agents = [agent_standing(ledger.sheet.agent, one) for ledger, one in zip(ledgers, found, strict=True)]
        # What an agent says of its own end is not what the crawl has come to.
        now = msgspec.structs.replace(added_standing(directory, found), each_agent=agents, **_told_of_all(directory))
    why = failure_of(directory)
    now = msgspec.structs.replace(now, failure=why, state=with_failure(now.state, why))
    return msgspec.structs.replace(now, problems=problems_of(now))


def _told_of_all(directory: Path) -> dict[str, Any]:
    """What the supervisor of several agents has said when the last run ended."""
    try:
        ended = msgspec.json.decode((directory / ENDED_FILE).read_bytes(), type=CrawlStanding)
    except (FileNotFoundError, msgspec.DecodeError):
        return {"state": "killed"}
    names = (
        "state",
        "limit",
        "goal",
        "cuts",
        "waiting",
        "seconds",
        "pages_per_second",
        "cpu_seconds",
        "peak_rss_bytes",
    )
    return {name: getattr(ended, name) for name in names}


def standing_of_ledger(directory: Path, ledger: RocksLedger) -> CrawlStanding:
    """How one agent stands that is not at work. Raises as :func:`standing_at_rest`."""
    with ledger.looking():
        counters, told = ledger.counters(), ledger.meta(ENDED)
        outcomes = {name.partition(":")[2]: n for name, n in counters.items() if name.startswith("outcome:")}
        ended = msgspec.json.decode(told, type=CrawlStanding) if told else CrawlStanding(str(directory), "killed")
        queued, discovered = len(ledger.queues) + urls_elsewhere(counters), counters.get("discovered", 0)
        # What a person has confirmed to be a trap was left out when the last run ended.
        set_aside = ended.set_aside if told else counters.get("set_aside", 0)
        hosts = [state for state in islice(ledger.hosts(), LOOKED_AT) if state.note or state.counters.get("errors")]
        sizes = {**sizes_of(ledger), **walked_sizes(directory)}
        return CrawlStanding(
            crawl=str(directory),
            state=ended.state,
            pages=counters.get("pages", 0),
            fetched=counters.get("fetched", 0),
            unique_documents=unique_documents(counters),
            bytes=counters.get("bytes", 0),
            outcomes=outcomes,
            errors=errors_of(outcomes),
            raised=counters.get("raised", 0),
            needs_browser=counters.get("needs_browser", 0),
            failing=failing_of(
                {state.host: state.counters.get("errors", 0) for state in hosts if state.counters.get("errors")}
            ),
            discovered=discovered,
            queued=queued,
            set_aside=set_aside,
            waits=[
                *waits_at_rest(
                    ledger.owed(MOST_COUNTED), hosts if queued else [], ledger.clock.now(), set_aside, ledger.aside()
                ),
                *lent_waits(counters),
            ],
            sizes=data_sets(sizes, {}, discovered=discovered, queued=queued),
            cuts=ended.cuts,
            limit=ended.limit,
            goal=ended.goal,
            waiting=ended.waiting,
            hosts=counters.get("hosts", 0),
            judged=counters.get(JUDGED, 0),
            relevant=counters.get(RELEVANT, 0),
            seconds=ended.seconds,
            pages_per_second=ended.pages_per_second,
            cpu_seconds=ended.cpu_seconds,
            peak_rss_bytes=ended.peak_rss_bytes,
            blocked=blocked_by_orders(ledger)[:100],
            checkpoints=ledger.checkpoints(),
            exchange=exchange_standing(ledger, directory),
        )
