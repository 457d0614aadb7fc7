"""Every link to a runtime keeps the promises of `mobile.contract`: the runtime at home, and one elsewhere."""

import asyncio
import threading
from pathlib import Path

from gossamer.mobile.crawler import CrawlerBatch, MobileCrawler, MobileProgram
from gossamer.mobile.manager.links import MAX_HELD, HomeRuntime
from gossamer.mobile.running import Fetch, run_crawler
from gossamer.mobile.runtime.host import HostedLink, RuntimeHost
from gossamer.mobile.runtime.store import Diary
from gossamer.mobile.sources.opened import Runtime
from gossamer.mobile.sources.owner import OwnerSheet
from gossamer.mobile.wire import to_bytes, unpacked
from gossamer.testing import check_runtime_link
from gossamer.values.outcome import Outcome
from gossamer.values.task import Task
from gossamer.values.visit import Response

SITE = "http://example.test"
#: Bytes of a document that fills a batch alone.
LARGE = 9 << 20
LETTERS = "abcde"

CRAWLER = MobileCrawler(MobileProgram(seeds=(f"{SITE}/",)))
OTHER = MobileCrawler(MobileProgram(seeds=(f"{SITE}/a.txt",)))


def site(task: Task) -> Response:
    """A page with links to documents that are large, and all different."""
    if task.url == f"{SITE}/":
        links = "".join(f'<a href="{letter}.txt">{letter}</a>' for letter in LETTERS)
        return Response(Outcome.OK, 200, headers=(("content-type", "text/html"),), body=links.encode())
    letter = task.url[-5]
    return Response(Outcome.OK, 200, headers=(("content-type", "text/plain"),), body=letter.encode() * LARGE)


def test_the_runtime_at_home() -> None:
    async def checked() -> list[bytes]:
        return await check_runtime_link(HomeRuntime(lambda: site), to_bytes(CRAWLER), to_bytes(OTHER))

    frames = asyncio.run(checked())
    assert [unpacked(frame, CrawlerBatch).sequence for frame in frames] == list(range(len(frames)))
    found = [page.url for frame in frames for page in unpacked(frame, CrawlerBatch).pages]
    assert found == [page.url for batch in run_crawler(CRAWLER, site) for page in batch.pages]


def test_the_runtime_at_home_runs_ahead_of_acknowledgements_by_so_many_batches() -> None:
    asked: list[str] = []

    def noting() -> Fetch:
        def fetch(task: Task) -> Response:
            asked.append(task.url)
            return site(task)

        return fetch

    async def left_alone() -> str:
        runtime = HomeRuntime(noting)
        await runtime.send("one", to_bytes(CRAWLER))
        for sequence in range(MAX_HELD):
            assert isinstance(await runtime.batch("one", sequence, 60.0), bytes)
        standing = await runtime.batch("one", MAX_HELD, 60.0)
        await runtime.close()
        return getattr(standing, "state", "")

    assert asyncio.run(left_alone()) == "waiting"
    assert len(asked) == 1 + MAX_HELD


def served(root: Path) -> OwnerSheet:
    """The same site as files."""
    root.mkdir()
    (root / "index.html").write_bytes(site(Task(f"{SITE}/", "example.test")).body)  # type: ignore[arg-type]
    for letter in LETTERS:
        (root / f"{letter}.txt").write_bytes(letter.encode() * LARGE)
    return OwnerSheet({"example.test": str(root)})


def test_a_host_whose_crawlers_run_in_processes_of_their_own(tmp_path: Path) -> None:
    sheet = served(tmp_path / "root")

    def host() -> RuntimeHost:
        return RuntimeHost(sheet, Runtime(sheet), tmp_path / "state", Diary(tmp_path / "diary"))

    async def checked() -> list[bytes]:
        hosts = [await host().__aenter__()]

        async def again() -> HostedLink:
            await hosts[-1].__aexit__()
            hosts.append(await host().__aenter__())
            return hosts[-1].link("library")

        try:
            return await check_runtime_link(
                hosts[0].link("library"),
                to_bytes(CRAWLER),
                to_bytes(OTHER),
                again=again,
                stranger=hosts[0].link("stranger"),
            )
        finally:
            await hosts[-1].__aexit__()

    (tmp_path / "state").mkdir()
    frames = asyncio.run(checked())
    found = [page.url for frame in frames for page in unpacked(frame, CrawlerBatch).pages]
    assert found == [page.url for batch in run_crawler(CRAWLER, site) for page in batch.pages]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("crawler")]
