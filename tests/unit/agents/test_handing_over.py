"""Domains that agents at rest hand to each other arrive whole and once, whatever interrupts that, an older version's too."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from gossamer.agents.designations import LeastLoaded
from gossamer.agents.ended import AgentEnd
from gossamer.agents.handing_over import (
    NOTE,
    HandOver,
    Step,
    UnderWay,
    carry_out,
    is_changing,
    is_moving,
    moves_by_ring,
    under_way,
    write_note,
)
from gossamer.agents.masters import Masters
from gossamer.agents.membership import assign, change_members, give_now, settle
from gossamer.agents.parcels import AgentsAtRest
from gossamer.agents.ring import Ring, hold_again
from gossamer.crawls.compiling import compile_wiring, shipped
from gossamer.crawls.options import CrawlOptions
from gossamer.storage.ledger.ledger import STATE_DIRECTORY, LedgerSheet, RocksLedger
from gossamer.storage.ledger.opening import share_secret
from gossamer.storage.ledger.parcels import Moved, at_once, giving, parcel_path, taking
from gossamer.storage.members import members_of, write_members
from gossamer.values.agents import member
from gossamer.values.errors import CrawlDirectoryError, UsageError
from gossamer.values.hosts import domain_point
from gossamer.values.task import Task

BEFORE, AFTER = ("agent-00", "agent-01"), ("agent-00", "agent-01", "agent-02")
WIRING = compile_wiring(["http://d0.test/"], CrawlOptions())
HOSTS = [f"d{number}.test" for number in range(30)]
MOVES = moves_by_ring(BEFORE, AFTER, {})


def opened(directory: Path, agent: str) -> RocksLedger:
    ledger = RocksLedger(LedgerSheet(directory=str(directory), agent=agent))
    ledger.open()
    return ledger


def having(directory: Path, agent: str, hosts: Iterable[str]) -> None:
    """Let an agent have a URL of each of these hosts."""
    with closing(opened(directory, agent)) as ledger, ledger.group() as group:
        group.push(group.meet([Task(f"http://{host}/", host) for host in hosts]).new)


def begun(directory: Path) -> None:
    """Two agents at rest, each with its part of all hosts."""
    share_secret(directory / STATE_DIRECTORY)
    write_members(directory, BEFORE)
    ring = Ring(map(member, BEFORE))
    for agent in BEFORE:
        having(directory, agent, [host for host in HOSTS if ring.owner(host) == agent])


def queued(directory: Path, agent: str) -> list[str]:
    """The hosts of the URLs that an agent at rest has queued."""
    if not (directory / STATE_DIRECTORY / agent).exists():
        return []
    with closing(opened(directory, agent)) as ledger:
        number = len(ledger.queues)
        found = [task.host for host in ledger.queues.admit(1e6, 1_000) for task in ledger.queues.pop(host, 1_000)]
        assert len(found) == number
        return sorted(found)


def check_divided(directory: Path, members: Sequence[str]) -> None:
    """Each of these members has its part of all hosts, and nothing is under way."""
    assert members_of(directory) == members
    ring = Ring(map(member, members))
    for agent in AFTER:
        assert queued(directory, agent) == sorted(host for host in HOSTS if ring.owner(host) == agent)
    assert under_way(directory) is None
    assert not list((directory / "state").glob("*/parcels/*"))
    assert not list((directory / "state/supervisor").glob("*.json"))


class Killed(BaseException):
    """Stands for a kill of the supervisor."""


class Doer:
    """Notes the steps that it does, but one that it refuses, or at which it is killed."""

    def __init__(self, refused: str = "", killed: str = "") -> None:
        self.done: list[tuple[str, list[str]]] = []
        self.refused, self.killed = refused, killed

    async def __call__(self, step: Step, agents: Sequence[str], work: UnderWay) -> list[tuple[str, str, Moved]]:
        if step == self.refused:
            raise UsageError("pages are still being fetched")
        if step == self.killed:
            raise Killed
        self.done.append((step, list(agents)))
        return [("agent-00", "agent-01", Moved(1, 2))] if step == "give" else []

    async def commit(self) -> None:
        self.done.append(("commit", []))


WORK = UnderWay((HandOver("agent-00", "agent-01", ((1, 2),), "p"),), BEFORE, BEFORE, is_at_work=True)
ALL = ["hold", "give", "take", "commit", "drop"]


def test_the_taker_has_all_of_it_before_it_is_committed_and_the_giver_forgets_it_last(tmp_path: Path, run) -> None:  # type: ignore[no-untyped-def]
    doer = Doer()
    moved = run(carry_out(tmp_path, WORK, doer, doer.commit))
    giver, taker = ["agent-00"], ["agent-01"]
    assert doer.done == list(zip(ALL, [taker, giver, taker, [], giver], strict=True))
    assert moved == [("agent-00", "agent-01", Moved(1, 2))]
    assert under_way(tmp_path) is None


def test_what_a_giver_cannot_give_is_given_up(tmp_path: Path, run) -> None:  # type: ignore[no-untyped-def]
    doer = Doer(refused="give")
    with pytest.raises(UsageError, match="still being fetched"):
        run(carry_out(tmp_path, WORK, doer, doer.commit))
    assert [step for step, _ in doer.done] == ["hold", "release"]
    assert under_way(tmp_path) is None


@pytest.mark.parametrize("step", ["hold", "give", "take", "drop"])
def test_what_a_kill_interrupts_stands_in_the_note_and_is_done_from_the_first_step(
    step: str,
    tmp_path: Path,
    run,  # type: ignore[no-untyped-def]
) -> None:
    doer = Doer(killed=step)
    with pytest.raises(Killed):
        run(carry_out(tmp_path, WORK, doer, doer.commit))
    assert is_moving(tmp_path)
    assert not is_changing(tmp_path)
    again, work = Doer(), under_way(tmp_path)
    assert work == WORK
    run(carry_out(tmp_path, work, again, again.commit))
    assert [step for step, _ in again.done] == ALL
    assert not is_moving(tmp_path)


def test_a_damaged_note_is_told(tmp_path: Path) -> None:
    write_note(tmp_path, WORK)
    (tmp_path / NOTE).write_text("{")
    with pytest.raises(CrawlDirectoryError, match=r"under-way\.json is damaged"):
        is_moving(tmp_path)


def test_agents_at_rest_hand_over_what_the_ring_says(tmp_path: Path) -> None:
    begun(tmp_path)
    lines: list[str] = []
    asyncio.run(change_members(tmp_path, WIRING, AFTER, lines.append))
    check_divided(tmp_path, AFTER)
    assert lines[0].startswith("agent-02 joined and took ")


# -- what older versions have begun


def given(directory: Path, *, is_taken: bool) -> None:
    """What the new agent gets is in parcels of a change with the number 2, or in its ledger as well."""
    for (giver, taker), arcs in MOVES.items():
        parcel = parcel_path(directory, giver, taker, 2)
        with closing(opened(directory, giver)) as ledger:
            at_once(giving(ledger, arcs, parcel))
        if is_taken:
            with closing(opened(directory, taker)) as ledger:
                at_once(taking(ledger, parcel))


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("by_parcels", [True, False], ids=["by parcels", "0.2.0"])
def test_a_change_that_an_older_version_has_begun_is_finished_or_undone(
    tmp_path: Path, *, by_parcels: bool, is_committed: bool
) -> None:
    begun(tmp_path)
    given(tmp_path, is_taken=not by_parcels)
    note = {"before": BEFORE, "after": AFTER, "by_table": False}
    if by_parcels:
        note |= {"by_parcels": True, "number": 2}
    else:
        for folder in tmp_path.glob("state/*/parcels"):
            shutil.rmtree(folder)
    if is_committed:
        write_members(tmp_path, AFTER)
    older = tmp_path / "state/supervisor/changing.json"
    older.parent.mkdir(exist_ok=True)
    older.write_bytes(msgspec.json.encode(note))
    assert is_changing(tmp_path)
    asyncio.run(settle(tmp_path, WIRING))
    check_divided(tmp_path, AFTER if is_committed else BEFORE)


def test_a_move_at_work_that_an_older_version_has_begun_is_under_way(tmp_path: Path) -> None:
    older = tmp_path / "state/supervisor/moving.json"
    older.parent.mkdir(parents=True)
    older.write_bytes(
        msgspec.json.encode({"name": "17f", "giver": "agent-00", "taker": "agent-01", "domains": HOSTS[:1]})
    )
    assert is_moving(tmp_path)
    work, point = under_way(tmp_path), domain_point(HOSTS[0])
    hand_over = HandOver("agent-00", "agent-01", ((point, point),), "state/supervisor/parcels/17f", (HOSTS[0],))
    assert work == UnderWay((hand_over,), is_at_work=True)
    write_note(tmp_path, work)
    assert not older.exists(), "from now on the newer note counts"
    assert under_way(tmp_path) == work


# -- by the table of masters


def test_an_agent_gets_domains_of_another_one_twice_in_a_row(tmp_path: Path) -> None:
    share_secret(tmp_path / STATE_DIRECTORY)
    write_members(tmp_path, BEFORE)
    Masters(("master-00",), shipped("master")).write(tmp_path)
    give_now(tmp_path, dict.fromkeys(HOSTS, "agent-00"))
    having(tmp_path, "agent-00", HOSTS)
    for agent, domains in (("agent-00", HOSTS), ("agent-01", [])):
        with closing(opened(tmp_path, agent)) as ledger:
            hold_again(ledger, domains)
    for host in HOSTS[:2]:
        assert assign(tmp_path, WIRING, BEFORE, {host: "agent-01"})
        asyncio.run(change_members(tmp_path, WIRING, BEFORE, lambda line: None, LeastLoaded()))
    assert queued(tmp_path, "agent-01") == sorted(HOSTS[:2])
    assert queued(tmp_path, "agent-00") == sorted(HOSTS[2:])


@pytest.mark.skipif(sys.platform != "linux", reason="it finds the process as Linux tells it")
@pytest.mark.forks
def test_a_process_that_is_suspended_while_agents_rest_is_ended_and_its_work_is_done(tmp_path: Path) -> None:
    begun(tmp_path)
    frontier = msgspec.structs.replace(WIRING.components["frontier"], settings={"silence": "1s"})
    wiring = msgspec.structs.replace(WIRING, components={**WIRING.components, "frontier": frontier})

    async def play() -> list[AgentEnd]:
        async with AgentsAtRest(tmp_path, wiring) as agents:
            await agents.prepare(["agent-01"])
            [suspended] = Path("/proc/self/task", str(os.getpid()), "children").read_text().split()
            os.kill(int(suspended), signal.SIGSTOP)
            return await agents.told("look", BEFORE, AgentEnd)

    queued = [end.standing.queued for end in asyncio.run(play()) if end.standing is not None]
    assert len(queued) == len(BEFORE) and sum(queued) == len(HOSTS)
