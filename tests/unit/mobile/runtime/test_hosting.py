"""What a runtime's host promises beside the contract: limits of the owner's sheet, a disk that is full, kills, time."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from gossamer.mobile.contract import CrawlerStanding, RuntimeRefused, RuntimeUnavailable
from gossamer.mobile.crawler import BringRules, MobileCrawler, MobileProgram, NamedProcessor, TravelLimits
from gossamer.mobile.runtime.host import HostedLink, ResultShelf, RuntimeHost
from gossamer.mobile.runtime.keeper import ProcessLimits
from gossamer.mobile.runtime.store import Diary, JourneyNote, folder_of, kept_journeys
from gossamer.mobile.sources.opened import Runtime
from gossamer.mobile.sources.owner import OwnerLimits, OwnerSheet, SenderRules
from gossamer.mobile.wire import to_bytes
from gossamer.values.body import zstandard

zstd = zstandard()

pytestmark = pytest.mark.slow

T = TypeVar("T")

SITE = "http://site.test"
#: Bytes of a document that fills a batch alone.
LARGE = 9 << 20


def crawler(path: str = "/", **program: object) -> bytes:
    """A crawler of the site."""
    return to_bytes(MobileCrawler(MobileProgram(seeds=(f"{SITE}{path}",), **program)))  # type: ignore[arg-type]


def framed(plain: bytes) -> bytes:
    """Bytes as those of a crawler, whatever they unpack to."""
    frame = zstd.compress(plain)
    return b"GSMC\x01C" + len(frame).to_bytes(4) + frame


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A page, and three documents of which each fills a batch."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "index.html").write_text("".join(f'<a href="{letter}.txt">x</a>' for letter in "abc"))
    for letter in "abc":
        (root / f"{letter}.txt").write_bytes(letter.encode() * LARGE)
    return root


@pytest.fixture
def sheet(root: Path) -> OwnerSheet:
    return OwnerSheet({"site.test": str(root)})


def hosted(
    sheet: OwnerSheet, state: Path, work: Callable[[RuntimeHost], Awaitable[T]], limits: ProcessLimits | None = None
) -> T:
    """What the work comes to with a host on this folder, which is stopped after it."""

    async def begun() -> T:
        state.mkdir(exist_ok=True)
        with Runtime(sheet) as sources:
            host = RuntimeHost(
                sheet, sources, state, Diary(state / "log"), limits=limits or ProcessLimits(is_weak=True)
            )
            async with host:
                return await work(host)

    return asyncio.run(begun())


async def batch(link: HostedLink, identity: str, sequence: int) -> bytes:
    """A batch that is waited for."""
    found = await link.batch(identity, sequence, 60.0)
    assert isinstance(found, bytes), found
    return found


async def until(link: HostedLink, identity: str, state: str) -> CrawlerStanding:
    """The standing, when it has come to this state."""
    for _ in range(600):
        standing = await link.batch(identity, 1 << 30, 0.2)
        assert isinstance(standing, CrawlerStanding)
        if standing.state == state:
            return standing
        await asyncio.sleep(0.1)
    raise AssertionError(f"{identity} never came to {state}: {standing}")


def events(state: Path, name: str) -> list[dict[str, object]]:
    """Events of this name in the log."""
    return [one for one in map(json.loads, (state / "log").read_text().splitlines()) if one["event"] == name]


def test_a_crawler_waits_when_its_share_of_the_disk_is_full_and_others_go_on(sheet: OwnerSheet, tmp_path: Path) -> None:
    # Packed, a batch takes some hundred bytes: the second one does not fit beside the first.
    small = msgspec.structs.replace(sheet, limits=OwnerLimits(kept=600))

    async def worked(host: RuntimeHost) -> None:
        link = host.link("library")
        await link.send("first", crawler())
        first = await batch(link, "first", 0)
        standing = await until(link, "first", "waiting")
        assert standing.batches == 1
        await link.send("second", crawler("/index.html", limits=TravelLimits(depth=0)))
        assert (await until(link, "second", "finished")).batches == 1
        assert await batch(link, "first", 0) == first
        await link.acknowledge("first", 0)
        assert await batch(link, "first", 1)
        await link.acknowledge("first", 1)
        await batch(link, "first", 2)
        await link.acknowledge("first", 2)
        await until(link, "first", "finished")

    hosted(small, tmp_path / "state", worked)


def test_a_disk_without_room_lets_crawlers_wait_and_takes_no_more(sheet: OwnerSheet, tmp_path: Path) -> None:
    tiny = msgspec.structs.replace(sheet, disk=2_000)
    many = MobileCrawler(MobileProgram(seeds=tuple(f"{SITE}/{number * 7919}" for number in range(1_000))))

    async def worked(host: RuntimeHost) -> None:
        link = host.link("library")
        await link.send("first", crawler())
        await batch(link, "first", 0)
        await until(link, "first", "waiting")
        assert host.shelf.kept > 0
        with pytest.raises(RuntimeUnavailable, match="disk is full"):
            await link.send("second", to_bytes(many))
        await link.cancel("first")
        assert host.shelf.kept == 0

    hosted(tiny, tmp_path / "state", worked)


def test_a_write_that_fails_loses_nothing(sheet: OwnerSheet, tmp_path: Path) -> None:
    async def worked(host: RuntimeHost) -> None:
        link = host.link("library")
        folder = folder_of(tmp_path / "state" / "crawlers", "library", "one")
        # Something stands where the first batch goes: to write it fails until it is gone.
        block = folder.path / "000000.batch"
        await link.send("one", crawler("/index.html", limits=TravelLimits(depth=0)))
        block.mkdir()
        (block / "x").touch()
        await until(link, "one", "waiting")
        assert not isinstance(await link.batch("one", 0, 0.0), bytes)
        (block / "x").unlink()
        block.rmdir()
        await batch(link, "one", 0)
        assert (await until(link, "one", "finished")).batches == 1

    hosted(sheet, tmp_path / "state", worked)


def test_a_crawler_whose_data_changed_fails_by_name_when_it_has_to_run_again(
    sheet: OwnerSheet, root: Path, tmp_path: Path
) -> None:
    small = msgspec.structs.replace(sheet, limits=OwnerLimits(kept=600))

    async def begun(host: RuntimeHost) -> bytes:
        link = host.link("library")
        await link.send("one", crawler())
        first = await batch(link, "one", 0)
        await until(link, "one", "waiting")
        return first

    first = hosted(small, tmp_path / "state", begun)
    (root / "index.html").write_text('<a href="c.txt">x</a>')

    async def again(host: RuntimeHost) -> CrawlerStanding:
        link = host.link("library")
        standing = await until(link, "one", "failed")
        assert await batch(link, "one", 0) == first, "a batch that was given is gone"
        return standing

    assert hosted(small, tmp_path / "state", again).reason == "changed"


def test_a_crawler_with_which_the_runtime_dies_again_and_again_is_given_up(sheet: OwnerSheet, tmp_path: Path) -> None:
    async def taken(host: RuntimeHost) -> None:
        host._is_ending = True  # it is taken, and not begun
        await host.link("library").send("one", crawler())

    hosted(sheet, tmp_path / "state", taken)
    ((folder, note),) = kept_journeys(tmp_path / "state" / "crawlers")
    note.starts = 20
    folder.write_note(note)

    async def asked(host: RuntimeHost) -> CrawlerStanding:
        return await until(host.link("library"), "one", "failed")

    assert hosted(sheet, tmp_path / "state", asked).reason == "restarts"


def test_time_ends_a_crawler_that_runs_and_forgets_one_that_nobody_asks_for(sheet: OwnerSheet, tmp_path: Path) -> None:
    hasty = msgspec.structs.replace(sheet, keep=3.0)

    async def worked(host: RuntimeHost) -> None:
        link = host.link("library")
        await link.send("one", crawler("/index.html", limits=TravelLimits(depth=0)))
        await until(link, "one", "finished")
        assert list((tmp_path / "state" / "crawlers").iterdir())
        for _ in range(200):
            await asyncio.sleep(0.1)
            if not list((tmp_path / "state" / "crawlers").iterdir()):
                break
        assert (await link.acknowledge("one", 0)).state == "unknown"
        assert host.shelf.kept == 0

    hosted(hasty, tmp_path / "state", worked)
    assert events(tmp_path / "state", "forgot")


def test_senders_have_so_many_crawlers_at_once_and_no_more_than_they_may_leave(
    sheet: OwnerSheet, tmp_path: Path
) -> None:
    strict = msgspec.structs.replace(
        sheet, waiting=2, limits=OwnerLimits(kept=600), senders={"library": SenderRules(crawlers=1)}
    )

    async def worked(host: RuntimeHost) -> None:
        link, other = host.link("library"), host.link("other")
        assert (await link.offer()).crawlers == 1
        await link.send("one", crawler())
        await link.send("two", crawler())
        await until(link, "one", "waiting")
        with pytest.raises(RuntimeUnavailable, match="take their results first"):
            await link.send("three", crawler())
        await other.send("one", crawler("/index.html", limits=TravelLimits(depth=0)))
        await until(other, "one", "finished")
        assert (await link.batch("two", 0, 0.0)) == CrawlerStanding("waiting"), "two of one sender's run"
        await link.cancel("one")
        await batch(link, "two", 0)
        await link.send("three", crawler())
        await link.cancel("two")

    hosted(strict, tmp_path / "state", worked)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (to_bytes(MobileCrawler(MobileProgram(seeds=("http://elsewhere.test/",)))), "hosts"),
        (
            to_bytes(
                MobileCrawler(
                    MobileProgram(
                        seeds=(f"{SITE}/",),
                        processors=(NamedProcessor("os.system", "1"),),
                        bring=BringRules(("items",)),
                    )
                )
            ),
            "processors",
        ),
        (crawler() + b"B\x00\x00\x00\x01x", "invalid"),
        (framed(bytes(200 << 20)), "too_large"),
        (framed(b"\x81\xa7program" + b"\x81\xa5seeds\xdd\x05\xf5\xe1\x00" + b"\xa1x" * 10_000_000), "invalid"),
        (framed(b"\x81\xa7program" * 1_000_000), "invalid"),
        (b"GSMC\x01C\xff\xff\xff\xff", "too_large"),
        (b"GSMC\x01C\x00\x00\x10\x00x", "invalid"),
    ],
    ids=["elsewhere", "processor", "results", "bomb", "endless seeds", "endless depth", "long", "cut"],
)
def test_what_cannot_run_is_refused_by_name_and_leaves_nothing(
    sheet: OwnerSheet, tmp_path: Path, data: bytes, reason: str
) -> None:
    async def sent(host: RuntimeHost) -> str:
        try:
            await host.link("library").send("one", data)
        except RuntimeRefused as refused:
            return refused.reason
        return ""

    assert hosted(sheet, tmp_path / "state", sent) == reason
    assert list((tmp_path / "state" / "crawlers").iterdir()) == []
    assert [one["reason"] for one in events(tmp_path / "state", "refused")] == [reason]


def test_a_crawler_that_eats_its_limits_is_ended_while_another_goes_on(sheet: OwnerSheet, tmp_path: Path) -> None:
    # The pages are all one paragraph after the other, and every one of them is an element that comes home.
    root = Path(sheet.serve["site.test"])
    (root / "many.html").write_text("<p>x</p>" * 100_000)
    tight = msgspec.structs.replace(sheet, limits=OwnerLimits(memory=64 << 20))
    greedy = crawler("/many.html", bring=BringRules(("text", "links"), ("*", "p", "html > body > p")))

    async def worked(host: RuntimeHost) -> tuple[CrawlerStanding, CrawlerStanding]:
        link = host.link("library")
        await link.send("greedy", greedy)
        await link.send("modest", crawler("/index.html", limits=TravelLimits(depth=0)))
        modest = await until(link, "modest", "finished")
        for state in ("failed", "finished"):
            standing = await link.batch("greedy", 1 << 30, 60.0)
            assert isinstance(standing, CrawlerStanding)
            if standing.state == state:
                return standing, modest
        raise AssertionError(standing)

    greedy_end, modest_end = hosted(tight, tmp_path / "state", worked)
    assert modest_end.batches == 1
    assert greedy_end.state == "finished" or greedy_end.reason in ("memory", "crashed")


def test_frames_that_nobody_was_told_of_and_folders_without_a_note_are_deleted(tmp_path: Path) -> None:
    for name in ("half.new", "empty"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "crawler").write_bytes(b"x")
    folder = folder_of(tmp_path, "a", "b")
    folder.create(JourneyNote("a", "b", "0" * 64, digests=["1"], sizes=[3]), b"crawler")
    folder.write_batch(0, b"one")
    folder.write_batch(1, b"two")
    ((found, note),) = kept_journeys(tmp_path)
    assert (found.batch(0), found.batch(1), note.kept) == (b"one", None, 3)
    assert [path.name for path in tmp_path.iterdir()] == [folder.path.name]
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.path.iterdir())


def test_the_shelf_leaves_the_disk_its_floor(tmp_path: Path) -> None:
    disk = os.statvfs(tmp_path)
    assert not ResultShelf(tmp_path, 1 << 60, disk.f_blocks * disk.f_frsize).has_room(1)
    shelf = ResultShelf(tmp_path, 100, 0)
    shelf.kept += 60
    assert shelf.has_room(40) and not shelf.has_room(41)
