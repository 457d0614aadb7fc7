"""Masters of a crawl: the options that ask for them, the wirings of agents and masters, and domains that change hands."""

import asyncio
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gossamer.agents.cluster import LocalCluster
from gossamer.agents.designations import ByPlace, LeastLoaded, loads
from gossamer.agents.handing_over import DividedByTable, moves_by_table, planned, write_to_table
from gossamer.agents.lost import is_table_lost, make_table_again
from gossamer.agents.masters import (
    Masters,
    check_places,
    check_shared,
    designation_policy,
    mail_waits,
    master_wiring,
    masters_for,
    masters_of,
)
from gossamer.agents.membership import assign, assign_at_rest, forget_wishes, give_now, read_wishes
from gossamer.agents.ring import Ring, hold_again
from gossamer.agents.roster import Roster
from gossamer.agents.run import MasterRun
from gossamer.agents.supervision import REQUESTS
from gossamer.agents.wiring import ledger_settings, with_agents
from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import compile_wiring, shipped
from gossamer.crawls.control.messages import Pause, Status, Stop
from gossamer.crawls.control.wire import Done, ProcessRequest
from gossamer.crawls.options import CrawlOptions, all_options
from gossamer.engine.errors import WiringError
from gossamer.engine.planning import plan
from gossamer.engine.sheet import build
from gossamer.engine.wiring import ProviderPlan, Wiring, with_settings, write
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.storage.ledger.opening import share_secret
from gossamer.storage.mailbox.shared_state import SHARED, SharedFile
from gossamer.storage.members import members_of, write_members
from gossamer.storage.tables.places import CRAWL_FILE
from gossamer.values.agents import digest_names, member
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.hosts import domain_point

AGENTS = ("agent-00", "agent-01", "agent-02")


def crawl_wiring(**options: object) -> Wiring:
    return compile_wiring(["http://a.test/"], CrawlOptions(**options))  # type: ignore[arg-type]


def asked(directory: Path, **options: Any) -> Masters:
    return masters_for(directory, build(all_options(), {"output": str(directory), **options}))


def kept(directory: Path, **options: Any) -> Masters:
    """The masters of a crawl that was made with these options."""
    masters = asked(directory, designation="master", agents=3, **options)
    masters.write(directory)
    write_members(directory, AGENTS)
    return masters


def test_a_crawl_goes_by_the_ring_unless_told(tmp_path: Path) -> None:
    assert not asked(tmp_path, agents=3)
    assert not asked(tmp_path, agents=3, designation="ring")
    assert asked(tmp_path, agents=1, designation="master").names == ("master-00",)
    assert asked(tmp_path, agents=2, designation="master", masters=2).names == ("master-00", "master-01")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"designation": "master"}, "say how many: --agents N"),
        ({"agents": 2, "masters": 2}, "--masters is about masters; add --designation master"),
        ({"agents": 2, "policy": "by-domain"}, "--policy is about masters"),
        ({"agents": 2, "place": ["hu=budapest"], "designation": "ring"}, "--place is about masters"),
        ({"agents": 2, "agent_place": ["agent-01=oslo"]}, "--agent-place is about masters; .*, or the --cluster that"),
        ({"agents": 2, "designation": "master", "policy": "by-place"}, "--policy by-place needs places"),
        ({"agents": 2, "designation": "master", "policy": "least-lodaed"}, "least-loaded"),
        ({"agents": 2, "designation": "master", "place": ["hu=budapest"]}, "places"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(options: Mapping[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises((UsageError, WiringError), match=told) as refused:
        asked(tmp_path, **options)
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == [], "nothing was touched"


def test_a_place_where_no_agent_stands_is_refused(tmp_path: Path) -> None:
    masters = kept(tmp_path, policy="by-place", place=["hu=budapest"])
    check_places(masters, ("agent-00", "agent-01@budapest"))
    with pytest.raises(UsageError, match=r"no agent stands at budapest; .* --agent-place agent-00=budapest"):
        check_places(masters, ("agent-00", "agent-01@oslo"))


def test_a_crawl_keeps_to_what_it_began_with_and_may_have_other_masters(tmp_path: Path) -> None:
    kept(tmp_path, masters=2, policy="by-place", place=["hu=budapest"])
    again = asked(tmp_path, resume=True)
    assert again.names == ("master-00", "master-01")
    assert isinstance(policy := designation_policy(again.wiring), ByPlace)
    assert policy.sheet.places == ("hu=budapest",)
    assert asked(tmp_path, resume=True, masters=1).names == ("master-00",)
    other = asked(tmp_path, resume=True, policy="least-loaded", designation="master")
    assert isinstance(designation_policy(other.wiring), LeastLoaded)
    with pytest.raises(UsageError, match="since it was made; leave --designation out"):
        asked(tmp_path, resume=True, designation="ring")
    ring = tmp_path / "ring"
    write_members(ring, AGENTS)
    with pytest.raises(UsageError, match="was made without masters"):
        asked(ring, resume=True, designation="master")


def test_masters_of_an_older_version_go_on_without_settings_that_are_gone(tmp_path: Path) -> None:
    older = with_settings(shipped("master"), "communicate", {"disk_wait": 5.0})
    older = with_settings(older, "mail", {"master": "master-00", "waiting": 7})
    Masters(("master-00",), older).write(tmp_path)
    kept = masters_for(tmp_path, build(all_options(), {"resume": True})).wiring
    assert kept is not None
    assert kept.providers["mail"].settings == {"waiting": 7}
    assert "disk_wait" not in kept.components["communicate"].settings
    plan(kept, catalog())


def test_several_masters_need_a_table_that_they_share(tmp_path: Path) -> None:
    masters = kept(tmp_path)
    assert masters.wiring is not None
    own = {
        "ledger": ProviderPlan("ledger"),
        "designations": ProviderPlan("designations", {"ledger": "ledger", "policy": "policy"}),
    }
    wiring = msgspec.structs.replace(masters.wiring, providers={**masters.wiring.providers, **own})
    Masters(masters.names, wiring).write(tmp_path)
    assert asked(tmp_path, resume=True).names == ("master-00",), "one master may have its own"
    with pytest.raises(WiringError, match="keeps its table for one master"):
        asked(tmp_path, resume=True, masters=2)


def test_damaged_notes_of_masters_are_refused(tmp_path: Path) -> None:
    kept(tmp_path)
    (tmp_path / "state/masters/wiring.toml").unlink()
    with pytest.raises(CrawlDirectoryError, match="is damaged"):
        masters_of(tmp_path)
    (tmp_path / "state/masters/names.json").write_text("[")
    with pytest.raises(CrawlDirectoryError, match="is damaged"):
        masters_of(tmp_path)


def test_an_agent_of_masters_has_arrows_to_all_of_them_and_to_other_agents_only_for_mail() -> None:
    wiring = with_agents(crawl_wiring(), AGENTS, "agent-01", "/run/x", ("master-00", "master-01"))
    graph = plan(wiring, catalog())
    arrows = {name: node for name, node in graph.connectors.items() if name.startswith(("urls-", "mail-"))}
    assert {name: (node.producers, node.consumers) for name, node in arrows.items()} == {
        "urls-agent-01": (("master-00", "master-01"), ("receive",)),
        "urls-master-00": (("send-master-00",), ("master-00",)),
        "urls-master-01": (("send-master-01",), ("master-01",)),
        "mail-agent-01": (("master-00", "master-01", "agent-00", "agent-02"), ("receive-mail",)),
        "mail-agent-00": (("send-mail-agent-00",), ("agent-00",)),
        "mail-agent-02": (("send-mail-agent-02",), ("agent-02",)),
    }
    outbox: Any = graph.sheet("outbox")
    assert outbox.masters == ("master-01", "master-00"), "agents prefer different masters"
    assert outbox.others == ("agent-00", "agent-02")


def test_a_master_has_arrows_to_and_from_all_agents_and_the_settings_of_the_crawl(tmp_path: Path) -> None:
    masters = kept(tmp_path)
    crawl = crawl_wiring(never=("hu.*",), only=("org.*",))
    crawl = with_settings(crawl, "links", {"aliases": ["www.a.test=a.test"]})
    crawl = with_settings(crawl, "ledger", {"together": ["a.test b.test"]})
    members = (*AGENTS, "agent-03=0")
    graph = plan(master_wiring(masters, crawl, members, "master-00", "/run/x", tmp_path), catalog())
    arrows = {name: node for name, node in graph.connectors.items() if name.startswith(("urls-", "mail-"))}
    assert {name: (node.producers, node.consumers) for name, node in arrows.items()} == {
        "urls-master-00": (AGENTS, ("marshal",)),
        **{f"urls-{agent}": ((f"send-{agent}",), (agent,)) for agent in AGENTS},
        **{f"mail-{agent}": ((f"send-mail-{agent}",), (agent,)) for agent in AGENTS},
    }
    sheets: dict[str, Any] = {
        name: graph.sheet(name) for name in ("marshal", "mail", "names", "constraints", "designations")
    }
    assert sheets["names"].aliases == ("www.a.test=a.test",)
    assert (sheets["constraints"].never, sheets["constraints"].only) == (("hu.*",), ("org.*",))
    assert sheets["marshal"].together == sheets["mail"].together == ("a.test b.test",)
    assert (sheets["mail"].agents, sheets["designations"].members) == (AGENTS, members)


# -- the table


def given(directory: Path, **agents: str) -> DividedByTable:
    kept(directory)
    assert give_now(directory, {f"{name}.test": agent for name, agent in agents.items()}) == {}
    return DividedByTable(directory, AGENTS, ledger_settings(crawl_wiring()))


def test_the_table_says_whose_a_host_is(tmp_path: Path) -> None:
    division = given(tmp_path, a="agent-00", b="agent-01", c="agent-00")
    assert [division.owner(host) for host in ("www.a.test", "b.test", "d.test")] == ["agent-00", "agent-01", ""]
    digest = next(iter(digest_names().values()))
    assert division.owner(digest) in AGENTS
    points = {point for first, last in division.arcs("agent-00") for point in range(first, last + 1)}
    assert {domain_point("a.test"), domain_point("c.test")} <= points
    assert domain_point("b.test") not in points
    assert division.domains("agent-00") == ["a.test", "c.test"]
    assert not mail_waits(tmp_path)


def test_domains_move_at_one_instant_to_whom_a_person_or_the_policy_says(tmp_path: Path) -> None:
    division = given(tmp_path, a="agent-00", b="agent-01", c="agent-02", d="agent-02", e="agent-02")
    after = (*AGENTS[:2], "agent-02=0")
    wishes = {"a.test": "agent-01", "c.test": "agent-00"}
    moves = moves_by_table(tmp_path, AGENTS, after, wishes, LeastLoaded())
    assert division.owner("a.test") == "agent-00", "nothing has moved yet"
    points = {pair: {point for first, last in arcs for point in range(first, last + 1)} for pair, arcs in moves.items()}
    assert domain_point("a.test") in points["agent-00", "agent-01"]
    assert domain_point("c.test") in points["agent-02", "agent-00"]
    was, becomes = Ring(map(member, AGENTS)), Ring(map(member, after))
    for point, name in digest_names().items():
        if was.owner(name) != becomes.owner(name):
            assert point in points[was.owner(name), becomes.owner(name)], "digests move by the ring"
    for _ in range(2):  # killed behind it, it is done again
        write_to_table(tmp_path, planned(moves, 1))
    left = DividedByTable(tmp_path, after, ledger_settings(crawl_wiring()))
    assert [left.owner(f"{name}.test") for name in "abc"] == ["agent-01", "agent-01", "agent-00"]
    assert {left.owner("d.test"), left.owner("e.test")} == {"agent-00"}, "the least loaded agent gets both"


@pytest.mark.parametrize("number", [None, 2])
def test_a_change_that_the_table_has_made_is_finished_with_the_members_that_it_was_made_for(
    number: int | None, tmp_path: Path
) -> None:
    given(tmp_path, a="agent-00", c="agent-02")
    share_secret(tmp_path / STATE_DIRECTORY)
    for agent in AGENTS:
        ledger = RocksLedger(LedgerSheet(directory=str(tmp_path), agent=agent))
        ledger.open()
        ledger.close()
    after = (*AGENTS[:2], "agent-02=0")
    moves = moves_by_table(tmp_path, AGENTS, after, {}, LeastLoaded())
    write_to_table(tmp_path, planned(moves, 1))
    # Here the supervisor of version 0.2.0 was killed: the table has the change, and the crawl names the members of before.
    with closing(SharedFile(tmp_path)) as shared, shared.writing() as connection:
        connection.execute("CREATE TABLE moves (point INTEGER PRIMARY KEY, giver TEXT NOT NULL, taker TEXT NOT NULL)")
        rows = [(point, *pair) for pair, arcs in moves.items() for arc in arcs for point in range(arc[0], arc[1] + 1)]
        connection.executemany("INSERT INTO moves VALUES (?, ?, ?)", rows)
        connection.execute("CREATE TABLE moved (is_made INTEGER NOT NULL)")
        connection.execute("INSERT INTO moved VALUES (1)")
    note = tmp_path / "state/supervisor/changing.json"
    note.parent.mkdir()
    note.write_bytes(msgspec.json.encode({"before": AGENTS, "after": after, "by_table": True}))
    graph = plan(crawl_wiring(), catalog())
    options = CrawlOptions(output=str(tmp_path), resume=True, agents=number)
    roster = Roster(tmp_path, graph, options, lambda line: None)
    asyncio.run(roster.prepare(graph, LocalCluster(tmp_path, tmp_path)))
    assert roster.members == members_of(tmp_path) == after
    assert DividedByTable(tmp_path, roster.members, ledger_settings(crawl_wiring())).owner("c.test") in AGENTS[:2]
    assert not note.exists()


def ledger_of(directory: Path, agent: str, *domains: str) -> None:
    """The ledger of an agent that holds these domains."""
    ledger = RocksLedger(LedgerSheet(directory=str(directory), agent=agent))
    ledger.open()
    hold_again(ledger, domains)
    ledger.close()


def made_again(directory: Path) -> list[str]:
    return list(make_table_again(directory, ledger_settings(crawl_wiring()), AGENTS, LeastLoaded()))


def test_a_lost_table_is_made_again_of_the_domains_that_agents_hold(tmp_path: Path) -> None:
    kept(tmp_path)
    assert not is_table_lost(tmp_path)
    share_secret(tmp_path / STATE_DIRECTORY)
    ledger_of(tmp_path, "agent-00", "a.test", "b.test")
    ledger_of(tmp_path, "agent-01", "c.test")
    (tmp_path / SHARED).unlink()
    assert is_table_lost(tmp_path)
    with pytest.raises(CrawlDirectoryError, match="--accept-loss"):
        check_shared(tmp_path)
    assert made_again(tmp_path) == ["the table of agents and their 3 domains was made again from what the agents hold"]
    check_shared(tmp_path)
    division = DividedByTable(tmp_path, AGENTS, ledger_settings(crawl_wiring()))
    assert [division.domains(agent) for agent in AGENTS] == [["a.test", "b.test"], ["c.test"], []]
    with closing(SharedFile(tmp_path)) as shared:
        assert loads(shared.reading) == {"agent-00": 2, "agent-01": 1}


def test_a_lost_table_is_not_made_again_where_a_domain_may_have_two_agents(tmp_path: Path) -> None:
    kept(tmp_path)
    share_secret(tmp_path / STATE_DIRECTORY)
    ledger_of(tmp_path, "agent-00", "a.test")
    ledger_of(tmp_path, "agent-01", "a.test")
    (tmp_path / SHARED).unlink()
    with pytest.raises(CrawlDirectoryError, match=r"both agent-00 and agent-01 hold a\.test"):
        made_again(tmp_path)
    note = tmp_path / "state/supervisor/changing.json"
    note.parent.mkdir()
    note.write_bytes(b"{}")
    roster = Roster(tmp_path, plan(crawl_wiring(), catalog()), CrawlOptions(resume=True, accept_loss=True), str)
    with pytest.raises(CrawlDirectoryError, match="domains were just changing hands"):
        asyncio.run(roster.prepare(plan(crawl_wiring(), catalog()), LocalCluster(tmp_path, tmp_path)))
    assert is_table_lost(tmp_path)


def test_a_person_gives_away_what_nobody_has_at_once_and_the_rest_when_the_crawl_rests(tmp_path: Path) -> None:
    division, wiring = given(tmp_path, a="agent-00", b="agent-01"), crawl_wiring()
    wanted = {"www.a.test": "agent-02", "b.test": "agent-01", "new.test": "agent-02"}
    assert assign(tmp_path, wiring, AGENTS, wanted) == {"a.test": "agent-02"}
    assert (division.owner("new.test"), division.owner("a.test")) == ("agent-02", "agent-00")
    assert read_wishes(tmp_path) == {"a.test": "agent-02"}
    forget_wishes(tmp_path, {"a.test": "agent-02"})
    assert read_wishes(tmp_path) == {}


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"a.test": "agent-07"}, "is not an agent at work"),
        ({"not a host": "agent-00"}, "not a host"),
        ({"digests-ab.invalid": "agent-00"}, "always assigned by the ring"),
    ],
)
def test_what_cannot_be_assigned_is_refused_and_nothing_changes(
    wanted: Mapping[str, str], told: str, tmp_path: Path
) -> None:
    division = given(tmp_path, a="agent-00")
    with pytest.raises(UsageError, match=told):
        assign(tmp_path, crawl_wiring(), AGENTS, {"new.test": "agent-01", **wanted})
    assert (division.owner("a.test"), division.owner("new.test")) == ("agent-00", "")


def test_a_crawl_by_the_ring_has_nothing_to_assign(tmp_path: Path) -> None:
    write_members(tmp_path, AGENTS)
    write(tmp_path / CRAWL_FILE, crawl_wiring())
    with pytest.raises(UsageError, match="divides its domains by the ring"):
        assign_at_rest(tmp_path, {"a.test": "agent-01"})


def test_a_master_obeys_its_supervisor_and_refuses_in_one_line_what_only_agents_can_do(
    tmp_path: Path, run: Any
) -> None:
    async def check() -> None:
        lines: list[str] = []
        master = MasterRun(
            "master-00", plan(shipped("master"), catalog()), tmp_path, tmp_path, lambda line: not lines.append(line)
        )
        for request in (Pause(), Status()):
            with pytest.raises(UsageError, match="master-00 only passes URLs on"):
                await master._steer(request)
        assert isinstance(await master._steer(Stop()), Done)
        assert master._is_ending.is_set()

    run(check())
    assert {one.__name__ for one in REQUESTS if issubclass(one, ProcessRequest)} == {
        *("Finish", "News", "ReadMaster", "SetAgent"),
    }
