"""Prioritizers: how urgent a task is, from what is cheap to know (the system-design chapter, URL frontier).

Place in the flow: the frontier asks before it queues a task; the traversal decides what becomes of the answer.
"""

import math
from collections.abc import Sequence
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
from gossamer.stages.frontier.scores import Scores, read_scores


class WeightSheet(Sheet, frozen=True):
    """Settings of :class:`WeightedPrioritizer`."""

    depth: Annotated[
        float, setting("Make a task this many levels less urgent for each link from the nearest seed.", unit="levels")
    ] = 1.0
    in_degree: Annotated[
        float,
        setting(
            "Make a task this many levels more urgent for each doubling of the number of links to its host from "
            "other hosts; 0 counts no links.",
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
            "Give this importance (0 to 1) to a host, or to all hosts of a registered domain, as `0.9=example.org`; "
            "all others have 0.5 (repeatable)."
        ),
    ] = ()
    importance: Annotated[
        str,
        setting(
            "Read the importance of hosts and URLs from this file, one a line as `0.9 example.org`, `0.2 "
            "*.example.org` or `0.7 https://example.org/news/*`. If a score is above 1, such as visits a day, only "
            "the ranks of scores count. `gossamer rank DIR --importance FILE` writes such a file. `sites` wins over "
            "it.",
            names="a file",
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
            "Make URLs that match a pattern more urgent (`2=/news/`) or less (`-3=/archive/`), as LEVELS=RE2; "
            "several rules add up."
        ),
    ] = ()


class WeightedPrioritizer(Provider[WeightSheet]):
    """Rates a task by a sum: how near it is to the seeds, how important its site and its page are, how many hosts link
    to its host, and rules of yours.

    Raises:
        SettingError: a rule is not LEVELS=RE2, a site is not IMPORTANCE=HOST, or the file of importance cannot be used.
    """

    def __init__(self, sheet: WeightSheet | None = None) -> None:
        super().__init__(sheet)
        self._settle()

    def changed(self, before: WeightSheet) -> None:
        """Take the new weights, sites and rules for tasks to come."""
        self._settle()
        if self.sheet.importance != before.importance:
            self._tell()

    def _settle(self) -> None:
        self._rules = tuple(map(_rule, self.sheet.rules))
        self._scores = read_scores(self.sheet.importance) if self.sheet.importance else Scores()
        self._has_scores = bool(len(self._scores))
        self._sites = dict(map(_site, self.sheet.sites))

    async def start(self) -> None:
        """Tell what of the file could not be read."""
        self._tell()

    def _tell(self) -> None:
        if trouble := self._scores.trouble:
            self.metrics.count("bad_lines", self._scores.bad)
            self.report(f"{self.sheet.importance}: {trouble}")

    @property
    def wants_in_degree(self) -> bool:
        """Whether links to hosts are to be counted for it."""
        return self.sheet.in_degree > 0.0

    def levels(self, tasks: Sequence[Task], standings: Sequence[TaskStanding]) -> Sequence[int]:
        """One for each."""
        if self._judges_urls:
            return [self._level(task, standing) for task, standing in zip(tasks, standings, strict=True)]
        # Only depth and standing matter, and the tasks of a page are alike in both.
        levels: dict[tuple[int, float, int], int] = {}
        found = []
        for task, standing in zip(tasks, standings, strict=True):
            alike = task.depth, standing.site, standing.in_degree
            level = levels.get(alike)
            if level is None:
                level = levels[alike] = self._level(task, standing)
            found.append(level)
        return found

    @property
    def _judges_urls(self) -> bool:
        return bool(self._sites or self._has_scores or self._rules)

    def _level(self, task: Task, standing: TaskStanding) -> int:
        sheet = self.sheet
        site = standing.site if 0.0 <= standing.site <= 1.0 else 0.5
        known: float | None = None
        if self._sites:
            known = self._sites.get(task.host, self._sites.get(registered_domain(task.host)))
        if known is None and self._has_scores:
            known = self._scores.site(task.host)
        place = sheet.depth * task.depth - sheet.site * ((site if known is None else known) - 0.5)
        if self._has_scores and (page := self._scores.page(task.url)) is not None:
            place -= sheet.page * (page - 0.5)
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
