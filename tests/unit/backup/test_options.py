"""What the options of a store become, and which crawls cannot have one."""

from pathlib import Path

import pytest

from gossamer.backup.head import note_owned
from gossamer.backup.options import JOINED, wire
from gossamer.crawls.builder import Builder
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.engine.wiring import Wiring
from gossamer.storage.members import write_members
from gossamer.values.errors import UsageError


def wired(folder: Path, wiring: Wiring | None = None, **given: object) -> Wiring:
    options = build(all_options(), {"output": str(folder / "crawl"), **given})
    return Crawl(["http://a.test/"], options, wiring=wiring).wiring


def test_a_crawl_with_a_store_publishes_as_its_options_say_and_keeps_its_store(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    wiring = wired(
        tmp_path, store=f"folder:{store}", checkpoint_every=10.0, checkpoint_bytes=2 << 20, keep_local=5, lease=5.0
    )
    settings = {
        "url": store,
        "every": 10.0,
        "bytes": 2 << 20,
        "lease": 5.0,
        "keep_local": 5,
        "directory": str(tmp_path / "crawl"),
    }
    assert wiring.providers["store"].settings == settings
    assert "store" in wiring.components["frontier"].providers or wiring.providers["politeness"].providers["rules"]
    changed = wired(tmp_path, wiring, checkpoint_every=20.0)
    assert changed.providers["store"].settings == {**settings, "every": 20.0}
    with pytest.raises(UsageError, match=r"has the store .*, and keeps it"):
        wired(tmp_path, wiring, store=str(tmp_path / "another"))


def test_a_crawl_that_was_brought_back_from_a_copy_of_its_store_keeps_that(tmp_path: Path) -> None:
    wiring = wired(tmp_path, store=str(tmp_path / "store"))
    moved = str(tmp_path / "moved")
    note_owned(tmp_path / "crawl", "agent-00", moved, ("life",), None)
    (tmp_path / "crawl" / "state" / "agent-00" / "ledger").mkdir(parents=True)
    assert wired(tmp_path, wiring, store=moved, resume=True).providers["store"].settings["url"] == moved


def test_the_last_folders_of_the_archive_hold_its_copies_and_the_others_take_files(tmp_path: Path) -> None:
    folders = [str(tmp_path / name) for name in ("a", "b", "c")]
    wiring = wired(tmp_path, archive=folders, copies=3)
    assert wiring.providers["archive"].settings["disks"] == folders[:1]
    settings = wiring.providers["store"].settings
    assert (settings["url"], settings["goes_on"]) == (f"{folders[1]}{JOINED}{folders[2]}", True)


def test_a_crawl_without_a_store_has_no_unit_of_it(tmp_path: Path) -> None:
    assert "store" not in wired(tmp_path).providers
    with pytest.raises(UsageError, match="also give --store"):
        wired(tmp_path, checkpoint_every=10.0)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"crawlers": 2}, "leave out --crawlers or --store"),
        ({"exchange": "files", "agent": 1, "agents": 2}, "leave out --exchange files or --store"),
        ({"strategy": "trie"}, "has in files of its own"),
    ],
)
def test_what_a_checkpoint_of_an_agent_cannot_cover_is_refused(
    more: dict[str, object], told: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=told):
        wired(tmp_path, store=str(tmp_path / "store"), **more)


def test_a_crawl_that_an_agent_has_left_gets_no_store(tmp_path: Path) -> None:
    crawl = tmp_path / "divided"
    options = build(all_options(), {"output": str(crawl), "resume": True, "store": str(tmp_path / "store")})
    write_members(crawl, ["agent-00", "agent-01=0"])
    with pytest.raises(UsageError, match="agent-01 has left the crawl; leave --store out"):
        wire(Builder(wired(tmp_path), [], options))
