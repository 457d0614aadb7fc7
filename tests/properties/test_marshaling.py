"""Whatever URLs come in whatever batches: each goes to the agent of its domain, and none is lost."""

import asyncio
import tempfile
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from gossamer.agents.designations import DesignationSheet, KeptDesignations, RandomAgent
from gossamer.agents.marshaler import GivenHostNames, Marshal, RecentRule, RecentUrlsSheet, RecentUrlTable
from gossamer.engine.ends import Out
from gossamer.engine.local import LocalConnector
from gossamer.parsing.filters import ConstraintFilter
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.values.agents import Designated
from gossamer.values.errors import UnreadableUrl
from gossamer.values.hosts import registered_domain
from gossamer.values.task import Task
from gossamer.values.url import canonical, host_of, plain_host, with_host

HOSTS = ("a.test", "www.a.test", "b.test", "127.0.0.1", "[::1]:81", "xn--bcher-kva.test", "c.co.uk")
TASKS = st.builds(
    lambda host, path, depth: Task(f"http://{host}/{path}", host_of(f"http://{host}/"), depth),
    st.sampled_from(HOSTS),
    st.integers(0, 5),
    st.integers(0, 3),
)
TEXTS = st.lists(
    st.sampled_from(
        (
            "http://",
            "https://",
            "a.",
            "test",
            "127.0.0.1",
            "255.1.",
            ":8080",
            ":80",
            ":0",
            ":99999",
            "xn--",
            "/",
            "..",
            ".",
            "%2e",
            "%2E",
            "%C3",
            "%2",
            "%",
            "?",
            "?q=",
            "&x",
            "-",
            "0",
            "0x7f",
            "1.",
            "@",
            ":80",
            "#",
            "Ä",
        )
    ),
    max_size=9,
).map("".join)


BATCHES = st.lists(st.lists(TASKS, max_size=12), max_size=5)
RULES = st.sampled_from(("second-chance", "saturation"))


def test_every_url_goes_to_the_one_agent_of_its_domain_at_its_least_depth() -> None:
    """One table for all examples: it may know domains before, and opening a ledger takes longer than an example."""
    with asyncio.Runner() as runner, tempfile.TemporaryDirectory() as folder:
        ledger = RocksLedger(LedgerSheet(directory=folder))
        runner.run(ledger.start())
        table = KeptDesignations(DesignationSheet(members=("agent-00", "agent-01", "agent-02")))
        table.ledger, table.policy = ledger, RandomAgent()
        runner.run(table.start())

        @given(BATCHES, st.integers(1, 8), RULES)
        def holds(batches: list[list[Task]], capacity: int, rule: RecentRule) -> None:
            check(batches, runner.run(marshaled(table, batches, RecentUrlsSheet(capacity=capacity, rule=rule))))

        holds()
        runner.run(ledger.stop())


def check(batches: list[list[Task]], made: list[Designated]) -> None:
    agents: dict[str, set[str]] = {}
    nearest: dict[str, int] = {}
    for one in made:
        agents.setdefault(registered_domain(one.task.host), set()).add(one.agent)
        nearest[one.task.url] = min(nearest.get(one.task.url, 99), one.task.depth)
    assert all(len(those) == 1 for those in agents.values())
    wanted: dict[str, int] = {}
    for task in chain.from_iterable(batches):
        wanted[task.url] = min(wanted.get(task.url, 99), task.depth)
    assert nearest == wanted


async def marshaled(table: KeptDesignations, batches: list[list[Task]], recent: RecentUrlsSheet) -> list[Designated]:
    marshal = Marshal()
    marshal.recent, marshal.hosts, marshal.constraints = RecentUrlTable(recent), GivenHostNames(), ConstraintFilter()
    marshal.designations = table
    connector = LocalConnector("outbox", Designated, 1_000)
    marshal.outbox = Out("outbox", connector)
    for batch in batches:
        await marshal.filter_many(batch)
    return connector.poll(1_000)[0]


@given(TEXTS)
def test_what_is_plain_is_canonical_and_has_the_host_that_the_parser_finds(text: str) -> None:
    host = plain_host(text)
    if host:
        assert canonical(text, "http://other.test/") == text, "by the parser"
        assert host == host_of(text)


@given(TEXTS, st.sampled_from(["b.test", "127.0.0.1", "::1"]))
def test_another_host_changes_nothing_but_the_host(text: str, host: str) -> None:
    try:
        url = canonical(text)
    except UnreadableUrl:
        return
    if not host_of(url) or not url.startswith("http"):
        return
    renamed = with_host(url, host)
    assert canonical(renamed) == renamed
    assert host_of(renamed) == host
    assert with_host(renamed, host_of(url)) == url
