"""Who may begin in the place of an agent, and how an agent is published that rests."""

from pathlib import Path

import msgspec
import pytest

from gossamer.backup.contract import Stat
from gossamer.backup.elsewhere import CrawlInStore, standing_of_store
from gossamer.backup.head import AgentInStore, StoredCheckpoint, StoredPart, note_owned, owned
from gossamer.backup.one_agent import claimed, publish_at_rest
from gossamer.backup.opening import FolderStore
from gossamer.crawls.control.at_rest import standing_in_store
from gossamer.crawls.control.standing import CrawlStanding, StoredAgent
from gossamer.storage.ledger.ledger import LedgerSheet, RocksLedger
from gossamer.storage.members import write_division, write_members
from gossamer.values.errors import CrawlDirectoryError

TWO, THREE = ("agent-00", "agent-01"), ("agent-00", "agent-01", "agent-02")

#: A time long after every lease.
LATE = 1e12


def published(store: FolderStore, agent: str, members: tuple[str, ...], division: int, life: str = "life") -> None:
    place = AgentInStore(store, agent)
    place.read()
    place.claim(life, "process of another time", 3.0)
    place.publish(StoredCheckpoint({}), has_ended=False, members=members, division=division)


def test_an_agent_that_joins_begins_in_a_place_of_a_change_that_was_lost_with_its_machine(tmp_path: Path) -> None:
    store, crawl = FolderStore(tmp_path / "store", is_new=True), tmp_path / "crawl"
    published(store, "agent-00", TWO, 1)
    published(store, "agent-02", THREE, 2, "lost")
    with pytest.raises(CrawlDirectoryError, match="holds a crawl already"):
        claimed(store, crawl, "agent-02", 3.0, LATE)
    note_owned(crawl, "agent-00", store.name, ("life",), None)
    place = claimed(store, crawl, "agent-02", 3.0, LATE)
    assert place.head is not None
    assert (place.head.epoch, place.head.checkpoint, place.head.division) == (2, "", 0)


def test_an_agent_that_the_crawl_has_is_not_begun_anew(tmp_path: Path) -> None:
    store, crawl = FolderStore(tmp_path / "store", is_new=True), tmp_path / "crawl"
    published(store, "agent-00", TWO, 1)
    published(store, "agent-01", TWO, 1, "other")
    note_owned(crawl, "agent-00", store.name, ("life",), None)
    with pytest.raises(CrawlDirectoryError, match="holds a crawl already"):
        claimed(store, crawl, "agent-01", 3.0, LATE)


def test_the_agents_of_a_crawl_are_those_of_its_last_change_and_the_others_are_behind(tmp_path: Path) -> None:
    store = FolderStore(tmp_path, is_new=True)
    published(store, "agent-00", TWO, 1)
    published(store, "agent-01", THREE, 2)
    crawl = CrawlInStore(store)
    assert crawl.members == THREE
    assert crawl.behind == {"agent-00": TWO, "agent-02": ()}
    published(store, "agent-00", THREE, 2)
    published(store, "agent-02", THREE, 2)
    assert CrawlInStore(store).behind == {}


class Counting(FolderStore):
    """Counts requests."""

    asked = 0

    def put(self, key: str, data: bytes | memoryview, expect: str | None = None) -> str:
        self.asked += 1
        return super().put(key, data, expect)

    def get(self, key: str, start: int = 0, length: int | None = None) -> bytes:
        self.asked += 1
        return super().get(key, start, length)

    def read(self, key: str) -> tuple[bytes, Stat]:
        self.asked += 1
        return super().read(key)


def test_status_of_forty_agents_takes_a_hundred_requests_at_most_and_none_of_their_files(tmp_path: Path) -> None:
    agents = tuple(f"agent-{number:02}" for number in range(40))
    for agent in agents:
        place = AgentInStore(FolderStore(tmp_path, is_new=True), agent)
        place.read()
        place.claim("life", "process of another time", 3600.0)
        files: dict[str, tuple[StoredPart, ...]] = dict.fromkeys(
            (f"state/{agent}/ledger/{number}.sst" for number in range(100)), (StoredPart("nowhere", 1),)
        )
        told = msgspec.Raw(msgspec.json.encode(CrawlStanding("here", "killed", pages=2)))
        place.publish(StoredCheckpoint(files, told), has_ended=False, members=agents)
    store = Counting(tmp_path)
    now = standing_of_store(store)
    assert store.asked <= 100
    assert (now.state, now.pages, len(now.each_agent), len(now.stored)) == ("elsewhere", 80, 40, 40)


@pytest.mark.parametrize(
    ("ends", "queued", "state"),
    [
        (("finished", "finished"), 0, "finished"),
        (("finished", "incomplete"), 0, "finished"),
        (("finished", "incomplete"), 1, "incomplete"),
        (("finished", "limit"), 1, "limit"),
        (("limit", "stopped"), 1, "stopped"),
    ],
)
def test_a_crawl_whose_agents_have_ended_stands_in_its_store_as_they_ended_together(
    ends: tuple[str, ...], queued: int, state: str
) -> None:
    published = {agent: CrawlStanding("x", end, queued=queued) for agent, end in zip(TWO, ends, strict=True)}
    stored = [StoredAgent(agent, "", 1e6, 3.0, 1.0) for agent in TWO]
    assert standing_in_store("x", stored, published).state == state
    killed = [StoredAgent(TWO[0], "process 1 on a", 1e6, 3.0, 1.0), *stored[1:]]
    assert standing_in_store("x", killed, published).state == "killed"


def test_an_agent_that_rests_is_published_once_and_again_when_the_agents_or_its_deletions_have_changed(
    tmp_path: Path,
) -> None:
    store, crawl = FolderStore(tmp_path / "store", is_new=True), tmp_path / "crawl"
    write_members(crawl, TWO)
    ledger = RocksLedger(LedgerSheet(directory=str(crawl), agent="agent-01"))
    ledger.open()

    def count() -> int:
        publish_at_rest(crawl, store.name, ledger)
        note = owned(crawl, "agent-01")
        assert note is not None
        return note.count

    try:
        first = count()
        assert count() == first, "nothing has changed"
        (crawl / "state" / "deleted.jsonl").write_text("{}\n")
        after_deletion = count()
        assert after_deletion > first
        write_division(crawl, 7)
        assert count() > after_deletion
        place = AgentInStore(store, "agent-01")
        head = place.read()
        assert head is not None
        assert (head.members, head.division, head.holder) == (TWO, 7, "")
        assert "state/agent-01/ledger/CURRENT" in place.checkpoint().files
        place.claim(head.life, "", 3.0)
        write_division(crawl, 8)
        count()
        again = place.read()
        assert again is not None and again.lease == 3.0, "who goes on elsewhere waits for the lease of the crawl"
    finally:
        ledger.close()
