"""The qualification machine: may a site be crawled now, and what must be asked first? Pure: no clock, no network.

After Agarwal and others, section 3.4, and RFC 9309, sections 2.3 and 2.4. Answers go in as :class:`Answered`, and out comes the
site's new :class:`RobotsState`; :func:`look` turns a state and the time into an :class:`Instruction`. The meaning of an
answer stands in the policy's table, its next state in :data:`TRANSITIONS`; :func:`to_mermaid` draws both. Times are
seconds since the epoch, since they outlive the process; a state that lies in the future by more than any interval
(a clock was set back) counts as due.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from gossamer.frontier.robots.policies import DAY, EVENTS, Effect, RobotsEvent, RobotsPolicy
from gossamer.frontier.robots.rules import Rules

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
    """The instruction for a URL of this site at this time."""
    if site.state is State.DISQUALIFIED:
        return Instruction(Act.DENY, reason=f"robots.txt could not be had {site.failures} times")
    if site.tries or site.hops:
        if _lies_ahead(site.after, now, LONGEST_WAIT):
            return Instruction(Act.WAIT, until=site.after, reason=_trouble(site))
        return Instruction(Act.FETCH, target=site.target, address=site.tries % max(addresses, 1))
    if site.state is State.QUALIFIED and _lies_ahead(site.until, now, policy.keep):
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
    event = _seen_from(site, policy, answered.event)
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
    if effect in (Effect.FOLLOW, Effect.AGAIN):
        return _under_way(site, policy, answered, effect, now, addresses)
    return _settled(site, policy, answered, effect, now)


def _seen_from(site: RobotsState, policy: RobotsPolicy, event: RobotsEvent) -> RobotsEvent:
    """An event as it is for this site: redirects are counted, and only a copy can be unchanged."""
    if event is RobotsEvent.MOVED and site.hops >= policy.redirects:
        return RobotsEvent.LOST
    if event is RobotsEvent.UNCHANGED and site.rules is None:
        return RobotsEvent.BROKEN
    return event


def _instead(policy: RobotsPolicy, failures: int, lasting: float) -> Effect:
    """The effect of a failed attempt, once there have been too many, or for too long."""
    if policy.max_failures and failures >= policy.max_failures:
        return Effect.GIVE_UP
    if policy.absent_after and lasting >= policy.absent_after:
        return Effect.FORGET
    return Effect.POSTPONE


def _under_way(
    site: RobotsState, policy: RobotsPolicy, answered: Answered, effect: Effect, now: float, addresses: int
) -> RobotsState:
    if effect is Effect.FOLLOW:
        return msgspec.structs.replace(site, hops=site.hops + 1, target=answered.target, tries=0, after=now)
    tries = site.tries + 1
    pause = policy.pause if tries % max(addresses, 1) == 0 else 0.0
    return msgspec.structs.replace(site, tries=tries, after=now + max(pause, _believed(answered.retry_after)))


def _settled(site: RobotsState, policy: RobotsPolicy, answered: Answered, effect: Effect, now: float) -> RobotsState:
    # A file behind a redirect is no copy of the site's own.
    etag, modified = ("", "") if site.hops else (answered.etag, answered.modified)
    site = msgspec.structs.replace(site, tries=0, hops=0, target="", after=0.0, until=now + policy.keep)
    if effect is Effect.OBEY:
        return msgspec.structs.replace(
            site, meaning=effect, rules=answered.rules or Rules(), etag=etag, modified=modified
        )
    if effect in (Effect.ALLOW, Effect.DENY):
        return msgspec.structs.replace(site, meaning=effect, rules=None, etag="", modified="")
    if effect is Effect.RENEW:
        return msgspec.structs.replace(site, meaning=Effect.OBEY)
    if effect is Effect.FORGET:
        return msgspec.structs.replace(site, meaning=effect)
    wait = max(policy.retry_after(site.failures), _believed(answered.retry_after))
    return msgspec.structs.replace(site, until=now + wait)


def _believed(retry_after: float) -> float:
    return min(max(retry_after, 0.0), LONGEST_WAIT)


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
