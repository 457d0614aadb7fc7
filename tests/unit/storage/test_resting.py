"""Checkpoints of several agents at rest: gone back to by all of them, or refused with nothing changed."""

import subprocess
from pathlib import Path

import pytest

from gossamer.agents.handing_over import NOTE, UnderWay, forget_note, write_note
from gossamer.cli.steering import carry_out
from gossamer.crawls.control import resting
from gossamer.crawls.control.messages import Checkpoint
from gossamer.engine import processes
from gossamer.engine.files import VARIABLE
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.members import members_of, write_members
from gossamer.values.errors import CrawlDirectoryError, UsageError

AGENTS = ("agent-00", "agent-01")


def count(directory: Path, agents: tuple[str, ...] = AGENTS) -> None:
    """Something happens at each agent."""
    for agent in agents:
        ledger = RocksLedger(LedgerSheet(directory=str(directory), agent=agent))
        ledger.open()
        with ledger.group() as group:
            group.count("pages")
        ledger.close()


def counted(directory: Path) -> list[int]:
    found = []
    for agent in AGENTS:
        with RocksLedger(LedgerSheet(directory=str(directory), agent=agent)).looking() as ledger:
            found.append(ledger.counters()["pages"])
    return found


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_members(tmp_path, AGENTS)
    count(tmp_path)
    assert resting.checkpoint(tmp_path, "one") == "one"
    count(tmp_path)
    assert counted(tmp_path) == [2, 2]
    return tmp_path


def test_a_return_that_was_killed_is_finished_before_the_crawl_goes_on(directory: Path) -> None:
    (directory / "crawl.toml").touch()
    command = processes.command("gossamer", "checkpoint", str(directory), "--restore", "one")
    killed = subprocess.run(command, env={**processes.environment(), VARIABLE: "restoring:1"}, check=False)
    assert killed.returncode == -9
    assert sorted(counted(directory)) == [1, 2], "one of them has gone back"
    with pytest.raises(CrawlDirectoryError, match="--restore one"):
        resting.refuse_half_restored(directory)
    resting.restore(directory, "one", forget_note)
    resting.refuse_half_restored(directory)
    assert counted(directory) == [1, 1]


def test_what_was_on_its_way_between_agents_is_forgotten_only_by_a_crawl_that_goes_back(directory: Path) -> None:
    note = directory / NOTE
    note.write_bytes(b"{}")
    with pytest.raises(UsageError, match="no checkpoint 'two'"):
        resting.restore(directory, "two", forget_note)
    assert note.exists()
    resting.restore(directory, "one", forget_note)
    assert not note.exists()


def test_nobody_keeps_a_checkpoint_of_a_crawl_whose_hosts_were_changing_hands(directory: Path) -> None:
    (directory / "crawl.toml").touch()
    write_note(directory, UnderWay(hand_overs=()))
    with pytest.raises(CrawlDirectoryError, match="were just changing hands"):
        carry_out(directory, Checkpoint("two"), changing=0.0)
    assert resting.checkpoints(directory) == ["one"]


def test_agents_that_have_left_since_are_back_with_the_checkpoint(directory: Path) -> None:
    write_members(directory, ("agent-00", "agent-01=0"))
    resting.restore(directory, "one", forget_note)
    assert members_of(directory) == AGENTS


def test_a_crawl_does_not_go_back_where_agents_have_joined_since(directory: Path) -> None:
    write_members(directory, (*AGENTS, "agent-02"))
    with pytest.raises(UsageError, match="agent-02 joined the crawl after the checkpoint 'one'"):
        resting.restore(directory, "one", forget_note)
    assert counted(directory) == [2, 2]
    count(directory, ("agent-02",))
    with pytest.raises(UsageError, match="no checkpoint 'one'"):
        resting.restore(directory, "one", forget_note)
    assert counted(directory) == [2, 2]


def test_a_name_that_one_agent_has_is_taken_for_all(directory: Path) -> None:
    RocksLedger(LedgerSheet(directory=str(directory), agent="agent-01")).places.checkpoints.joinpath("two").mkdir()
    with pytest.raises(UsageError, match="there is a checkpoint 'two' already"):
        resting.checkpoint(directory, "two")
    assert resting.checkpoints(directory) == ["one"]
