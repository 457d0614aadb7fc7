"""Politeness decides when a host may be asked, and what becomes of a page after its answer.
Suite: `gossamer.testing.check_politeness`.

The frontier puts in hosts that have tasks, takes out the host whose turn it is, and reports when a request begins and
when its answer has come. The committer asks for the ruling on a page, and keeps the notes that must outlive the process.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from gossamer.model.ruling import Ruling
from gossamer.model.task import Answer, Task


class Politeness(Protocol):
    """Lets requests go out no earlier than host, domain, address and crawl allow.

    Promises:
        1. A host never has more live requests than it is allowed, and is left alone for its delay after each.
        2. `next` returns a host that may be asked now, once for each `put`, and never a blocked host.
        3. Every request that `begin` allowed gets one ruling, whichever caller brings its answer first.
        4. A host restored from its note is asked no earlier than it would have been.
        5. A host that was reported to `missed` waits, although no request to it began.
    """

    def put(self, host: str, address: str, level: int = 0) -> None:
        """Report that this host has tasks.

        Args:
            level: of its next task; 0 is the most urgent.
            address: of the host; may be empty.
        """
        ...

    def drop(self, host: str) -> None:
        """Report that this host has no tasks any more."""
        ...

    def next(self, now: float) -> str | float:
        """Take out and return the host whose turn it is, or return when to ask again (monotonic, maybe infinite)."""
        ...

    def begin(self, task: Task, address: str, now: float) -> bool:
        """Report that a request for this task goes out to a host that `next` returned.

        Returns:
            True if the host may have one more request at the same time.
        """
        ...

    def answered(self, answer: Answer) -> None:
        """Report that an answer has come, or will never come: the host is free again, or waits. A second call does nothing."""
        ...

    def ruling(self, answer: Answer) -> Ruling:
        """Return what becomes of the page of this answer; a request that never began is done. Call it once a request."""
        ...

    def expected(self, answer: Answer) -> Ruling:
        """Return the ruling that `ruling` will give on this answer. It changes nothing."""
        ...

    def pace(self, host: str, crawl_delay: float) -> float:
        """Take the `Crawl-delay` of a host in seconds, 0 where it has none; return until when the host waits (monotonic)."""
        ...

    def hold(self, task: Task, seconds: float) -> None:
        """Do not ask the endpoint of this task for this long, for example because its robots.txt is out of reach."""
        ...

    def missed(self, host: str) -> None:
        """Report that the name of a host has no address: the host failed without being asked, and waits for the next try."""
        ...

    def received(self, identity: str, size: int) -> None:
        """Count this many bytes of a task against the bandwidth. Call it before you ask for the ruling."""
        ...

    def waits(self, host: str, now: float) -> float:
        """Return the seconds until this host may be asked; infinite while another request must end first."""
        ...

    def delay(self, host: str) -> float:
        """Return for how many seconds this host is left alone between two requests."""
        ...

    def delay_reason(self, host: str) -> str:
        """Return in one word why the host is not asked more often.

        The word is `setting`, `latency`, `robots`, `processor`, `errors` or `refusals`.
        """
        ...

    def slowed(self, count: int) -> Sequence[tuple[str, float, str]]:
        """Return the hosts that are left alone longest because of their errors or refusals: name, seconds, reason."""
        ...

    def block(self, name: str) -> None:
        """Do not ask this host or domain any more. The block is not kept: the caller repeats it in each run.

        Raises:
            UsageError: `name` is not a host name.
        """
        ...

    def slow(self, host: str, seconds: float) -> None:
        """Leave at least this many seconds between two requests to a host, a day at most. The longest time holds."""
        ...

    def rule_against(self, host: str) -> str:
        """Return the entry of the blocklist that closes this host; empty where none does."""
        ...

    def take_blocked(self) -> Sequence[str]:
        """Return the hosts that left since the last call because they are blocked."""
        ...

    def is_spent(self, host: str) -> bool:
        """Return whether the crawl may end without this host, because the host has used up its chances."""
        ...

    def closed(self, task: Task, now: float) -> float:
        """Return for how many seconds the endpoint (scheme, host, port) of a task is not asked because it did not answer; 0 where
        it may be asked. Another endpoint of the same host may work."""
        ...

    def is_closed(self, host: str, now: float) -> bool:
        """Return whether a host waits because none of its known endpoints answers."""
        ...

    def meet(self, host: str, urls: Iterable[str]) -> None:
        """Report that a host has tasks for these URLs. If they name other endpoints than those that did not answer, the host need
        not wait."""
        ...

    def retry_wait(self, host: str, now: float) -> float:
        """Return for how many seconds a failure, a refusal or a robots.txt out of reach keeps this host waiting; else 0."""
        ...

    def at_work(self) -> Iterable[str]:
        """Return the hosts that were put in and whose turn has not come."""
        ...

    def note(self, host: str) -> bytes:
        """Return the state of this host that must be kept; empty where there is none."""
        ...

    def restore(self, host: str, note: bytes, *, clean: bool) -> None:
        """Restore a host from its :meth:`note`, unless it is known already; `clean` is False after a kill."""
        ...

    def hush(self) -> None:
        """Ask no host before one usual delay has passed. It is called after a kill."""
        ...

    def forget(self, host: str) -> bool:
        """Free the memory of this host, whose note has been kept. Returns False while the host is busy."""
        ...
