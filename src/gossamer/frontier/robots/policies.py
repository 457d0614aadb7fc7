"""The meaning of every answer to a robots.txt request for its site, by policy: tables, and nothing else.

`rfc9309` is the default. `paper` is the qualification of Agarwal and others, section 3.4, where anything unclear disqualifies a
site for the time being. `rfc9309-strict` differs from the RFC in one row: a site that asks for a password wants no crawler.
The machine (:mod:`gossamer.frontier.robots.machine`) reads these tables, and so does the reference.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

DAY = 86_400.0


class RobotsEvent(StrEnum):
    """The result of one request for robots.txt."""

    WHOLE = "whole"
    UNREADABLE = "unreadable"
    CAPPED = "capped"
    CUT = "cut"
    UNCHANGED = "unchanged"
    MOVED = "moved"
    LOST = "lost"
    SHUT = "shut"
    MISSING = "missing"
    FORBIDDEN = "forbidden"
    REFUSED = "refused"
    LIMITED = "limited"
    BROKEN = "broken"
    FAILED = "failed"


EVENTS: Mapping[RobotsEvent, str] = {
    RobotsEvent.WHOLE: "2xx, and the file came whole",
    RobotsEvent.UNREADABLE: "2xx, and no line of it belongs into a robots.txt",
    RobotsEvent.CAPPED: "2xx, longer than 1 MiB: its beginning was read",
    RobotsEvent.CUT: "2xx, broken off, or its coding could not be undone",
    RobotsEvent.UNCHANGED: "304, and a copy is kept",
    RobotsEvent.MOVED: "3xx to an http or https URL",
    RobotsEvent.LOST: "3xx to nowhere, or one redirect too many",
    RobotsEvent.SHUT: "3xx to a host or address that this crawl must not ask",
    RobotsEvent.MISSING: "400, 404 or 410",
    RobotsEvent.FORBIDDEN: "401 or 403",
    RobotsEvent.REFUSED: "another 4xx",
    RobotsEvent.LIMITED: "429",
    RobotsEvent.BROKEN: "5xx",
    RobotsEvent.FAILED: "no answer: name, connection, TLS, deadline or protocol",
}


class Effect(StrEnum):
    """The effect of an event on a site."""

    OBEY = "obey"
    ALLOW = "allow"
    DENY = "deny"
    RENEW = "renew"
    FOLLOW = "follow"
    AGAIN = "again"
    POSTPONE = "postpone"
    FORGET = "forget"
    GIVE_UP = "give up"


EFFECTS: Mapping[Effect, str] = {
    Effect.OBEY: "qualified, with the rules that were read",
    Effect.ALLOW: "qualified, with no rules: everything is allowed",
    Effect.DENY: "qualified, with everything denied",
    Effect.RENEW: "qualified, with the copy that is kept",
    Effect.FOLLOW: "the target of the redirect is asked next; its answer counts for the first site",
    Effect.AGAIN: "the next address is asked; after all of them, once more; then `postpone`",
    Effect.POSTPONE: "unreachable: a kept copy is used, without one nothing is fetched; asked again after the retry interval",
    Effect.FORGET: "instead of `postpone` after too long a time: a kept copy stays in force, without one all is allowed",
    Effect.GIVE_UP: "instead of `postpone` after too many failures: denied for good",
}


class RobotsPolicy(msgspec.Struct, frozen=True):
    """One reading of all that can happen."""

    name: str
    meanings: Mapping[RobotsEvent, Effect]
    redirects: int = 5
    """Followed in a row (RFC 9309, 2.3.1.2)."""
    rounds: int = 2
    """Times that all addresses are asked before the site counts as unreachable (Agarwal and others, 3.4)."""
    pause: float = 2.0
    """Seconds between the rounds (the same)."""
    keep: float = DAY
    """Seconds for which an answer is good (RFC 9309, 2.4: at most 24 hours)."""
    retries: tuple[float, ...] = (10.0, 600.0, 3600.0)
    """Seconds until an unreachable site is asked again, after one failure, two failures, and so on: those of a page."""
    growth: float = 2.0
    """Factor of the retry interval from each further failure to the next."""
    longest_retry: float = 6 * 3600.0
    """Seconds."""
    max_failures: int = 0
    """Successive failures after which a site is given up; 0 for never."""
    absent_after: float = 0.0
    """Seconds of being unreachable after which a robots.txt counts as absent; 0 for never."""
    uses_copy: bool = True
    """A copy stays in force while the site is unreachable, however old it is (RFC 9309, 2.4)."""

    def retry_after(self, failures: int) -> float:
        """Seconds from the `failures`-th failure in a row to the next request."""
        if failures <= len(self.retries):
            return self.retries[failures - 1]
        # The exponent is bounded, since floats are.
        return min(self.retries[-1] * self.growth ** min(failures - len(self.retries), 64), self.longest_retry)


_RFC9309: Mapping[RobotsEvent, Effect] = {
    RobotsEvent.WHOLE: Effect.OBEY,
    # 2.3.1.1: "crawlers MUST use the parseable rules", be there none.
    RobotsEvent.UNREADABLE: Effect.OBEY,
    # 2.5: at least 500 KiB must be parsed.
    RobotsEvent.CAPPED: Effect.OBEY,
    # Not in the RFC: what is missing may be what forbids, so it is like a connection that broke earlier.
    RobotsEvent.CUT: Effect.AGAIN,
    RobotsEvent.UNCHANGED: Effect.RENEW,
    RobotsEvent.MOVED: Effect.FOLLOW,
    # 2.3.1.2: "crawlers MAY assume that the robots.txt file is unavailable".
    RobotsEvent.LOST: Effect.ALLOW,
    # Not in the RFC: the rules exist, and we may not read them. Asking again would not change that, so it is final.
    RobotsEvent.SHUT: Effect.DENY,
    # 2.3.1.3, unavailable: "the crawler MAY access any resources on the server".
    RobotsEvent.MISSING: Effect.ALLOW,
    RobotsEvent.FORBIDDEN: Effect.ALLOW,
    RobotsEvent.REFUSED: Effect.ALLOW,
    # A server that is asked too often has not said that it has no rules. At once, without further addresses.
    RobotsEvent.LIMITED: Effect.POSTPONE,
    # 2.3.1.4, unreachable: "the crawler MUST assume complete disallow".
    RobotsEvent.BROKEN: Effect.AGAIN,
    RobotsEvent.FAILED: Effect.AGAIN,
}

_PAPER: Mapping[RobotsEvent, Effect] = {
    RobotsEvent.WHOLE: Effect.OBEY,
    RobotsEvent.UNREADABLE: Effect.ALLOW,
    RobotsEvent.CAPPED: Effect.POSTPONE,
    RobotsEvent.CUT: Effect.POSTPONE,
    RobotsEvent.UNCHANGED: Effect.RENEW,
    # The paper: a site that returns "any other HTTP status" is out for the time being, and it names no redirects.
    RobotsEvent.MOVED: Effect.POSTPONE,
    RobotsEvent.LOST: Effect.POSTPONE,
    RobotsEvent.SHUT: Effect.DENY,
    RobotsEvent.MISSING: Effect.ALLOW,
    RobotsEvent.FORBIDDEN: Effect.POSTPONE,
    RobotsEvent.REFUSED: Effect.POSTPONE,
    RobotsEvent.LIMITED: Effect.POSTPONE,
    RobotsEvent.BROKEN: Effect.AGAIN,
    RobotsEvent.FAILED: Effect.AGAIN,
}

#: By name, the default first.
POLICIES: Mapping[str, RobotsPolicy] = {
    policy.name: policy
    for policy in (
        # 2.3.1.4: after "a reasonably long period of time (for example, 30 days)".
        RobotsPolicy("rfc9309", _RFC9309, absent_after=30 * DAY),
        RobotsPolicy("rfc9309-strict", {**_RFC9309, RobotsEvent.FORBIDDEN: Effect.DENY}, absent_after=30 * DAY),
        # The paper names no figures: an hour between tries, and a week of failures before a site is given up.
        RobotsPolicy("paper", _PAPER, retries=(3600.0,), growth=1.0, max_failures=168, uses_copy=False),
    )
}
