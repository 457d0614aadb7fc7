"""A crawl whose parts are exchanged while it runs fetches the same pages as one that nobody touches."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from gossamer.assembly.catalog import catalog
from gossamer.assembly.crawl import Crawl
from gossamer.assembly.options import CrawlOptions
from gossamer.assembly.summary import Summary
from gossamer.flow.errors import ComponentFailed, FlowError
from gossamer.flow.planning import provider_node
from gossamer.flow.running import RunningGraph
from gossamer.flow.sheet import build
from gossamer.flow.wiring import ProviderPlan
from gossamer.model.visit import Location, Visit
from gossamer.stages.url_filter.scope import ScopeFilter
from gossamer.stores.memory import RecentlySeen
from gossamer.stores.warc import WarcArchive
from gossamer.testing.fakeweb import FakeWeb, Page

Change = Callable[[RunningGraph, Crawl], Awaitable[None]]


def crawl_with(change: Change, web: FakeWeb, folder: Path, after: int = 40) -> tuple[Summary, Crawl]:
    """Crawl a fake web; when so many requests have come in, carry out a change while the crawl goes on."""
    job = Crawl([web.url("/")], build(CrawlOptions, {"delay": 0, "output": str(folder / "crawl"), "per_host": 8}))
    tasks: list[asyncio.Task[None]] = []

    async def crawl() -> Summary:
        loop = asyncio.get_running_loop()

        def begin() -> None:
            assert job.running is not None
            tasks.append(asyncio.ensure_future(change(job.running, job)))

        original = web.note
        count = 0

        def note(request: object) -> None:
            nonlocal count
            count += 1
            if count == after:
                loop.call_soon_threadsafe(begin)
            original(request)  # type: ignore[arg-type]

        web.note = note  # type: ignore[method-assign]
        summary = await job.run()
        await asyncio.gather(*tasks)
        return summary

    with asyncio.Runner() as runner:
        return runner.run(crawl()), job


def assert_untouched(summary: Summary, web: FakeWeb) -> None:
    """The page set is that of the graph, each page fetched once."""
    assert summary.state == "finished"
    assert Counter(map(web.url, web.targets())) == Counter(web.expected)
    assert summary.pages == len(web.expected)


async def replace_resolver(running: RunningGraph, job: Crawl) -> None:
    """Another resolver of the same class, with a table of its own."""
    settings = {**job.wiring.providers["dns"].settings, "ttl": "1s"}
    plan = ProviderPlan(use="system-resolver", settings=settings)
    await running.exchange_provider("dns", provider_node("dns", plan, job.wiring, catalog()))
    assert running.sheet("dns").ttl == 1.0  # type: ignore[attr-defined]


async def slip_cache_before_seen(running: RunningGraph, job: Crawl) -> None:
    """The recently-seen table in front of the seen set."""
    plan = ProviderPlan(use="recently-seen", providers={"behind": "seen"})
    await running.exchange_provider("seen", provider_node("seen", plan, job.wiring, catalog()))
    assert isinstance(running.providers["seen"], RecentlySeen)
    assert running.runners["url-seen"].component.seen is running.providers["seen"]  # type: ignore[attr-defined]


async def fuse_and_unfuse(running: RunningGraph, job: Crawl) -> None:
    """Queues where arrows were fused, and the other way round."""
    for name, address in (("checked", "local:"), ("fetched", "fused:"), ("records", "fused:"), ("checked", "fused:")):
        await running.exchange_connector(name, address)
        assert running.graph.connectors[name].plan.address == address


async def pause_one_stage(running: RunningGraph, job: Crawl) -> None:
    """One unit suspended and resumed, and a setting of another changed."""
    await running.suspend("commit")
    running.set("politeness", {"per_host": 2})
    running.resume("commit")
    assert running.sheet("politeness").per_host == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize("change", [replace_resolver, slip_cache_before_seen, fuse_and_unfuse, pause_one_stage])
def test_the_page_set_does_not_depend_on_changes_while_the_crawl_runs(change: Change, tmp_path: Path) -> None:
    with FakeWeb.tree(4, 4, latency=0.001) as web:
        summary, _ = crawl_with(change, web, tmp_path)
        assert_untouched(summary, web)


def test_an_exchanged_connector_goes_on_counting(tmp_path: Path) -> None:
    with FakeWeb.tree(4, 4, latency=0.001) as web:
        summary, job = crawl_with(fuse_and_unfuse, web, tmp_path)
    for name in ("fetched", "checked", "records"):
        assert job.connector_statistics[name].passed == summary.fetched + len(web.errands)


class BrokenScope(ScopeFilter):
    """A filter that cannot start."""

    async def start(self) -> None:
        raise OSError("no such device")


def test_a_unit_that_raises_at_start_ends_the_crawl_with_its_name_and_no_directory(tmp_path: Path) -> None:
    known = catalog()
    known.add("scope", BrokenScope)
    with FakeWeb({"/": Page("x")}) as web:
        job = Crawl([web.url("/")], build(CrawlOptions, {"delay": 0, "output": str(tmp_path / "c")}), catalog=known)
        with pytest.raises(FlowError, match=r"unit 'scope' cannot start: OSError: no such device"):
            asyncio.run(job.run())
        assert web.requests == []
    assert not (tmp_path / "c").exists()


class FullArchive(WarcArchive):
    """An archive on a full disk."""

    def append(self, visits: Sequence[Visit]) -> list[Location | None]:
        raise OSError("No space left on device")


def test_an_archive_that_cannot_be_written_stops_the_crawl_by_name_and_never_hangs_it(tmp_path: Path) -> None:
    known = catalog()
    known.add("warc", FullArchive)
    with FakeWeb.tree(2, 3) as web:
        job = Crawl([web.url("/")], build(CrawlOptions, {"delay": 0, "output": str(tmp_path / "c")}), catalog=known)
        with pytest.raises(ComponentFailed, match=r"'commit' cannot keep 1 visits: OSError: No space left"):
            asyncio.run(asyncio.wait_for(job.run(), 30))
