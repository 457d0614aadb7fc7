"""A crawl whose parts are exchanged while it runs fetches the same pages as one that nobody touches."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import shipped
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.crawls.summary import Summary
from gossamer.engine.component import Filter
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import ComponentFailed, FlowError
from gossamer.engine.running import RunningGraph
from gossamer.engine.sheet import build
from gossamer.engine.wiring import Wiring, changed, read
from gossamer.parsing.scope import ScopeFilter
from gossamer.storage.archive.warc import WarcArchive
from gossamer.storage.ledger.ledger import ledgers_of
from gossamer.storage.seen.memory import RecentlySeen
from gossamer.testing.fakeweb import FakePage, FakeWeb
from gossamer.values.visit import Location, Visit

Change = Callable[[RunningGraph, Crawl], Awaitable[None]]


def crawl_with(change: Change, web: FakeWeb, folder: Path, after: int = 40) -> tuple[Summary, Crawl]:
    """Crawl a fake web; when so many requests have come in, carry out a change while the crawl goes on."""
    job = Crawl(
        [web.url("/")], build(all_options(), {"delay": 0, "output": str(folder / "crawl"), "per_host": 8}), tables=False
    )
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


async def rewire(job: Crawl, text: str) -> None:
    """What `gossamer rewire` does."""
    await job.rewire(lambda wiring: changed(wiring, text))


async def replace_resolver(running: RunningGraph, job: Crawl) -> None:
    """Another resolver of the same class, with a table of its own."""
    old = running.providers["dns"]
    hosts = job.wiring.providers["dns"].settings["seed_hosts"]
    await rewire(job, f'[providers.dns]\nuse = "system-resolver"\nsettings = {{ ttl = "1s", seed_hosts = {hosts} }}')
    assert running.sheet("dns").ttl == 1.0  # type: ignore[attr-defined]
    assert running.runners["frontier"].component.resolver is running.providers["dns"] is not old  # type: ignore[attr-defined]


async def slip_cache_before_seen(running: RunningGraph, job: Crawl) -> None:
    """The recently-seen table in front of the seen set, for the stage that only looks ahead."""
    await rewire(
        job,
        '[providers.recent]\nuse = "recently-seen"\nproviders = { behind = "seen" }\n'
        '[components.url-seen.providers]\nseen = "recent"',
    )
    assert isinstance(running.providers["recent"], RecentlySeen)
    assert running.runners["url-seen"].component.seen is running.providers["recent"]  # type: ignore[attr-defined]


async def fuse_and_unfuse(running: RunningGraph, job: Crawl) -> None:
    """Queues where arrows were fused, and the other way round."""
    for name, address in (("checked", "local:"), ("fetched", "fused:"), ("records", "fused:"), ("checked", "fused:")):
        await rewire(job, f'[connectors.{name}]\naddress = "{address}"')
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


# -- many changes of one crawl

#: Arrows of the shipped wiring that carry visits, with who takes from each.
VISITS = {
    "fetched": "content-seen",
    "checked": "process",
    "processed": "links",
    "linked": "filter",
    "filtered": "url-seen",
}


class Passing(Filter):
    """A stage of one's own that looks at visits and lets them go on."""

    inbox: In[Visit]
    outbox: Out[Visit]

    async def filter(self, visit: Visit) -> tuple[Visit]:
        await asyncio.sleep(0)
        return (visit,)


class Differences:
    """Valid differences, one after the other, as a seed says."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.slipped: list[str] = []

    def next(self, wiring: Wiring) -> str:
        kinds = [self.slip, self.address, self.pool, self.setting, self.cache]
        if self.slipped:
            kinds += [self.take_out, self.take_out]
        return self.random.choice(kinds)(wiring)

    def slip(self, wiring: Wiring) -> str:
        if len(self.slipped) >= 4:
            return self.take_out(wiring)
        name = next(f"pass-{number}" for number in range(9) if f"pass-{number}" not in self.slipped)
        arrow = self.random.choice(list(VISITS))
        taker = next(key for key, plan in wiring.components.items() if plan.ports.get("inbox") == arrow)
        self.slipped.append(name)
        workers = self.random.choice((1, 3))
        return (
            f'[connectors.{name}]\naddress = "{self.random.choice(("local:", "fused:"))}"\n'
            f'[components.{name}]\nuse = "passing"\nworkers = {workers}\n'
            f'ports = {{ inbox = "{arrow}", outbox = "{name}" }}\n[components.{taker}.ports]\ninbox = "{name}"\n'
        )

    def take_out(self, wiring: Wiring) -> str:
        name = self.random.choice(self.slipped)
        self.slipped.remove(name)
        before = wiring.components[name].ports["inbox"]
        taker = next(key for key, plan in wiring.components.items() if plan.ports.get("inbox") == name)
        return f'remove = ["components.{name}", "connectors.{name}"]\n[components.{taker}.ports]\ninbox = "{before}"\n'

    def address(self, wiring: Wiring) -> str:
        name = self.random.choice([*VISITS, "records", "answers"])
        may_fuse = name not in ("answers",)
        address = self.random.choice(("local:", "fused:") if may_fuse else ("local:",))
        return f'[connectors.{name}]\naddress = "{address}"\ncapacity = {self.random.randint(1, 99)}\n'

    def pool(self, wiring: Wiring) -> str:
        name = self.random.choice([*VISITS.values(), "fetch"])
        key = self.random.choice(("workers", "restarts", "instances" if name == "fetch" else "errors"))
        return f"[components.{name}]\n{key} = {self.random.randint(1, 9)}\n"

    def setting(self, wiring: Wiring) -> str:
        return f"[providers.politeness.settings]\nper_host = {self.random.randint(2, 9)}\n"

    def cache(self, wiring: Wiring) -> str:
        if "recent" in wiring.providers:
            return 'remove = ["providers.recent"]\n[components.url-seen.providers]\nseen = "seen"\n'
        return (
            '[providers.recent]\nuse = "recently-seen"\nproviders = { behind = "seen" }\n'
            '[components.url-seen.providers]\nseen = "recent"\n'
        )


#: The part of a crawl over which differences are spread. A single one can take as long as hundreds of pages, so the last of them
#: must not come where the crawl may be over before it.
_SPREAD_OVER = 0.8


async def keep_pace(job: Crawl, done: float, pages: int) -> None:
    """Spread the differences over the crawl: it waits for them, and they wait for it."""
    share = done * _SPREAD_OVER
    while job.figures.summary().fetched < (share - 0.05) * pages:
        job.go_on()
        await asyncio.sleep(0.001)
    if job.figures.summary().fetched > (share - 0.02) * pages:  # a change can take as long as the rest of the crawl
        job.pause()
    else:
        job.go_on()
    await asyncio.sleep(0)


def crawl_through(count: int, web: FakeWeb, folder: Path) -> tuple[Summary, Crawl]:
    """Crawl a fake web with so many differences, each undone again with probability 1/4, and see the wiring kept each time."""
    known = catalog()
    known.add("passing", Passing)
    differences = Differences(count)
    done: list[int] = []

    async def crawl() -> Summary:
        job = jobs[0]
        running = asyncio.ensure_future(job.run())
        while job.running is None or not job.working:
            assert not running.done(), running.exception()
            await asyncio.sleep(0.001)
        while len(done) < count:
            assert not running.done(), "the crawl was over before the differences"
            kept, before = [*differences.slipped], job.wiring
            text = differences.next(before)
            try:
                await rewire(job, text)
            except Exception as error:
                told = job.figures.summary()
                error.add_note(
                    f"{text}after {len(done)} differences and {told.fetched} of {len(web.expected)} pages: {told}"
                )
                raise
            assert read(folder / "crawl" / "crawl.toml").components == job.wiring.components
            if differences.random.random() < 0.25:
                await job.undo()
                differences.slipped = kept
                assert job.wiring == before
            done.append(1)
            await keep_pace(job, len(done) / count, len(web.expected))
        job.go_on()
        return await running

    options = build(all_options(), {"delay": 0, "output": str(folder / "crawl"), "per_host": 4})
    jobs = [Crawl([web.url("/")], options, catalog=known, tables=False)]
    with asyncio.Runner() as runner:
        summary = runner.run(crawl())
    return summary, jobs[0]


def counted(counters: Mapping[str, int]) -> dict[str, int]:
    """Counters that belong to pages: the others follow time, bytes on the wire, and how visits fell into groups."""
    return {
        name: number
        for name, number in counters.items()
        if name not in ("elapsed_ms", "bytes") and not name.startswith("learnt:")
    }


def assert_same_figures(count: int, depth: int, width: int, folder: Path) -> None:
    """A crawl through many differences has the pages and the counters of one that nobody touches."""
    figures = []
    for name, times in (("plain", 0), ("rewired", count)):
        (folder / name).mkdir()
        with FakeWeb.tree(depth, width, latency=0.004) as web:
            summary, job = crawl_through(times, web, folder / name)
            assert_untouched(summary, web)
            ledger = next(iter(ledgers_of(job.directory)))
            with ledger.looking():
                figures.append(counted(ledger.counters()))
    assert figures[0] == figures[1]


@pytest.mark.long
def test_random_differences_change_neither_pages_nor_counters(tmp_path: Path) -> None:
    assert_same_figures(30, 4, 4, tmp_path)


@pytest.mark.long
def test_three_hundred_random_differences_change_neither_pages_nor_counters(tmp_path: Path) -> None:
    assert_same_figures(300, 4, 6, tmp_path)


# -- components of one's own that fail


class Picky(Passing):
    """Chokes on some pages."""

    async def filter(self, visit: Visit) -> tuple[Visit]:
        if visit.url.endswith("/1"):
            raise ValueError("no page that ends with 1, please")
        return (visit,)


def crawl_picky(web: FakeWeb, folder: Path, **plan: int) -> tuple[Summary, Crawl]:
    """A crawl with a component of its own between filter and url-seen."""
    known = catalog()
    known.add("picky", Picky)
    settings = "".join(f"{key} = {value}\n" for key, value in plan.items())
    text = (
        '[connectors.picked]\n[components.url-seen]\nports = { inbox = "picked" }\n'
        f'[components.picky]\nuse = "picky"\nports = {{ inbox = "filtered", outbox = "picked" }}\n{settings}'
    )
    options = build(all_options(), {"delay": 0, "output": str(folder / "crawl"), "per_host": 8})
    job = Crawl([web.url("/")], options, wiring=changed(shipped("default"), text), catalog=known, tables=False)
    return asyncio.run(asyncio.wait_for(job.run(), 60)), job


def test_an_item_at_which_a_component_of_ones_own_raises_is_set_aside_and_the_crawl_goes_on(tmp_path: Path) -> None:
    with FakeWeb.tree(2, 6) as web:
        summary, _ = crawl_picky(web, tmp_path)
        assert_untouched(summary, web)
        choked = sorted(url for url in web.expected if url.endswith("/1"))
    lines = [json.loads(line) for line in (tmp_path / "crawl" / "logs" / "skipped.jsonl").read_text().splitlines()]
    assert sorted(line["item"]["task"]["url"] for line in lines) == choked
    assert {(line["unit"], line["error"]) for line in lines} == {
        ("picky", "ValueError: no page that ends with 1, please")
    }
    assert all("in filter" in line["traceback"] for line in lines)


def test_a_component_of_ones_own_that_fails_too_often_stops_the_crawl_with_a_clear_line(tmp_path: Path) -> None:
    with (
        FakeWeb.tree(2, 6) as web,
        pytest.raises(
            ComponentFailed, match=r"component 'picky' failed on 3 items and may on 2 .*the last error: ValueError"
        ),
    ):
        crawl_picky(web, tmp_path, errors=2)


class BrokenScope(ScopeFilter):
    """A filter that cannot start."""

    async def start(self) -> None:
        raise OSError("no such device")


def test_a_unit_that_raises_at_start_ends_the_crawl_with_its_name_and_no_directory(tmp_path: Path) -> None:
    known = catalog()
    known.add("scope", BrokenScope)
    with FakeWeb({"/": FakePage("x")}) as web:
        job = Crawl(
            [web.url("/")],
            build(all_options(), {"delay": 0, "output": str(tmp_path / "c")}),
            catalog=known,
            tables=False,
        )
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
        job = Crawl(
            [web.url("/")],
            build(all_options(), {"delay": 0, "output": str(tmp_path / "c")}),
            catalog=known,
            tables=False,
        )
        with pytest.raises(ComponentFailed, match=r"'commit' cannot keep 1 visits: OSError: No space left"):
            asyncio.run(asyncio.wait_for(job.run(), 30))
