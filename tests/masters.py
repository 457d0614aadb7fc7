"""Conformance suites for what masters have and share: recent URLs, names of hosts, designations, shared state."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from gossamer.agents.contract import DesignationTable, SharedState
from gossamer.agents.marshaler import GivenHostNames, RecentUrlTable
from gossamer.values.agents import Member

#: Domains of every shape that a marshaler meets.
_DOMAINS = [*(f"d{number}.example" for number in range(300)), "127.0.0.1", "2001:db8::1", "localhost", "co.uk"]


_AGENTS = (Member("agent-00"), Member("agent-01"), Member("agent-02", 2.0))


def check_recent_urls(make: Callable[[int], RecentUrlTable]) -> None:
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


def check_host_names(names: GivenHostNames) -> None:
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
