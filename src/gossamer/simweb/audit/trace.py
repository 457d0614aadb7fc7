"""A request log as arrays: what was asked, what it was, when.

Place in the flow: the auditor's first step. Each line is matched with the web that served it (which
host, which page, what role); the other modules of this package judge the arrays and never see a
line of text.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.simweb import robots
from gossamer.simweb.hosts import SimHost
from gossamer.simweb.log import LogError, read_header, read_lines
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

        def column(name: str) -> Ints:
            return columns[name][order]

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


class _Matcher:
    """Finds what a host and a target are; remembers the hosts."""

    def __init__(self, web: SimWeb) -> None:
        self.web = web
        self._roles = {role: number for number, role in enumerate(ROLES)}
        self._hosts: dict[str, SimHost | None] = {}

    def match(self, name: str, target: str, agent: str) -> tuple[int, int, int, int]:
        """Return rank, page, role and flags of a request."""
        if name not in self._hosts:
            door = self.web.door(name)
            self._hosts[name] = door.host if door else None
        host = self._hosts[name]
        if host is None:
            return -1, -1, self._roles[Role.MISSING], 0
        role, index = self.web.locate(host, target)
        page = -1 if index < 0 else host.base + index
        flags = FLAG_BY_ADDRESS if name[:4] == "127." else 0
        ruled = host.robots not in robots.UNRESTRICTED and role is not Role.ROBOTS
        if ruled and not robots.allowed(host.robots, agent, target):
            flags |= FLAG_DENIED
        return host.rank, page, self._roles[role], flags


def read_trace(path: Path, agent: str = "") -> RequestTrace:
    """Read a log; with `agent`, only the requests whose user agent contains it (in any case).

    Raises LogError if the file is no log or holds no such request, OSError if it cannot be read.
    """
    spec, began = read_header(path)
    matcher = _Matcher(SimWeb(spec))
    chunks: list[dict[str, Ints]] = []
    # Appending to one flat array and cutting it into columns afterwards costs a third of what
    # appending to nine does.
    flat = array("q")
    agents: dict[str, int] = {}
    wanted = agent.lower()
    for start, duration, status, size, marks, host, _, target, name in read_lines(path):
        if wanted and wanted not in name.lower():
            continue
        rank, page, role, flags = matcher.match(host, target, name)
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
    trace = RequestTrace(matcher.web, began, columns)
    trace.agents = list(agents)
    return trace


def _packed(flat: array[int]) -> dict[str, Ints]:
    table = np.array(flat, dtype=np.int64).reshape(-1, len(COLUMNS))
    return {name: table[:, number].astype(kind) for number, (name, kind) in enumerate(COLUMNS.items())}
