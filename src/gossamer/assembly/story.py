"""The story of one URL: where it came from, who judged it and how, when it was asked for, where it is kept (design promise 5).

Three sources are put together: what the ledger knows (asked over the control socket while the crawl runs), the lines of the
crawl's log that name the URL, and the crawl's own filters and robots rules as configured in `crawl.toml`, which judge it
once more. So the verdicts are those of now: a rule that was changed since is told as it stands.
"""

import asyncio
import mmap
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gossamer.assembly.catalog import catalog
from gossamer.assembly.control.client import Control, NotRunning, check_is_crawl
from gossamer.assembly.control.knowing import Known, known_of
from gossamer.assembly.control.messages import Why
from gossamer.assembly.olden import with_roles
from gossamer.assembly.place import read_wiring
from gossamer.contracts.filtering import TaskGate, verdicts_on
from gossamer.contracts.robots import Ruling, Verdict
from gossamer.flow.graph import Graph
from gossamer.flow.planning import plan
from gossamer.flow.sheet import NoSettings
from gossamer.flow.unit import Provider
from gossamer.flow.units import bind
from gossamer.model.dates import utc_text
from gossamer.model.errors import UnreadableUrl, UsageError
from gossamer.model.leading import parent_depth
from gossamer.model.task import Task
from gossamer.model.url import canonical, host_of, site_of
from gossamer.model.visit import Link
from gossamer.services.aliases import WHAT as ALIASES
from gossamer.services.aliases import proven_others
from gossamer.services.politeness.blocklist import Blocklist
from gossamer.services.politeness.provider import HostPoliteness
from gossamer.stages.frontier.component import Frontier
from gossamer.stages.links.component import LinksSheet, normaliser
from gossamer.stages.seeds import SeedsSheet
from gossamer.stages.url_filter.component import Filtering
from gossamer.stores.rowlog import LOG_PATH

#: Visits of one URL that are told; a crawl that comes again and again has more.
MOST_VISITS = 100

#: The parts of a URL as written, whatever they hold (RFC 3986, appendix B).
_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
_NAMES = ("scheme", "authority", "path", "query", "fragment")


class Normalised(msgspec.Struct, frozen=True):
    """A part of the URL that its canonical form writes otherwise."""

    part: str
    given: str
    canonical: str


class Judged(msgspec.Struct, frozen=True):
    """What one filter says."""

    gate: str
    """`follow`: of the link; `fetch`: of the task, before it is asked for."""
    filter: str
    verdict: str
    """Empty where it lets the URL pass; otherwise the rule that refuses it."""


class RobotsWord(msgspec.Struct, frozen=True):
    """What robots.txt says."""

    ruling: str
    """`allowed`, `denied`, `wait`, or `unknown` where the file has not been read."""
    rule: str = ""
    line: int = 0
    delay: float = 0.0


class Story(msgspec.Struct, frozen=True):
    """The story of one URL."""

    asked: str
    url: str
    """Its canonical form: the one that a crawl goes by."""
    state: str
    """`unknown`, `refused`, `set_aside`, `queued`, `later`, `in_flight`, `done`, or `done_and_queued` where it is to be fetched
    again."""
    told: str
    """The state, in words."""
    normalised: list[Normalised]
    discovered_from: str = ""
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
    """Where the archive keeps the last answer: file, offset, length."""
    duplicate_of: str = ""
    host: dict[str, Any] | None = None
    """What is known of its host."""


def story_of(directory: Path, text: str) -> Story:
    """The story of a URL of a crawl, which may be at work.

    Raises:
        UsageError: it is no URL, or there is no crawl.
        CrawlDirectoryError: the crawl's ledger is missing or damaged.
    """
    try:
        url = canonical(text.strip())
    except UnreadableUrl as error:
        raise UsageError(f"{error}; write it in full, as https://example.org/") from None
    check_is_crawl(directory)
    graph = plan(with_roles(read_wiring(directory)), catalog())
    known = _known(directory, url)
    normal = _normal_form(graph, url)
    if normal != url and not known.is_seen:
        known = _known(directory, normal)
    return _told(directory, text.strip(), known, asyncio.run(_verdicts(graph, known)))


def _normal_form(graph: Graph, url: str) -> str:
    """The form that a link to a canonical URL takes in this crawl; seeds are taken as they are."""
    sheets = (node.sheet for node in graph.components.values())
    return next((normaliser(sheet)(url) for sheet in sheets if isinstance(sheet, LinksSheet)), url)


def _known(directory: Path, url: str) -> Known:
    """What the ledgers know: by word of the crawl while it runs, otherwise by themselves."""
    try:
        with Control(directory) as control:
            asked: Known = control.told(Why(url), Known)
            return asked
    except NotRunning:
        from gossamer.assembly.control.standing import ledgers_of

        found = []
        for ledger in ledgers_of(directory):
            with ledger.looking():
                found.append(known_of(ledger, url))
        return next((known for known in found if known.is_seen), found[0])


# -- verdicts


class _Verdicts(msgspec.Struct, frozen=True):
    filters: list[Judged]
    robots: RobotsWord | None
    blocked_by: str
    is_seed: bool


async def _verdicts(graph: Graph, known: Known) -> _Verdicts:
    """What the crawl's own parts say about the URL now."""
    is_seed = known.url in _seeds(graph)
    units = await _started(graph, known)
    try:
        return _Verdicts(
            filters=_filtered(graph, units, known, is_seed=is_seed),
            robots=_robots(graph, units, known),
            blocked_by=_blocked_by(graph, known.url) or known.blocked_by,
            is_seed=is_seed,
        )
    finally:
        for unit in reversed(units.values()):
            await unit.stop()


def _seeds(graph: Graph) -> set[str]:
    sheets = (node.sheet for node in graph.components.values())
    return {canonical(url) for sheet in sheets if isinstance(sheet, SeedsSheet) for url in sheet.urls}


class _Judges(msgspec.Struct, frozen=True):
    """Names of the providers that judge URLs."""

    follow: list[str]
    schedule: list[str]
    fetch: list[str]
    robots: list[str]


def _judges(graph: Graph) -> _Judges:
    found = _Judges([], [], [], [])
    for node in graph.components.values():
        for role, bound in node.roles.items():
            if issubclass(node.unit, Filtering) and role == "filters" and not isinstance(bound, str):
                found.follow.extend(bound.get("follow", ()))
            elif role == "task_gates" and not isinstance(bound, str):
                found.schedule.extend(bound.get("schedule", ()))
            elif issubclass(node.unit, Frontier) and role == "gates" and not isinstance(bound, str):
                found.fetch.extend(bound.get("fetch", ()))
            elif issubclass(node.unit, Frontier) and role == "robots" and isinstance(bound, str):
                found.robots.append(bound)
    return found


class _Looked(Provider[NoSettings]):
    """The ledger, as judges may ask it here: it knows of one URL, and nobody writes."""

    known: Known

    def counters(self) -> dict[str, int]:
        """Whatever has been learnt may have led to a verdict."""
        return {f"learnt:{what}": 1 for what in self.known.learnt}

    def learnt(self, hosts: Sequence[str], what: str) -> list[bytes | None]:
        """What a watcher has learnt of the URL's host."""
        return [self.known.learnt.get(what) if host == host_of(self.known.url) else None for host in hosts]


async def _started(graph: Graph, known: Known) -> dict[str, Provider[Any]]:
    """The providers that judge, and what they use: made as the crawl makes them, in a life of their own."""
    judges = _judges(graph)
    wanted = graph.reached([*judges.follow, *judges.schedule, *judges.fetch, *judges.robots])
    units: dict[str, Provider[Any]] = {}
    for name, node in graph.providers.items():
        if name in wanted:
            if node.use == "ledger":
                units[name] = looked = _Looked()
                looked.known = known
                continue
            unit = node.unit(node.sheet)
            unit.name = name
            bind(unit, node.roles, units)
            await unit.start()
            units[name] = unit
    return units


def _filtered(graph: Graph, units: Mapping[str, Any], known: Known, *, is_seed: bool) -> list[Judged]:
    source, relation, depth = _discovery(known)
    task = Task(known.url, host_of(known.url), depth, source, relation or "a href")
    judges = _judges(graph)
    found = []
    if not is_seed:
        page = source or next(iter(sorted(_seeds(graph))), known.url)
        above = Task(page, host_of(page), depth=parent_depth(depth, relation))
        for name in judges.follow:
            try:
                verdict = units[name].judge([Link(known.url, task.relation)], above)[0]
            except Exception as error:
                verdict = f"broken: {type(error).__name__}: {error}"
            found.append(Judged("follow", name, verdict))
        found += _at_gate("schedule", judges.schedule, units, task)
    found += _at_gate("fetch", judges.fetch, units, task)
    return found


def _at_gate(gate: TaskGate, judges: Sequence[str], units: Mapping[str, Any], task: Task) -> list[Judged]:
    return [Judged(gate, name, verdicts_on((units[name],), gate, (task,))[0]) for name in judges]


def _discovery(known: Known) -> tuple[str, str, int]:
    """Source, relation and depth; of a URL that nobody found, as a link of a seed would be."""
    found = known.row or known.task
    return ("", "", 1) if found is None else (found.source, found.relation, found.depth)


def _robots(graph: Graph, units: Mapping[str, Any], known: Known) -> RobotsWord | None:
    for name in _judges(graph).robots:
        gate = units[name]
        if known.robots:
            gate.restore(site_of(known.url), known.robots)
        verdict: Verdict = gate.judge(Task(known.url, host_of(known.url)), time.time())
        ruling = "unknown" if verdict.ruling is Ruling.FETCH_FIRST else str(verdict.ruling)
        return RobotsWord(ruling, verdict.rule, verdict.line, verdict.delay)
    return None


def _blocked_by(graph: Graph, url: str) -> str:
    sheets = (node.sheet for node in graph.providers.values() if issubclass(node.unit, HostPoliteness))
    blocked = next((getattr(sheet, "blocked", ()) for sheet in sheets), ())
    return Blocklist(blocked).rule(host_of(url))


# -- the log


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
            except msgspec.DecodeError:
                row = {}
            if row.get("url") == url and row.get("event") in ("page", "robots"):
                yield row
            at = log.find(wanted, end)


# -- the words


def _told(directory: Path, asked: str, known: Known, verdicts: _Verdicts) -> Story:
    visits = list(visits_of(directory, known.url))[-MOST_VISITS:]
    row, task = known.row, known.task
    source, relation, depth = _discovery(known)
    state, words = _state(known, verdicts)
    if not known.is_seen and visits:
        state, words = "done", "it was asked for, to know the rules of its site"
    record = None
    if row is not None and row.location is not None:
        record = {"file": row.location.file, "offset": row.location.offset, "length": row.location.length}
    return Story(
        asked=asked,
        url=known.url,
        state=state,
        told=words,
        normalised=normalised(asked, known.url),
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
        duplicate_of=row.duplicate_of if row else "",
        host=_host(known),
    )


def _state(known: Known, verdicts: _Verdicts) -> tuple[str, str]:
    """A word for where the URL stands, and a sentence."""
    row = known.row
    done = f"{row.outcome}{f', status {row.status}' if row.status else ''}, {utc_text(row.fetched_at)}" if row else ""
    if known.flights:
        return "in_flight", "it is being fetched now"
    if known.aside is not None:
        refused = next((judged for judged in verdicts.filters if judged.verdict), None)
        family = known.aside
        words = f"it is set aside with {family.text}, which looks like a trap ({family.why}: {known.evidence})"
        if refused is not None:
            words += f"; filter {refused.filter} refuses it at gate {refused.gate}: {refused.verdict}"
        return "set_aside", f"{words}; `gossamer resume DIR --release {family.id}` fetches it"
    if known.task is not None:
        wait = f", not before {utc_text(known.due)}" if known.due else ""
        if row is not None:
            return "done_and_queued", f"it was fetched ({done}) and waits to be asked for again{wait}"
        return ("later" if known.due else "queued"), f"it waits in the queue of its host{wait}"
    if row is not None:
        return "done", f"it was asked for: {done}"
    if known.is_seen:
        return "queued", "it was found, and waits in the queue of its host behind many others"
    refused = next((judged for judged in verdicts.filters if judged.verdict), None)
    if refused is not None:
        return "refused", f"filter {refused.filter} refuses it at gate {refused.gate}: {refused.verdict}"
    found = sorted(name for name in (known.host.counters if known.host else {}) if name.startswith("trap:"))
    if found:
        return (
            "unknown",
            f"no page that was processed so far links to it; its host has likely traps ({', '.join(found)})",
        )
    if verdicts.is_seed:
        return "unknown", "it is a seed that the crawl has not taken up yet"
    return "unknown", "no page that was processed so far links to it, though the filters would let it pass"


def _host(known: Known) -> dict[str, Any] | None:
    host = known.host
    if host is None or not host.first_seen:
        return None
    return {
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


def normalised(given: str, url: str) -> list[Normalised]:
    """The parts that a canonical URL writes otherwise than it was given."""
    before, after = _PARTS.fullmatch(given), _PARTS.fullmatch(url)
    assert before is not None and after is not None  # the pattern fits every text
    pairs = zip(_NAMES, before.groups(default=""), after.groups(default=""), strict=True)
    return [Normalised(part, old, new) for part, old, new in pairs if old != new]
