"""When which host may be asked, and what becomes of a page after its answer. Suite: `gossamer.testing.check_politeness`.

The frontier puts hosts in that have tasks, takes out the one whose turn it is, says when a request begins and when its
answer is there. The committer asks what was ruled on a page, and keeps what must outlive the process.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from gossamer.model.ruling import Ruling
from gossamer.model.task import Answer, Task


class Politeness(Protocol):
    """Lets requests go out no earlier than host, domain, address and crawl allow.

    Promises:
        1. A host has at most its number of live requests, and is left alone for its delay after each.
        2. `next` gives out a host that may be asked now, once for each `put`; a blocked one never.
        3. Every request that `begin` let go out gets one ruling, whoever brings its answer first.
        4. A host restored from its note is asked no earlier than it would have been.
    5. A host that was missed waits, although no request of it began.
    """

    def put(self, host: str, address: str, level: int = 0) -> None:
        """There are tasks at this host. `level` is that of its next task, 0 the most urgent; `address` may be empty."""
        ...

    def drop(self, host: str) -> None:
        """There are none any more."""
        ...

    def next(self, now: float) -> str | float:
        """The host whose turn it is, which leaves; or the instant at which to ask again (monotonic seconds, maybe infinite)."""
        ...

    def begin(self, task: Task, address: str, now: float) -> bool:
        """A request for this task goes out to a host that `next` gave. True if the host may have one more at once."""
        ...

    def answered(self, answer: Answer) -> None:
        """Its answer has come, or will never come: the host is free again, or waits. A second time does nothing."""
        ...

    def ruling(self, answer: Answer) -> Ruling:
        """What becomes of the page of this answer; of one that never began: done. To be asked once for each request."""
        ...

    def expected(self, answer: Answer) -> Ruling:
        """What `ruling` will say of this answer. May be asked any number of times before that, and changes nothing for it."""
        ...

    def pace(self, host: str, crawl_delay: float) -> float:
        """The robots part found this `Crawl-delay`, 0 where there is none; returns until when the host waits (monotonic)."""
        ...

    def hold(self, task: Task, seconds: float) -> None:
        """Do not ask the endpoint of this task for so long: its robots.txt is out of reach, say."""
        ...

    def missed(self, host: str) -> None:
        """Its name has no address: it failed without being asked, and waits for the next try."""
        ...

    def received(self, identity: str, size: int) -> None:
        """So many bytes came in for this task: they count against the bandwidth. To be told before its ruling is asked for."""
        ...

    def waits(self, host: str, now: float) -> float:
        """Seconds until this host may be asked as things are; infinite while something must end first."""
        ...

    def delay(self, host: str) -> float:
        """Seconds that this host is left alone between two requests."""
        ...

    def delay_reason(self, host: str) -> str:
        """Why the host is asked no more often, in one word: `setting`, `latency`, `robots`, `processor`, `errors` or `refusals`."""
        ...

    def slowed(self, count: int) -> Sequence[tuple[str, float, str]]:
        """The hosts that are left alone for longest because of their errors or refusals: name, seconds, reason."""
        ...

    def block(self, name: str) -> None:
        """Ask this host or domain no more, from the next request on. It is not kept here: whoever says so says it each run.

        Raises:
            UsageError: it is no host name.
        """
        ...

    def slow(self, host: str, seconds: float) -> None:
        """Leave at least so many seconds between two requests to a host, a day at most; the longest that was said holds."""
        ...

    def rule_against(self, host: str) -> str:
        """The entry of the blocklist that closes this host; empty where none does."""
        ...

    def take_blocked(self) -> Sequence[str]:
        """Hosts that left because they are blocked, since the last call."""
        ...

    def is_spent(self, host: str) -> bool:
        """Whether a crawl need not stay alive for this host: it was given its chances."""
        ...

    def closed(self, task: Task, now: float) -> float:
        """Seconds for which the endpoint (scheme, host, port) of a task is not asked, because it did not answer; 0 where it may
        be. Another endpoint of the host may be well."""
        ...

    def is_closed(self, host: str, now: float) -> bool:
        """Whether a host waits because none of the endpoints that are known of it answers."""
        ...

    def meet(self, host: str, urls: Iterable[str]) -> None:
        """There are tasks for these URLs of a host: it need not wait for endpoints that did not answer, if others are among
        them."""
        ...

    def retry_wait(self, host: str, now: float) -> float:
        """Seconds that a failure, a refusal or a robots.txt out of reach keeps this host waiting; 0 where only its delay does."""
        ...

    def at_work(self) -> Iterable[str]:
        """Hosts that were put in, and whose turn has not come."""
        ...

    def note(self, host: str) -> bytes:
        """What must be kept of this host; empty where nothing must."""
        ...

    def restore(self, host: str, note: bytes, *, clean: bool) -> None:
        """Take back what :meth:`note` gave, unless the host is known already; `clean` is False after a kill."""
        ...

    def hush(self) -> None:
        """After a kill: nobody is asked before one usual delay has passed."""
        ...

    def forget(self, host: str) -> bool:
        """Give back this host's memory, its note being kept; False while it is busy."""
        ...
