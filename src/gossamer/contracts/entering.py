"""Log-ins of a user's own, run before the pages that they open are asked for.

Place in the flow: the protocol module for http asks :class:`LogIns` before each request. Its implementation is a spider's.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from gossamer.model.task import Task
from gossamer.model.visit import Response

#: Sends the request of a task with the cookies of the crawl.
Ask = Callable[[Task], Awaitable[Response]]


class Entered(Protocol):
    """What is known of log-ins, in later runs too where cookies are kept."""

    def has_entered(self, name: str) -> bool:
        """Whether a log-in was run and its cookies are still there."""
        ...

    def note_entered(self, name: str) -> None:
        """A log-in was run."""
        ...


class LogIns(Protocol):
    """Runs log-ins.

    Promises:
        1. A log-in is run by one caller at a time, who has its host's turn; the others wait.
        2. It asks the host of its own URL alone, and ends within its deadline.
    """

    async def enter(self, url: str, ask: Ask, entered: Entered) -> None:
        """Run the log-in of the host of `url`, where there is one and nobody is logged in.

        Raises:
            ComponentFailed: it failed; names the user's file and line.
        """
        ...
