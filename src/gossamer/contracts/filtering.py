"""URL filters (MISSION M5). Suite: `gossamer.testing.check_url_filter`."""

from collections.abc import Sequence
from typing import Protocol

from gossamer.model.task import Task
from gossamer.model.visit import Link


class UrlFilter(Protocol):
    """Judges all links of a page at once: no work per link that can be done per page.

    Promises:
        1. One verdict for each link, in order: an empty string lets it pass, anything else names the rule that refused it.
        2. The verdict on a link does not depend on the other links.
        3. A filter that raises refuses the whole page's links, and is counted: it never fails open.
    """

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """A verdict for each of `links`, all found on `source`."""
        ...
