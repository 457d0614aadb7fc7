"""Contracts of the frontier: politeness and its rules, prioritizers, traversals, and flights.

Suites: `gossamer.testing.check_politeness`, `check_politeness_rule`, `check_prioritizer`, `check_traversal`, `check_flights`.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from gossamer.values.task import LAST_LEVEL, Answer, RetryDecision, Task


class Politeness(Protocol):
    """Lets requests go out no earlier than host, domain, address and crawl allow, and decides what happens to a page after its
    answer.

    The frontier puts in hosts that have tasks, takes out the host whose turn it is, and reports when a request begins and
    when its answer has come. The committer asks for the ruling on a page, and keeps the notes that must outlive the process.

    Promises:
        1. A host never has more live requests than it is allowed, and the crawl waits for the host's delay after each.
        2. `next` returns only hosts that may be asked now: each of them once for each `put`, and never a blocked one.
        3. Every request that `begin` allowed gets one ruling, whichever caller brings its answer first.
        4. A host that was restored from its note is asked no earlier than it would have been without the restart.
        5. After `missed`, a host waits as it does after a failed request.
    """

    def put(self, host: str, address: str, level: int = 0) -> None:
        """Report that a host has tasks.

        Args:
            level: the level of its next task; 0 is the most urgent.
            address: the address of the host; empty if it is not known.
        """
        ...

    def drop(self, host: str) -> None:
        """Report that a host has no more tasks."""
        ...

    def next(self, now: float) -> str | float:
        """Take out and return the host whose turn it is. If there is none, return the monotonic time at which to call again."""
        ...

    def begin(self, task: Task, address: str, now: float) -> bool:
        """Report that a request for this task goes out to a host that `next` returned.

        Returns:
            True if the host may have one more request at the same time.
        """
        ...

    def answered(self, answer: Answer) -> None:
        """Report that an answer has come or will never come. The host becomes free, or waits. A second call does nothing."""
        ...

    def ruling(self, answer: Answer) -> RetryDecision:
        """Decide what happens to the page of this answer, and return the ruling. Call it once for each request."""
        ...

    def expected(self, answer: Answer) -> RetryDecision:
        """Return the ruling that `ruling` will give on this answer, and change nothing."""
        ...

    def pace(self, host: str, crawl_delay: float) -> float:
        """Set the `Crawl-delay` of a host in seconds (0 if it has none). Return the monotonic time until which the host waits."""
        ...

    def hold(self, task: Task, seconds: float) -> None:
        """Do not ask the endpoint of this task for this long, for example because its robots.txt is unreachable."""
        ...

    def missed(self, host: str) -> None:
        """Report that the name of a host has no address. The host waits for the next try, although no request was sent to it."""
        ...

    def received(self, identity: str, size: int) -> None:
        """Count bytes that a task has received against the bandwidth. Call it before you ask for the ruling."""
        ...

    def waits(self, host: str, now: float) -> float:
        """Return the seconds until this host may be asked; infinite while another request must end first."""
        ...

    def delay(self, host: str) -> float:
        """Return the seconds that the crawl waits between two requests to this host."""
        ...

    def delay_reason(self, host: str) -> str:
        """Return in one word why the host is not asked more often.

        The word is `setting`, `latency`, `robots`, `processor`, `errors` or `refusals`.
        """
        ...

    def slowed(self, count: int) -> Sequence[tuple[str, float, str]]:
        """Return the hosts with the longest waits for errors or refusals, each with its name, seconds and reason."""
        ...

    def block(self, name: str) -> None:
        """Stop asking this host or domain. The block is not kept, so the caller repeats it in each run.

        Raises:
            UsageError: `name` is not a host name.
        """
        ...

    def slow(self, host: str, seconds: float) -> None:
        """Leave at least this many seconds between two requests to a host, a day at most. The longest such time applies."""
        ...

    def rule_against(self, host: str) -> str:
        """Return the entry of the blocklist that blocks this host; empty if there is none."""
        ...

    def take_blocked(self) -> Sequence[str]:
        """Return the hosts that were removed since the last call because they are blocked."""
        ...

    def is_spent(self, host: str) -> bool:
        """Return whether the crawl may end without this host, because the host has used up its chances."""
        ...

    def closed(self, task: Task, now: float) -> float:
        """Return the seconds for which a task's endpoint (scheme, host, port) is not asked because it did not answer; 0 if it may
        be asked. Another endpoint of the same host may work."""
        ...

    def is_closed(self, host: str, now: float) -> bool:
        """Return whether a host waits because none of its known endpoints answers."""
        ...

    def meet(self, host: str, urls: Iterable[str]) -> None:
        """Report that a host has tasks for these URLs. If they name other endpoints than those that did not answer, the host need
        not wait."""
        ...

    def retry_wait(self, host: str, now: float) -> float:
        """Return the seconds that a host waits after a failure, a refusal or an unreachable robots.txt; 0 if it does not wait."""
        ...

    def at_work(self) -> Iterable[str]:
        """Return the hosts that were put in and whose turn has not come."""
        ...

    def note(self, host: str) -> bytes:
        """Return the state of this host that must be kept; empty if there is none."""
        ...

    def restore(self, host: str, note: bytes, *, clean: bool) -> None:
        """Restore a host from its :meth:`note`, unless it is known already; `clean` is False after a kill."""
        ...

    def hush(self) -> None:
        """Ask no host until the usual delay has passed once. Call it after a kill."""
        ...

    def forget(self, host: str) -> bool:
        """Free the memory of this host, whose note has been kept. Returns False while the host is busy."""
        ...


#: Levels of urgency: 0 is the most urgent.
LEVELS = 8


class TaskStanding(msgspec.Struct, frozen=True, gc=False):
    """Facts that the frontier knows about a task beside the task itself."""

    site: float = 0.5
    """Importance of the task's site, from 0 to 1; 0.5 if nothing is known about it."""
    in_degree: int = 0
    """Number of links to the task's host from pages of other hosts; 0 for a prioritizer that does not ask for it."""


class PolitenessRule(Protocol):
    """Lets hosts rest for reasons of its own, beside delay, refusals and robots.txt: by night, say, or for as long as a
    site's owner asks.

    A provider of the wiring, named in `rules = { hosts = [...] }` of the politeness provider.

    Promises:
        1. It only makes a host rest longer; it never shortens what the other rules say.
        2. It is asked each time when a host's turn has come, so it answers from memory, within microseconds.
    """

    @property
    def word(self) -> str:
        """One word, as `night`, by which `status` and `why` say that the host waits because of this rule."""
        ...

    def rest(self, host: str, wall: float) -> float:
        """Seconds for which the host is not asked from now on; 0 if it may be. `wall` is the time in seconds since the epoch."""
        ...


class Prioritizer(Protocol):
    """Chooses a front queue for each task.

    Promises:
        1. It returns one level for each task, in order, from 0 (most urgent) to `LEVELS` - 1.
        2. The level depends on the task and its standing alone, and is the same every time.
        3. It never raises an exception, for any canonical URL and standing.

    The frontier counts links, for `in_degree`, only for a prioritizer whose attribute `wants_in_degree` is true.
    """

    def levels(self, tasks: Sequence[Task], standings: Sequence[TaskStanding]) -> Sequence[int]:
        """Return a level for each of `tasks`; `standings` has their standings, in the same order."""
        ...


#: The last level within a host: the ledger keeps a level in one byte.
DEEPEST = LAST_LEVEL

#: The rule that links are counted under which a traversal does not go after.
LEFT = "strategy"


class Traversal(Protocol):
    """Orders tasks within a host, and hosts among each other (Hunyadi 2007, section 2.1). It does not decide when a host may
    be asked: that is politeness.

    Promises:
        1. `follow` returns some of the tasks that it was given, in order, each once.
        2. Levels within a host are from 0 (first) to :data:`DEEPEST`, those of hosts to :data:`LEVELS` - 1.
           They depend on task and urgency alone.
        3. A traversal that uses chance is seeded: the same calls give the same answers.
    """

    def follow(self, tasks: Sequence[Task], source: Task | None) -> Sequence[Task]:
        """Those of the new tasks of one page that are gone after; `source` is None for seeds."""
        ...

    def level(self, task: Task, urgency: int) -> int:
        """In which of its host's queues a task waits: the lower ones go first, and within one the oldest task.

        `urgency` is the prioritizer's level. Depth-first needs no stack: the deepest queue goes first.
        """
        ...

    def host_level(self, task: Task, urgency: int) -> int:
        """In which front queue a host stands whose next task is `task`."""
        ...


class Flights(Protocol):
    """Keeps track of tasks between hand-out and commit, by their identities.

    Frontier and committer share it, in one process. A visit that comes a second time, because a link resent it after a kill,
    has no flight any more and is dropped.

    Promise: for every departure exactly one arrival is accepted.
    """

    def depart(self, identity: str) -> None:
        """Note that this task was handed out."""
        ...

    def arrive(self, identity: str) -> bool:
        """Its visit is about to be committed: True the first time after a departure, False otherwise."""
        ...
