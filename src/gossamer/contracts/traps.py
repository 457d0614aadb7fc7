"""Crawler traps that a crawl learns of while it runs (MISSION S13, FAULTS 38, 40). Suite: `gossamer.testing.check_traps`.

What can be seen of a URL alone is a filter's matter (`url_filter.traps`); this contract is for what shows only when pages have
been fetched: that a part of a host goes on for ever and says nothing new.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gossamer.contracts.filtering import TaskGate
from gossamer.model.task import Task
from gossamer.model.visit import Visit


class Traps(Protocol):
    """Watches what visits bring, and cuts the budget of what brings nothing.

    Promises:
        1. Memory is bounded, whatever the hosts do; what is forgotten is trusted again.
        2. A cut is named and counted, never silent; the names are few: `trap:calendar`, `trap:facets`, ...
        3. A cut is a share: of the URLs of a trap a tenth still passes, a hundredth after that brought nothing either. Where
           new content returns, the share grows again.
        4. The verdict on a URL is the same for `schedule` and `fetch` while nothing was learnt in between.
    """

    def observe(self, visit: Visit) -> str:
        """Learn from a visit that is about to be committed. The trap that it uncovered, or an empty string.

        Its tasks are those that the URL-seen test had not seen; not all of them need be new after all.
        """
        ...

    def judge_tasks(self, gate: TaskGate, tasks: Sequence[Task]) -> Sequence[str]:
        """A verdict for each task: empty, or the trap whose budget is spent."""
        ...

    def story(self, url: str) -> str:
        """What is known of the part of the host that a URL belongs to, for `why`; empty where there is nothing to tell."""
        ...

    def cuts(self) -> Mapping[str, int]:
        """How many tasks each trap has cost, by its name."""
        ...
