"""How a crawl of several agents ended: their ledgers added up, and what was said of the whole, kept in a file beside their states.

Place in the flow: the supervisor sums up here when its agents have ended; `status` reads the file when the crawl is at rest.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from gossamer.crawls.control.at_rest import standing_of_ledger
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.control.standing_of_agents import added_standing
from gossamer.crawls.summary import ENDED_FILE, Summary, cpu_seconds, cuts_of, has_documents, peak_rss
from gossamer.engine.files import replace_file
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.values.agents import member
from gossamer.values.outcome import Outcome

#: Fields that summary and standing share by name and meaning.
_SHARED = tuple(set(Summary.__struct_fields__) & set(CrawlStanding.__struct_fields__))


class EndedAgents(msgspec.Struct, frozen=True):
    """What all agents of a crawl have come to."""

    standing: CrawlStanding
    counters: dict[str, int]
    """Of their ledgers, added up."""

    @property
    def troubled(self) -> int:
        """Pages that were kept but could not be processed in full."""
        return self.counters.get("troubled", 0)


def ended(directory: Path, members: Sequence[str]) -> EndedAgents:
    """Add up the ledgers of agents that have ended; one that never began counts as nothing.

    Raises:
        CrawlDirectoryError: a ledger is damaged.
    """
    counters: dict[str, int] = {}
    for ledger in _ledgers(directory, members):
        with ledger.looking():
            for name, count in ledger.counters().items():
                counters[name] = counters.get(name, 0) + count
    standings = standings_of(directory, members)
    return EndedAgents(added_standing(directory, standings), counters)


def standings_of(directory: Path, members: Sequence[str]) -> list[CrawlStanding]:
    """How agents stand that do not work, without those that never began. Raises as :func:`ended`."""
    return [standing_of_ledger(directory, ledger) for ledger in _ledgers(directory, members)]


def _ledgers(directory: Path, members: Sequence[str]) -> Iterator[RocksLedger]:
    for text in members:
        ledger = RocksLedger(LedgerSheet(directory=str(directory), agent=member(text).agent))
        if ledger.places.ledger.is_dir():
            yield ledger


def summary_of_run(
    directory: Path,
    members: Sequence[str],
    working: Sequence[str],
    *,
    limit: str,
    is_stopping: bool,
    pages_before: int,
    seconds: float,
) -> Summary:
    """The summary of a run that has ended.

    Args:
        directory: the crawl's.
        members: agents of the crawl.
        working: those of them that had work in this run.
        limit: what ended the run, by its setting's name; empty where nothing did.
        is_stopping: the supervisor was told to stop.
        pages_before: what the crawl had when the run began.
        seconds: the run took.

    Raises:
        CrawlDirectoryError: a ledger is damaged.
    """
    at_work = standings_of(directory, working)
    # An agent without others ends by itself, also where a person stops it by hand.
    is_stopped = is_stopping or (len(at_work) == 1 and at_work[0].state == "stopped" and not limit)
    summary = summary_of(ended(directory, members), limit=limit, is_stopped=is_stopped)
    return msgspec.structs.replace(
        summary,
        seconds=round(seconds, 3),
        pages_per_second=round((summary.pages - pages_before) / seconds, 2) if seconds else 0.0,
        cpu_seconds=cpu_seconds(),
        peak_rss_bytes=peak_rss() + summary.peak_rss_bytes,
    )


def summary_of(agents: EndedAgents, *, limit: str, is_stopped: bool) -> Summary:
    """The summary of a run, without its time.

    Args:
        agents: as they ended.
        limit: what ended the run, by its setting's name; empty where nothing did.
        is_stopped: a person has ended it.
    """
    now = agents.standing
    state = _state(now, agents.counters, limit, is_stopped=is_stopped)
    ended_by = f"limit:{limit}" if limit else "stopped" if is_stopped else ""
    shared = {name: getattr(now, name) for name in _SHARED}
    return msgspec.structs.replace(
        Summary(**shared),
        state=state,
        limit=limit if state == "limit" else "",
        goal=now.goal if state == "limit" else "",
        cuts=cuts_of(agents.counters, ended_by, now.queued, now.set_aside),
        waiting=now.waiting if now.queued else None,
    )


def _state(now: CrawlStanding, counters: Mapping[str, int], limit: str, *, is_stopped: bool) -> str:
    if is_stopped:
        return "stopped"
    if not has_documents(counters):
        return "incomplete"
    if limit:
        return "limit"
    return "incomplete" if now.queued or counters.get(f"outcome:{Outcome.GONE_AFTER_RETRIES}") else "finished"


def note_end(directory: Path, summary: Summary) -> None:
    """Keep the summary of the run that has ended."""
    replace_file(directory / ENDED_FILE, msgspec.json.encode(summary))


def forget_end(directory: Path) -> None:
    """A run begins: until it ends in order, it has been killed."""
    (directory / ENDED_FILE).unlink(missing_ok=True)
