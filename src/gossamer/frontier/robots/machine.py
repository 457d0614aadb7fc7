"""The qualification machine: may a site be crawled now, and what must be asked first? Pure: no clock, no network.

After Agarwal and others, section 3.4, and RFC 9309, sections 2.3 and 2.4. Answers go in as :class:`Answered`, and out comes the
site's new :class:`RobotsState`; :func:`look` turns a state and the time into an :class:`Instruction`. The meaning of an
answer stands in the policy's table, its next state in :data:`TRANSITIONS`; :func:`to_mermaid` draws both. Times are
seconds since the epoch, since they outlive the process; a state that lies in the future by more than any interval
(a clock was set back) counts as due.

Of the policies, `rfc9309` is the default. `paper` is the qualification of Agarwal and others, where anything unclear disqualifies a
site for the time being. `rfc9309-strict` differs from the RFC in one row: a site that asks for a password wants no crawler.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from gossamer.frontier.robots.rules import Rules

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
    # Not in the RFC: the missing part may be the one that forbids, so it is like a connection that broke earlier.
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


#: Seconds; a server's own `Retry-After` beyond this is not believed.
LONGEST_WAIT = DAY

#: Seconds by which a state may lie further ahead than its interval: clocks are put right by as much, and answers and
#: questions need not come with their times in order.
_SLACK = 60.0


class State(StrEnum):
    """The state of a site."""

    NEW = "new"
    QUALIFIED = "qualified"
    UNREACHABLE = "unreachable"
    DISQUALIFIED = "disqualified"


#: The state after an effect; None stays where it is. A site that was given up takes no more answers.
_LEADS_TO: Mapping[Effect, State | None] = {
    Effect.OBEY: State.QUALIFIED,
    Effect.ALLOW: State.QUALIFIED,
    Effect.DENY: State.QUALIFIED,
    Effect.RENEW: State.QUALIFIED,
    Effect.FOLLOW: None,
    Effect.AGAIN: None,
    Effect.POSTPONE: State.UNREACHABLE,
    Effect.FORGET: State.QUALIFIED,
    Effect.GIVE_UP: State.DISQUALIFIED,
}
TRANSITIONS: Mapping[tuple[State, Effect], State] = {
    (state, effect): target or state
    for state in (State.NEW, State.QUALIFIED, State.UNREACHABLE)
    for effect, target in _LEADS_TO.items()
    # Nothing was ever had from a new site: there is no copy to renew, and no long time in which it failed.
    if state is not State.NEW or effect not in (Effect.RENEW, Effect.FORGET)
}

#: Effects that are a success: the failure count goes back to zero.
_SUCCESSES = frozenset((Effect.OBEY, Effect.ALLOW, Effect.DENY, Effect.RENEW))


class RobotsState(msgspec.Struct, frozen=True, array_like=True):
    """Everything that is remembered of a site, and persists. New fields are appended, with defaults."""

    state: State = State.NEW
    meaning: Effect = Effect.ALLOW
    """Of a qualified site: `obey`, `allow`, `deny` or `forget`."""
    rules: Rules | None = None
    """The last robots.txt that was read, for our agent alone."""
    date: float = 0.0
    """The robots date: when it was last asked for."""
    until: float = 0.0
    """A qualified site's answer is good until then; an unreachable site is not asked before."""
    failures: int = 0
    """Successive attempts that failed."""
    since: float = 0.0
    """The time of the first of them."""
    tries: int = 0
    """Requests of the attempt under way that were not answered."""
    hops: int = 0
    """Redirects followed in it."""
    target: str = ""
    """Their target; empty for the site's own robots.txt."""
    after: float = 0.0
    """The next request of the attempt is not made before."""
    event: RobotsEvent | None = None
    """The result of the last request, for the story of a URL."""
    status: int = 0
    """Its HTTP status; 0 without one."""
    etag: str = ""
    modified: str = ""
    """Validators of the copy, to ask whether it has changed (RFC 9110, 13.1)."""


class Answered(msgspec.Struct, frozen=True):
    """An event with what belongs to it."""

    event: RobotsEvent
    status: int = 0
    rules: Rules | None = None
    target: str = ""
    """Of `moved`: the canonical URL."""
    retry_after: float = 0.0
    """Seconds that the server asked us to wait."""
    etag: str = ""
    modified: str = ""


class Act(StrEnum):
    """The action for a URL of the site."""

    JUDGE = "judge"
    """By the rules of the state."""
    ALLOW = "allow"
    DENY = "deny"
    FETCH = "fetch"
    """Ask for robots.txt first."""
    WAIT = "wait"


class Instruction(msgspec.Struct, frozen=True):
    """An action, with what belongs to it."""

    act: Act
    target: str = ""
    """Of `fetch`: the redirect to follow; empty for the site's own robots.txt."""
    address: int = 0
    """Of `fetch`: which of the host's addresses to begin with, from 0."""
    until: float = 0.0
    """Of `wait`."""
    reason: str = ""
    """Of `deny`, `allow` and `wait`, for people."""


def look(site: RobotsState, policy: RobotsPolicy, now: float, addresses: int = 1) -> Instruction:
    if site.state is State.DISQUALIFIED:
        return Instruction(Act.DENY, reason=f"robots.txt could not be had {site.failures} times")
    if site.tries or site.hops:
        if _lies_ahead(site.after, now, LONGEST_WAIT):
            return Instruction(Act.WAIT, until=site.after, reason=_trouble(site))
        return Instruction(Act.FETCH, target=site.target, address=site.tries % max(addresses, 1))
    if site.state is State.QUALIFIED and now < site.until <= now + policy.keep + _SLACK:
        if site.meaning is Effect.DENY and site.event is RobotsEvent.SHUT:
            return _SHUT
        is_judged = site.rules is not None and site.meaning is not Effect.DENY
        return _JUDGE if is_judged else _QUALIFIED.get(site.meaning, _FETCH)
    if site.state is State.UNREACHABLE and _lies_ahead(site.until, now, LONGEST_WAIT):
        if policy.uses_copy and site.rules is not None:
            return _JUDGE
        return Instruction(Act.WAIT, until=site.until, reason=_trouble(site))
    return _FETCH


_JUDGE = Instruction(Act.JUDGE)
_FETCH = Instruction(Act.FETCH)
_SHUT = Instruction(Act.DENY, reason="robots.txt redirects to a host that this crawl must not ask")
_QUALIFIED: Mapping[Effect, Instruction] = {
    Effect.ALLOW: Instruction(Act.ALLOW, reason="no robots.txt"),
    Effect.FORGET: Instruction(Act.ALLOW, reason="robots.txt has been unreachable for too long to count"),
    Effect.DENY: Instruction(Act.DENY, reason="robots.txt is forbidden"),
}


def _lies_ahead(time: float, now: float, longest: float) -> bool:
    return now < time <= now + longest + _SLACK


def _trouble(site: RobotsState) -> str:
    return f"robots.txt: {EVENTS[site.event]}" if site.event else "robots.txt"


def step(site: RobotsState, policy: RobotsPolicy, answered: Answered, now: float, addresses: int = 1) -> RobotsState:
    """The site after an answer.

    Args:
        site: as it was.
        policy: what answers mean.
        answered: what came.
        now: when, in seconds since the epoch.
        addresses: how many the host has; each is asked before a round is over.
    """
    if site.state is State.DISQUALIFIED:
        return site
    event = answered.event
    if event is RobotsEvent.MOVED and site.hops >= policy.redirects:
        event = RobotsEvent.LOST
    elif event is RobotsEvent.UNCHANGED and site.rules is None:
        event = RobotsEvent.BROKEN
    effect = policy.meanings[event]
    failures, since = site.failures, site.since
    if effect is Effect.AGAIN and site.tries + 1 >= policy.rounds * max(addresses, 1):
        effect = Effect.POSTPONE
    if effect is Effect.POSTPONE:
        failures, since = failures + 1, site.since or now
        effect = _instead(policy, failures, now - since)
    elif effect in _SUCCESSES:
        failures, since = 0, 0.0
    site = msgspec.structs.replace(
        site,
        state=TRANSITIONS[site.state, effect],
        date=now,
        failures=failures,
        since=since,
        event=event,
        status=answered.status,
    )
    believed = min(max(answered.retry_after, 0.0), LONGEST_WAIT)
    if effect is Effect.FOLLOW:
        return msgspec.structs.replace(site, hops=site.hops + 1, target=answered.target, tries=0, after=now)
    if effect is Effect.AGAIN:
        tries = site.tries + 1
        pause = policy.pause if tries % max(addresses, 1) == 0 else 0.0
        return msgspec.structs.replace(site, tries=tries, after=now + max(pause, believed))
    return _settled(site, policy, answered, effect, now, believed)


def _instead(policy: RobotsPolicy, failures: int, lasting: float) -> Effect:
    """The effect of a failed attempt, once there have been too many, or for too long."""
    if policy.max_failures and failures >= policy.max_failures:
        return Effect.GIVE_UP
    if policy.absent_after and lasting >= policy.absent_after:
        return Effect.FORGET
    return Effect.POSTPONE


def _settled(
    site: RobotsState, policy: RobotsPolicy, answered: Answered, effect: Effect, now: float, believed: float
) -> RobotsState:
    # A file behind a redirect is no copy of the site's own.
    etag, modified = ("", "") if site.hops else (answered.etag, answered.modified)
    site = msgspec.structs.replace(site, tries=0, hops=0, target="", after=0.0, until=now + policy.keep)
    if effect is Effect.OBEY:
        rules = answered.rules or Rules()
        return msgspec.structs.replace(site, meaning=effect, rules=rules, etag=etag, modified=modified)
    if effect in (Effect.ALLOW, Effect.DENY):
        return msgspec.structs.replace(site, meaning=effect, rules=None, etag="", modified="")
    if effect in (Effect.RENEW, Effect.FORGET):
        return msgspec.structs.replace(site, meaning=Effect.OBEY if effect is Effect.RENEW else effect)
    return msgspec.structs.replace(site, until=now + max(policy.retry_after(site.failures), believed))


def to_mermaid(policy: RobotsPolicy) -> str:
    """The machine under this policy as a Mermaid state diagram, drawn from the tables."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.NEW}"]
    for state in State:
        labels: dict[State, list[str]] = {}
        for effect in Effect:
            target = TRANSITIONS.get((state, effect))
            if target is not None and (label := _label(policy, effect)):
                labels.setdefault(target, []).append(label)
        lines += [f"    {state} --> {target}: {'<br/>'.join(texts)}" for target, texts in labels.items()]
    return "\n".join(lines)


def _label(policy: RobotsPolicy, effect: Effect) -> str:
    """An effect with what brings it about under a policy; empty where nothing does. Mermaid allows no colon in it."""
    if effect is Effect.GIVE_UP:
        return f"{effect} ({policy.max_failures} failures)" if policy.max_failures else ""
    if effect is Effect.FORGET:
        return f"{effect} (unreachable for {policy.absent_after / DAY:g} days)" if policy.absent_after else ""
    events = [str(event) for event, meant in policy.meanings.items() if meant is effect]
    if effect is Effect.POSTPONE:
        events.append("again in vain")
    return f"{effect} ({', '.join(events)})" if events else ""
