"""The standings of several agents as one, and how a crawl at rest stands, by its ledgers and by what was said when the last run
ended.

Place in the flow: the supervisor of agents at work adds up what they say, `status` what ledgers say. :func:`added_standing` is
pure. A crawl at work tells how it stands itself (:mod:`~gossamer.crawls.control.at_work`).
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from gossamer.crawls.control import standing, waits
from gossamer.crawls.control.problems import problems_of
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.summary import ENDED, ENDED_FILE, counted, urls_elsewhere, with_failure
from gossamer.frontier.limits import RetriesWaiting
from gossamer.frontier.politeness.rules import blocked_by_orders
from gossamer.storage.ledger.ledger import RocksLedger, ledgers_of
from gossamer.storage.mailbox.sealed_files import EXCHANGE_KEY, read_key
from gossamer.storage.members import JOINED
from gossamer.storage.tables.manifest import failure_of
from gossamer.values.outcome import Outcome

T = TypeVar("T")

#: Fields that are added up.
_SUMS = (
    "pages", "fetched", "unique_documents", "bytes", "errors", "raised", "needs_browser", "discovered", "queued", "set_aside",
    "links", "new_links",
    "in_flight", "concurrency", "hosts", "judged", "relevant", "pages_per_second", "recent_pages_per_second", "cpu_seconds",
    "peak_rss_bytes",
)  # fmt: skip

#: Fields of the last run, which are told at its end.
_OF_A_RUN = (
    "state", "limit", "goal", "cuts", "waiting", "seconds", "pages_per_second", "cpu_seconds", "peak_rss_bytes",
)  # fmt: skip

#: Hosts of retries that are told.
_TOLD = 20


def added_standing(directory: Path, parts: Sequence[CrawlStanding]) -> CrawlStanding:
    """Several agents as one. The state and the limits of the crawl as a whole are those of the first. `parts`: one for
    each agent; a crawl of which no agent has begun has none."""
    if not parts:
        return CrawlStanding(str(directory), "killed")
    return replace(
        parts[0],
        crawl=str(directory),
        outcomes=added(part.outcomes for part in parts),
        cuts=added(part.cuts for part in parts),
        goal=next((part.goal for part in parts if part.goal), ""),
        failing=standing.failing_of({one.host: one.errors for part in parts for one in part.failing}),
        waiting=_waiting([part.waiting for part in parts if part.waiting is not None]),
        waits=_waits(chain.from_iterable(part.waits for part in parts)),
        stored=[one for part in parts for one in part.stored],
        # Sizes that are found by a walk are the crawl's, and each part has all of them.
        sizes=[
            those[-1]
            if those[-1].name in waits.WALKED
            else replace(those[-1], **_sums(those, "bytes", "growth", "items"))
            for those in _grouped(chain.from_iterable(part.sizes for part in parts), lambda one: one.name)
        ],
        slowest=heapq.nlargest(
            standing.SLOWEST, chain.from_iterable(part.slowest for part in parts), lambda one: one.seconds
        ),
        slowed=heapq.nlargest(
            standing.SLOWEST, chain.from_iterable(part.slowed for part in parts), lambda one: one.delay
        ),
        suspended=sorted({name for part in parts for name in part.suspended}),
        blocked=sorted({name for part in parts for name in part.blocked})[:100],
        checkpoints=[name for name in parts[0].checkpoints if all(name in part.checkpoints for part in parts)],
        busy=max(part.busy for part in parts),
        seconds=max(part.seconds for part in parts),
        estimate=max(part.estimate for part in parts),
        # Agents have the same units, but for what leads from each to the others.
        units=[
            replace(
                those[-1],
                metrics=added(one.metrics for one in those),
                is_suspended=any(one.is_suspended for one in those),
            )
            for those in _grouped(chain.from_iterable(part.units for part in parts), lambda one: one.name)
        ],
        connectors=[
            replace(those[-1], **_sums(those, "passed", "waiting", "stalled"), peak=max(one.peak for one in those))
            for those in _grouped(chain.from_iterable(part.connectors for part in parts), lambda one: one.name)
        ],
        **_sums(parts, *_SUMS),
    )


def added(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of several, added up by their names."""
    sums = Counter[str]()
    for part in parts:
        sums.update(part)
    return dict(sums)


def _waiting(parts: Sequence[RetriesWaiting]) -> RetriesWaiting | None:
    if not parts:
        return None
    hosts = {host: why for part in parts for host, why in part.hosts.items()}
    told = dict(list(hosts.items())[:_TOLD])
    return RetriesWaiting(sum(part.urls for part in parts), min(part.next for part in parts), told)


def _waits(parts: Iterable[waits.Wait]) -> list[waits.Wait]:
    """One wait for each reason, in the order in which they first come."""
    return [
        replace(
            those[0],
            **_sums(those, "urls", "hosts"),
            until=min((one.until for one in those if one.until), default=0.0),
            names=list(chain.from_iterable(one.names for one in those))[: waits.NAMED],
            seconds=max(one.seconds for one in those),
            is_more=any(one.is_more for one in those),
        )
        for those in _grouped(parts, lambda one: (one.why, one.reason))
    ]


def _grouped(parts: Iterable[T], key: Callable[[T], object]) -> Iterable[list[T]]:
    found: dict[object, list[T]] = {}
    for one in parts:
        found.setdefault(key(one), []).append(one)
    return found.values()


def _sums(parts: Sequence[object], *names: str) -> dict[str, Any]:
    return {name: sum(getattr(part, name) for part in parts) for name in names}


#: Hosts of a ledger at rest that are asked for their errors and waits: reading one takes some microseconds.
LOOKED_AT = 100_000


def standing_at_rest(directory: Path) -> CrawlStanding:
    """How a crawl at rest stands, by its ledgers. Nothing is changed. Raises CrawlDirectoryError: a ledger is missing or
    damaged."""
    if (directory / JOINED).exists() and (directory / ENDED_FILE).exists():
        return msgspec.json.decode((directory / ENDED_FILE).read_bytes(), type=CrawlStanding)  # by word of its agents
    ledgers = ledgers_of(directory)
    found = [standing_of_ledger(directory, ledger) for ledger in ledgers]
    now = found[0]
    if len(found) > 1:
        agents = [standing.agent_standing(ledger.sheet.agent, one) for ledger, one in zip(ledgers, found, strict=True)]
        # The end of an agent, as it tells it, is not the end that the crawl has come to.
        now = replace(added_standing(directory, found), each_agent=agents, **_told_of_all(directory))
    why = failure_of(directory)
    now = replace(now, failure=why, state=with_failure(now.state, why))
    return replace(now, problems=problems_of(now))


def standing_in_store(
    name: str, stored: Sequence[standing.StoredAgent], published: Mapping[str, CrawlStanding]
) -> CrawlStanding:
    """How a crawl stands that lies in a store, by what each agent has `published` of itself (:func:`standing_of_ledger`)."""
    now = added_standing(Path(), list(published.values()))
    ends = {published[one.name].state for one in stored if one.name in published}
    if any(one.is_alive for one in stored):
        state = "elsewhere"
    elif not ends or any(one.holder for one in stored):
        state = "killed"
    elif len(ends) == 1:
        state = ends.pop()
    else:  # an agent that no document came to is incomplete by itself, which says nothing of the crawl
        is_open = now.queued or now.outcomes.get(Outcome.GONE_AFTER_RETRIES)
        state = next(
            (one for one in ("killed", "stopped", "limit") if one in ends), "incomplete" if is_open else "finished"
        )
    now = replace(
        now,
        crawl=name,
        state=state,
        each_agent=[standing.agent_standing(*one) for one in published.items()] if len(published) > 1 else [],
        stored=list(stored),
    )
    now = replace(now, state=with_failure(now.state, now.failure))
    return replace(now, problems=problems_of(now))


def out_of_date(now: CrawlStanding, stored: Sequence[standing.StoredAgent]) -> CrawlStanding:
    """How a crawl directory stands whose crawl went on elsewhere, by its store, if it did: `stored` says who has it."""
    if not stored:
        return now
    now = replace(now, state="elsewhere", stored=list(stored), problems=[])
    return replace(now, problems=problems_of(now))


def _told_of_all(directory: Path) -> dict[str, Any]:
    """The words of the supervisor of several agents at the end of the last run."""
    try:
        ended = msgspec.json.decode((directory / ENDED_FILE).read_bytes(), type=CrawlStanding)
    except (FileNotFoundError, ValueError):
        return {"state": "killed"}
    return {name: getattr(ended, name) for name in _OF_A_RUN}


def standing_of_ledger(directory: Path, ledger: RocksLedger, snapshot: Path | None = None) -> CrawlStanding:
    """How one agent stands that is not at work, or stood when a `snapshot` of its ledger was taken. Raises as
    :func:`standing_at_rest`."""
    with ledger.looking(snapshot):
        counters, told = ledger.counters(), ledger.meta(ENDED)
        figures = counted(counters)
        ended = msgspec.json.decode(told, type=CrawlStanding) if told else CrawlStanding(str(directory), "killed")
        queued, discovered = len(ledger.queues) + urls_elsewhere(counters), figures["discovered"]
        # The last run left out at its end all that a person had confirmed to be a trap.
        set_aside = ended.set_aside if told else counters.get("set_aside", 0)
        hosts = [state for state in islice(ledger.hosts(), LOOKED_AT) if state.note or state.counters.get("errors")]
        sizes = {**waits.sizes_of(ledger), **waits.walked_sizes(directory)}
        return CrawlStanding(
            crawl=str(directory),
            **figures,
            errors=standing.errors_of(figures["outcomes"]),
            failing=standing.failing_of(
                {state.host: state.counters.get("errors", 0) for state in hosts if state.counters.get("errors")}
            ),
            queued=queued,
            set_aside=set_aside,
            waits=[
                *waits.waits_at_rest(
                    ledger.queues.delayed.owed(waits.MOST_COUNTED),
                    hosts if queued else [],
                    ledger.clock.now(),
                    set_aside,
                    ledger.aside(),
                ),
                *waits.lent_waits(counters),
            ],
            sizes=waits.data_sets(sizes, {}, discovered=discovered, queued=queued),
            **{name: getattr(ended, name) for name in _OF_A_RUN},
            blocked=blocked_by_orders(ledger)[:100],
            checkpoints=ledger.checkpoints(),
            exchange=exchange_standing(ledger, directory),
        )


def exchange_standing(ledger: RocksLedger, directory: Path) -> standing.ExchangeStanding | None:
    """The files that agents exchange, as a ledger has them; None where they exchange none."""
    if not (directory / EXCHANGE_KEY).exists():
        return None
    from gossamer.storage.mailbox.exchange_files import FILES, written_files

    key, counters = read_key(directory / EXCHANGE_KEY), ledger.counters()
    ledger.spaces.open(FILES)
    unconfirmed: dict[str, standing.FilesForAgent] = {}
    for file in (one for one in written_files(ledger.spaces) if one.urls):
        before = unconfirmed.get(file.agent, standing.FilesForAgent(file.agent))
        unconfirmed[file.agent] = standing.FilesForAgent(file.agent, before.files + 1, before.urls + file.urls)
    return standing.ExchangeStanding(
        agent=ledger.sheet.agent,
        agents=len(key.members),
        owed=counters.get("owed", 0),
        written=counters.get("written", 0),
        unconfirmed=[unconfirmed[agent] for agent in sorted(unconfirmed)],
        merged=counters.get("merged_files", 0),
        received=counters.get("received", 0),
    )
