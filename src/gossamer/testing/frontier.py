"""Conformance suites for parts that decide what is fetched, when, by which agent and where it runs: rules of politeness, robots,
traversals, prioritizers, policies of revisits, designations, clusters.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from itertools import product
from math import inf
from signal import SIGKILL
from typing import Protocol

from gossamer.agents.contract import Cluster, DesignationPolicy, DomainCount, Placed
from gossamer.frontier.contract import (
    DEEPEST,
    LEVELS,
    Outlook,
    PolitenessRule,
    Prioritizer,
    RevisitPolicy,
    TaskStanding,
    Traversal,
)
from gossamer.frontier.robots.contract import RobotsAnswers, RobotsGate, RobotsRuling, RobotsVerdict
from gossamer.storage.mailbox.contract import Designation
from gossamer.testing.clock import HUNG_AFTER
from gossamer.testing.parsing import SHAPES
from gossamer.values.agents import Member
from gossamer.values.outcome import Outcome
from gossamer.values.page_history import Belief, KnownPage, Signals
from gossamer.values.task import Task
from gossamer.values.url import host_of
from gossamer.values.visit import Response


def check_politeness_rule(rule: PolitenessRule, hosts: Sequence[str] = ("a.test", "b.test", "127.0.0.1", "")) -> None:
    """Check that a politeness rule keeps its promises: its word can be read, and its answers are waits."""
    assert rule.word.isidentifier() and rule.word.islower(), "the word is no single word in small letters, as `night`"
    for host, wall in product(hosts, (0.0, 1_700_000_000.0, 4e9)):
        seconds = rule.rest(host, wall)
        assert 0.0 <= seconds < inf, "a rest is neither negative nor without an end"
        assert rule.rest(host, wall) == seconds, "the same question has two answers"


_NOW = 1_700_000_000.0


def check_robots_answers(make: Callable[[], RobotsAnswers]) -> None:
    """Check that a store of robots answers keeps its promises.

    Args:
        make: returns a started store. Each call opens the same place, as another crawl would.
    """
    one, two = make(), make()
    assert one.find("a") == b"", "nothing was kept, but something was found"
    one.keep("a", b"\0state", _NOW)
    assert two.find("a") == b"\0state", "another crawl does not find what one crawl kept"
    assert two.find("a ") == two.find("A") == b"", "the answer under one name was found under another"
    two.keep("a", b"later", _NOW + 1)
    assert one.find("a") == b"later", "the earlier of two states was found"
    assert one.claim("b", _NOW) == 0.0, "a crawl is told to wait although no other asks"
    assert one.claim("b", _NOW) == 0.0, "a crawl that said that it asks is told to wait for itself"
    one.release("b")
    two.release("never claimed")
    assert two.claim("b", _NOW) == 0.0, "a crawl that has stopped asking still keeps others waiting"
    two.release("b")


#: Tasks of every shape that a frontier meets.
TASKS = tuple(
    Task(url=url, host=f"h{number}.test", depth=depth, source="http://a.test/", relation="a href")
    for number, url in enumerate(SHAPES)
    for depth in (0, 1, 7, 8, 10_000)
)

#: Standings of tasks that a frontier may know, extremes first.
STANDINGS = (
    TaskStanding(),
    TaskStanding(site=0.0),
    TaskStanding(site=1.0),
    TaskStanding(site=0.7),
    TaskStanding(in_degree=1),
    TaskStanding(in_degree=1 << 40),
)


def check_prioritizer(prioritizer: Prioritizer) -> None:
    """Check that a prioritizer, started, keeps its promises."""
    assert list(prioritizer.levels([], [])) == [], "no level without a task"
    pairs = [(task, standing) for task in TASKS for standing in STANDINGS]
    levels = _levels(prioritizer, pairs)
    assert len(levels) == len(pairs), "one level for each task"
    assert all(type(level) is int and 0 <= level < LEVELS for level in levels), f"levels are 0 to {LEVELS - 1}"
    assert levels == [_levels(prioritizer, [pair])[0] for pair in pairs], "a level depends on the other tasks"
    order = list(range(len(pairs)))
    random.Random(1).shuffle(order)
    shuffled = _levels(prioritizer, [pairs[number] for number in order])
    assert shuffled == [levels[number] for number in order], "a level depends on what was asked before"


def _levels(prioritizer: Prioritizer, pairs: Sequence[tuple[Task, TaskStanding]]) -> list[int]:
    return list(prioritizer.levels([task for task, _ in pairs], [standing for _, standing in pairs]))


def check_traversal(make: Callable[[], Traversal]) -> None:
    """Check that a traversal keeps its promises.

    Args:
        make: returns a fresh, started traversal each time.
    """
    traversal = make()
    source = TASKS[0]
    assert list(traversal.follow([], source)) == [], "an empty call has an empty result"
    assert list(traversal.follow([], None)) == [], "an empty call has an empty result"
    choose = random.Random(1)
    calls = [(choose.sample(TASKS, choose.randrange(len(TASKS))), choose.choice((None, source))) for _ in range(100)]
    for tasks, origin in calls:
        followed = list(traversal.follow(tasks, origin))
        places = [tasks.index(task) for task in followed]
        assert places == sorted(set(places)), "links keep their order, and come once"
    for task in TASKS:
        for urgency in range(LEVELS):
            levels = traversal.level(task, urgency), traversal.host_level(task, urgency)
            assert 0 <= levels[0] <= DEEPEST, f"levels within a host are 0 to {DEEPEST}"
            assert 0 <= levels[1] < LEVELS, f"levels of hosts are 0 to {LEVELS - 1}"
            assert levels == (traversal.level(task, urgency), traversal.host_level(task, urgency)), "a level wavers"
    first, second = make(), make()
    for tasks, origin in calls:
        assert list(first.follow(tasks, origin)) == list(second.follow(tasks, origin)), (
            "the same calls have the same result"
        )


#: One day: for longer no robots.txt is good (RFC 9309, 2.4).
_DAY = 86_400.0

SITE = "http://a.test"
PRIVATE = f"{SITE}/private/page"
PUBLIC = f"{SITE}/public/page"

#: Sites that share a name, a port or a scheme with :data:`SITE`, and are others.
OTHERS = ("https://a.test", "http://a.test:8080", "http://www.a.test", "http://b.test")

ANSWER = Response(Outcome.OK, status=200, body=b"User-agent: *\nDisallow: /private/\nCrawl-delay: 7\n")

_LOCATIONS = (
    "",
    "\0",
    *["/", "/robots.txt", "http://b.test/r", "javascript:x", "http://[", "//", "http://a.test/robots.txt"],
)
_RETRIES = ("", "5", "-5", "9" * 400, "soon", "٣", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT")

#: Every way in which a request can end, with what hostile servers add.
ENDINGS = (
    *(Response(outcome, status=0) for outcome in Outcome),
    *(Response(Outcome.OK, status=200, body=body) for body in (b"", b"\0" * 9, b"\xff\xfe\xfd", b"<html>" * 999)),
    Response(Outcome.OK, status=200, body=b"User-agent: *\nDisall", cut="disconnect"),
    Response(Outcome.OK, status=200, body=b"#" * (1 << 21)),
    *(Response(Outcome.REDIRECT, status=301, headers=(("location", to),)) for to in _LOCATIONS),
    *(Response(Outcome.CLIENT_ERROR, status=status) for status in (400, 401, 403, 404, 410, 418, 451, 499)),
    *(Response(Outcome.RATE_LIMITED, status=429, headers=(("retry-after", text),)) for text in _RETRIES),
)


def check_robots(make: Callable[[], RobotsGate]) -> None:
    """Check that a robots gate that obeys keeps its promises.

    Args:
        make: returns a started gate that has learned nothing, with our own product token.
    """
    gate = make()
    verdict = _ask(gate, PUBLIC)
    assert verdict.ruling is RobotsRuling.FETCH_FIRST, "a URL was judged before its robots.txt was known"
    assert verdict.url == f"{SITE}/robots.txt", f"{verdict.url} is not where robots.txt is"
    assert _ask(gate, PUBLIC) == verdict, "equal questions have different answers"
    lesson = gate.learned(SITE, ANSWER, _NOW)
    assert lesson.settled, "a whole robots.txt settles a site"
    assert lesson.delay == 7.0, "Crawl-delay was not read"
    assert _ask(gate, PUBLIC).ruling is RobotsRuling.ALLOWED, "an allowed URL was denied"
    assert _ask(gate, PUBLIC).delay == 7.0, "Crawl-delay is not told with the verdict"
    denied = _ask(gate, PRIVATE)
    assert denied.ruling is RobotsRuling.DENIED and denied.rule and denied.line == 2, "a denial names its rule and line"
    assert _ask(gate, f"{SITE}/robots.txt").ruling is RobotsRuling.ALLOWED, "robots.txt itself is always allowed"
    for url in ("file:///etc/x", "data:,x", "mailto:a@a.test"):
        assert _ask(gate, url).ruling is RobotsRuling.ALLOWED, f"{url} has no robots.txt"
    gate.forget(SITE)
    assert _ask(gate, PUBLIC).ruling is RobotsRuling.FETCH_FIRST, "a forgotten answer still counts"
    gate.forget("http://never-seen.test")
    gate = make()
    gate.learned(SITE, ANSWER, _NOW)
    for other in OTHERS:
        verdict = _ask(gate, f"{other}/public/page")
        assert verdict.ruling is RobotsRuling.FETCH_FIRST, f"what holds for {SITE} was taken for {other}"
        assert verdict.url == f"{other}/robots.txt"
    assert _ask(gate, PUBLIC, _NOW + 1).ruling is RobotsRuling.ALLOWED, "what was learned is good for a while"
    assert _ask(gate, PUBLIC, _NOW + _DAY + 1).ruling is RobotsRuling.FETCH_FIRST, "an answer is good for a day at most"
    back = _ask(gate, PUBLIC, _NOW - 2 * _DAY)
    assert back.ruling is RobotsRuling.FETCH_FIRST, "a clock that went back makes no answer last"
    gate.learned(SITE, ANSWER, _NOW + _DAY + 1)
    assert _ask(gate, PUBLIC, _NOW + _DAY + 2).ruling is RobotsRuling.ALLOWED
    first, second = make(), make()
    assert first.state(SITE) == b"", "something is kept although nothing is known"
    for answer in (ANSWER, Response(Outcome.RATE_LIMITED, status=429), Response(Outcome.CLIENT_ERROR, status=404)):
        first.learned(SITE, answer, _NOW)
        second.restore(SITE, first.state(SITE))
        assert second.state(SITE) == first.state(SITE), "a restored state is kept as it was"
        for url in (PRIVATE, PUBLIC):
            for now in (_NOW, _NOW + 30, _NOW + _DAY, _NOW + 2 * _DAY):
                assert _ask(second, url, now) == _ask(first, url, now), "a restored gate judges otherwise"
    for damaged in (b"", b"\xc1", b"\x90" * 99, first.state(SITE)[:-1], b"\xdd\xff\xff\xff\xff"):
        second.restore(SITE, damaged)
        assert _ask(second, PUBLIC).ruling in RobotsRuling, "a damaged state stops the gate"
    for ending in ENDINGS:
        _check_ending(make(), ending)


def _ask(gate: RobotsGate, url: str, now: float = _NOW) -> RobotsVerdict:
    return gate.judge(Task(url, host_of(url)), now)


def _check_ending(gate: RobotsGate, ending: Response) -> None:
    """Check that a site gets a ruling however its requests end, and finally one that needs no further request at once."""
    now = _NOW
    for _ in range(60):
        verdict = _ask(gate, PUBLIC, now)
        if verdict.ruling in (RobotsRuling.ALLOWED, RobotsRuling.DENIED):
            return
        if verdict.ruling is RobotsRuling.WAIT:
            assert verdict.until > now, "the verdict to wait names no time"
            if verdict.until > now + 30:
                assert verdict.until <= now + _DAY, "no server can make a site wait for longer than a day"
                return
            now = verdict.until
            continue
        assert verdict.url.startswith(("http://", "https://")), f"{verdict.url!r} cannot be asked for"
        assert gate.learned(SITE, ending, now).event, "an answer taught nothing"
    raise AssertionError(f"60 requests for one robots.txt after {ending.outcome}")


#: Pages that never changed, always changed, were visited once or ten thousand times, at once or over years, and were said to have
#: changed or not.
_PAGES = [
    KnownPage(
        visited_at=1e9 + age,
        changed_at=1e9 + age * last,
        visits=visits,
        changes=round((visits - 1) * share),
        waits=waits,
        signalled=signalled,
    )
    for age, last, visits, share, waits, signalled in product(
        (0.0, _DAY, 3650 * _DAY), (0.0, 1.0), (1, 10_000), (0.0, 0.5, 1.0), (0.0, 60.0, 365 * _DAY), (0, 1, 1_000)
    )
]

#: Pages that change all the time, or never, or unknown; worth much or little; at hosts that are right, or wrong, about
#: changes.
_OUTLOOKS = [
    Outlook(Belief(shape, scale), weight, signals, price)
    for shape, scale, weight, signals, price in product(
        (1e-3, 1.0, 1e4),
        (1e-3, _DAY, 1e10),
        (1e-3, 1e3),
        (Signals(), Signals(1e4, 0, 0, 1), Signals(0, 1e4, 1e4, 1)),
        (1e-3, _DAY),
    )
]


def check_revisit_policy(policy: RevisitPolicy) -> None:
    """Check that a policy keeps its promises."""
    usual = Outlook()
    asked = [(page, usual) for page in _PAGES] + [(page, outlook) for page in _PAGES[::7] for outlook in _OUTLOOKS]
    first = [policy.interval(page, outlook) for page, outlook in asked]
    assert first == [policy.interval(page, outlook) for page, outlook in asked], "the same page has the same interval"
    assert all(0 < interval < inf for interval in first), "an interval is a number above 0, in seconds"
    if not policy.is_priced:
        return
    for page in _PAGES:
        waits = [policy.interval(page, Outlook(price=price)) for price in (1.0, 100.0, 10_000.0)]
        assert waits == sorted(waits), "a page waits no shorter for a visit that costs more"


#: Makes a designation of these members, with the usual rule: registered domains are assigned as a whole.
MakeDesignation = Callable[[Sequence[Member]], Designation]

#: Enough domains for shares to show.
_RING_DOMAINS = [f"d{number}.example" for number in range(3_000)]

#: How far a share may be from its due, as a factor: a circle of 1,024 points strays by 3 %, and three times that is rare.
_STRAY = 1.25


def check_designation(make: MakeDesignation) -> None:
    """Check that a designation keeps its promises."""
    three = [Member("agent-00"), Member("agent-01"), Member("agent-02", 2.0)]
    ring = make(three)
    before = _owners(ring)
    assert set(before.values()) == {one.agent for one in three}, "a member has no domain, or an unknown agent has one"
    assert _owners(make(three[::-1])) == before, "the result depends on the order of the members"
    alone = make(three[:1])
    assert {alone.owner(host) for host in ("127.0.0.1", "localhost", "[::1]", "co.uk")} == {"agent-00"}
    for domain in [*_RING_DOMAINS[:100], "bbc.co.uk"]:
        owners = {ring.owner(host) for host in (domain, f"www.{domain}", f"a.b.{domain}")}
        assert len(owners) == 1, f"the hosts of {domain} belong to {', '.join(sorted(owners))}"
    counts, whole = Counter(before.values()), sum(one.capacity for one in three)
    for one in three:
        has, due = counts[one.agent], len(_RING_DOMAINS) * one.capacity / whole
        assert due / _STRAY < has < due * _STRAY, f"{one} has {has} domains, {due:.0f} are due"
    more = [*three, Member("agent-03", 0.5)]
    after = _owners(make(more))
    moved = {domain for domain in _RING_DOMAINS if before[domain] != after[domain]}
    assert moved, "a member that joined got nothing"
    assert {after[domain] for domain in moved} == {"agent-03"}, "a domain moved between members that were there before"
    left = _owners(make(more[1:]))
    moved = {domain for domain in _RING_DOMAINS if left[domain] != after[domain]}
    assert {after[domain] for domain in moved} == {"agent-00"}, "a domain moved although its agent did not leave"


def _owners(designation: Designation) -> dict[str, str]:
    return {domain: designation.owner(domain) for domain in _RING_DOMAINS}


def check_designation_policy(policy: DesignationPolicy) -> None:
    """Check that a policy chooses one of the candidates, even of one, and gives each of them domains in the end."""
    members = (Member("agent-00"), Member("agent-01"), Member("agent-02", 2.0))
    for member in members:
        assert policy.choose("a.example", [DomainCount(member)]) == member.agent, "the only candidate was not chosen"
    counts = Counter[str]()
    for domain in _RING_DOMAINS[:300]:
        chosen = policy.choose(domain, [DomainCount(member, counts[member.agent]) for member in members])
        assert chosen in {one.agent for one in members}, f"{chosen!r} was chosen, which is not a candidate"
        counts[chosen] += 1
    assert len(counts) == len(members), "an agent gets no domain"


#: Seconds between two questions to an agent that begins.
_PAUSE = 0.05


class TrialCrawl(Protocol):
    """A crawl that is about to begin, whose agents stay at work until they are told to stop."""

    agents: Sequence[str]
    """The names of two agents."""

    async def life(self, agent: str) -> str:
        """The name of an agent's present life, by its own word, as its supervisor asks it; empty where it does not answer."""
        ...

    async def stop(self, agent: str) -> None:
        """Tell an agent to end in order."""
        ...

    def has_told_its_end(self, agent: str) -> bool:
        """Whether the crawl's state says that it has ended in order."""
        ...


async def check_cluster(make: Callable[[], Cluster], crawl: TrialCrawl, say: Callable[[str], None] = print) -> None:
    """Check that a cluster keeps the promises of `agents.contract.Cluster` and `Placed`.

    Args:
        make: returns a new cluster of the crawl, which is made while no other one is open.
        crawl: what is to run; its orders are written.
        say: takes what processes tell people.
    """
    stays, dies = crawl.agents
    async with asyncio.timeout(HUNG_AFTER):
        cluster = make()
        cluster.prepare([stays])
        assert not await cluster.living(crawl.agents), "promise 2: processes are living that were never placed"
        placed = {name: await cluster.place(name) for name in crawl.agents}
        assert all(one.is_alive for one in placed.values()), "what was placed counts as dead"
        lives = {name: await _begun(crawl.life, name) for name in crawl.agents}
        homes = [name for node in await cluster.nodes() for name in node.processes]
        assert sorted(homes) == sorted(crawl.agents), f"nodes: each process is at one node, and not {homes}"

        ends = {name: asyncio.create_task(one.ended(say)) for name, one in placed.items()}
        placed[dies].kill()
        placed[dies].kill()
        assert await ends[dies] == -SIGKILL, "Placed.ended: one that was killed ends by SIGKILL"
        await _check_gone(placed[dies], crawl, dies)
        assert list(await cluster.living(crawl.agents)) == [stays], "a process that was killed counts as living"

        ends[dies] = asyncio.create_task((await cluster.place(dies)).ended(say))
        again = await _begun(crawl.life, dies)
        assert again != lives[dies], "promise 1: the name has the life that was killed"
        await cluster.close()
        # The cluster of the next supervisor.
        cluster, lives[dies] = make(), again
        found = await cluster.living(crawl.agents)
        assert found.keys() == lives.keys(), f"promise 2: the next supervisor finds only {sorted(found)}"
        for name in crawl.agents:
            assert await _begun(crawl.life, name) == lives[name], f"promise 2: {name} was begun again by its cluster"
            await crawl.stop(name)
        for name in crawl.agents:
            assert await found[name].ended(say) == 0, "Placed.ended: one that was told to stop ends with 0"
            assert crawl.has_told_its_end(name), f"Placed.ended: {name} has ended in order, and nothing says how"
            await _check_gone(found[name], crawl, name)
            found[name].kill()  # safe at any time
        assert not await cluster.living(crawl.agents), "processes that have ended count as living"
        await cluster.close()
        # The first supervisor is gone by now; where it is the parent of processes, it is told of their ends all the same.
        _, waiting = await asyncio.wait(ends.values(), timeout=_PAUSE)
        for task in waiting:
            task.cancel()


async def _begun(life: Callable[[str], Awaitable[str]], name: str) -> str:
    """The life of an agent, once it answers."""
    while not (found := await life(name)):
        await asyncio.sleep(_PAUSE)
    return found


async def _check_gone(placed: Placed, crawl: TrialCrawl, name: str) -> None:
    assert not placed.is_alive, f"{name} has ended, and counts as alive"
    assert not await crawl.life(name), f"Placed, promise 1: {name} has ended, and something answers in its place"
