"""Links that their own page does not vouch for (`rel=nofollow`, `ugc`, `sponsored`, or a whole page's `nofollow`).

Place in the flow: links ─► **filter** ─► URL-seen, at the gate `follow`. They are found, counted and written to the link
table all the same; another page that vouches for one lets it in. Decision 13 says why they are not followed by default.
"""

from collections.abc import Sequence
from typing import Annotated

from gossamer.flow.sheet import Sheet, setting
from gossamer.flow.unit import Provider
from gossamer.model.task import Task
from gossamer.model.visit import Link


class NofollowSheet(Sheet, frozen=True):
    """Settings of :class:`NofollowFilter`."""

    follow: Annotated[bool, setting("Also follow links that say `nofollow`.")] = False


class NofollowFilter(Provider[NofollowSheet]):
    """Refuses links that say `nofollow`. Contract: `filtering.UrlFilter`."""

    def judge(self, links: Sequence[Link], source: Task) -> Sequence[str]:
        """`nofollow` for each link that is refused."""
        if self.sheet.follow:
            return [""] * len(links)
        return ["nofollow" if link.nofollow else "" for link in links]
