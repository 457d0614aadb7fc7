"""Conformance suites for parts of several agents: designations, outboxes, mail, marshalers, shared state."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from gossamer.agents.contract import (
    DesignationPolicy,
    DesignationTable,
    DomainCount,
    HostNames,
    RecentUrls,
    SharedState,
)
from gossamer.engine.gate import Receipt, current
from gossamer.storage.ledger.contract import Ledger
from gossamer.storage.mailbox.contract import Designation, Mail, Outbox, OwedTask
from gossamer.values.agents import MAILED, Designated, Member, mailed_task
from gossamer.values.task import Task

# Conformance suite for designations: run it over an implementation of your own.

#: Makes a designation of these members, with the usual rule: registered domains are assigned as a whole.
Make = Callable[[Sequence[Member]], Designation]

#: Enough domains for shares to show.
_RING_DOMAINS = [f"d{number}.example" for number in range(3_000)]

#: How far a share may be from its due, as a factor: a circle of 1,024 points strays by 3 %, and three times that is rare.
_STRAY = 1.25


def check_designation(make: Make) -> None:
    """Check that a designation keeps its promises."""
    three = [Member("agent-00"), Member("agent-01"), Member("agent-02", 2.0)]
    before = _owners(make(three))
    assert set(before.values()) == {one.agent for one in three}, "a member has no domain, or an unknown agent has one"
    assert _owners(make(three[::-1])) == before, "the result depends on the order of the members"
    alone = make(three[:1])
    assert {alone.owner(host) for host in ("127.0.0.1", "localhost", "[::1]", "co.uk")} == {"agent-00"}
    _check_domains(make(three))
    _check_shares(three, before)
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


def _check_domains(designation: Designation) -> None:
    for domain in [*_RING_DOMAINS[:100], "bbc.co.uk"]:
        owners = {designation.owner(host) for host in (domain, f"www.{domain}", f"a.b.{domain}")}
        assert len(owners) == 1, f"the hosts of {domain} belong to {', '.join(sorted(owners))}"


def _check_shares(members: Sequence[Member], owners: dict[str, str]) -> None:
    counts, whole = Counter(owners.values()), sum(one.capacity for one in members)
    for one in members:
        due = len(_RING_DOMAINS) * one.capacity / whole
        assert due / _STRAY < counts[one.agent] < due * _STRAY, (
            f"{one} has {counts[one.agent]} domains, {due:.0f} are due"
        )


# Conformance suite for outboxes: no owed URL is lost, wherever a group fails and whenever the process dies.


#: Closes what is open as a kill would, opens ledger and outbox again, and starts the outbox; at first both are empty. The outbox
#: is that of `agent-00`, its designation is :class:`ByLetter`, and the ledger is the one that owes (`divided-ledger`).
ReopenOutbox = Callable[[], Awaitable[tuple[Ledger, Outbox]]]

#: Turns of the event loop after which nothing more will come by itself: an outbox reads what it has in far fewer.
_OUTBOX_TURNS = 400

#: More than an outbox of the suite's size holds in memory, so that it has to read from the disk.
_MANY_OWED = 50


class _Failed(Exception):
    """Makes a group fail, so that it is not kept."""


class ByLetter:
    """Hosts that begin with `a` belong to `agent-00`, those with `b` to `agent-01`, and so on. Contract: `Designation`."""

    def owner(self, host: str) -> str:
        """Return the agent of a host."""
        return f"agent-{ord(host[0]) - ord('a'):02d}"


async def check_outbox(reopen: ReopenOutbox) -> None:
    """Check that an outbox that holds at most 8 URLs for an agent in memory keeps its promises."""
    await _Suite(reopen).run()


def _owed_task(host: str, number: int, depth: int = 1) -> Task:
    return Task(f"http://{host}.test/{number}", f"{host}.test", depth, "http://a.test/", "a href")


class _Suite:
    def __init__(self, reopen: ReopenOutbox) -> None:
        self._reopen = reopen

    async def run(self) -> None:
        await self._kill()
        await self._check_groups()
        await self._check_delivery()
        await self._check_nearer()
        await self._check_many()

    async def _check_groups(self) -> None:
        assert [self.outbox.is_ours(f"{letter}.test") for letter in "abc"] == [True, False, False]
        try:
            with self.ledger.group() as group:
                group.push([_owed_task("b", 0)])
                raise _Failed
        except _Failed:
            pass
        assert await self._take("agent-01") == [], "a URL was taken that a failed group had put in"
        self._push(_owed_task("a", 1), _owed_task("b", 1), _owed_task("c", 1))
        assert self._counted() == (2, 1), "a URL of another agent counts as discovered here"
        assert await self._urls("agent-02") == ["http://c.test/1"], "a URL went to another agent than its own"
        assert await self._urls("agent-00") == [], "a URL of this agent was put into the outbox"
        assert await self._urls("agent-01") == ["http://b.test/1"]
        assert await self._urls("agent-01") == [], "a URL that was taken came again"

    async def _check_delivery(self) -> None:
        await self._kill()
        [one] = await self._take("agent-01")
        self.outbox.delivered([one, one])
        await self._take("agent-01")
        assert self._counted()[0] == 1, "a delivered URL is still owed"
        await self._kill()
        assert await self._urls("agent-01") == [], "a delivered URL came again after a kill"
        [other] = await self._take("agent-02")
        assert other.task == _owed_task("c", 1), "a URL that was taken and not delivered is lost by a kill"
        self.outbox.delivered([other])
        await self._take("agent-02")

    async def _check_nearer(self) -> None:
        self._push(_owed_task("b", 2, depth=5))
        [far] = await self._take("agent-01")
        self._push(_owed_task("b", 2, depth=3))
        self.outbox.delivered([far])
        assert [one.task.depth for one in await self._take("agent-01")] == [3]
        await self._kill()
        [near] = await self._take("agent-01")
        assert near.task.depth == 3, "a lower depth was forgotten with the delivery of a higher one"
        assert self._counted()[0] == 1, "one URL counts twice"
        self.outbox.delivered([near])
        await self._take("agent-01")
        assert self._counted()[0] == 0

    async def _check_many(self) -> None:
        tasks = {letter: [_owed_task(letter, number) for number in range(_MANY_OWED)] for letter in "bc"}
        expected = sorted(task.url for task in tasks["b"])
        self._push(*(task for number in range(_MANY_OWED) for task in (tasks["b"][number], tasks["c"][number])))
        found: list[str] = []
        for number in range(3 * _MANY_OWED):  # agent-02 does not answer, and holds up nobody
            taken = await self._take("agent-01", 7)
            found += [one.task.url for one in taken]
            self.outbox.delivered(taken)
            if number == 1:
                more = [_owed_task("bb", number) for number in range(_MANY_OWED)]
                self._push(*more)
                expected = sorted([*expected, *(task.url for task in more)])
            if number == 3:
                await self._kill()
        assert sorted(set(found)) == expected, "a URL beyond the bound of memory is lost"
        assert self._counted()[0] == _MANY_OWED
        await self._kill()
        assert len(set(await self._urls("agent-02"))) == _MANY_OWED

    # -- small things

    async def _kill(self) -> None:
        self.ledger, self.outbox = await self._reopen()

    def _push(self, *tasks: Task) -> None:
        with self.ledger.group() as group:
            group.push(tasks)

    def _counted(self) -> tuple[int, int]:
        counters = self.ledger.counters()
        return counters.get("owed", 0), counters.get("discovered", 0)

    async def _urls(self, agent: str) -> list[str]:
        found: list[OwedTask] = []
        while taken := await self._take(agent):
            found += taken
        return [one.task.url for one in found]

    async def _take(self, agent: str, most: int = 1_000) -> Sequence[OwedTask]:
        """Return the URLs that can be taken now; none if a sender would have to wait."""
        taking = asyncio.ensure_future(self.outbox.take(agent, most))
        for _ in range(_OUTBOX_TURNS):
            await asyncio.sleep(0)
            if taking.done():
                return taking.result()
        taking.cancel()
        await asyncio.gather(taking, return_exceptions=True)
        return []


# Conformance suite for the mail of a master: a posted URL arrives, or is on the disk before its sender forgets it.

#: Closes what is open as a kill would, and opens the mail of the same master again, for `agent-00` and `agent-01`.
ReopenMail = Callable[[], Awaitable[Mail]]

#: Lets so much time pass that an agent which commits nothing counts as away.
Wait = Callable[[], Awaitable[None]]

#: Turns of the event loop after which nothing more will come by itself.
_TURNS = 50

#: More than a mail of the suite's size holds in memory.
_MANY = 30


async def check_mail(reopen: ReopenMail, wait: Wait) -> None:
    """Check that the mail of a master that holds at most 8 URLs for an agent in memory keeps its promises."""
    await _check_delivery(await reopen(), wait)
    mail = await reopen()
    await _check_away(mail, wait)
    await _check_after_kill(await reopen())
    await _check_many(await reopen(), reopen)


async def _check_delivery(mail: Mail, wait: Wait) -> None:
    tasks = [_task("a", number) for number in range(3)]
    others = [_task("b", number) for number in range(2)]
    done = await _post(mail, [*_for("agent-00", tasks), *_for("agent-01", others)])
    first = await mail.take("agent-00", 2)
    assert _urls(first) == [one.url for one in tasks[:2]], "mail comes in another order, or too much at once"
    rest, other = await mail.take("agent-00", 9), await mail.take("agent-01", 9)
    assert (_urls(rest), _urls(other)) == ([tasks[2].url], [one.url for one in others]), "mail went astray"
    mail.delivered(first)
    mail.delivered(rest)
    assert not done, "the receipt is released, and some has not arrived"
    mail.delivered(other)
    assert done == [1], "all has arrived, and the receipt is held"
    await wait()
    assert await _nothing(mail, "agent-00"), "mail that has arrived comes again"


async def _check_away(mail: Mail, wait: Wait) -> None:
    tasks = [_task("a", number) for number in range(4)]
    done = await _post(mail, _for("agent-00", tasks))
    on_way = await mail.take("agent-00", 1)
    assert not done
    await wait()
    assert done == [1], "an agent is away, and its mail is not on the disk"
    later = await _post(mail, _for("agent-00", [_task("a", 9)]))
    assert later == [1], "what comes for an agent that is away is not written at once"
    mail.delivered(on_way)
    back = await mail.take("agent-00", 1)
    assert _urls(back) == [tasks[0].url], "an agent that is back is not sent what waits, or not what was on its way"
    assert back[0].task.relation == MAILED, "its finder owes it no more, and the agent is not told so"


async def _check_after_kill(mail: Mail) -> None:
    urls: set[str] = set()
    while len(urls) < 5:
        batch = await mail.take("agent-00", 9)
        urls |= set(_urls(batch))
        mail.delivered(batch)
    assert urls >= {_task("a", number).url for number in (0, 1, 2, 3, 9)}, "mail on the disk is lost with the process"


async def _check_many(mail: Mail, reopen: ReopenMail) -> None:
    tasks = [_task("b", number) for number in range(_MANY)]
    done = await _post(mail, _for("agent-01", tasks))
    assert not done, "what memory holds is on its way yet"
    mail = await reopen()
    found = _urls(await mail.take("agent-01", _MANY))
    assert len(found) >= _MANY - 8, "more is held in memory than it has room for"
    assert set(found) <= {one.url for one in tasks}


async def _post(mail: Mail, tasks: Sequence[Designated]) -> list[int]:
    """Post URLs under a receipt. The returned list says whether it was released."""
    done: list[int] = []
    receipt = Receipt(lambda: done.append(1))
    token = current.set(receipt)
    try:
        await mail.post(tasks)
    finally:
        current.reset(token)
    receipt.release()
    return done


async def _nothing(mail: Mail, agent: str) -> bool:
    taking = asyncio.ensure_future(mail.take(agent, 1))
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    is_empty = not taking.done()
    taking.cancel()
    await asyncio.gather(taking, return_exceptions=True)
    return is_empty


def _task(host: str, number: int) -> Task:
    return Task(f"http://{host}.test/{number}", f"{host}.test", 1, "http://c.test/", "a href")


def _for(agent: str, tasks: Sequence[Task]) -> list[Designated]:
    return [Designated(agent, one) for one in tasks]


def _urls(owed: Sequence[OwedTask]) -> list[str]:
    tasks = (mailed_task(one.task) if one.task.relation == MAILED else one.task for one in owed)
    return [one.url for one in tasks if one is not None]


# Conformance suites for the providers of the marshaler: run them over an implementation of your own.

#: Domains of every shape that a marshaler meets.
_DOMAINS = [*(f"d{number}.example" for number in range(300)), "127.0.0.1", "2001:db8::1", "localhost", "co.uk"]

_AGENTS = (Member("agent-00"), Member("agent-01"), Member("agent-02", 2.0))


def check_recent_urls(make: Callable[[int], RecentUrls]) -> None:
    """Check that a recently-seen table of a given capacity keeps its promises."""
    table = make(4)
    urls = [f"http://a.test/{number}" for number in range(20)]
    assert list(table.misses(urls)) == urls, "a URL is held back although it was not inserted"
    table.insert(urls[0], 3)
    assert list(table.misses(urls[:2], 3)) == urls[1:2], "an inserted URL is not held back, or another one is"
    assert list(table.misses(urls[:1], 4)) == [], (
        "a URL is not held back although it is found again farther from the seeds"
    )
    assert list(table.misses(urls[:1], 2)) == urls[:1], (
        "a URL is held back although it is found again nearer to the seeds"
    )
    table.insert(urls[0], 1)
    table.insert(urls[0], 9)
    assert list(table.misses(urls[:1], 1)) == [], "of two depths the lesser is not remembered"
    for url in urls:
        table.insert(url)
    assert len(urls) - len(table.misses(urls)) <= 4, "more URLs are held than the capacity"
    assert list(table.misses(urls[-1:])) == [], "the URL that was inserted last is not held"


def check_host_names(names: HostNames) -> None:
    """Check that a table of host names keeps its promises, for the hosts of this suite."""
    for host in (*_DOMAINS, *(f"www.{domain}" for domain in _DOMAINS)):
        name = names.name_of(host)
        assert names.name_of(name) == name, f"{host} is called {name}, and that has another name"
        assert names.name_of(host) == name, f"{host} has two names"


async def check_designation_table(make: Callable[[Sequence[Member]], Awaitable[DesignationTable]]) -> None:
    """Check that a table of designations keeps its promises.

    Args:
        make: drops the earlier table as a kill would, and opens it again for these members.
    """
    table = await make(_AGENTS)
    assert list(table.designated()) == [], "a new table is not empty"
    agents = await table.designate(_DOMAINS)
    assert len(agents) == len(_DOMAINS), "one agent for each domain"
    assert set(agents) <= {one.agent for one in _AGENTS}, "a domain was given to somebody unknown"
    doubled = await table.designate([*_DOMAINS[::-1], *_DOMAINS, "new.example", "new.example"])
    assert doubled[:-2] == [*agents[::-1], *agents], "a domain has another agent when it is asked for again"
    assert doubled[-1] == doubled[-2], "a domain has two agents in one answer"
    known = dict(table.designated())
    assert known == {**dict(zip(_DOMAINS, agents, strict=True)), "new.example": doubled[-1]}, (
        "the list differs from the designations that were made"
    )
    table = await make((*_AGENTS, Member("agent-03")))
    assert dict(table.designated()) == known, "designations did not survive a kill"
    assert await table.designate(_DOMAINS) == agents, "a domain moved, though its agent is still there"
    table.assign(_DOMAINS[0], "agent-03")
    assert await table.designate(_DOMAINS[:1]) == ["agent-03"], "a domain that a person assigned has another agent"
    table = await make((*_AGENTS[:2], Member("agent-02", 0.0), Member("agent-03")))
    after = await table.designate(_DOMAINS)
    assert "agent-02" not in after, "an agent that has left was given a domain"
    stay = [one if one != "agent-02" else other for one, other in zip(["agent-03", *agents[1:]], after, strict=True)]
    assert after == stay, "a domain moved whose agent did not leave"
    assert dict(table.designated()) == {**known, **dict(zip(_DOMAINS, after, strict=True))}, "a move was not kept"


def check_designation_policy(policy: DesignationPolicy) -> None:
    """Check that a policy chooses one of the candidates, even of one, and gives each of them domains in the end."""
    for member in _AGENTS:
        assert policy.choose("a.example", [DomainCount(member)]) == member.agent, "the only candidate was not chosen"
    counts = Counter[str]()
    for domain in _DOMAINS:
        chosen = policy.choose(domain, [DomainCount(member, counts[member.agent]) for member in _AGENTS])
        assert chosen in {one.agent for one in _AGENTS}, f"{chosen!r} was chosen, which is not a candidate"
        counts[chosen] += 1
    assert len(counts) == len(_AGENTS), "an agent gets no domain"


# Conformance suite for state that several processes share: run it over an implementation of your own.

_SCHEMA = "CREATE TABLE IF NOT EXISTS suite (name TEXT PRIMARY KEY, value INTEGER NOT NULL)"


class _FailedWrite(Exception):
    """Makes a block fail, so that it is not kept."""


def check_shared_state(opened: Callable[[], SharedState]) -> None:
    """Check that a state that is open twice keeps its promises.

    Args:
        opened: opens the same state once more, as another process would.
    """
    one, other = opened(), opened()
    one.open(_SCHEMA)
    other.open(_SCHEMA)
    with one.writing() as connection:
        connection.execute("INSERT INTO suite VALUES ('a', 1)")
        assert _rows(other) == [], "others see an unfinished change"
    assert _rows(one) == _rows(other) == [("a", 1)], "a change that was written is not there for all"
    with suppress(_FailedWrite), other.writing() as connection:
        connection.execute("UPDATE suite SET value = 2")
        raise _FailedWrite
    assert _rows(one) == _rows(other) == [("a", 1)], "a block that failed has changed something"
    with other.writing() as connection:
        connection.execute("UPDATE suite SET value = value + 1")
    assert _rows(opened()) == [("a", 2)], "a later process does not find what was written"


def _rows(state: SharedState) -> list[tuple[str, int]]:
    return state.reading.execute("SELECT name, value FROM suite").fetchall()
