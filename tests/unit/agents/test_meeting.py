"""Agents without a supervisor: what they keep for the next one, how long they wait for it, and how it finds them."""

import os
from pathlib import Path

from gossamer.agents.cluster import living, meeting
from gossamer.agents.supervision import ALONE, Solitude
from gossamer.storage.ledger.opening import ProcessLock


def test_an_agent_that_nobody_asks_for_news_stops_after_a_time() -> None:
    solitude = Solitude(lambda line: True, 5.0)
    assert not solitude.is_over(5.0 + ALONE - 1)
    solitude.asked(20.0)
    assert not solitude.is_over(20.0 + ALONE - 1)
    assert solitude.is_over(20.0 + ALONE)


def test_what_nobody_heard_is_told_once_to_the_next_supervisor() -> None:
    heard: list[str] = []
    listens = True

    def tell(line: str) -> bool:
        if listens:
            heard.append(line)
        return listens

    solitude = Solitude(tell, 0.0)
    solitude.tell("one")
    listens = False
    for number in range(150):
        solitude.tell(str(number))
    assert heard == ["one"]
    assert solitude.asked(1.0) == [str(number) for number in range(50, 150)], "the last ones"
    assert solitude.asked(1.0) == []


def test_agents_at_work_are_met_where_they_met_before(tmp_path: Path) -> None:
    agents = ["agent-00", "agent-01"]
    with meeting(tmp_path, agents) as first:
        lock = ProcessLock(tmp_path / "state/agent-01/lock")
        assert living(tmp_path, agents) == {"agent-01": os.getpid()}
        with meeting(tmp_path, agents) as second:
            assert second == first
        lock.close()
        assert living(tmp_path, agents) == {}
        with meeting(tmp_path, agents) as third:
            assert third != first, "nobody is there any more"
    assert not first.exists()
    assert not third.exists()


def test_a_note_that_is_damaged_or_of_a_folder_that_is_gone_counts_for_nothing(tmp_path: Path) -> None:
    lock = ProcessLock(tmp_path / "state/agent-00/lock")
    note = tmp_path / "state/supervisor/meeting.json"
    note.parent.mkdir(parents=True)
    for text in ("{", '{"folder":"/nowhere/at/all"}'):
        note.write_text(text)
        with meeting(tmp_path, ["agent-00"]) as folder:
            assert folder.is_dir()
    lock.close()
