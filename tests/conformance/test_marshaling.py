"""Every provider of the marshaler keeps the promises of `agents.contract`."""

from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from tests.masters import check_designation_table, check_host_names, check_recent_urls

from gossamer.agents.contract import DesignationPolicy
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
    RecentRule,
    RecentUrlsSheet,
    RecentUrlTable,
)
from gossamer.engine.unit import Provider
from gossamer.parsing.filters import ConstraintFilter
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.testing import check_designation_policy, check_filter
from gossamer.values.agents import Designated, Member
from gossamer.values.task import Task

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.mark.parametrize("rule", ["second-chance", "saturation"])
def test_recently_seen_tables(rule: RecentRule) -> None:
    check_recent_urls(lambda capacity: RecentUrlTable(RecentUrlsSheet(capacity=capacity, rule=rule)))


@pytest.mark.parametrize("aliases", [(), ("www.d1.example=d1.example", "127.0.0.1=d2.example")])
def test_host_names(aliases: tuple[str, ...]) -> None:
    check_host_names(GivenHostNames(HostNamesSheet(aliases=aliases)))


@pytest.mark.parametrize(
    "policy",
    [LeastLoaded(), ByDomain(), ByPlace(ByPlaceSheet(places=("hu=budapest",))), RandomAgent()],
    ids=repr,
)
def test_policies(policy: Provider[Any], run: Run) -> None:
    run(policy.start())
    check_designation_policy(cast(DesignationPolicy, policy))


@pytest.mark.parametrize("policy", [LeastLoaded, RandomAgent])
def test_tables_of_designations(tmp_path: Path, run: Run, policy: Callable[[], DesignationPolicy]) -> None:
    open_ledgers: list[RocksLedger] = []

    async def make(members: Sequence[Member]) -> KeptDesignations:
        for before in open_ledgers:
            before.abandon()
            await before.stop()
        ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
        open_ledgers[:] = [ledger]
        await ledger.start()
        table = KeptDesignations(DesignationSheet(members=tuple(map(str, members))))
        table.ledger, table.policy = ledger, policy()
        await table.start()
        return table

    async def check() -> None:
        await check_designation_table(make)
        await open_ledgers[0].stop()

    run(check())


def test_marshal_is_a_filter(tmp_path: Path, run: Run) -> None:
    async def check() -> None:
        ledger = RocksLedger(LedgerSheet(directory=str(tmp_path)))
        await ledger.start()
        table = KeptDesignations()
        table.ledger, table.policy = ledger, LeastLoaded()
        await table.start()

        def make() -> Marshal:
            marshal = Marshal()
            marshal.recent, marshal.hosts, marshal.constraints = RecentUrlTable(), GivenHostNames(), ConstraintFilter()
            marshal.designations = table
            return marshal

        tasks = [Task(f"http://{host}/", host) for host in ("a.test", "b.test", "127.0.0.1")]
        await check_filter(make, given=tasks, expected=[Designated("agent-00", one) for one in tasks])
        await ledger.stop()

    run(check())
