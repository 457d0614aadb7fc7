"""Verdicts of the crawl's own filters and robots rules on one URL, as they stand now.

Place in the flow: telling a story asks here. The judges are made as the crawl makes them, in a life of their own; they ask
no ledger, but what it knows of this URL.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gossamer.analysis.why.traces import Judged, LeadingLink, RobotsWord
from gossamer.crawls.control.url_facts import Known
from gossamer.engine.graph import Graph
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.engine.units import bind
from gossamer.expressions.contract import TaskGate, verdicts_on
from gossamer.frontier.component import Frontier
from gossamer.frontier.politeness.blocklist import Blocklist
from gossamer.frontier.politeness.provider import HostPoliteness
from gossamer.frontier.robots.contract import RobotsRuling, RobotsVerdict
from gossamer.frontier.stages import SeedsSheet
from gossamer.parsing.filters import Filtering
from gossamer.values.relations import parent_depth
from gossamer.values.task import Task
from gossamer.values.url import canonical, host_of, site_of
from gossamer.values.visit import Link


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
    is_seed = known.url in _seeds(graph)
    units = await _started(graph, known)
    try:
        judged = [_judged_link(graph, units, known.url, link) for link in links]
        best = min(judged, key=lambda link: bool(link.verdict), default=None)  # one that passes, where there is one
        return Verdicts(
            filters=_filtered(graph, units, known, best, is_seed=is_seed),
            robots=_robots(graph, units, known),
            blocked_by=_blocked_by(graph, known.url) or known.blocked_by,
            is_seed=is_seed,
            links=judged,
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
    """The ledger, as judges may ask it here: it knows of one URL, and is only read."""

    known: Known

    def counters(self) -> dict[str, int]:
        """Whatever has been learnt may have led to a verdict."""
        return {f"learnt:{what}": 1 for what in self.known.learnt}

    def learnt(self, hosts: Sequence[str], what: str) -> list[bytes | None]:
        """Facts that a watcher has learnt of the URL's host."""
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


def _filtered(
    graph: Graph, units: Mapping[str, Any], known: Known, link: LeadingLink | None, *, is_seed: bool
) -> list[Judged]:
    """Verdicts of the filters on the link that the URL was found by, or on this one."""
    source, relation, depth = discovery(known)
    if link is not None:
        source, relation = link.page, link.relation
    task = Task(known.url, host_of(known.url), depth, source, relation or "a href")
    judges = _judges(graph)
    found = []
    if not is_seed:
        page = source or next(iter(sorted(_seeds(graph))), known.url)
        met = link or LeadingLink(page, task.relation, nofollow=False)
        found += _followed(judges, units, known.url, met, parent_depth(depth, relation))
        found += _at_gate("schedule", judges.schedule, units, task)
    found += _at_gate("fetch", judges.fetch, units, task)
    return found


def _followed(judges: _Judges, units: Mapping[str, Any], url: str, link: LeadingLink, depth: int) -> list[Judged]:
    """Verdicts of the filters of links on a link of a page at this depth."""
    above = Task(link.page, host_of(link.page), depth=depth)
    found = []
    for name in judges.follow:
        try:
            verdict = units[name].judge([Link(url, link.relation, nofollow=link.nofollow)], above)[0]
        except Exception as error:
            verdict = f"broken: {type(error).__name__}: {error}"
        found.append(Judged("follow", name, verdict))
    return found


def _judged_link(graph: Graph, units: Mapping[str, Any], url: str, link: LeadingLink) -> LeadingLink:
    judged = _followed(_judges(graph), units, url, link, 0)
    verdict = next((f"{one.filter}: {one.verdict}" for one in judged if one.verdict), "")
    return msgspec.structs.replace(link, verdict=verdict)


def _at_gate(gate: TaskGate, judges: Sequence[str], units: Mapping[str, Any], task: Task) -> list[Judged]:
    return [Judged(gate, name, verdicts_on((units[name],), gate, (task,))[0]) for name in judges]


def discovery(known: Known) -> tuple[str, str, int]:
    """Source, relation and depth; of a URL that was not found, as a link of a seed would be."""
    found = known.row or known.task
    return ("", "", 1) if found is None else (found.source, found.relation, found.depth)


def _robots(graph: Graph, units: Mapping[str, Any], known: Known) -> RobotsWord | None:
    for name in _judges(graph).robots:
        gate = units[name]
        if known.robots:
            gate.restore(site_of(known.url), known.robots)
        verdict: RobotsVerdict = gate.judge(Task(known.url, host_of(known.url)), time.time())
        ruling = "unknown" if verdict.ruling is RobotsRuling.FETCH_FIRST else str(verdict.ruling)
        return RobotsWord(ruling, verdict.rule, verdict.line, verdict.delay)
    return None


def _blocked_by(graph: Graph, url: str) -> str:
    sheets = (node.sheet for node in graph.providers.values() if issubclass(node.unit, HostPoliteness))
    blocked = next((getattr(sheet, "blocked", ()) for sheet in sheets), ())
    return Blocklist(blocked).rule(host_of(url))
