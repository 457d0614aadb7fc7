"""The story of one URL: how it was found, judged and fetched, and where it is kept.

Place in the flow: `gossamer why` and the dashboard call :func:`story_of`. It puts together what the ledger knows, which is
asked over the control socket while the crawl runs, traces in log and link table, and the verdicts of the crawl's own filters
and robots rules (:mod:`gossamer.analysis.traces`), and finds the words.

Promise: the verdicts are those of now: a rule that was changed since is told as it stands.
"""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.agents.ring import RingDesignation, RingSheet
from gossamer.analysis.traces import (
    MOST_VISITS,
    LeadingLink,
    RobotsWord,
    Story,
    Verdicts,
    cut_page,
    discovery,
    links_to,
    normalised,
    redirects_from,
    verdicts_of,
    visits_of,
)
from gossamer.analysis.watching import known_facts
from gossamer.crawls.catalog import catalog
from gossamer.crawls.control.facts import Known, known_of
from gossamer.crawls.control.messages import Why
from gossamer.crawls.control.waits import held_at_rest
from gossamer.crawls.directory import read_wiring
from gossamer.crawls.old_wirings import completed
from gossamer.crawls.summary import HELD
from gossamer.engine.graph import Graph
from gossamer.engine.planning import plan
from gossamer.engine.sheet import show_count
from gossamer.fetcher.request import HttpSheet
from gossamer.frontier.traps.likeness import ALIASES, proven_others
from gossamer.parsing.links import LinksSheet, normaliser
from gossamer.query.archive import ArchiveReader, url_asked
from gossamer.query.database import Database
from gossamer.storage.ledger.reader import LedgerSheet
from gossamer.storage.mailbox.exchange_files import FileOutboxSheet
from gossamer.storage.rewrite_journals import deletion_of
from gossamer.storage.tables.log import TableLogSheet
from gossamer.storage.tables.places import begun_crawl
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.instants import utc_text
from gossamer.values.ledger_rows import DocumentRow
from gossamer.values.outcome import ANSWERED, Outcome
from gossamer.values.task import child_depth
from gossamer.values.url import host_of


def story_of(directory: Path, text: str) -> Story:
    """The story of a URL of a crawl, which may be at work. Raises UsageError: it is no URL, or there is no crawl. Raises
    CrawlDirectoryError: the crawl's ledger is missing or damaged."""
    url = url_asked(text)
    begun_crawl(directory)
    graph = plan(completed(read_wiring(directory)), catalog())
    known = _known(directory, url)
    # The form that a link to a canonical URL takes in this crawl; seeds are taken as they are.
    sheets = (node.sheet for node in graph.components.values())
    normal = next((normaliser(sheet)(url) for sheet in sheets if isinstance(sheet, LinksSheet)), url)
    if normal != url and not known.is_seen:
        known = _known(directory, normal)
    traces = _traces(directory, graph, known)
    verdicts = asyncio.run(verdicts_of(graph, known, traces.links or ()))
    row, task, visits = known.row, known.task, traces.visits
    source, relation, depth = discovery(known)
    state, words = _state(known, verdicts, traces, graph)
    if not known.is_seen and visits:
        state, words = "done", "it was asked for, to know the rules of its site"
    record = None
    if row is not None and row.location is not None:
        record = {"file": row.location.file, "offset": row.location.offset, "length": row.location.length}
    if row is None and task is None and (gone := deletion_of(directory, known.url)) is not None:
        what = "it" if gone.kind == "url" else "its host"
        after = "may be fetched again when a page links there" if gone.forget else "is never fetched again"
        state, words = "deleted", f"{what} was deleted from this crawl at {gone.at}, and {after}"
    facts, host = None, known.host
    if host is not None and host.first_seen:
        facts = {
            "host": host.host,
            "ip": host.address,
            "delay": host.delay,
            "delay_reason": host.delay_reason,
            "robots_state": host.robots_state,
            "robots_date": utc_text(host.robots_date) if host.robots_date else "",
            "aliases": proven_others(known.learnt.get(ALIASES)),
            "counters": host.counters,
            "last_seen": utc_text(host.last_seen) if host.last_seen else "",
        }
    return Story(
        asked=text.strip(),
        url=known.url,
        state=state,
        told=words,
        normalised=normalised(text.strip(), known.url),
        discovered_from=source,
        relation=relation,
        depth=known.depth if known.depth is not None else depth if known.is_seen else None,
        attempt=task.attempt if task else row.attempt if row else 0,
        filters=verdicts.filters,
        robots=verdicts.robots,
        blocked_by=verdicts.blocked_by,
        visits=visits,
        outcome=str(row.outcome) if row else "",
        record=record,
        found_by=_other_owner(source, graph) if source else "",
        duplicate_of=row.duplicate_of if row else "",
        near_duplicate_of=_near_duplicate_of(visits),
        redirects=traces.redirects,
        links=verdicts.links,
        host=facts,
    )


def _known(directory: Path, url: str) -> Known:
    found = known_facts(directory, Why(url), Known, lambda ledger: known_of(ledger, url))
    return next((known for known in found if known.is_seen), found[0])


class _Traces(msgspec.Struct, frozen=True):
    visits: list[dict[str, Any]]
    links: list[LeadingLink] | None
    """Links that lead to a URL that was never queued; None where the crawl keeps no link table."""
    redirects: list[str]
    pages: dict[str, dict[str, Any]]
    """The last visits of pages that have these links."""
    cut_page: str = ""
    """A page of which a limit left links out, where none of the links that are known leads to the URL."""
    wants_cookies: bool = False
    """An answer of its loop of redirects set a cookie, and the crawl sends none."""


def _traces(directory: Path, graph: Graph, known: Known) -> _Traces:
    """Look for traces; the link table, which may be long, only where it has something to tell."""
    visits = list(visits_of(directory, known.url))[-MOST_VISITS:]
    row = known.row
    is_redirect = row is not None and row.outcome is Outcome.REDIRECT
    is_elsewhere = known.is_seen and bool(_other_owner(known.url, graph))
    is_unmet = (
        row is None
        and known.task is None
        and known.aside is None
        and not is_elsewhere
        and (not known.is_seen or known.is_cut)
    )
    if not (is_redirect or is_unmet):
        return _Traces(visits, [], [], {})
    sheets = [node.sheet for node in graph.providers.values()]
    keeps_links = any("links" in sheet.tables for sheet in sheets if isinstance(sheet, TableLogSheet))
    with Database(directory) as tables:
        redirects = (
            redirects_from(tables, directory, known.url, row.location) if row is not None and is_redirect else []
        )
        links = links_to(tables, known.url) if is_unmet and keeps_links else None if is_unmet else []
        cut = cut_page(tables) if is_unmet and not links else ""
    pages = {link.page: list(visits_of(directory, link.page))[-1:] for link in (links or ())[:1]}
    kept = {page: found[0] for page, found in pages.items() if found}
    is_loop = redirects[-1:] and redirects[-1] in (known.url, *redirects[:-1])
    modules = [sheet for sheet in sheets if isinstance(sheet, HttpSheet)]
    wants = (
        is_loop
        and not any(sheet.cookies != "off" or sheet.cookie_file for sheet in modules)
        and any(_sets_cookie(directory, url) for url in {known.url, *redirects})
    )
    return _Traces(visits, links, redirects, kept, cut, bool(wants))


def _sets_cookie(directory: Path, url: str) -> bool:
    """Whether the last answer for a URL set a cookie; False where the archive has none."""
    with contextlib.suppress(UsageError, CrawlDirectoryError):
        return b"\r\nset-cookie:" in ArchiveReader(directory).document(url).record.head.lower()
    return False


def _near_duplicate_of(visits: Sequence[Mapping[str, Any]]) -> str:
    return str(visits[-1].get("near_duplicate_of", "")) if visits else ""


def _state(known: Known, verdicts: Verdicts, traces: _Traces, graph: Graph) -> tuple[str, str]:
    """A word for where the URL stands, and a sentence."""
    row = known.row
    if known.flights:
        return "in_flight", "it is being fetched now"
    if known.is_owed or (known.is_seen and row is None and _other_owner(known.url, graph)):
        return "owed", _owed(known, _other_owner(known.url, graph) or "another agent")
    if known.aside is not None:
        family = known.aside
        words = f"it is set aside with {family.text}, which looks like a trap ({family.why}: {known.evidence})"
        refused = f"; {refused}" if (refused := _refusal(verdicts)) else ""
        return "set_aside", f"{words}{refused}; `gossamer resume DIR --release {family.id}` fetches it"
    if known.lent is not None:
        before = "" if row is None else f"it came home ({_done(row)}), and "
        carried = f"mobile crawler {known.lent.crawler} carries it, at the runtime of its host"
        return (
            "lent",
            f"{before}{carried if known.lent.crawler else 'it waits for a mobile crawler that goes to its host'}",
        )
    if known.task is not None:
        wait = f"{f', not before {utc_text(known.due)}' if known.due else ''}{_held(known)}"
        if row is not None:
            return "done_and_queued", f"it was fetched ({_done(row)}) and waits to be asked for again{wait}"
        return ("later" if known.due else "queued"), f"{_tried(traces.visits)}it waits in the queue of its host{wait}"
    if row is not None:
        came = _brought(row, traces.visits) or _ended(row, verdicts.robots)
        rule = traces.visits[-1].get("kept_out") if traces.visits else ""
        kept_out = f"; its body was kept out of the archive: {rule}" if rule else ""
        return "done", f"{came}{_led(known, traces)}{_alike(row, traces.visits)}{kept_out}"
    if known.is_seen and known.crawled_by is not None:
        who = f"mobile crawler {known.crawled_by.id} visited its host at the runtime {known.crawled_by.runtime}"
        return "left", f"{who}, and did not bring it: it is not relevant there, or brought no document"
    if known.is_seen and not known.is_cut:
        return "queued", "it was found, and waits in the queue of its host behind many others"
    if verdicts.is_seed and not known.is_seen:
        return "unknown", "it is a seed that the crawl has not taken up yet"
    if verdicts.links:
        return "refused", _refused(known, verdicts, traces, graph)
    return _unmet(known, verdicts, traces)


def _other_owner(url: str, graph: Graph) -> str:
    """The agent that fetches a URL, by the ring, where it is another one than that of this crawl; empty otherwise."""
    sheets = [node.sheet for node in graph.providers.values()]
    own = next((sheet.agent for sheet in sheets if isinstance(sheet, FileOutboxSheet)), "")
    ring = next((sheet for sheet in sheets if isinstance(sheet, RingSheet)), None)
    if not own or ring is None:
        return ""
    owner = RingDesignation(ring).owner(host_of(url))
    return "" if owner == own else owner


def _owed(known: Known, agent: str) -> str:
    """How a URL of another agent stands, which exchanges files with this one."""
    belongs = f"it belongs to {agent}, which fetches it"
    if not known.is_owed:
        return f"{belongs} and has confirmed that it has it"
    if not known.file:
        return f"{belongs}; it waits here for the next exchange file (gossamer exchange DIR writes one)"
    return f"{belongs}; it was written into {known.file}, which {agent} has not confirmed yet"


#: Ends without a request: no server was asked for the URL.
_UNASKED = {
    Outcome.ROBOTS_DENIED: "robots.txt denies it",
    Outcome.BLOCKED: "its host is blocked",
    Outcome.ADDRESS_REFUSED: "its host has an address that links may not reach",
    Outcome.SCHEME_REFUSED: "this crawl does not speak its scheme",
    Outcome.DNS_FAILED: "its host has no address",
}


def _held(known: Known) -> str:
    """Until when the host as a whole waits, as the rest of a sentence."""
    now = time.time()
    held = next(held_at_rest([known.host] if known.host else [], now), None)
    return "" if held is None else f"; the host waits until {utc_text(now + held.seconds)}: {HELD[held.why]}"


def _tried(visits: Sequence[Mapping[str, Any]]) -> str:
    """How often it was tried in vain, as the beginning of a sentence."""
    if not visits:
        return ""
    last = visits[-1]
    status = f", status {last['status']}" if last.get("status") else ""
    return f"it failed {show_count(len(visits), 'time')} ({last['outcome']}{status}, {last['fetched_at']}) and is tried again: "


def _ended(row: DocumentRow, robots: RobotsWord | None) -> str:
    """How it ended, as the beginning of a sentence."""
    if row.outcome not in _UNASKED:
        is_answered = row.status or row.outcome in ANSWERED
        return f"{'it was fetched' if is_answered else 'the request for it failed'}: {_done(row)}"
    line = f", line {robots.line}" if row.outcome is Outcome.ROBOTS_DENIED and robots and robots.line else ""
    return f"it was not asked for, since {_UNASKED[row.outcome]}{line} ({_done(row)})"


def _done(row: DocumentRow) -> str:
    return f"{row.outcome}{f', status {row.status}' if row.status else ''}, {utc_text(row.fetched_at)}"


def _brought(row: DocumentRow, visits: Sequence[Mapping[str, Any]]) -> str:
    """The crawler that brought it, as the beginning of a sentence; empty where we asked for it."""
    last = visits[-1] if visits else {}
    form = last.get("brought")
    if not form:
        return ""
    who = f"mobile crawler {last.get('crawler')} at the runtime {last.get('runtime')}"
    if form == "row" and row.outcome is not Outcome.IRRELEVANT:
        return f"{who} says that it brings no document: {_done(row)}"
    if form == "row":
        return f"{who} says that it is not relevant ({last.get('error') or 'no reason given'}; {_done(row)})"
    what = {"whole": "it", "text": "its text", "elements": "elements of it"}.get(str(form), "it")
    return f"{who} brought {what}: {_done(row)}"


def _refusal(verdicts: Verdicts, refuses: str = "refuses") -> str:
    """The first filter that keeps it out, in words; empty where none does."""
    found = (
        f"filter {one.filter} {refuses} it at gate {one.gate}: {one.verdict}" for one in verdicts.filters if one.verdict
    )
    return next(found, "")


def _led(known: Known, traces: _Traces) -> str:
    """The targets of a redirect, as the rest of a sentence."""
    if known.row is None or known.row.outcome is not Outcome.REDIRECT:
        return ""
    rules = ", ".join(traces.visits[-1].get("rejected", ())).replace("_", " ") if traces.visits else ""
    refused = f"; the crawl does not follow it: {rules}" if rules else ""
    if not traces.redirects:
        return refused or "; the redirect names no target"
    *between, last = traces.redirects
    if last in (known.url, *between):
        way = ", then ".join([*between, f"back to {last}" if between else "itself"])
        ended = traces.visits[-1] if traces.visits else {}
        if ended.get("outcome", Outcome.REDIRECT) != Outcome.REDIRECT:
            return f"; it leads to {way}, which was asked for with other cookies: {ended['outcome']}{refused}"
        hint = ", but an answer set a cookie, which --cookies host would send back" if traces.wants_cookies else ""
        return f"; it leads to {way}, which is a loop{hint}{refused}"
    return f"; it leads to {', then '.join(traces.redirects)}{refused}"


def _alike(row: DocumentRow, visits: Sequence[Mapping[str, Any]]) -> str:
    """The URL whose document it repeats, as the rest of a sentence."""
    if row.duplicate_of:
        shell = ": the shell of pages that need a browser" if visits and visits[-1].get("needs_browser") else ""
        return f"; its document is the same as that of {row.duplicate_of}, byte for byte{shell}"
    first = _near_duplicate_of(visits)
    return f"; its text is nearly the same as that of {first}" if first else ""


#: The words for a URL that was met and queued nowhere.
_CUT = "the budget of its host or domain was used up"


def _refused(known: Known, verdicts: Verdicts, traces: _Traces, graph: Graph) -> str:
    """Why no link to it was followed: a page that has one, and the rule."""
    link = min(verdicts.links, key=lambda link: bool(link.verdict))
    more = f" (and {len(verdicts.links) - 1} more)" if len(verdicts.links) > 1 else ""
    met = f"{link.page}{more} links to it by `{link.relation}`"
    if refused := _refusal(verdicts):
        return f"{met}, and {refused}"
    page = traces.pages.get(link.page, {})
    limit = next((node.sheet.depth for node in graph.providers.values() if isinstance(node.sheet, LedgerSheet)), None)
    depth = child_depth(int(page.get("depth", 0)), link.relation)
    if limit is not None and depth > limit:
        return f"{met}, which is at depth {page.get('depth', 0)}, and the crawl goes no deeper than {limit}"
    if page.get("discarded"):
        return f"{met}, and the crawl follows no link of this page: {page['discarded']}"
    if known.is_cut:
        return f"{met}, and {_CUT}"
    rules = ", ".join(f"{rule} refused {count}" for rule, count in page.get("rejected", {}).items())
    told = f" when the page was read ({rules} of its links)" if rules else ""
    return f"{met}, and the filters as they stand now let it pass; another rule refused it{told}"


_UNLINKED = "no page that was processed so far links to it"


def _unmet(known: Known, verdicts: Verdicts, traces: _Traces) -> tuple[str, str]:
    """The words for a URL that is in no link of a page that was processed, or of which this is not known."""
    if known.is_cut:
        return "refused", f"it was found, and {_CUT}"
    cut = (
        f"; a limit cut links of pages, as of {traces.cut_page}, and a link to it may be one" if traces.cut_page else ""
    )
    if traces.links is None:
        if refused := _refusal(verdicts):
            return "refused", refused
        return (
            "unknown",
            f"it was never queued; this crawl keeps no table of links, so it is not known whether a page links to it{cut}",
        )
    links = "no link that was kept of the pages that were processed so far leads to it" if cut else _UNLINKED
    words = f"it was not found: {links}{cut}"
    if refused := _refusal(verdicts, "would refuse"):
        words += f"; {refused}"
    found = sorted(name for name in (known.host.counters if known.host else {}) if name.startswith("trap:"))
    if found:
        words += f"; its host has likely traps ({', '.join(found)})"
    return "unknown", words
