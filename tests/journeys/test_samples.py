"""Samples of a crawl: the numbers of `status`, every ten seconds, there when the crawl has ended or was killed."""

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawls.catalog import catalog
from gossamer.crawls.compiling import shipped
from gossamer.crawls.control.at_rest import standing_at_rest
from gossamer.crawls.control.at_work import glance_at
from gossamer.crawls.control.standing import CrawlStanding
from gossamer.crawls.crawl import Crawl
from gossamer.crawls.figures import Sampler
from gossamer.crawls.options import all_options
from gossamer.engine.sheet import build
from gossamer.query.database import Database
from gossamer.storage.tables.log import TableLog
from gossamer.storage.tables.row_tables import COARSE, FINE, SampleRow
from gossamer.testing import FakeClock
from gossamer.testing.fakeweb import FakePage, FakeWeb

#: Two pages that are done at once, and one that is tried again much later: the crawl waits, and can be looked at.
WAITING = {"/": '<a href="/1">x</a><a href="/2">x</a>', "/1": "one", "/2": FakePage(status=500)}

#: What a sample and a standing both have, and both count the same way.
SAME = (
    "pages", "fetched", "unique_documents", "bytes", "errors", "raised", "discovered", "queued", "set_aside", "hosts",
    "outcomes",
)  # fmt: skip


def job_of(web: FakeWeb, folder: Path, **options: object) -> Crawl:
    return Crawl([web.url("/")], build(all_options(), {"output": str(folder), "delay": 0, **options}))


def while_waiting(job: Crawl, look: Callable[[], Any]) -> Any:
    """What `look` finds, which may be awaited, when only a retry is left; the crawl is torn off after."""

    async def story() -> Any:
        running = asyncio.ensure_future(job.run())
        while not running.done():
            await asyncio.sleep(0.01)
            if job.working and (now := glance_at(job, 1)).fetched == 3 and not now.in_flight:
                found = look()
                if asyncio.iscoroutine(found):
                    found = await found
                job.abort()
                await running
                return found
        raise AssertionError(f"it ended as {running.result()}")

    return asyncio.run(asyncio.wait_for(story(), 60))


def samples(directory: Path) -> list[dict[str, Any]]:
    names = SampleRow.__struct_fields__
    with Database(directory) as database:
        found = list(database.ask(f"SELECT {', '.join(names)} FROM samples ORDER BY taken_at"))
    rows = [dict(zip(names, row, strict=True)) for row in found]
    for row in rows:
        row["outcomes"] = msgspec.json.decode(row["outcomes"]) if row["outcomes"] else {}
    return rows


def same(standing: CrawlStanding) -> dict[str, Any]:
    return {name: getattr(standing, name) for name in SAME}


def test_a_sample_has_the_numbers_of_status_at_that_instant(tmp_path: Path) -> None:
    with FakeWeb(WAITING) as web:
        job = job_of(web, tmp_path / "c", linger="forever")

        def look() -> CrawlStanding:
            Sampler(job).take()
            return glance_at(job, 1)

        now = while_waiting(job, look)
    [row] = samples(tmp_path / "c")
    assert {name: row[name] for name in SAME} == same(now)
    assert (row["state"], row["pages"], row["queued"], row["every"]) == ("running", 2, 1, COARSE)
    assert row["disk_free"] > 0


def test_a_crawl_takes_a_sample_every_ten_seconds_and_keeps_one_of_five_minutes_for_good(tmp_path: Path) -> None:
    with FakeWeb(WAITING) as web:
        job, clock = job_of(web, tmp_path / "c", linger="forever"), FakeClock()

        async def look() -> None:
            sampler = Sampler(job, clock)
            async with sampler.sampling():
                for _ in range(5):
                    await clock.advance(FINE)
            await clock.advance(FINE)

        while_waiting(job, look)
    rows = samples(tmp_path / "c")
    assert len(rows) == 5
    assert [row["every"] for row in rows][:2] == [COARSE, FINE]


def test_the_last_sample_of_a_run_has_the_numbers_of_status_at_rest(tmp_path: Path) -> None:
    with FakeWeb(WAITING) as web:
        summary = asyncio.run(job_of(web, tmp_path / "c", retries=0).run())
    [row] = samples(tmp_path / "c")
    assert {name: row[name] for name in SAME} == same(standing_at_rest(tmp_path / "c"))
    assert (row["state"], row["pages"]) == (summary.state, summary.pages)


def test_samples_outlive_a_run_and_go_on_in_the_next(tmp_path: Path) -> None:
    with FakeWeb(WAITING) as web:
        asyncio.run(job_of(web, tmp_path / "c", max_pages=1).run())
        asyncio.run(job_of(web, tmp_path / "c", resume=True, max_pages=9, retries=0).run())
    rows = samples(tmp_path / "c")
    assert [(row["state"], row["pages"]) for row in rows] == [("limit", 1), ("incomplete", 2)]


class Full(TableLog):
    """Has no room for samples."""

    def add(self, table: str, rows: Any, *where: Any) -> None:
        if table == "samples":
            raise OSError(errno.ENOSPC, "no space left")
        super().add(table, rows, *where)


def test_a_sample_that_cannot_be_written_is_counted_and_the_crawl_goes_on(tmp_path: Path) -> None:
    known = catalog()
    known.add("tables", Full)
    with FakeWeb({"/": "here"}) as web:
        options = build(all_options(), {"output": str(tmp_path / "c"), "delay": 0})
        job = Crawl([web.url("/")], options, catalog=known)
        summary = asyncio.run(job.run())
        assert summary.pages == 1
    assert samples(tmp_path / "c") == []
    assert job.graph_at_work.metrics("log")["samples_lost"] == 1


def test_a_crawl_whose_wiring_keeps_the_log_alone_has_no_samples_and_ends_well(tmp_path: Path) -> None:
    plain = shipped("default")
    log = msgspec.structs.replace(plain.providers["log"], use="json-log")
    with FakeWeb({"/": "here"}) as web:
        options = build(all_options(), {"output": str(tmp_path / "c"), "delay": 0})
        wiring = msgspec.structs.replace(plain, providers={**plain.providers, "log": log})
        assert asyncio.run(Crawl([web.url("/")], options, wiring=wiring).run()).pages == 1
    assert [path.name for path in (tmp_path / "c").iterdir() if path.name in ("rows", "tables", "logs")] == ["logs"]
