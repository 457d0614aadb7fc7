"""A crawl whose stages stand in two processes fetches the same pages, also when one of the two is killed.

Every arrow that may leave the main process (design question 1) is listed here with the stages whose move makes it cross; the suite
moves one set, `./gossamer dev divided` moves them all.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import shipped
from gossamer.crawls.control.messages import Change
from gossamer.crawls.control.steering import answer
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.options import all_options
from gossamer.crawls.processes import divide
from gossamer.crawls.summary import Summary
from gossamer.engine.component import Filter
from gossamer.engine.ends import In, Out
from gossamer.engine.errors import SettingError, WiringError
from gossamer.engine.sheet import build
from gossamer.engine.wiring import changed, read
from gossamer.testing.fakeweb import FakeWeb
from gossamer.values.visit import Visit

#: Arrow -> stages that run elsewhere so that it crosses.
CUTS: dict[str, Sequence[str]] = {
    "seeds": ("seeds",),
    "tasks, answers, fetched": ("fetch",),
    "fetched, filtered": ("content-seen", "process", "links", "filter"),
    "checked": ("process", "links", "filter"),
    "processed": ("links", "filter"),
    "linked": ("filter",),
    "filtered, visits": ("url-seen",),
    "records": ("tally",),
    "tasks to filtered": ("fetch", "content-seen", "process", "links", "filter"),
}


def crawl_divided(
    elsewhere: Sequence[str], web: FakeWeb, folder: Path, kill_at: Sequence[int] = (), **more: object
) -> Summary:
    """Crawl a fake web with some stages in another process, which is killed (-9) at these request counts."""
    wiring = divide(shipped("default"), elsewhere, "elsewhere")
    options = build(all_options(), {"delay": 0, "output": str(folder / "crawl"), "per_host": 8, **more})
    job = Crawl([web.url("/")], options, wiring=wiring, tables=False)

    async def crawl() -> Summary:
        loop = asyncio.get_running_loop()
        plain = web.note
        count = 0

        def kill() -> None:
            assert job.fleet is not None
            job.fleet.children["elsewhere"].kill()

        def note(request: object) -> None:
            nonlocal count
            count += 1
            if count in kill_at:
                loop.call_soon_threadsafe(kill)
            plain(request)  # type: ignore[arg-type]

        web.note = note  # type: ignore[method-assign]
        return await job.run()

    return asyncio.run(crawl())


def assert_same(summary: Summary, web: FakeWeb, *, killed: bool = False) -> None:
    """Every page of the graph was committed once, and without a kill fetched once."""
    assert summary.state == "finished"
    assert summary.pages == summary.fetched == len(web.expected)
    fetched = Counter(map(web.url, web.targets()))
    assert set(fetched) == set(web.expected)
    if not killed:
        assert max(fetched.values()) == 1


def test_stages_in_another_process_fetch_the_same_pages(tmp_path: Path) -> None:
    with FakeWeb.tree(3, 5) as web:
        assert_same(crawl_divided(CUTS["checked"], web, tmp_path), web)


def test_a_stage_that_is_killed_comes_back_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    with FakeWeb.tree(3, 6, latency=0.002) as web:
        assert_same(crawl_divided(CUTS["checked"], web, tmp_path, kill_at=(30, 120)), web, killed=True)
    rows = (tmp_path / "crawl" / "logs" / "crawl.jsonl").read_text()
    assert rows.count('"event":"page"') == len(web.expected)


@pytest.mark.parametrize("cut", ["checked", "processed", "filtered, visits"])
def test_near_duplicates_are_compared_where_the_ledger_is(cut: str, tmp_path: Path) -> None:
    text = " ".join(f"Paragraph {number} of a long page about bridges and rivers." for number in range(80))
    pages = {"/": '<a href="/one">x</a>', "/one": f'<p>{text}<a href="/two">x</a>'}
    pages["/two"] = f'<p>{text.replace("Paragraph 40", "Paragraph forty")}<a href="/three">x</a>'
    with FakeWeb(pages) as web:
        summary = crawl_divided(CUTS[cut], web, tmp_path, near_duplicates="skip")
        assert sorted(web.targets()) == ["/", "/one", "/two"]
    assert (summary.state, summary.pages) == ("finished", 2)


@pytest.mark.long
@pytest.mark.parametrize("kills", [(), (25, 90, 200)], ids=["whole", "killed"])
@pytest.mark.parametrize("cut", CUTS)
def test_every_arrow_that_may_leave_the_process_may_be_cut(cut: str, kills: Sequence[int], tmp_path: Path) -> None:
    with FakeWeb.tree(3, 7, latency=0.003) as web:
        assert_same(crawl_divided(CUTS[cut], web, tmp_path, kill_at=kills), web, killed=bool(kills))


# -- units of other processes


class Choosy(Filter):
    """A stage of one's own, of a module that can be imported."""

    inbox: In[Visit]
    outbox: Out[Visit]

    def filter(self, visit: Visit) -> tuple[Visit]:
        if visit.url.endswith("/1"):
            raise ValueError("not this one")
        return (visit,)


def test_units_of_another_process_are_seen_and_set_as_if_they_were_here(tmp_path: Path) -> None:
    wiring = divide(shipped("default"), CUTS["checked"], "elsewhere")
    seen: list[Any] = []

    async def crawl(web: FakeWeb) -> Summary:
        options = build(all_options(), {"delay": 0, "output": str(tmp_path / "crawl"), "per_host": 2})
        job = Crawl([web.url("/")], options, wiring=wiring, tables=False)
        running = asyncio.ensure_future(job.run())
        while not job.working or not (await job.standing(units=False)).fetched:
            await asyncio.sleep(0.001)
        await answer(job, Change({"links.max_links": "5000"}))
        with pytest.raises(SettingError, match=r"restart"):
            await answer(job, Change({"process.parsers": "3"}))
        with pytest.raises(SettingError, match="max_links"):
            await answer(job, Change({"links.max_links": "-1"}))
        assert job.fleet is not None
        job.fleet.children["elsewhere"].kill()
        seen.append(job.graph.sheet("links"))
        while not seen[1:]:
            units = {unit.name: unit for unit in (await job.standing(units=True)).units}
            if units["links"].metrics.get("items"):
                seen.append(await job.standing(units=True))
            await asyncio.sleep(0.001)
        return await running

    with FakeWeb.tree(3, 6, latency=0.003) as web:
        summary = asyncio.run(asyncio.wait_for(crawl(web), 60))
        assert_same(summary, web, killed=True)
    assert seen[0].max_links == 5000
    assert read(tmp_path / "crawl" / "crawl.toml").components["links"].settings["max_links"] == 5000
    units = {unit.name: unit.metrics for unit in seen[1].units}
    assert units["fetch"]["items"] > 0
    assert units["process"]["items"] >= units["links"]["items"] > 0
    assert {"checked", "processed", "linked", "filtered"} <= {one.name for one in seen[1].connectors}


def test_the_plan_itself_gives_a_seen_test_elsewhere_a_filter_of_its_own(tmp_path: Path) -> None:
    text = (
        '[components.url-seen]\nprocess = "elsewhere"\n[connectors.filtered]\naddress = "unix:"\n'
        '[connectors.visits]\naddress = "unix:"\n'
    )
    with FakeWeb.tree(2, 5) as web:
        options = build(all_options(), {"delay": 0, "output": str(tmp_path / "crawl"), "per_host": 8})
        job = Crawl([web.url("/")], options, wiring=changed(shipped("default"), text), tables=False)
        assert job.wiring.providers["seen-elsewhere"].use == "memory-seen"
        assert job.wiring.components["commit"].providers["seen"] == "seen"
        assert_same(asyncio.run(job.run()), web)


def test_a_component_of_ones_own_runs_in_another_process(tmp_path: Path) -> None:
    known = catalog()
    known.add("choosy", Choosy)
    text = (
        '[connectors.chosen]\naddress = "unix:"\n[components.url-seen]\nports = { inbox = "chosen" }\n'
        '[components.choosy]\nuse = "choosy"\nprocess = "elsewhere"\nports = { inbox = "filtered", outbox = "chosen" }\n'
        '[connectors.filtered]\naddress = "unix:"\n'
    )
    with FakeWeb.tree(2, 5) as web:
        options = build(all_options(), {"delay": 0, "output": str(tmp_path / "crawl"), "per_host": 8})
        job = Crawl([web.url("/")], options, wiring=changed(shipped("default"), text), catalog=known, tables=False)
        assert_same(asyncio.run(job.run()), web)
        choked = [url for url in web.expected if url.endswith("/1")]
    aside = (tmp_path / "crawl" / "logs" / "skipped-elsewhere.jsonl").read_text().splitlines()
    assert len(aside) == len(choked)


def test_a_class_that_another_process_cannot_import_is_refused_before_anything_starts(tmp_path: Path) -> None:
    class Inner(Choosy):
        pass

    known = catalog()
    known.add("choosy", Inner)
    text = (
        '[connectors.chosen]\naddress = "unix:"\n[components.url-seen]\nports = { inbox = "chosen" }\n'
        '[components.choosy]\nuse = "choosy"\nprocess = "elsewhere"\nports = { inbox = "filtered", outbox = "chosen" }\n'
        '[connectors.filtered]\naddress = "unix:"\n'
    )
    options = build(all_options(), {"output": str(tmp_path / "crawl")})
    with pytest.raises(
        WiringError, match="process 'elsewhere' cannot import 'choosy', which is defined inside a function"
    ):
        Crawl(["http://127.0.0.1/"], options, wiring=changed(shipped("default"), text), catalog=known, tables=False)
    assert not (tmp_path / "crawl").exists()
