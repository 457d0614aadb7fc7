"""Who owns a crawl in a store, and what is read back of it."""

from pathlib import Path

import pytest

from gossamer.backup.contract import ObjectChanged, StoreFailed
from gossamer.backup.head import AgentInStore, StoredCheckpoint, StoredPart, digest_of
from gossamer.backup.opening import FolderStore, open_store, store_name
from gossamer.values.errors import CrawlDirectoryError, UsageError


def place(folder: Path, store: FolderStore | None = None) -> AgentInStore:
    found = AgentInStore(store or FolderStore(folder, is_new=True), "agent-00")
    found.read()
    return found


def owner(folder: Path, life: str, store: FolderStore | None = None) -> AgentInStore:
    found = place(folder, store)
    found.claim(life, f"process of {life}", 30.0)
    return found


def shipped(one: AgentInStore, *datas: bytes) -> tuple[StoredPart, ...]:
    parts = tuple(StoredPart(one.part_key(digest_of(data)), len(data)) for data in datas)
    for part, data in zip(parts, datas, strict=True):
        one.store.put(part.key, data)
    return parts


def test_an_owner_that_another_one_has_followed_publishes_nothing_more_and_changes_nothing(tmp_path: Path) -> None:
    old = owner(tmp_path, "old")
    old.publish(StoredCheckpoint({"a": shipped(old, b"1")}), has_ended=False)
    new = owner(tmp_path, "new")
    assert new.head is not None
    assert new.head.epoch == 2
    for do in (old.renew, lambda: old.publish(StoredCheckpoint({}), has_ended=True)):
        with pytest.raises(ObjectChanged):
            do()
    assert list(new.checkpoint().files) == ["a"]
    new.publish(StoredCheckpoint({"b": shipped(new, b"2")}), has_ended=False)
    assert list(place(tmp_path).checkpoint().files) == ["b"]


def test_of_two_that_claim_at_once_one_becomes_the_owner(tmp_path: Path) -> None:
    one, other = place(tmp_path), place(tmp_path)
    one.claim("one", "one", 30.0)
    with pytest.raises(ObjectChanged):
        other.claim("other", "other", 30.0)


class Forgetful(FolderStore):
    """Does what it is asked, and loses its answer: the request is repeated."""

    loses = False

    def put(self, key: str, data: bytes | memoryview, expect: str | None = None) -> str:
        tag = super().put(key, data, expect)
        if self.loses and expect is not None:
            self.loses = False
            return super().put(key, data, expect)
        return tag


def test_an_owner_whose_claim_or_publication_was_repeated_on_the_way_stays_the_owner(tmp_path: Path) -> None:
    store = Forgetful(tmp_path, is_new=True)
    store.loses = True
    one = owner(tmp_path, "one", store)
    store.loses = True
    one.publish(StoredCheckpoint({"a": shipped(one, b"1")}), has_ended=False)
    one.renew()
    assert list(place(tmp_path).checkpoint().files) == ["a"]


def test_a_living_owner_is_refused_by_the_clock_of_the_store_and_one_that_ended_is_not(tmp_path: Path) -> None:
    one = owner(tmp_path, "one")
    seen = one.store.stat("agents/agent-00/head.json").modified
    with pytest.raises(CrawlDirectoryError, match=r"owned by process of one, heard of 10.0 s ago; .* in 20.0 s"):
        place(tmp_path).refuse_living(seen + 10)
    place(tmp_path).refuse_living(seen + 31)
    one.publish(StoredCheckpoint({}), has_ended=True)
    place(tmp_path).refuse_living(seen)


def test_files_are_brought_back_from_their_parts_and_only_what_has_changed_is_fetched(tmp_path: Path) -> None:
    one, into = owner(tmp_path / "store", "one"), tmp_path / "crawl"
    first = {"crawl.toml": shipped(one, b"x"), "warc/a": shipped(one, b"12", b"34"), "state/empty": ()}
    one.bring(first, into)
    assert (into / "warc/a").read_bytes() == b"1234"
    assert (into / "state/empty").read_bytes() == b""
    assert (into / "crawl.toml").stat().st_mode & 0o077 == 0, "settings may hold passwords"
    one.store.delete([part.key for part in first["warc/a"]])
    one.bring({**first, "warc/a": (*first["warc/a"], *shipped(one, b"56"))}, into, first)
    assert (into / "warc/a").read_bytes() == b"123456"


@pytest.mark.parametrize("damage", [b"other", None])
def test_a_part_that_is_missing_or_changed_is_named(damage: bytes | None, tmp_path: Path) -> None:
    one = owner(tmp_path / "store", "one")
    [part] = shipped(one, b"1")
    one.store.delete([part.key]) if damage is None else one.store.put(part.key, damage)
    with pytest.raises(CrawlDirectoryError, match=rf"is damaged: {part.key} (is missing|has other bytes)"):
        one.bring({"a": (part,)}, tmp_path / "crawl")
    assert not (tmp_path / "crawl" / "a").exists()


@pytest.mark.parametrize("name", ["../a", "/a", "a/../../b"])
def test_a_checkpoint_names_no_file_outside_of_the_crawl(name: str, tmp_path: Path) -> None:
    one = owner(tmp_path / "store", "one")
    with pytest.raises(CrawlDirectoryError, match="names a file"):
        one.bring({name: shipped(one, b"1")}, tmp_path / "crawl")


def test_a_head_that_is_damaged_is_told(tmp_path: Path) -> None:
    FolderStore(tmp_path).put("agents/agent-00/head.json", b"{")
    with pytest.raises(StoreFailed, match=r"head\.json is damaged"):
        place(tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("s3://key:secret@bucket/x", "a bucket and a path alone; give keys in the environment"),
        ("s3://bucket/x?token=secret", "a bucket and a path alone"),
        ("ftp://host/x", "no store of this kind"),
        ("s3://", "name a bucket"),
        ("folder:", "names no folder"),
    ],
)
def test_what_names_no_store_is_refused_and_no_secret_is_repeated(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as refused:
        open_store(text)
    assert "secret" not in str(refused.value)


def test_a_folder_is_a_store_by_its_absolute_path(tmp_path: Path) -> None:
    assert store_name(f"folder:{tmp_path}") == store_name(str(tmp_path)) == str(tmp_path)
    assert store_name("s3://bucket/x/") == "s3://bucket/x"
