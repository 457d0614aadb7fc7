"""The marshaler: each of its six steps, and all of them in the filter."""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from tests.names import FakeDns, Zone

from gossamer.agents.contract import DomainCount
from gossamer.agents.designations import (
    ByDomain,
    ByPlace,
    ByPlaceSheet,
    DesignationSheet,
    KeptDesignations,
    LeastLoaded,
    RandomAgent,
)
from gossamer.agents.marshaler import (
    GivenHostNames,
    HostNamesSheet,
    Marshal,
    MarshalSheet,
    RecentUrlsSheet,
    RecentUrlTable,
    named,
    not_recent,
    refused,
    validated,
)
from gossamer.agents.ring import Ring
from gossamer.crawls.catalog import catalog
from gossamer.engine.component import Consumer
from gossamer.engine.ends import In
from gossamer.engine.errors import SettingError
from gossamer.engine.gate import Receipt, current
from gossamer.engine.planning import plan
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import NoSettings
from gossamer.engine.unit import Provider
from gossamer.engine.wiring import parse
from gossamer.parsing.filters import ConstraintFilter, ConstraintSheet
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing import Stand
from gossamer.testing.clock import HUNG_AFTER
from gossamer.values.agents import Designated, Member
from gossamer.values.errors import UsageError
from gossamer.values.request_identity import Requested
from gossamer.values.task import Task
from gossamer.values.url import MAX_URL_BYTES, host_of
from gossamer.values.visit import ORDER

Run = Callable[[Coroutine[Any, Any, None]], None]

WEB = ("http", "https")


def task(url: str, depth: int = 1, relation: str = "a href") -> Task:
    return Task(url, host_of(url), depth, "http://found.test/", relation)


class Steady:
    """A policy that gives every domain to one agent, and remembers what it was asked."""

    def __init__(self, agent: str = "agent-00") -> None:
        self.agent = agent
        self.asked: list[tuple[str, dict[str, int]]] = []

    def choose(self, domain: str, candidates: Sequence[DomainCount]) -> str:
        self.asked.append((domain, {one.member.agent: one.domains for one in candidates}))
        return self.agent


@asynccontextmanager
async def table_in(folder: Path, policy: object, *members: str) -> AsyncIterator[KeptDesignations]:
    ledger = RocksLedger(LedgerSheet(directory=str(folder)))
    await ledger.start()
    table = KeptDesignations(DesignationSheet(members=members or ("agent-00", "agent-01")))
    table.ledger, table.policy = ledger, policy  # type: ignore[assignment]
    try:
        await table.start()
        yield table
    finally:
        await ledger.stop()


# -- step 1


def test_what_no_agent_can_fetch_is_refused_by_name() -> None:
    rules = {
        "mailto:a@b.test": "scheme:mailto",
        "ftp://a.test/": "scheme:ftp",
        "http://": "not_a_url",
        "": "not_a_url",
        "\ud800": "not_a_url",
        "http://a.test/" + "x" * MAX_URL_BYTES: "too_long",
    }
    assert {url: validated(Task(url, "a.test"), WEB) for url in rules} == rules
    assert validated(Task("file:///etc/passwd", ""), ("file",)) == "no_host"
    for fault in ({"depth": -1}, {"depth": 2**63}, {"level": 300}, {"source": "http://a.test/\n"}):
        assert validated(msgspec.structs.replace(Task("http://a.test/", "a.test"), **fault), ("http",)) == "unfit"


def test_a_url_that_is_canonical_passes_as_it_is() -> None:
    for url in ("http://a.test/", "https://b.test/x?y=1", "http://c.test:8080/", "http://[::1]/", "http://a.test/%C3"):
        given = task(url)
        assert validated(given, WEB) is given


def test_a_url_of_a_careless_sender_gets_its_canonical_form_and_its_own_host() -> None:
    passed = validated(Task("HTTP://u:p@A.test:80/b/../c#d", "elsewhere.test"), WEB)
    assert passed == Task("http://a.test/c", "a.test")
    assert validated(Task("http://a.test/", "elsewhere.test"), WEB) == Task("http://a.test/", "a.test")


# -- step 2


def test_urls_come_once_and_those_of_the_table_not_at_all() -> None:
    table = RecentUrlTable(RecentUrlsSheet(capacity=10))
    table.insert("http://a.test/1", 1)
    given = [task("http://a.test/1"), task("http://a.test/2"), task("http://a.test/2"), task("http://a.test/3")]
    assert not_recent(given, table) == [given[1], given[3]]


def test_of_copies_in_one_batch_the_one_that_is_nearest_to_the_seeds_passes() -> None:
    table = RecentUrlTable(RecentUrlsSheet(capacity=10))
    table.insert("http://a.test/1", 3)
    given = [
        task("http://a.test/1", 5),
        task("http://a.test/1", 2),
        task("http://a.test/2", 4),
        task("http://a.test/2", 1),
    ]
    assert set(not_recent(given, table)) == {given[1], given[3]}


def test_requests_that_differ_are_not_copies() -> None:
    posted = msgspec.structs.replace(task("http://a.test/"), request=Requested(method="POST", body=b"x", mark="m"))
    given = [task("http://a.test/"), posted]
    assert not_recent(given, RecentUrlTable()) == given


def test_an_order_is_never_held_back_or_changed() -> None:
    order = Task("order:...", "a.test", relation=ORDER)
    assert validated(order, WEB) is order
    assert not_recent([order, order], RecentUrlTable()) == [order, order]
    assert named(order, lambda host: "b.test") is order
    assert refused([order], ["never"]) == [""]


# -- step 3


@pytest.mark.parametrize(
    ("url", "name", "renamed"),
    [
        ("http://www.a.test:8080/www.a.test?x", "a.test", "http://a.test:8080/www.a.test?x"),
        ("http://192.0.2.7/x", "a.test", "http://a.test/x"),
        ("http://[2001:db8::1]:81/x", "a.test", "http://a.test:81/x"),
        ("https://a.test/", "2001:db8::1", "https://[2001:db8::1]/"),
    ],
)
def test_a_task_goes_by_the_canonical_name_of_its_host(url: str, name: str, renamed: str) -> None:
    one = named(task(url), lambda host: name)
    assert (one.url, one.host) == (renamed, name)


def test_host_names_are_those_of_the_table_and_a_bad_table_is_refused() -> None:
    names = GivenHostNames(HostNamesSheet(aliases=("www.a.test=a.test", "192.0.2.7=a.test", "[2001:db8::1]=a.test")))
    hosts = ["www.a.test", "192.0.2.7", "2001:db8::1", "a.test", "b.test"]
    assert [names.name_of(host) for host in hosts] == ["a.test"] * 4 + ["b.test"]
    with pytest.raises(SettingError, match="write OTHER=NAME"):
        GivenHostNames(HostNamesSheet(aliases=("a.test",)))
    before, names.sheet = names.sheet, HostNamesSheet(aliases=("b.test=c.test",))
    names.changed(before)
    assert names.name_of("b.test") == "c.test"
    assert names.name_of("www.a.test") == "www.a.test"


# -- step 6


def test_the_least_loaded_agent_is_that_with_the_fewest_domains_for_its_capacity() -> None:
    small, large = Member("agent-00"), Member("agent-01", 4.0)
    policy = LeastLoaded()
    assert policy.choose("a.test", [DomainCount(small, 2), DomainCount(large, 7)]) == "agent-01"
    assert policy.choose("a.test", [DomainCount(small, 2), DomainCount(large, 9)]) == "agent-00"
    assert policy.choose("a.test", [DomainCount(small, 2), DomainCount(large, 8)]) == "agent-00"


def test_by_domain_is_what_the_ring_says() -> None:
    members = [Member("agent-00"), Member("agent-01", 2.0), Member("agent-02")]
    domains = [f"d{number}.test" for number in range(200)]
    for those in (members, members[1:]):
        policy, ring = ByDomain(), Ring(those)
        chosen = [policy.choose(domain, [DomainCount(one) for one in those]) for domain in domains]
        assert chosen == [ring.owner(domain) for domain in domains]


def test_by_place_takes_the_least_loaded_agent_that_stands_there(run: Run) -> None:
    candidates = [
        DomainCount(Member("agent-00"), 0),
        DomainCount(Member("agent-01", place="budapest"), 9),
        DomainCount(Member("agent-02", place="budapest"), 8),
    ]
    policy = ByPlace(ByPlaceSheet(places=("hu=budapest", "192.0.2.0/24=budapest", "no=oslo")))
    run(policy.start())
    chosen = [policy.choose(domain, candidates) for domain in ("bme.hu", "192.0.2.9", "uio.no", "192.0.3.9", "a.test")]
    assert chosen == ["agent-02", "agent-02", "agent-00", "agent-00", "agent-00"]
    before, policy.sheet = policy.sheet, ByPlaceSheet(places=("no=budapest",))
    policy.changed(before)
    assert policy.choose("uio.no", candidates) == "agent-02"


@pytest.mark.parametrize(("places", "line"), [((), "by-place has no places"), (("hu",), "names no place")])
def test_a_policy_without_its_table_is_refused_in_one_line(places: tuple[str, ...], line: str, run: Run) -> None:
    with pytest.raises(UsageError, match=line):
        run(ByPlace(ByPlaceSheet(places=places)).start())


def test_lots_are_drawn_by_capacity() -> None:
    candidates = [DomainCount(Member("agent-00", 0.5)), DomainCount(Member("agent-01", 4.5))]
    policy = RandomAgent()
    drawn = [policy.choose("a.test", candidates) for _ in range(2_000)]
    # A tenth of 2,000, from which 10 standard deviations are 134.
    assert 66 < drawn.count("agent-00") < 334


def test_the_table_counts_what_it_has_given_over_its_restarts(tmp_path: Path, run: Run) -> None:
    async def check() -> None:
        policy = Steady()
        async with table_in(tmp_path, policy) as table:
            await table.designate(["a.test", "b.test", "a.test"])
            table.assign("b.test", "agent-01")
        async with table_in(tmp_path, policy) as table:
            assert await table.designate(["c.test"]) == ["agent-00"]
            assert sorted(table.designated()) == [
                ("a.test", "agent-00"),
                ("b.test", "agent-01"),
                ("c.test", "agent-00"),
            ]
        counts = [("a.test", 0, 0), ("b.test", 1, 0), ("c.test", 1, 1)]
        assert policy.asked == [(domain, {"agent-00": one, "agent-01": other}) for domain, one, other in counts]

    run(check())


def test_domains_of_an_agent_that_has_left_are_given_away_again(tmp_path: Path, run: Run) -> None:
    async def check() -> None:
        policy = Steady()
        async with table_in(tmp_path, policy) as table:
            await table.designate(["a.test"])
            before, table.sheet = table.sheet, DesignationSheet(members=("agent-00=0", "agent-01"))
            table.changed(before)
            policy.agent = "agent-01"
            assert await table.designate(["a.test"]) == ["agent-01"]
            assert table.metrics.counters["moved"] == 1
            assert policy.asked[-1] == ("a.test", {"agent-01": 0})

    run(check())


def test_a_table_refuses_what_it_cannot_keep(tmp_path: Path, run: Run) -> None:
    async def check() -> None:
        async with table_in(tmp_path, Steady("agent-07")) as table:
            with pytest.raises(UsageError, match="'agent-07', which is not an agent at work"):
                await table.designate(["a.test"])
            with pytest.raises(UsageError, match="no agent 'agent-07' at work; choose one of agent-00, agent-01"):
                table.assign("a.test", "agent-07")
            with pytest.raises(UsageError, match="is not a host"):
                table.assign("http://a.test/", "agent-00")
            assert list(table.designated()) == []

    run(check())
    with pytest.raises(UsageError, match="one agent at least"):
        KeptDesignations(DesignationSheet(members=("agent-00=0",)))
    with pytest.raises(UsageError, match="two agents are called 'agent-00'"):
        KeptDesignations(DesignationSheet(members=("agent-00", "agent-00=2")))


def test_hosts_that_are_addresses_get_names_that_lead_back_to_them_each_looked_up_once(run: Run) -> None:
    def pointed(address: str) -> str:
        return ipaddress.ip_address(address).reverse_pointer

    zones = {
        pointed("192.0.2.1"): Zone(names=("liar.test", "one.test")),
        pointed("192.0.2.2"): Zone(names=("liar.test", "192.0.2.9")),
        pointed("192.0.2.4"): Zone(names=("www.a.test",)),
        "one.test": ["192.0.2.1"],
        "liar.test": ["192.0.2.99"],
        "www.a.test": ["192.0.2.4"],
    }
    hosts = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "b.test"]

    async def check() -> None:
        async with FakeDns(zones) as servers:
            sheet = HostNamesSheet(aliases=("www.a.test=a.test",), servers=(servers.server,))
            names = GivenHostNames(sheet)
            await names.learn(hosts)
            assert not servers.asked and [*map(names.name_of, hosts)] == hosts, "by default nothing is looked up"
            names.sheet = msgspec.structs.replace(sheet, reverse=True)
            for _ in range(2):
                await names.learn(hosts)
                assert [*map(names.name_of, hosts)] == ["one.test", "192.0.2.2", "192.0.2.3", "a.test", "b.test"]
            assert servers.asked["one.test"] == 1 and names.metrics.counters["looked_up"] == 4
            await names.stop()

    run(check())


# -- all of them


@asynccontextmanager
async def marshal_in(
    folder: Path, sheet: MarshalSheet | None = None, policy: object = None, *members: str
) -> AsyncIterator[Marshal]:
    async with table_in(folder, policy or LeastLoaded(), *members) as table:
        marshal = Marshal(sheet)
        marshal.recent = RecentUrlTable(RecentUrlsSheet(capacity=1_000))
        marshal.hosts = GivenHostNames(HostNamesSheet(aliases=("www.a.test=a.test",)))
        marshal.constraints = ConstraintFilter(ConstraintSheet(never=("test.secret.*",)))
        marshal.designations = table
        yield marshal


def test_urls_are_tagged_with_the_agent_of_their_domain_and_the_rest_is_counted(tmp_path: Path, run: Run) -> None:
    async def check() -> None:
        async with marshal_in(tmp_path) as marshal, Stand(marshal) as stand:
            urls = [
                "http://www.a.test/",
                "http://b.test/",
                "http://x.a.test/",
                "mailto:x",
                "http://b.test/",
                "http://c.secret.test/",
            ]
            await stand.give("inbox", *(Task(url, "") for url in urls))
            made = await stand.made("outbox")
            assert [(one.agent, one.task.url, one.task.host) for one in made] == [
                ("agent-00", "http://a.test/", "a.test"),
                ("agent-01", "http://b.test/", "b.test"),
                ("agent-00", "http://x.a.test/", "x.a.test"),
            ]
            await stand.give("inbox", task("http://b.test/", 0), task("http://b.test/2"))
            assert [one.task.url for one in await stand.made("outbox")] == ["http://b.test/2"]
            counters = marshal.metrics.counters
            names = ("refused:scheme:mailto", "refused:never", "recent")
            assert [counters[name] for name in names] == [1, 1, 2]

    run(check())


def test_seeds_are_left_to_agents_where_the_wiring_says_so(tmp_path: Path, run: Run) -> None:
    async def check() -> None:
        sheet = MarshalSheet(seeds_as_links=False)
        async with marshal_in(tmp_path, sheet) as marshal, Stand(marshal) as stand:
            given = [Task(f"http://{host}/", "") for host in ("seed.secret.test", "www.a.test")]
            await stand.give("inbox", *given, task("http://c.secret.test/"))
            assert [one.task.url for one in await stand.made("outbox")] == [one.url for one in given]

    run(check())


@pytest.mark.parametrize(
    ("sheet", "agents"),
    [
        (MarshalSheet(), ["agent-00", "agent-00", "agent-01"]),
        (MarshalSheet(division="host"), ["agent-00", "agent-01", "agent-00"]),
        (MarshalSheet(together=("a.test b.test",)), ["agent-00", "agent-00", "agent-00"]),
        (MarshalSheet(schemes=("https",)), []),
    ],
)
def test_the_rule_of_assignable_domains_and_the_schemes_are_settings(
    tmp_path: Path, run: Run, sheet: MarshalSheet, agents: list[str]
) -> None:
    async def check() -> None:
        async with marshal_in(tmp_path, sheet) as marshal, Stand(marshal) as stand:
            await stand.give("inbox", task("http://x.a.test/"), task("http://y.a.test/"), task("http://b.test/"))
            assert [one.agent for one in await stand.made("outbox")] == agents

    run(check())


def test_no_copy_of_a_url_is_held_back_before_the_first_one_is_safe_with_its_agent(tmp_path: Path, run: Run) -> None:
    """A copy that is held back is acknowledged at once: its sender forgets it, and only the first copy is left."""

    async def check() -> None:
        async with marshal_in(tmp_path) as marshal, Stand(marshal) as stand:
            done: list[str] = []
            for name in ("first", "second"):
                receipt = Receipt(lambda name=name: done.append(name))  # type: ignore[misc]
                token = current.set(receipt)
                await stand.give("inbox", task("http://a.test/"))
                current.reset(token)
                receipt.release()
            assert done == [], "a sender was told to forget a URL that no agent has committed"
            made = await stand.made("outbox")  # releases their receipts, as a commit elsewhere does
            assert made == [Designated("agent-00", task("http://a.test/"))] * 2
            assert done == ["first", "second"]
            await stand.give("inbox", task("http://a.test/"))
            assert await stand.made("outbox") == []

    run(check())


def test_nothing_is_passed_on_that_the_table_could_not_keep(tmp_path: Path, run: Run) -> None:
    async def check() -> None:
        async with marshal_in(tmp_path, None, Steady("agent-07")) as marshal:
            marshal.outbox = None  # type: ignore[assignment]
            with pytest.raises(UsageError, match="not an agent at work"):
                await marshal.filter_many([task("http://a.test/")])
            assert marshal.recent.misses(["http://a.test/"], 9) == ["http://a.test/"]

    run(check())


class Sink(Consumer[NoSettings]):
    """Stands where URLs leave for the agents."""

    inbox: In[Designated]
    got: ClassVar[list[Designated]] = []

    def consume(self, one: Designated) -> None:
        self.got.append(one)


WIRING = """
[providers]
ledger = { use = "ledger", settings = { directory = "FOLDER" } }
policy = { POLICY }
hosts = { use = "host-names" }
recent = { use = "recent-urls", settings = { rule = "saturation" } }
constraints = { use = "constraints", settings = { only = ["test.*"] } }

[providers.designations]
use = "designations"
settings = { members = ["agent-00", "agent-01@here"] }
providers = { ledger = "ledger", policy = "policy" }

[connectors]
found = {}
designated = {}

[components.seeds]
use = "seeds"
ports = { outbox = "found" }
settings = { urls = ["http://a.test/", "http://b.example/", "http://c.test/"] }

[components.marshal]
use = "marshal"
ports = { inbox = "found", outbox = "designated" }
providers = { recent = "recent", hosts = "hosts", constraints = "constraints", designations = "designations" }

[components.sink]
use = "sink"
ports = { inbox = "designated" }
"""


class Alphabetic(Provider[NoSettings]):
    """A policy of the user's own."""

    def choose(self, domain: str, candidates: Sequence[DomainCount]) -> str:
        return candidates[domain > "b"].member.agent


@pytest.mark.parametrize(
    ("policy", "agents"),
    [
        ('use = "by-place", settings = { places = ["test=here"] }', ["agent-01", "agent-01"]),
        ('use = "alphabetic"', ["agent-00", "agent-01"]),
    ],
)
def test_a_wiring_names_the_marshaler_its_providers_and_a_policy_of_the_users_own(
    tmp_path: Path, run: Run, policy: str, agents: list[str]
) -> None:
    Sink.got = []

    async def check() -> None:
        known = catalog()
        known.add("sink", Sink)
        known.add("alphabetic", Alphabetic)
        text = WIRING.replace("FOLDER", str(tmp_path)).replace("POLICY", policy)
        running = RunningGraph(plan(parse(text), known))
        await running.start()
        try:
            async with asyncio.timeout(HUNG_AFTER):
                await running.work()
        finally:
            await running.stop()

    run(check())
    assert [(one.agent, one.task.url) for one in Sink.got] == list(
        zip(agents, ["http://a.test/", "http://c.test/"], strict=True)
    )
