"""The settings of the commit, a visit on its way through it, and the states of hosts that are kept with each group.

Place in the flow: the commit calls :func:`stage_hosts` and :func:`stage_robots` while a group is open, when it has decided what
becomes of each visit: they keep figures of a host's visits, the notes of politeness, and the answer of robots.txt.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from gossamer.engine.sheet import Sheet, setting
from gossamer.frontier.contract import Politeness
from gossamer.frontier.robots.contract import Lesson, RobotsGate
from gossamer.storage.ledger.contract import Group
from gossamer.values.errors import UsageError
from gossamer.values.hosts import HostTable
from gossamer.values.ledger_rows import HostState
from gossamer.values.outcome import ANSWERED, ERRORS, Outcome
from gossamer.values.task import RetryDecision
from gossamer.values.url import host_of
from gossamer.values.visit import Response, Visit


class CommitSheet(Sheet, frozen=True):
    """Settings of :class:`Commit`."""

    again: Annotated[bool, setting("Let URLs be fetched again, without a URL-seen test (for random walks).")] = False
    sitemaps: Annotated[bool, setting("Fetch the sitemaps that robots.txt names.")] = False
    max_by_host: Annotated[
        dict[str, Annotated[int, msgspec.Meta(ge=1)]],
        setting(
            "Queue at most this many URLs of these hosts, as `*.example.org`, instead of `max_per_host`; cut the rest."
        ),
    ] = msgspec.field(default_factory=dict)
    max_per_host: (
        Annotated[int, setting("Queue at most this many URLs of a host; cut the rest.", unit="URLs", ge=1)] | None
    ) = 1_000_000
    max_per_domain: (
        Annotated[int, setting("Queue at most this many URLs of a registered domain; cut the rest.", unit="URLs", ge=1)]
        | None
    ) = 4_000_000
    disk_wait: Annotated[
        float, setting("While the disk is full, try again to write after this many seconds.", unit="s", gt=0)
    ] = 1.0  # soon enough for a person who makes room, and far from busy waiting

    def __post_init__(self) -> None:
        try:
            HostTable(self.max_by_host)
        except UsageError as error:
            raise ValueError(f"setting 'max_by_host': {error}") from None


class Ended(msgspec.Struct):
    """A visit on its way into the ledger."""

    visit: Visit
    ruling: RetryDecision
    site: str = ""
    """Of a robots.txt request: the site that it was made for."""
    lesson: Lesson | None = None
    """The lesson of its answer: learnt once, however often the group must be written."""
    uncovered: Sequence[str] | None = None
    """The names of all that watchers found in the visit, likewise; None before they were asked."""
    is_goal: bool = False
    """The crawl ends with it."""


def stage_hosts(group: Sequence[Ended], staged: Group, politeness: Politeness, now: float) -> None:
    """Keep what these visits say of their hosts; `now` is in seconds since the epoch."""
    by_host: dict[str, list[Ended]] = {}
    for ended in group:
        by_host.setdefault(ended.visit.task.host, []).append(ended)
    for name, those in by_host.items():
        staged.host(_state(staged.host_state(name), those, politeness, now))


def _state(state: HostState, group: Sequence[Ended], politeness: Politeness, now: float) -> HostState:
    """The state of a host after these visits."""
    counters, address = dict(state.counters), state.address
    for ended in group:
        for name, number in (*_figures(ended.visit), *((found, 1) for found in ended.uncovered or ())):
            counters[name] = counters.get(name, 0) + number
        address = ended.visit.response.address or address
    return msgspec.structs.replace(
        state,
        note=politeness.note(state.host),
        counters=counters,
        first_seen=state.first_seen or now,
        last_seen=now,
        address=address,
        delay=politeness.delay(state.host),
        delay_reason=politeness.delay_reason(state.host),
    )


def stage_robots(site: str, lesson: Lesson, response: Response, staged: Group, robots: RobotsGate, now: float) -> None:
    """Keep the answer for robots.txt. A site that does not answer counts like any other fetch that failed."""
    host = host_of(site)
    state = staged.host_state(host)
    staged.robots(site, host, robots.state(site))
    staged.count("robots")
    outcome = _unread(lesson, response)
    if outcome is not None:
        staged.count(f"outcome:{outcome}")
        if outcome in ERRORS:
            errors = state.counters.get("errors", 0) + 1
            state = msgspec.structs.replace(state, counters={**state.counters, "errors": errors})
    staged.host(msgspec.structs.replace(state, robots_state=lesson.state, robots_date=now))


def _unread(lesson: Lesson, response: Response) -> Outcome | None:
    """The outcome that a request for robots.txt counts as; None where it did what it was made for."""
    if response.outcome not in ANSWERED:
        return response.outcome
    if not lesson.settled and response.outcome in (Outcome.SERVER_ERROR, Outcome.RATE_LIMITED):
        return Outcome.ROBOTS_UNREACHABLE
    return None


def _figures(visit: Visit) -> Iterator[tuple[str, int]]:
    response = visit.response
    if visit.is_robots:
        return
    yield "visits", 1
    yield "bytes", len(response.body)
    if visit.is_page:
        yield "pages", 1
    if response.outcome in ERRORS:
        yield "errors", 1
