"""Prioritizers: how urgent a task is, from what is cheap to know (the system-design chapter, URL frontier).

Place in the flow: the frontier asks before it queues a task; the traversal decides what becomes of the answer.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import re2

from gossamer.contracts.prioritizing import LEVELS, TaskStanding
from gossamer.flow.errors import SettingError
from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.domains import registered_domain
from gossamer.model.errors import UnreadableUrl
from gossamer.model.task import Task
from gossamer.model.url import canonical, host_of

#: Lines of a file of importance: what it names is held in memory, some 150 bytes each.
MOST_IMPORTANCE_LINES = 1_000_000


class WeightSheet(Sheet, frozen=True):
    """Settings of :class:`WeightedPrioritizer`."""

    depth: Annotated[
        float, setting("Make a task this many levels less urgent for each link from the nearest seed.", unit="levels")
    ] = 1.0
    in_degree: Annotated[
        float,
        setting(
            "Make a task this many levels more urgent for each doubling of the links to its host from other hosts; 0 counts no "
            "links.",
            unit="levels",
            ge=0,
        ),
    ] = 0.0
    site: Annotated[
        float, setting("Put this many levels between the least and the most important site.", unit="levels")
    ] = 2.0
    sites: Annotated[
        tuple[str, ...],
        setting(
            "Take this importance (0 to 1) for a host, or for all hosts of a registered domain, as `0.9=example.org`; "
            "0.5 holds for all others (repeatable)."
        ),
    ] = ()
    importance: Annotated[
        str,
        setting(
            "Read the importance of hosts and URLs from this file, one a line as `0.9 example.org`; "
            "`gossamer rank DIR --importance FILE` writes it. What `sites` names holds before it."
        ),
    ] = ""
    page: Annotated[
        float,
        setting(
            "Put this many levels between the least and the most important URL that the file of `importance` names.",
            unit="levels",
        ),
    ] = 2.0
    rules: Annotated[
        tuple[str, ...],
        setting(
            "Make URLs that match more urgent (`2=/news/`) or less (`-3=/archive/`), by LEVELS=RE2; several add up."
        ),
    ] = ()


class WeightedPrioritizer(Provider[WeightSheet]):
    """Near the seeds, on an important site or one that many link to, an important page, wanted by the user: a sum of these.

    Raises:
        SettingError: a rule is not LEVELS=RE2, a site is not IMPORTANCE=HOST, or the file of importance cannot be used.
    """

    def __init__(self, sheet: WeightSheet | None = None) -> None:
        super().__init__(sheet)
        self._settle()

    def changed(self, before: WeightSheet) -> None:
        """Take the new weights, sites and rules for tasks to come."""
        self._settle()

    def _settle(self) -> None:
        self._rules = tuple(map(_rule, self.sheet.rules))
        sites, self._pages = _read_importance(self.sheet.importance) if self.sheet.importance else ({}, {})
        self._sites = {**sites, **dict(map(_site, self.sheet.sites))}

    @property
    def wants_in_degree(self) -> bool:
        """Whether links to hosts are to be counted for it."""
        return self.sheet.in_degree > 0.0

    def levels(self, tasks: Sequence[Task], standings: Sequence[TaskStanding]) -> Sequence[int]:
        """One for each."""
        return [self._level(task, standing) for task, standing in zip(tasks, standings, strict=True)]

    def _level(self, task: Task, standing: TaskStanding) -> int:
        sheet = self.sheet
        site = standing.site if 0.0 <= standing.site <= 1.0 else 0.5
        if self._sites:
            site = self._sites.get(task.host, self._sites.get(registered_domain(task.host), site))
        place = sheet.depth * task.depth - sheet.site * (site - 0.5)
        if self._pages:
            place -= sheet.page * (self._pages.get(task.url, 0.5) - 0.5)
        if sheet.in_degree:
            place -= sheet.in_degree * math.log2(1 + max(standing.in_degree, 0))
        for more, pattern in self._rules:
            if pattern.search(task.url) is not None:
                place -= more
        return int(min(max(place, 0), LEVELS - 1))


def _site(text: str) -> tuple[str, float]:
    """A host or domain, and its importance."""
    importance, _, name = text.partition("=")
    try:
        number, host = float(importance), host_of(canonical(f"http://{name.strip()}/"))
    except (ValueError, UnreadableUrl):
        number, host = math.nan, ""
    if not host or not 0.0 <= number <= 1.0:
        raise SettingError(
            f"setting 'sites': {text!r}: write IMPORTANCE=HOST with a number from 0 to 1, as 0.9=example.org"
        )
    return host, number


def _read_importance(name: str) -> tuple[dict[str, float], dict[str, float]]:
    """Hosts and URLs of a file, and their importance."""
    hosts: dict[str, float] = {}
    urls: dict[str, float] = {}
    try:
        with Path(name).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if number > MOST_IMPORTANCE_LINES:
                    raise SettingError(f"setting 'importance': {name} has more than {MOST_IMPORTANCE_LINES:,} lines")
                value, known = _importance_line(name, number, line)
                if known:
                    (urls if "://" in known else hosts)[known] = value
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(
            f"setting 'importance': {name}: {getattr(error, 'strerror', None) or 'is no text'}"
        ) from None
    return hosts, urls


def _importance_line(name: str, number: int, line: str) -> tuple[float, str]:
    """Importance and what has it; an empty name for a line that says nothing."""
    words = line.split()
    if not words or words[0].startswith("#"):
        return 0.0, ""
    try:
        value = float(words[0]) if len(words) == 2 else math.nan
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1.0:
        raise SettingError(
            f"setting 'importance': {name}, line {number}: write a number from 0 to 1 and a host or URL, as `0.9 example.org`"
        )
    return value, words[1]


def _rule(text: str) -> tuple[float, Any]:
    """Compile a user's rule."""
    levels, equals, pattern = text.partition("=")
    options = re2.Options()
    options.log_errors = False
    try:
        more = float(levels)
        if not equals or not pattern or not math.isfinite(more):
            raise ValueError("it is not LEVELS=RE2")
        return more, re2.compile(pattern, options)
    except (ValueError, re2.error) as error:
        raise SettingError(f"setting 'rules': {text!r}: {error}; write LEVELS=RE2, as 2=/news/") from None
