"""The robots provider: the qualification machine for every site of a crawl, within a bounded memory.

Place in the flow: the frontier asks it before it hands a task out, and brings it every answer to a robots.txt request
(:mod:`gossamer.frontier.robots.contract`); :func:`answered` makes an event of the machine of it. States are kept encoded, since a
hundred thousand of them are; only those of sites that are crawled now are decoded, with their rules compiled, and sites whose
files say the same share these. Sites that do not fit are dropped, the longest unused first: then the site's robots.txt is asked
for again, unless the frontier restores the state that it kept.
"""

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import blake2b
from typing import Annotated, Literal
from weakref import WeakValueDictionary

import msgspec

from gossamer.engine.sheet import NoSettings, Sheet, setting
from gossamer.engine.unit import Provider
from gossamer.frontier.politeness.retries import asked_wait
from gossamer.frontier.robots.contract import Lesson, RobotsRuling, RobotsVerdict
from gossamer.frontier.robots.machine import (
    DAY,
    POLICIES,
    Act,
    Answered,
    Instruction,
    RobotsEvent,
    RobotsPolicy,
    RobotsState,
    State,
    look,
    step,
)
from gossamer.frontier.robots.rules import MAX_BYTES, ROBOTS_PATH, Rules, parse
from gossamer.values.errors import UnreadableUrl
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.url import canonical, of_field, scheme_of, site_of
from gossamer.values.visit import Response

#: Bytes of a validator that are kept: a longer one is not worth its memory on every host.
_MAX_VALIDATOR = 128

#: Events that need no look at the answer but its outcome. Every other outcome means that there was none.
_BY_OUTCOME: Mapping[Outcome, RobotsEvent] = {
    Outcome.NOT_MODIFIED: RobotsEvent.UNCHANGED,
    Outcome.CLIENT_ERROR: RobotsEvent.REFUSED,
    Outcome.RATE_LIMITED: RobotsEvent.LIMITED,
    Outcome.SERVER_ERROR: RobotsEvent.BROKEN,
    Outcome.DECODE_FAILED: RobotsEvent.CUT,
    Outcome.BLOCKED: RobotsEvent.SHUT,
    Outcome.ADDRESS_REFUSED: RobotsEvent.SHUT,
}
#: Statuses that Agarwal and others, section 3.4, tell from others of their class.
_BY_STATUS: Mapping[int, RobotsEvent] = {
    400: RobotsEvent.MISSING,
    404: RobotsEvent.MISSING,
    410: RobotsEvent.MISSING,
    401: RobotsEvent.FORBIDDEN,
    403: RobotsEvent.FORBIDDEN,
}
_READ = (Outcome.OK, Outcome.TRUNCATED)


def answered(response: Response, url: str, agent: str) -> tuple[Answered, tuple[str, ...]]:
    """The event that an answer is, with the rules for `agent`; and the Sitemap lines, which are not kept with a site.

    Args:
        response: however the fetch ended.
        url: the URL that was asked for: what a relative Location is resolved against.
        agent: our product token.
    """
    if response.outcome in _READ:
        return _read(response, agent)
    if response.outcome is Outcome.REDIRECT:
        target = _target(response.header("location"), url)
        return Answered(RobotsEvent.MOVED if target else RobotsEvent.LOST, response.status, target=target), ()
    event = _BY_OUTCOME.get(response.outcome, RobotsEvent.FAILED)
    if event is RobotsEvent.REFUSED:
        event = _BY_STATUS.get(response.status, event)
    wait = asked_wait(response.header("retry-after"), response.started + response.elapsed)
    return Answered(event, response.status, retry_after=wait), ()


def _read(response: Response, agent: str) -> tuple[Answered, tuple[str, ...]]:
    data = response.content
    rules = parse(data)
    if len(data) > MAX_BYTES:
        event = RobotsEvent.CAPPED
    elif response.cut:
        event = RobotsEvent.CUT
    else:
        event = RobotsEvent.WHOLE if rules.readable else RobotsEvent.UNREADABLE
    etag, modified = response.header("etag"), response.header("last-modified")
    found = Answered(
        event,
        response.status,
        rules=rules.for_agent(agent),
        etag=etag if len(etag) <= _MAX_VALIDATOR else "",
        modified=modified if len(modified) <= _MAX_VALIDATOR else "",
    )
    return found, () if event is RobotsEvent.CUT else rules.sitemaps


def _target(location: str, url: str) -> str:
    if not location:
        return ""
    try:
        target = canonical(of_field(location), url)
    except UnreadableUrl:
        return ""
    return target if scheme_of(target) in ("http", "https") else ""


#: Schemes whose hosts have a robots.txt (RFC 9309, 2.3).
SCHEMES = ("http://", "https://", "ftp://")

#: Seconds; a site that asks for this much between requests is reported as slow.
SLOW_DELAY = 300.0

#: Bytes that a site takes beside its encoded state and its name: two strings, a table entry.
_ENTRY = 250

PolicyName = Literal["rfc9309", "rfc9309-strict", "paper"]


class RobotsSheet(Sheet, frozen=True):
    agent: Annotated[
        str,
        setting(
            "Look for this product token in robots.txt.",
            min_length=1,
            restart="the kept answers were read for this token",
        ),
    ] = "Gossamer"
    policy: Annotated[
        PolicyName,
        setting("Interpret answers by this policy: `rfc9309`, `rfc9309-strict` (401 and 403 deny) or `paper`."),
    ] = "rfc9309"
    keep: Annotated[
        float, setting("Ask for robots.txt again when an answer is older than this.", unit="s", gt=0, le=DAY)
    ] = DAY
    retry: (
        Annotated[
            float,
            setting(
                "Wait this long before asking again for a robots.txt that could not be fetched; if left out, the "
                "policy decides.",
                unit="s",
                gt=0,
                le=DAY,
            ),
        ]
        | None
    ) = None
    max_failures: (
        Annotated[
            int,
            setting(
                "Deny a site for good after this many failed attempts in a row; 0 never gives up; if left out, the "
                "policy decides.",
                unit="attempts",
                ge=0,
            ),
        ]
        | None
    ) = None
    memory: Annotated[int, setting("Use at most this much memory for the states of all sites.", unit="bytes", ge=1)] = (
        64 << 20
    )
    ready_rules: Annotated[
        int, setting("Keep at most this many compiled rules of the sites that are being crawled.", unit="rules", ge=1)
    ] = 50_000


class _Ready(msgspec.Struct):
    """A site in use."""

    site: RobotsState
    delay: float = 0.0
    usage: tuple[str, ...] = ()
    weight: int = 0
    holds: tuple[float, float] = (0.0, 0.0)
    """From when and until when its rules are known to hold, in seconds since the epoch."""


class ObeyRobots(Provider[RobotsSheet]):
    """Obeys robots.txt. Implements `RobotsGate`."""

    keeps_state = True

    def __init__(self, sheet: RobotsSheet | None = None) -> None:
        super().__init__(sheet)
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._ready: OrderedDict[str, _Ready] = OrderedDict()
        self._alike: WeakValueDictionary[bytes, Rules] = WeakValueDictionary()
        self._rules = 0
        self._policy = _policy(self.sheet)
        self.metrics.gauge("sites", lambda: len(self._kept))
        self.metrics.gauge("state_bytes", lambda: self._bytes)
        self.metrics.gauge("ready_rules", lambda: self._rules)

    def changed(self, before: RobotsSheet) -> None:
        self._policy = _policy(self.sheet)
        for ready in self._ready.values():
            ready.holds = (0.0, 0.0)
        self._shed()

    # -- the contract

    def judge(self, task: Task, now: float) -> RobotsVerdict:
        url = task.url
        if not url.startswith(SCHEMES):
            return _NO_ROBOTS
        name = site_of(url)
        ready = self._find(name)
        rules = ready.site.rules
        if rules is None or not ready.holds[0] <= now < ready.holds[1]:
            instruction = look(ready.site, self._policy, now)
            if instruction.act is not Act.JUDGE or rules is None:
                return _unjudged(name, url, instruction, ready)
            if ready.site.state is State.QUALIFIED:
                ready.holds = (now, ready.site.until)  # to look again would say the same
        decision = rules.decide(self.sheet.agent, url)
        ruling = RobotsRuling.ALLOWED if decision.allowed else RobotsRuling.DENIED
        return RobotsVerdict(ruling, decision.rule, decision.line, delay=ready.delay, usage=ready.usage)

    def learned(self, site: str, response: Response, now: float, addresses: int = 1) -> Lesson:
        before = self._find(site).site
        found, sitemaps = answered(response, before.target or site + ROBOTS_PATH, self.sheet.agent)
        after = step(before, self._policy, found, now, addresses)
        self.metrics.count(f"answer:{after.event or found.event}")
        ready = self._keep(site, after)
        is_slow = ready.delay >= SLOW_DELAY
        if is_slow:
            self.metrics.count("slow_sites")
        return Lesson(
            state=after.state,
            event=after.event or found.event,
            settled=look(after, self._policy, now).act in (Act.JUDGE, Act.ALLOW, Act.DENY),
            delay=ready.delay,
            is_slow=is_slow,
            sitemaps=sitemaps,
        )

    def state(self, site: str) -> bytes:
        return self._kept.get(site, b"")

    def restore(self, site: str, state: bytes) -> None:
        try:
            self._keep(site, msgspec.msgpack.decode(state, type=RobotsState))
        except (ValueError, RecursionError):
            self.metrics.count("states_unreadable")
            self.forget(site)

    def forget(self, site: str) -> None:
        state = self._kept.pop(site, None)
        if state is not None:
            self._bytes -= _size(site, state)
        self._unready(site)

    # -- memory

    def known(self, site: str) -> RobotsState:
        return self._find(site).site

    def _find(self, name: str) -> _Ready:
        ready = self._ready.get(name)
        if ready is not None:
            self._ready.move_to_end(name)
            self._kept.move_to_end(name)
            return ready
        state = self._kept.get(name)
        if state is None:
            return _UNKNOWN
        self._kept.move_to_end(name)
        return self._make_ready(name, msgspec.msgpack.decode(state, type=RobotsState))

    def _keep(self, name: str, site: RobotsState) -> _Ready:
        self.forget(name)
        state = self._kept[name] = msgspec.msgpack.encode(site)
        self._bytes += _size(name, state)
        ready = self._make_ready(name, site)
        self._shed()
        return ready

    def _make_ready(self, name: str, site: RobotsState) -> _Ready:
        if site.rules is not None:
            # Many sites have the file of the program that runs them, so equal rules are kept once. The digest is a cryptographic
            # one: otherwise a site could make a file that replaces the rules of another site.
            digest = blake2b(msgspec.msgpack.encode(site.rules), digest_size=16).digest()
            site = msgspec.structs.replace(site, rules=self._alike.setdefault(digest, site.rules))
        rules, agent = site.rules, self.sheet.agent
        ready = self._ready[name] = _Ready(site, weight=1)
        if rules:
            ready.delay, ready.usage = rules.delay(agent) or 0.0, rules.usage_of(agent)
            ready.weight += sum(len(group.rules) for group in rules.groups)
        self._rules += ready.weight
        self._shed()
        return ready

    def _unready(self, name: str) -> None:
        ready = self._ready.pop(name, None)
        if ready is not None:
            self._rules -= ready.weight

    def _shed(self) -> None:
        """Drop what was unused the longest, but never the site that was used last."""
        while self._rules > self.sheet.ready_rules and len(self._ready) > 1:
            self._unready(next(iter(self._ready)))
        while self._bytes > self.sheet.memory and len(self._kept) > 1:
            self.metrics.count("states_dropped")
            self.forget(next(iter(self._kept)))


def _policy(sheet: RobotsSheet) -> RobotsPolicy:
    policy = msgspec.structs.replace(POLICIES[sheet.policy], keep=sheet.keep)
    if sheet.retry is not None:
        longest = max(sheet.retry, policy.longest_retry)
        policy = msgspec.structs.replace(policy, retries=(sheet.retry,), longest_retry=longest)
    if sheet.max_failures is not None:
        policy = msgspec.structs.replace(policy, max_failures=sheet.max_failures)
    return policy


def _size(name: str, state: bytes) -> int:
    return _ENTRY + len(name) + len(state)


def _unjudged(name: str, url: str, instruction: Instruction, ready: _Ready) -> RobotsVerdict:
    """The verdict where the rules of a robots.txt have no say."""
    if instruction.act is Act.FETCH:
        # Validators speak of what lay at the site itself: where it leads elsewhere, they say nothing.
        known = RobotsState() if instruction.target else ready.site
        return RobotsVerdict(
            RobotsRuling.FETCH_FIRST,
            url=instruction.target or name + ROBOTS_PATH,
            address=instruction.address,
            etag=known.etag,
            last_modified=known.modified,
        )
    if instruction.act is Act.WAIT:
        return RobotsVerdict(RobotsRuling.WAIT, instruction.reason, until=instruction.until)
    if instruction.act is Act.DENY and url != name + ROBOTS_PATH:
        return RobotsVerdict(RobotsRuling.DENIED, instruction.reason)
    return RobotsVerdict(RobotsRuling.ALLOWED, instruction.reason, delay=ready.delay, usage=ready.usage)


_UNKNOWN = _Ready(RobotsState())
_NO_ROBOTS = RobotsVerdict(RobotsRuling.ALLOWED, "its scheme has no robots.txt")
_IGNORED = RobotsVerdict(RobotsRuling.ALLOWED, "robots.txt is ignored")


class IgnoreRobots(Provider[NoSettings]):
    """Allows every URL and never fetches robots.txt (`--robots ignore`), for hosts that you own. Implements `RobotsGate`."""

    def judge(self, task: Task, now: float) -> RobotsVerdict:
        return _IGNORED

    def learned(self, site: str, response: Response, now: float, addresses: int = 1) -> Lesson:
        return Lesson(state=State.NEW, event="ignored", settled=True)

    def state(self, site: str) -> bytes:
        return b""

    def restore(self, site: str, state: bytes) -> None:
        """There is nothing to restore."""

    def forget(self, site: str) -> None:
        """There is nothing to forget."""
