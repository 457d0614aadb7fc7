"""A request log as arrays: what was asked, what it was, when; and how gently: gaps and simultaneous requests per host, domain and
address, and robots.txt.

Place in the flow: the auditor's first step. Each line is matched with the web that served it (which host, which page, what role);
the judges see arrays and never a line of text. A gap is the time from the end of a host's last answer to the start of its next
request; where two requests overlap there is no gap, and the number of requests in flight counts instead.
"""

from array import array
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from gossamer.simweb.hosts import ROBOTS, UNRESTRICTED, allowed, crawl_delay
from gossamer.simweb.log import LogError, read_header, read_lines
from gossamer.simweb.page import path_of
from gossamer.simweb.site import Role, SimWeb

Ints = npt.NDArray[np.signedinteger[Any]]
Mask = npt.NDArray[np.bool_]

ROLES: Final = tuple(Role)

COLUMNS: Final = {
    "start": np.int64,
    "duration": np.int64,
    "status": np.int16,
    "size": np.int32,
    "rank": np.int32,
    "page": np.int64,
    "role": np.int8,
    "flags": np.int8,
    "agent": np.int32,
}
"""The record of each request, 40 bytes; large logs are many requests."""

CHUNK: Final = 1 << 17
"""Requests that are gathered as plain integers before they are packed into columns."""

FLAG_CONDITIONAL: Final = 1
FLAG_ABANDONED: Final = 2
FLAG_DENIED: Final = 4
"""robots.txt forbade this crawler this URL."""
FLAG_BY_ADDRESS: Final = 8
"""The host was named by its own address."""


class RequestTrace:
    """The requests of one log, sorted by their start. Times are microseconds of one clock."""

    def __init__(self, web: SimWeb, began: float, columns: dict[str, Ints]) -> None:
        self.web = web
        self.began = began
        """When the web's own time began, in seconds of the same clock."""
        start = columns["start"]
        order = np.argsort(start, kind="stable")
        self.start = start[order]
        self.end: Ints = self.start + columns["duration"][order]
        self.status = columns["status"][order]
        self.size = columns["size"][order]
        self.rank = columns["rank"][order]
        """Rank of the host, or -1 for a name that is none of this web's."""
        self.page = columns["page"][order]
        """Number of the page, or -1."""
        self.role = columns["role"][order]
        """Index into `ROLES`."""
        self.flags = columns["flags"][order]
        self.agent = columns["agent"][order]
        self.agents: list[str] = []
        """The user agents that `agent` points into."""

    def __len__(self) -> int:
        return len(self.start)

    def is_role(self, *roles: Role) -> Mask:
        return np.isin(self.role, [ROLES.index(role) for role in roles])

    def has_flag(self, flag: int) -> Mask:
        return np.asarray((self.flags & flag) != 0, dtype=np.bool_)

    def answered(self) -> Mask:
        """Return which requests brought a page: in full, or the word that it has not changed."""
        asked = self.is_role(Role.PAGE, Role.ALIAS) & np.isin(self.status, (200, 304))
        return asked & ~self.has_flag(FLAG_ABANDONED)

    def moment(self, times: Ints) -> npt.NDArray[np.float64]:
        """Return the web's own time, in seconds since 1970, at readings of the clock."""
        spec = self.web.spec
        return spec.epoch + (times / 1e6 - self.began) * spec.time_scale


_NUMBERS: Final = {role: number for number, role in enumerate(ROLES)}


def _matched(web: SimWeb, name: str, target: str, agent: str) -> tuple[int, int, int, int]:
    """Return rank, page, role and flags of a request."""
    door = web.door(name)
    if door is None:
        return -1, -1, _NUMBERS[Role.MISSING], 0
    host = door.host
    role, index = web.locate(host, target)
    page = -1 if index < 0 else host.base + index
    flags = FLAG_BY_ADDRESS if name[:4] == "127." else 0
    ruled = host.robots not in UNRESTRICTED and role is not Role.ROBOTS
    if ruled and not allowed(host.robots, agent, target):
        flags |= FLAG_DENIED
    return host.rank, page, _NUMBERS[role], flags


def read_trace(path: Path, agent: str = "") -> RequestTrace:
    """Read a log; with `agent`, only the requests whose user agent contains it (in any case).

    Raises LogError if the file is no log or holds no such request, OSError if it cannot be read.
    """
    spec, began = read_header(path)
    web = SimWeb(spec)
    chunks: list[dict[str, Ints]] = []
    # Appending to one flat array and cutting it into columns afterwards costs a third of what
    # appending to nine does.
    flat = array("q")
    agents: dict[str, int] = {}
    wanted = agent.lower()
    for start, duration, status, size, marks, host, _, target, name in read_lines(path):
        if wanted and wanted not in name.lower():
            continue
        rank, page, role, flags = _matched(web, host, target, name)
        if len(marks) > 1:
            flags |= FLAG_CONDITIONAL if "c" in marks else 0
            flags |= FLAG_ABANDONED if "a" in marks else 0
        number = agents.setdefault(name, len(agents))
        times = (int(start), int(duration), int(status), int(size))
        flat.extend((*times, rank, page, role, flags, number))
        if len(flat) == CHUNK * len(COLUMNS):
            chunks.append(_packed(flat))
            flat = array("q")
    chunks.append(_packed(flat))
    columns = {name: np.concatenate([chunk.pop(name) for chunk in chunks]) for name in COLUMNS}
    if not agents:
        whose = f" by {agent}" if agent else ""
        raise LogError(f"{path} holds no requests{whose}")
    trace = RequestTrace(web, began, columns)
    trace.agents = list(agents)
    return trace


def _packed(flat: "array[int]") -> dict[str, Ints]:
    table = np.array(flat, dtype=np.int64).reshape(-1, len(COLUMNS))
    return {name: table[:, number].astype(kind) for number, (name, kind) in enumerate(COLUMNS.items())}


WORST: Final = 5
"""How many of the worst offences a report names."""


class Gaps(msgspec.Struct, frozen=True):
    """Gaps between requests to one host, domain or address, in seconds, over all of them."""

    keys: int
    """How many hosts, domains or addresses were asked."""
    shortest: float | None
    """None where nothing was asked twice without overlap."""
    median: float | None
    below: int
    """Gaps shorter than the delay that the audit was told to demand."""
    overlapping: int
    """Requests that began while another to the same one was not yet answered."""
    most_in_flight: int
    worst: list[str]
    """Those with the most requests in flight, or else the shortest gap."""


class RobotsReport(msgspec.Struct, frozen=True):
    """Whether robots.txt was asked for first, and obeyed."""

    breaches: int
    """Requests for URLs that robots.txt forbade this crawler."""
    examples: list[str]
    hosts: int
    """Hosts that were asked for anything."""
    never_asked: int
    """Hosts whose robots.txt was never asked for."""
    asked_late: int
    """Hosts that were asked for something else first."""
    delay_breaches: int
    """Requests that came sooner after the last than the host's Crawl-delay."""


def keys_of(trace: RequestTrace, level: str) -> tuple[Ints, list[str]]:
    """Return for each request the number of its host, domain or address, and their names.

    A host that was named by its own address has that one; else it has the one that it shares.
    """
    hosts = trace.web.hosts
    direct = (trace.flags & FLAG_BY_ADDRESS) != 0
    pairs = trace.rank * 2 + direct
    distinct, numbers = np.unique(pairs, return_inverse=True)
    names: dict[str, int] = {}
    table = np.empty(len(distinct), dtype=np.int64)
    for place, pair in enumerate(distinct):
        rank, by_address = int(pair) // 2, bool(pair & 1)
        if rank < 0:
            name = "(unknown)"
        elif level == "host":
            name = hosts.name(rank)
        elif level == "domain":
            name = hosts.domain(rank)
        else:
            name = hosts.own_address(rank) if by_address else hosts.address(rank)
        table[place] = names.setdefault(name, len(names))
    return table[numbers], list(names)


def judge_gaps(trace: RequestTrace, level: str, delay: float) -> Gaps:
    """Measure the gaps at one level; `delay` is the least gap demanded, in seconds."""
    keys, names = keys_of(trace, level)
    order = np.lexsort((trace.start, keys))
    key, start, end = keys[order], trace.start[order], trace.end[order]
    latest = end.copy()  # of the ends so far within each run of equal keys
    for first, last in pairwise(np.flatnonzero(np.diff(key, prepend=-1, append=-2))):
        latest[first:last] = np.maximum.accumulate(end[first:last])
    again = np.flatnonzero(key[1:] == key[:-1]) + 1
    gaps = (start[again] - latest[again - 1]) / 1e6
    apart = gaps[gaps >= 0]
    times = np.concatenate((start, end))
    # At equal times an end counts before a start: the one made room for the other.
    steps = np.concatenate((np.ones_like(start), -np.ones_like(end)))
    both = np.concatenate((key, key))
    places = np.lexsort((steps, times, both))
    in_flight = np.zeros(len(names), dtype=np.int64)
    np.maximum.at(in_flight, both[places], np.cumsum(steps[places]))
    # Those with the most requests in flight and, among equals, the shortest gap.
    shortest = np.full(len(names), np.inf)
    np.minimum.at(shortest, key[again], np.maximum(gaps, 0.0))
    worst = [k for k in np.lexsort((shortest, -in_flight))[:WORST] if np.isfinite(shortest[k])]
    return Gaps(
        keys=len(names),
        shortest=float(apart.min()) if apart.size else None,
        median=float(np.median(apart)) if apart.size else None,
        below=int((gaps < delay).sum()),
        overlapping=int((gaps < 0).sum()),
        most_in_flight=int(in_flight.max(initial=0)),
        worst=[f"{names[k]}: {in_flight[k]} in flight, shortest gap {shortest[k]:.3f} s" for k in worst],
    )


def judge_robots(trace: RequestTrace) -> RobotsReport:
    """Say whether the crawler asked for robots.txt first, and kept to it."""
    asks = trace.is_role(Role.ROBOTS)
    known = trace.rank >= 0
    hosts = np.unique(trace.rank[known])
    first_any = _first_time(trace, known & ~asks)
    first_robots = _first_time(trace, known & asks)
    asked = [int(rank) for rank in hosts if int(rank) in first_any]
    never = sum(rank not in first_robots for rank in asked)
    late = sum(first_any[rank] < first_robots.get(rank, first_any[rank]) for rank in asked)
    examples, delay_breaches = list[str](), 0
    denied = np.flatnonzero(trace.has_flag(FLAG_DENIED))
    for number in denied[:WORST].tolist():
        host, page = trace.web.hosts.host(int(trace.rank[number])), int(trace.page[number])
        path = path_of(page - host.base) if page >= 0 else "(not a page)"
        agent = trace.agents[int(trace.agent[number])]
        examples.append(f"{host.name} {path} (robots.txt of kind {host.robots!r}, agent {agent[:40]!r})")
    for rank in hosts:
        manner = trace.web.hosts.host(int(rank)).robots
        if any(group.delay for group in ROBOTS[manner].groups):
            here = np.flatnonzero(trace.rank == rank)
            wanted = crawl_delay(manner, trace.agents[int(trace.agent[here[0]])]) * 1e6
            # A microsecond of grace for the rounding of the log.
            delay_breaches += int((np.diff(trace.start[here]) < wanted - 1).sum())
    return RobotsReport(
        breaches=len(denied),
        examples=examples,
        hosts=len(hosts),
        never_asked=never,
        asked_late=late,
        delay_breaches=delay_breaches,
    )


def _first_time(trace: RequestTrace, which: npt.NDArray[np.bool_]) -> dict[int, int]:
    ranks, places = np.unique(trace.rank[which], return_index=True)
    starts = trace.start[which][places]
    return dict(zip(map(int, ranks), map(int, starts), strict=True))
