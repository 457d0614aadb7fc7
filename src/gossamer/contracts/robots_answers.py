"""What sites said in robots.txt, shared by the crawls of one user. Suite: `gossamer.testing.check_robots_answers`.

Place in the flow: a robots gate looks here before it lets a robots.txt be requested, and keeps here what came of its own
requests. The states are the gate's; nothing here reads them. A failure here costs one more request, never a wrong verdict and
never the crawl.
"""

from typing import Protocol


class RobotsAnswers(Protocol):
    """States of sites, by a name that the gate makes, for any number of processes at once.

    Promises:
        1. A state that is found is one that was kept under this name, byte for byte; one that was damaged is not found.
        2. Of two that are kept under one name, the later one is found.
        3. While one process asks for a site, the others are told to wait; a process that has died asks for nothing.
        4. No call raises an error or waits for longer than a moment, whatever became of the place where states lie.
        5. The place stays within its bound: the states that were kept first go first.
    """

    def find(self, name: str) -> bytes:
        """The state that was kept under this name; empty if there is none."""
        ...

    def keep(self, name: str, state: bytes, now: float) -> None:
        """Keep a state; `now` is in seconds since the epoch."""
        ...

    def claim(self, name: str, now: float) -> float:
        """Say that this process is about to ask the site itself.

        Args:
            name: of the state that will come of it.
            now: seconds since the epoch.

        Returns:
            0 if nobody else does; otherwise the seconds after which it is time to look again.
        """
        ...

    def release(self, name: str) -> None:
        """This process asks the site no more, whatever came of it."""
        ...
