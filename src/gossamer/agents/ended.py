"""How agents and masters ended: each tells it in a file of its own when it ends, and a crawl of several agents is their sum.

Place in the flow: :mod:`run` writes the file when an agent has closed its ledger, and so does a process that works for an agent at
rest (:mod:`parcels`). The supervisor reads these files and opens no ledger; of an agent that was killed, such a process tells it.
The supervisor's last words on the whole crawl stand in a file beside the agents' states, which `status` reads when it is at rest.
"""

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.control.at_rest import added_standing, standing_of_ledger
from gossamer.crawls.control.server import place_of
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.directory import damage_of
from gossamer.crawls.summary import Summary, cpu_seconds, cuts_of, has_documents, peak_rss
from gossamer.engine.files import replace_file
from gossamer.engine.sheet import build
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.ledger.opening import Places, missing
from gossamer.storage.recovery import files_of
from gossamer.values.errors import CrawlDirectoryError
from gossamer.values.outcome import Outcome

#: The file in the folder of an agent or a master that has ended.
_ENDED = "ended.json"


def is_ledger_gone(directory: Path, agent: str) -> bool:
    """Whether an agent has no ledger: it has not begun, or its folder was taken away."""
    places = Places(place_of(directory, agent))
    return not any(path.exists() for path in (places.ledger, places.made, places.replaced))


def ledger_of(directory: Path, settings: Mapping[str, Any], agent: str, *, existing: bool = False) -> RocksLedger:
    """An agent's ledger by the settings that its crawl has for ledgers, not open."""
    given = {**settings, "directory": str(directory), "agent": agent, "existing": existing}
    return RocksLedger(build(LedgerSheet, given))


def opened_ledger(
    directory: Path, settings: Mapping[str, Any], agent: str, stack: ExitStack, *, existing: bool = True
) -> RocksLedger:
    """An agent's ledger as its crawl has it, open until `stack` is left. Raises as `open` does.

    Its next owner takes it for one whose process was killed, and waits before its first request to hosts that another agent has
    just asked, as after a kill.
    """
    ledger = ledger_of(directory, settings, agent, existing=existing)
    ledger.open()
    stack.callback(ledger.abandon)
    return ledger


class AgentEnd(msgspec.Struct, frozen=True):
    """How an agent or a master stands that does not work."""

    standing: CrawlStanding | None = None
    """None of a master, of an agent that never began, and where the ledger is lost."""
    counters: dict[str, int] = {}
    is_clean: bool = True
    """It has nothing in flight."""
    damage: str = ""
    """Why its ledger cannot be opened, where it has one or has written files."""
    opening: int = 0
    """Tells whether the ledger was opened since."""

    @property
    def owed(self) -> int:
        return self.counters.get("owed", 0)


def end_of_ledger(directory: Path, ledger: RocksLedger) -> AgentEnd:
    """How an agent stands by its ledger, which is not open. Raises CrawlDirectoryError: it is another version's."""
    try:
        return _looked_at(directory, ledger)
    except CrawlDirectoryError:
        if ledger.places.ledger.is_dir():
            raise
        return _looked_at(directory, ledger)  # its disk went meanwhile


def _looked_at(directory: Path, ledger: RocksLedger) -> AgentEnd:
    if (damage := damage_of(ledger)) is not None:
        has_begun = ledger.places.ledger.is_dir() or any(files_of(directory, ledger.sheet.agent))
        return AgentEnd(damage=str(damage) if has_begun else "", is_clean=not has_begun)
    if is_ledger_gone(directory, ledger.sheet.agent):
        raise missing(ledger.places.state)
    if not ledger.places.ledger.is_dir():
        return AgentEnd(is_clean=False)  # a kill interrupted a replacement, which its next opening finishes
    opening, standing = _opening(ledger.places.state), standing_of_ledger(directory, ledger)
    with ledger.looking():
        return AgentEnd(standing, dict(ledger.counters()), ledger.is_clean, opening=opening)


def note_agent_end(directory: Path, agent: str, ledger: RocksLedger | None = None) -> None:
    """Tell how an agent stands, or that a master has ended in order, which has no ledger. Without the file a process looks."""
    write_agent_end(directory, agent, AgentEnd() if ledger is None else end_of_ledger(directory, ledger))


def write_agent_end(directory: Path, agent: str, end: AgentEnd) -> None:
    """Write how an agent stands by its own word."""
    with contextlib.suppress(OSError):
        replace_file(place_of(directory, agent) / _ENDED, msgspec.json.encode(end))


def noted_end(directory: Path, agent: str) -> AgentEnd | None:
    """The end of an agent or a master, as it has told it; None where it has not, or has begun again since."""
    place = place_of(directory, agent)
    try:
        end = msgspec.json.decode((place / _ENDED).read_bytes(), type=AgentEnd)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return end if end.opening == _opening(place) else None


def forget_agent_end(directory: Path, agent: str) -> None:
    (place_of(directory, agent) / _ENDED).unlink(missing_ok=True)


def _opening(place: Path) -> int:
    """Differs after each opening of a ledger, since the store writes this file anew then; 0 where there is none."""
    try:
        return (place / "ledger/CURRENT").stat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return 0


def added(directory: Path, ends: Mapping[str, AgentEnd]) -> CrawlStanding:
    return added_standing(directory, [one.standing for one in ends.values() if one.standing is not None])


def summary_of_run(
    directory: Path,
    ends: Mapping[str, AgentEnd],
    working: Sequence[str],
    *,
    limit: str,
    is_stopping: bool,
    pages_before: int,
    seconds: float,
) -> Summary:
    """The summary of a run that has ended.

    Args:
        working: those of them that had work in this run.
        limit: what ended the run, by its setting's name; empty where nothing did.
        pages_before: what the crawl had when the run began.
    """
    now, counters = added(directory, ends), Counter[str]()
    for end in ends.values():
        counters.update(end.counters)
    at_work = [one for name in working if (one := ends[name].standing) is not None]
    # An agent without others ends by itself, also where a person stops it by hand.
    is_stopped = is_stopping or (len(at_work) == 1 and at_work[0].state == "stopped" and not limit)
    if is_stopped:
        state = "stopped"
    elif not has_documents(counters):
        state = "incomplete"
    elif limit:
        state = "limit"
    else:
        state = "incomplete" if now.queued or counters[f"outcome:{Outcome.GONE_AFTER_RETRIES}"] else "finished"
    ended_by = f"limit:{limit}" if limit else "stopped" if is_stopped else ""
    shared = {name: getattr(now, name) for name in Summary.__struct_fields__}
    shared |= {
        "state": state,
        "limit": limit if state == "limit" else "",
        "goal": now.goal if state == "limit" else "",
        "cuts": cuts_of(counters, ended_by, now.queued, now.set_aside),
        "waiting": now.waiting if now.queued else None,
        "seconds": round(seconds, 3),
        "pages_per_second": round((now.pages - pages_before) / seconds, 2) if seconds else 0.0,
        "cpu_seconds": cpu_seconds(),
        "peak_rss_bytes": peak_rss() + now.peak_rss_bytes,
    }
    return Summary(**shared)
