"""What a crawl with several copies does while one of their disks, or all, are lost, and when they are back."""

import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from tests.unit.backup.test_publisher import WARC, Crawled, back, crawled

from gossamer.backup.elsewhere import bring_back
from gossamer.backup.head import AgentInStore, StoredCheckpoint
from gossamer.backup.opening import CopiedStore, FolderStore, open_store
from gossamer.backup.options import JOINED
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.values.errors import CrawlDirectoryError


def copied(folder: Path) -> AbstractAsyncContextManager[Crawled]:
    """A crawl with a copy in `store`, and one in `other`."""
    url = f"{folder / 'store'}{JOINED}{folder / 'other'}"
    return crawled(folder, opened=open_store, url=url, goes_on=True)


def checkpoint(folder: Path) -> StoredCheckpoint:
    place = AgentInStore(FolderStore(folder), "agent-00")
    place.read()
    return place.checkpoint()


def test_a_copy_whose_disk_is_lost_is_named_and_the_other_one_gets_everything(tmp_path: Path) -> None:
    async def body() -> None:
        async with copied(tmp_path) as one:
            one.commit(b"one")
            await one.publisher.publish()
            assert checkpoint(tmp_path / "store") == checkpoint(tmp_path / "other")
            shutil.rmtree(tmp_path / "store")
            one.commit(b"two")
            assert await one.publisher.publish()
            assert one.publisher.rest("a.test", 0.0) == 0.0
            [said] = one.said
            assert f"the copy in {tmp_path / 'store'} is left out" in said
        (tmp_path / "other").rename(tmp_path / "store")
        assert (back(tmp_path, "again") / WARC).read_bytes() == b"onetwo"

    asyncio.run(body())


def test_a_crawl_goes_on_while_all_its_copies_are_away_and_publishes_when_one_is_back(tmp_path: Path) -> None:
    folders = [tmp_path / "store", tmp_path / "other"]

    async def body() -> None:
        async with copied(tmp_path) as one:
            one.commit(b"one")
            await one.publisher.publish()
            for path in folders:
                path.rename(path.with_suffix(".away"))
            one.commit(b"two")
            assert not await one.publisher.publish()
            one.publisher.heard -= 7200
            assert one.publisher.rest("a.test", 0.0) == 0.0
            await asyncio.wait_for(one.publisher.sure(), 1)
            for path in folders:
                path.with_suffix(".away").rename(path)
            assert await one.publisher.publish()
        for path in folders:
            path.rename(path.with_suffix(".away"))
        async with copied(tmp_path) as one:
            one.commit(b"three")
            assert one.publisher.rest("a.test", 0.0) == 0.0
            assert "the crawl goes on without its copy" in one.said[-1]

    asyncio.run(body())


def test_a_copy_that_was_away_is_brought_level_and_refused_before(tmp_path: Path) -> None:
    other, away = tmp_path / "other", tmp_path / "away"

    async def body() -> None:
        async with copied(tmp_path) as one:
            one.commit(b"one")
        other.rename(away)
        async with copied(tmp_path) as one:
            one.commit(b"two")
            assert f"the copy in {other} is left out" in one.said[0]
        away.rename(other)
        given = build(all_options(), {"take_over": True})
        with pytest.raises(CrawlDirectoryError, match=f"older than that in {tmp_path / 'store'}; go on with that"):
            bring_back(str(other), str(tmp_path / "again"), given)
        async with copied(tmp_path) as one:
            assert one.said == []
            assert checkpoint(other) == checkpoint(tmp_path / "store")
            keys = [set(FolderStore(top).list("agents/")) for top in (other, tmp_path / "store")]
            assert keys[0] == keys[1]
        bring_back(str(other), str(tmp_path / "again"), given)
        assert (tmp_path / "again" / WARC).read_bytes() == b"onetwo"

    asyncio.run(body())


def test_threads_that_miss_one_copy_at_once_leave_out_no_other(tmp_path: Path) -> None:
    folders = [FolderStore(tmp_path / name, is_new=True) for name in "abc"]
    store = CopiedStore("abc", folders)
    said: list[str] = []
    store.tell = said.append
    shutil.rmtree(tmp_path / "a")
    keys = [f"agents/{number}" for number in range(32)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: store.put(key, b"x"), keys))
    assert len(said) == 1
    assert all(sorted(folder.list("agents/")) == sorted(keys) for folder in folders[1:])


def test_a_crawl_that_begins_in_the_copies_of_two_others_is_refused_and_harms_neither(tmp_path: Path) -> None:
    async def body() -> None:
        for name in ("store", "other"):
            async with crawled(tmp_path, name + "-was", opened=open_store, url=str(tmp_path / name)) as one:
                one.commit(name.encode())
                await one.publisher.publish()
        async with crawled(tmp_path, "other-was", opened=open_store, url=str(tmp_path / "other")):
            pass  # its owners are more, so that this copy counts as the newer one
        with pytest.raises(CrawlDirectoryError, match="holds a crawl already"):
            async with copied(tmp_path):
                pass

    asyncio.run(body())
    for name in ("store", "other"):
        into = tmp_path / f"{name}-again"
        bring_back(str(tmp_path / name), str(into), build(all_options(), {}))
        assert (into / WARC).read_bytes() == name.encode()
