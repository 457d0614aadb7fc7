"""How the pages of `--max-pages` are lent to agents, so that all of them together never take one more. Pure.

Place in the flow: the supervisor asks after each round of reports, and tells each agent its new share. A share counts pages of
the whole life of the crawl, so that what an agent has used of it is never asked for back. Nothing of this is kept anywhere: an
agent that comes back has no share until it is lent one, and a supervisor that comes back hears from each agent what it has.

What is lent is never more than the limit: the pool is what no agent may use, and an agent counts with the most that it may have
been told until it says itself that it has less.

The bytes of `--max-bytes` are lent in the same way. What requests in flight bring is not known: an agent passes its share with the
last pages that it takes, as a crawl of one agent passes the limit.
"""

from collections.abc import Mapping, Sequence

import msgspec

#: The least that is lent of bytes: some pages. Smaller parts of the last bytes cost a round each.
LEAST_BYTES = 64 << 10


class Borrower(msgspec.Struct, frozen=True):
    """One agent."""

    agent: str
    used: int
    """Pages that it has, and requests in flight that may become pages; or bytes."""
    share: int
    """The most that it may have."""
    wants: bool
    """It has work, and will have used up its share soon."""

    @property
    def bound(self) -> int:
        """What it may come to."""
        return max(self.used, self.share)


def lent(limit: int, borrowers: Sequence[Borrower], least: int = 1) -> Mapping[str, int]:
    """The shares that are to change, by agent; those that become less are to be told, and confirmed, first.

    Half of the pool goes out at a time, in equal parts of `least` or more, so that something is left for whoever finds work later.
    When the pool is empty, agents that want nothing give back what they have not used.
    """
    wanting = [one for one in borrowers if one.wants]
    if not wanting:
        return {}
    pool = limit - sum(one.bound for one in borrowers)
    if pool <= 0:
        return {one.agent: one.used for one in borrowers if not one.wants and one.share > one.used}
    part = max(least, pool // (2 * len(wanting)))
    parts = [min(part, pool - index * part) for index in range(len(wanting))]
    return {one.agent: one.bound + size for one, size in zip(wanting, parts, strict=True) if size > 0}
