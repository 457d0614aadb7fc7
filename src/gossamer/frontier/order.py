"""The order of a crawl: traversals say what is followed and what comes first, the prioritizer how urgent a task is.

Place in the flow: the commit asks the prioritizer for the level of each new task, and the traversal what to follow of a page and
where a task waits; the schedule of :mod:`gossamer.frontier.politeness` then says when its host may be asked. A traversal is
chosen by name; the file of importance is read when a crawl starts.
"""

import math
import random
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from gossamer.engine.errors import SettingError
from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.contract import DEEPEST, LEVELS, TaskStanding
from gossamer.values.errors import UnreadableUrl
from gossamer.values.hosts import given_host, registered_domain
from gossamer.values.patterns import compiled_re2
from gossamer.values.task import Task
from gossamer.values.url import canonical, host_of

# Traversals, as Hunyadi 2007 (sections 2.1 and 3) describes them.


class BreadthFirst(Provider[NoSettings]):
    """Fetches pages near the seeds first; hosts take turns. This is the default, since it finds important pages
    early."""

    def follow(self, tasks: Sequence[Task], source: Task | None) -> Sequence[Task]:
        return tasks

    def level(self, task: Task, urgency: int) -> int:
        """By depth: tasks of a lesser depth that come late still go first."""
        return min(task.depth, DEEPEST)

    def host_level(self, task: Task, urgency: int) -> int:
        return 0


class DepthFirst(Provider[NoSettings]):
    """Fetches the pages furthest from the seeds first. Within a host this is strict; among hosts it prefers the deeper
    ones.

    With one request at a time the crawl walks in preorder, because the deepest URLs are those of the page that came
    last.
    """

    def follow(self, tasks: Sequence[Task], source: Task | None) -> Sequence[Task]:
        return tasks

    def level(self, task: Task, urgency: int) -> int:
        return max(0, DEEPEST - task.depth)

    def host_level(self, task: Task, urgency: int) -> int:
        return max(0, LEVELS - 1 - task.depth)


class HostBreadthFirst(BreadthFirst):
    """Crawls breadth-first within the hosts of the seeds; it follows no link that leaves its page's host."""

    def follow(self, tasks: Sequence[Task], source: Task | None) -> Sequence[Task]:
        return tasks if source is None else [task for task in tasks if task.host == source.host]


class BestFirst(Provider[NoSettings]):
    """Fetches the most urgent tasks first, as the prioritizer judges them: within a host strictly, among hosts with the
    bias of the front queues."""

    def follow(self, tasks: Sequence[Task], source: Task | None) -> Sequence[Task]:
        return tasks

    def level(self, task: Task, urgency: int) -> int:
        return urgency

    def host_level(self, task: Task, urgency: int) -> int:
        return urgency


class RandomWalkSheet(Sheet, frozen=True):
    seed: Annotated[
        int, setting("Seed of the random numbers; the same seed walks the same way.", restart="walks are under way")
    ] = 1


class RandomWalk(Provider[RandomWalkSheet]):
    """Goes from each page to one of its links, which it draws at random with equal odds. There are as many walkers as seeds.

    A walk may return to pages, so its wiring has neither URL-seen nor content-seen test (Hunyadi 2007, section 2.1).
    """

    def __init__(self, sheet: RandomWalkSheet | None = None) -> None:
        super().__init__(sheet)
        self._draw = random.Random(self.sheet.seed)

    def follow(self, tasks: Sequence[Task], source: Task | None) -> Sequence[Task]:
        return tasks if source is None or not tasks else [tasks[int(self._draw.random() * len(tasks))]]

    def level(self, task: Task, urgency: int) -> int:
        return 0

    def host_level(self, task: Task, urgency: int) -> int:
        return 0


# The file of importance: scores of hosts and URLs by traffic, sales, ranks, or whatever a person counts. A line is `SCORE NAME`;
# NAME is a host, a registered domain, `*.DOMAIN` for the hosts below it, a URL, or a URL's beginning with `*` behind it. The most
# specific line holds. Lines that cannot be read are counted and named; the others hold.

#: Lines of a file: its names are held in memory, some 150 bytes each.
MOST_LINES = 1_000_000

#: Bad lines that are shown; the others are counted.
SHOWN = 10

#: Lengths of beginnings that are told apart: each is looked up for each URL.
MOST_LENGTHS = 64

#: Bytes of a line that are looked at.
LINE_BYTES = 8_192


class Scores:
    """The scores of a file.

    Args:
        lines: of the file, with what ends them.
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._hosts: dict[str, float] = {}
        self._below: dict[str, float] = {}
        self._urls: dict[str, float] = {}
        self._beginnings: dict[str, float] = {}
        self._tables = self._hosts, self._below, self._urls, self._beginnings
        self.read = 0
        """Lines that say something, bad ones among them."""
        self.bad = 0
        self.shown: list[str] = []
        """The first bad lines, each with its number and why it is bad."""
        for number, line in enumerate(lines, 1):
            if number > MOST_LINES:
                raise SettingError(f"it has more than {MOST_LINES:,} lines")
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            self.read += 1
            try:
                self._put(words, len(line))
            except (ValueError, UnreadableUrl) as error:
                self.bad += 1
                if len(self.shown) < SHOWN:
                    self.shown.append(f"line {number}: {error}")
        values = sorted(value for table in self._tables for value in table.values())
        if values and values[-1] > 1.0:
            # Scores that go beyond 1 are put on a scale from 0 to 1, by their places among all.
            last = max(1, len(values) - 1)
            for table in self._tables:
                table.update({what: bisect_left(values, value) / last for what, value in table.items()})
        self._lengths = sorted({len(one) for one in self._beginnings}, reverse=True)

    def __len__(self) -> int:
        return sum(map(len, self._tables))

    def _put(self, words: list[str], length: int) -> None:
        if len(words) != 2 or length > LINE_BYTES:
            raise ValueError("write a score and a host or URL, as `0.9 example.org`")
        score, what = words
        try:
            value = float(score)
        except ValueError:
            value = -1.0
        if not 0.0 <= value < float("inf"):
            raise ValueError(f"{score[:40]!r} is not a score; write a number from 0 on")
        if "://" in what:
            self._put_url(what, value)
        else:
            below = what.startswith("*.")
            host = given_host(what.removeprefix("*."), what)
            (self._below if below else self._hosts)[host] = value

    def _put_url(self, what: str, value: float) -> None:
        if not what.endswith("*"):
            self._urls[canonical(what)] = value
            return
        beginning = what.removesuffix("*")
        if "*" in beginning or not host_of(canonical(beginning)):
            raise ValueError(f"{what[:80]!r} has a `*` elsewhere than at its end")
        lengths = {len(one) for one in self._beginnings}
        if len(beginning) not in lengths and len(lengths) >= MOST_LENGTHS:
            raise ValueError(f"there are beginnings of {MOST_LENGTHS} lengths already")
        self._beginnings[beginning] = value

    def site(self, host: str) -> float | None:
        """The importance of a host, 0 to 1; None where the file says nothing of it."""
        found = self._hosts.get(host)
        if found is None and self._below:
            above = (host[dot + 1 :] for dot, character in enumerate(host) if character == ".")  # the nearest first
            found = next((self._below[name] for name in above if name in self._below), None)
        return self._hosts.get(registered_domain(host)) if found is None else found

    def page(self, url: str) -> float | None:
        """The importance of a URL, 0 to 1; None where the file says nothing of it."""
        found = self._urls.get(url)
        if found is not None or not self._lengths:
            return found
        return next((self._beginnings[url[:n]] for n in self._lengths if url[:n] in self._beginnings), None)

    @property
    def trouble(self) -> str:
        """A line for the person about bad lines; empty where there are none."""
        if not self.bad:
            return ""
        more = f"; and {self.bad - len(self.shown):,} more" if self.bad > len(self.shown) else ""
        return f"{self.bad:,} of {self.read:,} lines cannot be read and are left out: {'; '.join(self.shown)}{more}"


def read_scores(name: str) -> Scores:
    """The scores of a file. Raises SettingError: it cannot be read, or no line of it can."""
    try:
        with Path(name).open(encoding="utf-8-sig", errors="replace") as lines:
            scores = Scores(iter(lambda: lines.readline(LINE_BYTES + 1), ""))
    except OSError as error:
        raise SettingError(f"setting 'importance': {name}: {error.strerror or error}") from None
    except SettingError as error:
        raise SettingError(f"setting 'importance': {name}: {error}") from None
    if scores.bad and not len(scores):
        raise SettingError(f"setting 'importance': {name}: {scores.trouble}")
    return scores


class WeightSheet(Sheet, frozen=True):
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
        self._settle()
        if self.sheet.importance != before.importance:
            self._tell()

    def _settle(self) -> None:
        self.wants_in_degree = self.sheet.in_degree > 0.0
        """Links to hosts are to be counted for it."""
        self._rules = tuple(map(_rule, self.sheet.rules))
        self._scores = read_scores(self.sheet.importance) if self.sheet.importance else Scores()
        self._has_scores = bool(len(self._scores))
        self._sites = dict(map(_site, self.sheet.sites))

    async def start(self) -> None:
        self._tell()

    def _tell(self) -> None:
        if trouble := self._scores.trouble:
            self.metrics.count("bad_lines", self._scores.bad)
            self.report(f"{self.sheet.importance}: {trouble}")

    def levels(self, tasks: Sequence[Task], standings: Sequence[TaskStanding]) -> Sequence[int]:
        if self._sites or self._has_scores or self._rules:
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
    levels, equals, pattern = text.partition("=")
    try:
        more = float(levels)
        if not equals or not pattern or not math.isfinite(more):
            raise ValueError("it is not LEVELS=RE2")
        return more, compiled_re2(pattern)
    except ValueError as error:
        raise SettingError(f"setting 'rules': {text!r}: {error}; write LEVELS=RE2, as 2=/news/") from None
