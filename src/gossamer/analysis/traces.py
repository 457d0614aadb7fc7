"""Traces of one URL in log and link table: its visits, the links that lead to it, the targets of its redirects; and the verdicts
of the crawl's own filters and robots rules on it, as they stand now.

Place in the flow: telling a story asks here. The link table is asked as `gossamer query` does; a crawl that keeps none has no links
to tell of. The judges are made as the crawl makes them, in a life of their own; they ask no ledger, but what it knows of this URL.
"""

import contextlib
import mmap
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.control.facts import Known
from gossamer.engine.graph import Graph, providers_of
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.expressions.contract import TaskGate, verdicts_on
from gossamer.frontier.frontier import Frontier, SeedsSheet
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.politeness.rules import Blocklist
from gossamer.frontier.robots.contract import RobotsRuling, RobotsVerdict
from gossamer.parsing.filters import Filtering
from gossamer.query.database import Database
from gossamer.storage.archive.reading import read_record
from gossamer.storage.logs import LOG_PATH
from gossamer.values.errors import CrawlDirectoryError, UnreadableUrl
from gossamer.values.task import REDIRECTS, Task, parent_depth
from gossamer.values.url import canonical, host_of, of_field, site_of
from gossamer.values.visit import CUTS_OF_PAGES, Link, Location

# The parts of a story: the values that `gossamer why --json` prints.

#: The parts of a URL as written, whatever they hold (RFC 3986, appendix B).
_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_NAMES = ("scheme", "authority", "path", "query", "fragment")


class Normalised(msgspec.Struct, frozen=True):
    """A part of the URL that its canonical form writes otherwise."""

    part: str
    given: str
    canonical: str


class Judged(msgspec.Struct, frozen=True):
    gate: str
    """`follow`: of the link; `fetch`: of the task, before it is asked for."""
    filter: str
    verdict: str
    """Empty where it lets the URL pass; otherwise the rule that refuses it."""


class RobotsWord(msgspec.Struct, frozen=True):
    ruling: str
    """`allowed`, `denied`, `wait`, or `unknown` where the file has not been read."""
    rule: str = ""
    line: int = 0
    delay: float = 0.0


class LeadingLink(msgspec.Struct, frozen=True):
    page: str
    relation: str
    nofollow: bool
    verdict: str = ""
    """Why it is not followed, as `nofollow: nofollow` (filter and rule); empty where the filters let it pass."""


class Story(msgspec.Struct, frozen=True):
    asked: str
    url: str
    """Its canonical form: the one that a crawl goes by."""
    state: str
    """`unknown`, `refused`, `set_aside`, `queued`, `later`, `in_flight`, `done`, `deleted`, `owed` where it is another agent's, or
    `done_and_queued` where it is to be fetched again."""
    told: str
    """The state, in words."""
    normalised: list[Normalised]
    discovered_from: str = ""
    found_by: str = ""
    """The agent that found it and brought it by a file, where it is another one than that of this crawl."""
    relation: str = ""
    depth: int | None = None
    attempt: int = 0
    filters: list[Judged] = []
    robots: RobotsWord | None = None
    blocked_by: str = ""
    visits: list[dict[str, Any]] = []
    """Its lines in the crawl's log, the oldest first."""
    outcome: str = ""
    """Of the last visit."""
    record: dict[str, Any] | None = None
    """The place of the last answer in the archive: file, offset, length."""
    duplicate_of: str = ""
    """The first URL of the same document, byte for byte."""
    near_duplicate_of: str = ""
    """The first URL of nearly the same text."""
    redirects: list[str] = []
    """The targets of a redirect, each further redirect included; a loop ends with a URL that it had before."""
    links: list[LeadingLink] = []
    """Links that lead to it, at most some."""
    host: dict[str, Any] | None = None
    """Facts about its host."""


def normalised(given: str, url: str) -> list[Normalised]:
    """The parts that a canonical URL writes otherwise than it was given."""
    before, after = _PARTS.fullmatch(given), _PARTS.fullmatch(url)
    assert before is not None and after is not None  # the pattern fits every text
    pairs = zip(_NAMES, before.groups(default=""), after.groups(default=""), strict=True)
    return [Normalised(part, old, new) for part, old, new in pairs if old != new]


#: Visits of one URL that are told; a crawl that comes again and again has more.
MOST_VISITS = 100

#: Links to one URL that are told: a page of every menu has a million.
MOST_LINKS = 20

#: Redirects that are followed; a crawl gives up before.
MOST_HOPS = 25


def visits_of(directory: Path, url: str) -> Iterator[dict[str, Any]]:
    """The lines of the crawl's log that tell of visits of a canonical URL, in order.

    The log is searched from end to end, some seconds for each 10 GB; what is being written meanwhile may be missed.
    """
    path = directory / LOG_PATH
    if not path.is_file() or not path.stat().st_size:
        return
    wanted = b'"url":' + msgspec.json.encode(url)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as log:
        at = log.find(wanted)
        while at >= 0:
            start, end = log.rfind(b"\n", 0, at) + 1, log.find(b"\n", at)
            if end < 0:
                return
            try:
                row = msgspec.json.decode(log[start:end])
            except ValueError:
                row = {}
            if row.get("url") == url and row.get("event") in ("page", "robots"):
                yield row
            at = log.find(wanted, end)


_LEADING = "SELECT DISTINCT source, relation, nofollow FROM links WHERE target = ? ORDER BY source, relation LIMIT ?"
_CUT = "SELECT url FROM pages WHERE list_has_any(json_keys(rejected), ?) LIMIT 1"
_REDIRECTED = "SELECT target FROM links WHERE source = ? AND list_contains(?, relation) LIMIT 1"


def links_to(database: Database, url: str) -> list[LeadingLink]:
    """Links to a canonical URL, at most :data:`MOST_LINKS`, in the order of their pages."""
    found = database.ask(_LEADING, (url, MOST_LINKS))
    return [LeadingLink(page, relation, bool(nofollow)) for page, relation, nofollow in found]


def cut_page(database: Database) -> str:
    """A page of which a limit left links out; empty where there is none."""
    return next((str(url) for (url,) in database.ask(_CUT, (list(CUTS_OF_PAGES),))), "")


def redirects_from(database: Database, directory: Path, url: str, record: Location | None) -> list[str]:
    """The targets of a URL that was answered with a redirect: each in turn, up to one that came before. A redirect to its own
    URL is in no link table, but in the answer, which the archive keeps at `record`."""
    way = [url]
    while len(way) <= MOST_HOPS and way[-1] not in way[:-1]:
        targets = database.ask(_REDIRECTED, (way[-1], sorted(REDIRECTS)))
        found = next((str(target) for (target,) in targets), "")
        if not found and len(way) == 1 and record is not None:
            found = _location_of(directory, record, url)
        if not found:
            break
        way.append(found)
    return way[1:]


def _location_of(directory: Path, record: Location, url: str) -> str:
    """The URL that the Location field of an archived answer names; empty where it names none."""
    with contextlib.suppress(
        OSError, CrawlDirectoryError, UnreadableUrl
    ):  # damage is told by those who look after the archive
        if location := read_record(directory, record).header("location"):
            return canonical(of_field(location), url)
    return ""


class Verdicts(msgspec.Struct, frozen=True):
    """The verdict of each judge."""

    filters: list[Judged]
    robots: RobotsWord | None
    blocked_by: str
    is_seed: bool
    links: list[LeadingLink]
    """Links that lead to it, each with its verdict."""


async def verdicts_of(graph: Graph, known: Known, links: Sequence[LeadingLink] = ()) -> Verdicts:
    """Verdicts of the crawl's own parts on the URL, and on each of these links to it."""
    sheets = (node.sheet for node in graph.components.values())
    seeds = {canonical(url) for sheet in sheets if isinstance(sheet, SeedsSheet) for url in sheet.urls}
    is_seed, judges = known.url in seeds, _judges(graph)
    looked = _Looked()
    looked.known = known
    ledgers = {name: looked for name, node in graph.providers.items() if node.use == "ledger"}
    units = providers_of(graph, tuple(chain.from_iterable(judges.values())), ledgers)
    for unit in units.values():
        await unit.start()
    try:
        judged = []
        for link in links:
            refused = (one for one in _followed(judges, units, known.url, link, 0) if one.verdict)
            verdict = next((f"{one.filter}: {one.verdict}" for one in refused), "")
            judged.append(msgspec.structs.replace(link, verdict=verdict))
        sheets = (node.sheet for node in graph.providers.values() if issubclass(node.unit, HostPoliteness))
        blocked = next((getattr(sheet, "blocked", ()) for sheet in sheets), ())
        best = min(judged, key=lambda link: bool(link.verdict), default=None)  # one that passes, where there is one
        # Filters judge the link that the URL was found by, or the best one.
        source, relation, depth = discovery(known)
        if best is not None:
            source, relation = best.page, best.relation
        task = Task(known.url, host_of(known.url), depth, source, relation or "a href")
        found = []
        if not is_seed:
            page = source or min(seeds, default=known.url)
            met = best or LeadingLink(page, task.relation, nofollow=False)
            found += _followed(judges, units, known.url, met, parent_depth(depth, relation))
            found += _at_gate("schedule", judges, units, task)
        found += _at_gate("fetch", judges, units, task)
        return Verdicts(
            filters=found,
            robots=_robots(judges, units, known),
            blocked_by=Blocklist(blocked).rule(host_of(known.url)) or known.blocked_by,
            is_seed=is_seed,
            links=judged,
        )
    finally:
        for unit in reversed(units.values()):
            await unit.stop()


#: Names of the providers that judge URLs, by `follow`, `schedule`, `fetch` (the gates of filters) and `robots`.
_Judges = Mapping[str, Sequence[str]]


def _judges(graph: Graph) -> _Judges:
    found: dict[str, list[str]] = {"follow": [], "schedule": [], "fetch": [], "robots": []}
    for node in graph.components.values():
        for role, bound in node.roles.items():
            if isinstance(bound, str):
                if issubclass(node.unit, Frontier) and role == "robots":
                    found["robots"].append(bound)
            elif issubclass(node.unit, Filtering) and role == "filters":
                found["follow"].extend(bound.get("follow", ()))
            elif role == "task_gates":
                found["schedule"].extend(bound.get("schedule", ()))
            elif issubclass(node.unit, Frontier) and role == "gates":
                found["fetch"].extend(bound.get("fetch", ()))
    return found


class _Looked(Provider[NoSettings]):
    """The ledger, as judges may ask it here: it knows of one URL, and is only read."""

    known: Known

    def counters(self) -> dict[str, int]:
        """Everything that was learnt may have led to a verdict."""
        return {f"learnt:{what}": 1 for what in self.known.learnt}

    def learnt(self, hosts: Sequence[str], what: str) -> list[bytes | None]:
        return [self.known.learnt.get(what) if host == host_of(self.known.url) else None for host in hosts]


def _followed(judges: _Judges, units: Mapping[str, Any], url: str, link: LeadingLink, depth: int) -> list[Judged]:
    above = Task(link.page, host_of(link.page), depth=depth)
    found = []
    for name in judges["follow"]:
        try:
            verdict = units[name].judge([Link(url, link.relation, nofollow=link.nofollow)], above)[0]
        except Exception as error:
            verdict = f"broken: {type(error).__name__}: {error}"
        found.append(Judged("follow", name, verdict))
    return found


def _at_gate(gate: TaskGate, judges: _Judges, units: Mapping[str, Any], task: Task) -> list[Judged]:
    return [Judged(gate, name, verdicts_on((units[name],), gate, (task,))[0]) for name in judges[gate]]


def discovery(known: Known) -> tuple[str, str, int]:
    """Source, relation and depth; of a URL that was not found, as a link of a seed would be."""
    found = known.row or known.task
    return ("", "", 1) if found is None else (found.source, found.relation, found.depth)


def _robots(judges: _Judges, units: Mapping[str, Any], known: Known) -> RobotsWord | None:
    for name in judges["robots"]:
        gate = units[name]
        if known.robots:
            gate.restore(site_of(known.url), known.robots)
        verdict: RobotsVerdict = gate.judge(Task(known.url, host_of(known.url)), time.time())
        ruling = "unknown" if verdict.ruling is RobotsRuling.FETCH_FIRST else str(verdict.ruling)
        return RobotsWord(ruling, verdict.rule, verdict.line, verdict.delay)
    return None
