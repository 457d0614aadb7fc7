"""Which agents a crawl has, and which files are whose."""

from pathlib import Path

import pytest

from gossamer.storage.members import AGENTS, members_of, refuse_divided, write_members
from gossamer.storage.recovery import files_of, restore
from gossamer.values.errors import CrawlDirectoryError, UsageError


def test_the_agents_of_a_crawl_are_kept_and_read(tmp_path: Path) -> None:
    assert members_of(tmp_path) == ()
    refuse_divided(tmp_path)
    write_members(tmp_path, ["agent-00", "agent-01=2"])
    assert members_of(tmp_path) == ("agent-00", "agent-01=2")
    with pytest.raises(UsageError, match="2 agents"):
        refuse_divided(tmp_path)


@pytest.mark.parametrize("text", ["", "{}", '["no agent!"]'])
def test_a_damaged_list_of_agents_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / AGENTS
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(CrawlDirectoryError, match="damaged"):
        members_of(tmp_path)


def test_an_agent_that_comes_back_leaves_the_log_of_the_crawl_and_those_of_others_alone(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("crawl", "agent-00", "agent-01"):
        (logs / f"{name}.jsonl").write_text("{}\n{}\n")
    assert [path.name for path in files_of(tmp_path, "agent-00")] == ["crawl.jsonl"]
    write_members(tmp_path, ["agent-00", "agent-01"])
    assert [path.name for path in files_of(tmp_path, "agent-01")] == ["agent-01.jsonl"]
    restore(tmp_path, {"logs/agent-01.jsonl": 3}, "agent-01")
    assert {path.name: path.read_text() for path in logs.iterdir()} == {
        "crawl.jsonl": "{}\n{}\n",
        "agent-00.jsonl": "{}\n{}\n",
        "agent-01.jsonl": "{}\n",
    }
