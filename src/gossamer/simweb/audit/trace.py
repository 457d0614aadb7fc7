"""A request log as arrays: what was asked, what it was, when.

Place in the flow: the auditor's first step. Each line is matched with the web that served it (which
host, which page, what role); the other modules of this package judge the arrays and never see a
line of text.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gossamer.simweb import robots
from gossamer.simweb.log import LogError, read_entries, read_header
from gossamer.simweb.site import Role, SimWeb

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ROLES: Final = tuple(Role)

FLAG_CONDITIONAL: Final = 1
FLAG_ABANDONED: Final = 2
FLAG_DENIED: Final = 4
"""robots.txt forbade this crawler this URL."""
FLAG_BY_ADDRESS: Final = 8
"""The host was named by its own address."""


class Trace:
    """The requests of one log, sorted by their start. Times are microseconds of one clock."""

    def __init__(self, web: SimWeb, began: float, columns: dict[str, array[int]]) -> None:
        self.web = web
        self.began = began
        """When the web's own time began, in seconds of the same clock."""
        start = np.array(columns["start"], dtype=np.int64)
        order = np.argsort(start, kind="stable")

        def column(name: str) -> Ints:
            return np.array(columns[name], dtype=np.int64)[order]

        self.start = start[order]
        self.end: Ints = self.start + column("duration")
        self.status = column("status")
        self.size = column("size")
        self.rank = column("rank")
        """Rank of the host, or -1 for a name that is none of this web's."""
        self.page = column("page")
        """Number of the page, or -1."""
        self.role = column("role")
        """Index into `ROLES`."""
        self.flags = column("flags")
        self.agent = column("agent")
        self.agents: list[str] = []
        """The user agents that `agent` points into."""

    def __len__(self) -> int:
        return len(self.start)

    def is_role(self, *roles: Role) -> Mask:
        """Return which requests were for one of these roles."""
        return np.isin(self.role, [ROLES.index(role) for role in roles])

    def has_flag(self, flag: int) -> Mask:
        """Return which requests carry a flag."""
        return (self.flags & flag) != 0

    def answered(self) -> Mask:
        """Return which requests brought a page: in full, or the word that it has not changed."""
        asked = self.is_role(Role.PAGE, Role.ALIAS) & np.isin(self.status, (200, 304))
        return asked & ~self.has_flag(FLAG_ABANDONED)

    def moment(self, times: Ints) -> npt.NDArray[np.float64]:
        """Return the web's own time, in seconds since 1970, at readings of the clock."""
        spec = self.web.spec
        return spec.epoch + (times / 1e6 - self.began) * spec.time_scale


class _Matcher:
    """Finds what a host and a target are; remembers the hosts."""

    def __init__(self, web: SimWeb) -> None:
        self.web = web
        self.index = {role: number for number, role in enumerate(ROLES)}

    def match(self, host: str, target: str, agent: str) -> tuple[int, int, int, int]:
        """Return rank, page, role and flags of a request."""
        door = self.web.door(host)
        if door is None:
            return -1, -1, self.index[Role.MISSING], 0
        role, index = self.web.locate(door.host, target)
        page = -1 if index < 0 else door.host.base + index
        flags = FLAG_BY_ADDRESS if host.startswith("127.") else 0
        asking_robots = role is Role.ROBOTS
        if not asking_robots and not robots.allowed(door.host.robots, agent, target):
            flags |= FLAG_DENIED
        return door.host.rank, page, self.index[role], flags


def read_trace(path: Path, agent: str = "") -> Trace:
    """Read a log; with `agent`, only the requests whose user agent contains it (in any case).

    Raises LogError if the file is no log or holds no such request, OSError if it cannot be read.
    """
    spec, began = read_header(path)
    matcher = _Matcher(SimWeb(spec))
    names = ("start", "duration", "status", "size", "rank", "page", "role", "flags", "agent")
    columns = {name: array("q") for name in names}
    adders = [columns[name].append for name in names]
    agents: dict[str, int] = {}
    wanted = agent.lower()
    for entry in read_entries(path):
        if wanted and wanted not in entry.agent.lower():
            continue
        rank, page, role, flags = matcher.match(entry.host, entry.target, entry.agent)
        flags |= FLAG_CONDITIONAL if "c" in entry.flags else 0
        flags |= FLAG_ABANDONED if "a" in entry.flags else 0
        number = agents.setdefault(entry.agent, len(agents))
        row = (entry.start, entry.duration, entry.status, entry.size)
        for add, value in zip(adders, (*row, rank, page, role, flags, number), strict=True):
            add(value)
    if not agents:
        whose = f" by {agent}" if agent else ""
        raise LogError(f"{path} holds no requests{whose}")
    trace = Trace(matcher.web, began, columns)
    trace.agents = list(agents)
    return trace
