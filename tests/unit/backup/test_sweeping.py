"""What of a store can be removed, and that nothing goes which a checkpoint names, or will name."""

import os
import time
from pathlib import Path

import pytest

from gossamer.backup.commands import orphans
from gossamer.backup.head import AgentInStore, StoredCheckpoint, StoredPart, digest_of
from gossamer.backup.opening import FolderStore
from gossamer.cli.main import main
from gossamer.values.errors import UsageError

#: Seconds by which objects of the store are made older.
OLD = 3 * 86_400


def shipped(place: AgentInStore, *datas: bytes) -> list[str]:
    parts = [place.part_key(digest_of(data)) for data in datas]
    for key, data in zip(parts, datas, strict=True):
        place.store.put(key, data)
    return parts


def lived_in(store: FolderStore) -> tuple[AgentInStore, list[str], list[str]]:
    """A place whose first owner was killed, and whose second one works; what nobody needs, and what stays."""
    first = AgentInStore(store, "agent-00")
    first.read()
    first.claim("first", "process 1 on a", 3.0)
    named = shipped(first, b"named")
    first.publish(StoredCheckpoint({"a": (StoredPart(named[0], 5),)}), has_ended=False)
    torn = shipped(first, b"torn")
    second = AgentInStore(store, "agent-00")
    second.read()
    second.claim("second", "process 2 on b", 3.0)
    soon = shipped(second, b"of the next checkpoint")
    store.put("agents/agent-00/sent/0123", b"second")
    assert second.head is not None
    return (
        second,
        torn,
        [*named, *soon, second.head.checkpoint, "agents/agent-00/sent/0123", "agents/agent-00/head.json"],
    )


def test_what_a_checkpoint_names_and_what_its_owner_has_just_shipped_is_no_orphan(tmp_path: Path) -> None:
    store = FolderStore(tmp_path, is_new=True)
    second, torn, stays = lived_in(store)
    store.put("probes/left", b"1")
    assert sorted(orphans(store)) == sorted([*torn, "probes/left"])
    second.publish(StoredCheckpoint({}), has_ended=True)
    named = {*stays[3:], *torn}
    assert {*orphans(store)} - {"probes/left"} == {*store.list("agents/")} - named - {second.head.checkpoint} | {*torn}


def test_old_orphans_go_by_the_command_and_young_ones_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = FolderStore(tmp_path, is_new=True)
    _, torn, stays = lived_in(store)

    def said(*more: str, status: int = 0) -> str:
        capsys.readouterr()
        assert main(["store", f"folder:{tmp_path}", *more]) == status
        return "".join(capsys.readouterr())

    assert "younger than" in said("--sweep")
    assert {*torn} <= {*store.list("agents/")}
    for path in tmp_path.rglob("*"):
        os.utime(path, (time.time() - OLD, time.time() - OLD))
    assert "1 object (4 B)" in said()
    assert "can be removed with --sweep" in said()
    assert {*torn} <= {*store.list("agents/")}, "without --sweep nothing goes"
    assert "removed 1 object" in said("--sweep")
    assert sorted(store.list("agents/")) == sorted(stays)
    assert "nothing of" in said()
    assert "the least is" in said("--older-than", "1s", status=UsageError.exit_code)
    assert "write a time" in said("--older-than", "soon", status=UsageError.exit_code)


def test_a_crawl_directory_without_a_store_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "crawl.toml").write_text("")
    assert main(["store", str(tmp_path)]) == UsageError.exit_code
    assert "has no store" in capsys.readouterr().err
