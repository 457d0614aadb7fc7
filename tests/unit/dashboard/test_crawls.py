"""The crawls that a dashboard shows: found where they are, called by names that fit into an address, asked once for everybody."""

import asyncio
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gossamer.crawls.control.standing import CrawlStanding
from gossamer.dashboard.crawls import LISTS, Crawls, NoSuchCrawl, ShownCrawl, Streams, find_crawls, key_of
from gossamer.values.errors import CrawlDirectoryError


def crawl(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "crawl.toml").touch()
    return folder


def test_crawls_are_found_as_such_and_in_folders(tmp_path: Path) -> None:
    one, two, three = crawl(tmp_path / "one"), crawl(tmp_path / "more" / "two"), crawl(tmp_path / "more" / "three")
    crawl(tmp_path / "more" / "deeper" / "four")
    (tmp_path / "more" / "file").touch()
    assert find_crawls([one, tmp_path / "more", tmp_path / "gone", tmp_path / "more" / "file"]) == [one, three, two]


@pytest.mark.parametrize("name", ["plain", "a b", "<script>", "..", "日本", "x" * 200, 'q"uote\\'])
def test_a_key_fits_into_an_address_and_a_label(tmp_path: Path, name: str) -> None:
    key = key_of(tmp_path / name)
    assert re.fullmatch(r"[A-Za-z0-9.-]{1,49}", key)
    assert key != key_of(tmp_path / "other" / name)


def test_what_is_not_shown_has_no_name(tmp_path: Path) -> None:
    async def story() -> None:
        crawls = Crawls([tmp_path])
        with pytest.raises(NoSuchCrawl):
            await crawls.named("elsewhere")
        crawls.close()

    asyncio.run(story())


class Counted(ShownCrawl):
    """A crawl that counts how often it is asked."""

    def __init__(self) -> None:
        async def here(work: object, *given: object) -> CrawlStanding:
            self.asked += 1
            if self.trouble:
                raise CrawlDirectoryError(self.trouble)
            return CrawlStanding("c", "running", pages=self.asked)

        super().__init__("c", Path("c"), here)
        self.asked = 0
        self.trouble = ""


def test_ten_browsers_cost_a_crawl_what_one_costs() -> None:
    async def story(browsers: int) -> tuple[int, list[bytes]]:
        shown, streams = Counted(), Streams(interval=60.0)
        opened = [streams.of(shown) for _ in range(browsers)]
        events = [await anext(one) for one in opened]
        polled = shown.asked
        for one in opened:
            await one.aclose()  # type: ignore[attr-defined]
        assert streams.count == 0
        await asyncio.sleep(0.05)
        assert shown.asked <= polled + 1, "nobody looks, so nobody is asked"
        return polled, events

    one, [event] = asyncio.run(story(1))
    ten, events = asyncio.run(story(10))
    assert (one, ten) == (1, 1)
    assert event.startswith(b"event: standing\ndata: {") and event.endswith(b"\n\n")
    assert len(events) == 10


def test_a_crawl_that_cannot_be_looked_at_is_told_to_who_watches() -> None:
    async def story() -> bytes:
        shown = Counted()
        shown.trouble = "it's\n\ndata: broken"
        stream = Streams(interval=0.01).of(shown)
        found = await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        return found

    event = asyncio.run(story())
    assert event.startswith(b"event: trouble\ndata: ")
    assert event.count(b"\n") == 3, "no word of an error ends an event or begins another"


def test_a_directory_that_goes_away_is_told_and_no_fault_of_ours(tmp_path: Path) -> None:
    async def story() -> None:
        folder = crawl(tmp_path / "c")
        crawls = Crawls([tmp_path])
        shown = await crawls.named(key_of(folder))
        with pytest.raises(CrawlDirectoryError):
            await shown.standing()
        crawls.close()

    asyncio.run(story())


def test_a_list_of_hosts_that_takes_long_is_told_of_and_given_later(tmp_path: Path) -> None:
    folder = crawl(tmp_path / "c")
    may_go_on = threading.Event()

    async def later(work: Callable[..., object], *given: object) -> object:
        await asyncio.to_thread(may_go_on.wait)
        return await asyncio.to_thread(work, *given)

    async def story() -> None:
        shown = ShownCrawl("c", folder, asyncio.to_thread, later)
        hosts, is_being_made = await shown.hosts()
        assert (is_being_made, hosts.page().made_at) == (True, "")
        may_go_on.set()
        while (await shown.hosts())[1]:
            pass
        assert hosts.page().made_at
        shown.close()

    asyncio.run(story())


def test_lists_of_the_hosts_of_many_crawls_are_not_held_at_once(tmp_path: Path) -> None:
    folders = [crawl(tmp_path / str(number)) for number in range(LISTS + 1)]

    async def story() -> None:
        crawls = Crawls([tmp_path])
        lists = [(await crawls.hosts_of(await crawls.named(key_of(folder))))[0] for folder in folders]
        with pytest.raises(CrawlDirectoryError, match="given up"):
            lists[0].page()
        assert lists[1].page().total == 0
        again, _ = await crawls.hosts_of(await crawls.named(key_of(folders[0])))
        assert again.page().total == 0
        crawls.close()

    asyncio.run(story())
